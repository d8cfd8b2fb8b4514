"""Stage 1 against Stage 2 on the same missions: what the kinematic stage hides.

A Stage-2 mission and a Stage-1 row pair when pattern, seed, episode and victims agree; episode set, noise and schema
must agree too, or the file is refused: by schema 1 reports were judged by other definitions. Differences are Stage 2
minus Stage 1, with intervals over layouts for the seeds flown, which were chosen and are no sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sar_analysis.metrics.catalogue import ISSUES, METRICS, Value
from sar_analysis.metrics.goals import LOST_M, longest_search_s, share_found, sought
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.results.conditions import PATTERN, Group, crossed, family_key
from sar_analysis.results.upstream import CUT
from sar_analysis.stage1.rows import JUDGED_AS, Key, Stage1Row
from sar_analysis.stats import clustered
from sar_analysis.stats.correlation import kendall
from sar_analysis.stats.interval import Array, Interval
from sar_analysis.stats.layouts import DEFAULT, Options
from sar_analysis.stats.scores import listed
from sar_core.errors import ContractError, MissingDataError, SarError


@dataclass(frozen=True)
class Stage1Prediction:
    """A file of Stage-1 results: its name, without folders, and its rows."""

    name: str
    rows: Sequence[Stage1Row]


@dataclass(frozen=True)
class Shared:
    """A metric both stages have: a Stage-2 mission's value, and the Stage-1 row's beside it."""

    metric: str
    flown: Value
    foretold: Callable[[Stage1Row, EpisodeMetrics], float | None]


def shared_metrics(horizon_s: float) -> tuple[Shared, ...]:
    """Both sides by one rule: a miss is the longest search in times and LOST_M in errors, and so is one farther off."""

    def flown_time(e: EpisodeMetrics) -> float | None:
        return _time(e.time_to_first_detection_s, horizon_s) if sought(e) else None

    def foretold_time(row: Stage1Row, _: EpisodeMetrics) -> float | None:
        return None if row.detections is None else _time(row.time_to_first_detection_s, horizon_s)

    def foretold_share(row: Stage1Row, e: EpisodeMetrics) -> float | None:
        return None if row.detections is None or not e.victims else row.detections / len(e.victims)

    def flown_error(e: EpisodeMetrics) -> float | None:
        return _error(e.localization_error_m) if sought(e) else None

    def foretold_error(row: Stage1Row, _: EpisodeMetrics) -> float | None:
        return None if row.detections is None else _error(row.localization_error_m)

    return (
        Shared("episode_return", lambda e: e.episode_return, lambda row, _: row.episode_return),
        Shared("coverage_240s", lambda e: e.coverage_240s, lambda row, _: row.coverage_240s),
        Shared("victims_found", share_found, foretold_share),
        Shared("time_to_first_detection_s", flown_time, foretold_time),
        Shared("localization_error_m", flown_error, foretold_error),
        Shared("false_alarms_per_mission", lambda e: e.false_alarms, lambda row, _: row.false_alarms),
    )


def _time(time_s: float | None, horizon_s: float) -> float:
    return horizon_s if time_s is None else min(time_s, horizon_s)


def _error(error_m: float | None) -> float:
    return LOST_M if error_m is None else min(error_m, LOST_M)


def stage_gap(
    pooled: Sequence[Group], rows: Sequence[Stage1Row], name: str, options: Options = DEFAULT
) -> dict[str, Any]:
    """One part per set of patterns flown under otherwise equal settings in the world of the Stage-1 file."""
    check_pairs([e for g in pooled for e in g.episodes], rows, name)
    known = {row.key: row for row in rows}
    left_out = _left_out([e for g in pooled for e in g.episodes], rows)
    members: dict[str, list[Group]] = {}
    for g in pooled:
        if rows[0].world in (None, dict(g.condition)["world"]):
            members.setdefault(family_key(g, PATTERN), []).append(g)
    parts = [part for own in members.values() if (part := _part(own, known, left_out, options)) is not None]
    if not any(e.valid for g in pooled for e in g.episodes):
        reasons = Counter(e.invalid_reason or "no reason given" for g in pooled for e in g.episodes)
        why = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        raise MissingDataError(f"no mission is valid, so there is nothing to report: {why}; fly them again")
    if not parts:
        flown = sorted({_policy(g) for g in pooled})
        raise MissingDataError(
            f"{name}: no mission pairs with a row; Stage 1 has {listed(sorted({row.policy for row in rows}))}, Stage 2 "
            f"flew {listed(flown)}; allowed: the same pattern names, seeds, episodes and victims"
        )
    told = [f"{METRICS[key].label}: {why}" for key, why in left_out.items()]
    return {"file": name, "episode_set": rows[0].episode_set, "left_out": told, "parts": parts}


def _left_out(episodes: Sequence[EpisodeMetrics], rows: Sequence[Stage1Row]) -> dict[str, str]:
    """Metrics that cannot be held against each other, and why: who judged reports by which definitions must be known,
    and errors of schema 1 are cut at 10 m in either stage."""
    if rows[0].schema_version is None:
        why = "the Stage-1 file names no schema_version, so by which definitions it judged reports is not known"
        return {shared.metric: why for shared in shared_metrics(0.0) if METRICS[shared.metric].sensing}
    if any(e.schema < ISSUES for e in episodes):
        return {"localization_error_m": CUT}
    return {}


def check_pairs(episodes: Sequence[EpisodeMetrics], rows: Sequence[Stage1Row], name: str) -> None:
    """Refuse a file that was flown on something else: other set, other set's content, other noise, other seeds; or
    judged by other definitions."""
    if rows[0].episode_set is None:
        raise ContractError(f"{name}: rows have no episode_set; to be paired they must name the set they were flown on")
    mine = [e for e in episodes if rows[0].world in (None, e.world)]
    if not mine:
        worlds = listed(sorted({e.world for e in episodes}))
        raise MissingDataError(f"{name}: was flown in {rows[0].world}; Stage 2 flew in {worlds}; nothing pairs")
    schema = rows[0].schema_version
    for e in mine:
        if schema is not None and JUDGED_AS[schema] != e.schema:
            raise ContractError(
                f"{name}: schema_version is {schema} there, but {e.schema} in {e.episode_id}; allowed: one whose "
                "definitions are the same, since reports are judged by others from 2 on (docs/migration.md); make the "
                "rows again: sar-eval stage1"
            )
        if e.episode_set != rows[0].episode_set:
            raise ContractError(
                f"{name}: was flown on {rows[0].episode_set}, but {e.episode_id} on {e.episode_set}; allowed: one set"
            )
        own, theirs = e.configuration.get("episode_set_sha256"), rows[0].episode_set_sha256
        if own and theirs and own != theirs:
            raise ContractError(
                f"{name}: {e.episode_set} has hash {theirs[:12]} there, but {own[:12]} in {e.episode_id}; "
                "allowed: the same content"
            )
    lost = sorted({e.seed for e in mine} - {row.seed for row in rows})
    if lost:
        held = listed(sorted({row.seed for row in rows}))
        raise MissingDataError(f"{name}: no row of seed {listed(lost)}, which Stage 2 flew; it holds seeds {held}")
    noise = {(row.episode, row.victim_absent): (row.sigma, row.kappa) for row in rows if row.sigma is not None}
    for e in mine:
        level = noise.get((e.episode, e.victim_absent))
        if level is not None and level != (e.sigma, e.kappa):
            raise ContractError(
                f"{name}: episode {e.episode} has sigma {level[0]}, kappa {level[1]} there, but {e.sigma}, {e.kappa} "
                f"in {e.episode_id}; allowed: the same noise"
            )


def _policy(g: Group) -> str:
    """The name Stage 1 knows it by."""
    return str(dict(g.extras).get("policy") or dict(g.condition)["pattern"])


def _part(
    groups: Sequence[Group], known: Mapping[Key, Stage1Row], left_out: Mapping[str, str], options: Options
) -> dict[str, Any] | None:
    paired = {g.pattern: (g, _pairs(g, known)) for g in groups}
    missing = [name for name, (_, pairs) in paired.items() if not pairs]
    paired = {name: found for name, found in paired.items() if found[1]}
    if not paired:
        return None
    missions = [e for g, _ in paired.values() for e in g.episodes if e.valid]
    held = [shared for shared in shared_metrics(longest_search_s(missions)) if shared.metric not in left_out]
    metrics = [_metric(shared, paired, options) for shared in held]
    return {
        "label": groups[0].family_label,
        "victim_absent": bool(dict(groups[0].condition)["victim_absent"]),
        "patterns": list(paired),
        "unpaired_patterns": missing,
        "seeds": sorted({e.seed for e in missions}),
        "pairs": sum(len(pairs) for _, pairs in paired.values()),
        "collisions": sum(e.collisions for e in missions),
        "missions": len(missions),
        "metrics": [metric for metric in metrics if metric["patterns"]],
    }


def _pairs(g: Group, known: Mapping[Key, Stage1Row]) -> dict[int, Stage1Row]:
    """The Stage-1 row of each valid mission, by the mission's identity."""
    policy = _policy(g)
    found = ((e, known.get((policy, e.seed, e.episode, e.victim_absent))) for e in g.valid)
    return {id(e): row for e, row in found if row is not None}


