"""Rigid-body multirotors under PX4's control law: N vehicles in one compiled kernel, one call per swarm tick.

Frame NED/FRD inside; positions leave in ENU. One step is 4 ms: the autopilot looks at the estimate and sets the
motors, then the body moves by a fourth-order Runge-Kutta step in which the motor lag is followed exactly.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.geometry import nearest
from sar_sim.vehicle import autopilot as ap
from sar_sim.vehicle import estimator as est
from sar_sim.vehicle.positioncontrol import detect_landing, position_step
from sar_sim.vehicle.rigidbody import (
    GRAVITY,
    POS,
    QUAT,
    RATE,
    ROTOR,
    VEL,
    Airframe,
    hold_on_ground,
    integrate,
    part_vehicles,
    push_out,
    rotate,
    thrust_of,
)
from sar_sim.vehicle.rows import (
    N_ACCEL,
    N_GUST,
    N_GYRO,
    N_HEADING,
    SCRATCH,
    SLOW_EVERY,
    Constants,
    Normals,
    Rows,
    Scratch,
    Surroundings,
)
from sar_sim.vehicle.wind import AIR, LAW, gust_coefficients, moving_air

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Records = NDArray[np.void]

STEP_S = 0.004
STEP_MS = 4
TICKS_STEPS, TICK_STEPS = 25, 13  # two 20 Hz ticks, and the first of them
QUIET = 0.1  # share of the inertial sensors' noise while the motors stand still
TOUCH_M = 0.02  # closer than this is contact for the land detector
LIVELY_MPS2 = 25.0
"""No vehicle here accelerates faster; bounds how far one can get within a call."""


@inlined
def estimated_attitude(s: Floats, e: Floats, out: Floats) -> None:
    """A body row's attitude turned by the world-frame attitude error, which is small but for a bad compass."""
    if abs(e[est.E_ATT + 2]) > est.LARGE_YAW_RAD:
        _turned_attitude(s, e, out)
        return
    a, b, c = 0.5 * e[est.E_ATT], 0.5 * e[est.E_ATT + 1], 0.5 * e[est.E_ATT + 2]
    n = 1.0 / math.sqrt(1.0 + a * a + b * b + c * c)
    w, x, y, z = s[QUAT], s[QUAT + 1], s[QUAT + 2], s[QUAT + 3]
    out[0] = (w - a * x - b * y - c * z) * n
    out[1] = (x + a * w + b * z - c * y) * n
    out[2] = (y - a * z + b * w + c * x) * n
    out[3] = (z + a * y - b * x + c * w) * n


@compiled
def _turned_attitude(s: Floats, e: Floats, out: Floats) -> None:
    """The heading error turned exactly, then the small tilt error."""
    c, d = math.cos(0.5 * e[est.E_ATT + 2]), math.sin(0.5 * e[est.E_ATT + 2])
    w, x, y, z = s[QUAT], s[QUAT + 1], s[QUAT + 2], s[QUAT + 3]
    w, x, y, z = c * w - d * z, c * x - d * y, c * y + d * x, c * z + d * w
    a, b = 0.5 * e[est.E_ATT], 0.5 * e[est.E_ATT + 1]
    n = 1.0 / math.sqrt(1.0 + a * a + b * b)
    out[0] = (w - a * x - b * y) * n
    out[1] = (x + a * w + b * z) * n
    out[2] = (y - a * z + b * w) * n
    out[3] = (z + a * y - b * x) * n


@inlined
def decide(
    s: Floats, m: Floats, e: Floats, sp: Floats, armed: bool, normals: Floats, step: int, c: Constants, work: Scratch
) -> None:
    """The autopilot's step: from the sensed state and the setpoint to four motor commands (work.command).

    Rows of one vehicle: body, memory, error, setpoint, and the step's unit normals [NOISE].
    """
    gains, sensor, q_est, gyro = c.gains, c.noise, work.attitude, work.gyro
    for j in range(3):
        gyro[j] = s[RATE + j] + sensor.gyro[j] * normals[N_GYRO + j]
    ap.filter_gyro(m, gains, gyro, STEP_S)
    estimated_attitude(s, e, q_est)
    if step % ap.POSITION_EVERY == 0:
        position, velocity = work.position, work.velocity
        for j in range(3):
            position[j] = s[POS + j] + e[est.E_POS + j]
            velocity[j] = s[VEL + j] + e[est.E_VEL + j]
        if math.isfinite(sp[ap.SP_YAW]):
            m[ap.YAW_SP] = sp[ap.SP_YAW]
        else:
            m[ap.YAW_SP] = math.atan2(
                2.0 * (q_est[0] * q_est[3] + q_est[1] * q_est[2]), 1.0 - 2.0 * (q_est[2] ** 2 + q_est[3] ** 2)
            )
        dt = ap.POSITION_EVERY * STEP_S
        tilt_cos = 1.0 - 2.0 * (q_est[1] ** 2 + q_est[2] ** 2)
        touching = s[POS + 2] + c.airframe.gear_height > -TOUCH_M or m[ap.CONTACT] > 0.0
        detect_landing(m, touching, velocity[2], armed, dt)
        position_step(m, gains, sp, position, velocity, m[ap.VEL_DOT + 2], tilt_cos, armed, dt)
    if armed and m[ap.TAKEOFF] >= ap.RAMP:
        rr, rp, ry = ap.attitude_step(m, gains, q_est, sp[ap.SP_YAWRATE])
        tr, tp, ty = ap.rate_step(m, gains, rr, rp, ry, STEP_S)
        ap.allocate(m, c.mix, c.unmix, tr, tp, ty, m[ap.THRUST_SP], work.command)
    else:
        for j in range(4):
            work.command[j] = 0.0
        for j in range(3):
            m[ap.RATE_INT + j] = 0.0


