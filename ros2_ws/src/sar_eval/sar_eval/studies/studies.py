"""Two questions about the swarm's reports: what does the gate buy, and is the confidence a probability?"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.metrics.records import of_result
from sar_analysis.stats import clustered
from sar_analysis.stats.interval import Interval
from sar_analysis.stats.layouts import DEFAULT, Options, grouped
from sar_analysis.stats.rates import clopper_pearson, poisson_rate
from sar_analysis.stats.statistics import Counts
from sar_core.errors import InputError, MissingDataError
from sar_eval.episode.pool import Spec, fly_one, plan_missions, spread
from sar_eval.scenario.model import Scenario
from sar_swarm.sensing.confidence import auroc, brier_skill, calibration_error, reliability

Floats = NDArray[np.float64]

THRESHOLDS = np.linspace(0.02, 0.98, 49)
VICTIM = "victim"
COUNTS: dict[str, Callable[[EpisodeMetrics], float]] = {
    "found": lambda e: e.detections or 0,
    "decoy_alarms": lambda e: e.false_alarms or 0,
    "displaced": lambda e: e.displaced or 0,
    "wrong_issues": lambda e: (e.false_alarms or 0) + (e.displaced or 0),
}
"""What is counted per mission, by the definitions of the report; wrong issues are decoy alarms and displaced ones."""


class Arms(NamedTuple):
    """A count per mission with the gate on and forced open, and the mean of on minus open over missions flown both
    ways."""

    on: Interval
    forced_open: Interval
    difference: Interval


class OperatingPoint(NamedTuple):
    """The swarm's last reports above a threshold: decoys' and displaced ones per mission, share of victims found."""

    threshold: float
    decoy_alarms: Interval
    displaced: Interval
    found: Interval | None


@dataclass(frozen=True)
class GateRow:
    """One kappa: ``missions`` valid both ways, ``invalid`` pairs left out, counts by name, curves over thresholds."""

    kappa: float
    missions: int
    invalid: int
    counts: dict[str, Arms]
    curve_on: list[OperatingPoint]
    curve_forced_open: list[OperatingPoint]

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        head = {"kappa": self.kappa, "missions": self.missions, "invalid": self.invalid}
        counts = {
            name: {arm: figure.plain for arm, figure in arms._asdict().items()} for name, arms in self.counts.items()
        }
        curves = {
            name: [{key: getattr(part, "plain", part) for key, part in point._asdict().items()} for point in curve]
            for name, curve in (("curve_on", self.curve_on), ("curve_forced_open", self.curve_forced_open))
        }
        return {**head, **counts, **curves}


def arms_of(on: Sequence[float], forced_open: Sequence[float], layouts: Sequence[Hashable], options: Options) -> Arms:
    """Counts of missions flown both ways (n,), each mission with its layout."""
    gaps = np.array(on, dtype=np.float64) - np.array(forced_open, dtype=np.float64)
    return Arms(
        _per_mission(on, layouts, options),
        _per_mission(forced_open, layouts, options),
        clustered.mean(gaps, layouts, options, "paired missions"),
    )


def _per_mission(counts: Sequence[float], layouts: Sequence[Hashable], options: Options) -> Interval:
    found = clustered.rate(counts, 1, layouts, options, "mission")
    return replace(found, exact=poisson_rate(int(sum(counts)), len(counts), "mission", options.confidence))


def operating_curve(results: Sequence[dict[str, Any]], options: Options = DEFAULT) -> list[OperatingPoint]:
    """What the swarm's last report on each transmitter comes to, for each confidence threshold.

    Judged by transmitter: a decoy's is a decoy alarm, a victim's own device more than 10 m off is displaced.
    """
    layouts = [of_result(r).layout for r in results]
    victims = [len(r["victims"]) for r in results]
    curve = []
    for threshold in THRESHOLDS.tolist():
        said = [[t for t in r["tracks"] if t["last"]["confidence"] > threshold] for r in results]
        right = [sum(t["last"]["right"] for t in mission) for mission in said]
        decoys = [sum(t["kind"] != VICTIM for t in mission) for mission in said]
        displaced = [len(mission) - hits - false for mission, hits, false in zip(said, right, decoys, strict=True)]
        found = clustered.share(right, victims, layouts, options, "victims") if any(victims) else None
        alarms, off = (_per_mission(counts, layouts, options) for counts in (decoys, displaced))
        curve.append(OperatingPoint(threshold, alarms, off, found))
    return curve


def gate_study(
    world: str, kappas: list[float], missions: int, first_seed: int, workers: int, tell: Callable[[int, int], None]
) -> list[GateRow]:
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
        rows.append(gate_row(kappa, on, off))
    return rows


def gate_row(
    kappa: float, on: Sequence[dict[str, Any]], forced_open: Sequence[dict[str, Any]], options: Options = DEFAULT
) -> GateRow:
    """The same missions flown both ways; a pair of which one is INVALID is left out."""
    pairs = [(a, b) for a, b in zip(on, forced_open, strict=True) if a["valid"] and b["valid"]]
    if not pairs:
        raise MissingDataError(f"kappa {kappa:g}: no mission is valid both ways; nothing to compare")
    flown = [(of_result(a), of_result(b)) for a, b in pairs]
    layouts = [a.layout for a, _ in flown]
    counts = {
        name: arms_of([count(a) for a, _ in flown], [count(b) for _, b in flown], layouts, options)
        for name, count in COUNTS.items()
    }
    curves = (operating_curve(arm, options) for arm in zip(*pairs, strict=True))
    return GateRow(kappa, len(pairs), len(on) - len(pairs), counts, *curves)


def draw_gate_study(rows: Sequence[GateRow], world: str, picture: Path) -> None:
    """Victims found against decoy alarms, over all thresholds, gate on and forced open."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(rows), figsize=(4.2 * len(rows), 4.2), squeeze=False, layout="constrained")
    for axis, row in zip(axes.flat, rows, strict=True):
        for name, curve, colour in (
            ("on", row.curve_on, "#1d4e89"),
            ("forced open", row.curve_forced_open, "#d94801"),
        ):
            points = [(p.decoy_alarms.value, p.found.value) for p in curve if p.found is not None]
            axis.plot(*np.array(points).reshape(-1, 2).T, ".-", color=colour, label=name)
        title = f"kappa {row.kappa:g}"
        axis.set(xlabel="decoy alarms per mission", ylabel="share of victims found", ylim=(0, 1.02), title=title)
        axis.grid(alpha=0.3)
    axes.flat[0].legend(title="gate")
    figure.suptitle(f"Stage 2 (embedded): {world}; one point per confidence threshold")
    figure.savefig(picture, dpi=110)
    pyplot.close(figure)


