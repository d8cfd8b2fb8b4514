"""Which pattern is best on what, noise levels pooled, and whether the data tell it from the runner-up.

Patterns are compared on the missions they all have, paired by seed and episode. Whoever leads was chosen by the data,
so every pair of patterns on every goal is in the family that Holm's correction is for, not only the pairs shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sar_analysis.metrics.catalogue import METRICS, Value
from sar_analysis.metrics.goals import Goal, goals, longest_search_s
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.results.conditions import PATTERN, Group, crossed, family_key
from sar_analysis.results.model import JudgedGoal, PatternFamily, PatternValue, RefusedGoal, Rival
from sar_analysis.results.optimality import Reference, gaps
from sar_analysis.results.summary import NOT_HELD
from sar_analysis.stats import clustered
from sar_analysis.stats.comparisons import holm
from sar_analysis.stats.designs import units_left_out
from sar_analysis.stats.interval import jackknife_p, jackknife_t
from sar_analysis.stats.scores import Array, Scores, listed, on_common_episodes
from sar_analysis.stats.statistics import Statistic, difference_of, iqm_of, mean_of
from sar_core.errors import SarError

ALPHA = 0.05
CONFIDENCE = 0.95
METHOD = "jackknife over seeds and layouts, t"
MAKERS: Mapping[str, Callable[[Scores], Statistic]] = {"mean": mean_of, "iqm": iqm_of}
ONE = np.uint16(1)


Pair = tuple[str, str]


@dataclass(frozen=True)
class Difference:
    """By how much the first pattern of a pair is better than the second, whichever way better is."""

    better_by: float
    low: float | None
    high: float | None
    p: float | None
    notes: list[str]
    p_holm: float | None = None

    def turned(self) -> Difference:
        """The same, told of the second."""
        low, high = (None if end is None else -end for end in (self.high, self.low))
        return replace(self, better_by=-self.better_by, low=low, high=high)


@dataclass(frozen=True)
class GoalTables:
    """Each pattern's table on a goal, of the missions with victims or of those without; or why there is none."""

    goal: Goal
    absent: bool
    tables: dict[str, Scores]
    refused: str = ""

    def statistic(self, name: str) -> Statistic:
        return MAKERS[self.goal.statistic](self.tables[name])


def families(pooled: Sequence[Group], reference: Reference | None = None) -> list[PatternFamily]:
    """One part per set of patterns that were flown under otherwise equal settings, with victims or without."""
    members: dict[str, list[Group]] = {}
    for g in pooled:
        members.setdefault(family_key(g, (*PATTERN, "victim_absent")), []).append(g)
    return [_family(own, reference) for own in members.values()]


def _family(groups: Sequence[Group], reference: Reference | None) -> PatternFamily:
    horizon = longest_search_s([e for g in groups for e in g.episodes])
    asked = goals(horizon, None if reference is None else _gap(reference))
    tabled = [_tabled(goal, groups) for goal in asked]
    pairs = _corrected([_pairs(found) for found in tabled])
    return PatternFamily(
        label=groups[0].family_label,
        patterns=list(dict.fromkeys(g.pattern for g in groups)),
        horizon_s=horizon,
        comparisons=sum(map(len, pairs)),
        method=METHOD,
        cluster="seed and layout",
        resamples=None,
        seed=None,
        confidence=CONFIDENCE,
        goals=[_told(found, own) for found, own in zip(tabled, pairs, strict=True)],
    )


def _gap(reference: Reference) -> Value:
    def shortfall(e: EpisodeMetrics) -> float | None:
        (found,) = gaps([e], reference)
        return found.gap

    return shortfall


def _tabled(goal: Goal, groups: Sequence[Group]) -> GoalTables:
    """The goal's tables by pattern; a goal nobody can be judged on says why."""
    absent = goal.victims == "absent"
    kinds = {bool(dict(g.condition)["victim_absent"]) for g in groups}
    side = absent if absent in kinds else not absent
    mine = [g for g in groups if bool(dict(g.condition)["victim_absent"]) == side]
    if any(e.schema < METRICS[goal.metric].since for g in mine for e in g.episodes):
        return GoalTables(goal, side, {}, NOT_HELD)
    try:
        tables = dict(zip([g.pattern for g in mine], _tables(goal, mine), strict=True))
    except SarError as error:
        return GoalTables(goal, side, {}, str(error))
    return GoalTables(goal, side, tables)