@inlined
def fix_due(step: int) -> bool:
    """Whether the next GPS fix falls into this step; its period is no whole number of steps."""
    return step * STEP_MS // est.GPS_PERIOD_MS != (step + 1) * STEP_MS // est.GPS_PERIOD_MS


@inlined
def sense(
    s: Floats,
    e: Floats,
    aid: Floats,
    acceleration: tuple[float, float, float],
    quiet: float,
    normals: Floats,
    fix_normals: Floats,
    heading_normal: float,
    step: int,
    c: Constants,
    work: Scratch,
) -> None:
    """The estimator's step after the body moved with an acceleration (NED); rows of one vehicle as in `decide`."""
    sensor = c.noise
    qw, qx, qy, qz = s[QUAT], s[QUAT + 1], s[QUAT + 2], s[QUAT + 3]
    na0 = quiet * sensor.accel[0] * normals[N_ACCEL]
    na1 = quiet * sensor.accel[1] * normals[N_ACCEL + 1]
    na2 = quiet * sensor.accel[2] * normals[N_ACCEL + 2]
    ng0 = quiet * sensor.gyro[0] * normals[N_GYRO]
    ng1 = quiet * sensor.gyro[1] * normals[N_GYRO + 1]
    ng2 = quiet * sensor.gyro[2] * normals[N_GYRO + 2]
    accel_noise = rotate(qw, qx, qy, qz, na0, na1, na2)
    gyro_noise = rotate(qw, qx, qy, qz, ng0, ng1, ng2)
    ax, ay, az = acceleration
    est.predict_error(e, (ax, ay, az - GRAVITY), accel_noise, gyro_noise, STEP_S)
    if fix_due(step):
        noise_p, noise_v = work.fix_position, work.fix_velocity
        for j in range(3):
            noise_p[j] = sensor.gps_pos[j] * fix_normals[j]
            noise_v[j] = sensor.gps_vel[j] * fix_normals[3 + j]
        est.fuse_fix(s, e, c.filter_gains, noise_p, noise_v, fix_normals[2], aid, step)
    if step % SLOW_EVERY == 0:
        est.fuse_heading(e, c.filter_gains, sensor.heading * heading_normal + aid[est.A_HEADING])


@compiled
def power_share(rotor: Floats, frame: Airframe) -> float:
    """Induced power of four rotors relative to hover (momentum theory: thrust to the power 3/2)."""
    power = 0.0
    for j in range(4):
        thrust = thrust_of(rotor[j], frame)
        power += thrust * math.sqrt(thrust)
    return float(power / (4.0 * (frame.mass * GRAVITY / 4.0) ** 1.5))


