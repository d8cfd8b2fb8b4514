"""One drone's controller: a frozen state, what the drone knows, and a pure step to the next state and command.

The operator's order (take off, search, return) comes over the mission link; everything else is the drone's own
estimate, what the swarm link delivered, and the map given a priori. Each step watches over the drone's health
(failsafe), chooses where to go (task) and the way there (navigation); the safety layer has the last word on the
velocity, whoever asked for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_swarm.piloting.failsafe import LIMITS, Failsafe, FailsafeState, Vitals, assess
from sar_swarm.piloting.failsafe import FailsafeLimits as FailsafeLimits
from sar_swarm.piloting.navigation import Chart, Heading, Point, Way, pursue
from sar_swarm.piloting.neighbours import SeparationLimits
from sar_swarm.piloting.policy import Actor, PolicyView, act, link_quality, wish_to_velocity
from sar_swarm.piloting.pursuit import Hypothesis
from sar_swarm.piloting.safety import FRESH, UNJUDGED, Memory, Situation, protect
from sar_swarm.piloting.searchtask import Knowledge, Mission, SearchTask, Spot, arrive, choose, upcoming

Floats = NDArray[np.float64]

_FREE = np.full(3, np.nan)
_LEVEL = np.array([0.0, 0.0, math.nan])
ABEAM_M = 8.0
"""A waypoint passed abeam counts too: two drones that meet at one cannot both come near it."""
STUCK_S = 25.0
TRY_AGAIN_S = 5.0
SINK_MPS = 1.2
TOUCH_DOWN_MPS = 0.6
TOUCH_DOWN_M = 4.0
OVER_HOME_M, OVER_HOME_MPS = 1.5, 1.0
"""Nearer to home and slower than this, level, a drone that returns begins to come down."""
HOVER_PER_S, HOVER_REACH_M = 0.5, 4.0
"""Gain by which a drone that hovers drifts back to its spot, and the distance at which that stops growing."""
TURNING_MPS = 1.0
"""Slower than this a velocity has no direction worth turning to."""
POLICY_BAND_M = 10.0
"""How far above or below the search altitude a learned policy may fly."""


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


AIRBORNE = (Phase.TAKEOFF, Phase.SEARCH, Phase.RETURN, Phase.HOLD, Phase.LAND)
FLYING_ON = (Failsafe.NOMINAL, Failsafe.LOW_BATTERY_WARN, Failsafe.EMERGENCY_DIVERGE)


@dataclass(frozen=True)
class DronePlan:
    """What a drone is told before the mission. Lengths in metres, ENU."""

    mission: Mission
    home: Floats
    altitude_m: float
    return_altitude_m: float
    chart: Chart
    fence: Floats
    separation: SeparationLimits
    key: int = 0
    turn_rate_rps: float = math.radians(30.0)
    failsafe: FailsafeLimits = LIMITS
    actor: Actor | None = None


class Sense(NamedTuple):
    """What the drone knows now: its own estimate and health, and the others [K, 9] as last heard."""

    time_s: float
    position: Floats
    velocity: Floats
    charge: float
    landed: bool
    gps_age_s: float
    motors_ok: bool
    tilt_rad: float
    heard_age_s: float
    """Since anything came in on the swarm link; NaN for a swarm of one."""
    others: Floats
    hypotheses: tuple[Hypothesis, ...] = ()


class Pilot(NamedTuple):
    """A controller's memory between ticks."""

    phase: Phase = Phase.IDLE
    failsafe: FailsafeState = FailsafeState()
    task: SearchTask = SearchTask()
    way: Way | None = None
    spot: Point = (0.0, 0.0, 0.0)
    finished: bool = False
    cut: bool = False
    """Motors stopped for good: it tumbles."""
    memory: Memory = FRESH
    band: int = 0
    yaw: float = 0.0
    last_s: float = -1.0


