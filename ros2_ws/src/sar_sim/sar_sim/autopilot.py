"""PX4's multicopter control law, one vehicle at a time, as compiled pure functions over one row of memory.

Position P, velocity PID, thrust vector and tilt limit, quaternion attitude control, rate PID, control allocation
with desaturation, take-off ramp, hover-thrust estimator. Frame NED/FRD, SI units, thrust and torque normalised.
The law is that of PX4 v1.17 (modules mc_pos_control, mc_att_control, mc_rate_control, control_allocator,
mc_hover_thrust_estimator) and obeys the same parameter names; see docs/architecture.md for what is left out.
"""

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

    Built by :mod:`sar_sim.parameters`.
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
MEMORY = 52

DISARMED, SPOOLUP, READY, RAMP, FLIGHT = 0.0, 1.0, 2.0, 3.0, 4.0

# Columns of one setpoint row (NED, NaN = not commanded).
SP_POS, SP_VEL, SP_ACC, SP_YAW, SP_YAWRATE = 0, 3, 6, 9, 10
SETPOINT = 11

TILT_SLEW = 0.2  # rad/s, how fast the tilt limit may change (PX4 mc_pos_control)
ACC_VAR_INIT = 5.0  # (m/s2)^2, hover-thrust estimator
ROLL, PITCH, YAW, THRUST = 0, 1, 2, 3  # columns of the mixer
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


@compiled
def takeoff_velocity_limit(m: Floats, g: Gains, sp: Floats, z: float, armed: bool, dt: float) -> float:
    """Advance the take-off state and return the upward speed allowed, which ramps from far below zero."""
    start = -GRAVITY / max(g.vel_p_z, 0.01)
    if not armed:
        m[TAKEOFF] = DISARMED
        m[TAKEOFF_S] = 0.0
        m[HTE] = g.thr_hover
        m[HTE + 1] = g.hover_error_init * g.hover_error_init
        m[HTE + 2] = ACC_VAR_INIT
        m[HTE_VALID_S] = 0.0
        return start
    state = m[TAKEOFF]
    if state == DISARMED:
        state = SPOOLUP
        m[TAKEOFF_S] = 0.0
    if state == SPOOLUP:
        m[TAKEOFF_S] += dt
        if m[TAKEOFF_S] >= g.spoolup_time:
            state = READY
    if state == READY:
        wants = (sp[SP_POS + 2] < z) or (sp[SP_VEL + 2] < 0.0) or (sp[SP_ACC + 2] < 0.0)
        if wants:
            state = RAMP
            m[TAKEOFF_S] = 0.0
    if state == RAMP and m[TAKEOFF_S] >= 1.0:
        state = FLIGHT
        m[LANDED] = 0.0
    if state == FLIGHT and m[LANDED] > 0.0:
        state = READY
    m[TAKEOFF] = state
    if state < RAMP:
        return start
    if state == RAMP:
        m[TAKEOFF_S] += dt / g.takeoff_ramp_time if g.takeoff_ramp_time > dt else 1.0
        if m[TAKEOFF_S] < 1.0:
            return float(start + m[TAKEOFF_S] * (g.vel_max_up - start))
    return g.vel_max_up


@inlined
def constrain_xy(ax: float, ay: float, bx: float, by: float, limit: float) -> tuple[float, float]:
    """Sum of a (which has priority) and b, with b shortened so that the length stays within the limit."""
    sx = ax + bx
    sy = ay + by
    if sx * sx + sy * sy <= limit * limit:
        return sx, sy
    na = math.sqrt(ax * ax + ay * ay)
    if na >= limit or math.sqrt((bx - ax) ** 2 + (by - ay) ** 2) < 0.001:
        return ax / na * limit, ay / na * limit
    nb = math.sqrt(bx * bx + by * by)
    if na < 0.001:
        return bx / nb * limit, by / nb * limit
    ux = bx / nb
    uy = by / nb
    along = ux * ax + uy * ay
    s = -along + math.sqrt(along * along - (na * na - limit * limit))
    return ax + ux * s, ay + uy * s


