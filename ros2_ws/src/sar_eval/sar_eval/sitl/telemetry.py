"""What a vehicle tells: one report of everything it knows at a moment, and a message of each kind made from it.

Voltages, satellites and dilutions are not simulated and say so by MAVLink's own values for unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sar_core.geodesy import Origin
from sar_eval import __version__
from sar_eval.px4.mavlink import EMBEDDED_MARK
from sar_eval.sitl.commander import BatteryLevel, FlightMode

Point = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

HEARTBEAT = 0
VENDOR_ID, PRODUCT_ID = 0x5341, 0x5245
"""Of no USB device: the letters SARE."""
UNKNOWN_U16, UNKNOWN_U8 = 0xFFFF, 0xFF

ONBOARD_RATES = {
    "HEARTBEAT": 1.0,
    "SYS_STATUS": 5.0,
    "SYSTEM_TIME": 1.0,
    "GPS_RAW_INT": 8.0,
    "ATTITUDE": 50.0,
    "ATTITUDE_QUATERNION": 50.0,
    "LOCAL_POSITION_NED": 50.0,
    "GLOBAL_POSITION_INT": 50.0,
    "GPS_GLOBAL_ORIGIN": 1.0,
    "VFR_HUD": 10.0,
    "ALTITUDE": 10.0,
    "BATTERY_STATUS": 0.5,
    "ESTIMATOR_STATUS": 1.0,
    "HOME_POSITION": 0.5,
    "EXTENDED_SYS_STATE": 5.0,
    "HIL_STATE_QUATERNION": 0.0,
    "AUTOPILOT_VERSION": 0.0,
}
"""Hz, like PX4's onboard mode; 0 is sent on request only. PX4 sends ATTITUDE at 100 and LOCAL_POSITION_NED at 30."""
GROUND_RATES = {
    **ONBOARD_RATES,
    "SYS_STATUS": 1.0,
    "GPS_RAW_INT": 5.0,
    "ATTITUDE": 15.0,
    "ATTITUDE_QUATERNION": 10.0,
    "LOCAL_POSITION_NED": 4.0,
    "GLOBAL_POSITION_INT": 5.0,
    "VFR_HUD": 4.0,
    "ALTITUDE": 1.0,
    "ESTIMATOR_STATUS": 0.5,
    "EXTENDED_SYS_STATE": 1.0,
    "SYSTEM_TIME": 0.0,
}


@dataclass(frozen=True)
class VehicleReport:
    """One vehicle at one moment: NED of its own local frame, body rates, degrees, SI."""

    time_s: float
    unix_s: float
    position: Point
    velocity: Point
    attitude: Quaternion
    rates: Point
    latitude: float
    longitude: float
    altitude_m: float
    true_latitude: float
    true_longitude: float
    true_altitude_m: float
    true_velocity: Point
    true_attitude: Quaternion
    throttle: float
    origin: Origin
    home: Origin
    home_position: Point
    mode: FlightMode
    armed: bool
    can_arm: bool
    failsafe: bool
    landed: bool
    position_ok: bool
    fix_ok: bool
    motors_ok: bool
    charge: float
    battery: BatteryLevel

    @property
    def time_ms(self) -> int:
        return round(self.time_s * 1e3) & 0xFFFFFFFF

    @property
    def time_us(self) -> int:
        return round(self.time_s * 1e6)


def euler(q: Quaternion) -> Point:
    """Roll, pitch and yaw of an attitude, rad."""
    w, x, y, z = q
    roll = math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = math.asin(max(-1.0, min(1.0, 2.0 * (w * y - z * x))))
    return roll, pitch, math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def _degrees(angle_deg: float) -> int:
    return round(angle_deg * 1e7)


def _millimetres(length_m: float) -> int:
    return round(length_m * 1e3)


def _centimetres(speeds: Point) -> list[int]:
    return [max(-32768, min(32767, round(speed * 100.0))) for speed in speeds]


def _centidegrees(yaw: float) -> int:
    return round(math.degrees(yaw) * 100.0) % 36000


def _heartbeat(m: Any, r: VehicleReport) -> Any:
    """PX4's autopilot type, for ground stations choose their table of modes by it."""
    base = m.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED | m.MAV_MODE_FLAG_STABILIZE_ENABLED
    if r.mode is not FlightMode.OFFBOARD:
        base |= m.MAV_MODE_FLAG_AUTO_ENABLED | m.MAV_MODE_FLAG_GUIDED_ENABLED
    if r.armed:
        base |= m.MAV_MODE_FLAG_SAFETY_ARMED
        status = m.MAV_STATE_CRITICAL if r.failsafe else m.MAV_STATE_ACTIVE
    else:
        status = m.MAV_STATE_STANDBY if r.can_arm else m.MAV_STATE_UNINIT
    return m.MAVLink_heartbeat_message(m.MAV_TYPE_QUADROTOR, m.MAV_AUTOPILOT_PX4, base, r.mode.word, status, 3)


