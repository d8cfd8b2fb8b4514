"""The same missions on two tiers, from their bags: what the cheaper tier gets right and wrong.

Missions pair by world, pattern, drones, seed, episode and victims. Each row is the mean on either tier and the mean of
the paired differences, second minus first, with a t interval over the missions: they share vehicle and code, and
nothing else is drawn from a population.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_analysis.bags.cdr import decode
from sar_analysis.bags.chunks import read_content
from sar_analysis.bags.reader import Bag, locate, read_bag
from sar_analysis.metrics.metrics import EpisodeMetrics, episode_metrics, search_span
from sar_analysis.stats import clustered
from sar_analysis.stats.interval import Interval
from sar_analysis.stats.layouts import DEFAULT, Options
from sar_core.errors import ContractError, MissingDataError

Floats = NDArray[np.float64]

_STAMP = ("header.stamp.sec", "header.stamp.nanosec")
_COMMANDED = ("velocity.x", "velocity.y", "position.z")
_ESTIMATED = ("pose.pose.position.x", "pose.pose.position.y", "pose.pose.position.z")


class Tracking(NamedTuple):
    """How closely the drones of a mission did as they were told during the search; rms over ticks and drones."""

    velocity_mps: float
    """Horizontal: what was commanded against the truth one tick later."""
    altitude_m: float
    estimated_place_m: float
    """Horizontal: where they thought they were against the truth of the same tick."""
    estimated_height_m: float


class TierMission(NamedTuple):
    """One bag: what it came to, and how it was flown."""

    metrics: EpisodeMetrics
    tracking: Tracking | None


MEASURES: tuple[tuple[str, str, Callable[[TierMission], float | None]], ...] = (
    ("coverage at 240 s", "%", lambda m: _times(m.metrics.coverage_240s, 100.0)),
    ("horizontal velocity error, rms", "m/s", lambda m: None if m.tracking is None else m.tracking.velocity_mps),
    ("altitude error, rms", "m", lambda m: None if m.tracking is None else m.tracking.altitude_m),
    ("horizontal estimate error, rms", "m", lambda m: None if m.tracking is None else m.tracking.estimated_place_m),
    ("height estimate error, rms", "m", lambda m: None if m.tracking is None else m.tracking.estimated_height_m),
    ("smallest separation", "m", lambda m: m.metrics.min_separation_m),
    ("path of all drones", "m", lambda m: m.metrics.path_m),
    ("near misses", "", lambda m: float(m.metrics.near_misses)),
    ("collisions", "", lambda m: float(m.metrics.collisions)),
    ("victims found", "", lambda m: float(len(m.metrics.victims) - m.metrics.undetected)),
    ("decoy alarms", "", lambda m: _times(m.metrics.false_alarms, 1.0)),
    ("displaced issues", "", lambda m: _times(m.metrics.displaced, 1.0)),
)


@dataclass(frozen=True)
class TierDifference:
    """One measure over all pairs that have it on both tiers: each tier's mean, and that of second minus first."""

    measure: str
    unit: str
    pairs: int
    first: Interval
    second: Interval
    difference: Interval

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        figures = {name: getattr(self, name).plain for name in ("first", "second", "difference")}
        return {"measure": self.measure, "unit": self.unit, "pairs": self.pairs, **figures}


@dataclass(frozen=True)
class TierGap:
    """Both tiers side by side; `left_out` counts each one's missions that the other has not."""

    tiers: tuple[str, str]
    pairs: int
    layouts: int
    left_out: tuple[int, int]
    rows: tuple[TierDifference, ...]

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {**vars(self), "rows": [row.plain for row in self.rows]}


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else factor * value


