"""What the reports of a pattern came to, missions with victims and those without together, noise levels pooled.

Some figures need both kinds: how many of all issues are right depends on how many missions hold nobody, so it is given
at one without for each with. Beside them stand ADR-149's ten metrics, by its own definitions, from the same flights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sar_analysis.metrics.catalogue import AS_ADR149, ISSUES, REPORTED
from sar_analysis.metrics.findings import HeldReport
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.results.conditions import Group, merge
from sar_analysis.results.dilution import DILUTIONS, Looks, correlations, error_bands, errors_at, errors_by_views
from sar_analysis.results.sections import counts, estimates, times
from sar_analysis.results.summary import NOISE, summary_of
from sar_analysis.stats.interval import Interval
from sar_analysis.stats.layouts import DEFAULT, Options

TOGETHER = (*NOISE, "victim_absent")
ALL = "all patterns"
LOOK_S = 60.0


def together(groups: Sequence[Group], options: Options = DEFAULT) -> list[dict[str, Any]]:
    """A row per tier for all patterns, then one per pattern; none without radio, and none of records of schema 1, whose
    definitions these are not."""
    rows: list[dict[str, Any]] = []
    if any(e.schema < ISSUES for g in groups for e in g.episodes):
        return rows
    for tier in dict.fromkeys(dict(g.condition)["tier"] for g in groups):
        own = [g for g in groups if dict(g.condition)["tier"] == tier]
        merged = merge(own, TOGETHER, "m")
        everything = tuple(e for g in own for e in g.episodes)
        named = [(ALL, everything)] if len(merged) > 1 else []
        named += [(g.pattern, g.episodes) for g in merged]
        rows += [_row(tier, name, episodes, options) for name, episodes in named if _with_radio(episodes)]
    return rows


def _with_radio(episodes: Sequence[EpisodeMetrics]) -> bool:
    return any(e.valid and e.false_alarms is not None for e in episodes)


def _row(tier: str, pattern: str, episodes: Sequence[EpisodeMetrics], options: Options) -> dict[str, Any]:
    summary = summary_of(episodes, (), options, (*REPORTED, *AS_ADR149))
    told, wanted = counts(summary), {*REPORTED, *AS_ADR149}
    return {
        "tier": tier,
        "pattern": pattern,
        "missions": told["missions"],
        "invalid": told["invalid"],
        "victims": told["victims"],
        "estimates": estimates(summary),
        "times": [row for row in times([e for e in episodes if e.valid], options) if row["metric"] in wanted],
    }


def geometry(groups: Sequence[Group], options: Options = DEFAULT) -> list[dict[str, Any]]:
    """Per tier, what was held of every victim at fixed times: errors by geometry and views, and what foretells them."""
    made = []
    for tier in dict.fromkeys(dict(g.condition)["tier"] for g in groups):
        looks = looks_at([e for g in groups if dict(g.condition)["tier"] == tier for e in g.valid])
        if looks is None:
            continue
        made.append(
            {
                "tier": tier,
                "looks": len(looks.layouts),
                "times_s": list(looks.times),
                "errors": [_plain(row) for row in errors_at(looks, options)],
                "bands": [_plain(row) for row in error_bands(looks, options)],
                "correlations": [_plain(row) for row in correlations(looks, options)],
                "views": [_plain(row) for row in errors_by_views(looks, options)],
            }
        )
    return made


def _plain(row: tuple[Any, ...]) -> dict[str, Any]:
    told = row._asdict()  # type: ignore[attr-defined]
    return {name: value.plain if isinstance(value, Interval) else value for name, value in told.items()}


def looks_at(valid: Sequence[EpisodeMetrics]) -> Looks | None:
    """What was held of every victim at each whole LOOK_S of the search, as columns; None where no search was as long.

    Nothing was held yet of a victim without a report: an infinite error on no views. Records of schema 1 tell of none.
    """
    held = [(e.layout, at, fix) for e in valid for at, fix in _looks_of(e)]
    if not held:
        return None
    columns = {
        name: np.array([math.nan if (value := getattr(fix, name, None)) is None else value for _, _, fix in held])
        for name in DILUTIONS
    }
    return Looks(
        layouts=tuple(layout for layout, _, _ in held),
        time_s=np.array([at for _, at, _ in held]),
        error_m=np.array([math.inf if fix is None else fix.error_m for _, _, fix in held]),
        views=np.array([0 if fix is None else fix.views for _, _, fix in held], np.int64),
        **columns,
    )


def _looks_of(e: EpisodeMetrics) -> Iterator[tuple[float, HeldReport | None]]:
    if e.schema < ISSUES or e.false_alarms is None:
        return
    for v in e.victims:
        held = {fix.time_s: fix for fix in v.fixes}
        for k in range(1, int(e.search_time_s / LOOK_S) + 1):
            yield k * LOOK_S, held.get(k * LOOK_S)
