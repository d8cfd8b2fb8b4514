"""RRT-APF: a way through the map the swarm was given, or a code that says why there is none.

Two rapidly exploring random trees, one from each end, reach for each other (RRT-Connect, Kuffner and LaValle 2000);
each new point is pushed off near obstacles by a potential field. Once they have met, new points are wired to their
cheapest free neighbours (RRT*, Karaman and Frazzoli 2011) for a better way. Where the trees find nothing, a lattice
decides. Every edge is checked exactly. The way is shortened, then rounded and timed by ``trajectory``. Work is bounded;
the same problem and key give the same bits. ENU, SI.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.streams import label_key
from sar_swarm.planning.dice import seed
from sar_swarm.planning.lattice import flood
from sar_swarm.planning.planmap import FREE, PlanMap, blocker, clearance_at, open_map, within
from sar_swarm.planning.shortcut import cut_corners
from sar_swarm.planning.trees import LEAST_STEP_M, Search, packed, search, unpacked

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


class Code(IntEnum):
    """What became of a request. Everything but FOUND comes with no points."""

    FOUND = 0
    NO_PATH = 1
    START_BLOCKED = 2
    GOAL_BLOCKED = 3
    START_OUTSIDE = 4
    GOAL_OUTSIDE = 5
    BAD_INPUT = 6


_CODES = tuple(Code)
_FOUND = int(Code.FOUND)
_NO_PATH = int(Code.NO_PATH)
_START_BLOCKED = int(Code.START_BLOCKED)
_GOAL_BLOCKED = int(Code.GOAL_BLOCKED)
_START_OUTSIDE = int(Code.START_OUTSIDE)
_GOAL_OUTSIDE = int(Code.GOAL_OUTSIDE)
_BAD_INPUT = int(Code.BAD_INPUT)

_LABEL = label_key("rrt_apf")
_MASK = (1 << 64) - 1


class PlanningProblem(NamedTuple):
    """From where to where, in which map, how far from obstacles, and what the vehicle can do."""

    start: Floats
    goal: Floats
    map: PlanMap
    clearance_m: float = 3.0
    search: Search = Search()


class Corners(NamedTuple):
    """A way as corner points [K, 3] joined by straight edges, before smoothing.

    iterations of tree growth (0: the straight line was free) and checks, how many edges were held against the map.
    """

    code: Code
    points: Floats
    iterations: int
    checks: int


def find_corners(problem: PlanningProblem, key: int) -> Corners:
    """The search alone: corner points of a collision-free way."""
    code, points, iterations, checks = _find(
        problem.map.floats,
        problem.map.ints,
        np.asarray(problem.start, dtype=np.float64),
        np.asarray(problem.goal, dtype=np.float64),
        float(problem.clearance_m),
        packed(problem.search),
        np.uint64((key ^ _LABEL) & _MASK),
    )
    return Corners(_CODES[code], points, iterations, checks)


@compiled
def _find(
    floats: Floats, ints: Ints, start: Floats, goal: Floats, gap: float, settings: Floats, key: np.uint64
) -> tuple[int, Floats, int, int]:
    """Judge the ends, try the straight line, search, shorten."""
    plan, how = open_map(floats, ints), unpacked(settings)
    nothing = np.empty((0, 3))
    finite = np.all(np.isfinite(start)) and np.all(np.isfinite(goal)) and start.size == 3 and goal.size == 3
    kept = 0.0 < gap <= plan.reach_m and 0.0 <= how.influence_m <= plan.reach_m and how.step_m >= LEAST_STEP_M
    if not (finite and kept and how.budget > 0 and 0.0 <= how.goal_bias <= 1.0 and how.strength >= 0.0):
        return _BAD_INPUT, nothing, 0, 0
    if not within(plan, start[0], start[1], start[2]):
        return _START_OUTSIDE, nothing, 0, 0
    if not within(plan, goal[0], goal[1], goal[2]):
        return _GOAL_OUTSIDE, nothing, 0, 0
    if clearance_at(plan, start[0], start[1], start[2]) < gap:
        return _START_BLOCKED, nothing, 0, 0
    if clearance_at(plan, goal[0], goal[1], goal[2]) < gap:
        return _GOAL_BLOCKED, nothing, 0, 0
    hurdle, _ = blocker(plan, start[0], start[1], start[2], goal[0], goal[1], goal[2], gap)
    if hurdle == FREE:
        return _FOUND, np.vstack((start.reshape(1, 3), goal.reshape(1, 3))), 0, 1
    state = seed(key)
    found, points, iterations, checks = search(plan, start, goal, gap, how, hurdle, state)
    if not found and how.lattice > 0:
        found, points, more = flood(plan, start, goal, gap, how.lattice)
        checks += more
    if not found:
        return _NO_PATH, nothing, iterations, checks
    if how.shortcuts >= 0:
        points, more = cut_corners(plan, points, gap, how.shortcuts, state)
        checks += more
    return _FOUND, points, iterations, checks
