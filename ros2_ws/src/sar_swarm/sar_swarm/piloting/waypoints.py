"""The reactive patterns' decisions once more, compiled, for flying thousands of missions.

``patterns.py`` is the clear version and what a drone's controller calls; these decide the same, which tests hold them
to. Areas are west, south, east, north; places float64[K, 2] in ENU metres; memory is one ring per drone, as in Walk.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_swarm.piloting.patterns import (
    FRONTIER_GAIN,
    GOLDEN,
    HEADINGS,
    PEER_GAIN,
    SAMPLES,
    SHORT_STEP,
    VISITED_GAIN,
    frontier,
    pressure,
    repulsion,
)
from sar_swarm.planning.routes import Area

Floats = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi
HEADING, LEFT, STEP, ENTERED = range(4)
"""Columns of a drone's walk: course of the step begun (rad), metres left of it, steps drawn, places remembered."""


@inlined
def clamped(x: float, y: float, area: Area) -> tuple[float, float]:
    """The nearest point of the area to a finite place."""
    return min(max(x, area[0]), area[2]), min(max(y, area[1]), area[3])


@compiled
def remember_all(
    me: int, x: float, y: float, peers: Floats, apart: float, visited: Floats, latest: Floats, walk: Floats
) -> None:
    """Enter into one drone's ring every drone that is farther than this from its last remembered place; itself last.

    peers float64[N, 2]; visited float64[C, 2] and latest float64[N + 1, 2] (own in the last row) are changed.
    """
    own = latest.shape[0] - 1
    for k in range(own + 1):
        if k == me:
            continue
        px = x if k == own else peers[k, 0]
        py = y if k == own else peers[k, 1]
        if not (math.isfinite(px) and math.isfinite(py)):
            continue
        if not math.hypot(px - latest[k, 0], py - latest[k, 1]) <= apart:
            row = int(walk[ENTERED]) % visited.shape[0]
            visited[row, 0], visited[row, 1] = px, py
            latest[k, 0], latest[k, 1] = px, py
            walk[ENTERED] += 1.0


@compiled
def least_visited(me: int, x: float, y: float, inner: Area, swath: float, visited: Floats) -> tuple[float, float]:
    """The pheromone pattern's next place: of eight headings, those the edge leaves long enough, the least visited."""
    hx, hy = clamped(x, y, inner)
    best_x, best_y, best = hx, hy, math.inf
    for short_ones in (False, True):
        for k in range(HEADINGS):
            angle = me * math.pi / 3.0 + k * _TWO_PI / HEADINGS
            gx, gy = clamped(hx + swath * math.cos(angle), hy + swath * math.sin(angle), inner)
            if not short_ones and math.sqrt((gx - hx) ** 2 + (gy - hy) ** 2) < SHORT_STEP * swath:
                continue
            load = pressure(visited, gx, gy)
            if load < best:
                best_x, best_y, best = gx, gy, load
        if best < math.inf:
            break
    return best_x, best_y


@compiled
def along_field(
    me: int, drones: int, x: float, y: float, area: Area, inner: Area, swath: float, visited: Floats, peers: Floats
) -> tuple[float, float]:
    """The potential field's next place: one swath along the force, else towards the frontier, else the frontier."""
    hx, hy = clamped(x, y, inner)
    u, v = (me + 0.5) / drones, (me + 0.5) * GOLDEN % 1.0
    points = np.empty((SAMPLES * SAMPLES, 2))
    for i in range(SAMPLES):
        for j in range(SAMPLES):
            points[i * SAMPLES + j, 0] = area[0] + (area[2] - area[0]) * (i + u) / SAMPLES
            points[i * SAMPLES + j, 1] = area[1] + (area[3] - area[1]) * (j + v) / SAMPLES
    goal = points[frontier(points, visited, hx, hy)]
    away = math.sqrt((goal[0] - hx) ** 2 + (goal[1] - hy) ** 2)
    pull = FRONTIER_GAIN / max(away, 1e-6)
    from_visits = repulsion(hx, hy, visited, VISITED_GAIN)
    from_peers = repulsion(hx, hy, peers, PEER_GAIN)
    fx = (goal[0] - hx) * pull + from_visits[0] + from_peers[0]
    fy = (goal[1] - hy) * pull + from_visits[1] + from_peers[1]
    for _ in range(2):
        length = math.hypot(fx, fy)
        if length > 1e-9:
            px, py = clamped(hx + swath / length * fx, hy + swath / length * fy, inner)
            if math.sqrt((px - hx) ** 2 + (py - hy) ** 2) >= SHORT_STEP * swath:
                return px, py
        fx, fy = goal[0] - hx, goal[1] - hy
    return clamped(goal[0], goal[1], inner)


@compiled
def wander(x: float, y: float, inner: Area, draws: Floats, walk: Floats) -> tuple[float, float]:
    """A random walk's next leg, to the step's end or the edge that reflects it; NaN when the draws are used up.

    draws float64[S, 2]: course and length of every step, as ``patterns.draw_step`` draws them.
    """
    x, y = clamped(x, y, inner)
    heading, left = walk[HEADING], walk[LEFT]
    if left <= 0.0:
        step = int(walk[STEP])
        if step >= draws.shape[0]:
            return math.nan, math.nan
        heading, left = draws[step, 0], draws[step, 1]
        walk[STEP] += 1.0
    dx, dy = math.cos(heading), math.sin(heading)
    to_x = ((inner[2] if dx > 0.0 else inner[0]) - x) / dx if dx != 0.0 else math.inf
    to_y = ((inner[3] if dy > 0.0 else inner[1]) - y) / dy if dy != 0.0 else math.inf
    if to_x <= 0.0:
        dx, to_x = -dx, (inner[2] - inner[0]) / abs(dx)
    if to_y <= 0.0:
        dy, to_y = -dy, (inner[3] - inner[1]) / abs(dy)
    leg = min(to_x, to_y, left)
    if leg >= left:
        walk[LEFT] = 0.0
    else:
        walk[HEADING] = math.atan2(-dy if to_y <= leg else dy, -dx if to_x <= leg else dx)
        walk[LEFT] = left - leg
    return clamped(x + leg * dx, y + leg * dy, inner)
