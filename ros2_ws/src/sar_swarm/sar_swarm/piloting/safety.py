"""The safety layer below every pattern and policy: whatever velocity is wanted, what may be flown.

It sees the drone's own estimate, what the link delivered of the others, the map and the fence. Far out it foresees
conflicts (:mod:`sar_swarm.piloting.conflict`); beneath lie the distance bands, for when that failed; then the map
(:mod:`sar_swarm.planning.clearance`) and the fence (:mod:`sar_swarm.piloting.geofence`) have their say. Compiled, pure,
ENU, SI.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.geometry import nearest
from sar_swarm.piloting.conflict import LIMIT, limits, resolve, shortfall, violation
from sar_swarm.piloting.geofence import HARD, fence_state, keep_inside, keep_level
from sar_swarm.piloting.neighbours import SANE_M, SANE_MPS, UNKNOWN, SeparationLimits, neighbour, sane
from sar_swarm.planning.clearance import close_obstacles, go_round, way_blocked

Floats = NDArray[np.float64]

CLEAR, PREDICTED, FIELD, SPLIT, DIVERGE = 0, 1, 2, 3, 4
"""The bands: nothing near, a predicted conflict, potential field, brake and altitude split, maximum divergence."""
UNJUDGED = 255
"""In place of a band or a fence state where the layer was not asked."""

LEVEL_M = 0.5
"""Height by which the lower index wins when it is not clear who is higher."""
SPLIT_M = 3.0
FIELD_CLIMB_M = 2.0
GROUND_M = 3.0
POINT_BLANK_M = 0.3
"""The potential field grows no more below this distance."""
SLOWED, AWAY = 0.5, 0.25
"""In the split band: what is left of the wanted velocity, and the share of full speed away from the other."""
PAST = 24
"""Ticks of its own flight that a drone remembers: more than a second."""
EXACT_MPS = 1e-6
"""What a velocity may lack of a limit and still count as obeying it: rounding, as :func:`conflict.choose` has it."""


class Memory(NamedTuple):
    """What the layer wants to be handed again, and the distance of the nearest neighbour for whoever asks.

    ``side`` is the side taken round an obstacle, ``altitude_m`` the altitude last commanded, ``past`` [PAST, 5] our own
    stamps, level positions and velocities, newest first.
    """

    side: float
    altitude_m: float
    nearest_m: float
    past: Floats


def worst(states: Iterable[int]) -> int:
    """The worst of bands, or of fence states; any is worse than not having been asked."""
    return max((state for state in states if state != UNJUDGED), default=UNJUDGED)


FRESH = Memory(0.0, math.nan, math.inf, np.full((PAST, 5), np.nan))


@compiled
def repel(pos: Floats, others: Floats, time_s: float, keep: SeparationLimits) -> tuple[float, float, float, float, int]:
    """Potential-field velocity away from the others nearer than the separation; the nearest one's distance and row."""
    rx, ry, rz = 0.0, 0.0, 0.0
    least = np.inf
    row = -1
    for k in range(others.shape[0]):
        known, x, y, z, _, _, _ = neighbour(others[k], time_s, keep)
        if known == UNKNOWN:
            continue
        dx, dy, dz = pos[0] - x, pos[1] - y, pos[2] - z
        d = math.sqrt(dx * dx + dy * dy + dz * dz)
        if d < least:
            least, row = d, k
        if d < keep.separation_m:
            d = max(d, POINT_BLANK_M)
            push = keep.repulsion_m2ps * (keep.separation_m - d) / (d * d * d)
            rx, ry, rz = rx + push * dx, ry + push * dy, rz + push * dz
    return rx, ry, rz, least, row


@inlined
def _clamp(vx: float, vy: float, limit: float) -> tuple[float, float]:
    speed = math.sqrt(vx * vx + vy * vy)
    if speed <= limit:
        return vx, vy
    return vx / speed * limit, vy / speed * limit


@compiled
def part_ways(
    pos: Floats, vx: float, vy: float, other: Floats, time_s: float, keep: SeparationLimits, index: int, row: int
) -> tuple[float, float, float]:
    """The innermost bands: no velocity towards the nearest neighbour, flight away from it, one up and one down.

    Who goes up is who is higher; LEVEL_M in favour of the lower index settles the tie, the same for both.
    """
    _, x, y, z, _, _, _ = neighbour(other, time_s, keep)
    dx, dy, dz = pos[0] - x, pos[1] - y, pos[2] - z
    flat = math.sqrt(dx * dx + dy * dy)
    if flat > 1e-3:
        ax, ay = dx / flat, dy / flat
    else:
        ax, ay = (1.0 if index < row else -1.0), 0.0
    if flat * flat + dz * dz < keep.diverge_m * keep.diverge_m:
        vx, vy = keep.speed_mps * ax, keep.speed_mps * ay
    else:
        closing = min(vx * ax + vy * ay, 0.0)
        vx, vy = _clamp(SLOWED * (vx - closing * ax), SLOWED * (vy - closing * ay), SLOWED * keep.speed_mps)
        vx, vy = vx + AWAY * keep.speed_mps * ax, vy + AWAY * keep.speed_mps * ay
    up = dz + (LEVEL_M if index < row else -LEVEL_M) > 0.0
    return vx, vy, SPLIT_M if up else -SPLIT_M