@compiled
def update_hover_thrust(m: Floats, g: Gains, acc_up: float, thrust_up: float, vxy: float, vz: float, dt: float) -> None:
    """Scalar Kalman filter for the thrust that hovers, from measured vertical acceleration and applied thrust."""
    process = g.hover_noise * g.hover_noise * dt * dt
    m[HTE + 1] += process
    hover = m[HTE]
    scale = max(max(vxy - g.hover_vxy_threshold + 1.0, 1.0), max(abs(vz) - g.hover_vz_threshold + 1.0, 1.0))
    h = -GRAVITY * thrust_up / (hover * hover)
    r = m[HTE + 2] * scale * scale
    innovation = acc_up - (GRAVITY * thrust_up / hover - GRAVITY)
    s = max(h * m[HTE + 1] * h + r, r)
    k = m[HTE + 1] * h / s
    ratio = innovation * innovation / (g.hover_gate * g.hover_gate * s)
    residual = innovation
    if ratio < 1.0:
        lo = min(max(g.thr_hover - g.hover_range, 0.0), 0.8)
        hi = min(max(g.thr_hover + g.hover_range, 0.2), 0.9)
        m[HTE] = min(max(hover + k * innovation, lo), hi)
        m[HTE + 1] = min(max((1.0 - k * h) * m[HTE + 1], 1e-10), 1.0)
        residual = acc_up - (GRAVITY * thrust_up / m[HTE] - GRAVITY)
    elif abs(m[HTE + 4]) > 0.2:
        m[HTE + 1] += 1e3 * process
    a = dt / (1.0 + dt)
    signed = ratio if innovation >= 0.0 else -ratio
    m[HTE + 3] = (1.0 - a) * m[HTE + 3] + a * residual
    m[HTE + 4] = (1.0 - a) * m[HTE + 4] + a * min(max(signed, -1.0), 1.0)
    b = dt / (2.0 + dt)
    spread = residual - m[HTE + 3]
    m[HTE + 2] = min(max((1.0 - b) * m[HTE + 2] + b * (spread * spread + h * m[HTE + 1] * h), 1.0), 400.0)
    m[HTE_VALID_S] = m[HTE_VALID_S] + dt if m[HTE + 1] < 0.001 else 0.0


@compiled
def use_hover_thrust(m: Floats, new: float) -> None:
    """Change the hover thrust without a jump in thrust: the integrator absorbs the difference."""
    old = m[HOVER]
    m[HOVER] = min(max(new, 0.05), 0.9)
    acc = m[ACC_SP_Z]
    m[VEL_INT + 2] += (acc - GRAVITY) * old / m[HOVER] + GRAVITY - acc


