"""PX4 parameter files (QGroundControl's format) and what the embedded autopilot makes of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import InputError
from sar_sim.vehicle.autopilot import POSITION_EVERY, RATE_DT, Gains
from sar_sim.vehicle.estimator import AssumedNoise

Floats = NDArray[np.float64]
Parameters = Mapping[str, float]

VERTICAL_RATIO = 1.5
"""Of vertical to horizontal accuracy of a fix, where EKF2 has only the latter."""

_GAIN_NAMES: dict[str, str] = {
    "pos_p_xy": "MPC_XY_P",
    "pos_p_z": "MPC_Z_P",
    "vel_p_xy": "MPC_XY_VEL_P_ACC",
    "vel_i_xy": "MPC_XY_VEL_I_ACC",
    "vel_d_xy": "MPC_XY_VEL_D_ACC",
    "vel_p_z": "MPC_Z_VEL_P_ACC",
    "vel_i_z": "MPC_Z_VEL_I_ACC",
    "vel_d_z": "MPC_Z_VEL_D_ACC",
    "vel_max_xy": "MPC_XY_VEL_MAX",
    "vel_max_up": "MPC_Z_VEL_MAX_UP",
    "vel_max_down": "MPC_Z_VEL_MAX_DN",
    "tilt_max_air": "MPC_TILTMAX_AIR",
    "tilt_max_land": "MPC_TILTMAX_LND",
    "thr_hover": "MPC_THR_HOVER",
    "thr_min": "MPC_THR_MIN",
    "thr_max": "MPC_THR_MAX",
    "thr_xy_margin": "MPC_THR_XY_MARG",
    "acc_decouple": "MPC_ACC_DECOUPLE",
    "takeoff_ramp_time": "MPC_TKO_RAMP_T",
    "spoolup_time": "COM_SPOOLUP_TIME",
    "use_hover_estimate": "MPC_USE_HTE",
    "hover_range": "HTE_THR_RANGE",
    "hover_noise": "HTE_HT_NOISE",
    "hover_error_init": "HTE_HT_ERR_INIT",
    "hover_gate": "HTE_ACC_GATE",
    "hover_vxy_threshold": "HTE_VXY_THR",
    "hover_vz_threshold": "HTE_VZ_THR",
    "roll_p": "MC_ROLL_P",
    "pitch_p": "MC_PITCH_P",
    "yaw_p": "MC_YAW_P",
    "yaw_weight": "MC_YAW_WEIGHT",
    "roll_rate_max": "MC_ROLLRATE_MAX",
    "pitch_rate_max": "MC_PITCHRATE_MAX",
    "yaw_rate_max": "MC_YAWRATE_MAX",
    "roll_rate_p": "MC_ROLLRATE_P",
    "roll_rate_i": "MC_ROLLRATE_I",
    "roll_rate_d": "MC_ROLLRATE_D",
    "roll_int_lim": "MC_RR_INT_LIM",
    "pitch_rate_p": "MC_PITCHRATE_P",
    "pitch_rate_i": "MC_PITCHRATE_I",
    "pitch_rate_d": "MC_PITCHRATE_D",
    "pitch_int_lim": "MC_PR_INT_LIM",
    "yaw_rate_p": "MC_YAWRATE_P",
    "yaw_rate_i": "MC_YAWRATE_I",
    "yaw_rate_d": "MC_YAWRATE_D",
    "yaw_int_lim": "MC_YR_INT_LIM",
}
_IN_DEGREES = {"tilt_max_air", "tilt_max_land", "roll_rate_max", "pitch_rate_max", "yaw_rate_max"}
# Where a value outside makes the law divide by zero or turn over; narrower ones are the user's business, as in PX4.
_RANGES: dict[str, tuple[float, float]] = {
    "vel_p_xy": (0.01, 100.0),
    "vel_p_z": (0.01, 100.0),
    "vel_max_xy": (0.0, 1000.0),
    "vel_max_up": (0.0, 1000.0),
    "vel_max_down": (0.0, 1000.0),
    "tilt_max_air": (0.0, 89.0),
    "tilt_max_land": (0.0, 89.0),
    "thr_hover": (0.1, 0.8),
    "thr_min": (0.0, 1.0),
    "thr_max": (0.0, 1.0),
    "thr_xy_margin": (0.0, 1.0),
    "takeoff_ramp_time": (0.0, 60.0),
    "spoolup_time": (0.0, 60.0),
    "yaw_weight": (0.0, 1.0),
}
# An overall gain per axis scales P, I and D (PX4's ideal form).
_AXIS_GAIN = {"roll_rate": "MC_ROLLRATE_K", "pitch_rate": "MC_PITCHRATE_K", "yaw_rate": "MC_YAWRATE_K"}

_INT32, _FLOAT = "6", "9"


def read_parameters(path: Path) -> dict[str, float]:
    """Name to value from a QGroundControl parameter file: vehicle, component, name, value, type per line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot read the parameter file ({error})") from error
    values: dict[str, float] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        where = f"{path}:{number}"
        if len(fields) != 5:
            raise InputError(
                f"{where}: {line!r} is not a parameter; expected 5 tab-separated fields: "
                "vehicle, component, name, value, type"
            )
        _, _, name, text, kind = (f.strip() for f in fields)
        if kind not in (_INT32, _FLOAT):
            raise InputError(f"{where}: {name} has type {kind!r}; allowed: 6 (int32) or 9 (float)")
        try:
            value = float(int(text)) if kind == _INT32 else float(text)
        except ValueError as error:
            raise InputError(f"{where}: {name} = {text!r} is not a number of type {kind}") from error
        if not math.isfinite(value):
            raise InputError(f"{where}: {name} = {text} must be finite")
        if name in values:
            raise InputError(f"{where}: {name} is given twice")
        values[name] = value
    if not values:
        raise InputError(f"{path}: no parameters in the file")
    return values


