"""Commands and messages: what is obeyed, what is refused, and what the answer says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.geodesy import to_global, to_local
from sar_eval.px4.mavlink import EMBEDDED_MARK, ORIGIN, mode_name
from sar_eval.sitl.commander import FlightMode
from sar_eval.sitl.inbox import COMMANDS
from sar_eval.sitl.paramtable import INT32, REAL32
from sar_eval.sitl.telemetry import MAKERS, number_of
from tests.unit.sar_eval.sitl.conftest import Bench

ACCEPTED, REJECTED, DENIED, UNSUPPORTED, FAILED = range(5)
ARM, SET_MODE, TAKEOFF, LAND, RTL, REPOSITION = 400, 176, 22, 21, 20, 192
SET_INTERVAL, REQUEST, INJECT = 511, 512, 420
NAN = math.nan


def of_type(answers: list[Any], name: str) -> list[Any]:
    return [answer for answer in answers if answer.get_type() == name]


def take_off(bench: Any) -> None:
    assert bench.command(ARM, 1) == ACCEPTED
    assert bench.command(TAKEOFF, 0, 0, 0, NAN, NAN, NAN, NAN) == ACCEPTED
    bench.wait(1.0, landed=False, position=(10.0, 20.0, -2.5))
    assert bench.craft.state.mode is FlightMode.HOLD


def test_the_first_word_to_a_stranger_is_what_it_is(bench) -> None:
    hello = bench.m.MAVLink_heartbeat_message(6, 8, 0, 0, 4, 3)
    assert "not PX4" in bench.tell(hello)[0].text
    assert bench.tell(hello) == []
    assert "not PX4" in bench.tell(hello, ("127.0.0.1", 50000))[0].text


def test_version_tells_the_embedded_autopilot_apart(bench) -> None:
    for number, numbers in ((REQUEST, (148,)), (520, (1,))):
        answers = bench.tell(
            bench.m.MAVLink_command_long_message(1, 1, number, 0, *numbers, *([0.0] * (7 - len(numbers))))
        )
        (version,) = of_type(answers, "AUTOPILOT_VERSION")
        assert bytes(version.flight_custom_version) == EMBEDDED_MARK
        assert version.flight_sw_version >> 24 == 0  # ours, not PX4's 1.x
        assert version.vendor_id and version.product_id


def test_offboard_rules_over_the_wire(bench) -> None:
    assert bench.command(SET_MODE, 1, 6) == ACCEPTED
    assert bench.command(ARM, 1) == REJECTED
    assert bench.command(ARM, 1, 21196) == REJECTED
    bench.setpoint()
    assert bench.command(ARM, 1) == ACCEPTED
    assert mode_name(bench.craft.report().mode.word) == "offboard"
    bench.wait(1.1)
    assert bench.craft.state.mode is FlightMode.HOLD


def test_a_failsafe_is_seen_in_heartbeat_and_text(bench) -> None:
    bench.setpoint()
    bench.command(SET_MODE, 1, 6)
    bench.command(ARM, 1)
    bench.wait(0.5, landed=False)
    bench.heard()
    bench.wait(1.2)
    (text, *_) = bench.heard("STATUSTEXT")
    assert text.text == "Failsafe: OFFBOARD stream lost, HOLD"
    bench.craft.tell()
    heartbeat = bench.heard("HEARTBEAT")[0]
    assert mode_name(heartbeat.custom_mode) == "auto.loiter"
    assert heartbeat.system_status == bench.m.MAV_STATE_CRITICAL
    assert heartbeat.base_mode & bench.m.MAV_MODE_FLAG_SAFETY_ARMED


def test_take_off_climbs_to_its_altitude_and_holds(bench) -> None:
    take_off(bench)
    row = bench.wait(2.0)
    assert row[0:3] == pytest.approx([10.0, 20.0, -2.5])


def test_take_off_takes_an_altitude_above_sea_level(bench) -> None:
    bench.command(ARM, 1)
    bench.command(TAKEOFF, 0, 0, 0, NAN, NAN, NAN, ORIGIN.altitude_m + 40.0)
    bench.wait(1.0, landed=False, position=(10.0, 20.0, -30.0))
    assert bench.craft.state.mode is FlightMode.TAKEOFF
    bench.wait(2.0, position=(10.0, 20.0, -39.5))
    assert bench.craft.state.mode is FlightMode.HOLD


def test_home_is_where_it_armed(bench) -> None:
    bench.wait(0.5, position=(11.0, 22.0, 0.1))
    bench.command(ARM, 1)
    assert bench.craft.home == (11.0, 22.0, 0.1)


def test_on_the_ground_nothing_is_commanded_before_take_off(bench) -> None:
    bench.command(ARM, 1)
    assert np.isnan(bench.wait(0.5)).all()


def test_landing_and_returning(bench) -> None:
    take_off(bench)
    assert bench.command(LAND) == ACCEPTED
    assert bench.wait(3.0)[5] == pytest.approx(0.7)
    assert bench.command(RTL) == ACCEPTED
    assert bench.craft.state.mode is FlightMode.RTL


def test_disarming_in_flight_needs_the_magic_number(bench) -> None:
    take_off(bench)
    assert bench.command(ARM, 0) == REJECTED
    assert bench.command(ARM, 0, 21196) == ACCEPTED
    assert not bench.craft.state.armed


def test_reposition_goes_where_it_is_told(bench) -> None:
    take_off(bench)
    latitude, longitude = to_global(ORIGIN, 12.0, 20.0)
    place = round(latitude * 1e7), round(longitude * 1e7)
    order = bench.m.MAVLink_command_int_message(1, 1, 0, REPOSITION, 0, 0, -1, 1, 0, NAN, *place, ORIGIN.altitude_m + 8)
    (ack,) = of_type(bench.tell(order), "COMMAND_ACK")
    assert ack.result == ACCEPTED
    row = bench.wait(2.0)
    assert row[0:2] == pytest.approx([12.0, 20.0], abs=0.02)
    assert row[2] < -2.5
    assert bench.command(REPOSITION, -1, 0) == UNSUPPORTED


@pytest.mark.parametrize(("number", "numbers"), [(SET_MODE, (1, 3)), (SET_MODE, (1, 4, 4)), (SET_MODE, (0, 0))])
def test_modes_that_are_not_there_are_refused(bench, number: int, numbers: tuple[float, ...]) -> None:
    assert bench.command(number, *numbers) == REJECTED
    assert bench.craft.state.mode is FlightMode.HOLD


def test_what_is_unknown_is_unsupported_and_nonsense_is_denied(bench) -> None:
    assert bench.command(31000) == UNSUPPORTED
    assert bench.command(ARM, 3) == UNSUPPORTED
    assert bench.command(ARM, NAN) == UNSUPPORTED
    assert bench.command(SET_MODE, NAN, NAN) == DENIED
    assert bench.command(REQUEST, math.inf) == DENIED
    assert bench.command(REQUEST, 76) == DENIED


ANY_FLOAT = st.floats(width=32) | st.sampled_from([0.0, 1.0, 2.0, 6.0, 148.0, 1e30, -1e30])


@given(st.data())
def test_no_numbers_can_break_it(data: st.DataObject) -> None:
    """Whatever a command, a setpoint, an origin or a parameter holds, it is answered and telemetry goes on."""
    bench = Bench()
    m = bench.m
    numbers = data.draw(st.lists(ANY_FLOAT, min_size=7, max_size=7))
    whole = data.draw(st.tuples(*[st.integers(-(2**31), 2**31 - 1)] * 3))
    text = data.draw(st.binary(max_size=16))
    command = data.draw(st.sampled_from([*COMMANDS, 31000]))
    for message in (
        m.MAVLink_command_long_message(1, 1, command, 0, *numbers),
        m.MAVLink_command_int_message(1, 1, 0, command, 0, 0, *numbers[:4], *whole[:2], numbers[6]),
        m.MAVLink_set_position_target_local_ned_message(0, 1, 1, 1, 0, *numbers, *numbers[:4]),
        m.MAVLink_set_gps_global_origin_message(1, *whole),
        m.MAVLink_param_set_message(1, 1, data.draw(st.sampled_from([text, b"SAR_CLOCK_JUMP"])), numbers[0], REAL32),
        m.MAVLink_param_request_read_message(1, 1, text, data.draw(st.integers(-1, 32767))),
    ):
        bench.tell(message)
    for name in MAKERS:
        assert bench.craft.message(number_of(m, name)).pack(m.MAVLink(None))
    bench.command(ARM, 1)
    assert bench.wait(1.0).shape == (11,)


def test_orders_for_others_are_not_obeyed(bench) -> None:
    for system, component in ((2, 1), (0, 0), (1, 100)):
        order = bench.m.MAVLink_command_long_message(system, component, ARM, 0, 1, 0, 0, 0, 0, 0, 0)
        assert of_type(bench.tell(order), "COMMAND_ACK") == []
    assert not bench.craft.state.armed


def test_set_mode_message_is_obeyed(bench) -> None:
    (ack,) = of_type(bench.tell(bench.m.MAVLink_set_mode_message(1, 1, FlightMode.OFFBOARD.word)), "COMMAND_ACK")
    assert (ack.command, ack.result) == (SET_MODE, ACCEPTED)
    assert bench.craft.state.mode is FlightMode.OFFBOARD


@pytest.mark.parametrize(
    ("mask", "commanded"),
    [
        (0x9F8, (0, 1, 2)),
        (0x9C7, (3, 4, 5)),
        (0xDC7, (3, 4, 5)),
        (0x9C0, (0, 1, 2, 3, 4, 5)),
        (0x800, (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)),
    ],
)
def test_a_mask_says_what_to_follow(bench, mask: int, commanded: tuple[int, ...]) -> None:
    bench.setpoint(mask=mask)
    expected = {*commanded} | ({9} if not mask >> 10 & 1 else set())
    assert set(np.flatnonzero(np.isfinite(bench.craft.stream_row))) == expected


@pytest.mark.parametrize("change", [{"frame": 8}, {"mask": 0xFFF}, {"z": NAN, "x": NAN, "y": NAN}])
def test_a_setpoint_nobody_can_fly_is_no_stream(bench, change: dict[str, float]) -> None:
    bench.setpoint(**change)
    assert bench.craft.stream_at_s is None


def test_setpoints_are_in_the_vehicles_own_frame(bench) -> None:
    """It started at 10 m north, 20 m east of the simulator's origin, which is its own zero."""
    bench.setpoint(1.0, 2.0, -3.0)
    assert bench.craft.stream_row[0:3] == pytest.approx([11.0, 22.0, -3.0], abs=1e-3)


