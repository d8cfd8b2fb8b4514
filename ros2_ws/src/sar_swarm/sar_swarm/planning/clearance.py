"""Keeping clear of the map: which obstacles matter from here, is a straight way free, and the least turn that makes it.

A drone's way ahead is level, and obstacles are upright, so the test is exact in the plane: an obstacle above or below
the drone shrinks the horizontal distance it demands. ENU, SI.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.geometry import BOX, crosses_rectangle, distance_to, from_segment2, gradient

Floats = NDArray[np.float64]

STEER_STEP_RAD = math.radians(10.0)
STEER_STEPS = 13
LEAST_REACH_M = 4.0
BACK_OFF_MPS = 1.5

_CLOSE = 8
"""Columns of a close obstacle: kind, x, y relative to the drone, cosine and sine of its yaw, half extents a and b
(radius, 0), and the horizontal distance to keep at the drone's height."""


@compiled
def close_obstacles(pos: Floats, reach: float, obstacles: Floats, clearance: float) -> tuple[Floats, float, int]:
    """Obstacles within reach plus clearance of a level way from pos, rows [n, 8]; nearest distance of those, its row.

    The broad phase that makes everything after it cheap: most obstacles fall to three comparisons.
    """
    rows = np.empty((obstacles.shape[0], _CLOSE))
    count = 0
    nearest_m = np.inf
    nearest_row = -1
    for m in range(obstacles.shape[0]):
        o = obstacles[m]
        above = abs(pos[2] - o[3]) - o[6]
        if above >= clearance:
            continue
        span = o[4] + o[5] + reach + clearance
        dx, dy = o[1] - pos[0], o[2] - pos[1]
        if dx * dx + dy * dy > span * span:
            continue
        d = distance_to(o, pos[0], pos[1], pos[2])
        if d < nearest_m:
            nearest_m, nearest_row = d, m
        if d > reach + clearance:
            continue
        r = rows[count]
        r[0], r[1], r[2], r[3], r[4], r[5], r[6] = o[0], dx, dy, math.cos(o[7]), math.sin(o[7]), o[4], o[5]
        r[7] = math.sqrt(clearance * clearance - above * above) if above > 0.0 else clearance
        count += 1
    return rows[:count], nearest_m, nearest_row


@compiled
def way_blocked(close: Floats, wx: float, wy: float) -> bool:
    """Whether the level way from the drone to the offset (wx, wy) comes nearer to a close obstacle than allowed."""
    for m in range(close.shape[0]):
        o = close[m]
        need = o[7]
        if o[0] != BOX:
            keep = o[5] + need
            if from_segment2(o[1], o[2], 0.0, 0.0, wx, wy) < keep * keep:
                return True
            continue
        c, s, a, b = o[3], o[4], o[5], o[6]
        px, py = -c * o[1] - s * o[2], s * o[1] - c * o[2]
        qx, qy = px + c * wx + s * wy, py - s * wx + c * wy
        if min(px, qx) >= a + need or max(px, qx) <= -a - need or min(py, qy) >= b + need or max(py, qy) <= -b - need:
            continue
        if crosses_rectangle(px, py, qx, qy, a + need, b) or crosses_rectangle(px, py, qx, qy, a, b + need):
            return True
        for sx in (-a, a):
            for sy in (-b, b):
                if from_segment2(sx, sy, px, py, qx, qy) < need * need:
                    return True
    return False


@inlined
def reach_of(speed: float, horizon_s: float) -> float:
    """How far ahead the way must be free at this speed."""
    return max(speed * horizon_s, LEAST_REACH_M)


@compiled
def steer_among(
    close: Floats, vx: float, vy: float, horizon_s: float, side: float, awayx: float, awayy: float, inside: bool
) -> tuple[float, float, float]:
    """:func:`steer` among obstacles already found close; away is the unit direction from the nearest one."""
    speed = math.sqrt(vx * vx + vy * vy)
    heading = math.atan2(vy, vx)
    first = side if side != 0.0 else 1.0
    if not inside:
        for slower in (1.0, 0.5, 0.25):
            reach = reach_of(slower * speed, horizon_s)
            for k in range(STEER_STEPS):
                for turn in (first, -first):
                    angle = heading + turn * k * STEER_STEP_RAD
                    c, s = math.cos(angle), math.sin(angle)
                    if not way_blocked(close, reach * c, reach * s):
                        slow = slower * speed * max(math.cos(0.5 * k * STEER_STEP_RAD), 0.5)
                        return slow * c, slow * s, (turn if k > 0 else 0.0)
                    if k == 0:
                        break
            if reach <= LEAST_REACH_M:
                break
    return BACK_OFF_MPS * awayx, BACK_OFF_MPS * awayy, first


@compiled
def away_from(obstacles: Floats, row: int, pos: Floats) -> tuple[float, float]:
    """Level unit direction away from one obstacle; none right above it or where there is no obstacle."""
    if row < 0:
        return 0.0, 0.0
    gx, gy, _ = gradient(obstacles[row], pos[0], pos[1], pos[2])
    n = math.sqrt(gx * gx + gy * gy)
    if n < 1e-6:
        return 0.0, 0.0
    return gx / n, gy / n


@compiled
def go_round(
    pos: Floats,
    vx: float,
    vy: float,
    obstacles: Floats,
    close: Floats,
    least: float,
    row: int,
    clearance: float,
    horizon_s: float,
    side: float,
) -> tuple[float, float, float]:
    """Turn the wanted velocity as little as needed so that the way ahead keeps clear of the map.

    close, least and row as from :func:`close_obstacles`. Returns the velocity and the side taken (+1 left, -1 right,
    0 straight), to be handed in again so that the drone does not dither in front of an obstacle. Where no way is free
    at full speed a slower, shorter one is looked for; where none is, or the drone is already too near, it backs off
    from the nearest obstacle.
    """
    speed = math.sqrt(vx * vx + vy * vy)
    inside = least < clearance
    if close.shape[0] == 0 or (speed < 0.1 and not inside):
        return vx, vy, 0.0
    ahead = reach_of(speed, horizon_s) / max(speed, 1e-6)
    if not inside and not way_blocked(close, ahead * vx, ahead * vy):
        return vx, vy, 0.0
    ax, ay = away_from(obstacles, row, pos)
    return steer_among(close, vx, vy, horizon_s, side, ax, ay, inside)
