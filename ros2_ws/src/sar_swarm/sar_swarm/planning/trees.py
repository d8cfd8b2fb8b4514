"""Two random trees that grow towards each other through the map: the search of RRT-APF.

The trees reach for each other as in RRT-Connect (Kuffner and LaValle 2000); new points are pushed off near obstacles by
a potential field; once the trees have met, new points are wired to their cheapest free neighbours as in RRT* (Karaman
and Frazzoli 2011). Compiled; ENU, metres.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_swarm.planning.dice import Words, uniform
from sar_swarm.planning.planmap import FREE, PlanMap, blocker, bypass, clearance_at, edge_free, repulsion, within

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

_MEETINGS = 64
LEAST_STEP_M = 0.5
_HOPS = 8
_SIDES = (0.2, 0.6, 0.85, 0.95)
_MARGIN_M = 0.3
_SHRINKS_AT = 20
_RADIUS_FACTOR = ((_SHRINKS_AT + 1.0) / math.log(_SHRINKS_AT + 1.0)) ** (1.0 / 3.0)
"""RRT*'s wiring radius shrinks with (ln n / n)^(1/3), here from _SHRINKS_AT nodes on."""


class Search(NamedTuple):
    """How to look for a way. Lengths in metres.

    step_m longest edge grown at once; goal_bias share of samples that are the other end; around share of the others
    that lie beside what keeps the trees apart (0 also leaves out the first walk round it); budget iterations until the
    trees give up; refine iterations spent on a better way once one is found; rewire_m radius of RRT*'s wiring (0: no
    wiring); influence_m and strength of the potential field that pushes new points off obstacles (upstream: 3 m, 0.3);
    shortcuts random attempts at cutting corners (negative: leave the way as found); lattice points of the flood that
    decides when the trees gave up (0: none).
    """

    step_m: float = 50.0
    goal_bias: float = 0.1
    around: float = 0.5
    budget: int = 1000
    refine: int = 60
    rewire_m: float = 50.0
    influence_m: float = 5.0
    strength: float = 0.3
    shortcuts: int = 40
    lattice: int = 150_000


@cache
def packed(how: Search) -> Floats:
    """The same as one array, which crosses into a kernel faster than a tuple."""
    return np.array(how, dtype=np.float64)


@inlined
def unpacked(v: Floats) -> Search:
    return Search(v[0], v[1], v[2], int(v[3]), int(v[4]), v[5], v[6], v[7], int(v[8]), int(v[9]))


class _Trees(NamedTuple):
    """Both trees: nodes [2, cap, 3], parent [2, cap] (-1 at a root), edge [2, cap] length to the parent, sizes [2].

    checks [1] counts edge checks; hurdle [1] is the body that last kept the trees apart, on the line ends
    [2, 3] after a share [1] of it; radius [1] of RRT*'s wiring, 0 until the trees have met: the first way matters most.
    """

    nodes: Floats
    parent: Ints
    edge: Floats
    sizes: Ints
    checks: Ints
    hurdle: Ints
    share: Floats
    ends: Floats
    radius: Floats


@inlined
def _square(trees: _Trees, side: int, i: int, x: float, y: float, z: float) -> float:
    """Squared distance from a node to a point."""
    dx, dy, dz = trees.nodes[side, i, 0] - x, trees.nodes[side, i, 1] - y, trees.nodes[side, i, 2] - z
    return float(dx * dx + dy * dy + dz * dz)


@compiled
def _closest(trees: _Trees, side: int, x: float, y: float, z: float) -> int:
    best, index = np.inf, 0
    for i in range(trees.sizes[side]):
        d = _square(trees, side, i, x, y, z)
        if d < best:
            best, index = d, i
    return index


@inlined
def _cost(trees: _Trees, side: int, node: int) -> float:
    """Length of the way from a node to its tree's root."""
    total = 0.0
    while node > 0:
        total += trees.edge[side, node]
        node = trees.parent[side, node]
    return total


@inlined
def _free_from(plan: PlanMap, trees: _Trees, side: int, node: int, x: float, y: float, z: float, gap: float) -> bool:
    trees.checks[0] += 1
    n = trees.nodes
    return edge_free(plan, n[side, node, 0], n[side, node, 1], n[side, node, 2], x, y, z, gap)