class Guard(NamedTuple):
    """What the safety layer was asked and what it did; nobody asks it on the ground, in take-off and in landing."""

    wanted: tuple[float, float] = (math.nan, math.nan)
    """The level velocity asked for."""
    limit_excess_mps: float = math.nan
    band: int = UNJUDGED
    fence: int = UNJUDGED


class Command(NamedTuple):
    """An OFFBOARD setpoint, ENU; NaN means not commanded. ``armed`` asks for motors."""

    armed: bool
    position: Floats
    velocity: Floats
    yaw: float
    acceleration: Floats = _FREE
    guard: Guard = Guard()


def start_pilot(yaw: float) -> Pilot:
    return Pilot(yaw=yaw)


def step(plan: DronePlan, pilot: Pilot, sense: Sense, order: Order) -> tuple[Pilot, Command]:
    """One tick of one drone."""
    dt = sense.time_s - pilot.last_s if pilot.last_s >= 0.0 else 0.0
    pilot = pilot._replace(last_s=sense.time_s)
    if pilot.phase in AIRBORNE:
        failsafe = assess(pilot.failsafe, _vitals(plan, pilot, sense), plan.failsafe)
        tumbles = sense.time_s - failsafe.tilted_s >= plan.failsafe.tilt_s
        pilot = pilot._replace(failsafe=failsafe, cut=pilot.cut or tumbles)
    pilot = _next_phase(plan, pilot, sense, order)
    if pilot.phase in (Phase.IDLE, Phase.LANDED):
        return pilot, Command(False, _FREE, _FREE, pilot.yaw)
    if pilot.phase is Phase.TAKEOFF:
        hold = np.array([plan.home[0], plan.home[1], plan.altitude_m])
        return pilot, Command(True, hold, _FREE, pilot.yaw)
    if pilot.phase is Phase.LAND:
        return pilot, _land(pilot, sense)
    return _fly(plan, pilot, sense, dt)


def _vitals(plan: DronePlan, pilot: Pilot, sense: Sense) -> Vitals:
    on_its_spot = pilot.phase in (Phase.TAKEOFF, Phase.LAND)
    uncommanded = on_its_spot or math.isnan(pilot.memory.altitude_m)
    return Vitals(
        time_s=sense.time_s,
        position=sense.position,
        velocity=sense.velocity,
        charge=sense.charge,
        heard_age_s=sense.heard_age_s,
        gps_age_s=sense.gps_age_s,
        motors_ok=sense.motors_ok,
        tilt_rad=sense.tilt_rad,
        nearest_m=math.inf if on_its_spot else pilot.memory.nearest_m,
        band=0 if on_its_spot else pilot.band,
        altitude_error_m=0.0 if uncommanded else pilot.memory.altitude_m - float(sense.position[2]),
        home_distance_m=math.hypot(sense.position[0] - plan.home[0], sense.position[1] - plan.home[1]),
    )


def _next_phase(plan: DronePlan, pilot: Pilot, sense: Sense, order: Order) -> Pilot:
    phase, state = pilot.phase, pilot.failsafe.state
    if phase is Phase.IDLE:
        return pilot._replace(phase=Phase.TAKEOFF) if order is Order.TAKE_OFF else pilot
    if phase is Phase.LAND:
        return pilot._replace(phase=Phase.LANDED) if sense.landed else pilot
    if phase is Phase.LANDED:
        return pilot
    here = _point(sense.position)
    if state in (Failsafe.EMERGENCY_LAND, Failsafe.CONTROLLED_DESCENT):
        return pilot._replace(phase=Phase.LAND, spot=here)
    if state is Failsafe.AUTONOMOUS_HOLD and phase is not Phase.TAKEOFF:
        return pilot if phase is Phase.HOLD else pilot._replace(phase=Phase.HOLD, spot=here, way=None)
    if phase is Phase.RETURN:
        down = _near(sense.position, plan.home, OVER_HOME_M) and _slow(sense.velocity)
        return pilot._replace(phase=Phase.LAND, spot=_point(plan.home)) if down else pilot
    if order is Order.RETURN or state is Failsafe.RETURN_TO_HOME:
        return pilot._replace(phase=Phase.RETURN, way=None)
    if order is Order.SEARCH and (phase is Phase.TAKEOFF or (phase is Phase.HOLD and not pilot.finished)):
        return pilot._replace(phase=Phase.SEARCH, spot=here, way=None)
    return pilot