def _get(values: Parameters, name: str, source: str) -> float:
    try:
        return values[name]
    except KeyError:
        raise InputError(f"{source}: parameter {name} is missing; the embedded autopilot needs it") from None


def gains_from(values: Parameters, source: str = "parameters") -> Gains:
    """The control law's gains, in SI units and radians."""
    fields: dict[str, float] = {}
    for field, name in _GAIN_NAMES.items():
        value = _get(values, name, source)
        fields[field] = math.radians(value) if field in _IN_DEGREES else value
    for axis, name in _AXIS_GAIN.items():
        factor = _get(values, name, source)
        for term in "pid":
            fields[f"{axis}_{term}"] *= factor
    for field, (low, high) in _RANGES.items():
        value = values[_GAIN_NAMES[field]]
        if not low <= value <= high:
            raise InputError(f"{source}: {_GAIN_NAMES[field]} = {value:g}; allowed: {low:g} to {high:g}")
    if fields["thr_xy_margin"] >= fields["thr_max"]:
        raise InputError(
            f"{source}: MPC_THR_XY_MARG = {fields['thr_xy_margin']:g} must be less than "
            f"MPC_THR_MAX = {fields['thr_max']:g}"
        )
    b0, a1, a2 = _second_order_low_pass(_get(values, "IMU_GYRO_CUTOFF", source), RATE_DT)
    return Gains(
        **fields,
        vel_deriv_alpha=_first_order_low_pass(_get(values, "MPC_VELD_LP", source), POSITION_EVERY * RATE_DT),
        yaw_torque_alpha=_first_order_low_pass(_get(values, "MC_YAW_TQ_CUTOFF", source), RATE_DT),
        dgyro_alpha=_first_order_low_pass(_get(values, "IMU_DGYRO_CUTOFF", source), RATE_DT),
        gyro_b0=b0,
        gyro_a1=a1,
        gyro_a2=a2,
    )


