"""Conflicts foreseen: half planes of velocities that pass clear of the others, and the best velocity among them.

Reciprocal velocity obstacles (van den Berg, Guy, Lin, Manocha, "Reciprocal n-body collision avoidance", 2011) with a
passing rule, shares by who sees whom, and ways behind and round the others that half planes alone cannot express.
Both drones of a pair know the same two broadcast estimates, so they see the same miss and choose compatible sides;
an estimate's error is common to both. Compiled, pure, ENU, SI.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.mailboxes import FAILSAFE, STAMP
from sar_swarm.piloting.failsafe import Failsafe
from sar_swarm.piloting.neighbours import BRAKING_MPS2, HEARD, SILENT, UNKNOWN, SeparationLimits, neighbour
from sar_swarm.planning.clearance import reach_of, way_blocked

Floats = NDArray[np.float64]

SHARE = 0.6
"""How much of the way out each of two drones takes: a little over half, since the other may not have heard."""
YIELD = 0.15
"""How much more of it falls to the one that has the other before its bow; the one behind can see, so it yields."""
PASSING_M = 1.5
"""A foreseen miss on the wrong side by less than this is turned into one on the right; by less of it far out, where
little is certain, and very near, where it is too late."""
ROOM_M = 0.5
"""Predicted passes keep this much outside the potential field."""
RELAX_S = 1.0
"""Time in which a drone already too near makes room."""
PATIENCE_S, PATIENCE_MPS2 = 1.5, 1.0
"""Two that hardly move against each other look less far ahead: this, and the time to stop at this deceleration."""
STALE_MPS = 0.5
"""How fast a neighbour's berth grows with the age of its news."""
STUCK, GAIN_MPS, DETOURS, LAG_S = 0.4, 0.5, 24, 0.3
"""The share of wanted progress that may be lost before a drone looks for a way behind or round the others, by how much
that must be better, how many directions it looks in, and how long a command takes to act."""
PAST_GAP_S = 0.03
"""How near to another's stamp a state of our own must be to belong to it: half a tick."""
FROM_BEHIND = -0.5
"""A drone that faces away from us by more than this keeps its course, and may be overtaken on either side."""
FACING_MPS, FACING_M = 2.0, 1.0
"""A motion slower than this, or somebody nearer, says less of who faces whom."""
URGENCY_S = 0.5
"""Added to the time left until two are nearest, so that the urgency of a limit stays finite."""
DETOUR_MPS = 1.0
"""Who wants less progress than this looks for no way round."""
STANDING_MPS = 0.1
"""Slower than this a drone goes nowhere, and no map is asked."""
VIOLATION_COST = 10.0
SPOKES, SPOKE_SHARES = 24, (0.35, 0.7, 1.0)
"""The rosette of velocities looked at: directions, and shares of full speed in each."""
DETOUR_SHARES = (0.25, 0.5, 0.75, 1.0)
TRIES = 10
STEERING = (float(Failsafe.NOMINAL), float(Failsafe.LOW_BATTERY_WARN), float(Failsafe.RETURN_TO_HOME))
"""The states on the link in which a drone still makes room."""

LIMIT = 10
"""Columns of a limit: normal 2, bound; the neighbour: position from us 2, velocity 2, radius; the limit's urgency; the
side agreed on for passing (1: it stays on our right, -1: on our left, 0: none)."""


@inlined
def _leg(px: float, py: float, radius: float, side: float) -> tuple[float, float]:
    """Unit normal, outwards, of the cone of collision's leg on one side (1 left, -1 right); p lies outside."""
    p2 = px * px + py * py
    leg = side * math.sqrt(p2 - radius * radius)
    return -(px * radius + py * leg) / p2, (px * leg - py * radius) / p2


@compiled
def passing_side(px: float, py: float, wx: float, wy: float, radius: float) -> float:
    """On which side two drones pass: 1 with the other on our right, -1 with it on our left.

    The right-hand rule (-1) holds when they would pass within PASSING_M, otherwise their course does. p is where the
    other is from us, w our velocity relative to it; the other sees -p and -w, hence the same side.
    """
    p = math.sqrt(px * px + py * py)
    side = px * wy - py * wx
    if side <= 0.0 or p <= radius:
        return -1.0
    nx, ny = _leg(px, py, radius, 1.0)
    if wx * nx + wy * ny > 0.0:
        return 1.0
    return 1.0 if side > PASSING_M * min(p / radius - 1.0, 1.0) * math.sqrt(wx * wx + wy * wy) else -1.0


