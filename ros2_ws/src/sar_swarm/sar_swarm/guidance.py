"""Velocity commands: follow a leg, keep away from the map's obstacles, keep away from the others.

Compiled pure functions; everything they see is an estimate, a delivered message or the map given a priori. ENU, SI.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.geometry import distance_to, gradient, segment_distance

Floats = NDArray[np.float64]

CARROT_M = 15.0
BRAKING_MPS2 = 2.0
STEER_STEP_RAD = math.radians(10.0)
STEER_STEPS = 13
CREEPING_MPS = 0.5
RIGHT_HAND_M = 1.0
"""How far off dead ahead still counts as dead ahead, where both step to their right."""


@compiled
def follow_leg(
    pos: Floats, start: tuple[float, float], end: tuple[float, float], speed: float, end_speed: float
) -> tuple[float, float]:
    """Horizontal velocity that returns to the leg start-end and runs along it, braking in time for its end."""
    lx, ly = end[0] - start[0], end[1] - start[1]
    length = math.sqrt(lx * lx + ly * ly)
    left = math.sqrt((end[0] - pos[0]) ** 2 + (end[1] - pos[1]) ** 2)
    if length < 1e-6:
        ax, ay = end[0] - pos[0], end[1] - pos[1]
    else:
        ux, uy = lx / length, ly / length
        along = (pos[0] - start[0]) * ux + (pos[1] - start[1]) * uy
        ahead = min(max(along, 0.0) + CARROT_M, length)
        ax, ay = start[0] + ahead * ux - pos[0], start[1] + ahead * uy - pos[1]
    n = math.sqrt(ax * ax + ay * ay)
    if n < 1e-6:
        return 0.0, 0.0
    allowed = min(speed, math.sqrt(end_speed * end_speed + 2.0 * BRAKING_MPS2 * left), max(0.95 * left, end_speed))
    return ax / n * allowed, ay / n * allowed


@compiled
def _blocked(pos: Floats, end: Floats, obstacles: Floats, clearance: float) -> bool:
    reach = math.sqrt((end[0] - pos[0]) ** 2 + (end[1] - pos[1]) ** 2) + clearance
    for m in range(obstacles.shape[0]):
        row = obstacles[m]
        if distance_to(row, pos[0], pos[1], pos[2]) > reach:
            continue
        if segment_distance(row, pos, end)[0] < clearance:
            return True
    return False


@compiled
def steer(
    pos: Floats, vx: float, vy: float, obstacles: Floats, clearance: float, horizon_s: float, side: float
) -> tuple[float, float, float]:
    """Turn the wanted velocity as little as needed so that the way ahead keeps clear of the map.

    Returns the velocity and the side taken (+1 left, -1 right, 0 straight), to be handed in again so that the drone
    does not dither in front of an obstacle. Where no way is free the drone slows down and backs off.
    """
    speed = math.sqrt(vx * vx + vy * vy)
    if speed < 0.1 or obstacles.shape[0] == 0:
        return vx, vy, 0.0
    reach = max(speed * horizon_s, 4.0)
    end = np.empty(3)
    end[2] = pos[2]
    heading = math.atan2(vy, vx)
    first = side if side != 0.0 else 1.0
    px, py, inside = _push(pos, obstacles, clearance)
    if not inside:
        for k in range(STEER_STEPS):
            for turn in (first, -first):
                angle = heading + turn * k * STEER_STEP_RAD
                c, s = math.cos(angle), math.sin(angle)
                end[0] = pos[0] + reach * c
                end[1] = pos[1] + reach * s
                if not _blocked(pos, end, obstacles, clearance):
                    slow = speed * max(math.cos(0.5 * k * STEER_STEP_RAD), 0.5)
                    return slow * c, slow * s, (turn if k > 0 else 0.0)
    return 1.5 * px, 1.5 * py, first


@compiled
def _push(pos: Floats, obstacles: Floats, clearance: float) -> tuple[float, float, bool]:
    """Unit direction away from the nearest obstacle, and whether it is nearer than the clearance."""
    best = np.inf
    index = -1
    for m in range(obstacles.shape[0]):
        d = distance_to(obstacles[m], pos[0], pos[1], pos[2])
        if d < best:
            best = d
            index = m
    if index < 0:
        return 0.0, 0.0, False
    gx, gy, _ = gradient(obstacles[index], pos[0], pos[1], pos[2])
    n = math.sqrt(gx * gx + gy * gy)
    if n < 1e-6:
        return 0.0, 0.0, best < clearance
    return gx / n, gy / n, best < clearance


@inlined
def _offset(pos: Floats, other: Floats, age: float) -> tuple[float, float, float]:
    """From where another drone should be by now, its last heard state carried forward, to us."""
    return (
        pos[0] - other[0] - other[3] * age,
        pos[1] - other[1] - other[4] * age,
        pos[2] - other[2] - other[5] * age,
    )


@compiled
def repel(
    pos: Floats, others: Floats, time_s: float, timeout_s: float, radius: float, strength: float
) -> tuple[float, float, float]:
    """Sum of potential-field velocities away from the others nearer than the radius.

    others [K, 7]: position, velocity and stamp as last heard (NaN: never). They are carried forward to now, and
    dropped when the news is older than the time-out.
    """
    rx = 0.0
    ry = 0.0
    rz = 0.0
    for k in range(others.shape[0]):
        age = time_s - others[k, 6]
        if not age < timeout_s:
            continue
        dx, dy, dz = _offset(pos, others[k], age)
        d = math.sqrt(dx * dx + dy * dy + dz * dz)
        if not d < radius:
            continue
        d = max(d, 0.3)
        push = strength * (radius - d) / (d * d)
        rx += push * dx / d
        ry += push * dy / d
        rz += push * dz / d
    return rx, ry, rz


@compiled
def sidestep(
    pos: Floats, vel: Floats, others: Floats, time_s: float, timeout_s: float, radius: float, horizon_s: float
) -> tuple[float, float, float]:
    """Sum of velocities that open the closest approaches foreseen within the horizon to the radius.

    others [K, 7] as in :func:`repel`. Each of two drones foresees the same miss from its own side, so they step apart;
    dead ahead both step to their right.
    """
    sx = 0.0
    sy = 0.0
    sz = 0.0
    for k in range(others.shape[0]):
        age = time_s - others[k, 6]
        if not age < timeout_s:
            continue
        dx, dy, dz = _offset(pos, others[k], age)
        wx, wy, wz = vel[0] - others[k, 3], vel[1] - others[k, 4], vel[2] - others[k, 5]
        closing = wx * wx + wy * wy + wz * wz
        if closing < CREEPING_MPS * CREEPING_MPS:
            continue
        left = -(dx * wx + dy * wy + dz * wz) / closing
        if left <= 0.0 or left > horizon_s:
            continue
        mx, my, mz = dx + wx * left, dy + wy * left, dz + wz * left
        miss = math.sqrt(mx * mx + my * my + mz * mz)
        if miss >= radius:
            continue
        speed = math.sqrt(closing)
        mx, my = mx + RIGHT_HAND_M * wy / speed, my - RIGHT_HAND_M * wx / speed
        n = max(math.sqrt(mx * mx + my * my + mz * mz), 1e-6)
        need = (radius - miss) / max(left, 0.5)
        sx += need * mx / n
        sy += need * my / n
        sz += need * mz / n
    return sx, sy, sz


class Manners(NamedTuple):
    """How a drone flies and keeps its distance: speeds (m/s), distances (m), times (s)."""

    speed: float
    separation: float
    repulsion: float
    timeout: float
    foresight: float
    clearance: float
    look_ahead: float


@compiled
def guide(
    pos: Floats,
    vel: Floats,
    leg: tuple[float, float, float, float],
    end_speed: float,
    others: Floats,
    time_s: float,
    obstacles: Floats,
    manners: Manners,
    side: float,
) -> tuple[float, float, float, float]:
    """All of the above in one call: follow the leg (x, y to x, y), make room for the others, keep clear of the map.

    Returns the horizontal velocity, how far the others push up or down (m), and the side taken round an obstacle.
    """
    vx, vy = follow_leg(pos, (leg[0], leg[1]), (leg[2], leg[3]), manners.speed, end_speed)
    rx, ry, rz = repel(pos, others, time_s, manners.timeout, manners.separation, manners.repulsion)
    sx, sy, sz = sidestep(pos, vel, others, time_s, manners.timeout, manners.separation, manners.foresight)
    vx += rx + sx
    vy += ry + sy
    speed = math.sqrt(vx * vx + vy * vy)
    if speed > manners.speed:
        vx, vy = vx / speed * manners.speed, vy / speed * manners.speed
    vx, vy, side = steer(pos, vx, vy, obstacles, manners.clearance, manners.look_ahead, side)
    return vx, vy, rz + sz, side
