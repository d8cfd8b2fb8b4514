"""Vehicles of real autopilots as the world of an episode: the same first and step as the embedded simulator's.

Vehicle 1's clock is the episode's. A tick is over when it says so and every vehicle has been heard from beyond that
moment; what each vehicle told is looked up at the same instants, by the kernel's time of arrival.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_core.geodesy import Origin, to_global
from sar_core.mailboxes import Delivered
from sar_eval.backends.backend import Receiving, SimTick, SpoiltError, Stop, heed, never, time_of, times_of
from sar_eval.backends.embedded import receiver_for
from sar_eval.px4.binary import find_px4
from sar_eval.px4.containers import ContainerVehicles
from sar_eval.px4.health import Gate, HealthLimits
from sar_eval.px4.launcher import Launcher, Processes
from sar_eval.px4.mavlink import EMBEDDED_MARK, ORIGIN, dialect
from sar_eval.px4.parameters import Settling, as_text, parameters_of
from sar_eval.px4.vehicle import PilotedVehicle
from sar_eval.scenario.model import Episode
from sar_sim.radio.link import Air
from sar_sim.vehicle.faults import FaultKind
from sar_sim.vehicle.fleet import FleetState
from sar_swarm.piloting.controller import Command

Floats = NDArray[np.float64]

READY_S = 60.0
"""Wall time the vehicles have to boot and to find where they are, at real time or faster."""
STREAM_FIRST_S = 1.5
"""Vehicle time for which setpoints are streamed before OFFBOARD is asked for."""
FRAME_WITHIN_M = 3.0
"""A vehicle whose estimate is nearer to its truth than this has taken the common frame."""
POLL_S = 0.004
"""Wall time between looks at what has arrived: a wake-up per datagram would cost more than it tells."""
CHECK_S = 0.05
STEADY_S = 4.0
"""Vehicle time for which a vehicle's own checks must have let it arm before the episode begins."""
STAND_S = 0.05
"""Wall time between setpoints while vehicles stand."""
_FREE = np.full(3, np.nan)
STANDING = Command(False, _FREE, _FREE, math.pi / 2.0)