@compiled
def _grow(plan: PlanMap, trees: _Trees, side: int, node: int, x: float, y: float, z: float, gap: float) -> int:
    """Add a point whose edge from ``node`` is free, as RRT* does: to its cheapest parent, then rewire neighbours."""
    n = int(trees.sizes[side])
    trees.nodes[side, n, 0], trees.nodes[side, n, 1], trees.nodes[side, n, 2] = x, y, z
    trees.parent[side, n] = node
    trees.edge[side, n] = math.sqrt(_square(trees, side, node, x, y, z))
    trees.sizes[side] = n + 1
    radius = trees.radius[0]
    if radius <= 0.0:
        return n
    cost = _cost(trees, side, n)
    if n >= _SHRINKS_AT:
        radius *= _RADIUS_FACTOR * (math.log(n + 1.0) / (n + 1.0)) ** (1.0 / 3.0)
    reach = radius * radius
    for i in range(n):
        d = _square(trees, side, i, x, y, z)
        if d < reach and i != node:
            through = _cost(trees, side, i) + math.sqrt(d)
            if through < cost - 1e-9 and _free_from(plan, trees, side, i, x, y, z, gap):
                cost, trees.parent[side, n], trees.edge[side, n] = through, i, math.sqrt(d)
    for i in range(1, n):
        d = _square(trees, side, i, x, y, z)
        if d < reach:
            far = math.sqrt(d)
            if cost + far < _cost(trees, side, i) - 1e-9 and _free_from(plan, trees, side, i, x, y, z, gap):
                trees.parent[side, i], trees.edge[side, i] = n, far
    return n


@compiled
def _extend(plan: PlanMap, trees: _Trees, side: int, x: float, y: float, z: float, gap: float, how: Search) -> int:
    """Grow one tree towards a point by at most a step, pushed off obstacles; the new node, or -1 if blocked."""
    node = _closest(trees, side, x, y, z)
    px, py, pz = trees.nodes[side, node, 0], trees.nodes[side, node, 1], trees.nodes[side, node, 2]
    d = math.sqrt(_square(trees, side, node, x, y, z))
    if d < 1e-9:
        return -1
    b = plan.floats
    step = min(how.step_m, d)
    f = step / d
    qx, qy, qz = px + f * (x - px), py + f * (y - py), pz + f * (z - pz)
    rx, ry, rz = repulsion(plan, qx, qy, qz, how.influence_m)
    size = how.strength * math.sqrt(rx * rx + ry * ry + rz * rz)
    k = how.strength * (min(0.5 * step / size, 1.0) if size > 0.0 else 0.0)
    qx = min(max(qx + k * rx, b[0]), b[3])
    qy = min(max(qy + k * ry, b[1]), b[4])
    qz = min(max(qz + k * rz, b[2]), b[5])
    if not _free_from(plan, trees, side, node, qx, qy, qz, gap):
        return -1
    return _grow(plan, trees, side, node, qx, qy, qz, gap)


@compiled
def _sees(plan: PlanMap, trees: _Trees, side: int, node: int, x: float, y: float, z: float, gap: float) -> bool:
    """Whether a node sees a point; if not, what stands between them is remembered, with the share of the way before."""
    px, py, pz = trees.nodes[side, node, 0], trees.nodes[side, node, 1], trees.nodes[side, node, 2]
    trees.checks[0] += 1
    body, share = blocker(plan, px, py, pz, x, y, z, gap)
    if body != FREE:
        trees.share[0] = share
        trees.hurdle[0] = body
        trees.ends[0, 0], trees.ends[0, 1], trees.ends[0, 2] = px, py, pz
        trees.ends[1, 0], trees.ends[1, 1], trees.ends[1, 2] = x, y, z
    return body == FREE


