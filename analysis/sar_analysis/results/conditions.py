"""Which missions belong together: everything set the same but seed and episode is one condition, with a label.

Two flights that differ in any setting, even one no table has a column for, are two conditions: what differs is named.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from sar_analysis.metrics.catalogue import METRICS, Value
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.results.summary import CONDITION, NOISE
from sar_analysis.stats.scores import Cell, Scores, from_cells

PER_EPISODE = ("seed", "episode", "policy_sha256")
PATTERN = ("pattern", "policy")
_OWN = (*CONDITION, "name")
Level = tuple[float | None, ...]
Slot = tuple[int, int, Level]
"""One mission as it is planned: seed, episode, noise level."""


@dataclass(frozen=True)
class Group:
    """One condition's missions, valid or not; `extras` are settings beyond the usual ones that vary in the table."""

    id: str
    condition: tuple[tuple[str, Any], ...]
    extras: tuple[tuple[str, Any], ...]
    episodes: tuple[EpisodeMetrics, ...]

    @property
    def valid(self) -> tuple[EpisodeMetrics, ...]:
        return tuple(e for e in self.episodes if e.valid)

    @property
    def plain(self) -> dict[str, Any]:
        """The condition as JSON can hold it: no phase noise is the word inf, and without radio there is none."""
        return {key: plain_value(value) for key, value in (*self.condition, *self.extras)}

    @property
    def pattern(self) -> str:
        """What flew, in words: the pattern, or the learned policy by its name."""
        pattern, learned = dict(self.condition)["pattern"], dict(self.extras).get("policy")
        return str(pattern.replace("_", " ") if learned is None else f"{pattern} {learned}")

    @property
    def label(self) -> str:
        """In words, tier first, as every row must have it."""
        c = dict(self.condition)
        parts = [c["tier"], c["world"], self.pattern, f"{c['drones']} drones"]
        if "sigma" in c:
            parts.append("no radio" if c["sigma"] is None else f"σ {c['sigma']:g} κ {_kappa(c['kappa'])}")
        else:
            parts.append("all noise levels")
        parts.append("victims absent" if c["victim_absent"] else "victims present")
        return " · ".join([*parts, *self._others])

    @property
    def family_label(self) -> str:
        """What groups that differ in pattern, noise and victims alone have in common."""
        c = dict(self.condition)
        return " · ".join([c["tier"], c["world"], f"{c['drones']} drones", *self._others])

    @property
    def _others(self) -> list[str]:
        return [f"{key} {_short(value)}" for key, value in self.extras if key != "policy"]


def group(episodes: Iterable[EpisodeMetrics]) -> tuple[Group, ...]:
    """One group per condition, in the order in which conditions first occur, numbered c01, c02 ..."""
    listed = list(episodes)
    settings = [_settings(e, policy) for e, policy in zip(listed, policy_names(listed), strict=True)]
    names = sorted({name for found in settings for name in found})
    varying = [n for n in names if n == "policy" or len({_key(found.get(n)) for found in settings}) > 1]
    if "world_sha256" in varying and len({e.world for e in listed}) == len({e.world_sha256 for e in listed}):
        varying.remove("world_sha256")
    members: dict[tuple[str, ...], list[int]] = {}
    for index, (e, found) in enumerate(zip(listed, settings, strict=True)):
        key = [*(_key(getattr(e, name)) for name in CONDITION), *(_key(found.get(name)) for name in varying)]
        members.setdefault(tuple(key), []).append(index)
    return tuple(
        Group(
            f"c{number:02d}",
            tuple((name, getattr(listed[rows[0]], name)) for name in CONDITION),
            tuple((name, settings[rows[0]].get(name)) for name in varying),
            tuple(listed[row] for row in rows),
        )
        for number, rows in enumerate(members.values(), start=1)
    )


def merge(groups: Sequence[Group], without: Sequence[str], prefix: str) -> tuple[Group, ...]:
    """Groups that differ in nothing but the settings `without` become one, numbered with this prefix."""
    members: dict[str, list[Group]] = {}
    for g in groups:
        members.setdefault(family_key(g, without), []).append(g)
    return tuple(
        Group(
            f"{prefix}{number:02d}",
            tuple(item for item in parts[0].condition if item[0] not in without),
            tuple(item for item in parts[0].extras if item[0] not in without),
            tuple(e for part in parts for e in part.episodes),
        )
        for number, parts in enumerate(members.values(), start=1)
    )


def rivals(groups: Sequence[Group]) -> list[tuple[Group, Group]]:
    """Pairs that differ in nothing but the pattern, or under pattern policy in the policy's name."""
    return [
        (first, second)
        for index, first in enumerate(groups)
        for second in groups[index + 1 :]
        if _rest(first, PATTERN) == _rest(second, PATTERN)
    ]