def _point(place: Floats) -> Point:
    return float(place[0]), float(place[1]), float(place[2])


def _near(position: Floats, goal: Floats, within_m: float) -> bool:
    return math.hypot(position[0] - goal[0], position[1] - goal[1]) < within_m


def _slow(velocity: Floats) -> bool:
    return math.hypot(velocity[0], velocity[1]) < OVER_HOME_MPS


def _land(pilot: Pilot, sense: Sense) -> Command:
    """Down at the spot; a crippled drone only keeps level and sinks, and stops its motors once it tumbles."""
    sink = SINK_MPS if sense.position[2] > TOUCH_DOWN_M else TOUCH_DOWN_MPS
    if pilot.failsafe.state is Failsafe.CONTROLLED_DESCENT:
        down = np.array([math.nan, math.nan, -sink if math.isfinite(sense.position[2]) else -TOUCH_DOWN_MPS])
        return Command(not pilot.cut, _FREE, down, pilot.yaw, _LEVEL)
    hold = np.array([pilot.spot[0], pilot.spot[1], math.nan])
    return Command(True, hold, np.array([0.0, 0.0, -sink]), pilot.yaw)


def _fly(plan: DronePlan, pilot: Pilot, sense: Sense, dt: float) -> tuple[Pilot, Command]:
    """Wanted velocity by phase, then the safety layer, then the setpoint."""
    resting = pilot.phase is Phase.HOLD and pilot.finished and pilot.failsafe.state in FLYING_ON
    if pilot.phase is Phase.SEARCH or resting:
        if plan.actor is not None:
            pilot, wish = _obey(plan, plan.actor, pilot, sense, dt)
        else:
            pilot, wish = _search(plan, pilot, sense)
    elif pilot.phase is Phase.RETURN:
        goal = (float(plan.home[0]), float(plan.home[1]), plan.return_altitude_m)
        pilot, wish = _go(plan, pilot, sense, goal, 0.0)
        if pilot.way is not None and pilot.way.hopeless and sense.time_s - pilot.way.made_s > TRY_AGAIN_S:
            pilot = pilot._replace(way=None)
    else:
        wish = _hover(pilot.spot, sense)
    wanted = (wish.vx, wish.vy)
    told = protect(
        Situation(
            position=sense.position,
            velocity=sense.velocity,
            wanted=wanted,
            altitude_m=wish.z,
            others=sense.others,
            time_s=sense.time_s,
            obstacles=plan.chart.obstacles,
            fence=plan.fence,
            keep=plan.separation,
            row=plan.mission.index,
            memory=pilot.memory,
        )
    )
    speed = math.hypot(told.vx, told.vy)
    yaw = _turn(pilot.yaw, math.atan2(told.vy, told.vx) if speed > TURNING_MPS else pilot.yaw, plan.turn_rate_rps * dt)
    pilot = pilot._replace(memory=told.memory, band=told.band, yaw=yaw)
    hold, velocity = np.array([math.nan, math.nan, told.altitude_m]), np.array([told.vx, told.vy, math.nan])
    guard = Guard(wanted, told.limit_excess_mps, told.band, told.fence)
    return pilot, Command(True, hold, velocity, yaw, guard=guard)