class _Moved(NamedTuple):
    """A pattern in both stages on the episodes that every seed has in both: values (n,), each with its layout."""

    pattern: str
    stage1: Array
    differences: Array
    layouts: list[Hashable]
    notes: tuple[str, ...]

    @property
    def stage2(self) -> Array:
        return self.stage1 + self.differences


def _metric(
    shared: Shared, paired: Mapping[str, tuple[Group, Mapping[int, Stage1Row]]], options: Options
) -> dict[str, Any]:
    moved = [row for name, (g, rows) in paired.items() if (row := _moved(shared, name, g, rows)) is not None]
    entry = METRICS[shared.metric]
    changes = [_change(row, options) for row in moved]
    found: dict[str, Any] = {"metric": shared.metric, "words": entry.label, "patterns": changes}
    if moved:
        sign = 1.0 if entry.better == "higher" else -1.0
        tau = _tau(moved, options)
        found["kendall_tau"] = None if tau is None else tau.plain
        found["moved_most"] = max(changes, key=lambda m: round(abs(m["difference"]), 9))["pattern"]
        all_pairs = np.concatenate([row.differences for row in moved])
        layouts = [layout for row in moved for layout in row.layouts]
        found["mean_difference"] = clustered.mean(all_pairs, layouts, options, "pairs").plain
        ended = [m for m in changes if m["low"] is not None and m["high"] is not None]
        sure = [sign * m["difference"] for m in ended if not m["low"] <= 0.0 <= m["high"]]
        found["too_kind"], found["too_harsh"] = sum(d < 0.0 for d in sure), sum(d > 0.0 for d in sure)
    return found