@compiled
def way_out(
    px: float, py: float, wx: float, wy: float, radius: float, horizon_s: float, side: float
) -> tuple[float, float, float, float]:
    """How the relative velocity must change to pass outside the radius: unit normal, how far (negative: free), side.

    The velocities that lead to the disc within the horizon form a truncated cone; the way out is across its blunt end
    (then no side is taken), or across the leg of the given side. Two inside the radius that close in so fast that the
    nearest way out would be through each other part straight away.
    """
    p2 = px * px + py * py
    inside = p2 <= radius * radius
    horizon = RELAX_S if inside else horizon_s
    if inside and (wx * px + wy * py > 0.5 * p2 / horizon or p2 < 1e-12):
        p = math.sqrt(p2)
        nx, ny = (-px / p, -py / p) if p > 1e-6 else (1.0, 0.0)
        return nx, ny, (radius - p) / horizon - wx * nx - wy * ny, 0.0
    cx, cy = wx - px / horizon, wy - py / horizon
    c2 = cx * cx + cy * cy
    along = cx * px + cy * py
    if inside or (along < 0.0 and along * along > radius * radius * c2):
        c = math.sqrt(c2)
        return cx / c, cy / c, radius / horizon - c, 0.0
    nx, ny = _leg(px, py, radius, side)
    return nx, ny, -(wx * nx + wy * ny), side


@inlined
def _at(past: Floats, stamp_s: float) -> int:
    """The row of our past nearest to a stamp, -1 where it does not reach back so far."""
    best, row = PAST_GAP_S, -1
    for k in range(past.shape[0]):
        gap = abs(past[k, 0] - stamp_s)
        if gap < best:
            best, row = gap, k
    return row


@inlined
def _agreed_side(past: Floats, other: Floats, px: float, py: float, wx: float, wy: float, radius: float) -> float:
    """The passing side by what both know: the states both had when the other last told us its own.

    We know our present velocity and the other only its own; while both turn, each would see another miss, and dodge to
    the same side for ever.
    """
    k = _at(past, other[STAMP])
    if k >= 0:
        px, py = other[0] - past[k, 1], other[1] - past[k, 2]
        wx, wy = past[k, 3] - other[3], past[k, 4] - other[4]
    return passing_side(px, py, wx, wy, radius)


@inlined
def _facing(vx: float, vy: float, px: float, py: float) -> float:
    """How much a motion points at p: 1 straight at it, -1 away from it, 0 when hardly moving."""
    return (vx * px + vy * py) / (
        max(math.sqrt(vx * vx + vy * vy), FACING_MPS) * max(math.sqrt(px * px + py * py), FACING_M)
    )


@inlined
def is_steering(code: float) -> bool:
    """Whether a drone in this failsafe state still makes room: nominal, low on battery, on its way home."""
    return code in STEERING