def family_key(g: Group, without: Sequence[str]) -> str:
    """The same for groups that differ in nothing but these settings."""
    return _key(_rest(g, without))


def policy_names(episodes: Sequence[EpisodeMetrics]) -> list[str | None]:
    """What each episode's learned policy is called; None where a heuristic flew.

    A training run is one seed of a policy. Weights in a file called like the episode's seed (mappo/seed3.npz) are a
    run of the policy the folder is named after; any other file is a policy by itself, and where different weights
    share that name their hash stands behind it.
    """
    found = [_policy(e) for e in episodes]
    hashes: dict[str, set[str]] = {}
    for e, (name, own) in zip(episodes, found, strict=True):
        if name is not None and own:
            hashes.setdefault(name, set()).add(_sha(e))
    return [
        f"{name} {_sha(e)[:12]}" if name is not None and own and len(hashes[name]) > 1 else name
        for e, (name, own) in zip(episodes, found, strict=True)
    ]


def _policy(e: EpisodeMetrics) -> tuple[str | None, bool]:
    """The policy's name, and whether its file alone is the policy."""
    path = e.configuration.get("policy")
    if not path:
        return None, False
    file = PurePosixPath(str(path).replace("\\", "/"))
    run = re.fullmatch(r"(?:seed|s)?[-_]?(\d+)", file.stem, re.IGNORECASE)
    folder = file.parent.name.replace("..", "")
    return (folder, False) if run and int(run[1]) == e.seed and folder else (file.stem, True)


def _sha(e: EpisodeMetrics) -> str:
    return str(e.configuration.get("policy_sha256") or "unknown")


def crossed(
    metric: str,
    episodes: Iterable[EpisodeMetrics],
    drop_incomplete: bool = True,
    unflown: Iterable[Slot] = (),
    value_of: Value | None = None,
) -> Scores:
    """The metric as a seeds x episodes table; an episode flown at several noise levels is one layout at each.

    INVALID missions are holes, and so is whatever should have been flown and was not (`unflown`). An episode that is
    not whole for every seed is left out for all, and a note says so. `value_of` gives a mission's value where it is
    not simply the metric's column.
    """
    value_of = value_of or METRICS[metric].at
    missions = list(episodes)
    layouts = {e.episode: e.layout for e in missions}
    found = [((e.seed, e.episode, level_of(e)), value_of(e) if e.valid else None, e.valid) for e in missions]
    found += [(slot, None, True) for slot in unflown]
    levels = sorted({level for (_, _, level), _, _ in found}, key=str)
    pairs = sorted({(levels.index(level), episode) for (_, episode, level), _, _ in found})
    columns = {pair: number for number, pair in enumerate(pairs)}
    return from_cells(
        metric,
        [
            Cell(
                seed=seed,
                episode=columns[levels.index(level), episode] if len(levels) > 1 else episode,
                value=value,
                level=level,
                layout=layouts.get(episode, episode),
                valid=valid,
                number=episode,
            )
            for (seed, episode, level), value, valid in found
        ],
        drop_incomplete,
    )


def with_misses(metric: str) -> Value:
    """A mission's value, infinite where it sought and missed: a miss must not help a median."""

    def value(e: EpisodeMetrics) -> float | None:
        own = METRICS[metric].at(e)
        sought = bool(e.victims) and e.detections is not None if METRICS[metric].sensing else e.coverage is not None
        return math.inf if own is None and sought else own

    return value


def level_of(e: EpisodeMetrics) -> Level:
    """The noise a mission was flown at: sigma and kappa, both None without radio."""
    return tuple(getattr(e, name) for name in NOISE)


def _settings(e: EpisodeMetrics, policy: str | None) -> dict[str, Any]:
    """Settings that have no column of their own; the wind's direction is the episode's, its speed is a setting."""
    found = {k: v for k, v in e.configuration.items() if k not in (*_OWN, *PER_EPISODE, "policy")}
    if policy is not None:
        found["policy"] = policy
    if isinstance(found.get("wind_mps"), (list, tuple)):
        found["wind_mps"] = round(math.hypot(*found["wind_mps"]), 6)
    return found


def _rest(g: Group, without: Sequence[str]) -> dict[str, Any]:
    return {name: _key(value) for name, value in (*g.condition, *g.extras) if name not in without}


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _kappa(kappa: float | None) -> str:
    return "∞" if kappa == math.inf else f"{kappa:g}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text[:12] if len(text) == 64 else text


def plain_value(value: Any) -> Any:
    """A setting or figure as JSON can hold it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else str(value)
    if isinstance(value, Mapping):
        return {str(k): plain_value(v) for k, v in value.items()}
    return [plain_value(v) for v in value] if isinstance(value, (list, tuple)) else value
