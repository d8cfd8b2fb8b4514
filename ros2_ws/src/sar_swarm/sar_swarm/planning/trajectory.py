"""From corner points to something a multirotor flies: rounded corners, a speed for every metre, and a way to follow it.

A corner becomes the widest circular arc that keeps the clearance, if need be after the corner was moved outwards, so
that a way that hugs an obstacle can still be flown without stopping. Where no arc fits, the speed goes down to a stop:
a multirotor may stop, turn and go on. Compiled; ENU, SI.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_swarm.planning.planmap import PlanMap, edge_free

Floats = NDArray[np.float64]

SAMPLE_M = 1.0
STOP_MPS = 1e-3
_ARC_STEP_RAD = math.radians(10.0)
_LEAST_RADIUS_M = 0.6
_CORNERING = 0.9
_STRAIGHT_RAD = 1e-3
_SHRINK = 0.7
_ARC_TRIES = 14
_SWEEPS = 2
_SPREAD_M = 8.0
_SPREAD_SHARE = 0.35

_CARROT_S = 0.6
_CARROT_M = 2.0
_LEAD_S = 0.4
_LEAD_M = 0.5
_WINDOW_M = 6.0
_ARRIVED_M = 0.75
_CREEP_MPS = 1.5
_HOMING_PER_S = 0.95


class MotionLimits(NamedTuple):
    """What a path may ask of the vehicle.

    turn_rate_rps bounds the course's rate (30 deg/s as in the swarm's design). acceleration_mps2 bounds the whole
    acceleration, along the path and across it. The design's 0.5 m/s^2 would need 64 m to stop from 8 m/s and corners
    of 128 m radius, more than the blocks between which it shall fly, so the default is 2.0 and missions take 3.0, which
    is PX4's own MPC_ACC_HOR. climb_mps bounds climb and descent (PX4's default descent limit).
    """

    speed_mps: float = 8.0
    turn_rate_rps: float = math.radians(30.0)
    acceleration_mps2: float = 2.0
    climb_mps: float = 1.5


def smooth(
    points: Floats,
    plan: PlanMap,
    clearance_m: float,
    limits: MotionLimits,
    start_speed_mps: float = 0.0,
    end_speed_mps: float = 0.0,
) -> tuple[Floats, Floats]:
    """Samples [K, 3] at most 1 m apart along the rounded way, and the speed at each [K], within the limits.

    points [N, 3] are corners joined by free edges. The speed begins and ends as asked, or lower where the limits do
    not allow it.
    """
    corners = np.ascontiguousarray(points, dtype=np.float64).reshape(-1, 3)
    bounds = MotionLimits(*map(float, limits))
    return _smooth(plan, corners, float(clearance_m), bounds, float(start_speed_mps), float(end_speed_mps))


class _Corner(NamedTuple):
    """One corner: unit directions in and out, the angle between them, and the radius of its arc (0: a stop)."""

    ux: float
    uy: float
    uz: float
    wx: float
    wy: float
    wz: float
    angle: float
    radius: float


@inlined
def _gap(a: Floats, b: Floats) -> float:
    return math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2)


@inlined
def _edge_free(plan: PlanMap, a: Floats, b: Floats, clearance: float) -> bool:
    return edge_free(plan, a[0], a[1], a[2], b[0], b[1], b[2], clearance)


@inlined
def _angle(ux: float, uy: float, uz: float, wx: float, wy: float, wz: float) -> float:
    """Angle between two unit vectors, exact also when it is small."""
    cx, cy, cz = uy * wz - uz * wy, uz * wx - ux * wz, ux * wy - uy * wx
    return math.atan2(math.sqrt(cx * cx + cy * cy + cz * cz), ux * wx + uy * wy + uz * wz)


@compiled
def _arc_point(c: Floats, k: _Corner, phi: float, out: Floats) -> None:
    """Point of a corner's arc at an angle phi from its beginning."""
    half = 0.5 * k.angle
    tangent = k.radius * math.tan(half)
    ox, oy, oz = k.wx - k.ux, k.wy - k.uy, k.wz - k.uz
    n = math.sqrt(ox * ox + oy * oy + oz * oz)
    reach = k.radius / math.cos(half) / n
    ox, oy, oz = c[0] + reach * ox, c[1] + reach * oy, c[2] + reach * oz
    cos, sin = math.cos(phi), k.radius * math.sin(phi)
    out[0] = ox + cos * (c[0] - tangent * k.ux - ox) + sin * k.ux
    out[1] = oy + cos * (c[1] - tangent * k.uy - oy) + sin * k.uy
    out[2] = oz + cos * (c[2] - tangent * k.uz - oz) + sin * k.uz


