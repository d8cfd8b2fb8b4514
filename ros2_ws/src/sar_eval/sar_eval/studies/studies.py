"""Two questions about the swarm's reports: what does the gate buy, and is the confidence a probability?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_analysis.stats.interval import Interval
from sar_analysis.stats.resampling import bootstrap_mean
from sar_core.errors import InputError, MissingDataError
from sar_eval.episode.pool import Spec, fly_one, plan_missions, spread
from sar_eval.scenario.model import Scenario
from sar_swarm.sensing.confidence import auroc, brier_skill, calibration_error, reliability

Floats = NDArray[np.float64]

THRESHOLDS = np.linspace(0.02, 0.98, 49)


def paired_difference(on: list[float], off: list[float], label: str) -> Interval:
    """Mean of on minus off over missions flown both ways."""
    return bootstrap_mean(np.array(on, dtype=np.float64) - np.array(off, dtype=np.float64), label)


def operating_curve(results: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """(false alarms per mission, share of victims found) by the swarm's last reports, for each confidence threshold."""
    victims = sum(len(r["victims"]) for r in results)
    curve = []
    for threshold in THRESHOLDS:
        last = [[t["last"] for t in r["tracks"] if t["last"]["confidence"] > threshold] for r in results]
        alarms = sum(not report["right"] for mission in last for report in mission)
        found = sum(
            min(sum(report["right"] for report in mission), len(r["victims"]))
            for mission, r in zip(last, results, strict=True)
        )
        curve.append((alarms / len(results), found / max(victims, 1)))
    return curve


def gate_study(
    world: str, kappas: list[float], missions: int, first_seed: int, workers: int, tell: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    """Each kappa with the gate on and forced open, on the same seeds and layouts."""
    specs: list[Spec] = []
    for kappa in kappas:
        for gate in ("on", "forced_open"):
            scenario = Scenario(world=world, kappa=kappa, gate=gate)
            specs += plan_missions(scenario, missions, first_seed)
    results = []
    for result in spread(fly_one, specs, workers):
        results.append(result)
        tell(len(results), len(specs))
    rows = []
    for k, kappa in enumerate(kappas):
        on = results[2 * k * missions : (2 * k + 1) * missions]
        off = results[(2 * k + 1) * missions : (2 * k + 2) * missions]
        found = [[float(r["detections"]) for r in part] for part in (on, off)]
        alarms = [[float(r["false_alarms"]) for r in part] for part in (on, off)]
        rows.append(
            {
                "kappa": kappa,
                "missions": missions,
                "found_on": float(np.mean(found[0])),
                "found_forced_open": float(np.mean(found[1])),
                "found_difference": paired_difference(found[0], found[1], f"found {kappa}").ends,
                "false_alarms_on": float(np.mean(alarms[0])),
                "false_alarms_forced_open": float(np.mean(alarms[1])),
                "false_alarms_difference": paired_difference(alarms[0], alarms[1], f"alarms {kappa}").ends,
                "curve_on": operating_curve(on),
                "curve_forced_open": operating_curve(off),
            }
        )
    return rows


def draw_gate_study(rows: list[dict[str, Any]], world: str, picture: Path) -> None:
    """Victims found against false alarms, over all thresholds, gate on and forced open."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(rows), figsize=(4.2 * len(rows), 4.2), squeeze=False, layout="constrained")
    for axis, row in zip(axes.flat, rows, strict=True):
        for key, colour in (("curve_on", "#1d4e89"), ("curve_forced_open", "#d94801")):
            curve = np.array(row[key])
            axis.plot(curve[:, 0], curve[:, 1], ".-", color=colour, label=key.removeprefix("curve_").replace("_", " "))
        title = f"kappa {row['kappa']:g}"
        axis.set(xlabel="false alarms per mission", ylabel="share of victims found", ylim=(0, 1.02), title=title)
        axis.grid(alpha=0.3)
    axes.flat[0].legend(title="gate")
    figure.suptitle(f"Stage 2 (embedded): {world}; one point per confidence threshold")
    figure.savefig(picture, dpi=110)
    pyplot.close(figure)


def _reports(results: list[dict[str, Any]], which: str) -> tuple[Floats, Floats]:
    """Confidences and whether they were right, of the swarm's first or last report on each transmitter and mission."""
    try:
        reports = [t[which] for r in results if r["valid"] for t in r["tracks"]]
    except (KeyError, TypeError) as error:
        raise InputError(f"these are not results of sar-eval missions of this version: {error} is missing") from None
    if not reports:
        raise MissingDataError("the results hold no report: nothing to judge")
    return np.array([r["confidence"] for r in reports]), np.array([r["right"] for r in reports], dtype=np.float64)


def judge_confidence(results: list[dict[str, Any]], which: str) -> dict[str, Any]:
    """How well the swarm's first or last report on each transmitter and mission is calibrated."""
    p, right = _reports(results, which)
    return {
        "n": len(p),
        "right": int(right.sum()),
        "expected_calibration_error": calibration_error(p, right),
        "brier_skill": brier_skill(p, right),
        "auroc": auroc(p, right),
    }


def draw_reliability(results: list[dict[str, Any]], picture: Path) -> None:
    """The reliability curve: what share was right among reports of about the same confidence."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(5.6, 5.2), layout="constrained")
    axis.plot([0, 1], [0, 1], color="#999999", linestyle="--")
    for which, colour in (("first", "#d94801"), ("last", "#1d4e89")):
        p, right = _reports(results, which)
        curve = reliability(p, right)
        axis.plot(curve.confidence, curve.right, "o-", color=colour, label=f"{which} word, n = {len(p)}")
        for x, y, count in zip(curve.confidence, curve.right, curve.counts, strict=True):
            axis.annotate(str(count), (x, y), textcoords="offset points", xytext=(6, -10), fontsize=7, color=colour)
    axis.legend(loc="upper left", fontsize=8)
    axis.set(xlabel="confidence", ylabel="share within 10 m of a victim", xlim=(0, 1), ylim=(0, 1))
    axis.set_title("one report per transmitter and mission; counts beside the points", fontsize=9)
    axis.grid(alpha=0.3)
    figure.savefig(picture, dpi=110)
    pyplot.close(figure)