@compiled
def fly_one(
    rows: Rows,
    i: int,
    armed: bool,
    normals: Normals,
    around: Surroundings,
    near: bool,
    constants: Records,
    first_step: int,
    steps: int,
    track: Floats,
    scratch: Records,
) -> None:
    """Fly vehicle i for some steps, clear of obstacles unless near; track [steps + 1, 3] as in :func:`advance`."""
    s, m, e, aid, sp = rows.body[i], rows.memory[i], rows.error[i], rows.aids[i], rows.setpoints[i]
    rotor, scale, charge = s[ROTOR:], rows.scale[i], rows.charge[i]
    gust, air, law = rows.gust[i], rows.gust[i, AIR:], rows.gust[i, LAW:]
    row = first_step % normals.steps.shape[1]
    own, slow_rows = normals.steps[i, row : row + steps], normals.slow[i]
    fix = normals.fixes[row * normals.fixes.shape[0] // normals.steps.shape[1], i]
    c, work = constants[0], scratch[0]
    frame, target = c.airframe, work.target
    quiet = 1.0 if armed else QUIET
    for k in range(steps):
        step = first_step + k
        slow = slow_rows[step // SLOW_EVERY % slow_rows.shape[0]]
        if step % SLOW_EVERY == 0:
            moving_air(gust, law, around.wind, slow[N_GUST], slow[N_GUST + 1], slow[N_GUST + 2], air)
            charge = max(charge - power_share(rotor, frame) * SLOW_EVERY * STEP_S / frame.endurance, 0.0)
        decide(s, m, e, sp, armed, own[k], step, c, work)
        running = armed and charge > 0.0
        for j in range(4):
            target[j] = frame.rotor_idle + (1.0 - frame.rotor_idle) * work.command[j] if running else 0.0
        vx, vy, vz = s[VEL], s[VEL + 1], s[VEL + 2]
        integrate(s, rotor, target, scale, air, frame, c.decay, work.half, STEP_S)
        hold_on_ground(s, frame)
        m[ap.CONTACT] = 0.0
        if near:
            for o in range(around.obstacles.shape[0]):
                if push_out(s, around.obstacles[o], frame.hull_radius) < TOUCH_M:
                    m[ap.CONTACT] = 1.0
        acceleration = (s[VEL] - vx) / STEP_S, (s[VEL + 1] - vy) / STEP_S, (s[VEL + 2] - vz) / STEP_S
        sense(s, e, aid, acceleration, quiet, own[k], fix, slow[N_HEADING], step, c, work)
        _trace(s, track[k + 1])
    rows.charge[i] = charge


@compiled
def advance(
    rows: Rows,
    armed: Bools,
    normals: Normals,
    around: Surroundings,
    constants: Records,
    first_step: int,
    steps: int,
    track: Floats,
    done: int,
) -> None:
    """Advance all vehicles by some steps of 4 ms, at most to the next 20 Hz tick, in place.

    armed [N]; track [N, T, 3] receives true positions in ENU from row ``done`` on, which is the state on entry. Normals
    are used round and round. Whole arrays come in rather than slices, so that the kernel is compiled for one memory
    layout only.
    """
    body, hull_radius = rows.body, constants[0].airframe.hull_radius
    n = body.shape[0]
    scratch = np.zeros(1, dtype=SCRATCH)
    near = np.zeros(n, dtype=np.bool_)
    close_pair = _look_ahead(rows, around.obstacles, hull_radius, steps * STEP_S, near)
    on_tick = first_step % TICKS_STEPS == 0 or first_step % TICKS_STEPS == TICK_STEPS
    for i in range(n):
        _trace(body[i], track[i, done])
        if on_tick:
            gust_coefficients(body[i], around.wind, SLOW_EVERY * STEP_S, rows.gust[i, LAW:])
    block = 1 if close_pair else steps
    for k in range(0, steps, block):
        for i in range(n):
            fly_one(
                rows,
                i,
                armed[i],
                normals,
                around,
                near[i],
                constants,
                first_step + k,
                block,
                track[i, done + k :],
                scratch,
            )
        if close_pair:
            part_vehicles(body, hull_radius)
            for i in range(n):
                _trace(body[i], track[i, done + k + 1])


@compiled
def _look_ahead(rows: Rows, obstacles: Floats, hull_radius: float, horizon_s: float, near: Bools) -> bool:
    """Which vehicles may meet an obstacle within the horizon (near [N]), and whether two may meet each other."""
    body, clear = rows.body, rows.clear
    close_pair = False
    for i in range(body.shape[0]):
        travel = (_speed(body[i]) + LIVELY_MPS2 * horizon_s) * horizon_s
        reach = hull_radius + travel
        if clear[i] < reach:
            clear[i] = nearest(obstacles, body[i, 1], body[i, 0], -body[i, 2])[0]
        near[i] = clear[i] < reach
        clear[i] -= travel
        for j in range(i):
            dx = body[i, 0] - body[j, 0]
            dy = body[i, 1] - body[j, 1]
            dz = body[i, 2] - body[j, 2]
            together = 2.0 * reach + (_speed(body[j]) - _speed(body[i])) * horizon_s
            close_pair = close_pair or dx * dx + dy * dy + dz * dz < together * together
    if close_pair:
        near[:] = True
        clear[:] = -np.inf
    return close_pair


@inlined
def _trace(s: Floats, out: Floats) -> None:
    """A body row's position as a row of the track, ENU."""
    out[0] = s[POS + 1]
    out[1] = s[POS]
    out[2] = -s[POS + 2]


@compiled
def _speed(s: Floats) -> float:
    return math.sqrt(s[VEL] * s[VEL] + s[VEL + 1] * s[VEL + 1] + s[VEL + 2] * s[VEL + 2])