def tracking(bag: Bag) -> Tracking | None:
    """Commands against truth during the search; None where there was none, or nothing was commanded."""
    search = search_span(bag)
    if search is None:
        return None
    content = read_content(locate(bag.path))
    stamps = bag.truth.stamps_ns
    errors: list[list[Floats]] = []
    for drone in range(bag.info.drones):
        velocity, position = bag.truth.velocity[:, drone], bag.truth.position[:, drone]
        columns = decode(content, content.topics[f"/uav_{drone + 1}/setpoint"], (*_STAMP, *_COMMANDED))
        at = np.searchsorted(stamps, columns.stamps("header.stamp"))
        during = (at >= search.start) & (at + 1 < search.stop)
        vx, vy, z = (columns.scalar(name)[during] for name in _COMMANDED)
        after = at[during] + 1
        columns = decode(content, content.topics[f"/uav_{drone + 1}/odometry"], (*_STAMP, *_ESTIMATED))
        at = np.searchsorted(stamps, columns.stamps("header.stamp"))
        during = (at >= search.start) & (at < search.stop)
        off = np.stack([columns.scalar(name)[during] for name in _ESTIMATED], axis=1) - position[at[during]]
        errors.append(
            [
                np.hypot(vx - velocity[after, 0], vy - velocity[after, 1]),
                z - position[after, 2],
                np.hypot(off[:, 0], off[:, 1]),
                off[:, 2],
            ]
        )
    return Tracking(*(_rms(parts) for parts in zip(*errors, strict=True)))


def _rms(parts: Sequence[Floats]) -> float:
    values = np.concatenate(parts)
    values = values[np.isfinite(values)]
    return math.sqrt(float(np.mean(values**2))) if len(values) else math.nan


def missions_in(folder: Path) -> dict[tuple[Any, ...], TierMission]:
    """Every valid mission recorded below a folder, by what it was asked to fly."""
    found: dict[tuple[Any, ...], TierMission] = {}
    for metadata in sorted(folder.rglob("metadata.yaml")):
        bag = read_bag(metadata.parent)
        m = episode_metrics(bag)
        if m.invalid_reason is not None:
            continue
        key = (m.world, m.pattern, m.drones, m.seed, m.episode, m.victim_absent)
        if key in found:
            raise ContractError(f"{folder}: seed {m.seed}, episode {m.episode}, {m.pattern} is there twice")
        found[key] = TierMission(m, tracking(bag))
    if not found:
        raise MissingDataError(f"{folder}: no valid mission with a bag")
    return found


def compare(first: Path, second: Path, options: Options = DEFAULT) -> TierGap:
    """Both tiers side by side on the missions that both have; a pair's layout is that of its first mission."""
    a, b = missions_in(first), missions_in(second)
    shared = sorted(set(a) & set(b), key=str)
    if len(shared) < 2:
        raise MissingDataError(f"{first} and {second}: {len(shared)} missions in common; at least 2 are needed")
    rows = (
        _difference(name, unit, value, [(a[key], b[key]) for key in shared], options) for name, unit, value in MEASURES
    )
    return TierGap(
        (_tiers(a), _tiers(b)),
        len(shared),
        len({a[key].metrics.layout for key in shared}),
        (len(a) - len(shared), len(b) - len(shared)),
        tuple(row for row in rows if row is not None),
    )


def _tiers(missions: Mapping[tuple[Any, ...], TierMission]) -> str:
    return " ".join(sorted({m.metrics.tier for m in missions.values()}))


def _difference(
    name: str,
    unit: str,
    value: Callable[[TierMission], float | None],
    pairs: Sequence[tuple[TierMission, TierMission]],
    options: Options,
) -> TierDifference | None:
    known = [
        (x, y, first.metrics.layout)
        for first, second in pairs
        if (x := value(first)) is not None and (y := value(second)) is not None
    ]
    if len(known) < 2:
        return None
    layouts = [layout for *_, layout in known]
    a, b = np.array([(x, y) for x, y, _ in known], dtype=np.float64).T
    first, second = (clustered.mean(side, layouts, options) for side in (a, b))
    gap = clustered.mean(b - a, layouts, options, "paired missions")
    return TierDifference(name, unit, len(known), first, second, gap)
