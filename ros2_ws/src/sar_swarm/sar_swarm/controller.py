"""One drone's controller: a frozen state, what the drone knows, and a pure step to the next state and command.

The operator's order (take off, search, return) comes over the mission link; everything else is the drone's own
estimate, what the swarm link delivered, and the map given a priori. A drone cut off from the link flies on alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_swarm.guidance import Manners, guide

Floats = NDArray[np.float64]

_FREE = np.full(3, np.nan)


class Order(IntEnum):
    """What the operator wants of the swarm."""

    WAIT = 0
    TAKE_OFF = 1
    SEARCH = 2
    RETURN = 3


class Phase(IntEnum):
    """What one drone is doing."""

    IDLE = 0
    TAKEOFF = 1
    SEARCH = 2
    RETURN = 3
    LAND = 4
    LANDED = 5
    HOLD = 6


@dataclass(frozen=True)
class Plan:
    """What a drone is told before the mission. Lengths in metres, ENU."""

    index: int
    home: Floats
    waypoints: Floats
    altitude_m: float
    return_altitude_m: float
    speed_mps: float
    obstacles: Floats
    clearance_m: float = 3.0
    separation_m: float = 5.0
    repulsion: float = 6.0
    look_ahead_s: float = 2.5
    corner_speed_mps: float = 3.0
    accept_m: float = 3.0
    stuck_s: float = 15.0
    turn_rate_rps: float = math.radians(30.0)
    neighbour_timeout_s: float = 2.0
    foresight_s: float = 4.0

    @cached_property
    def manners(self) -> Manners:
        """The plan's speeds and distances as guidance takes them."""
        return Manners(
            self.speed_mps,
            self.separation_m,
            self.repulsion,
            self.neighbour_timeout_s,
            self.foresight_s,
            self.clearance_m,
            self.look_ahead_s,
        )


class Sense(NamedTuple):
    """What the drone knows now: its own estimate, and the others as last heard (rows of position, velocity, stamp)."""

    time_s: float
    position: Floats
    velocity: Floats
    charge: float
    landed: bool
    others: Floats


class Pilot(NamedTuple):
    """A controller's memory between ticks."""

    phase: Phase = Phase.IDLE
    leg: int = 0
    leg_start: tuple[float, float] = (0.0, 0.0)
    side: float = 0.0
    yaw: float = 0.0
    best_left_m: float = math.inf
    progress_s: float = 0.0
    last_s: float = -1.0


class Command(NamedTuple):
    """An OFFBOARD setpoint, ENU; NaN means not commanded. ``armed`` asks for motors."""

    armed: bool
    position: Floats
    velocity: Floats
    yaw: float


def start_pilot(yaw: float) -> Pilot:
    return Pilot(yaw=yaw)


def step(plan: Plan, pilot: Pilot, sense: Sense, order: Order) -> tuple[Pilot, Command]:
    """One tick of one drone."""
    pilot = _next_phase(plan, pilot, sense, order)
    dt = sense.time_s - pilot.last_s if pilot.last_s >= 0.0 else 0.0
    pilot = pilot._replace(last_s=sense.time_s)
    if pilot.phase in (Phase.IDLE, Phase.LANDED):
        return pilot, Command(False, _FREE, _FREE, pilot.yaw)
    if pilot.phase == Phase.TAKEOFF:
        hold = np.array([plan.home[0], plan.home[1], plan.altitude_m])
        return pilot, Command(True, hold, _FREE, pilot.yaw)
    if pilot.phase == Phase.LAND:
        sink = -1.2 if sense.position[2] > 4.0 else -0.6
        hold = np.array([plan.home[0], plan.home[1], math.nan])
        return pilot, Command(True, hold, np.array([0.0, 0.0, sink]), pilot.yaw)
    return _fly(plan, pilot, sense, dt)