def _moved(shared: Shared, name: str, g: Group, rows: Mapping[int, Stage1Row]) -> _Moved | None:
    def foretold(e: EpisodeMetrics) -> float | None:
        row = rows.get(id(e))
        return None if row is None else shared.foretold(row, e)

    def difference(e: EpisodeMetrics) -> float | None:
        one, two = foretold(e), shared.flown(e)
        return None if one is None or two is None else two - one

    try:
        table = crossed(shared.metric, g.episodes, value_of=difference)
    except SarError:
        return None
    before = crossed(shared.metric, g.episodes, value_of=lambda e: None if difference(e) is None else foretold(e))
    layouts = [layout for _ in table.seeds for layout in table.layouts]
    return _Moved(name, before.values.ravel(), table.values.ravel(), layouts, table.notes)


def _change(moved: _Moved, options: Options) -> dict[str, Any]:
    """A pattern's change from one stage to the other, over layouts, for these seeds."""
    found = clustered.mean(moved.differences, moved.layouts, options, "pairs")
    before = float(moved.stage1.mean())
    return {
        "pattern": moved.pattern,
        "stage1": before,
        "stage2": before + found.value,
        "difference": found.value,
        **{name: found.ends[name] for name in ("low", "high")},
        "n": found.n,
        "layouts": len(set(moved.layouts)),
        **{name: getattr(found, name) for name in ("method", "cluster", "resamples", "seed")},
        "notes": [*moved.notes, *found.notes],
    }


def _tau(moved: Sequence[_Moved], options: Options) -> Interval | None:
    """How alike both stages rank the patterns by their means."""
    places = {layout: k for k, layout in enumerate(dict.fromkeys(name for row in moved for name in row.layouts))}
    of = [np.array([places[layout] for layout in row.layouts]) for row in moved]
    weights = (
        [row.stage1 for row in moved],
        [row.stage2 for row in moved],
        [np.ones(len(row.layouts)) for row in moved],
    )
    first, second, sizes = (
        np.stack([np.bincount(k, own, len(places)).astype(np.float64) for k, own in zip(of, side, strict=True)], axis=1)
        for side in weights
    )
    return kendall(first, second, sizes, options)
