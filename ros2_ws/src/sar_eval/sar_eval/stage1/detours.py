"""Ways round the volumes: straight to the goal, and off that line only where something stands on it.

As the swarm's own planner has it (`navigation.along_line`): a search lane is worth flying where it lies. A blocked
stretch is flown round by the shortest way over the volumes' corners (a visibility graph, A*), with some metres before
and after in which the way may already bend; a track is kept free step by step, whatever the way.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_eval.stage1.volumes import SPARE_M, Volumes, blocked, room
from sar_sim.vehicle.kinematic import COURSE, SPEED, Agility, X, Y, approach, halt
from sar_swarm.piloting.navigation import APPROACH, LINE_STEP_M

Floats = NDArray[np.float64]

MOST = 128
"""Points of a way at most."""
FORESIGHT_M = 40.0
"""How far off volumes are told: within it a point can brake."""
STRETCH, ASIDE_M = 1.2, 20.0
"""A detour is looked for within an ellipse this much longer than its line; only if there is none, everywhere."""


@inlined
def _between(ax: float, ay: float, bx: float, by: float) -> float:
    return math.sqrt((ax - bx) ** 2 + (ay - by) ** 2)


@compiled
def shortest(volumes: Volumes, px: float, py: float, qx: float, qy: float, limit: float, way: Floats) -> int:
    """The shortest way from p to q over corners that is no longer than the limit; writes way [MOST, 2], q in the end.

    Returns how many points it has, 0 if there is none (or none so short). Distance is a bound that a straight last leg
    meets, so the first corner taken up that sees q ends the shortest way.
    """
    if not blocked(volumes.rows, px, py, qx, qy, SPARE_M):
        way[0, 0], way[0, 1] = qx, qy
        return 1
    corners = volumes.corners
    count = corners.shape[0]
    cost, ahead = np.full(count, np.inf), np.empty(count)
    before = np.full(count, -1, np.int64)
    for n in range(count):
        x, y = corners[n, 0], corners[n, 1]
        ahead[n] = _between(x, y, qx, qy)
        near = _between(px, py, x, y)
        if near + ahead[n] <= limit and not blocked(volumes.rows, px, py, x, y, SPARE_M):
            cost[n] = near
    done = np.zeros(count, np.bool_)
    while True:
        at, least = -1, np.inf
        for n in range(count):
            if not done[n] and cost[n] + ahead[n] < least:
                at, least = n, cost[n] + ahead[n]
        if at < 0:
            return 0
        done[at] = True
        if not blocked(volumes.rows, corners[at, 0], corners[at, 1], qx, qy, SPARE_M):
            break
        for n in range(count):
            if volumes.sees[at, n] and not done[n]:
                total = cost[at] + _between(corners[at, 0], corners[at, 1], corners[n, 0], corners[n, 1])
                if total < cost[n] and total + ahead[n] <= limit:
                    cost[n], before[n] = total, at
    used, n = 2, before[at]
    while n >= 0:
        used, n = used + 1, before[n]
    if used > way.shape[0]:
        return 0
    way[used - 1, 0], way[used - 1, 1] = qx, qy
    for k in range(used - 2, -1, -1):
        way[k, 0], way[k, 1] = corners[at, 0], corners[at, 1]
        at = before[at]
    return used


@inlined
def _detour(volumes: Volumes, px: float, py: float, qx: float, qy: float, way: Floats) -> int:
    """The shortest way, looked for near by and then everywhere."""
    used = shortest(volumes, px, py, qx, qy, STRETCH * _between(px, py, qx, qy) + ASIDE_M, way)
    return used if used > 0 else shortest(volumes, px, py, qx, qy, np.inf, way)


@inlined
def _open(volumes: Volumes, line: Floats, k: int) -> bool:
    return room(volumes.rows, line[k, 0], line[k, 1], SPARE_M) >= SPARE_M


@compiled
def lay(volumes: Volumes, px: float, py: float, qx: float, qy: float, way: Floats) -> int:
    """Points of a way from p to a free place q into way [MOST, 2], q the last; how many, 0 if no way leads there."""
    if not blocked(volumes.rows, px, py, qx, qy, SPARE_M):
        way[0, 0], way[0, 1] = qx, qy
        return 1
    last = max(math.ceil(_between(px, py, qx, qy) / LINE_STEP_M), 1)
    line = np.empty((last + 1, 2))
    for k in range(last + 1):
        line[k, 0], line[k, 1] = px + (qx - px) * k / last, py + (qy - py) * k / last
    line[last, 0], line[last, 1] = qx, qy
    part = np.empty_like(way)
    used, past, i = 0, 0, 0
    while i < last:
        a, b = line[i], line[i + 1]
        if _open(volumes, line, i + 1) and not blocked(volumes.rows, a[0], a[1], b[0], b[1], SPARE_M):
            i += 1
            continue
        j = i + 1
        while j < last and not _open(volumes, line, j):
            j += 1
        for _ in range(APPROACH):
            if i > past:
                i -= 1
            if j < last and _open(volumes, line, j + 1):
                j += 1
        found = _detour(volumes, line[i, 0], line[i, 1], line[j, 0], line[j, 1], part)
        if found == 0 or used + found + 2 > way.shape[0]:
            return _detour(volumes, px, py, qx, qy, way)
        if i > past:
            way[used] = line[i]
            used += 1
        way[used : used + found] = part[:found]
        used += found
        i, past = j, j
    if past < last:
        way[used] = line[last]
        used += 1
    return used


@inlined
def braking_m(speed: float, a: Agility) -> float:
    """How far a point still goes when it brakes: the steps of `kinematic.halt`, summed."""
    change = a.acceleration_mps2 * a.step_s
    steps = math.floor(speed / change)
    return a.step_s * steps * (speed - 0.5 * change * (steps + 1))


@inlined
def _safe(rows: Floats, x: float, y: float, state: Floats, a: Agility) -> bool:
    """Whether the step from (x, y) to the state was free, and whether braking from there stays free."""
    far = braking_m(state[SPEED], a)
    u, v = state[X] + far * math.cos(state[COURSE]), state[Y] + far * math.sin(state[COURSE])
    return not blocked(rows, x, y, state[X], state[Y], 0.0) and not blocked(rows, state[X], state[Y], u, v, 0.0)


@compiled
def approach_free(rows: Floats, state: Floats, gx: float, gy: float, end: float, a: Agility, spare: float) -> float:
    """One step towards a goal that never makes a volume unavoidable; returns ``spare`` for the next one.

    A point that may brake straight on stays free for ever: a step after which it could not is taken slower, and if even
    that is too much, braking straight on, which was free before it, is what it does. ``spare`` is how far any volume is
    at least, so that far from all of them nothing is asked.
    """
    x, y, course, speed = state[X], state[Y], state[COURSE], state[SPEED]
    approach(state, gx, gy, end, a)
    step = state[SPEED] * a.step_s
    if spare >= step + braking_m(state[SPEED], a):
        return float(spare - step)
    spare = room(rows, x, y, FORESIGHT_M)
    if spare < step + braking_m(state[SPEED], a) and not _safe(rows, x, y, state, a):
        state[X], state[Y], state[COURSE], state[SPEED] = x, y, course, speed
        slow = max(speed - a.acceleration_mps2 * a.step_s, 0.0)
        approach(state, gx, gy, 0.0, Agility(slow, a.acceleration_mps2, a.turn_rate_rps, a.corner_mps, a.step_s))
        if not _safe(rows, x, y, state, a):
            state[X], state[Y], state[COURSE], state[SPEED] = x, y, course, speed
            halt(state, a)
    return float(spare - state[SPEED] * a.step_s)
