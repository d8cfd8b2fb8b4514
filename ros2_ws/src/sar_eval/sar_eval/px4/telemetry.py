"""What one vehicle tells, kept by arrival: series to be looked up at an instant, and the newest word on its state."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.frames import swap_attitude, swap_body, swap_world
from sar_core.geodesy import Origin, to_local
from sar_eval.px4.mavlink import mode_name

Floats = NDArray[np.float64]

KEPT_S = 3.0
"""Wall time that series reach back."""
JUMP_BACK_S, JUMP_AHEAD_S, MOST_SPEED = 0.2, 1.0, 10.0
"""A clock that goes back by more, or ahead by more than the fastest simulation could, has jumped."""
ESTIMATOR_NEEDS = 0b110111
"""ESTIMATOR_STATUS flags: attitude, velocity both ways, absolute position both ways."""
PREARM_CHECK = 0x10000000
"""SYS_STATUS health: the vehicle would arm in the mode it is in."""
GPS_3D = 3
ON_GROUND = 1


class Series:
    """Samples over time, looked up by linear interpolation; it reaches back ``kept_s``."""

    def __init__(self, kept_s: float = KEPT_S) -> None:
        self._kept_s = kept_s
        self.times: list[float] = []
        self.rows: list[Floats] = []

    @property
    def last_s(self) -> float:
        return self.times[-1] if self.times else -math.inf

    def add(self, arrival_s: float, row: Floats) -> None:
        """Take in a sample; one that comes with the arrival of the last, or before, replaces nothing."""
        if arrival_s <= self.last_s:
            return
        self.times.append(arrival_s)
        self.rows.append(row)
        if self.times[0] < arrival_s - 2.0 * self._kept_s:
            cut = bisect_left(self.times, arrival_s - self._kept_s)
            del self.times[:cut], self.rows[:cut]

    def at(self, instant_s: float) -> Floats:
        """The sample at an instant; beyond either end the one at that end."""
        k = bisect_left(self.times, instant_s)
        if k == 0:
            return self.rows[0]
        if k == len(self.times):
            return self.rows[-1]
        before, after = self.times[k - 1], self.times[k]
        share = (instant_s - before) / (after - before)
        row: Floats = self.rows[k - 1] + share * (self.rows[k] - self.rows[k - 1])
        return row


class Clock:
    """A vehicle's own time over arrival, both rising."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.readings: list[float] = []

    @property
    def last_s(self) -> float:
        return self.times[-1] if self.times else -math.inf

    @property
    def reading_s(self) -> float:
        """What it read last."""
        return self.readings[-1] if self.readings else -math.inf

    def add(self, arrival_s: float, reading_s: float) -> None:
        if arrival_s <= self.last_s or reading_s <= self.reading_s:
            return
        self.times.append(arrival_s)
        self.readings.append(reading_s)
        if self.times[0] < arrival_s - 2.0 * KEPT_S:
            cut = bisect_left(self.times, arrival_s - KEPT_S)
            del self.times[:cut], self.readings[:cut]

    def at(self, arrival_s: float) -> float:
        """What it read at an arrival; between two and beyond the ends along the line of the nearest two."""
        return _along(self.times, self.readings, arrival_s)

    def instant(self, reading_s: float) -> float:
        """The arrival at which it read so much."""
        return _along(self.readings, self.times, reading_s)


def _along(x: list[float], y: list[float], at: float) -> float:
    if len(x) == 1:
        return y[0]
    k = min(max(bisect_left(x, at), 1), len(x) - 1)
    return y[k - 1] + (at - x[k - 1]) / (x[k] - x[k - 1]) * (y[k] - y[k - 1])


class Identity(NamedTuple):
    """Who flies: AUTOPILOT_VERSION in words."""

    version: str
    git: str
    custom: bytes