@compiled
def _reach(plan: PlanMap, trees: _Trees, side: int, x: float, y: float, z: float, gap: float, how: Search) -> int:
    """Reach from a tree for a point in a straight line; the node that sees it, or -1.

    Where a hurdle stands farther than a step away, the tree grows by that step, which is then known to be free.
    """
    node = _closest(trees, side, x, y, z)
    if _sees(plan, trees, side, node, x, y, z, gap):
        return node
    f = how.step_m / math.sqrt(_square(trees, side, node, x, y, z))
    if f <= trees.share[0]:
        px, py, pz = trees.nodes[side, node, 0], trees.nodes[side, node, 1], trees.nodes[side, node, 2]
        _grow(plan, trees, side, node, px + f * (x - px), py + f * (y - py), pz + f * (z - pz), gap)
    return -1


@compiled
def _sample(
    plan: PlanMap, trees: _Trees, other: int, gap: float, how: Search, state: Words
) -> tuple[float, float, float]:
    """The other end with the goal's bias; else round what kept the trees apart, near the straight line, or anywhere."""
    pick = uniform(state)
    if pick < how.goal_bias:
        return trees.nodes[other, 0, 0], trees.nodes[other, 0, 1], trees.nodes[other, 0, 2]
    b = plan.floats
    u, v, w = uniform(state), uniform(state), uniform(state)
    pick = (pick - how.goal_bias) / (1.0 - how.goal_bias)
    if pick < how.around and trees.hurdle[0] >= 0:
        x, y, z = bypass(plan, trees.hurdle[0], trees.ends, gap, u, how.step_m * 0.2 * v)
        if within(plan, x, y, z):
            return x, y, z
    start, goal = trees.nodes[0, 0], trees.nodes[1, 0]
    if w < 0.5:
        w *= 2.0
        return b[0] + u * (b[3] - b[0]), b[1] + v * (b[4] - b[1]), b[2] + w * (b[5] - b[2])
    w = 2.0 * w - 1.0
    span = 0.0
    for i in range(3):
        span += (goal[i] - start[i]) ** 2
    pad = 0.25 * math.sqrt(span) + 10.0
    lx, hx = max(min(start[0], goal[0]) - pad, b[0]), min(max(start[0], goal[0]) + pad, b[3])
    ly, hy = max(min(start[1], goal[1]) - pad, b[1]), min(max(start[1], goal[1]) + pad, b[4])
    lz, hz = max(min(start[2], goal[2]) - pad, b[2]), min(max(start[2], goal[2]) + pad, b[5])
    return lx + u * (hx - lx), ly + v * (hy - ly), lz + w * (hz - lz)


@compiled
def _plant(start: Floats, goal: Floats, budget: int) -> _Trees:
    cap = 2 * budget + 2
    trees = _Trees(
        np.empty((2, cap, 3)),
        np.empty((2, cap), np.int32),
        np.empty((2, cap)),
        np.ones(2, np.int32),
        np.zeros(1, np.int32),
        np.full(1, -1, np.int32),
        np.zeros(1),
        np.empty((2, 3)),
        np.zeros(1),
    )
    for i in range(3):
        trees.nodes[0, 0, i], trees.nodes[1, 0, i] = start[i], goal[i]
        trees.ends[0, i], trees.ends[1, i] = start[i], goal[i]
    for side in range(2):
        trees.parent[side, 0] = -1
        trees.edge[side, 0] = 0.0
    return trees


@compiled
def _feel(plan: PlanMap, trees: _Trees, gap: float) -> int:
    """Before anything random: from the start go round whatever blocks the line to the goal, the shorter side first.

    Each stop becomes a node of the start's tree. Returns the node that sees the goal, or -1 where this leads nowhere.
    """
    gx, gy, gz = trees.nodes[1, 0, 0], trees.nodes[1, 0, 1], trees.nodes[1, 0, 2]
    node = 0
    costs, spots = np.empty(4), np.empty((4, 3))
    for _ in range(_HOPS):
        x, y, z = trees.nodes[0, node, 0], trees.nodes[0, node, 1], trees.nodes[0, node, 2]
        for k in range(4):
            px, py, pz = bypass(plan, trees.hurdle[0], trees.ends, gap, _SIDES[k], _MARGIN_M)
            costs[k] = np.inf
            if clearance_at(plan, px, py, pz) >= gap:
                there = math.sqrt((px - x) ** 2 + (py - y) ** 2 + (pz - z) ** 2)
                costs[k] = there + math.sqrt((px - gx) ** 2 + (py - gy) ** 2 + (pz - gz) ** 2)
                spots[k, 0], spots[k, 1], spots[k, 2] = px, py, pz
        grown = -1
        for _ in range(4):
            k = int(np.argmin(costs))
            if costs[k] == np.inf:
                break
            costs[k] = np.inf
            px, py, pz = spots[k, 0], spots[k, 1], spots[k, 2]
            known = _closest(trees, 0, px, py, pz)
            if _square(trees, 0, known, px, py, pz) < 1.0:
                continue
            if _free_from(plan, trees, 0, node, px, py, pz, gap):
                grown = _grow(plan, trees, 0, node, px, py, pz, gap)
                break
        if grown < 0:
            return -1
        node = grown
        if _sees(plan, trees, 0, node, gx, gy, gz, gap):
            return node
        if trees.hurdle[0] < 0:
            return -1
    return -1


