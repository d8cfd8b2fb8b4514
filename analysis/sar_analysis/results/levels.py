"""Noise level by noise level, all patterns together: what is found, what is cried wolf, and where the gate closes.

The gate counts as closed at the first level, from quiet to loud, at which less than half of the frames pass it. Where
missions do not hold what their gates did (bags do not), the first level with detections in less than half of the
missions stands in, and that is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sar_analysis.metrics.catalogue import METRICS
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.results.conditions import plain_value
from sar_analysis.results.summary import ConditionSummary, estimate, summarise
from sar_analysis.stats.layouts import DEFAULT, Options

HALF = 0.5
FIGURES = ("missions_with_detection", "victims_found", "missions_with_false_alarm")
Row = dict[str, Any]


def noise_levels(episodes: Sequence[EpisodeMetrics], options: Options = DEFAULT) -> list[Row]:
    """One part per tier and world that was flown at two levels or more, levels from quiet to loud."""
    heard = [e for e in episodes if e.sigma is not None]
    places = dict.fromkeys((e.tier, e.world) for e in heard)
    parts = []
    for tier, world in places:
        rows = _rows([e for e in heard if (e.tier, e.world) == (tier, world)], options)
        if len(rows) > 1:
            parts.append({"tier": tier, "world": world, "levels": rows, "closes": closes(rows)})
    return parts


def closes(rows: Sequence[Row]) -> Row:
    """The first level at which less than half passes the gate, and the last before; None where that never happens."""
    by_gate = all(row["gate_open"] is not None for row in rows)
    known = [row for row in rows if _passed(row, by_gate) is not None]
    at = next((k for k, row in enumerate(known) if (_passed(row, by_gate) or 0.0) < HALF), None)
    return {
        "judged_by": "frames that pass the gate" if by_gate else "missions with a detection",
        "level": None if at is None else _level(known[at]),
        "before": None if not at else _level(known[at - 1]),
    }


def _passed(row: Row, by_gate: bool) -> float | None:
    if by_gate:
        return float(row["gate_open"]["value"])
    found = row["present"].get("missions_with_detection")
    return None if found is None else float(found["value"])


def _level(row: Row) -> Row:
    return {"sigma": row["sigma"], "kappa": row["kappa"]}


def _rows(episodes: Sequence[EpisodeMetrics], options: Options) -> list[Row]:
    levels = sorted({(e.sigma, e.kappa) for e in episodes}, key=lambda level: (level[0] or 0.0, -(level[1] or 0.0)))
    rows = []
    for sigma, kappa in levels:
        own = [e for e in episodes if (e.sigma, e.kappa) == (sigma, kappa)]
        halves = summarise(own, ("victim_absent",), options, FIGURES)
        sides = {bool(dict(s.condition)["victim_absent"]): s for s in halves}
        gate = estimate(METRICS["gate_open"], [e for e in own if e.valid], options)
        rows.append(
            {
                "sigma": sigma,
                "kappa": plain_value(kappa),
                "missions": sum(e.valid for e in own),
                "invalid": sum(not e.valid for e in own),
                "gate_open": None if gate is None else gate.plain,
                "present": _figures(sides.get(False)),
                "absent": _figures(sides.get(True)),
            }
        )
    return rows


def _figures(summary: ConditionSummary | None) -> Row:
    if summary is None:
        return {}
    return {key: e.plain for key in FIGURES if (e := summary.estimate(key)) is not None}
