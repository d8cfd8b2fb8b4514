"""PX4's multicopter control law, one vehicle at a time, as compiled pure functions over one row of memory.

Here: gains, the memory row, quaternion attitude control, rate PID and control allocation with desaturation; the outer
loops are in :mod:`sar_sim.vehicle.positioncontrol`. Frame NED/FRD, SI units, thrust and torque normalised. The law is
that of PX4 v1.17 (modules mc_pos_control, mc_att_control, mc_rate_control, control_allocator,
mc_hover_thrust_estimator) and obeys the same parameter names; docs/fidelity.md tells what is left out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined

Floats = NDArray[np.float64]

GRAVITY = 9.80665
RATE_DT = 0.004
POSITION_EVERY = 3
"""The position loop follows the estimator's output: every third 4 ms step (EKF2_PREDICT_US = 10 ms, rounded)."""


class Gains(NamedTuple):
    """The PX4 parameters the law reads, in SI units, radians and per-step filter constants.

    Built by :mod:`sar_sim.vehicle.parameters`.
    """

    pos_p_xy: float
    pos_p_z: float
    vel_p_xy: float
    vel_i_xy: float
    vel_d_xy: float
    vel_p_z: float
    vel_i_z: float
    vel_d_z: float
    vel_max_xy: float
    vel_max_up: float
    vel_max_down: float
    tilt_max_air: float
    tilt_max_land: float
    thr_hover: float
    thr_min: float
    thr_max: float
    thr_xy_margin: float
    acc_decouple: float
    vel_deriv_alpha: float
    takeoff_ramp_time: float
    spoolup_time: float
    use_hover_estimate: float
    hover_range: float
    hover_noise: float
    hover_error_init: float
    hover_gate: float
    hover_vxy_threshold: float
    hover_vz_threshold: float
    roll_p: float
    pitch_p: float
    yaw_p: float
    yaw_weight: float
    roll_rate_max: float
    pitch_rate_max: float
    yaw_rate_max: float
    roll_rate_p: float
    roll_rate_i: float
    roll_rate_d: float
    roll_int_lim: float
    pitch_rate_p: float
    pitch_rate_i: float
    pitch_rate_d: float
    pitch_int_lim: float
    yaw_rate_p: float
    yaw_rate_i: float
    yaw_rate_d: float
    yaw_int_lim: float
    yaw_torque_alpha: float
    gyro_b0: float
    gyro_a1: float
    gyro_a2: float
    dgyro_alpha: float


# Columns of one vehicle's memory row.
VEL_INT = 0  # 3, velocity integrator
VEL_PREV = 3  # 3
VEL_DOT = 6  # 3, filtered velocity derivative
ACC_SP_Z = 9
HOVER = 10  # hover thrust in use
HTE = 11  # hover thrust estimate, its variance, measurement variance, residual low-pass, test-ratio low-pass
HTE_VALID_S = 16  # seconds the estimate has been valid
Q_SP = 17  # 4, attitude setpoint
THRUST_SP = 21  # collective thrust setpoint, positive
RATE_INT = 22  # 3
SAT_HI = 25  # 3, torque axis saturated upwards
SAT_LO = 28  # 3
GYRO_Z1 = 31  # 6, biquad memory of the gyro low-pass (two per axis)
GYRO_LP = 37  # 3, filtered rates of the previous step
DGYRO = 40  # 3, filtered angular acceleration
YAW_TQ = 43  # filtered yaw torque
TAKEOFF = 44  # take-off state
TAKEOFF_S = 45  # seconds armed, then ramp progress
TILT_LIM = 46
LANDED = 47
LANDED_S = 48  # seconds of apparent ground contact
WARM = 49  # 1 once filters hold a sample
ALLOC_Z = 50  # thrust the motors really got, positive up in body axes
YAW_SP = 51  # yaw in use when none is commanded
CONTACT = 52  # 1 while the hull rests against an obstacle
MEMORY = 53

DISARMED, SPOOLUP, READY, RAMP, FLIGHT = 0.0, 1.0, 2.0, 3.0, 4.0

# Columns of one setpoint row (NED, NaN = not commanded).
SP_POS, SP_VEL, SP_ACC, SP_YAW, SP_YAWRATE = 0, 3, 6, 9, 10
SETPOINT = 11

TILT_SLEW = 0.2  # rad/s, how fast the tilt limit may change (PX4 mc_pos_control)
ACC_VAR_INIT = 5.0  # (m/s2)^2, hover-thrust estimator
ROLL, PITCH, YAW, THRUST = 0, 1, 2, 3  # columns of the mixer
FADE_DEGPS = 400.0  # rate error at which the rate integrators no longer integrate (PX4 mc_rate_control)
WEAK = 0.2  # a motor with less effect on an axis is not asked to desaturate it (PX4 control allocator)
UNMET = 1e-3  # normalised torque that may be missing before an axis counts as saturated
YAW_MARGIN = 0.15  # share of the motor range kept for yaw at full thrust (PX4 control allocator)


