"""What Stage-1 rows come to, policy by policy and seed by seed, with intervals of the design the figures have.

Every seed flies the same episodes, and a layout at several noise levels. An IQM is of the crossed table, seeds and
whole layouts drawn again (Student's t with the jackknife below ten seeds); counts, errors and times are over layouts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sar_analysis.metrics.catalogue import COVERAGE_TIME_S
from sar_analysis.stage1.medianseeds import SeedChoice
from sar_analysis.stage1.rows import Stage1Row
from sar_analysis.stats import clustered
from sar_analysis.stats.interval import Interval, Reading
from sar_analysis.stats.layouts import DEFAULT, Options
from sar_analysis.stats.resampling import ENOUGH_SEEDS, bootstrap
from sar_analysis.stats.scores import Cell, from_cells
from sar_core.errors import SarError

LayoutOf = Callable[[int], Hashable]
FIGURES = (
    *("episode_return", "coverage_240s", "missions_with_detection", "cep50_m", "time_to_first_detection_s"),
    *("displaced_issues", "false_alarms_per_mission"),
)
"""Of a policy, as the catalogue of metrics calls them; return and coverage are IQMs, the time is a restricted mean."""


def policy_figures(
    rows: Sequence[Stage1Row], layout_of: LayoutOf, options: Options = DEFAULT
) -> dict[str, dict[str, Interval]]:
    """Figures by policy and metric; one that no row gives is left out."""
    made = {}
    for policy in dict.fromkeys(row.policy for row in rows):
        own = [row for row in rows if row.policy == policy]
        found = _sensed([row for row in own if row.detections is not None], layout_of, options)
        for key in ("episode_return", "coverage_240s"):
            values = [getattr(row, key) for row in own]
            if None not in values:
                found[key] = _iqm(own, key, values, layout_of, options)
        made[policy] = {key: found[key] for key in FIGURES if key in found}
    return made


def _iqm(
    rows: Sequence[Stage1Row], key: str, values: Sequence[float], layout_of: LayoutOf, options: Options
) -> Interval:
    """Over layouts alone where one seed, or one layout of a noise level, leaves nothing to cross."""
    episodes = sorted({(row.episode, row.victim_absent) for row in rows})
    places = {episode: column for column, episode in enumerate(episodes)}
    cells = [
        Cell(
            seed=row.seed,
            episode=places[row.episode, row.victim_absent],
            value=value,
            level=(row.sigma, row.kappa),
            layout=layout_of(row.episode),
            number=row.episode,
        )
        for row, value in zip(rows, values, strict=True)
    ]
    table = from_cells(key, cells)
    reading: Reading = "t" if len(table.seeds) < ENOUGH_SEEDS else "percentile"
    try:
        found = bootstrap(
            table,
            design="seeds_layouts",
            reading=reading,
            resamples=options.resamples,
            seed=options.seed,
            confidence=options.confidence,
        )
    except SarError:
        return clustered.iqm(values, [layout_of(row.episode) for row in rows], options)
    return found if found.low < found.high else replace(found, low=math.nan, high=math.nan)


def _sensed(rows: Sequence[Stage1Row], layout_of: LayoutOf, options: Options) -> dict[str, Interval]:
    """Of rows that say what was detected."""
    found: dict[str, Interval] = {}
    sought = [row for row in rows if not row.victim_absent]
    if sought:
        layouts = [layout_of(row.episode) for row in sought]
        had = np.array([bool(row.detections) for row in sought])
        came = [row.time_to_first_detection_s for row in sought]
        times = [COVERAGE_TIME_S if t is None else t for t in came]
        seen = [t is not None for t in came]
        found["missions_with_detection"] = clustered.share(had, 1, layouts, options)
        found["time_to_first_detection_s"] = clustered.rmst(times, seen, COVERAGE_TIME_S, layouts, options)
    errors = [(error, layout_of(row.episode)) for row in sought for error in _errors(row)]
    if errors:
        values, places = [error for error, _ in errors], [place for _, place in errors]
        found["cep50_m"] = clustered.quantile(values, 0.5, places, options, "issued victims")
    told = [(row.displaced, len(row.errors_m), layout_of(row.episode)) for row in sought if row.errors_m]
    if told and all(displaced is not None for displaced, _, _ in told):
        wrong, issued, of = zip(*told, strict=True)
        found["displaced_issues"] = clustered.share(wrong, issued, list(of), options, "issued victims")
    alarms = [(row.false_alarms, layout_of(row.episode)) for row in rows if row.false_alarms is not None]
    if alarms:
        counts, places = [count for count, _ in alarms], [place for _, place in alarms]
        found["false_alarms_per_mission"] = clustered.rate(counts, 1.0, places, options, "mission")
    return found


def _errors(row: Stage1Row) -> list[float]:
    """At issue, of every victim issued; of the first alone where a row says no more."""
    if row.errors_m is not None:
        return row.errors_m
    return [] if row.localization_error_m is None else [row.localization_error_m]


def seed_figures(
    rows: Sequence[Stage1Row], policy: str | None, layout_of: LayoutOf, options: Options = DEFAULT
) -> dict[int, Interval]:
    """The IQM of each seed's return over all policies (None) or one, as the choice of seeds takes it."""
    made = {}
    for seed in sorted({row.seed for row in rows}):
        own = [row for row in rows if row.seed == seed and policy in (None, row.policy)]
        layouts = [layout_of(row.episode) for row in own]
        made[seed] = clustered.iqm([row.episode_return for row in own], layouts, options)
    return made


def plain_choice(
    choice: SeedChoice, rows: Sequence[Stage1Row], layout_of: LayoutOf, options: Options = DEFAULT
) -> dict[str, Any]:
    """What was chosen from what, for JSON, every seed's figure with its interval over layouts."""
    told = choice.plain()
    for pick in told["picks"]:
        figures = seed_figures(rows, pick["policy"], layout_of, options)
        for candidate in pick["candidates"]:
            candidate["return_iqm"] = figures[candidate["seed"]].plain
    return told
