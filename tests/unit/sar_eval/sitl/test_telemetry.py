"""What a vehicle reports is what the simulator shows, in MAVLink's units."""

from __future__ import annotations

import math

import pytest

from sar_core.geodesy import to_local
from sar_eval.px4.mavlink import ORIGIN
from sar_eval.sitl.telemetry import GROUND_RATES, MAKERS, ONBOARD_RATES, number_of, software_version

YAW = 0.5


def told(bench, name: str):
    return bench.craft.message(number_of(bench.m, name))


@pytest.fixture
def flying(bench):
    turned = (math.cos(YAW / 2), 0.0, 0.0, math.sin(YAW / 2))
    bench.wait(
        12.345,
        landed=False,
        position=(30.0, 40.0, -10.0),
        velocity=(1.0, -2.0, 0.5),
        attitude=turned,
        rates=(0.1, 0.2, 0.3),
        true_position=(30.5, 40.5, -10.2),
        true_velocity=(1.1, -2.1, 0.4),
        charge=0.456,
    )
    return bench


def test_every_stream_has_a_maker_and_packs(flying) -> None:
    assert set(ONBOARD_RATES) == set(GROUND_RATES) == set(MAKERS)
    for name in MAKERS:
        assert told(flying, name).pack(flying.m.MAVLink(None))


def test_local_position_counts_from_where_it_started(flying) -> None:
    local = told(flying, "LOCAL_POSITION_NED")
    assert local.time_boot_ms == 12345
    assert (local.x, local.y, local.z) == pytest.approx((20.0, 20.0, -10.0), abs=2e-3)
    assert (local.vx, local.vy, local.vz) == (1.0, -2.0, 0.5)


def test_global_position_is_the_estimate_and_truth_is_the_truth(flying) -> None:
    place, truth = told(flying, "GLOBAL_POSITION_INT"), told(flying, "HIL_STATE_QUATERNION")
    assert to_local(ORIGIN, place.lat * 1e-7, place.lon * 1e-7) == pytest.approx((30.0, 40.0), abs=0.02)
    assert (place.alt, place.relative_alt) == (round((ORIGIN.altitude_m + 10.0) * 1e3), 10_000)
    assert (place.vx, place.vy, place.vz, place.hdg) == (100, -200, 50, round(math.degrees(YAW) * 100))
    assert to_local(ORIGIN, truth.lat * 1e-7, truth.lon * 1e-7) == pytest.approx((30.5, 40.5), abs=0.02)
    assert (truth.time_usec, truth.alt) == (0, round((ORIGIN.altitude_m + 10.2) * 1e3))
    assert (truth.vx, truth.vy, truth.vz) == (110, -210, 40)


def test_attitude_both_ways(flying) -> None:
    assert told(flying, "ATTITUDE").yaw == pytest.approx(YAW)
    assert told(flying, "ATTITUDE_QUATERNION").q4 == pytest.approx(math.sin(YAW / 2))
    assert told(flying, "ATTITUDE").yawspeed == 0.3


def test_battery_and_what_is_not_simulated(flying) -> None:
    battery, status = told(flying, "BATTERY_STATUS"), told(flying, "SYS_STATUS")
    assert (battery.battery_remaining, status.battery_remaining) == (46, 46)
    assert battery.voltages == [65535] * 10
    assert status.voltage_battery == 65535
    assert told(flying, "GPS_RAW_INT").satellites_visible == 255


def test_a_lost_fix_shows_everywhere(flying) -> None:
    m = flying.m
    assert told(flying, "GPS_RAW_INT").fix_type == m.GPS_FIX_TYPE_3D_FIX
    flying.wait(20.0, gps_age_s=6.0)
    assert told(flying, "GPS_RAW_INT").fix_type == m.GPS_FIX_TYPE_NO_GPS
    assert not told(flying, "ESTIMATOR_STATUS").flags & m.ESTIMATOR_POS_HORIZ_ABS
    assert not told(flying, "SYS_STATUS").onboard_control_sensors_health & m.MAV_SYS_STATUS_SENSOR_GPS


def test_landed_state_follows_the_flight(bench) -> None:
    m = bench.m
    assert told(bench, "EXTENDED_SYS_STATE").landed_state == m.MAV_LANDED_STATE_ON_GROUND
    bench.command(400, 1)
    bench.command(22, 0, 0, 0, math.nan, math.nan, math.nan, math.nan)
    bench.wait(1.0, landed=False, position=(10.0, 20.0, -1.0))
    assert told(bench, "EXTENDED_SYS_STATE").landed_state == m.MAV_LANDED_STATE_TAKEOFF
    bench.wait(2.0, position=(10.0, 20.0, -2.4))
    assert told(bench, "EXTENDED_SYS_STATE").landed_state == m.MAV_LANDED_STATE_IN_AIR
    bench.command(21)
    assert told(bench, "EXTENDED_SYS_STATE").landed_state == m.MAV_LANDED_STATE_LANDING


def test_version_is_packed_as_mavlink_wants_it() -> None:
    assert software_version("1.2.3") == 0x01020300