def test_a_new_origin_moves_the_frame_not_the_vehicle(bench) -> None:
    before = bench.craft.report()
    assert before.position == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)
    place = round(ORIGIN.latitude * 1e7), round(ORIGIN.longitude * 1e7), round((ORIGIN.altitude_m - 1.0) * 1e3)
    answers = bench.tell(bench.m.MAVLink_set_gps_global_origin_message(1, *place))
    (origin,) = of_type(answers, "GPS_GLOBAL_ORIGIN")
    assert (origin.latitude, origin.longitude, origin.altitude) == place
    after = bench.craft.report()
    assert (after.latitude, after.longitude) == (before.latitude, before.longitude)
    expected = to_local(bench.craft.origin, before.latitude, before.longitude)
    assert after.position == pytest.approx((*expected, -1.0), abs=1e-6)
    assert expected == pytest.approx((10.0, 20.0), abs=0.02)
    bench.setpoint(5.0, 5.0, -3.0)
    assert bench.craft.stream_row[0:3] == pytest.approx([5.0, 5.0, -2.0], abs=0.02)


def test_an_impossible_origin_is_not_taken(bench) -> None:
    before = bench.craft.origin
    bench.tell(bench.m.MAVLink_set_gps_global_origin_message(1, 2_000_000_000, 0, 0))
    assert bench.craft.origin == before


