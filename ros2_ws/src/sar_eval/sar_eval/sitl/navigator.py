"""From a mode to a setpoint: small routes made of legs, where PX4 has a navigator and flight tasks.

Everything is local NED of the simulator, metres. A setpoint is a row as the position controller takes it: position,
velocity, acceleration, yaw, yaw rate; NaN is not commanded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sar_eval.sitl.commander import FlightMode
from sar_sim.vehicle.autopilot import SETPOINT, SP_POS, SP_VEL, SP_YAW

Floats = NDArray[np.float64]
Point = tuple[float, float, float]

HEIGHT_REACHED_M = 0.8
"""NAV_MC_ALT_RAD's default."""
BRAKING_MPS2 = 3.0
"""MPC_ACC_HOR's default: how hard a multicopter brakes in automatic modes."""


@dataclass(frozen=True)
class Speeds:
    """How fast automatic modes fly, m/s, and where landing slows down, m above home."""

    cruise: float = 5.0
    up: float = 3.0
    down: float = 1.5
    takeoff: float = 1.5
    land: float = 0.7
    slow_from_m: float = 10.0
    slow_to_m: float = 5.0
    gain_xy: float = 0.95
    gain_z: float = 1.0


@dataclass(frozen=True)
class Return:
    """How a vehicle comes home: heights above home and distances, m."""

    height_m: float = 30.0
    near_m: float = 10.0
    cone_deg: float = 45.0
    reached_m: float = 2.0


@dataclass(frozen=True)
class Leg:
    """Go to a place, or sink there until the ground stops it."""

    goal: Point
    sink: bool = False
    climb_mps: float | None = None


@dataclass(frozen=True)
class Route:
    """Legs still to fly; the last one is held for ever."""

    legs: tuple[Leg, ...]
    yaw: float


@dataclass(frozen=True)
class NavigatorPlace:
    """Where a vehicle believes to be."""

    position: Point
    velocity: Point
    yaw: float


def braking_point(here: NavigatorPlace) -> Point:
    """Where a vehicle that brakes now comes to rest."""
    north, east, down = here.position
    vn, ve, _ = here.velocity
    time = math.hypot(vn, ve) / (2.0 * BRAKING_MPS2)
    return north + vn * time, east + ve * time, down


def return_height(distance_m: float, height_m: float, way: Return) -> float:
    """Height above home to come back at (PX4's RTL cone): close to home less climb is needed, never less than now."""
    if distance_m <= way.reached_m:
        wanted = 2.0 * distance_m
    else:
        wanted = way.height_m
        if distance_m <= way.near_m:
            half = math.radians(min(max(way.cone_deg, 1.0), 89.0))
            wanted = min(wanted, distance_m / math.tan(half))
        wanted = max(wanted, 2.0 * way.reached_m)
    return max(min(wanted, way.height_m), height_m)


def set_out(
    mode: FlightMode, here: NavigatorPlace, home: Point, goal: Point | None, speeds: Speeds, way: Return
) -> Route:
    """The route of a mode that begins now; a goal is where the user wants to hold or how high to take off."""
    north, east, _ = here.position
    if mode is FlightMode.TAKEOFF and goal is not None:
        return Route((Leg((north, east, goal[2]), climb_mps=speeds.takeoff),), here.yaw)
    if mode is FlightMode.LAND:
        return Route((Leg(braking_point(here), sink=True),), here.yaw)
    if mode is FlightMode.RTL:
        distance = math.hypot(north - home[0], east - home[1])
        down = home[2] - return_height(distance, home[2] - here.position[2], way)
        stop = braking_point(here)
        over_home = (home[0], home[1], down)
        return Route((Leg((stop[0], stop[1], down)), Leg(over_home), Leg(home, sink=True)), here.yaw)
    return Route((Leg(goal if goal is not None else braking_point(here)),), here.yaw)


def reached(leg: Leg, here: Point, radius_m: float) -> bool:
    near = math.hypot(leg.goal[0] - here[0], leg.goal[1] - here[1]) <= radius_m
    return near and not leg.sink and abs(leg.goal[2] - here[2]) <= HEIGHT_REACHED_M


def go_on(route: Route, here: Point, radius_m: float) -> Route:
    """The same route, without a leg that is done."""
    if len(route.legs) > 1 and reached(route.legs[0], here, radius_m):
        return replace(route, legs=route.legs[1:])
    return route


def setpoint(route: Route, here: Point, home_down: float, speeds: Speeds) -> Floats:
    """What to command now: a point ahead at the distance that makes the position controller fly the wanted speed."""
    leg = route.legs[0]
    row = np.full(SETPOINT, np.nan)
    row[SP_YAW] = route.yaw
    along = (leg.goal[0] - here[0], leg.goal[1] - here[1])
    distance = math.hypot(*along)
    share = min(1.0, speeds.cruise / speeds.gain_xy / distance) if distance > 0.0 else 1.0
    row[SP_POS], row[SP_POS + 1] = here[0] + share * along[0], here[1] + share * along[1]
    if leg.sink:
        row[SP_VEL + 2] = sinking_speed(home_down - here[2], speeds)
        return row
    highest = (leg.climb_mps if leg.climb_mps is not None else speeds.up) / speeds.gain_z
    row[SP_POS + 2] = here[2] + min(max(leg.goal[2] - here[2], -highest), speeds.down / speeds.gain_z)
    return row


def sinking_speed(height_m: float, speeds: Speeds) -> float:
    """Fast far above home, slow near the ground, and linear between (MPC_LAND_ALT1 and 2)."""
    if height_m >= speeds.slow_from_m:
        return speeds.down
    if height_m <= speeds.slow_to_m:
        return speeds.land
    share = (height_m - speeds.slow_to_m) / (speeds.slow_from_m - speeds.slow_to_m)
    return speeds.land + share * (speeds.down - speeds.land)


def stand_still() -> Floats:
    """Nothing is commanded: on the ground the motors idle."""
    return np.full(SETPOINT, np.nan)
