"""The planner's last resort: flood a regular lattice from both ends, with exact checks on every edge.

Random trees need luck to enter a narrow window; a lattice finds every way wider than its spacing, and when one of the
two floods dries up, none is left at that spacing. Work is bounded by the number of lattice points. ENU, metres.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_swarm.planning.planmap import PlanMap, edge_free

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

_UNSEEN = -2
_LINKED = -1
_LINK_REACH = 2


class _Lattice(NamedTuple):
    """Points counts[0] x counts[1] x counts[2], steps apart from the bounds' low corner.

    parent int32[2, points]: the point each flood came from; _LINKED: straight from that flood's end; _UNSEEN: not yet.
    """

    counts: Ints
    steps: Floats
    parent: Ints


@inlined
def _place(plan: PlanMap, lattice: _Lattice, index: int) -> tuple[float, float, float]:
    k = index % lattice.counts[2]
    j = index // lattice.counts[2] % lattice.counts[1]
    i = index // (lattice.counts[2] * lattice.counts[1])
    b, s = plan.floats, lattice.steps
    return min(b[0] + i * s[0], b[3]), min(b[1] + j * s[1], b[4]), min(b[2] + k * s[2], b[5])


@compiled
def _lay_out(plan: PlanMap, points: int) -> _Lattice:
    sides = plan.floats[3:6] - plan.floats[:3]
    spacing = (sides[0] * sides[1] * sides[2] / points) ** (1.0 / 3.0)
    counts = np.empty(3, np.int32)
    steps = np.empty(3)
    for i in range(3):
        counts[i] = max(int(sides[i] / spacing), 1) + 1
        steps[i] = sides[i] / (counts[i] - 1)
    return _Lattice(counts, steps, np.full((2, counts[0] * counts[1] * counts[2]), _UNSEEN, np.int32))


@compiled
def _link(plan: PlanMap, lattice: _Lattice, side: int, end: Floats, gap: float, queue: Ints) -> int:
    """Begin a flood with the lattice points around an end that it reaches in a straight line; how many."""
    at = np.empty(3, np.int64)
    for i in range(3):
        at[i] = int((end[i] - plan.floats[i]) / lattice.steps[i])
    used = 0
    n = lattice.counts
    for i in range(max(at[0] - 1, 0), min(at[0] + _LINK_REACH + 1, n[0])):
        for j in range(max(at[1] - 1, 0), min(at[1] + _LINK_REACH + 1, n[1])):
            for k in range(max(at[2] - 1, 0), min(at[2] + _LINK_REACH + 1, n[2])):
                index = (i * n[1] + j) * n[2] + k
                x, y, z = _place(plan, lattice, index)
                if edge_free(plan, end[0], end[1], end[2], x, y, z, gap):
                    lattice.parent[side, index] = _LINKED
                    queue[used] = index
                    used += 1
    return used


@inlined
def _neighbour(counts: Ints, index: int, way: int) -> int:
    """The lattice point next to one in direction way 0..5, or -1 at the border."""
    k = index % counts[2]
    j = index // counts[2] % counts[1]
    i = index // (counts[2] * counts[1])
    forth = way % 2 * 2 - 1
    if way < 2:
        k += forth
    elif way < 4:
        j += forth
    else:
        i += forth
    if not (0 <= i < counts[0] and 0 <= j < counts[1] and 0 <= k < counts[2]):
        return -1
    return int((i * counts[1] + j) * counts[2] + k)


@compiled
def flood(plan: PlanMap, start: Floats, goal: Floats, gap: float, points: int) -> tuple[bool, Floats, int]:
    """Corner points [K, 3] of a way along the lattice, whether there is one, and how many edges were checked."""
    lattice = _lay_out(plan, points)
    parent = lattice.parent
    size = parent.shape[1]
    queue = np.empty((2, size), np.int32)
    tail = np.empty(2, np.int64)
    head = np.zeros(2, np.int64)
    tail[0] = _link(plan, lattice, 0, start, gap, queue[0])
    tail[1] = _link(plan, lattice, 1, goal, gap, queue[1])
    checks = 2 * (_LINK_REACH + 2) ** 3
    for index in queue[0, : tail[0]]:
        if parent[1, index] != _UNSEEN:
            return True, _trace(plan, lattice, index, start, goal), checks
    while head[0] < tail[0] and head[1] < tail[1]:
        side = 0 if tail[0] - head[0] <= tail[1] - head[1] else 1
        index = queue[side, head[side]]
        head[side] += 1
        x, y, z = _place(plan, lattice, index)
        for way in range(6):
            beside = _neighbour(lattice.counts, index, way)
            if beside < 0 or parent[side, beside] != _UNSEEN:
                continue
            u, v, w = _place(plan, lattice, beside)
            checks += 1
            if not edge_free(plan, x, y, z, u, v, w, gap):
                continue
            parent[side, beside] = index
            if parent[1 - side, beside] != _UNSEEN:
                return True, _trace(plan, lattice, beside, start, goal), checks
            queue[side, tail[side]] = beside
            tail[side] += 1
    return False, np.empty((0, 3)), checks


@compiled
def _trace(plan: PlanMap, lattice: _Lattice, meeting: int, start: Floats, goal: Floats) -> Floats:
    """The way through the point where the floods met."""
    before, after = 0, 0
    index = lattice.parent[0, meeting]
    while index >= 0:
        before += 1
        index = lattice.parent[0, index]
    index = lattice.parent[1, meeting]
    while index >= 0:
        after += 1
        index = lattice.parent[1, index]
    points = np.empty((before + after + 3, 3))
    points[0] = start
    points[-1] = goal
    for side in range(2):
        at = before + 1
        index = meeting
        while index >= 0:
            points[at, 0], points[at, 1], points[at, 2] = _place(plan, lattice, index)
            index = lattice.parent[side, index]
            at += 1 if side == 1 else -1
    return points