@compiled
def reset_memory(m: Floats, g: Gains, in_air: bool, yaw: float) -> None:
    """A fresh autopilot: on the ground and disarmed, or already hovering."""
    m[:] = 0.0
    m[HOVER] = g.thr_hover
    m[HTE] = g.thr_hover
    m[HTE + 1] = g.hover_error_init * g.hover_error_init
    m[HTE + 2] = ACC_VAR_INIT
    m[Q_SP] = math.cos(yaw / 2)
    m[Q_SP + 3] = math.sin(yaw / 2)
    m[YAW_SP] = yaw
    m[LANDED] = 0.0 if in_air else 1.0
    m[TAKEOFF] = FLIGHT if in_air else DISARMED
    m[TILT_LIM] = g.tilt_max_air if in_air else g.tilt_max_land
    if in_air:
        m[THRUST_SP] = g.thr_hover


@inlined
def _qmul(
    aw: float, ax: float, ay: float, az: float, bw: float, bx: float, by: float, bz: float
) -> tuple[float, float, float, float]:
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


@inlined
def attitude_step(m: Floats, g: Gains, q: Floats, yaw_rate: float) -> tuple[float, float, float]:
    """Body rate setpoint (rad/s) from the attitude estimate q; tilt has priority over yaw."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    dw, dx, dy, dz = m[Q_SP], m[Q_SP + 1], m[Q_SP + 2], m[Q_SP + 3]
    ex, ey, ez = 2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)
    fx, fy, fz = 2.0 * (dx * dz + dw * dy), 2.0 * (dy * dz - dw * dx), 1.0 - 2.0 * (dx * dx + dy * dy)
    # shortest rotation from the present thrust axis to the wanted one
    dot = ex * fx + ey * fy + ez * fz
    rw = 1.0 + dot
    if rw < 1e-5:
        rw, rx, ry, rz = dw, dx, dy, dz
    else:
        rx, ry, rz = ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx
        n = math.sqrt(rw * rw + rx * rx + ry * ry + rz * rz)
        rw, rx, ry, rz = rw / n, rx / n, ry / n, rz / n
        rw, rx, ry, rz = _qmul(rw, rx, ry, rz, w, x, y, z)
    yw, _, _, yz = _qmul(rw, -rx, -ry, -rz, dw, dx, dy, dz)
    if yw < 0.0:
        yw, yz = -yw, -yz
    weight = min(max(g.yaw_weight, 0.0), 1.0)
    turn = weight * math.asin(min(max(yz, -1.0), 1.0))
    cw, cz = math.cos(turn), math.sin(turn)
    tw, tx, ty, tz = _qmul(rw, rx, ry, rz, cw, 0.0, 0.0, cz)
    qw, qx, qy, qz = _qmul(w, -x, -y, -z, tw, tx, ty, tz)
    sign = 2.0 if qw >= 0.0 else -2.0
    yaw_p = g.yaw_p / weight if weight > 1e-4 else g.yaw_p
    rr = sign * qx * g.roll_p
    rp = sign * qy * g.pitch_p
    ry_ = sign * qz * yaw_p
    if math.isfinite(yaw_rate):
        rr += 2.0 * (x * z - w * y) * yaw_rate
        rp += 2.0 * (y * z + w * x) * yaw_rate
        ry_ += ez * yaw_rate
    return (
        min(max(rr, -g.roll_rate_max), g.roll_rate_max),
        min(max(rp, -g.pitch_rate_max), g.pitch_rate_max),
        min(max(ry_, -g.yaw_rate_max), g.yaw_rate_max),
    )


@inlined
def filter_gyro(m: Floats, g: Gains, gyro: Floats, dt: float) -> None:
    """Second-order low-pass of the rates and first-order low-pass of their derivative, as PX4 filters them."""
    for k in range(3):
        i = GYRO_Z1 + 2 * k
        d0 = gyro[k] - m[i] * g.gyro_a1 - m[i + 1] * g.gyro_a2
        out = g.gyro_b0 * (d0 + 2.0 * m[i] + m[i + 1])
        m[i + 1] = m[i]
        m[i] = d0
        m[DGYRO + k] += g.dgyro_alpha * ((out - m[GYRO_LP + k]) / dt - m[DGYRO + k])
        m[GYRO_LP + k] = out


@inlined
def rate_step(m: Floats, g: Gains, sr: float, sp_: float, sy: float, dt: float) -> tuple[float, float, float]:
    """Normalised torque from the rate error; the integrators hold while landed and stop at saturation."""
    er, ep, ey = sr - m[GYRO_LP], sp_ - m[GYRO_LP + 1], sy - m[GYRO_LP + 2]
    tr = g.roll_rate_p * er + m[RATE_INT] - g.roll_rate_d * m[DGYRO]
    tp = g.pitch_rate_p * ep + m[RATE_INT + 1] - g.pitch_rate_d * m[DGYRO + 1]
    ty = g.yaw_rate_p * ey + m[RATE_INT + 2] - g.yaw_rate_d * m[DGYRO + 2]
    if m[LANDED] == 0.0 and m[LANDED_S] == 0.0:
        _integrate_rate(m, 0, er, g.roll_rate_i, g.roll_int_lim, dt)
        _integrate_rate(m, 1, ep, g.pitch_rate_i, g.pitch_int_lim, dt)
        _integrate_rate(m, 2, ey, g.yaw_rate_i, g.yaw_int_lim, dt)
    m[YAW_TQ] += g.yaw_torque_alpha * (ty - m[YAW_TQ])
    return tr, tp, m[YAW_TQ]


@inlined
def _integrate_rate(m: Floats, k: int, error: float, gain: float, limit: float, dt: float) -> None:
    if m[SAT_HI + k] > 0.0:
        error = min(error, 0.0)
    if m[SAT_LO + k] > 0.0:
        error = max(error, 0.0)
    factor = error / math.radians(FADE_DEGPS)
    factor = max(0.0, 1.0 - factor * factor)
    m[RATE_INT + k] = min(max(m[RATE_INT + k] + factor * gain * error * dt, -limit), limit)


@compiled
def _desaturation(u: Floats, mix: Floats, axis: int, top: float) -> float:
    k_min = 0.0
    k_max = 0.0
    for i in range(4):
        v = mix[i, axis]
        if abs(v) < WEAK:
            continue
        if u[i] < 0.0:
            k = -u[i] / v
            k_min = min(k_min, k)
            k_max = max(k_max, k)
        if u[i] > top:
            k = (top - u[i]) / v
            k_min = min(k_min, k)
            k_max = max(k_max, k)
    return k_min + k_max


@inlined
def _exceeds(u: Floats) -> bool:
    return bool(min(u[0], u[1], u[2], u[3]) < 0.0 or max(u[0], u[1], u[2], u[3]) > 1.0)


@compiled
def _desaturate(u: Floats, mix: Floats, axis: int, top: float) -> None:
    """Shift the commands along one axis so that as few as possible exceed [0, top]; thrust is only ever reduced."""
    k = _desaturation(u, mix, axis, top)
    if axis == THRUST and k < 0.0:
        return
    for i in range(4):
        u[i] += k * mix[i, axis]
    k = 0.5 * _desaturation(u, mix, axis, top)
    for i in range(4):
        u[i] += k * mix[i, axis]


@inlined
def allocate(m: Floats, mix: Floats, unmix: Floats, tr: float, tp: float, ty: float, thrust: float, u: Floats) -> None:
    """Motor commands u[4] in [0, 1] from torques and thrust: roll and pitch before yaw, thrust only reduced.

    mix[4 motors, (roll, pitch, yaw, thrust_z)]; thrust_z is negative upwards as in PX4, so its column is negative.
    """
    for i in range(4):
        u[i] = mix[i, ROLL] * tr + mix[i, PITCH] * tp - mix[i, THRUST] * thrust
    short = _exceeds(u)
    if short:
        _desaturate(u, mix, THRUST, 1.0)
        _desaturate(u, mix, ROLL, 1.0)
        _desaturate(u, mix, PITCH, 1.0)
    for i in range(4):
        u[i] += mix[i, YAW] * ty
    if _exceeds(u):
        short = True
        _desaturate(u, mix, YAW, 1.0 + YAW_MARGIN)
        _desaturate(u, mix, THRUST, 1.0)
        for i in range(4):
            u[i] = min(max(u[i], 0.0), 1.0)
    m[ALLOC_Z] = thrust
    for k in range(3):
        m[SAT_HI + k] = 0.0
        m[SAT_LO + k] = 0.0
    if not short:
        return
    for k in range(3):
        got = unmix[k, 0] * u[0] + unmix[k, 1] * u[1] + unmix[k, 2] * u[2] + unmix[k, 3] * u[3]
        missing = (tr if k == 0 else tp if k == 1 else ty) - got
        m[SAT_HI + k] = 1.0 if missing > UNMET else 0.0
        m[SAT_LO + k] = 1.0 if missing < -UNMET else 0.0
    m[ALLOC_Z] = -(unmix[3, 0] * u[0] + unmix[3, 1] * u[1] + unmix[3, 2] * u[2] + unmix[3, 3] * u[3])