class Telemetry:
    """The state of one vehicle in our frames: ENU/FLU, positions from the common origin.

    Rows of ``truth``: position 3, velocity 3, attitude 4 (w, x, y, z), body rates 3. Rows of ``estimate``: position 3,
    velocity 3. Rows of ``attitude``: 4. ``clock`` holds the vehicle's own time over arrival.
    """

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.truth, self.estimate, self.attitude = Series(), Series(), Series()
        self.clock = Clock()
        self.heard_s = -math.inf
        self.heartbeat_s = -math.inf
        self.armed = False
        self.checked_s = -math.inf
        self.would_arm_since_s = math.inf
        """By its own clock."""
        self.mode = ""
        self.landed = True
        self.charge = 1.0
        self.fix_s = -math.inf
        self.estimator_s = -math.inf
        self.estimator_ok = False
        self.estimator_flags = 0
        self.identity: Identity | None = None
        self.origin_told: tuple[float, float] | None = None
        self.texts: list[str] = []
        self.clock_jump_s = 0.0

    def take(self, arrival_s: float, message: Any) -> None:
        """Take in any message; those of no interest only tell that the vehicle is there."""
        self.heard_s = max(self.heard_s, arrival_s)
        reader = getattr(self, f"_{message.get_type().lower()}", None)
        if reader is not None:
            reader(arrival_s, message)

    def _tell_time(self, arrival_s: float, boot_ms: int) -> None:
        now = boot_ms / 1000.0
        if self.clock.times:
            step = now - self.clock.reading_s
            if step < -JUMP_BACK_S or step > JUMP_AHEAD_S + MOST_SPEED * (arrival_s - self.clock.last_s):
                self.clock_jump_s = self.clock_jump_s or step
        self.clock.add(arrival_s, now)

    def _heartbeat(self, arrival_s: float, m: Any) -> None:
        if m.get_srcComponent() != 1:
            return
        self.heartbeat_s = arrival_s
        self.armed = bool(m.base_mode & 128)
        self.mode = mode_name(m.custom_mode)

    def _hil_state_quaternion(self, arrival_s: float, m: Any) -> None:
        north, east = to_local(self.origin, m.lat * 1e-7, m.lon * 1e-7)
        row = np.empty(13)
        row[0:3] = east, north, m.alt * 1e-3 - self.origin.altitude_m
        row[3:6] = m.vy * 1e-2, m.vx * 1e-2, -m.vz * 1e-2
        row[6:10] = swap_attitude(np.array(m.attitude_quaternion))
        row[10:13] = swap_body(np.array([m.rollspeed, m.pitchspeed, m.yawspeed]))
        if self.truth.rows and np.dot(row[6:10], self.truth.rows[-1][6:10]) < 0.0:
            row[6:10] *= -1.0
        self.truth.add(arrival_s, row)

    def _local_position_ned(self, arrival_s: float, m: Any) -> None:
        self._tell_time(arrival_s, m.time_boot_ms)
        ned = np.array([[m.x, m.y, m.z], [m.vx, m.vy, m.vz]])
        self.estimate.add(arrival_s, swap_world(ned).reshape(6))

    def _attitude_quaternion(self, arrival_s: float, m: Any) -> None:
        self._tell_time(arrival_s, m.time_boot_ms)
        q = swap_attitude(np.array([m.q1, m.q2, m.q3, m.q4]))
        if self.attitude.rows and np.dot(q, self.attitude.rows[-1]) < 0.0:
            q = -q
        self.attitude.add(arrival_s, q)

    def _extended_sys_state(self, _: float, m: Any) -> None:
        self.landed = m.landed_state == ON_GROUND

    def _sys_status(self, arrival_s: float, m: Any) -> None:
        self.checked_s = arrival_s
        would = m.onboard_control_sensors_health & PREARM_CHECK and self.clock.readings
        self.would_arm_since_s = min(self.would_arm_since_s, self.clock.reading_s) if would else math.inf

    def _battery_status(self, _: float, m: Any) -> None:
        if m.battery_remaining >= 0:
            self.charge = m.battery_remaining / 100.0

    def _gps_raw_int(self, arrival_s: float, m: Any) -> None:
        if m.fix_type >= GPS_3D:
            self.fix_s = arrival_s

    def _estimator_status(self, arrival_s: float, m: Any) -> None:
        self.estimator_ok = m.flags & ESTIMATOR_NEEDS == ESTIMATOR_NEEDS
        self.estimator_flags = m.flags
        if self.estimator_ok:
            self.estimator_s = arrival_s

    def _gps_global_origin(self, _: float, m: Any) -> None:
        self.origin_told = m.latitude * 1e-7, m.longitude * 1e-7

    def _autopilot_version(self, _: float, m: Any) -> None:
        word = m.flight_sw_version
        version = f"{word >> 24 & 255}.{word >> 16 & 255}.{word >> 8 & 255}"
        custom = bytes(m.flight_custom_version)
        self.identity = Identity(version, custom[::-1].hex(), custom)

    def _statustext(self, _: float, m: Any) -> None:
        self.texts = [*self.texts[-19:], m.text]