def _next_phase(plan: Plan, pilot: Pilot, sense: Sense, order: Order) -> Pilot:
    phase = pilot.phase
    if phase == Phase.IDLE and order == Order.TAKE_OFF:
        return pilot._replace(phase=Phase.TAKEOFF)
    airborne = phase in (Phase.TAKEOFF, Phase.SEARCH, Phase.HOLD)
    if airborne and order == Order.RETURN:
        return _begin_leg(pilot._replace(phase=Phase.RETURN), sense, 0)
    if phase == Phase.TAKEOFF and order == Order.SEARCH:
        return _begin_leg(pilot._replace(phase=Phase.SEARCH), sense, 0)
    if phase == Phase.SEARCH and pilot.leg >= len(plan.waypoints):
        return _begin_leg(pilot._replace(phase=Phase.HOLD), sense, pilot.leg)
    if phase == Phase.RETURN and _near(sense.position, plan.home, 1.5) and _slow(sense.velocity):
        return pilot._replace(phase=Phase.LAND)
    if phase == Phase.LAND and sense.landed:
        return pilot._replace(phase=Phase.LANDED)
    return pilot


def _near(position: Floats, goal: Floats, within_m: float) -> bool:
    return math.hypot(position[0] - goal[0], position[1] - goal[1]) < within_m


def _slow(velocity: Floats) -> bool:
    return math.hypot(velocity[0], velocity[1]) < 1.0


def _begin_leg(pilot: Pilot, sense: Sense, leg: int) -> Pilot:
    return pilot._replace(
        leg=leg,
        leg_start=(float(sense.position[0]), float(sense.position[1])),
        side=0.0,
        best_left_m=math.inf,
        progress_s=sense.time_s,
    )


def _target(plan: Plan, pilot: Pilot) -> tuple[Floats, float, float]:
    """Goal, speed at the goal and altitude of the present leg."""
    if pilot.phase == Phase.RETURN:
        return plan.home, 0.0, plan.return_altitude_m
    if pilot.phase == Phase.HOLD:
        return np.array(pilot.leg_start), 0.0, plan.altitude_m
    return plan.waypoints[pilot.leg], plan.corner_speed_mps, plan.altitude_m


def _fly(plan: Plan, pilot: Pilot, sense: Sense, dt: float) -> tuple[Pilot, Command]:
    goal, end_speed, altitude = _target(plan, pilot)
    left = math.hypot(goal[0] - sense.position[0], goal[1] - sense.position[1])
    if left < pilot.best_left_m - 0.5:
        pilot = pilot._replace(best_left_m=left, progress_s=sense.time_s)
    stuck = sense.time_s - pilot.progress_s > plan.stuck_s
    if pilot.phase == Phase.SEARCH and (left < plan.accept_m or stuck):
        next_pilot = pilot._replace(
            leg=pilot.leg + 1,
            leg_start=(float(goal[0]), float(goal[1])) if not stuck else (sense.position[0], sense.position[1]),
            best_left_m=math.inf,
            progress_s=sense.time_s,
            side=0.0,
        )
        if next_pilot.leg >= len(plan.waypoints):
            next_pilot = _begin_leg(next_pilot._replace(phase=Phase.HOLD), sense, next_pilot.leg)
        pilot = next_pilot
        goal, end_speed, altitude = _target(plan, pilot)
    vx, vy, push, side = guide(
        sense.position,
        sense.velocity,
        (*pilot.leg_start, float(goal[0]), float(goal[1])),
        end_speed,
        sense.others,
        sense.time_s,
        plan.obstacles,
        plan.manners,
        pilot.side,
    )
    speed = math.hypot(vx, vy)
    yaw = _turn(pilot.yaw, math.atan2(vy, vx) if speed > 1.0 else pilot.yaw, plan.turn_rate_rps * dt)
    pilot = pilot._replace(side=side, yaw=yaw)
    climb = altitude + max(min(push, 2.0), -2.0)
    return pilot, Command(True, np.array([math.nan, math.nan, climb]), np.array([vx, vy, math.nan]), yaw)


def _turn(yaw: float, wanted: float, limit: float) -> float:
    """Yaw moved towards the wanted one by at most the limit, the short way round."""
    gap = (wanted - yaw + math.pi) % (2.0 * math.pi) - math.pi
    return yaw + max(-limit, min(limit, gap))
