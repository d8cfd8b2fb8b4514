"""Results held against their registration: was it locked, was that flown, and does each registered claim hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sar_analysis.metrics.catalogue import METRICS, of_missions
from sar_analysis.prereg.claims import Verdict, decide
from sar_analysis.prereg.prereg import RegisteredCondition, Registration, deviations, load_registration, verify
from sar_analysis.results.conditions import Group, Level, Slot, crossed, level_of, plain_value, with_misses
from sar_analysis.results.sections import interval
from sar_analysis.results.summary import NOISE
from sar_analysis.stats.scores import Scores, level_words, listed
from sar_core.errors import InputError, MissingDataError, SarError


def held_against(path: Path, groups: Sequence[Group]) -> dict[str, Any]:
    """The registration's part of the results."""
    match, registration = verify(path), load_registration(path)
    parted = list(departures(registration, groups))
    try:
        verdicts, refused = [_plain(v) for v in decide(registration, tables(registration, groups))], None
    except SarError as error:
        verdicts, refused = [], str(error)
    return {
        "name": path.name,
        "status": match.status,
        "sentence": match.sentence,
        "sha256": match.sha256,
        "hypothesis": registration.hypothesis,
        "metric": registration.metric,
        "estimator": registration.estimator,
        "run_purpose": registration.run_purpose,
        "failure_policy": registration.failure_policy,
        "deviations": parted,
        "verdicts": verdicts,
        "refused": refused,
    }


def departures(registration: Registration, groups: Sequence[Group]) -> tuple[str, ...]:
    """How what was flown departs from what was registered."""
    named = {name: matching(condition, groups) for name, condition in _by_name(registration).items()}
    flown = [name for name, found in named.items() if found]
    found = list(
        deviations(
            registration,
            flown,
            {e.seed for g in groups for e in g.episodes},
            {e.episode for g in groups for e in g.episodes},
        )
    )
    found += [
        f"condition {name}: {len(missing)} of {planned} registered missions not flown: {listed(_named(missing, grid))}"
        for name, mine in named.items()
        for planned, missing, grid in [unflown(registration, mine)]
        if mine and missing
    ]
    claimed = {g.id for group in named.values() for g in group}
    if stray := [g.label for g in groups if g.id not in claimed]:
        found.append(f"conditions flown but not registered: {listed(stray)}")
    sets = {e.episode_set for g in groups for e in g.episodes}
    if sets - {registration.episodes.set_version}:
        told = listed(sorted(map(str, sets)))
        found.append(f"episode set {told} flown, version {registration.episodes.set_version} registered")
    invalid = sum(not e.valid for g in groups for e in g.episodes)
    if invalid:
        found.append(f"{invalid} INVALID missions; the registered policy is {registration.failure_policy}")
    return tuple(found)


def unflown(registration: Registration, mine: Sequence[Group]) -> tuple[int, list[Slot], bool]:
    """How many missions were registered for the condition these groups meet, which nobody flew, and if on a grid.

    A registration names no noise beyond `changes`, so the flights tell it: if any episode was flown at several levels
    every episode is due at each of them, otherwise each episode at its own.
    """
    seeds, episodes = registration.seeds, registration.episodes.indices
    done = {(e.seed, e.episode, level_of(e)) for g in mine for e in g.episodes}
    due: dict[int, set[Level]] = {episode: set() for episode in episodes}
    for seed, episode, level in done:
        if seed in seeds and episode in due:
            due[episode].add(level)
    levels = sorted(set().union(*due.values()), key=str) or [(None,) * len(NOISE)]
    grid = any(len(own) > 1 for own in due.values())
    if grid:
        due = {episode: set(levels) for episode in due}
    slots = [(s, e, level) for s in seeds for e in episodes for level in sorted(due[e] or levels[:1], key=str)]
    return len(slots), [slot for slot in slots if slot not in done], grid


def _named(slots: Sequence[Slot], grid: bool) -> list[str]:
    return [f"seed {s} episode {e}" + (f" at {level_words(level)}" if grid else "") for s, e, level in slots]


def matching(condition: RegisteredCondition, groups: Sequence[Group]) -> list[Group]:
    """The flown conditions that have every setting a registered one names."""
    return [g for g in groups if all(plain_value(_flown(g, key)) == value for key, value in condition.changes.items())]


def tables(registration: Registration, groups: Sequence[Group]) -> dict[str, Scores | str]:
    """One crossed table per registered condition, of the registered seeds and episodes only; or why there is none."""
    if registration.metric not in {metric.key for metric in of_missions()}:
        raise InputError(f"metric {registration.metric!r} is no column of the episodes' table; see docs/metrics.md")
    found: dict[str, Scores | str] = {}
    for condition in registration.conditions:
        try:
            found[condition.name] = _table(registration, condition, matching(condition, groups))
        except SarError as error:
            found[condition.name] = str(error)
    return found


def _table(registration: Registration, condition: RegisteredCondition, mine: Sequence[Group]) -> Scores:
    _only_noise_differs(condition.name, mine)
    episodes = [e for g in mine for e in g.episodes]
    episodes = [e for e in episodes if e.seed in registration.seeds and e.episode in registration.episodes.indices]
    if not episodes:
        raise MissingDataError(f"condition {condition.name}: none of its registered missions was flown")
    drop, (_, holes, _) = registration.failure_policy == "best_effort", unflown(registration, mine)
    value_of = with_misses(registration.metric) if METRICS[registration.metric].open_ended else None
    return crossed(registration.metric, episodes, drop, holes, value_of)


def _only_noise_differs(name: str, groups: Sequence[Group]) -> None:
    for key in {key for g in groups for key, _ in (*g.condition, *g.extras)} - set(NOISE):
        values = {str(dict((*g.condition, *g.extras)).get(key)) for g in groups}
        if len(values) > 1:
            raise InputError(
                f"condition {name} fits {listed([g.id for g in groups])}, which differ in {key} "
                f"({listed(sorted(values))}); allowed: a registration that names it"
            )


def _by_name(registration: Registration) -> dict[str, RegisteredCondition]:
    return {condition.name: condition for condition in registration.conditions}


def _flown(g: Group, key: str) -> Any:
    """A setting of a group: one of its own, or what all its episodes were configured with."""
    own = dict((*g.condition, *g.extras))
    return own[key] if key in own else g.episodes[0].configuration.get(key)


def _plain(verdict: Verdict) -> dict[str, Any]:
    t = verdict.threshold
    against = f" against {t.against}" if t.against else ""
    relation = t.relation.replace("_", " ")
    found = {
        "claim": f"{t.condition}{against}: {t.part} {relation} {t.limit:g}",
        "condition": t.condition,
        "against": t.against,
        "part": t.part,
        "relation": t.relation,
        "limit": t.limit,
    }
    if verdict.interval is None:
        return {**found, "refused": verdict.refused}
    parts = {part: getattr(verdict.interval, part) for part in ("value", "low", "high")}
    beyond = {part: plain_value(value) for part, value in parts.items() if math.isinf(value)}
    return {**found, "holds": verdict.holds, **interval(verdict.interval), "beyond": beyond}