def _first_order_low_pass(cutoff_hz: float, dt: float) -> float:
    """Weight of the new sample; a cut-off of 0 or less switches the filter off, as in PX4."""
    return dt / (dt + 1.0 / (2.0 * math.pi * cutoff_hz)) if cutoff_hz > 0.0 else 1.0


def _second_order_low_pass(cutoff_hz: float, dt: float) -> tuple[float, float, float]:
    """Butterworth biquad (b0 = b2 = b1 / 2, a1, a2) by the bilinear transform.

    Off when the cut-off is 0 or not below half the sample rate, as in PX4.
    """
    if cutoff_hz <= 0.0 or cutoff_hz >= 0.5 / dt:
        return 1.0, 2.0, 1.0
    warped = math.tan(math.pi * cutoff_hz * dt)
    scale = 1.0 + math.sqrt(2.0) * warped + warped * warped
    return (
        warped * warped / scale,
        2.0 * (warped * warped - 1.0) / scale,
        (1.0 - math.sqrt(2.0) * warped + warped * warped) / scale,
    )


def mixer_from(values: Parameters, source: str = "parameters") -> tuple[Floats, Floats]:
    """Normalised control allocation (mix [4 motors, roll pitch yaw thrust], and its inverse) from CA_ROTOR*.

    Pseudo-inverse of the geometric effectiveness, scaled per axis as PX4's control allocator does.
    """
    if _get(values, "CA_ROTOR_COUNT", source) != 4:
        raise InputError(f"{source}: CA_ROTOR_COUNT = {values['CA_ROTOR_COUNT']:g}; the embedded vehicle has 4 rotors")
    px, py, km = (
        np.array([_get(values, f"CA_ROTOR{i}_{key}", source) for i in range(4)]) for key in ("PX", "PY", "KM")
    )
    effectiveness = np.stack([-py, px, km, -np.ones(4)])
    if np.linalg.matrix_rank(effectiveness) < 4:
        raise InputError(
            f"{source}: the rotors of CA_ROTOR*_PX, _PY and _KM cannot turn the vehicle about all three axes; "
            "expected four rotors around the centre, two for each direction of rotation"
        )
    mix = np.linalg.pinv(effectiveness)
    roll_pitch = max(
        math.sqrt(float(np.sum(mix[:, axis] ** 2)) / (np.count_nonzero(np.abs(mix[:, axis]) > 1e-3) / 2))
        for axis in (0, 1)
    )
    mix[:, 0:2] /= roll_pitch
    mix[:, 2] /= np.max(mix[:, 2])
    mix[:, 3] /= np.mean(np.abs(mix[:, 3]))
    mix[np.abs(mix) < 1e-3] = 0.0
    return np.ascontiguousarray(mix), np.ascontiguousarray(np.linalg.inv(mix))


def assumed_noise(
    values: Parameters, reported_h: float, reported_v: float, reported_speed: float, source: str = "parameters"
) -> AssumedNoise:
    """The noise EKF2 assumes: its parameters as floors under the accuracies the receiver reports."""
    gps_p = _get(values, "EKF2_GPS_P_NOISE", source)
    speed = max(reported_speed, _get(values, "EKF2_GPS_V_NOISE", source))
    return AssumedNoise(
        accel_mps2=_get(values, "EKF2_ACC_NOISE", source),
        gyro_rps=_get(values, "EKF2_GYR_NOISE", source),
        accel_bias_mps3=_get(values, "EKF2_ACC_B_NOISE", source),
        gps_horizontal_m=max(reported_h, gps_p),
        gps_vertical_m=max(reported_v, VERTICAL_RATIO * gps_p),
        gps_velocity_mps=speed,
        gps_vertical_velocity_mps=VERTICAL_RATIO * speed,
        heading_rad=_get(values, "EKF2_HEAD_NOISE", source),
    )