@inlined
def position_step(
    m: Floats, g: Gains, sp: Floats, pos: Floats, vel: Floats, acc_z: float, tilt_cos: float, armed: bool, dt: float
) -> None:
    """From setpoint and estimate to an attitude and thrust setpoint, kept in the memory row.

    acc_z is the estimated downward acceleration, tilt_cos the cosine of the estimated tilt.
    """
    if m[WARM] == 0.0:
        for k in range(3):
            m[VEL_PREV + k] = vel[k]
    for k in range(3):
        m[VEL_DOT + k] += g.vel_deriv_alpha * ((vel[k] - m[VEL_PREV + k]) / dt - m[VEL_DOT + k])
        m[VEL_PREV + k] = vel[k]

    if m[TAKEOFF] == FLIGHT and m[LANDED] == 0.0 and armed:
        vxy = math.sqrt(vel[0] * vel[0] + vel[1] * vel[1])
        update_hover_thrust(m, g, -acc_z, m[ALLOC_Z] * tilt_cos, vxy, vel[2], dt)
        if g.use_hover_estimate > 0.0 and m[HTE_VALID_S] > 2.0:
            use_hover_thrust(m, m[HTE])

    speed_up = takeoff_velocity_limit(m, g, sp, pos[2], armed, dt)
    flying = m[TAKEOFF] == FLIGHT
    if not flying:
        m[HOVER] = g.thr_hover
    thr_min = max(g.thr_min if flying else 0.0, 1e-3)
    tilt_target = g.tilt_max_air if flying else g.tilt_max_land
    m[TILT_LIM] += min(max(tilt_target - m[TILT_LIM], -TILT_SLEW * dt), TILT_SLEW * dt)

    if m[TAKEOFF] < RAMP:
        for k in range(3):
            m[VEL_INT + k] = 0.0
        m[THRUST_SP] = 0.0
        m[ACC_SP_Z] = 100.0
        m[WARM] = 1.0
        return

    # Position P with velocity feed-forward, then velocity PID with acceleration feed-forward.
    px, vx = _velocity_setpoint(sp[SP_POS], pos[0], g.pos_p_xy, sp[SP_VEL])
    py, vy = _velocity_setpoint(sp[SP_POS + 1], pos[1], g.pos_p_xy, sp[SP_VEL + 1])
    _, vz = _velocity_setpoint(sp[SP_POS + 2], pos[2], g.pos_p_z, sp[SP_VEL + 2])
    ff_x, ff_y, ff_z = sp[SP_ACC], sp[SP_ACC + 1], sp[SP_ACC + 2]
    if m[TAKEOFF] == RAMP and math.isfinite(sp[SP_VEL + 2]):
        ff_z = math.nan
    if not is_flyable(sp):
        px, py, vx, vy, vz = 0.0, 0.0, 0.0, 0.0, 0.0
        ff_x, ff_y, ff_z = math.nan, math.nan, math.nan
    if math.isfinite(vx) and math.isfinite(vy):
        vx, vy = constrain_xy(px, py, vx - px, vy - py, g.vel_max_xy)
    else:
        m[VEL_INT] = 0.0
        m[VEL_INT + 1] = 0.0
    if math.isfinite(vz):
        vz = min(max(vz, -min(speed_up, g.vel_max_up)), g.vel_max_down)
    m[VEL_INT + 2] = min(max(m[VEL_INT + 2], -GRAVITY), GRAVITY)
    err_x, acc_x = _acceleration_setpoint(m, 0, vx, vel[0], g.vel_p_xy, g.vel_d_xy, ff_x)
    err_y, acc_y = _acceleration_setpoint(m, 1, vy, vel[1], g.vel_p_xy, g.vel_d_xy, ff_y)
    err_z, acc_z_sp = _acceleration_setpoint(m, 2, vz, vel[2], g.vel_p_z, g.vel_d_z, ff_z)
    m[ACC_SP_Z] = acc_z_sp

    # Acceleration to thrust vector with a tilt limit.
    hover = m[HOVER]
    bz = GRAVITY if g.acc_decouple > 0.0 else GRAVITY - acc_z_sp
    side = math.sqrt(acc_x * acc_x + acc_y * acc_y)
    length = math.sqrt(side * side + bz * bz)
    bz, slope = bz / length, -1.0 / length
    if bz < math.cos(m[TILT_LIM]):
        bz, slope = math.cos(m[TILT_LIM]), -math.sin(m[TILT_LIM]) / side
    collective = min((acc_z_sp * (hover / GRAVITY) - hover) / bz, -thr_min)
    tx, ty, tz = slope * acc_x * collective, slope * acc_y * collective, bz * collective

    # Saturation: vertical first, a margin kept for horizontal; anti-windup.
    if (tz >= -thr_min and err_z >= 0.0) or (tz <= -g.thr_max and err_z <= 0.0):
        err_z = 0.0
    txy = math.sqrt(tx * tx + ty * ty)
    kept = min(txy, g.thr_xy_margin)
    tz = max(tz, -math.sqrt(g.thr_max * g.thr_max - kept * kept))
    left = math.sqrt(max(g.thr_max * g.thr_max - tz * tz, 0.0))
    if txy > left:
        tx, ty = tx / txy * left, ty / txy * left
    made_x, made_y = tx * GRAVITY / hover, ty * GRAVITY / hover
    if acc_x * acc_x + acc_y * acc_y > made_x * made_x + made_y * made_y:
        arw = 2.0 / g.vel_p_xy
        err_x -= arw * (acc_x - made_x)
        err_y -= arw * (acc_y - made_y)
    m[VEL_INT] += err_x * g.vel_i_xy * dt
    m[VEL_INT + 1] += err_y * g.vel_i_xy * dt
    m[VEL_INT + 2] += err_z * g.vel_i_z * dt

    m[THRUST_SP] = math.sqrt(tx * tx + ty * ty + tz * tz)
    attitude_from_thrust(m, -tx, -ty, -tz)
    m[WARM] = 1.0


@inlined
def is_flyable(sp: Floats) -> bool:
    """Whether each axis is commanded somehow and x and y alike; PX4 answers anything else by stopping."""
    for kind in (SP_POS, SP_VEL, SP_ACC):
        if math.isfinite(sp[kind]) != math.isfinite(sp[kind + 1]):
            return False
    for k in (0, 2):
        if not (math.isfinite(sp[SP_POS + k]) or math.isfinite(sp[SP_VEL + k]) or math.isfinite(sp[SP_ACC + k])):
            return False
    return True