def test_intervals_are_set_and_told_per_link(bench) -> None:
    m = bench.m
    assert bench.command(SET_INTERVAL, m.MAVLINK_MSG_ID_HIL_STATE_QUATERNION, 50_000) == ACCEPTED
    (interval,) = of_type(
        bench.tell(m.MAVLink_command_long_message(1, 1, 510, 0, m.MAVLINK_MSG_ID_HIL_STATE_QUATERNION, *([0.0] * 6))),
        "MESSAGE_INTERVAL",
    )
    assert interval.interval_us == 50_000
    assert bench.craft.links[1].schedule.interval_us(m.MAVLINK_MSG_ID_HIL_STATE_QUATERNION) == -1
    assert bench.command(SET_INTERVAL, m.MAVLINK_MSG_ID_HEARTBEAT, 1e6) == FAILED
    assert bench.command(SET_INTERVAL, m.MAVLINK_MSG_ID_RC_CHANNELS, 1e6) == FAILED
    assert bench.command(SET_INTERVAL, m.MAVLINK_MSG_ID_ATTITUDE, NAN) == FAILED


def test_streams_go_home_and_to_the_last_guest_and_replies_only_to_who_asked(bench) -> None:
    home, guest = ("127.0.0.1", 14540), ("127.0.0.1", 50000)
    assert bench.command(REQUEST, 148) == ACCEPTED
    bench.tell(bench.m.MAVLink_heartbeat_message(6, 8, 0, 0, 4, 3), guest)
    bench.craft.tell()
    assert {to for _, to in bench.sent if to[1] != 14550} == {home, guest}
    bench.sent.clear()
    order = bench.m.MAVLink_command_long_message(1, 1, REQUEST, 0, 148, 0, 0, 0, 0, 0, 0)
    bench.craft.links[0].reply([order], guest)
    assert [to for _, to in bench.sent] == [guest]


