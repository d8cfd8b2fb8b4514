"""The part of the results that stands against an oracle: each condition's optimality gap, or why it has none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sar_analysis.metrics.catalogue import METRICS
from sar_analysis.results.conditions import Group
from sar_analysis.results.optimality import Reference, beyond, gap_scores, gaps
from sar_analysis.results.sections import interval
from sar_analysis.stats import clustered
from sar_analysis.stats.layouts import Options
from sar_core.errors import SarError


def held_to(reference: Reference, groups: Sequence[Group], options: Options) -> dict[str, Any]:
    """Every condition against the reference; one that was asked something else is refused in words."""
    return {
        "reference": {"name": reference.name, "world": reference.world, "version": reference.version},
        "conditions": [_held(reference, g, options) for g in groups],
    }


def _held(reference: Reference, g: Group, options: Options) -> dict[str, Any]:
    head = {"id": g.id, "tier": g.plain["tier"], "missions": len(g.valid), "invalid": len(g.episodes) - len(g.valid)}
    try:
        found = gaps(g.episodes, reference)
        table = gap_scores(g.episodes, reference, drop_incomplete=True)
        layouts = [layout for _ in table.seeds for layout in table.layouts]
        bounds = METRICS[table.metric].bounds
        told = clustered.mean(table.values.ravel(), layouts, options, bounds=bounds)
    except SarError as error:
        return {**head, "refused": str(error)}
    return {
        **head,
        "n": len(found),
        "beyond": beyond(found),
        **interval(replace(told, notes=(*table.notes, *told.notes))),
    }
