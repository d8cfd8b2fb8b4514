"""Shorter ways: cut off detours of a polyline wherever the straight line is free."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_swarm.planning.dice import Words, uniform
from sar_swarm.planning.planmap import PlanMap, edge_free

Floats = NDArray[np.float64]


@inlined
def _apart(nodes: Floats, i: int, x: float, y: float, z: float) -> float:
    dx, dy, dz = nodes[i, 0] - x, nodes[i, 1] - y, nodes[i, 2] - z
    return float(dx * dx + dy * dy + dz * dz)


@compiled
def length_of(points: Floats) -> float:
    """Length of a polyline [K, 3]."""
    total = 0.0
    for i in range(points.shape[0] - 1):
        total += math.sqrt(_apart(points, i, points[i + 1, 0], points[i + 1, 1], points[i + 1, 2]))
    return total


@compiled
def _straighten(plan: PlanMap, points: Floats, gap: float) -> tuple[Floats, int]:
    """From each corner go on to the last one it sees."""
    kept = np.empty_like(points)
    kept[0] = points[0]
    used, i, checks = 1, 0, 0
    last = points.shape[0] - 1
    while i < last:
        j = last
        while j > i + 1:
            checks += 1
            a, b = points[i], points[j]
            if edge_free(plan, a[0], a[1], a[2], b[0], b[1], b[2], gap):
                break
            j -= 1
        kept[used] = points[j]
        used += 1
        i = j
    return kept[:used].copy(), checks


@inlined
def _spot(points: Floats, along: float) -> tuple[int, float, float, float]:
    """Edge and point at a length along a polyline."""
    i = 0
    while True:
        a, b = points[i], points[i + 1]
        d = math.sqrt((b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2 + (b[2] - a[2]) ** 2)
        if along <= d or i == points.shape[0] - 2:
            f = min(along / d, 1.0) if d > 0.0 else 0.0
            return i, a[0] + f * (b[0] - a[0]), a[1] + f * (b[1] - a[1]), a[2] + f * (b[2] - a[2])
        along -= d
        i += 1


@compiled
def cut_corners(plan: PlanMap, points: Floats, gap: float, tries: int, state: Words) -> tuple[Floats, int]:
    """Greedy straightening, then cuts between random places of the way, exact checks throughout."""
    points, checks = _straighten(plan, points, gap)
    for _ in range(tries):
        if points.shape[0] <= 2:
            break
        total = length_of(points)
        s, t = total * uniform(state), total * uniform(state)
        i, ax, ay, az = _spot(points, min(s, t))
        j, bx, by, bz = _spot(points, max(s, t))
        if i == j:
            continue
        checks += 1
        if not edge_free(plan, ax, ay, az, bx, by, bz, gap):
            continue
        shorter = np.empty((i + 3 + points.shape[0] - 1 - j, 3))
        shorter[: i + 1] = points[: i + 1]
        shorter[i + 1, 0], shorter[i + 1, 1], shorter[i + 1, 2] = ax, ay, az
        shorter[i + 2, 0], shorter[i + 2, 1], shorter[i + 2, 2] = bx, by, bz
        shorter[i + 3 :] = points[j + 1 :]
        points = shorter
    points, more = _straighten(plan, points, gap)
    return points, checks + more
