"""PX4's position control: from a setpoint and the estimate to an attitude and thrust setpoint.

Position P, velocity PID, thrust vector with tilt limit, take-off ramp, hover-thrust estimator, landing detection; the
outer half of :mod:`sar_sim.vehicle.autopilot`, whose memory row and gains it uses. NED, SI, thrust normalised.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_sim.vehicle.autopilot import (
    ACC_SP_Z,
    ACC_VAR_INIT,
    ALLOC_Z,
    DISARMED,
    FLIGHT,
    GRAVITY,
    HOVER,
    HTE,
    HTE_VALID_S,
    LANDED,
    LANDED_S,
    Q_SP,
    RAMP,
    READY,
    SP_ACC,
    SP_POS,
    SP_VEL,
    SPOOLUP,
    TAKEOFF,
    TAKEOFF_S,
    THRUST_SP,
    TILT_LIM,
    TILT_SLEW,
    VEL_DOT,
    VEL_INT,
    VEL_PREV,
    WARM,
    YAW_SP,
    Gains,
)

Floats = NDArray[np.float64]
Axes = tuple[float, float, float]

HOVER_LIMITS = (0.05, 0.9)  # of the hover thrust in use
HTE_LOW, HTE_HIGH = (0.0, 0.8), (0.2, 0.9)  # where the estimate's lower and upper bound may lie
HTE_VAR_LEAST, HTE_VAR_MOST, HTE_VAR_VALID = 1e-10, 1.0, 1e-3  # of the estimate's variance
HTE_OFF, HTE_WIDEN = 0.2, 1e3  # a test ratio that stays beyond widens the variance by so many process noises
HTE_RESIDUAL_S, HTE_NOISE_S = 1.0, 2.0  # time constants of residual and measurement noise
HTE_ACC_VAR = (1.0, 400.0)  # (m/s2)^2, limits of the measurement's variance
HTE_SETTLING_S = 2.0  # how long the hover-thrust estimate must have been valid before it is used
THRUST_LEAST = 1e-3  # share of full thrust that keeps the thrust vector's direction defined
ACC_ON_GROUND = 100.0  # m/s2 downwards: no thrust before take-off, as PX4 has it
LANDED_CONTACT_S = 0.9
LANDED_SPEED_MPS = 0.25
LANDED_THRUST = 0.6  # share of hover thrust


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
    """Scalar Kalman filter for the thrust that hovers, from measured vertical acceleration and applied thrust.

    Its limits are those of PX4's mc_hover_thrust_estimator.
    """
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
        lo = min(max(g.thr_hover - g.hover_range, HTE_LOW[0]), HTE_LOW[1])
        hi = min(max(g.thr_hover + g.hover_range, HTE_HIGH[0]), HTE_HIGH[1])
        m[HTE] = min(max(hover + k * innovation, lo), hi)
        m[HTE + 1] = min(max((1.0 - k * h) * m[HTE + 1], HTE_VAR_LEAST), HTE_VAR_MOST)
        residual = acc_up - (GRAVITY * thrust_up / m[HTE] - GRAVITY)
    elif abs(m[HTE + 4]) > HTE_OFF:
        m[HTE + 1] += HTE_WIDEN * process
    a = dt / (HTE_RESIDUAL_S + dt)
    signed = ratio if innovation >= 0.0 else -ratio
    m[HTE + 3] = (1.0 - a) * m[HTE + 3] + a * residual
    m[HTE + 4] = (1.0 - a) * m[HTE + 4] + a * min(max(signed, -1.0), 1.0)
    b = dt / (HTE_NOISE_S + dt)
    spread = residual - m[HTE + 3]
    variance = (1.0 - b) * m[HTE + 2] + b * (spread * spread + h * m[HTE + 1] * h)
    m[HTE + 2] = min(max(variance, HTE_ACC_VAR[0]), HTE_ACC_VAR[1])
    m[HTE_VALID_S] = m[HTE_VALID_S] + dt if m[HTE + 1] < HTE_VAR_VALID else 0.0


@compiled
def use_hover_thrust(m: Floats, new: float) -> None:
    """Change the hover thrust without a jump in thrust: the integrator absorbs the difference."""
    old = m[HOVER]
    m[HOVER] = min(max(new, HOVER_LIMITS[0]), HOVER_LIMITS[1])
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
    m[WARM] = 1.0

    if m[TAKEOFF] == FLIGHT and m[LANDED] == 0.0 and armed:
        vxy = math.sqrt(vel[0] * vel[0] + vel[1] * vel[1])
        update_hover_thrust(m, g, -acc_z, m[ALLOC_Z] * tilt_cos, vxy, vel[2], dt)
        if g.use_hover_estimate > 0.0 and m[HTE_VALID_S] > HTE_SETTLING_S:
            use_hover_thrust(m, m[HTE])

    speed_up = takeoff_velocity_limit(m, g, sp, pos[2], armed, dt)
    flying = m[TAKEOFF] == FLIGHT
    if not flying:
        m[HOVER] = g.thr_hover
    thr_min = max(g.thr_min if flying else 0.0, THRUST_LEAST)
    tilt_target = g.tilt_max_air if flying else g.tilt_max_land
    m[TILT_LIM] += min(max(tilt_target - m[TILT_LIM], -TILT_SLEW * dt), TILT_SLEW * dt)

    if m[TAKEOFF] < RAMP:
        for k in range(3):
            m[VEL_INT + k] = 0.0
        m[THRUST_SP] = 0.0
        m[ACC_SP_Z] = ACC_ON_GROUND
        return
    error, acceleration = _follow(m, g, sp, pos, vel, speed_up)
    _apply_thrust(m, g, error, acceleration, thr_min, dt)


@inlined
def _follow(m: Floats, g: Gains, sp: Floats, pos: Floats, vel: Floats, speed_up: float) -> tuple[Axes, Axes]:
    """Velocity error and acceleration setpoint: position P with velocity feed-forward, then velocity PID with
    acceleration feed-forward."""
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
    err_z, acc_z = _acceleration_setpoint(m, 2, vz, vel[2], g.vel_p_z, g.vel_d_z, ff_z)
    m[ACC_SP_Z] = acc_z
    return (err_x, err_y, err_z), (acc_x, acc_y, acc_z)


@inlined
def _apply_thrust(m: Floats, g: Gains, error: Axes, acceleration: Axes, thr_min: float, dt: float) -> None:
    """Acceleration to a thrust vector with a tilt limit; saturation with height first; the velocity integrators."""
    err_x, err_y, err_z = error
    acc_x, acc_y, acc_z = acceleration
    hover = m[HOVER]
    bz = GRAVITY if g.acc_decouple > 0.0 else GRAVITY - acc_z
    side = math.sqrt(acc_x * acc_x + acc_y * acc_y)
    length = math.sqrt(side * side + bz * bz)
    bz, slope = bz / length, -1.0 / length
    if bz < math.cos(m[TILT_LIM]):
        bz, slope = math.cos(m[TILT_LIM]), -math.sin(m[TILT_LIM]) / side
    collective = min((acc_z * (hover / GRAVITY) - hover) / bz, -thr_min)
    tx, ty, tz = slope * acc_x * collective, slope * acc_y * collective, bz * collective

    # Vertical first, a margin kept for horizontal; anti-windup.
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


@compiled
def detect_landing(m: Floats, touching: bool, vz: float, armed: bool, dt: float) -> None:
    """Landed after a while of contact with low thrust and no vertical motion (PX4's three stages in one).

    With motors off, contact and rest are enough.
    """
    if not armed and touching and abs(vz) < LANDED_SPEED_MPS:
        m[LANDED] = 1.0
    elif m[TAKEOFF] == FLIGHT and touching and m[THRUST_SP] < LANDED_THRUST * m[HOVER] and abs(vz) < LANDED_SPEED_MPS:
        m[LANDED_S] += dt
        if m[LANDED_S] > LANDED_CONTACT_S:
            m[LANDED] = 1.0
    elif m[TAKEOFF] == FLIGHT:
        m[LANDED_S] = 0.0
        m[LANDED] = 0.0