@inlined
def _arc_pieces(k: _Corner) -> int:
    return max(2, math.ceil(k.angle / min(_ARC_STEP_RAD, SAMPLE_M / k.radius)))


@compiled
def _arc_free(plan: PlanMap, c: Floats, k: _Corner, clearance: float) -> bool:
    p, q = np.empty(3), np.empty(3)
    pieces = _arc_pieces(k)
    _arc_point(c, k, 0.0, p)
    for i in range(pieces):
        _arc_point(c, k, k.angle * (i + 1) / pieces, q)
        if not _edge_free(plan, p, q, clearance):
            return False
        p, q = q, p
    return True


@inlined
def _wanted_radius(limits: MotionLimits) -> float:
    """Radius that can be flown at full speed."""
    v = limits.speed_mps
    return max(v / limits.turn_rate_rps, v * v / (_CORNERING * limits.acceleration_mps2))


@compiled
def _corner(
    plan: PlanMap, a: Floats, c: Floats, b: Floats, room: tuple[float, float], clearance: float, limits: MotionLimits
) -> _Corner:
    """The widest free arc at corner c between a and b; room is how much of either edge it may use."""
    la, lb = max(_gap(a, c), 1e-9), max(_gap(c, b), 1e-9)
    ux, uy, uz = (c[0] - a[0]) / la, (c[1] - a[1]) / la, (c[2] - a[2]) / la
    wx, wy, wz = (b[0] - c[0]) / lb, (b[1] - c[1]) / lb, (b[2] - c[2]) / lb
    angle = _angle(ux, uy, uz, wx, wy, wz)
    sharp = _Corner(ux, uy, uz, wx, wy, wz, angle, 0.0)
    if angle < _STRAIGHT_RAD or angle > math.pi - 1e-2:
        return sharp
    tan = math.tan(0.5 * angle)
    radius = min(min(room[0] * la, room[1] * lb) / tan, _wanted_radius(limits))
    for _ in range(_ARC_TRIES):
        if radius < _LEAST_RADIUS_M:
            break
        arc = _Corner(ux, uy, uz, wx, wy, wz, angle, radius)
        if _arc_free(plan, c, arc, clearance):
            return arc
        radius *= _SHRINK
    return sharp


@inlined
def _room(i: int, last: int) -> tuple[float, float]:
    """Shares of the edges before and after corner i: all of an end's edge, half of one that two corners share."""
    return (0.999 if i == 1 else 0.5), (0.999 if i == last - 1 else 0.5)


@compiled
def _spread(plan: PlanMap, corners: Floats, clearance: float, limits: MotionLimits) -> None:
    """Move corners outwards, in place, where that lets them be flown on wider arcs."""
    last = corners.shape[0] - 1
    moved = np.empty(3)
    best = np.empty(3)
    for _ in range(_SWEEPS):
        for i in range(1, last):
            a, c, b = corners[i - 1], corners[i], corners[i + 1]
            room = _room(i, last)
            k = _corner(plan, a, c, b, room, clearance, limits)
            if k.angle < _STRAIGHT_RAD:
                continue
            ox, oy, oz = k.ux - k.wx, k.uy - k.wy, k.uz - k.wz
            n = math.sqrt(ox * ox + oy * oy + oz * oz)
            depth = 1.0 / math.cos(min(0.5 * k.angle, 1.4)) - 1.0
            widest = k.radius
            best[:] = c
            far = min(_SPREAD_M, _SPREAD_SHARE * min(_gap(a, c), _gap(c, b)))
            radius = min(_wanted_radius(limits), far / depth)
            while radius > max(1.2 * widest, _LEAST_RADIUS_M):
                out = radius * depth / n
                moved[0], moved[1], moved[2] = c[0] + out * ox, c[1] + out * oy, c[2] + out * oz
                radius *= _SHRINK
                if not (_edge_free(plan, a, moved, clearance) and _edge_free(plan, moved, b, clearance)):
                    continue
                wider = _corner(plan, a, moved, b, room, clearance, limits).radius
                if wider > 1.1 * widest:
                    widest = wider
                    best[:] = moved
            corners[i] = best


