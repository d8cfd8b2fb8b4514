"""Stage 1's vehicle: a point in the plane with a speed and a course, limited in speed, acceleration and rate of turn.

It never teleports and never stops to turn on the spot, except from rest, where a course is not defined and it sets off
towards its goal. There is no wind, no obstacle, no altitude, no estimator and no other drone: what those do to a flight
is what Stage 2 is for. ENU, SI; a state is x, y, course (rad, counter-clockwise from east) and speed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined

Floats = NDArray[np.float64]

X, Y, COURSE, SPEED = range(4)
SHARP_RAD = 1.5
"""Half of a turn beyond this is a turn back, as in the swarm's own planner."""
STATE = 4


class Agility(NamedTuple):
    """What a point may do. corner_mps is how slow it gets to turn sharply."""

    speed_mps: float
    acceleration_mps2: float
    turn_rate_rps: float
    corner_mps: float
    step_s: float


@inlined
def turn_to(course: float, wanted: float) -> float:
    """Signed angle (rad, within +-pi) from one course to another."""
    return (wanted - course + math.pi) % (2.0 * math.pi) - math.pi


@compiled
def corner_speed(ax: float, ay: float, bx: float, by: float, cx: float, cy: float, within: float, a: Agility) -> float:
    """How fast to arrive at b coming from a, bound for c (NaN: not known yet, a right angle is expected).

    The arc that turns within a distance of b has radius within / tan(angle / 2), the rule of the swarm's own planner.
    """
    half = 0.25 * math.pi
    if math.isfinite(cx) and math.isfinite(cy):
        half = 0.5 * abs(turn_to(math.atan2(by - ay, bx - ax), math.atan2(cy - by, cx - bx)))
    radius = within / max(math.tan(min(half, SHARP_RAD)), 1e-3)
    fast = min(math.sqrt(a.acceleration_mps2 * radius), a.turn_rate_rps * radius)
    return max(a.corner_mps, min(fast, a.speed_mps))


@compiled
def approach(state: Floats, gx: float, gy: float, end_speed: float, a: Agility) -> None:
    """One step towards a goal: turn and change speed as far as the limits allow, then go straight on for the step.

    The speed is what still lets it brake to ``end_speed`` at the goal, what lets the tightest circle it can fly reach
    the goal instead of orbiting it, and the less the further its course points aside.
    """
    dx, dy = gx - state[X], gy - state[Y]
    left = math.sqrt(dx * dx + dy * dy)
    bearing = math.atan2(dy, dx)
    if state[SPEED] <= 0.0:
        state[COURSE] = bearing
    aside = turn_to(state[COURSE], bearing)
    wanted = min(a.speed_mps, math.sqrt(end_speed * end_speed + 2.0 * a.acceleration_mps2 * left))
    lean = abs(math.sin(aside)) if abs(aside) < 0.5 * math.pi else 1.0
    if lean > 1e-6:
        radius = left / (2.0 * lean)
        reach = min(a.turn_rate_rps * radius, math.sqrt(a.acceleration_mps2 * radius))
        gentle = a.corner_mps + (a.speed_mps - a.corner_mps) * max(math.cos(aside), 0.0)
        wanted = min(wanted, max(min(reach, gentle), 0.5 * a.step_s * a.acceleration_mps2))
    step_on(state, aside, wanted, a)


@compiled
def halt(state: Floats, a: Agility) -> None:
    """One step of braking to a stand."""
    step_on(state, 0.0, 0.0, a)


@inlined
def step_on(state: Floats, aside: float, wanted: float, a: Agility) -> None:
    """Turn by at most the rate of turn, and by no more than the acceleration across allows at this speed; change speed
    by at most the acceleration along; go on for one step."""
    change = a.acceleration_mps2 * a.step_s
    speed = min(max(wanted, state[SPEED] - change), state[SPEED] + change)
    speed = min(max(speed, 0.0), a.speed_mps)
    rate = min(a.turn_rate_rps, a.acceleration_mps2 / max(speed, 1e-9))
    state[COURSE] += min(max(aside, -rate * a.step_s), rate * a.step_s)
    state[SPEED] = speed
    state[X] += speed * a.step_s * math.cos(state[COURSE])
    state[Y] += speed * a.step_s * math.sin(state[COURSE])