def _sys_status(m: Any, r: VehicleReport) -> Any:
    always = (
        m.MAV_SYS_STATUS_SENSOR_3D_GYRO
        | m.MAV_SYS_STATUS_SENSOR_3D_ACCEL
        | m.MAV_SYS_STATUS_SENSOR_3D_MAG
        | m.MAV_SYS_STATUS_SENSOR_ABSOLUTE_PRESSURE
        | m.MAV_SYS_STATUS_SENSOR_ATTITUDE_STABILIZATION
        | m.MAV_SYS_STATUS_AHRS
    )
    sometimes = {
        m.MAV_SYS_STATUS_SENSOR_GPS: r.fix_ok,
        m.MAV_SYS_STATUS_SENSOR_XY_POSITION_CONTROL: r.position_ok,
        m.MAV_SYS_STATUS_SENSOR_MOTOR_OUTPUTS: r.motors_ok,
        m.MAV_SYS_STATUS_SENSOR_BATTERY: r.battery < BatteryLevel.CRITICAL,
        m.MAV_SYS_STATUS_PREARM_CHECK: r.can_arm or r.armed,
    }
    present = always | sum(sometimes)
    health = always | sum(bit for bit, well in sometimes.items() if well)
    left = math.ceil(r.charge * 100.0)
    return m.MAVLink_sys_status_message(present, present, health, 0, UNKNOWN_U16, -1, left, 0, 0, 0, 0, 0, 0)


def _gps_raw_int(m: Any, r: VehicleReport) -> Any:
    """The estimate stands in for the raw fix, which the simulator's estimator error has no name for."""
    if not r.fix_ok:
        none = (UNKNOWN_U16,) * 4
        return m.MAVLink_gps_raw_int_message(r.time_us, m.GPS_FIX_TYPE_NO_GPS, 0, 0, 0, *none, UNKNOWN_U8)
    speed = math.hypot(r.velocity[0], r.velocity[1])
    course = math.atan2(r.velocity[1], r.velocity[0])
    return m.MAVLink_gps_raw_int_message(
        r.time_us,
        m.GPS_FIX_TYPE_3D_FIX,
        _degrees(r.latitude),
        _degrees(r.longitude),
        _millimetres(r.altitude_m),
        UNKNOWN_U16,
        UNKNOWN_U16,
        min(round(speed * 100.0), 65534),
        _centidegrees(course),
        UNKNOWN_U8,
    )


def _attitude(m: Any, r: VehicleReport) -> Any:
    return m.MAVLink_attitude_message(r.time_ms, *euler(r.attitude), *r.rates)


def _attitude_quaternion(m: Any, r: VehicleReport) -> Any:
    return m.MAVLink_attitude_quaternion_message(r.time_ms, *r.attitude, *r.rates)


def _local_position(m: Any, r: VehicleReport) -> Any:
    return m.MAVLink_local_position_ned_message(r.time_ms, *r.position, *r.velocity)


def _global_position(m: Any, r: VehicleReport) -> Any:
    return m.MAVLink_global_position_int_message(
        r.time_ms,
        _degrees(r.latitude),
        _degrees(r.longitude),
        _millimetres(r.altitude_m),
        _millimetres(r.altitude_m - r.home.altitude_m),
        *_centimetres(r.velocity),
        _centidegrees(euler(r.attitude)[2]),
    )


def _origin(m: Any, r: VehicleReport) -> Any:
    place = _degrees(r.origin.latitude), _degrees(r.origin.longitude), _millimetres(r.origin.altitude_m)
    return m.MAVLink_gps_global_origin_message(*place, r.time_us)


def _home(m: Any, r: VehicleReport) -> Any:
    place = _degrees(r.home.latitude), _degrees(r.home.longitude), _millimetres(r.home.altitude_m)
    level = (1.0, 0.0, 0.0, 0.0)
    return m.MAVLink_home_position_message(*place, *r.home_position, level, 0.0, 0.0, 0.0, r.time_us)


def _vfr_hud(m: Any, r: VehicleReport) -> Any:
    speed = math.hypot(r.velocity[0], r.velocity[1])
    heading = _centidegrees(euler(r.attitude)[2]) // 100
    throttle = round(100.0 * r.throttle)
    return m.MAVLink_vfr_hud_message(math.nan, speed, heading, throttle, r.altitude_m, -r.velocity[2])