def test_a_ground_station_gets_telemetry_once_it_speaks(bench) -> None:
    ground = ("127.0.0.1", 14550)
    bench.craft.tell()
    assert {message.get_type() for message in bench.heard(peer=ground)} == {"HEARTBEAT"}
    bench.craft.links[1].meet(ground)
    bench.wait(1.0)
    bench.craft.tell()
    assert {"ATTITUDE", "GLOBAL_POSITION_INT", "SYS_STATUS"} <= {m.get_type() for m in bench.heard(peer=ground)}


def test_parameters_are_listed_read_and_written(bench) -> None:
    m = bench.m
    listed = of_type(bench.tell(m.MAVLink_param_request_list_message(1, 1)), "PARAM_VALUE")
    assert [value.param_id for value in listed] == list(bench.craft.table)
    assert [value.param_index for value in listed] == list(range(len(bench.craft.table)))
    (value,) = bench.tell(m.MAVLink_param_request_read_message(1, 1, b"MIS_TAKEOFF_ALT", -1))
    assert (value.param_value, value.param_type) == (2.5, REAL32)
    (same,) = bench.tell(m.MAVLink_param_request_read_message(1, 1, b"", value.param_index))
    assert same.param_id == "MIS_TAKEOFF_ALT"
    assert bench.tell(m.MAVLink_param_request_read_message(1, 1, b"NO_SUCH", -1)) == []
    (value,) = bench.tell(m.MAVLink_param_set_message(1, 1, b"MIS_TAKEOFF_ALT", 6.0, REAL32))
    assert value.param_value == 6.0
    assert bench.craft.take_off_goal(NAN)[2] == -6.0


def test_a_refused_parameter_is_answered_with_the_value_that_holds(bench) -> None:
    m = bench.m
    bench.tell(m.MAVLink_heartbeat_message(6, 8, 0, 0, 4, 3))
    answers = bench.tell(m.MAVLink_param_set_message(1, 1, b"MPC_XY_P", 3.0, REAL32))
    assert of_type(answers, "PARAM_VALUE")[0].param_value == pytest.approx(0.95)
    assert any("fixed" in text.text for text in of_type(answers, "STATUSTEXT"))
    for name, kind in ((b"NO_SUCH", REAL32), (b"MIS_TAKEOFF_ALT", INT32)):
        answers = bench.tell(m.MAVLink_param_set_message(1, 1, name, 3.0, kind))
        assert of_type(answers, "PARAM_VALUE") == []
        assert of_type(answers, "STATUSTEXT") != []