class SaidReports(NamedTuple):
    """Confidences and whether they were right, float64[n] each, of one report per transmitter and mission; layouts."""

    said: Floats
    right: Floats
    layouts: list[Hashable]


def _reports(results: Sequence[dict[str, Any]], which: str) -> SaidReports:
    """The swarm's first or last report on each transmitter of each valid mission."""
    try:
        flown = [(r["tracks"], of_result(r).layout) for r in results if r["valid"] and r["tracks"]]
        reports = [(t[which], layout) for tracks, layout in flown for t in tracks]
    except (KeyError, TypeError) as error:
        raise InputError(f"these are not results of sar-eval missions of this version: {error} is missing") from None
    if not reports:
        raise MissingDataError("the results hold no report: nothing to judge")
    said = np.array([r["confidence"] for r, _ in reports])
    right = np.array([r["right"] for r, _ in reports], dtype=np.float64)
    return SaidReports(said, right, [layout for _, layout in reports])


@dataclass(frozen=True)
class ConfidenceFigures:
    """How well one report per transmitter and mission is calibrated; None where every one was right, or none."""

    reports: int
    right: Interval
    expected_calibration_error: Interval
    brier_skill: Interval | None
    auroc: Interval | None

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {name: getattr(value, "plain", value) for name, value in vars(self).items()}


