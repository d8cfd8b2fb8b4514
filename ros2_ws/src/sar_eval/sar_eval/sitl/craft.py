"""One vehicle of the fleet behind MAVLink: its commander, its route, its frame, its parameters, its reports.

Inside, places are NED of the fleet's frame; outside, they are latitude, longitude and the vehicle's own local frame,
whose origin it chose when it started, as PX4 does, until someone sets another one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_core.geodesy import Origin, to_global, to_local
from sar_eval.sitl import commander
from sar_eval.sitl.commander import BatteryLevel, CommanderState, Condition, FlightMode, Text
from sar_eval.sitl.link import MavlinkLink
from sar_eval.sitl.navigator import NavigatorPlace, Route, go_on, reached, set_out, setpoint, stand_still
from sar_eval.sitl.paramtable import BATTERY_THRESHOLDS, ParamTable
from sar_eval.sitl.telemetry import HEARTBEAT, MAKERS, Point, Quaternion, VehicleReport, euler, number_of
from sar_sim.vehicle.autopilot import SP_POS
from sar_sim.vehicle.fleet import Fleet, FleetState
from sar_sim.vehicle.rigidbody import POS, QUAT, RATE, ROTOR, VEL
from sar_sim.vehicle.vehicle import STEP_S

Floats = NDArray[np.float64]

POSITION_LOST_S = 5.0
"""EKF2_NOAID_TOUT: so long after the last fix the estimator gives up."""
FIX_LOST_S = 1.0
HIGHEST_M = 100_000.0
"""No altitude anyone means is higher, or so deep."""
FIRST_WORDS = "sar_eval embedded autopilot, not PX4"
TEXT_LENGTH = 50


@dataclass(frozen=True)
class Sight:
    """What the simulator shows of one vehicle: NED of the fleet's frame."""

    time_s: float
    position: Point
    velocity: Point
    attitude: Quaternion
    rates: Point
    true_position: Point
    true_velocity: Point
    true_attitude: Quaternion
    throttle: float
    landed: bool
    gps_age_s: float
    charge: float
    motors_ok: bool


def look(fleet: Fleet, index: int, state: FleetState) -> Sight:
    """One vehicle of a fleet whose snapshot was just taken."""
    body, error, attitude = fleet.state_ned(index)
    estimate = (body[0:6] + error[0:6]).tolist()
    true = body.tolist()
    return Sight(
        time_s=fleet.step * STEP_S,
        position=tuple(estimate[0:3]),
        velocity=tuple(estimate[3:6]),
        attitude=tuple(attitude.tolist()),
        rates=tuple(true[RATE : RATE + 3]),
        true_position=tuple(true[POS : POS + 3]),
        true_velocity=tuple(true[VEL : VEL + 3]),
        true_attitude=tuple(true[QUAT : QUAT + 4]),
        throttle=sum(true[ROTOR : ROTOR + 4]) / 4.0,
        landed=bool(state.landed[index]),
        gps_age_s=float(state.gps_age_s[index]),
        charge=float(state.charge[index]),
        motors_ok=bool(state.motors_ok[index]),
    )


