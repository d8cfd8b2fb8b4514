"""The operating envelope: what the gate lets through and what is found over a grid of CSI noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sar_analysis.metrics.records import of_result
from sar_analysis.stats import clustered
from sar_analysis.stats.interval import Interval
from sar_eval.episode.pool import Spec, fly_one, plan_missions, spread
from sar_eval.scenario.model import Scenario
from sar_eval.studies.missions import summarise

SIGMAS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)
KAPPAS = (32.0, 16.0, 8.0, 4.0, 2.5, 1.75, 1.0, 0.5)
OPENS_AT_KAPPA, CLOSES_AT_KAPPA = 2.014, 1.739
"""Where I1(kappa)/I0(kappa) crosses the phase gate's 0.70 and 0.65."""


def fly_sweep(
    world: str,
    per_cell: int,
    first_seed: int,
    duration_s: float,
    workers: int,
    tell: Callable[[int, int], None],
) -> list[dict[str, Any]]:
    """Cells in the order of SIGMAS x KAPPAS, all flown on the same seeds and layouts."""
    specs: list[Spec] = []
    for sigma in SIGMAS:
        for kappa in KAPPAS:
            scenario = Scenario(world=world, sigma=sigma, kappa=kappa, duration_s=duration_s)
            specs += plan_missions(scenario, per_cell, first_seed)
    results = []
    for result in spread(fly_one, specs, workers):
        results.append(result)
        tell(len(results), len(specs))
    cells = []
    for k in range(0, len(specs), per_cell):
        mine = results[k : k + per_cell]
        summary = summarise(mine)
        valid = [r for r in mine if r["valid"]]
        layouts = [of_result(r).layout for r in valid]
        gate = {
            name: _figure(clustered.mean([r["gate"][name] for r in valid], layouts, bounds=(0.0, 1.0)))
            for name in (valid[0]["gate"] if valid else ())
        }
        cells.append(
            {
                "sigma": specs[k].scenario.sigma,
                "kappa": specs[k].scenario.kappa,
                "missions": per_cell,
                "invalid": summary.invalid,
                "gate": gate,
                "found": _figure(summary.found_at_all),
                "decoy_alarms_per_mission": _figure(summary.false_alarms_per_mission),
                "displaced": _figure(summary.displaced_issues),
                "wrong_issues_per_mission": _figure(summary.wrong_issues_per_mission),
                "cep50_m": _figure(summary.cep50_m),
            }
        )
    return cells


def _figure(found: Interval | None) -> dict[str, Any] | None:
    return None if found is None else found.plain


def _value(figure: dict[str, Any] | None) -> float | None:
    return None if figure is None else figure["value"]


def draw_sweep(cells: list[dict[str, Any]], world: str, picture: Path) -> None:
    """Six maps over the grid, with the theoretical boundary of the phase gate."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    def grid(value: Callable[[dict[str, Any]], float | None]) -> Any:
        numbers = [value(cell) for cell in cells]
        return np.array([np.nan if n is None else n for n in numbers]).reshape(len(SIGMAS), len(KAPPAS))

    panels = (
        ("share of frames with the phase gate open", grid(lambda c: _value(c["gate"].get("phase_open"))), 0.0, 1.0),
        ("share of frames the amplitude gate accepts", grid(lambda c: _value(c["gate"].get("accept"))), 0.0, 1.0),
        ("share of frames it only predicts with", grid(lambda c: _value(c["gate"].get("predict_only"))), 0.0, 1.0),
        ("victims found", grid(lambda c: _value(c["found"])), 0.0, 1.0),
        ("decoy alarms per mission", grid(lambda c: _value(c["decoy_alarms_per_mission"])), 0.0, None),
        ("CEP50 at issue (m)", grid(lambda c: _value(c["cep50_m"])), 0.0, None),
    )
    columns = np.interp(-np.log([OPENS_AT_KAPPA, CLOSES_AT_KAPPA]), -np.log(KAPPAS), np.arange(len(KAPPAS)))
    figure, axes = pyplot.subplots(2, 3, figsize=(14, 7.2), layout="constrained")
    for axis, (title, values, low, high) in zip(axes.flat, panels, strict=True):
        image = axis.imshow(values, vmin=low, vmax=high, aspect="auto", cmap="viridis")
        figure.colorbar(image, ax=axis)
        for column, style in zip(columns, ("--", ":"), strict=True):
            axis.axvline(column, color="white", linestyle=style)
        axis.set_xticks(range(len(KAPPAS)), [f"{k:g}" for k in KAPPAS])
        axis.set_yticks(range(len(SIGMAS)), [f"{s:g}" for s in SIGMAS])
        axis.set(title=title, xlabel="kappa", ylabel="sigma")
    figure.suptitle(
        f"Stage 2 (embedded): {world}; white: theory for the phase gate opening (dashed) and closing (dotted)"
    )
    figure.savefig(picture, dpi=110)
    pyplot.close(figure)
