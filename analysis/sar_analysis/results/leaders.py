"""Which pattern is best on what, noise levels pooled, and whether the data tell it from the runner-up.

Patterns are compared on the missions they all have, paired by seed and episode. Whoever leads was chosen by the data,
so every pair of patterns on every goal is in the family that Holm's correction is for, not only the pairs shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sar_analysis.metrics.catalogue import METRICS, Value
from sar_analysis.metrics.goals import Goal, goals, longest_search_s
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.results.conditions import PATTERN, Group, crossed, family_key
from sar_analysis.results.optimality import Reference, gaps
from sar_analysis.results.summary import NOT_HELD
from sar_analysis.stats import clustered
from sar_analysis.stats.comparisons import holm
from sar_analysis.stats.designs import units_left_out
from sar_analysis.stats.interval import Interval, jackknife_p, jackknife_t
from sar_analysis.stats.scores import Array, Scores, listed, on_common_episodes
from sar_analysis.stats.statistics import Statistic, difference_of, iqm_of, mean_of
from sar_core.errors import SarError

ALPHA = 0.05
CONFIDENCE = 0.95
METHOD = "jackknife over seeds and layouts, t"
MAKERS: Mapping[str, Callable[[Scores], Statistic]] = {"mean": mean_of, "iqm": iqm_of}
ONE = np.uint16(1)


def families(pooled: Sequence[Group], reference: Reference | None = None) -> list[dict[str, Any]]:
    """One part per set of patterns that were flown under otherwise equal settings, with victims or without."""
    members: dict[str, list[Group]] = {}
    for g in pooled:
        members.setdefault(family_key(g, (*PATTERN, "victim_absent")), []).append(g)
    return [_family(own, reference) for own in members.values()]


def _family(groups: Sequence[Group], reference: Reference | None) -> dict[str, Any]:
    missions = [e for g in groups for e in g.episodes]
    horizon = longest_search_s(missions)
    asked = goals(horizon, None if reference is None else _gap(reference))
    rows, pairs = [], []
    for goal in asked:
        row, tested = _row(goal, groups)
        rows.append(row)
        pairs += [(row, *pair) for pair in tested]
    _correct(pairs)
    return {
        "label": groups[0].family_label,
        "patterns": list(dict.fromkeys(g.pattern for g in groups)),
        "horizon_s": horizon,
        "comparisons": len(pairs),
        "method": METHOD,
        "cluster": "seed and layout",
        "resamples": None,
        "seed": None,
        "confidence": CONFIDENCE,
        "goals": [_told(row) for row in rows],
    }


def _gap(reference: Reference) -> Value:
    def shortfall(e: EpisodeMetrics) -> float | None:
        (found,) = gaps([e], reference)
        return found.gap

    return shortfall


def _row(goal: Goal, groups: Sequence[Group]) -> tuple[dict[str, Any], list[tuple[str, str, dict[str, Any]]]]:
    """The goal's values by pattern, and the difference of every pair; a goal nobody can be judged on says why."""
    absent = goal.victims == "absent"
    kinds = {bool(dict(g.condition)["victim_absent"]) for g in groups}
    side = absent if absent in kinds else not absent
    head: dict[str, Any] = {
        "metric": goal.metric,
        "words": goal.words,
        "higher_is_better": goal.higher,
        "victim_absent": side,
        "statistic": goal.statistic,
    }
    mine = [g for g in groups if bool(dict(g.condition)["victim_absent"]) == side]
    if any(e.schema < METRICS[goal.metric].since for g in mine for e in g.episodes):
        return {**head, "values": [], "refused": NOT_HELD}, []
    try:
        tables = dict(zip([g.pattern for g in mine], _tables(goal, mine), strict=True))
    except SarError as error:
        return {**head, "values": [], "refused": str(error)}, []
    make = MAKERS[goal.statistic]
    values = [{"pattern": name, **_interval(t, make(t), goal.bounds)} for name, t in tables.items()]
    names = list(tables)
    chosen = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
    pairs = [(a, b, _difference(tables[a], tables[b], make, goal.higher)) for a, b in chosen]
    first = next(iter(tables.values()))
    notes = list(dict.fromkeys(note for t in tables.values() for note in t.notes))
    basis = {"missions": first.values.size, "seeds": list(first.seeds), "layouts": len(set(first.layouts))}
    return {**head, **basis, "notes": notes, "values": values}, pairs