@compiled
def search(
    plan: PlanMap, start: Floats, goal: Floats, gap: float, how: Search, hurdle: int, state: Words
) -> tuple[bool, Floats, int, int]:
    """Grow both trees until they meet, then a little longer for a better way; corner points from start to goal."""
    trees = _plant(start, goal, how.budget)
    trees.hurdle[0] = hurdle
    meetings = np.empty((_MEETINGS, 2), np.int32)
    met = 0
    best = np.inf
    last = how.budget
    iteration = 0
    side = 1
    if how.around > 0.0 and hurdle >= 0:
        node = _feel(plan, trees, gap)
        iteration = int(trees.sizes[0]) - 1
        if node >= 0:
            meetings[0, 0], meetings[0, 1] = node, 0
            met = 1
            best = _through(trees, meetings[0])
            last = min(how.budget, iteration + how.refine)
            trees.radius[0] = how.rewire_m
    while iteration < last and met < _MEETINGS:
        iteration += 1
        side = 1 - side
        x, y, z = _sample(plan, trees, 1 - side, gap, how, state)
        if met > 0:
            detour = math.sqrt(_square(trees, 0, 0, x, y, z)) + math.sqrt(_square(trees, 1, 0, x, y, z))
            if detour >= best:
                continue
        node = _extend(plan, trees, side, x, y, z, gap, how)
        if node < 0:
            continue
        n = trees.nodes
        other = _reach(plan, trees, 1 - side, n[side, node, 0], n[side, node, 1], n[side, node, 2], gap, how)
        if other < 0:
            continue
        if met == 0:
            last = min(how.budget, iteration + how.refine)
            trees.radius[0] = how.rewire_m
        meetings[met, side], meetings[met, 1 - side] = node, other
        met += 1
        best = min(best, _through(trees, meetings[met - 1]))
    return met > 0, _trace(trees, meetings[:met]), iteration, trees.checks[0]


@compiled
def _through(trees: _Trees, meeting: Ints) -> float:
    """Length of the whole way through one meeting of the trees."""
    n, m = trees.nodes, meeting[1]
    gap = math.sqrt(_square(trees, 0, meeting[0], n[1, m, 0], n[1, m, 1], n[1, m, 2]))
    return _cost(trees, 0, meeting[0]) + gap + _cost(trees, 1, meeting[1])


@compiled
def _trace(trees: _Trees, meetings: Ints) -> Floats:
    """Corner points of the shortest way through any meeting."""
    if meetings.shape[0] == 0:
        return np.empty((0, 3))
    best, pick = np.inf, 0
    for i in range(meetings.shape[0]):
        cost = _through(trees, meetings[i])
        if cost < best:
            best, pick = cost, i
    count = 0
    for side in range(2):
        node = meetings[pick, side]
        while node >= 0:
            count += 1
            node = trees.parent[side, node]
    points = np.empty((count, 3))
    at = 0
    node = meetings[pick, 0]
    while node >= 0:
        at += 1
        node = trees.parent[0, node]
    back = at
    node = meetings[pick, 0]
    while node >= 0:
        back -= 1
        points[back] = trees.nodes[0, node]
        node = trees.parent[0, node]
    node = meetings[pick, 1]
    while node >= 0:
        points[at] = trees.nodes[1, node]
        at += 1
        node = trees.parent[1, node]
    return points