@inlined
def _velocity_setpoint(pos_sp: float, pos: float, gain: float, feed_forward: float) -> tuple[float, float]:
    """The part of the velocity setpoint that comes from position, and the whole; NaN where nothing is commanded."""
    from_position = (pos_sp - pos) * gain
    if not math.isfinite(from_position):
        return 0.0, feed_forward
    return from_position, from_position + feed_forward if math.isfinite(feed_forward) else from_position


@inlined
def _acceleration_setpoint(
    m: Floats, axis: int, vel_sp: float, vel: float, p: float, d: float, feed_forward: float
) -> tuple[float, float]:
    """Velocity error and acceleration setpoint of one axis; zero where nothing is commanded."""
    extra = feed_forward if math.isfinite(feed_forward) else 0.0
    if not math.isfinite(vel_sp):
        return 0.0, extra
    error = vel_sp - vel
    return error, error * p + m[VEL_INT + axis] - m[VEL_DOT + axis] * d + extra


@compiled
def attitude_from_thrust(m: Floats, zx: float, zy: float, zz: float) -> None:
    """Attitude setpoint whose body z axis is the given direction and whose nose points along the yaw setpoint."""
    n = math.sqrt(zx * zx + zy * zy + zz * zz)
    zx, zy, zz = zx / n, zy / n, zz / n
    yaw = m[YAW_SP]
    cx, cy = -math.sin(yaw), math.cos(yaw)
    # body x = y_C x body z
    xx, xy, xz = cy * zz, -cx * zz, cx * zy - cy * zx
    n = math.sqrt(xx * xx + xy * xy + xz * xz)
    xx, xy, xz = xx / n, xy / n, xz / n
    yx, yy, yz = zy * xz - zz * xy, zz * xx - zx * xz, zx * xy - zy * xx
    # rotation matrix columns (x, y, z) to quaternion; the tilt limit keeps the trace above -1
    t = xx + yy + zz
    if t > 0.0:
        s = math.sqrt(t + 1.0) * 2.0
        w, qx, qy, qz = 0.25 * s, (yz - zy) / s, (zx - xz) / s, (xy - yx) / s
    elif xx >= yy and xx >= zz:
        s = math.sqrt(1.0 + xx - yy - zz) * 2.0
        w, qx, qy, qz = (yz - zy) / s, 0.25 * s, (yx + xy) / s, (zx + xz) / s
    elif yy >= zz:
        s = math.sqrt(1.0 + yy - xx - zz) * 2.0
        w, qx, qy, qz = (zx - xz) / s, (yx + xy) / s, 0.25 * s, (zy + yz) / s
    else:
        s = math.sqrt(1.0 + zz - xx - yy) * 2.0
        w, qx, qy, qz = (xy - yx) / s, (zx + xz) / s, (zy + yz) / s, 0.25 * s
    m[Q_SP], m[Q_SP + 1], m[Q_SP + 2], m[Q_SP + 3] = w, qx, qy, qz


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
    factor = error / math.radians(400.0)
    factor = max(0.0, 1.0 - factor * factor)
    m[RATE_INT + k] = min(max(m[RATE_INT + k] + factor * gain * error * dt, -limit), limit)


@compiled
def _desaturation(u: Floats, mix: Floats, axis: int, top: float) -> float:
    k_min = 0.0
    k_max = 0.0
    for i in range(4):
        v = mix[i, axis]
        if abs(v) < 0.2:
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
        m[SAT_HI + k] = 1.0 if missing > 1e-3 else 0.0
        m[SAT_LO + k] = 1.0 if missing < -1e-3 else 0.0
    m[ALLOC_Z] = -(unmix[3, 0] * u[0] + unmix[3, 1] * u[1] + unmix[3, 2] * u[2] + unmix[3, 3] * u[3])


@compiled
def detect_landing(m: Floats, touching: bool, vz: float, dt: float) -> None:
    """Landed after 0.9 s of ground contact with low thrust and no vertical motion (PX4's three stages in one)."""
    if m[TAKEOFF] == FLIGHT and touching and m[THRUST_SP] < 0.6 * m[HOVER] and abs(vz) < 0.25:
        m[LANDED_S] += dt
        if m[LANDED_S] > 0.9:
            m[LANDED] = 1.0
    elif m[TAKEOFF] == FLIGHT:
        m[LANDED_S] = 0.0
        m[LANDED] = 0.0