def _pairs(found: GoalTables) -> dict[Pair, Difference]:
    """The difference of every pair."""
    names = list(found.tables)
    return {(a, b): _difference(found, a, b) for k, a in enumerate(names) for b in names[k + 1 :]}


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


def _pattern_value(found: GoalTables, name: str) -> PatternValue:
    """A pattern's value; where nothing varied the ends are what layouts not seen could do, and a note says so."""
    table, statistic, bounds = found.tables[name], found.statistic(name), found.goal.bounds
    value = _value(table, statistic)
    low, high = _ends(value, units_left_out(table, statistic))
    if low is not None and high is not None:
        return PatternValue(pattern=name, value=value, low=max(low, bounds[0]), high=min(high, bounds[1]), notes=[])
    layouts = [layout for _ in table.seeds for layout in table.layouts]
    same = clustered.mean(np.full(len(layouts), value), layouts, bounds=bounds)
    low, high = same.ends["low"], same.ends["high"]
    notes = [f"{same.method}: {', '.join(same.notes)}"]
    return PatternValue(pattern=name, value=same.value, low=low, high=high, notes=notes)


def _ends(value: float, left_out: list[Array]) -> tuple[float | None, float | None]:
    """No interval where nothing varied: that is not certainty."""
    low, high = jackknife_t(value, left_out, CONFIDENCE)
    return (None, None) if low == high else (low, high)


def _difference(found: GoalTables, one: str, two: str) -> Difference:
    better, worse = (one, two) if found.goal.higher else (two, one)
    statistic = difference_of(found.statistic(better), found.statistic(worse))
    value = _value(found.tables[one], statistic)
    parts = units_left_out(found.tables[one], statistic)
    low, high = _ends(value, parts)
    notes = ["all missions differ by as much: no interval"] if low is None else []
    return Difference(value, low, high, jackknife_p(value, parts), notes)


def _value(table: Scores, statistic: Statistic) -> float:
    return float(statistic(np.full((1, table.values.size), ONE))[0])


def _corrected(pairs: Sequence[dict[Pair, Difference]]) -> list[dict[Pair, Difference]]:
    """Holm over all pairs of all goals that could be tested."""
    tested = [found.p for own in pairs for found in own.values() if found.p is not None]
    adjusted = iter(holm(tested) if tested else ())
    return [
        {pair: d if d.p is None else replace(d, p_holm=float(next(adjusted))) for pair, d in own.items()}
        for own in pairs
    ]


def _refused(found: GoalTables) -> RefusedGoal:
    goal = found.goal
    return RefusedGoal(
        metric=goal.metric,
        words=goal.words,
        higher_is_better=goal.higher,
        victim_absent=found.absent,
        statistic=goal.statistic,
        values=[],
        refused=found.refused,
    )


def _told(found: GoalTables, pairs: dict[Pair, Difference]) -> JudgedGoal | RefusedGoal:
    """Who leads, who follows, and how sure that is."""
    if not found.tables:
        return _refused(found)
    goal, first = found.goal, next(iter(found.tables.values()))
    values = [_pattern_value(found, name) for name in found.tables]
    ranked = sorted(values, key=lambda v: (-1.0 if goal.higher else 1.0) * v.value)
    best = [v.pattern for v in ranked if _same(v.value, ranked[0].value)]
    behind = ranked[len(best) :]
    rivals = [_rival(best[0], v.pattern, pairs) for v in behind]
    return JudgedGoal(
        metric=goal.metric,
        words=goal.words,
        higher_is_better=goal.higher,
        victim_absent=found.absent,
        statistic=goal.statistic,
        missions=first.values.size,
        seeds=list(first.seeds),
        layouts=len(set(first.layouts)),
        notes=list(dict.fromkeys(note for t in found.tables.values() for note in t.notes)),
        values=values,
        best=best,
        runner_up=[v.pattern for v in behind if _same(v.value, behind[0].value)],
        rivals=rivals,
        told_apart=sum(rival.told_apart for rival in rivals),
    )


def _rival(best: str, other: str, pairs: dict[Pair, Difference]) -> Rival:
    own = pairs.get((best, other))
    d = pairs[other, best].turned() if own is None else own
    return Rival(
        pattern=other,
        better_by=d.better_by,
        low=d.low,
        high=d.high,
        p=d.p,
        p_holm=d.p_holm,
        told_apart=d.p_holm is not None and d.p_holm < ALPHA,
        notes=d.notes,
    )


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-12 * max(abs(a), abs(b), 1.0)