class Craft:
    """The state of one MAVLink vehicle; sockets and clocks are others' business."""

    def __init__(
        self, m: Any, system: int, table: ParamTable, frame: Origin, first: Sight, chance: Callable[[], float]
    ) -> None:
        """frame is the fleet's origin on the Earth, chance draws from 0 to 1 for lost datagrams."""
        self.m = m
        self.system = system
        self.table = table
        self.frame = frame
        self.sight = first
        self.state = CommanderState()
        self.links: list[MavlinkLink] = []
        self.goal: Point | None = None
        self.stream_row: Floats = stand_still()
        self.stream_at_s: float | None = None
        self.battery_failed = False
        self.motors_left: Floats = np.ones(4)
        self.origin = self.global_of(first.position)
        self.home: Point = first.position
        self._chance = chance
        self._route: Route | None = None
        self._route_of: tuple[FlightMode, bool] | None = None
        self._waited = False
        self._makers = {number_of(m, name): maker for name, maker in MAKERS.items()}
        self.parameters_changed()

    def connect(self, link: MavlinkLink) -> None:
        link.loses = self.loses
        self.links.append(link)

    def parameters_changed(self) -> None:
        self.rules, self.speeds, self.way_home = self.table.rules(), self.table.speeds(), self.table.way_home()

    def global_of(self, place: Point) -> Origin:
        latitude, longitude = to_global(self.frame, place[0], place[1])
        return Origin(latitude, longitude, self.frame.altitude_m - place[2])

    def place_of(self, latitude: float, longitude: float, altitude_m: float) -> Point:
        return (*to_local(self.frame, latitude, longitude), self.frame.altitude_m - altitude_m)

    def local_of(self, place: Point) -> Point:
        """A place in the vehicle's own local frame."""
        there = self.global_of(place)
        return (*to_local(self.origin, there[0], there[1]), self.origin.altitude_m - there.altitude_m)

    def from_local(self, row: Floats) -> Floats:
        """A setpoint of the vehicle's local frame as the fleet takes it; the frames are parallel."""
        there = row.copy()
        north, east = float(row[SP_POS]), float(row[SP_POS + 1])
        if math.isfinite(north) and math.isfinite(east):
            there[SP_POS : SP_POS + 2] = to_local(self.frame, *to_global(self.origin, north, east))
        there[SP_POS + 2] += self.frame.altitude_m - self.origin.altitude_m
        return there

    @property
    def condition(self) -> Condition:
        sight = self.sight
        fit = sight.gps_age_s < POSITION_LOST_S
        return Condition(sight.time_s, sight.landed, fit, self.stream_at_s, self.battery_level)

    @property
    def charge(self) -> float:
        return 0.0 if self.battery_failed else self.sight.charge

    @property
    def battery_level(self) -> BatteryLevel:
        return BatteryLevel(sum(self.charge < self.table[name] for name in BATTERY_THRESHOLDS))

    def say(self, *texts: Text | None) -> None:
        """Tell everyone who listens."""
        for text in texts:
            if text is not None:
                for link in self.links:
                    link.queue(self.status_text(text))

    def status_text(self, text: Text) -> Any:
        return self.m.MAVLink_statustext_message(int(text.severity), text.text[:TEXT_LENGTH].encode())

    def take_off_goal(self, altitude_m: float) -> Point:
        """Over the spot, at an altitude above sea level or, if that is none, MIS_TAKEOFF_ALT above home."""
        north, east, down = self.sight.position
        wanted = self.home[2] - self.table["MIS_TAKEOFF_ALT"]
        if abs(altitude_m) <= HIGHEST_M:
            wanted = self.frame.altitude_m - altitude_m
        return north, east, min(wanted, down)

    def enter(self, mode: FlightMode, goal: Point | None = None) -> commander.Answer:
        """Ask the commander for a mode, with the place it is about."""
        answer = commander.request_mode(self.state, mode, self.condition, self.rules)
        if answer.result is commander.CommandResult.ACCEPTED:
            self.state, self.goal, self._route_of = answer.state, goal, None
        self.say(answer.text)
        return answer

    def think(self, sight: Sight) -> Floats:
        """Look, mind the failsafes, go on with the route; returns the setpoint row to fly."""
        self.sight = sight
        self._strike()
        self.state, texts = commander.watch(self.state, self.condition, self.rules)
        self.say(*texts)
        if self.state.mode is FlightMode.OFFBOARD:
            self._route_of = None
            return self.stream_row
        route = self._current_route()
        if self.state.mode is FlightMode.TAKEOFF and self.state.armed and not sight.landed:
            last = route.legs[-1]
            if reached(last, sight.position, math.inf):
                self.enter(FlightMode.HOLD, last.goal)
                route = self._current_route()
        if not self.state.armed or (sight.landed and self.state.mode is not FlightMode.TAKEOFF):
            return stand_still()
        return setpoint(route, sight.position, self.home[2], self.speeds)

    def _current_route(self) -> Route:
        key = (self.state.mode, self.state.armed)
        here = self.sight
        if self._route is None or key != self._route_of:
            goal = self.goal if self.state.failsafe is None else None
            if self.state.mode is FlightMode.TAKEOFF and goal is None:
                goal = self.take_off_goal(math.nan)
            place = NavigatorPlace(here.position, here.velocity, euler(here.attitude)[2])
            self._route = set_out(self.state.mode, place, self.home, goal, self.speeds, self.way_home)
            self._route_of = key
        self._route = go_on(self._route, here.position, self.way_home.reached_m)
        return self._route

    def _strike(self) -> None:
        """SAR_AFTER: the hooks that spoil clock and links wait until so long after arming, and then stay."""
        if self.state.armed and self.sight.time_s - self.state.armed_at_s >= self.table["SAR_AFTER"] > 0.0:
            self._waited = True

    @property
    def _struck(self) -> bool:
        return self._waited or self.table["SAR_AFTER"] == 0.0

    @property
    def clock_s(self) -> float:
        """The vehicle's clock as it reports it."""
        return max(self.sight.time_s + (self.table["SAR_CLOCK_JUMP"] if self._struck else 0.0), 0.0)

    def loses(self) -> bool:
        """Whether a datagram gets lost by SAR_DROP."""
        share = self.table["SAR_DROP"]
        return self._struck and share > 0.0 and self._chance() < share

    def tell(self) -> None:
        """Send what is due on every link; a ground station that never spoke gets heartbeats only."""
        report: VehicleReport | None = None
        muted = self._struck and self.table["SAR_MUTE"] > 0.0
        for link in self.links:
            talks = (link is self.links[0] or link.heard) and not muted
            for number in link.schedule.due(self.sight.time_s):
                if number == HEARTBEAT or talks:
                    report = report or self.report()
                    link.queue(self._makers[number](self.m, report))
            link.flush()

    def message(self, number: int) -> Any | None:
        """One message of a kind now; None if there is no such stream."""
        maker = self._makers.get(number)
        return maker(self.m, self.report()) if maker is not None else None

    def report(self) -> VehicleReport:
        s = self.sight
        here, truth = self.global_of(s.position), self.global_of(s.true_position)
        now = self.condition
        return VehicleReport(
            time_s=self.clock_s,
            unix_s=time.time(),
            position=(*to_local(self.origin, here[0], here[1]), self.origin.altitude_m - here.altitude_m),
            velocity=s.velocity,
            attitude=s.attitude,
            rates=s.rates,
            latitude=here.latitude,
            longitude=here.longitude,
            altitude_m=here.altitude_m,
            true_latitude=truth.latitude,
            true_longitude=truth.longitude,
            true_altitude_m=truth.altitude_m,
            true_velocity=s.true_velocity,
            true_attitude=s.true_attitude,
            throttle=s.throttle,
            origin=self.origin,
            home=self.global_of(self.home),
            home_position=self.local_of(self.home),
            mode=self.state.mode,
            armed=self.state.armed,
            can_arm=commander.can_arm(self.state, now, self.rules),
            failsafe=self.state.failsafe is not None,
            landed=s.landed,
            position_ok=now.position_ok,
            fix_ok=s.gps_age_s < FIX_LOST_S,
            motors_ok=s.motors_ok,
            charge=self.charge,
            battery=now.battery,
        )
