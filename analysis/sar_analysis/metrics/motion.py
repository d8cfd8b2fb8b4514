"""How the drones moved: distances kept, ways flown, and how gently, all from true states at recorded ticks.

Between ticks motion is taken as straight. At 20 Hz the chord misses the true way by at most a dt^2 / 8, which for
accelerations of 10 m/s^2 is 3 mm; that is the sampling error of separations.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sar_core.conduct import jerks as jerks
from sar_core.conduct import rms as rms

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Approach:
    """The closest two drones came: metres between centres, when, and which two (from 1)."""

    distance_m: float
    time_s: float
    drones: tuple[int, int]


def leg_distances(relative: Floats) -> tuple[Floats, Floats]:
    """Least distance from the origin along each leg of relative float64[K, 3], and where on the leg (0..1): [K - 1]."""
    r, v = relative[:-1], np.diff(relative, axis=0)
    square = np.einsum("kd,kd->k", v, v)
    ahead = -np.einsum("kd,kd->k", r, v)
    s = np.clip(np.divide(ahead, square, out=np.zeros_like(ahead), where=square > 0.0), 0.0, 1.0)
    return np.linalg.norm(r + s[:, None] * v, axis=1), s


def closest_approach(times_s: Floats, positions: Floats) -> Approach | None:
    """Over all pairs; times_s [K], positions [K, N, 3]. None with fewer than two drones or ticks."""
    best: Approach | None = None
    if len(times_s) < 2:
        return None
    for a, b in combinations(range(positions.shape[1]), 2):
        distance, s = leg_distances(positions[:, b] - positions[:, a])
        k = int(np.argmin(distance))
        if best is None or distance[k] < best.distance_m:
            when = float(times_s[k] + s[k] * (times_s[k + 1] - times_s[k]))
            best = Approach(float(distance[k]), when, (a + 1, b + 1))
    return best


def path_lengths(positions: Floats) -> Floats:
    """Metres flown by each drone, float64[N], from positions [K, N, D]."""
    lengths: Floats = np.linalg.norm(np.diff(positions, axis=0), axis=2).sum(axis=0)
    return lengths


def yaw_rates(attitude: Floats, angular_velocity: Floats) -> Floats:
    """Turning about the world's vertical [rad/s], [K, N]; attitude x y z w body to world, rates in the body frame.

    The third row of the rotation matrix of a unit quaternion (Diebel 2006, eq. 125) times the body rate.
    """
    x, y, z, w = np.moveaxis(attitude, -1, 0)
    up = np.stack([2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)], axis=-1)
    rates: Floats = np.einsum("knd,knd->kn", up, angular_velocity)
    return rates


def charge_used(fraction: Floats) -> float:
    """Share of a battery spent, from its readings [K]: all falls summed, so that a reset cannot hide one."""
    return float(-np.minimum(np.diff(fraction), 0.0).sum()) if fraction.size else 0.0


def entries(states: Ints, nominal: int = 0) -> int:
    """How often a state machine's readings [K] enter a state other than nominal."""
    before = np.concatenate([[nominal], states[:-1]])
    return int(np.sum((states != before) & (states != nominal)))