@compiled
def _lay(plan: PlanMap, corners: Floats, clearance: float, limits: MotionLimits) -> tuple[Floats, Floats]:
    """Samples along straights and arcs, and 0 at each where the way must stop (1 elsewhere)."""
    last = corners.shape[0] - 1
    total = 0.0
    for i in range(last):
        total += _gap(corners[i], corners[i + 1])
    room_for = int(2.0 * total / SAMPLE_M) + 40 * (last + 1)
    points = np.empty((room_for, 3))
    go = np.ones(room_for)
    points[0] = corners[0]
    used = 1
    for i in range(1, last + 1):
        c = corners[i]
        k = _Corner(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        target = c.copy()
        if i < last:
            k = _corner(plan, corners[i - 1], c, corners[i + 1], _room(i, last), clearance, limits)
            if k.radius > 0.0:
                _arc_point(c, k, 0.0, target)
        here = points[used - 1].copy()
        left = _gap(here, target)
        pieces = max(2, math.ceil(left / SAMPLE_M)) if left > 1e-6 else 0
        for j in range(1, pieces + 1):
            points[used] = here + (target - here) * (j / pieces) if j < pieces else target
            used += 1
        if k.radius > 0.0:
            pieces = _arc_pieces(k)
            for j in range(1, pieces + 1):
                _arc_point(c, k, k.angle * j / pieces, points[used])
                used += 1
        elif i < last and k.angle >= _STRAIGHT_RAD:
            go[used - 1] = 0.0
    return points[:used].copy(), go[:used].copy()


@compiled
def _speeds(points: Floats, go: Floats, limits: MotionLimits, start: float, end: float) -> Floats:
    """The fastest profile within the limits: caps from curvature, turn rate and slope, then both passes.

    A cap takes 0.9 of the acceleration across the path; what is left over (Pythagoras) may act along it.
    """
    count = points.shape[0]
    if count < 2:
        return np.zeros(count)
    speeds = np.empty(count)
    across = np.zeros(count)
    for k in range(count):
        speeds[k] = limits.speed_mps * go[k]
    speeds[0] = min(speeds[0], start)
    speeds[count - 1] = min(speeds[count - 1], end)
    for k in range(count - 1):
        slope = abs(points[k + 1, 2] - points[k, 2]) / max(_gap(points[k], points[k + 1]), 1e-12)
        if slope > 0.0:
            cap = limits.climb_mps / slope
            speeds[k], speeds[k + 1] = min(speeds[k], cap), min(speeds[k + 1], cap)
    for k in range(1, count - 1):
        if go[k] > 0.0:
            curvature, bend = _bend(points, k)
            across[k] = curvature
            cap = math.sqrt(_CORNERING * limits.acceleration_mps2 / max(curvature, 1e-12))
            cap = min(cap, limits.turn_rate_rps / max(bend, 1e-12))
            for j in range(k - 1, k + 2):
                speeds[j] = min(speeds[j], cap)
    for k in range(count):
        across[k] *= speeds[k] * speeds[k]
    for sweep in range(2):
        for n in range(count - 1):
            k, j = (n, n + 1) if sweep == 0 else (count - 1 - n, count - 2 - n)
            spent = max(across[k], across[j])
            along = math.sqrt(max(limits.acceleration_mps2**2 - spent * spent, 0.0))
            speeds[j] = min(speeds[j], math.sqrt(speeds[k] ** 2 + 2.0 * along * _gap(points[k], points[j])))
    return speeds


@inlined
def _bend(points: Floats, k: int) -> tuple[float, float]:
    """Curvature of the way at sample k, and change of its horizontal course per metre (rad/m both)."""
    a, c, b = points[k - 1], points[k], points[k + 1]
    la, lb = max(_gap(a, c), 1e-12), max(_gap(c, b), 1e-12)
    ux, uy, uz = (c[0] - a[0]) / la, (c[1] - a[1]) / la, (c[2] - a[2]) / la
    wx, wy, wz = (b[0] - c[0]) / lb, (b[1] - c[1]) / lb, (b[2] - c[2]) / lb
    angle = _angle(ux, uy, uz, wx, wy, wz)
    course = 0.0
    if ux * ux + uy * uy > 1e-12 and wx * wx + wy * wy > 1e-12:
        course = abs(math.atan2(ux * wy - uy * wx, ux * wx + uy * wy))
    mean = 0.5 * (la + lb)
    return angle / mean, course / mean


@compiled
def _smooth(
    plan: PlanMap, points: Floats, clearance: float, limits: MotionLimits, start: float, end: float
) -> tuple[Floats, Floats]:
    corners = np.empty_like(points)
    used = 0
    for i in range(points.shape[0]):
        if used == 0 or _gap(points[i], corners[used - 1]) > 1e-6:
            corners[used] = points[i]
            used += 1
    corners = corners[:used]
    _spread(plan, corners, clearance, limits)
    samples, go = _lay(plan, corners, clearance, limits)
    return samples, _speeds(samples, go, limits, start, end)


@inlined
def _walk(points: Floats, at: float, length: float, stop: int) -> float:
    """The place ``length`` metres further along, never beyond sample ``stop``."""
    while at < stop:
        k = int(at)
        piece = _gap(points[k], points[k + 1])
        left = (k + 1 - at) * piece
        if length < left:
            return at + length / piece
        length -= left
        at = float(k + 1)
    return float(stop)


@inlined
def _speed_at(speeds: Floats, at: float) -> float:
    """Speed at a place between samples: its square is linear along the way."""
    k = min(int(at), speeds.shape[0] - 2)
    f = at - k
    return math.sqrt((1.0 - f) * speeds[k] ** 2 + f * speeds[k + 1] ** 2)


@inlined
def _next_stop(speeds: Floats, at: float) -> int:
    k = int(at) + 1
    while k < speeds.shape[0] - 1 and speeds[k] > STOP_MPS:
        k += 1
    return min(k, int(speeds.shape[0]) - 1)


@compiled
def _progress(points: Floats, at: float, pos: Floats, stop: int) -> float:
    """The place nearest to the drone within the next metres of the way; it never goes back."""
    best, place = np.inf, at
    k, seen = int(at), 0.0
    while k < stop and seen < _WINDOW_M:
        a, b = points[k], points[k + 1]
        square, dot = 0.0, 0.0
        for i in range(3):
            square += (b[i] - a[i]) ** 2
            dot += (b[i] - a[i]) * (pos[i] - a[i])
        f = min(max(dot / max(square, 1e-12), at - k if k == int(at) else 0.0), 1.0)
        d = 0.0
        for i in range(3):
            d += (a[i] + f * (b[i] - a[i]) - pos[i]) ** 2
        if d < best:
            best, place = d, k + f
        seen += math.sqrt(square)
        k += 1
    return place


@compiled
def follow(points: Floats, speeds: Floats, at: float, pos: Floats) -> tuple[float, float, float, float]:
    """One tick of path following: wanted velocity east and north, wanted altitude, and the progress reached.

    points [K, 3] and speeds [K] as from :func:`smooth`; ``at`` is the progress so far in samples (2.5 is halfway
    between the third and the fourth), 0 at first; at K - 1 the drone is led to the last point and held there. The drone
    aims at a carrot 0.6 s ahead on the way and takes the speed of the place 0.4 s ahead, which makes up for the lag of
    its velocity loop; neither looks past the next stop before the stop is reached.
    """
    last = points.shape[0] - 1
    if last == 0:
        return _steer_to(points[0], pos, min(_CREEP_MPS, _HOMING_PER_S * _gap(points[0], pos)), 0.0)
    stop = _next_stop(speeds, at)
    while stop < last and _gap(points[stop], pos) < _ARRIVED_M:
        at = float(stop)
        stop = _next_stop(speeds, at)
    at = _progress(points, at, pos, stop)
    now = _speed_at(speeds, at)
    homing = max(_HOMING_PER_S * _gap(points[stop], pos), speeds[stop])
    ahead = _walk(points, at, max(_LEAD_M, _LEAD_S * now), stop)
    speed = _speed_at(speeds, ahead)
    if ahead >= stop:
        speed = max(speed, _CREEP_MPS)
    aim = _walk(points, at, max(_CARROT_M, _CARROT_S * now), stop)
    k = min(int(aim), last - 1)
    carrot = np.empty(3)
    for i in range(3):
        carrot[i] = points[k, i] + (aim - k) * (points[k + 1, i] - points[k, i])
    return _steer_to(carrot, pos, min(speed, homing), at)


@inlined
def _steer_to(carrot: Floats, pos: Floats, speed: float, at: float) -> tuple[float, float, float, float]:
    """Velocity towards the carrot; altitude counts, so a drone that lags in height waits for it."""
    n = max(_gap(carrot, pos), 1e-9)
    return (carrot[0] - pos[0]) / n * speed, (carrot[1] - pos[1]) / n * speed, carrot[2], at


@compiled
def blocked(points: Floats, at: float, plan: PlanMap, clearance: float) -> bool:
    """Whether the way from progress ``at`` on no longer keeps the clearance in this map."""
    last = points.shape[0] - 1
    k = min(int(at), last)
    beyond, f = points[min(k + 1, last)], at - k
    x = points[k, 0] + f * (beyond[0] - points[k, 0])
    y = points[k, 1] + f * (beyond[1] - points[k, 1])
    z = points[k, 2] + f * (beyond[2] - points[k, 2])
    if k == last:
        return not edge_free(plan, x, y, z, x, y, z, clearance)
    for i in range(k + 1, points.shape[0]):
        if not edge_free(plan, x, y, z, points[i, 0], points[i, 1], points[i, 2], clearance):
            return True
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
    return False