@inlined
def _remember(past: Floats, time_s: float, pos: Floats, vel: Floats) -> Floats:
    """The past with one more state in it."""
    now = np.empty_like(past)
    now[1:] = past[:-1]
    now[0, 0], now[0, 1], now[0, 2], now[0, 3], now[0, 4] = time_s, pos[0], pos[1], vel[0], vel[1]
    return now


class Situation(NamedTuple):
    """What the layer is told of one drone in one tick.

    position, velocity [3]: own estimate; wanted: the level velocity asked for; others [K, 7 or 9]: position, velocity,
    stamp_s, failsafe code, leg (a NaN row: never heard, or this drone itself); obstacles [M, 8]; fence [V, 2], V = 0
    for none; row: this drone's own among the others.
    """

    position: Floats
    velocity: Floats
    wanted: tuple[float, float]
    altitude_m: float
    others: Floats
    time_s: float
    obstacles: Floats
    fence: Floats
    keep: SeparationLimits
    row: int
    memory: Memory


class Ruling(NamedTuple):
    """What may be flown: a level velocity and an altitude; and what the layer saw and did.

    ``band`` and ``fence`` are its states; ``limit_excess_mps`` is by how much the velocity that the foreseen conflicts
    left breaks the worst of their limits, 0 where it obeys them all, NaN where they are not known.
    """

    vx: float
    vy: float
    altitude_m: float
    memory: Memory
    band: int
    fence: int
    limit_excess_mps: float


@compiled
def protect(now: Situation) -> Ruling:
    """What may be flown instead of the wanted level velocity and altitude, once per drone and tick.

    Anything of one's own that is not a sane number fails closed: no velocity, the altitude last commanded, the worst
    band and fence state.
    """
    pos, vel, others, time_s, obstacles = now.position, now.velocity, now.others, now.time_s, now.obstacles
    keep, memory, altitude_m = now.keep, now.memory, now.altitude_m
    vx, vy = now.wanted
    usable = sane(pos, SANE_M) and sane(vel, SANE_MPS) and math.isfinite(vx) and math.isfinite(vy)
    if not (usable and math.isfinite(altitude_m) and math.isfinite(time_s)):
        held = memory.altitude_m
        if not math.isfinite(held):
            held = altitude_m if math.isfinite(altitude_m) else pos[2]
        lost = Memory(0.0, memory.altitude_m, math.inf, memory.past)
        return Ruling(0.0, 0.0, held, lost, DIVERGE, HARD, math.nan)
    vx, vy = _clamp(vx, vy, keep.speed_mps)
    close, clear_m, row = close_obstacles(pos, keep.speed_mps * keep.look_ahead_s, obstacles, keep.clearance_m)
    z = altitude_m
    band = CLEAR
    rx, ry, rz, least, who = repel(pos, others, time_s, keep)
    if least < keep.separation_m:
        band = FIELD
        vx, vy = _clamp(vx + rx, vy + ry, keep.speed_mps)
        z += max(min(rz, FIELD_CLIMB_M), -FIELD_CLIMB_M)
    past = _remember(memory.past, time_s, pos, vel)
    lines = np.empty((others.shape[0], LIMIT))
    count = limits(pos, vel, others, time_s, keep, past, lines)
    excess = 0.0
    if violation(lines, count, vx, vy) > 1e-9:
        band = max(band, PREDICTED)
        vx, vy = resolve(lines, count, vx, vy, (vel[0], vel[1]), keep, close)
        excess = shortfall(lines, count, vx, vy)
        if excess <= EXACT_MPS:
            excess = 0.0
    if least < keep.brake_m:
        band = DIVERGE if least < keep.diverge_m else SPLIT
        vx, vy, split = part_ways(pos, vx, vy, others[who], time_s, keep, now.row, who)
        z = max(pos[2] + split, min(pos[2], GROUND_M))
        if nearest(obstacles, pos[0], pos[1], z)[0] < keep.clearance_m:
            z = pos[2]
    vx, vy, side = go_round(
        pos, vx, vy, obstacles, close, clear_m, row, keep.clearance_m, keep.look_ahead_s, memory.side
    )
    if now.fence.shape[0] > 0:
        fx, fy = keep_inside(pos, vel, vx, vy, now.fence, keep.soft_margin_m)
        ahead = keep.look_ahead_s
        if (fx != vx or fy != vy) and way_blocked(close, ahead * fx, ahead * fy) and clear_m >= keep.clearance_m:
            fx, fy = 0.0, 0.0
        vx, vy = fx, fy
    z = keep_level(z, keep.soft_margin_m, keep.ceiling_m, keep.floor_m)
    state = fence_state(pos, now.fence, keep.soft_margin_m, keep.ceiling_m, keep.floor_m)
    return Ruling(vx, vy, z, Memory(side, z, least, past), band, state, excess)