def _altitude(m: Any, r: VehicleReport) -> Any:
    above_home = r.altitude_m - r.home.altitude_m
    return m.MAVLink_altitude_message(
        r.time_us, r.altitude_m, r.altitude_m, -r.position[2], above_home, math.nan, math.nan
    )


def _battery(m: Any, r: VehicleReport) -> Any:
    """MAV_BATTERY_CHARGE_STATE counts from 1, as levels do from 0."""
    unknown = [UNKNOWN_U16] * 10
    left = round(r.charge * 100.0)
    return m.MAVLink_battery_status_message(
        0, m.MAV_BATTERY_FUNCTION_ALL, m.MAV_BATTERY_TYPE_LIPO, 32767, unknown, -1, -1, -1, left, 0, 1 + r.battery
    )


def _estimator(m: Any, r: VehicleReport) -> Any:
    flags = m.ESTIMATOR_ATTITUDE | m.ESTIMATOR_VELOCITY_VERT | m.ESTIMATOR_POS_VERT_ABS
    if r.position_ok:
        flags |= m.ESTIMATOR_VELOCITY_HORIZ | m.ESTIMATOR_POS_HORIZ_REL | m.ESTIMATOR_POS_HORIZ_ABS
        flags |= m.ESTIMATOR_PRED_POS_HORIZ_REL | m.ESTIMATOR_PRED_POS_HORIZ_ABS
    else:
        flags |= m.ESTIMATOR_CONST_POS_MODE
    return m.MAVLink_estimator_status_message(r.time_us, flags, *([math.nan] * 8))


def _landed_state(m: Any, r: VehicleReport) -> Any:
    state = m.MAV_LANDED_STATE_IN_AIR
    if r.landed:
        state = m.MAV_LANDED_STATE_ON_GROUND
    elif r.mode is FlightMode.TAKEOFF:
        state = m.MAV_LANDED_STATE_TAKEOFF
    elif r.mode is FlightMode.LAND:
        state = m.MAV_LANDED_STATE_LANDING
    return m.MAVLink_extended_sys_state_message(m.MAV_VTOL_STATE_UNDEFINED, state)


def _truth(m: Any, r: VehicleReport) -> Any:
    """The truth, with no time, as PX4 sends it."""
    return m.MAVLink_hil_state_quaternion_message(
        0,
        r.true_attitude,
        *r.rates,
        _degrees(r.true_latitude),
        _degrees(r.true_longitude),
        _millimetres(r.true_altitude_m),
        *_centimetres(r.true_velocity),
        *([0] * 5),
    )


def _system_time(m: Any, r: VehicleReport) -> Any:
    return m.MAVLink_system_time_message(round(r.unix_s * 1e6), r.time_ms)


def software_version(text: str) -> int:
    """Our own version as MAVLink packs it: major, minor, patch, and 0 for a development version."""
    major, minor, patch = (int(part) for part in text.split(".")[:3])
    return major << 24 | minor << 16 | patch << 8


def _version(m: Any, _: VehicleReport) -> Any:
    can = (
        m.MAV_PROTOCOL_CAPABILITY_COMMAND_INT
        | m.MAV_PROTOCOL_CAPABILITY_PARAM_ENCODE_BYTEWISE
        | m.MAV_PROTOCOL_CAPABILITY_SET_POSITION_TARGET_LOCAL_NED
        | m.MAV_PROTOCOL_CAPABILITY_MAVLINK2
    )
    version, nothing = software_version(__version__), bytes(8)
    mark = list(EMBEDDED_MARK)
    return m.MAVLink_autopilot_version_message(
        can, version, version, 0, 0, mark, list(nothing), list(nothing), VENDOR_ID, PRODUCT_ID, 0
    )


MAKERS: dict[str, Callable[[Any, VehicleReport], Any]] = {
    "HEARTBEAT": _heartbeat,
    "SYS_STATUS": _sys_status,
    "SYSTEM_TIME": _system_time,
    "GPS_RAW_INT": _gps_raw_int,
    "ATTITUDE": _attitude,
    "ATTITUDE_QUATERNION": _attitude_quaternion,
    "LOCAL_POSITION_NED": _local_position,
    "GLOBAL_POSITION_INT": _global_position,
    "GPS_GLOBAL_ORIGIN": _origin,
    "VFR_HUD": _vfr_hud,
    "ALTITUDE": _altitude,
    "BATTERY_STATUS": _battery,
    "ESTIMATOR_STATUS": _estimator,
    "HOME_POSITION": _home,
    "EXTENDED_SYS_STATE": _landed_state,
    "HIL_STATE_QUATERNION": _truth,
    "AUTOPILOT_VERSION": _version,
}


def number_of(m: Any, name: str) -> int:
    """The id of a message by its name."""
    return int(getattr(m, f"MAVLINK_MSG_ID_{name}"))