def test_failures_are_injected_only_where_allowed(bench) -> None:
    m = bench.m
    assert bench.command(INJECT, m.FAILURE_UNIT_SENSOR_GPS, m.FAILURE_TYPE_OFF, 0) == ACCEPTED
    assert bench.body.gps_lost
    assert bench.command(INJECT, m.FAILURE_UNIT_SENSOR_GPS, m.FAILURE_TYPE_OK, 0) == ACCEPTED
    assert not bench.body.gps_lost
    assert bench.command(INJECT, m.FAILURE_UNIT_SYSTEM_MOTOR, m.FAILURE_TYPE_OFF, 2) == ACCEPTED
    assert bench.body.motors_left == [1.0, 0.0, 1.0, 1.0]
    assert bench.command(INJECT, m.FAILURE_UNIT_SYSTEM_BATTERY, m.FAILURE_TYPE_OFF, 0) == ACCEPTED
    assert bench.craft.report().charge == 0.0
    assert bench.command(INJECT, m.FAILURE_UNIT_SENSOR_BARO, m.FAILURE_TYPE_OFF, 0) == UNSUPPORTED
    assert bench.command(INJECT, m.FAILURE_UNIT_SENSOR_GPS, m.FAILURE_TYPE_STUCK, 0) == UNSUPPORTED
    bench.craft.table.set("SYS_FAILURE_EN", 0)
    assert bench.command(INJECT, m.FAILURE_UNIT_SENSOR_GPS, m.FAILURE_TYPE_OFF, 0) == DENIED


def test_a_lost_position_lands(bench) -> None:
    take_off(bench)
    bench.wait(8.0, gps_age_s=5.1)
    assert bench.craft.state.mode is FlightMode.LAND
    assert not bench.craft.report().position_ok


def test_there_are_no_missions(bench) -> None:
    (count,) = of_type(bench.tell(bench.m.MAVLink_mission_request_list_message(1, 1)), "MISSION_COUNT")
    assert count.count == 0


def test_clocks_can_be_compared(bench) -> None:
    bench.wait(3.0)
    (answer,) = of_type(bench.tell(bench.m.MAVLink_timesync_message(0, 12345)), "TIMESYNC")
    assert (answer.tc1, answer.ts1) == (3_000_000_000, 12345)


def write(bench: Any, name: str, value: float) -> None:
    assert bench.craft.table.set(name, value) is None
    bench.craft.parameters_changed()


def test_hook_refuse_arming(bench) -> None:
    write(bench, "SAR_REFUSE_ARM", 1)
    assert bench.command(ARM, 1) == REJECTED
    write(bench, "SAR_REFUSE_ARM", 0)
    assert bench.command(ARM, 1) == ACCEPTED


def test_hook_clock_jump(bench) -> None:
    bench.wait(2.0)
    write(bench, "SAR_CLOCK_JUMP", 7.5)
    bench.wait(2.02)
    assert bench.craft.report().time_ms == 9520


def test_hook_mute(bench) -> None:
    write(bench, "SAR_MUTE", 1)
    bench.wait(1.0)
    bench.craft.tell()
    assert {message.get_type() for message in bench.heard()} == {"HEARTBEAT"}
    assert bench.command(ARM, 1) == ACCEPTED


def test_hook_after_waits_for_arming(bench) -> None:
    write(bench, "SAR_AFTER", 5.0)
    write(bench, "SAR_MUTE", 1)
    bench.wait(1.0)
    bench.craft.tell()
    assert bench.heard("ATTITUDE") != []
    bench.command(ARM, 1)
    bench.wait(5.9)
    bench.craft.tell()
    assert bench.heard("ATTITUDE") != []
    bench.wait(6.1)
    bench.craft.tell()
    assert bench.heard("ATTITUDE") == []


def test_hook_drop(bench) -> None:
    """The bench's dice always show 0.5."""
    bench.wait(1.0)
    write(bench, "SAR_DROP", 0.4)
    assert not bench.craft.loses()
    write(bench, "SAR_DROP", 0.6)
    assert bench.craft.loses()
    bench.craft.tell()
    assert bench.sent == []
