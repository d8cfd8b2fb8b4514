"""The true state of all drones from what PosePublisher sends: model poses and links' poses within them.

Velocities are differences of successive poses: the mean over the 20 ms between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import RunError

Floats = NDArray[np.float64]
HULL = "base_link"


@dataclass(frozen=True)
class PosedTruth:
    """All drones at one instant, ENU; rates in the body frame. Arrays are [N, 3] or [N, 4] (w x y z)."""

    stamp_ns: int
    position: Floats
    velocity: Floats
    attitude: Floats
    rates: Floats


def hull_pose(model: str, poses: Iterable[Any]) -> Floats:
    """The hull's pose in the world [7] from the gz.msgs.Pose entries of one Pose_V message."""
    by_name = {pose.name: pose for pose in poses}
    hull = f"{model}::{HULL}"
    if model not in by_name or hull not in by_name:
        raise RunError(f"a pose message has no {model!r} or no {hull!r}; it has {', '.join(sorted(by_name)) or 'none'}")
    outer, inner = _row(by_name[model]), _row(by_name[hull])
    return np.concatenate([outer[:3] + _rotate(outer[3:], inner[:3]), _multiply(outer[3:], inner[3:])])


class Assembly:
    """Puts the drones' poses of one instant together; what is incomplete when a newer instant is whole is dropped."""

    def __init__(self, drones: int) -> None:
        self._drones = drones
        self._waiting: dict[int, dict[int, Floats]] = {}
        self._last: tuple[int, Floats] | None = None
        self.dropped = 0

    def add(self, stamp_ns: int, drone: int, pose: Floats) -> PosedTruth | None:
        """The truth at a stamp once its last drone has arrived, from the second such stamp on."""
        if self._last is not None and stamp_ns <= self._last[0]:
            self.dropped += 1
            return None
        row = self._waiting.setdefault(stamp_ns, {})
        row[drone] = pose
        if len(row) < self._drones:
            return None
        stale = [stamp for stamp in self._waiting if stamp <= stamp_ns]
        for stamp in stale:
            gone = self._waiting.pop(stamp)
            self.dropped += len(gone) if stamp < stamp_ns else 0
        now = np.array([row[i] for i in range(self._drones)])
        before, self._last = self._last, (stamp_ns, now)
        return None if before is None else _truth(before, (stamp_ns, now))


def _truth(before: tuple[int, Floats], after: tuple[int, Floats]) -> PosedTruth:
    dt = (after[0] - before[0]) * 1e-9
    velocity = (after[1][:, :3] - before[1][:, :3]) / dt
    pairs = zip(before[1][:, 3:], after[1][:, 3:], strict=True)
    rates = np.array([_rotation_vector(_multiply(_conjugate(a), b)) / dt for a, b in pairs])
    return PosedTruth(after[0], after[1][:, :3], velocity, after[1][:, 3:], rates)


def _row(pose: Any) -> Floats:
    p, q = pose.position, pose.orientation
    return np.array([p.x, p.y, p.z, q.w, q.x, q.y, q.z], dtype=np.float64)


def _conjugate(q: Floats) -> Floats:
    return np.array([q[0], -q[1], -q[2], -q[3]])


def _multiply(a: Floats, b: Floats) -> Floats:
    scalar = a[0] * b[0] - a[1:] @ b[1:]
    vector = a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])
    return np.array([scalar, *vector])


def _rotate(q: Floats, v: Floats) -> Floats:
    return _multiply(_multiply(q, np.array([0.0, *v])), _conjugate(q))[1:]


def _rotation_vector(q: Floats) -> Floats:
    """Axis times angle (rad) of the shorter turn."""
    q = q if q[0] >= 0.0 else -q
    sine = float(np.linalg.norm(q[1:]))
    if sine < 1e-12:
        return 2.0 * q[1:]
    return 2.0 * math.atan2(sine, float(q[0])) / sine * q[1:]