@compiled
def limits(
    pos: Floats, vel: Floats, others: Floats, time_s: float, keep: SeparationLimits, past: Floats, lines: Floats
) -> int:
    """Half planes n . v >= b that every velocity should obey, one per neighbour that matters; returns how many.

    past [H, 5]: our own stamps, level positions and velocities of late; lines [K, LIMIT] takes the limits. Neighbours
    at another height shrink to what their sphere leaves at this one.
    """
    count = 0
    for k in range(others.shape[0]):
        known, x, y, z, ux, uy, uz = neighbour(others[k], time_s, keep)
        if known == UNKNOWN:
            continue
        px, py, pz = x - pos[0], y - pos[1], z - pos[2]
        wx, wy, wz = vel[0] - ux, vel[1] - uy, vel[2] - uz
        radius = keep.berth_m if known == SILENT else keep.separation_m + ROOM_M
        if known == HEARD:
            radius += STALE_MPS * max(time_s - others[k, STAMP], 0.0)
        far = radius + 2.0 * keep.speed_mps * keep.foresight_s
        if px * px + py * py > far * far:
            continue
        fast = wx * wx + wy * wy
        left = min(max((px * wx + py * wy) / max(fast, 0.01), 0.0), keep.foresight_s)
        apart = pz - wz * left
        apart = 0.0 if apart * pz < 0.0 else min(abs(pz), abs(apart))
        if apart >= radius:
            continue
        radius = math.sqrt(radius * radius - apart * apart)
        horizon = min(keep.foresight_s, PATIENCE_S + math.sqrt(fast) / PATIENCE_MPS2)
        side = _agreed_side(past, others[k], px, py, wx, wy, radius)
        nx, ny, change, side = way_out(px, py, wx, wy, radius, horizon, side)
        alone = known == SILENT or (others.shape[1] > FAILSAFE and not is_steering(others[k, FAILSAFE]))
        coming = _facing(ux, uy, -px, -py)
        bow = _facing(vel[0], vel[1], px, py) - coming
        share = SHARE + YIELD * bow if change > 0.0 else 0.5 - YIELD * bow
        lines[count, 0], lines[count, 1] = nx, ny
        lines[count, 2] = vel[0] * nx + vel[1] * ny + (1.0 if alone and change > 0.0 else share) * change
        lines[count, 3], lines[count, 4] = px, py
        lines[count, 5], lines[count, 6], lines[count, 7] = ux, uy, radius
        lines[count, 8] = keep.foresight_s / (left + URGENCY_S)
        lines[count, 9] = 0.0 if alone or coming < FROM_BEHIND else side
        count += 1
    return count


@inlined
def violation(lines: Floats, count: int, vx: float, vy: float) -> float:
    """By how much a velocity breaks the worst of the limits (m/s, times its urgency)."""
    worst = 0.0
    for k in range(count):
        worst = max(worst, lines[k, 8] * (lines[k, 2] - lines[k, 0] * vx - lines[k, 1] * vy))
    return worst


@compiled
def shortfall(lines: Floats, count: int, vx: float, vy: float) -> float:
    """By how much a velocity breaks the worst of the limits in m/s, whatever their urgency; 0 where it breaks none."""
    worst = 0.0
    for k in range(count):
        worst = max(worst, lines[k, 2] - lines[k, 0] * vx - lines[k, 1] * vy)
    return worst


@compiled
def _candidates(lines: Floats, count: int, vx: float, vy: float, speed: float, out: Floats) -> int:
    """Velocities worth a look: the wanted one, the corners of what the limits allow, a rosette, and standing still.

    The nearest allowed velocity to the wanted one is its foot on a limit, a corner of two limits, or a limit's end at
    full speed; the rosette serves where the limits leave nothing, or the map forbids what they leave.
    """
    n = 1
    out[0, 0], out[0, 1] = vx, vy
    for i in range(count):
        nx, ny, b = lines[i, 0], lines[i, 1], lines[i, 2]
        lack = b - nx * vx - ny * vy
        out[n, 0], out[n, 1] = vx + lack * nx, vy + lack * ny
        n += 1
        if abs(b) < speed:
            end = math.sqrt(speed * speed - b * b)
            for sign in (-1.0, 1.0):
                out[n, 0], out[n, 1] = b * nx - sign * end * ny, b * ny + sign * end * nx
                n += 1
        for j in range(i):
            cross = nx * lines[j, 1] - ny * lines[j, 0]
            if abs(cross) > 1e-3:
                out[n, 0] = (b * lines[j, 1] - lines[j, 2] * ny) / cross
                out[n, 1] = (lines[j, 2] * nx - b * lines[j, 0]) / cross
                n += 1
    heading = math.atan2(vy, vx)
    for k in range(SPOKES):
        c, s = math.cos(heading + 2.0 * math.pi * k / SPOKES), math.sin(heading + 2.0 * math.pi * k / SPOKES)
        for part in SPOKE_SHARES:
            out[n, 0], out[n, 1] = part * speed * c, part * speed * s
            n += 1
    out[n, 0], out[n, 1] = 0.0, 0.0
    return n + 1