JUDGED: dict[str, tuple[Callable[[Floats, Floats], float | None], str, tuple[float, float]]] = {
    "expected_calibration_error": (calibration_error, "calibration error of reports", (0.0, 1.0)),
    "brier_skill": (brier_skill, "Brier skill of reports", (-np.inf, 1.0)),
    "auroc": (auroc, "AUROC of reports", (0.0, 1.0)),
}
"""Each figure of confidences, what it is called and between what it lies."""


def judge_confidence(results: Sequence[dict[str, Any]], which: str, options: Options = DEFAULT) -> ConfidenceFigures:
    """How well the swarm's first or last report on each transmitter and mission is calibrated, layouts drawn again."""
    reports = _reports(results, which)
    right = clustered.share(reports.right, 1, reports.layouts, options, "reports")
    exact = clopper_pearson(int(reports.right.sum()), len(reports.right), options.confidence, "reports")
    figures = {name: _judged(reports, name, options) for name in JUDGED}
    return ConfidenceFigures(len(reports.said), replace(right, exact=exact), **figures)  # type: ignore[arg-type]


def _judged(reports: SaidReports, name: str, options: Options) -> Interval | None:
    of, estimand, bounds = JUDGED[name]
    if of(reports.said, reports.right) is None:
        return None
    groups = grouped(len(reports.said), reports.layouts)

    def statistic(counts: Counts) -> Floats:
        """Of each resample's reports written out; NaN where it lacks one kind."""
        found = []
        for row in counts:
            times = row[groups.of]
            value = of(np.repeat(reports.said, times), np.repeat(reports.right, times))
            found.append(np.nan if value is None else value)
        return np.array(found)

    return clustered.drawn(statistic, groups, estimand, len(reports.said), options, "reports", bounds)


def draw_reliability(results: Sequence[dict[str, Any]], picture: Path) -> None:
    """The reliability curve: what share was right among reports of about the same confidence, bars over layouts."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(5.6, 5.2), layout="constrained")
    axis.plot([0, 1], [0, 1], color="#999999", linestyle="--")
    for which, colour in (("first", "#d94801"), ("last", "#1d4e89")):
        reports = _reports(results, which)
        curve = reliability(reports.said, reports.right)
        bars = np.array(_bars(reports)).T
        label = f"{which} report, n = {len(reports.said)}"
        axis.errorbar(curve.confidence, curve.right, yerr=bars, fmt="o-", color=colour, label=label, capsize=2)
        for x, y, count in zip(curve.confidence, curve.right, curve.counts, strict=True):
            axis.annotate(str(count), (x, y), textcoords="offset points", xytext=(6, -10), fontsize=7, color=colour)
    axis.legend(loc="upper left", fontsize=8)
    axis.set(xlabel="confidence", ylabel="share within 10 m of a victim", xlim=(0, 1), ylim=(0, 1))
    axis.set_title("one report per transmitter and mission; counts beside the points, 95 % over layouts", fontsize=9)
    axis.grid(alpha=0.3)
    figure.savefig(picture, dpi=110)
    pyplot.close(figure)


def _bars(reports: SaidReports, bins: int = 10) -> list[tuple[float, float]]:
    """How far the share's interval reaches below and above it, for each filled bin of `reliability`."""
    places = np.clip((reports.said * bins).astype(np.int64), 0, bins - 1)
    bars = []
    for k in np.unique(places):
        mine = np.flatnonzero(places == k)
        share = clustered.share(reports.right[mine], 1, [reports.layouts[i] for i in mine], unit="reports")
        bars.append((share.value - share.low, share.high - share.value))
    return bars