class Px4World:
    """N vehicles, each an autopilot process of its own, and the air between them."""

    def __init__(
        self,
        episode: Episode,
        launcher: Launcher,
        speed: float = 1.0,
        stop: Stop = never,
        limits: HealthLimits | None = None,
    ) -> None:
        s = episode.scenario
        self.episode, self.launcher, self.speed, self.stop = episode, launcher, speed, stop
        self.air = Air(s.drones, episode.seed, episode.index, s.link.loss, s.link.latency_s, s.link.jitter_s)
        self.tick = 0
        self.vehicles: list[PilotedVehicle] = []
        self.limits = limits or HealthLimits()
        self._ready_s = READY_S / min(speed, 1.0)
        self.zero_s = 0.0
        self._last_track = np.zeros((s.drones, 3))
        self._checked_s = self._asked_frame_s = self._stood_s = -math.inf
        self.late_s = 0.0
        self.estimate_errors: list[float] = []

    def receiver(self) -> Receiving | None:
        return receiver_for(self.episode)

    def open(self) -> None:
        """Start the vehicles and bring them to the point where a take-off is all that is left to order."""
        homes = [_home(x, y) for x, y in self.episode.spawns[:, :2]]
        try:
            for instance in range(len(homes)):
                vehicle = PilotedVehicle(instance, ORIGIN)
                self.vehicles.append(vehicle)
            self.gate = Gate(self.vehicles, self.limits, self.speed)
            self.launcher.start(homes, as_text(parameters_of(self.episode)), self.speed)
            self._get_ready()
        except BaseException:
            self.close()
            raise

    def _get_ready(self) -> None:
        deadline = time.monotonic() + self._ready_s
        self._wait(deadline, lambda v: math.isfinite(v.told.heartbeat_s), "gave no heartbeat")
        for vehicle in self.vehicles:
            vehicle.ask_streams()
        self._wait(deadline, _identified, "did not say what it is")
        self._check_identity()
        for vehicle in self.vehicles:
            vehicle.settling = Settling(parameters_of(self.episode))
        self._wait(deadline, lambda v: not v.settling.open, "does not have all parameters it was given")
        self._wait(deadline, lambda v: not v.requests and bool(v.told.truth.times), "did not start its streams")
        for vehicle in self.vehicles:
            vehicle.silence_others()
        self._wait(deadline, lambda v: v.told.estimator_ok, "found no position")
        for vehicle in self.vehicles:
            vehicle.set_origin()
        self._wait(deadline, self._in_frame, f"did not take the common frame within {FRAME_WITHIN_M:g} m")
        self._wait(deadline, self._steady, "does not pass its own checks for arming")

    def _check_identity(self) -> None:
        """Nothing flown on our own vehicle may be called PX4, nor the other way round."""
        for vehicle in self.vehicles:
            assert vehicle.told.identity is not None
            embedded = vehicle.told.identity.custom == EMBEDDED_MARK
            if embedded != (self.episode.tier == "sitl"):
                found = "the embedded autopilot" if embedded else "another autopilot"
                raise SpoiltError(
                    "wrong_autopilot", f"{vehicle.name} is {found}; tier {self.episode.tier} was asked for", final=True
                )

    def _in_frame(self, vehicle: PilotedVehicle) -> bool:
        """Asked again and again until estimate and truth agree: the message has no answer that counts."""
        told = vehicle.told
        if not told.estimate.rows or not told.truth.rows:
            return False
        off = np.linalg.norm(told.estimate.rows[-1][:3] - told.truth.rows[-1][:3])
        if off < FRAME_WITHIN_M and told.origin_told is not None:
            return True
        if time.monotonic() - self._asked_frame_s > 1.0:
            self._asked_frame_s = time.monotonic()
            for each in self.vehicles:
                each.set_origin()
        return False

    def _steady(self, vehicle: PilotedVehicle) -> bool:
        """Would arm, for a while already: a new origin unsettles PX4's height, and its checks notice late."""
        return vehicle.told.clock.reading_s - vehicle.told.would_arm_since_s > STEADY_S

    def _wait(self, deadline: float, done: Callable[[PilotedVehicle], bool], complaint: str) -> None:
        """Until every vehicle is so far; standing setpoints are streamed meanwhile."""
        while not all(done(vehicle) for vehicle in self.vehicles):
            now = self.stand()
            heed(self.stop)
            if now > deadline:
                if not any(math.isfinite(v.told.heard_s) for v in self.vehicles):
                    raise SpoiltError("not_ready", f"no vehicle said anything within {self._ready_s:g} s", final=True)
                late = ", ".join(v.name for v in self.vehicles if not done(v))
                unsettled = sorted({name for v in self.vehicles for name in v.settling.open})
                which = f" ({', '.join(unsettled[:5])})" if unsettled else ""
                raise SpoiltError("not_ready", f"{late} {complaint} within {self._ready_s:g} s{which}")

    def stand(self) -> float:
        """Pump, with setpoints to stand still as often as PX4 wants some."""
        now = self.pump()
        if now - self._stood_s > STAND_S:
            self._stood_s = now
            for vehicle in self.vehicles:
                vehicle.fly(STANDING, now)
        return now

    def pump(self) -> float:
        """Listen, answer, now and then look after everyone's health; returns the time."""
        time.sleep(POLL_S)
        for vehicle in self.vehicles:
            vehicle.listen()
        now = time.monotonic()
        for vehicle in self.vehicles:
            vehicle.talk(now)
        if now - self._checked_s >= CHECK_S:
            self._checked_s = now
            self.launcher.check()
            if all(math.isfinite(vehicle.told.heard_s) for vehicle in self.vehicles):
                self.gate.check(now)
        return now

    def _take_control(self) -> None:
        """OFFBOARD, after a stream that PX4 trusts, in which it would arm."""
        deadline = time.monotonic() + self._ready_s
        streamed_from = [v.told.clock.reading_s for v in self.vehicles]
        self._wait(
            deadline,
            lambda v: v.told.clock.reading_s - streamed_from[v.instance] > STREAM_FIRST_S,
            "has a clock that stands still",
        )
        for vehicle in self.vehicles:
            vehicle.ask_offboard()
        self._wait(deadline, lambda v: not v.requests, "did not answer the request for OFFBOARD")
        refusals = [f"{v.name}, {text}" for v in self.vehicles for text in v.refused]
        if refusals:
            raise SpoiltError("not_ready", "; ".join(refusals))
        asked_s = time.monotonic()
        self._wait(
            deadline,
            lambda v: v.told.checked_s > asked_s and math.isfinite(v.told.would_arm_since_s),
            "would not arm in OFFBOARD",
        )

    def first(self) -> SimTick:
        """The world before anything moves; from here the episode's clock runs."""
        self._take_control()
        self.zero_s = self.begin()
        self.gate.flying = True
        self._await(0.0, self.stand)
        state = self._state(0.0)
        self._last_track = state.position
        silence = Delivered(0, np.zeros((0, 3), dtype=np.int64), self.air.frozen.copy())
        return SimTick(0, 0.0, np.zeros(1), state.position[None], state, silence)

    def begin(self) -> float:
        """What vehicle 1's clock reads when the episode begins."""
        return self.vehicles[0].told.clock.reading_s

    def step(self, commands: Sequence[Command], search_begin_s: float) -> SimTick:
        """Send the commands and wait until the tick is over for all; a spoilt one carries its reason instead."""
        now = time.monotonic()
        for vehicle, command in zip(self.vehicles, commands, strict=True):
            vehicle.fly(command, now)
        self._fail_links(time_of(self.tick) - search_begin_s)
        self.tick += 1
        times = times_of(self.tick)
        time_s = float(times[-1])
        self._await(time_s, self.pump)
        track = self._track(times)
        return SimTick(self.tick, time_s, times, track, self._state(time_s), self.air.carry(time_s))

    def _await(self, time_s: float, pump: Callable[[], float]) -> None:
        """Until vehicle 1's clock is past a moment of the episode and all have been heard from after it."""
        clock = self.vehicles[0].told.clock
        late = clock.reading_s - self.zero_s - time_s
        self.late_s = max(self.late_s, late)
        if late > self.limits.late_s:
            raise SpoiltError("late", f"setpoints came {late:.2f} s of vehicle time late: this host is too slow")
        while clock.reading_s < self.zero_s + time_s or self.behind(time_s):
            pump()

    def behind(self, time_s: float) -> bool:
        instant = self.vehicles[0].told.clock.instant(self.zero_s + time_s)
        told = [vehicle.told for vehicle in self.vehicles]
        return any(min(t.truth.last_s, t.estimate.last_s, t.attitude.last_s) < instant for t in told)

    def _track(self, times: Floats) -> Floats:
        """True positions [K, N, 3] at the instants of a tick; the first are the last of the tick before."""
        track = np.array([self.truth(float(t))[:, :3] for t in times])
        track[0] = self._last_track
        self._last_track = track[-1].copy()
        return track

    def truth(self, time_s: float) -> Floats:
        """Everyone's true state [N, 13] at a moment of the episode: rows as in :class:`Telemetry`."""
        instant = self.vehicles[0].told.clock.instant(self.zero_s + time_s)
        return np.array([vehicle.told.truth.at(instant) for vehicle in self.vehicles])

    def _state(self, time_s: float) -> FleetState:
        """Truth and estimate, each array whole in memory, as kernels are compiled for."""
        told = [vehicle.told for vehicle in self.vehicles]
        instant = told[0].clock.instant(self.zero_s + time_s)
        truth = self.truth(time_s)
        estimate = np.array([t.estimate.at(instant) for t in told])
        attitude = _unit(np.array([t.attitude.at(instant) for t in told]))
        self.estimate_errors.append(float(np.max(np.linalg.norm(estimate[:, :3] - truth[:, :3], axis=1))))
        return FleetState(
            position=truth[:, 0:3].copy(),
            velocity=truth[:, 3:6].copy(),
            attitude=_unit(truth[:, 6:10]),
            rates=truth[:, 10:13].copy(),
            est_position=estimate[:, 0:3].copy(),
            est_velocity=estimate[:, 3:6].copy(),
            est_attitude=attitude,
            charge=np.array([t.charge for t in told]),
            landed=np.array([t.landed for t in told]),
            gps_age_s=np.array([max(instant - t.fix_s, 0.0) * self.speed for t in told]),
            motors_ok=np.ones(len(told), dtype=np.bool_),
            tilt_rad=np.arccos(np.clip(1.0 - 2.0 * (attitude[:, 1] ** 2 + attitude[:, 2] ** 2), -1.0, 1.0)),
        )

    def _fail_links(self, search_s: float) -> None:
        """The faults that touch only the air between the drones; others are refused before the flight."""
        active = [fault for fault in self.episode.faults if fault.active(search_s)]
        for i in range(len(self.vehicles)):
            kinds = {fault.kind for fault in active if fault.drone == i}
            self.air.silence[i] = FaultKind.LINK_LOSS in kinds
            self.air.frozen[i] = FaultKind.FROZEN_NEIGHBOUR in kinds

    def facts(self) -> dict[str, Any]:
        """What the record's ``run`` tells of these vehicles: host facts, never compared."""
        if not self.vehicles or self.vehicles[0].told.identity is None:
            return {}
        worst = [watch.worst for watch in self.gate.watches]
        identity = self.vehicles[0].told.identity
        return {
            "autopilot": {
                "version": identity.version,
                "git": identity.git,
                "parameters_left_out": sorted({name for v in self.vehicles for name in v.settling.lacking}),
                "speed_asked": self.speed,
                "clock_drift_s": round(max(w.drift_s for w in worst), 4),
                "skew_residual_s": round(max(w.residual_s for w in worst), 4),
                "slowest_rtf_share": round(self.gate.slowest, 3) if math.isfinite(self.gate.slowest) else None,
                "latest_setpoint_s": round(self.late_s, 4),
                "estimate_error_m": quantiles(self.estimate_errors),
                "garbage_frames": sum(v.wire.garbage for v in self.vehicles),
            }
        }

    def close(self) -> None:
        """End the vehicles; safe to call again."""
        self.launcher.stop()
        for vehicle in self.vehicles:
            vehicle.close()