@compiled
def choose(
    lines: Floats, count: int, vx: float, vy: float, speed: float, close: Floats, horizon_s: float
) -> tuple[float, float]:
    """The velocity nearest to the wanted one that obeys the limits, or breaks them least; free of the map if one is."""
    candidates = np.empty((count * (count + 5) // 2 + len(SPOKE_SHARES) * SPOKES + 2, 2))
    n = _candidates(lines, count, vx, vy, speed, candidates)
    costs = np.empty(n)
    for i in range(n):
        x, y = candidates[i]
        if x * x + y * y > 1.001 * speed * speed:
            costs[i] = np.inf
        else:
            lack = max(violation(lines, count, x, y) - 1e-6, 0.0)
            costs[i] = math.sqrt((x - vx) ** 2 + (y - vy) ** 2) + VIOLATION_COST * lack
    best = int(np.argmin(costs))
    first = best
    for _ in range(TRIES):
        x, y = candidates[best]
        pace = math.sqrt(x * x + y * y)
        ahead = reach_of(pace, horizon_s) / max(pace, 1e-6)
        if close.shape[0] == 0 or pace < STANDING_MPS or not way_blocked(close, ahead * x, ahead * y):
            return x, y
        costs[best] = np.inf
        best = int(np.argmin(costs))
    return candidates[first, 0], candidates[first, 1]


@inlined
def _closest(px: float, py: float, wx: float, wy: float, within_s: float) -> tuple[float, float]:
    """Where the other is from us when nearest, if we move with w against it from p for so long."""
    left = min(max((px * wx + py * wy) / max(wx * wx + wy * wy, 1e-6), 0.0), within_s)
    return px - wx * left, py - wy * left


@inlined
def _passes(lines: Floats, count: int, vx: float, vy: float, old: tuple[float, float], horizon_s: float) -> bool:
    """Whether nobody comes nearer than its radius if we change to v as fast as we can and the others fly straight on.

    Nobody who makes room is passed on another side than the agreed one: it may be on its way there itself. A change at
    constant acceleration covers the same ground as the old velocity for half its time, then the new one.
    """
    lag = LAG_S + math.sqrt((vx - old[0]) ** 2 + (vy - old[1]) ** 2) / (2.0 * BRAKING_MPS2)
    for k in range(count):
        px, py, ux, uy, radius = lines[k, 3], lines[k, 4], lines[k, 5], lines[k, 6], lines[k, 7]
        allowed = min(radius * radius, px * px + py * py) - 1e-9
        mx, my = _closest(px, py, old[0] - ux, old[1] - uy, lag)
        if mx * mx + my * my < allowed:
            return False
        px, py = px - lag * (old[0] - ux), py - lag * (old[1] - uy)
        wx, wy = vx - ux, vy - uy
        if px * wx + py * wy > 0.0 and lines[k, 9] * (px * wy - py * wx) < 0.0:
            return False
        mx, my = _closest(px, py, wx, wy, horizon_s)
        if mx * mx + my * my < allowed:
            return False
    return True


@compiled
def resolve(
    lines: Floats,
    count: int,
    vx: float,
    vy: float,
    old: tuple[float, float],
    keep: SeparationLimits,
    close: Floats,
) -> tuple[float, float]:
    """:func:`choose`; where that costs most of the wanted progress, a velocity that goes behind or round the others.

    Limits are half planes, so a drone side by side with another cannot cross behind it, nor go round one that stands
    in its way. Velocities that miss everybody's straight course are free as well.
    """
    cx, cy = choose(lines, count, vx, vy, keep.speed_mps, close, keep.look_ahead_s)
    wanted = math.sqrt(vx * vx + vy * vy)
    if wanted < DETOUR_MPS or cx * vx + cy * vy > (1.0 - STUCK) * wanted * wanted:
        return cx, cy
    best = math.sqrt((cx - vx) ** 2 + (cy - vy) ** 2) - GAIN_MPS
    heading = math.atan2(vy, vx)
    for k in range(DETOURS):
        turn = 2.0 * math.pi * k / DETOURS
        c, s = math.cos(heading - turn), math.sin(heading - turn)
        for part in DETOUR_SHARES:
            x, y = part * keep.speed_mps * c, part * keep.speed_mps * s
            cost = math.sqrt((x - vx) ** 2 + (y - vy) ** 2)
            if cost >= best or not _passes(lines, count, x, y, old, keep.foresight_s):
                continue
            ahead = reach_of(part * keep.speed_mps, keep.look_ahead_s)
            if close.shape[0] == 0 or not way_blocked(close, ahead * c, ahead * s):
                best, cx, cy = cost, x, y
    return cx, cy
