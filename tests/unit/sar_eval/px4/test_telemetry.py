"""What a vehicle tells, kept by arrival: series, clocks, frames, and every message packed and parsed by pymavlink."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sar_eval.px4.mavlink import ORIGIN, custom_mode, dialect, mode_name
from sar_eval.px4.telemetry import Clock, Series, Telemetry
from sar_eval.px4.vehicle import setpoint_of
from sar_eval.px4.wire import frames
from sar_swarm.piloting.controller import Command

FREE = np.full(3, np.nan)


@pytest.fixture
def codec() -> Any:
    return dialect().MAVLink(None, srcSystem=1, srcComponent=1)


def sent(codec: Any, message: Any) -> Any:
    """A message as it comes off the wire."""
    return codec.decode(bytearray(message.pack(codec)))


def test_a_series_is_linear_between_samples_and_level_beyond() -> None:
    series = Series()
    for t, x in ((1.0, 10.0), (2.0, 20.0), (2.0, 99.0), (4.0, 0.0)):
        series.add(t, np.array([x]))
    assert [float(series.at(t)[0]) for t in (0.0, 1.5, 2.0, 3.0, 9.0)] == [10.0, 15.0, 20.0, 10.0, 0.0]


def test_a_series_forgets_what_is_long_past() -> None:
    series = Series()
    for k in range(10_000):
        series.add(0.02 * k, np.zeros(1))
    assert len(series.times) < 400


def test_a_clock_reads_both_ways_at_any_speed() -> None:
    clock = Clock()
    for k in range(100):
        clock.add(5.0 + 0.01 * k, 100.0 + 0.02 * k)
    assert clock.at(5.505) == pytest.approx(101.01)
    assert clock.instant(101.01) == pytest.approx(5.505)
    assert clock.instant(102.5) == pytest.approx(6.25)


def test_truth_comes_in_our_frame(codec: Any) -> None:
    """Two metres north, three east, five up; nose to the east; climbing and turning."""
    told = Telemetry(ORIGIN)
    m = dialect()
    north, east = 2.0 / 6_371_000.0, 3.0 / (6_371_000.0 * math.cos(math.radians(ORIGIN.latitude)))
    half = math.sqrt(0.5)
    message = m.MAVLink_hil_state_quaternion_message(
        0,
        [half, 0.0, 0.0, half],
        *(0.1, 0.2, 0.3),
        round((ORIGIN.latitude + math.degrees(north)) * 1e7),
        round((ORIGIN.longitude + math.degrees(east)) * 1e7),
        round(1000.0 * (ORIGIN.altitude_m + 5.0)),
        *(100, 200, -300, 0, 0, 0, 0, 0),
    )
    told.take(1.0, sent(codec, message))
    row = told.truth.rows[0]
    assert row[0:3] == pytest.approx([3.0, 2.0, 5.0], abs=0.01)
    assert row[3:6] == pytest.approx([2.0, 1.0, 3.0])
    assert abs(row[6]) == pytest.approx(1.0, abs=1e-6), "nose east is no rotation in ENU"
    assert row[10:13] == pytest.approx([0.1, -0.2, -0.3])


def test_estimate_and_clock_come_with_the_local_position(codec: Any) -> None:
    told = Telemetry(ORIGIN)
    message = dialect().MAVLink_local_position_ned_message(12_500, 1.0, 2.0, -3.0, 4.0, 5.0, -6.0)
    told.take(7.0, sent(codec, message))
    assert told.estimate.rows[0].tolist() == [2.0, 1.0, 3.0, 5.0, 4.0, 6.0]
    assert told.clock.reading_s == 12.5
    assert told.heard_s == 7.0


@pytest.mark.parametrize(("step_s", "jumped"), [(0.02, False), (0.3, False), (2.0, True), (-0.1, False), (-1.0, True)])
def test_a_clock_that_jumps_is_noticed(codec: Any, step_s: float, jumped: bool) -> None:
    told = Telemetry(ORIGIN)
    for arrival, now in ((1.0, 10.0), (1.02, 10.0 + step_s)):
        message = dialect().MAVLink_local_position_ned_message(round(1000.0 * now), *([0.0] * 6))
        told.take(arrival, sent(codec, message))
    assert bool(told.clock_jump_s) is jumped
    if jumped:
        assert told.clock_jump_s == pytest.approx(step_s)


def test_the_state_of_a_vehicle_is_what_it_said_last(codec: Any) -> None:
    told, m = Telemetry(ORIGIN), dialect()
    told.take(1.0, sent(codec, m.MAVLink_heartbeat_message(2, 12, 128 | 1, custom_mode("offboard"), 4, 3)))
    told.take(1.0, sent(codec, m.MAVLink_extended_sys_state_message(0, 2)))
    told.take(1.0, sent(codec, m.MAVLink_gps_raw_int_message(0, 3, 0, 0, 0, 0, 0, 0, 0, 10)))
    told.take(1.0, sent(codec, m.MAVLink_estimator_status_message(0, 0b110111, *([0.0] * 8))))
    battery = m.MAVLink_battery_status_message(0, 0, 0, 0, [65535] * 10, 0, 0, 0, 73)
    told.take(1.0, sent(codec, battery))
    assert (told.armed, told.mode, told.landed, told.fix_s) == (True, "offboard", False, 1.0)
    assert (told.estimator_ok, told.charge) == (True, 0.73)
    told.take(2.0, sent(codec, m.MAVLink_estimator_status_message(0, 0b000111, *([0.0] * 8))))
    assert not told.estimator_ok, "no position"


def test_modes_have_the_names_of_their_words() -> None:
    assert mode_name(custom_mode("offboard")) == "offboard"
    assert mode_name(custom_mode("auto", "land")) == "auto.land"
    assert mode_name(99 << 16) == "99"


def test_frames_are_found_among_garbage_and_cut_ones_left(codec: Any) -> None:
    m = dialect()
    beat = m.MAVLink_heartbeat_message(2, 12, 0, 0, 4, 3).pack(codec)
    ack = m.MAVLink_command_ack_message(400, 0).pack(codec)
    found = list(frames(b"\x00\x17garbage" + beat + ack + beat[:-3]))
    assert [number for number, _ in found] == [0, 77]
    assert found[0][1] == beat


def test_a_command_becomes_a_masked_setpoint_in_ned() -> None:
    row, mask, yaw = setpoint_of(
        Command(True, np.array([math.nan, math.nan, 30.0]), np.array([4.0, 3.0, math.nan]), 0.0)
    )
    assert row.tolist() == [0.0, 0.0, -30.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0]
    assert mask == 1 | 2 | 32 | 64 | 128 | 256 | 2048
    assert yaw == pytest.approx(math.pi / 2.0)


def test_a_drone_that_is_told_nothing_stands_still() -> None:
    """PX4 takes a stream in which everything is masked for no stream at all."""
    row, mask, _ = setpoint_of(Command(False, FREE, FREE, 0.0))
    assert row.tolist() == [0.0] * 9
    assert mask & (8 | 16 | 32) == 0
    assert mask & (1 | 2 | 4) == 7


def test_a_vehicle_would_arm_since_its_own_checks_say_so_by_its_own_clock(codec: Any) -> None:
    told, m = Telemetry(ORIGIN), dialect()

    def check(arrival_s: float, health: int) -> float:
        status = m.MAVLink_sys_status_message(health, health, health, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        told.take(arrival_s, sent(codec, status))
        return told.would_arm_since_s

    ready = m.MAV_SYS_STATUS_PREARM_CHECK
    assert check(0.5, ready) == math.inf, "a clock that was not heard yet says nothing"
    for k in range(1, 5):
        moment = m.MAVLink_local_position_ned_message(10_000 + 1000 * k, 0, 0, 0, 0, 0, 0)
        told.take(float(k), sent(codec, moment))
        since = check(k + 0.1, ready if k != 2 else 0)
        assert since == {1: 11.0, 2: math.inf, 3: 13.0, 4: 13.0}[k]
    assert told.checked_s == 4.1
