"""The return of an episode: one pure function of what was counted, the same for every stage, bag and record.

Weights are those of the swarm's published reward (ADR-148 section 5.1): +10 per new cell, +50 per confirmed victim,
+5 per triangulation contribution, -2 per idle step, -100 per collision, -50 per geofence breach, -30 per battery
depleted without a return. The source leaves three words open; here they mean:

- triangulation contribution: one independent view behind the first confident report of a victim that was there;
- idle step: one whole second of the search in which a drone flew slower than 0.5 m/s over ground;
- depleted without a return: the charge read zero and the drone never flew back or landed by failsafe.

A bag holds what every term needs, and a record made while flying samples the same ticks. A false alarm costs nothing in
this reward; its rate is reported beside the return.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

STEP_S = 1.0
IDLE_MPS = 0.5
_HOMEWARD_FAILSAFES = (3, 4)
"""Returning and emergency landing, by the codes of UavStatus."""
_HOMEWARD_PHASES = (3, 4, 5)
"""Returning, landing and landed, by the codes of UavStatus."""


@dataclass(frozen=True)
class Counts:
    """What was counted in one episode; without radio nothing was confirmed."""

    new_cells: int
    confirmed_victims: int
    triangulations: int
    idle_steps: int
    collisions: int
    geofence_breaches: int
    depleted: int


@dataclass(frozen=True)
class Weights:
    """Reward per count."""

    new_cells: float = 10.0
    confirmed_victims: float = 50.0
    triangulations: float = 5.0
    idle_steps: float = -2.0
    collisions: float = -100.0
    geofence_breaches: float = -50.0
    depleted: float = -30.0


WEIGHTS = Weights()


def episode_return(counts: Counts, weights: Weights = WEIGHTS) -> float:
    """The undiscounted sum over the whole swarm."""
    return float(sum(getattr(weights, name) * count for name, count in vars(counts).items()))


def idle_steps(times_s: Floats, positions: Floats) -> int:
    """Whole seconds of the search in which a drone flew slower than 0.5 m/s over ground, summed over drones.

    times_s float64[K] of the ticks, positions float64[K, N, 2 or 3] there; straight between ticks.
    """
    if len(times_s) < 2:
        return 0
    way = np.vstack(
        [np.zeros(positions.shape[1]), np.linalg.norm(np.diff(positions[..., :2], axis=0), axis=2).cumsum(axis=0)]
    )
    edges = np.arange(0.0, times_s[-1] - times_s[0] + 1e-9, STEP_S) + times_s[0]
    at = np.stack([np.interp(edges, times_s, way[:, n]) for n in range(positions.shape[1])], axis=1)
    return int(np.sum(np.diff(at, axis=0) < IDLE_MPS * STEP_S))


def depleted(charge: ArrayLike, failsafe: ArrayLike, phase: ArrayLike) -> bool:
    """Whether a battery read zero and its drone had neither flown back nor landed by failsafe before.

    All three [K], one reading each half second; failsafe and phase are the codes of UavStatus.
    """
    empty = np.flatnonzero(np.asarray(charge) <= 0.0)
    if not len(empty):
        return False
    before = slice(0, int(empty[0]) + 1)
    failsafes, phases = np.asarray(failsafe)[before], np.asarray(phase)[before]
    return not bool((np.isin(failsafes, _HOMEWARD_FAILSAFES) | np.isin(phases, _HOMEWARD_PHASES)).any())
