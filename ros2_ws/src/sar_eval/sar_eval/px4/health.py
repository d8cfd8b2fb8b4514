"""The health gate: when vehicles, host or clocks have spoilt an episode, and by what name.

A spoilt episode is INVALID with one of these reasons; it never becomes a collision, a miss or silence.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sar_eval.backends.backend import SpoiltError
from sar_eval.px4.vehicle import PilotedVehicle


@dataclass(frozen=True)
class HealthLimits:
    """What an episode bears; wall time unless said."""

    silence_s: float = 2.0
    """A vehicle from which nothing comes for so long is lost."""
    gap_s: float = 1.5
    """One stream may pause for so long while others come."""
    skew_s: float = 0.050
    """Vehicle time by which a clock may stray from its mapping."""
    arm_s: float = 4.0
    """To arm in."""
    mode_s: float = 2.5
    """A vehicle may be out of OFFBOARD for so long: two heartbeats."""
    fix_s: float = 2.0
    """GPS may be without a fix for so long; no fault of an episode takes it away on these tiers."""
    estimator_s: float = 3.0
    """The estimator may say that it has no position for so long."""
    estimator_gap_s: float = 10.0
    """It tells of itself twice a second of vehicle time; a message may be lost."""
    rtf_floor: float = 0.5
    """Share of the speed asked for that must be reached over ``rtf_window_s``."""
    rtf_window_s: float = 10.0
    late_s: float = 0.5
    """Vehicle time by which a setpoint may come late."""


class Skew(NamedTuple):
    """How far one vehicle's clock is from vehicle 1's: since the start, and around its mapping now."""

    drift_s: float
    residual_s: float


class ClockWatch:
    """Compares a vehicle's clock with vehicle 1's at the same arrivals."""

    WINDOW = 50
    NEWEST = 5

    def __init__(self) -> None:
        self._offsets: deque[float] = deque(maxlen=self.WINDOW)
        self._seen_s = -math.inf
        self._first: float | None = None
        self.worst = Skew(0.0, 0.0)

    def update(self, vehicle: PilotedVehicle, first: PilotedVehicle) -> Skew:
        """Take in the clock samples that came since; the skew now."""
        clock, lead = vehicle.told.clock, first.told.clock
        newest_s = min(clock.last_s, lead.last_s)
        first_new, end = bisect_right(clock.times, self._seen_s), bisect_right(clock.times, newest_s)
        for arrival, reading in zip(clock.times[first_new:end], clock.readings[first_new:end], strict=True):
            self._offsets.append(reading - lead.at(arrival))
        self._seen_s = newest_s
        if len(self._offsets) < self.WINDOW:
            return Skew(0.0, 0.0)
        middle = float(np.median(self._offsets))
        self._first = middle if self._first is None else self._first
        newest = list(self._offsets)[-self.NEWEST :]
        now = Skew(middle - self._first, abs(float(np.median(newest)) - middle))
        self.worst = Skew(max(self.worst.drift_s, abs(now.drift_s)), max(self.worst.residual_s, now.residual_s))
        return now


class Gate:
    """Looks at all vehicles and names what is wrong; "" while nothing is."""

    def __init__(self, vehicles: Sequence[PilotedVehicle], limits: HealthLimits, speed: float) -> None:
        self.vehicles, self.limits, self.speed = vehicles, limits, speed
        self.watches = [ClockWatch() for _ in vehicles]
        self.flying = False
        """From the first tick on: before that only silence counts."""
        self._paces: deque[tuple[float, float]] = deque()
        self._mode_left_s: list[float] = [math.inf] * len(vehicles)
        self.slowest = math.inf

    def check(self, now_s: float) -> None:
        """Raise SpoiltError with the first thing that is wrong."""
        for i, vehicle in enumerate(self.vehicles):
            told, limits = vehicle.told, self.limits
            if now_s - told.heard_s > limits.silence_s:
                raise SpoiltError("vehicle_lost", f"{vehicle.name} has been silent for {now_s - told.heard_s:.1f} s")
            if told.clock_jump_s:
                raise SpoiltError("clock_jump", f"the clock of {vehicle.name} jumped by {told.clock_jump_s:+.2f} s")
            if not self.flying:
                continue
            self._check_streams(vehicle, now_s)
            self._check_arming(vehicle, now_s)
            self._check_mode(i, now_s)
            skew = self.watches[i].update(vehicle, self.vehicles[0])
            if skew.residual_s > limits.skew_s:
                raise SpoiltError(
                    "clock_skew", f"{vehicle.name} strays {1e3 * skew.residual_s:.0f} ms from its mapping"
                )
        if self.flying:
            self._check_pace(now_s)

    def _check_streams(self, vehicle: PilotedVehicle, now_s: float) -> None:
        told = vehicle.told
        for name, series in (("truth", told.truth), ("position", told.estimate), ("attitude", told.attitude)):
            gap_s = told.heard_s - series.last_s
            if gap_s > self.limits.gap_s:
                raise SpoiltError("sensor_gap", f"{vehicle.name} sent no {name} for {gap_s:.1f} s")
        unfixed_s = told.heard_s - told.fix_s
        if unfixed_s > self.limits.fix_s:
            raise SpoiltError("sensor_gap", f"{vehicle.name} has had no GPS fix for {unfixed_s:.1f} s")
        lost_s = now_s - told.estimator_s
        if not told.estimator_ok and lost_s > self.limits.estimator_s:
            flags = f"flags {told.estimator_flags:#b}"
            raise SpoiltError("estimator", f"{vehicle.name} has not known where it is for {lost_s:.1f} s ({flags})")
        if lost_s > self.limits.estimator_gap_s:
            raise SpoiltError("sensor_gap", f"{vehicle.name} said nothing of its estimator for {lost_s:.1f} s")

    def _check_arming(self, vehicle: PilotedVehicle, now_s: float) -> None:
        waited = now_s - vehicle.wanted_since_s
        if vehicle.want_armed and not vehicle.told.armed and waited > self.limits.arm_s:
            said = "; ".join(vehicle.told.texts[-3:]) or "no text"
            answer = vehicle.arm_answer or "no answer"
            raise SpoiltError("arm_refused", f"{vehicle.name} does not arm ({answer}; it says: {said})")

    def _check_mode(self, index: int, now_s: float) -> None:
        vehicle = self.vehicles[index]
        if not (vehicle.want_armed and vehicle.told.armed) or vehicle.told.mode == "offboard":
            self._mode_left_s[index] = math.inf
            return
        self._mode_left_s[index] = min(self._mode_left_s[index], now_s)
        if now_s - self._mode_left_s[index] > self.limits.mode_s:
            raise SpoiltError("offboard_lost", f"{vehicle.name} has left OFFBOARD for {vehicle.told.mode}")

    def _check_pace(self, now_s: float) -> None:
        clock = self.vehicles[0].told.clock
        self._paces.append((now_s, clock.reading_s))
        while now_s - self._paces[0][0] > self.limits.rtf_window_s:
            then_s, then = self._paces.popleft()
            reached = (self._paces[-1][1] - then) / (now_s - then_s) / self.speed
            self.slowest = min(self.slowest, reached)
            if reached < self.limits.rtf_floor:
                raise SpoiltError(
                    "rtf_low", f"vehicle 1 flew at {reached * self.speed:.2f} x real time; {self.speed:g} x was asked"
                )