def _search(plan: DronePlan, pilot: Pilot, sense: Sense) -> tuple[Pilot, Heading]:
    """Fly the task; places that cannot be reached are given up, never waited for."""
    trusts_link = pilot.failsafe.state in FLYING_ON
    known = Knowledge(sense.time_s, sense.position, sense.others, sense.hypotheses, trusts_link)
    task, spot = choose(plan.mission, pilot.task, known)
    pilot = pilot._replace(task=task)
    if spot is None:
        here = pilot.spot if pilot.finished else _point(sense.position)
        pilot = pilot._replace(phase=Phase.HOLD, finished=True, spot=here, way=None)
        return pilot, _hover(here, sense)
    pilot = pilot._replace(phase=Phase.SEARCH, finished=False)
    goal = _lifted(plan, pilot.way, spot)
    if goal is None:
        return pilot._replace(task=arrive(task)), _hover(_point(sense.position), sense)
    waits = task.station is not None
    pilot, heading = _go(plan, pilot, sense, goal, 0.0 if waits else _arrival(plan, pilot, sense, goal))
    assert pilot.way is not None
    given_up = pilot.way.hopeless or sense.time_s - pilot.way.progress_s > STUCK_S
    abeam = heading.left_m < ABEAM_M and pilot.way.at >= len(pilot.way.points) - 2
    if (heading.left_m < plan.mission.accept_m or abeam or given_up) and not waits:
        pilot = pilot._replace(task=arrive(task))
    return pilot, heading


def _arrival(plan: DronePlan, pilot: Pilot, sense: Sense, goal: Point) -> float:
    """The speed at the goal, worked out once per leg."""
    if pilot.way is not None and pilot.way.goal == goal:
        return pilot.way.end_speed
    here = (float(sense.position[0]), float(sense.position[1]))
    return plan.chart.corner_speed(here, goal[:2], upcoming(plan.mission, pilot.task), plan.mission.accept_m)


def _lifted(plan: DronePlan, way: Way | None, spot: Spot) -> Point | None:
    """The spot at search altitude, or above what stands there; None where nothing is free up to the ceiling."""
    if way is not None and way.goal[:2] == spot:
        return way.goal
    z = plan.chart.free_altitude(spot[0], spot[1], plan.altitude_m)
    return None if z is None else (*spot, z)


def _go(plan: DronePlan, pilot: Pilot, sense: Sense, goal: Point, end_speed: float) -> tuple[Pilot, Heading]:
    way, heading = pursue(
        plan.chart, pilot.way, goal, end_speed, sense.position, sense.velocity, sense.others, sense.time_s, plan.key
    )
    return pilot._replace(way=way), heading


def _hover(spot: Point, sense: Sense) -> Heading:
    """Back to the spot, gently."""
    dx, dy = spot[0] - float(sense.position[0]), spot[1] - float(sense.position[1])
    left = math.hypot(dx, dy)
    gain = HOVER_PER_S * min(1.0, HOVER_REACH_M / max(left, 1e-6))
    return Heading(gain * dx, gain * dy, spot[2], left)


def _obey(plan: DronePlan, actor: Actor, pilot: Pilot, sense: Sense, dt: float) -> tuple[Pilot, Heading]:
    """Fly as the learned policy wishes, in a band around the search altitude; its target is the area's middle."""
    x_min, y_min, x_max, y_max = plan.mission.area
    view = PolicyView(
        position=sense.position,
        velocity=sense.velocity,
        heading_rad=pilot.yaw,
        charge=sense.charge,
        link=link_quality(sense.others, plan.mission.index, sense.time_s),
        others=sense.others,
        hypotheses=sense.hypotheses,
        target=(0.5 * (x_min + x_max), 0.5 * (y_min + y_max), plan.altitude_m),
    )
    vx, vy, climb, heading = wish_to_velocity(pilot.yaw, act(actor, view), dt)
    z = pilot.spot[2] + climb * dt
    z = max(plan.altitude_m - POLICY_BAND_M, min(z, plan.altitude_m + POLICY_BAND_M))
    return pilot._replace(spot=(*pilot.spot[:2], z), yaw=heading), Heading(vx, vy, z, math.inf)


def _turn(yaw: float, wanted: float, limit: float) -> float:
    """Yaw moved towards the wanted one by at most the limit, the short way round."""
    gap = (wanted - yaw + math.pi) % (2.0 * math.pi) - math.pi
    return yaw + max(-limit, min(limit, gap))