def _tables(goal: Goal, groups: Sequence[Group]) -> list[Scores]:
    """Each pattern's seeds x episodes table on the seeds and episodes that all of them have."""
    common = set.intersection(*({e.seed for e in g.episodes} for g in groups))
    lost = sorted({e.seed for g in groups for e in g.episodes} - common)
    note = (f"seed {listed(lost)} left out: not flown by every pattern",) if lost else ()
    found = []
    for g in groups:
        own = [e for e in g.episodes if e.seed in common]
        table = crossed(goal.metric, own, value_of=goal.value)
        found.append(replace(table, notes=(*(f"{g.pattern}: {text}" for text in table.notes), *note)))
    return on_common_episodes(found)


def _interval(table: Scores, statistic: Statistic, bounds: tuple[float, float]) -> dict[str, Any]:
    value = _value(table, statistic)
    low, high = _ends(value, units_left_out(table, statistic))
    if low is None or high is None:
        layouts = [layout for _ in table.seeds for layout in table.layouts]
        return _unvaried(clustered.mean(np.full(len(layouts), value), layouts, bounds=bounds))
    return {"value": value, "low": max(low, bounds[0]), "high": min(high, bounds[1]), "notes": []}


def _unvaried(found: Interval) -> dict[str, Any]:
    """Where nothing varied the ends are what layouts that were not seen could do, and a note says so."""
    return {**found.ends, "notes": [f"{found.method}: {', '.join(found.notes)}"]}


def _ends(value: float, left_out: list[Array]) -> tuple[float | None, float | None]:
    """No interval where nothing varied: that is not certainty."""
    low, high = jackknife_t(value, left_out, CONFIDENCE)
    return (None, None) if low == high else (low, high)


def _difference(one: Scores, two: Scores, make: Callable[[Scores], Statistic], higher: bool) -> dict[str, Any]:
    """By how much the first is better than the second, whichever way better is."""
    better, worse = (one, two) if higher else (two, one)
    statistic = difference_of(make(better), make(worse))
    value = _value(one, statistic)
    parts = units_left_out(one, statistic)
    low, high = _ends(value, parts)
    notes = ["all missions differ by as much: no interval"] if low is None else []
    return {"better_by": value, "low": low, "high": high, "p": jackknife_p(value, parts), "notes": notes}


def _value(table: Scores, statistic: Statistic) -> float:
    return float(statistic(np.full((1, table.values.size), ONE))[0])


def _correct(pairs: Sequence[tuple[dict[str, Any], str, str, dict[str, Any]]]) -> None:
    """Holm over all pairs that could be tested; each goal's row gets its pairs."""
    tested = [found for _, _, _, found in pairs if found["p"] is not None]
    for found, p in zip(tested, holm([f["p"] for f in tested]) if tested else (), strict=True):
        found["p_holm"] = float(p)
    for row, a, b, found in pairs:
        row.setdefault("pairs", []).append((a, b, found))


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """Who leads, who follows, and how sure that is."""
    pairs = row.pop("pairs", [])
    if not row["values"]:
        return row
    sign = -1.0 if row["higher_is_better"] else 1.0
    ranked = sorted(row["values"], key=lambda v: sign * v["value"])
    best = [v["pattern"] for v in ranked if _same(v["value"], ranked[0]["value"])]
    behind = ranked[len(best) :]
    row["best"] = best
    row["runner_up"] = [v["pattern"] for v in behind if _same(v["value"], behind[0]["value"])]
    row["rivals"] = [_against(best[0], v["pattern"], pairs) for v in behind]
    row["told_apart"] = sum(r["told_apart"] for r in row["rivals"])
    return row


def _against(best: str, other: str, pairs: Sequence[tuple[str, str, dict[str, Any]]]) -> dict[str, Any]:
    a, _, found = next(pair for pair in pairs if {pair[0], pair[1]} == {best, other})
    found = dict(found)
    if a != best:
        flipped = {"better_by": -found["better_by"]}
        if found["low"] is not None:
            flipped |= {"low": -found["high"], "high": -found["low"]}
        found |= flipped
    p = found.setdefault("p_holm", None)
    return {"pattern": other, **found, "told_apart": p is not None and p < ALPHA}


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-12 * max(abs(a), abs(b), 1.0)