def _identified(vehicle: PilotedVehicle) -> bool:
    """The answer to the request and the message it asks for travel apart, and either may be lost."""
    if vehicle.told.identity is None and not vehicle.requests:
        vehicle.ask_identity()
    return vehicle.told.identity is not None


def _home(x: float, y: float) -> Origin:
    latitude, longitude = to_global(ORIGIN, y, x)
    return Origin(latitude, longitude, ORIGIN.altitude_m)


def _unit(q: Floats) -> Floats:
    unit: Floats = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return unit


def quantiles(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    return {f"p{p}": round(float(np.percentile(values, p)), 3) for p in (50, 95, 100)}


def launcher_of(tier: str) -> Launcher:
    """What brings the vehicles of a tier to life: containers that wait for orders, or processes of our own."""
    orders = os.environ.get("SAR_HANGAR")
    if orders:
        return ContainerVehicles(Path(orders))
    return Processes(find_px4() if tier == "sih" else None)


def require(tier: str) -> None:
    """Refuse a tier of ours whose vehicles cannot be flown from here."""
    dialect()
    launcher_of(tier)


def open_vehicles(episode: Episode, speed: float, stop: Stop) -> Px4World:
    """PX4's own simulators, or our vehicle in their place, ready for a take-off."""
    world = Px4World(episode, launcher_of(episode.tier), speed, stop)
    world.open()
    return world
