"""Rigid-body multirotors under PX4's control law: N vehicles in one compiled kernel, one call per swarm tick.

Frame NED/FRD inside; positions leave in ENU. One step is 4 ms: the autopilot looks at the estimate and sets the
motors, then the body moves by a fourth-order Runge-Kutta step in which the motor lag is followed exactly.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.geometry import nearest
from sar_sim.vehicle import autopilot as ap
from sar_sim.vehicle import estimator as est
from sar_sim.vehicle.autopilot import Gains
from sar_sim.vehicle.estimator import FilterGains
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
from sar_sim.vehicle.wind import AIR, LAW, gust_coefficients, moving_air

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Records = NDArray[np.void]

STEP_S = 0.004
STEP_MS = 4
QUIET = 0.1  # share of the inertial sensors' noise while the motors stand still
TOUCH_M = 0.02  # closer than this is contact for the land detector
LIVELY_MPS2 = 25.0
"""No vehicle here accelerates faster; bounds how far one can get within a call."""

# Columns of one per-step noise row (unit normals).
N_GYRO, N_ACCEL = 0, 3
NOISE = 6
# Columns of one row of slower noise, one row per SLOW_EVERY steps.
N_GUST, N_HEADING = 0, 3
SLOW_NOISE = 4
SLOW_EVERY = 5
GPS_NOISE = 6
SCRATCH = 9


def as_record(values: tuple[Any, ...]) -> NDArray[np.void]:
    """A named tuple as a one-element structured array: compiled code then takes it by reference."""
    names = values._fields  # type: ignore[attr-defined]
    shapes = [np.shape(value) for value in values]
    dtype = np.dtype([(name, np.float64, shape) for name, shape in zip(names, shapes, strict=True)])
    return np.array([tuple(values)], dtype=dtype)


class Noise(NamedTuple):
    """Sensor noise as scalars for the kernel."""

    accel: tuple[float, float, float]
    gyro: tuple[float, float, float]
    gps_pos: tuple[float, float, float]
    gps_vel: tuple[float, float, float]
    heading: float


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
    s: Floats,
    m: Floats,
    e: Floats,
    sp: Floats,
    armed: bool,
    noise: Floats,
    k: int,
    step: int,
    gear_height: float,
    gains: Gains,
    mix: Floats,
    unmix: Floats,
    sensor: Noise,
    command: Floats,
    q_est: Floats,
    position: Floats,
    velocity: Floats,
    gyro: Floats,
) -> None:
    """The autopilot's step: from the sensed state and the setpoint to four motor commands. Last four are scratch."""
    for j in range(3):
        gyro[j] = s[RATE + j] + sensor.gyro[j] * noise[k, N_GYRO + j]
    ap.filter_gyro(m, gains, gyro, STEP_S)
    estimated_attitude(s, e, q_est)
    if step % ap.POSITION_EVERY == 0:
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
        touching = s[POS + 2] + gear_height > -TOUCH_M or m[ap.CONTACT] > 0.0
        detect_landing(m, touching, velocity[2], armed, dt)
        position_step(m, gains, sp, position, velocity, m[ap.VEL_DOT + 2], tilt_cos, armed, dt)
    if armed and m[ap.TAKEOFF] >= ap.RAMP:
        rr, rp, ry = ap.attitude_step(m, gains, q_est, sp[ap.SP_YAWRATE])
        tr, tp, ty = ap.rate_step(m, gains, rr, rp, ry, STEP_S)
        ap.allocate(m, mix, unmix, tr, tp, ty, m[ap.THRUST_SP], command)
    else:
        for j in range(4):
            command[j] = 0.0
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
    ax: float,
    ay: float,
    az: float,
    quiet: float,
    noise: Floats,
    k: int,
    step: int,
    gps_noise: Floats,
    heading_noise: float,
    filter_gains: FilterGains,
    sensor: Noise,
    aid: Floats,
    noise_p: Floats,
    noise_v: Floats,
) -> None:
    """The estimator's step after the body moved with acceleration a (NED). The last two arguments are scratch."""
    qw, qx, qy, qz = s[QUAT], s[QUAT + 1], s[QUAT + 2], s[QUAT + 3]
    na0 = quiet * sensor.accel[0] * noise[k, N_ACCEL]
    na1 = quiet * sensor.accel[1] * noise[k, N_ACCEL + 1]
    na2 = quiet * sensor.accel[2] * noise[k, N_ACCEL + 2]
    ng0 = quiet * sensor.gyro[0] * noise[k, N_GYRO]
    ng1 = quiet * sensor.gyro[1] * noise[k, N_GYRO + 1]
    ng2 = quiet * sensor.gyro[2] * noise[k, N_GYRO + 2]
    nax, nay, naz = rotate(qw, qx, qy, qz, na0, na1, na2)
    ngx, ngy, ngz = rotate(qw, qx, qy, qz, ng0, ng1, ng2)
    est.predict_error(e, ax, ay, az - GRAVITY, nax, nay, naz, ngx, ngy, ngz, STEP_S)
    if fix_due(step):
        for j in range(3):
            noise_p[j] = sensor.gps_pos[j] * gps_noise[j]
            noise_v[j] = sensor.gps_vel[j] * gps_noise[3 + j]
        est.fuse_fix(s, e, filter_gains, noise_p, noise_v, gps_noise[2], aid, step)
    if step % SLOW_EVERY == 0:
        est.fuse_heading(e, filter_gains, sensor.heading * heading_noise + aid[est.A_HEADING])


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
    s: Floats,
    rotor: Floats,
    m: Floats,
    e: Floats,
    gust: Floats,
    air: Floats,
    gust_law: Floats,
    scale: Floats,
    aid: Floats,
    sp: Floats,
    armed: bool,
    charge: float,
    noise: Floats,
    slow_noise: Floats,
    gps_noise: Floats,
    wind: Floats,
    obstacles: Floats,
    near: bool,
    frame: Airframe,
    gains: Gains,
    mix: Floats,
    unmix: Floats,
    filter_gains: FilterGains,
    sensor: Noise,
    decay: Floats,
    first_step: int,
    track: Floats,
    work: Floats,
) -> float:
    """Fly one vehicle for noise.shape[0] steps; returns the charge left. Rows as in :func:`advance`."""
    dt = STEP_S
    half, command, target, q_est = work[0], work[1], work[2], work[3]
    position, velocity, gyro, noise_p, noise_v = work[4], work[5], work[6], work[7], work[8]
    quiet = 1.0 if armed else QUIET
    for k in range(noise.shape[0]):
        step = first_step + k
        slow = slow_noise[step // SLOW_EVERY % slow_noise.shape[0]]
        if step % SLOW_EVERY == 0:
            moving_air(gust, gust_law, wind, slow[N_GUST], slow[N_GUST + 1], slow[N_GUST + 2], air)
            charge = max(charge - power_share(rotor, frame) * SLOW_EVERY * dt / frame.endurance, 0.0)
        decide(
            s,
            m,
            e,
            sp,
            armed,
            noise,
            k,
            step,
            frame.gear_height,
            gains,
            mix,
            unmix,
            sensor,
            command,
            q_est,
            position,
            velocity,
            gyro,
        )
        running = armed and charge > 0.0
        for j in range(4):
            target[j] = frame.rotor_idle + (1.0 - frame.rotor_idle) * command[j] if running else 0.0
        vx, vy, vz = s[VEL], s[VEL + 1], s[VEL + 2]
        integrate(s, rotor, target, scale, air, frame, decay, half, dt)
        hold_on_ground(s, frame)
        m[ap.CONTACT] = 0.0
        if near:
            for o in range(obstacles.shape[0]):
                if push_out(s, obstacles[o], frame.hull_radius) < TOUCH_M:
                    m[ap.CONTACT] = 1.0
        ax, ay, az = (s[VEL] - vx) / dt, (s[VEL + 1] - vy) / dt, (s[VEL + 2] - vz) / dt
        sense(
            s,
            e,
            ax,
            ay,
            az,
            quiet,
            noise,
            k,
            step,
            gps_noise,
            slow[N_HEADING],
            filter_gains,
            sensor,
            aid,
            noise_p,
            noise_v,
        )
        track[k + 1, 0] = s[1]
        track[k + 1, 1] = s[0]
        track[k + 1, 2] = -s[2]
    return charge


@compiled
def advance(
    body: Floats,
    memory: Floats,
    error: Floats,
    gust: Floats,
    charge: Floats,
    clear: Floats,
    scale: Floats,
    aids: Floats,
    setpoints: Floats,
    armed: Bools,
    noise: Floats,
    slow_noise: Floats,
    gps_noise: Floats,
    wind: Floats,
    obstacles: Floats,
    frames: Records,
    gain_sets: Records,
    decay: Floats,
    mix: Floats,
    unmix: Floats,
    filters: Records,
    sensors: Records,
    first_step: int,
    steps: int,
    track: Floats,
    done: int,
) -> None:
    """Advance all vehicles by some steps of 4 ms, at most to the next 20 Hz tick, in place.

    Shapes: body [N, BODY], memory [N, MEMORY], error [N, ERROR], gust [N, GUST], charge [N] in 0..1,
    clear [N] a lower bound of the distance to the nearest obstacle, renewed when it no longer says enough,
    scale [N, 4] thrust scale per motor, aids [N, AIDS] what the aiding sensors suffer, setpoints [N, SETPOINT] NED,
    armed [N], noise [N, K, NOISE] unit normals, one row per step of time, and slow_noise [N, L, SLOW_NOISE] one per
    SLOW_EVERY steps, both used round and round, gps_noise [N, GPS_NOISE] for the one fix a call may contain,
    wind [3] NED mean, obstacles [M, 8] ENU, track [N, T, 3] receives true positions in ENU from row ``done`` on, which
    is the state on entry. The vehicle's constants come as one-element records (:func:`as_record`) of Airframe, Gains,
    FilterGains and Noise. Whole arrays come in rather than slices, so that the kernel is compiled for one memory layout
    only.
    """
    frame, gains, filter_gains, sensor = frames[0], gain_sets[0], filters[0], sensors[0]
    n = body.shape[0]
    row = first_step % noise.shape[1]
    horizon = steps * STEP_S
    work = np.zeros((SCRATCH, 4))
    on_tick = first_step % 25 == 0 or first_step % 25 == 13
    close_pair = False
    near = np.zeros(n, dtype=np.bool_)
    for i in range(n):
        track[i, done, 0] = body[i, 1]
        track[i, done, 1] = body[i, 0]
        track[i, done, 2] = -body[i, 2]
        travel = (_speed(body[i]) + LIVELY_MPS2 * horizon) * horizon
        reach = frame.hull_radius + travel
        if clear[i] < reach:
            clear[i] = nearest(obstacles, body[i, 1], body[i, 0], -body[i, 2])[0]
        near[i] = clear[i] < reach
        clear[i] -= travel
        for j in range(i):
            dx = body[i, 0] - body[j, 0]
            dy = body[i, 1] - body[j, 1]
            dz = body[i, 2] - body[j, 2]
            together = 2.0 * reach + (_speed(body[j]) - _speed(body[i])) * horizon
            close_pair = close_pair or dx * dx + dy * dy + dz * dz < together * together
        if on_tick:
            gust_coefficients(body[i], wind, SLOW_EVERY * STEP_S, gust[i, LAW:])
    if close_pair:
        near[:] = True
        clear[:] = -np.inf
    block = 1 if close_pair else steps
    for k in range(0, steps, block):
        for i in range(n):
            charge[i] = fly_one(
                body[i],
                body[i, ROTOR:],
                memory[i],
                error[i],
                gust[i],
                gust[i, AIR:],
                gust[i, LAW:],
                scale[i],
                aids[i],
                setpoints[i],
                armed[i],
                charge[i],
                noise[i, row + k : row + k + block],
                slow_noise[i],
                gps_noise[i],
                wind,
                obstacles,
                near[i],
                frame,
                gains,
                mix,
                unmix,
                filter_gains,
                sensor,
                decay,
                first_step + k,
                track[i, done + k :],
                work,
            )
        if close_pair:
            part_vehicles(body, frame.hull_radius)
            for i in range(n):
                track[i, done + k + 1, 0] = body[i, 1]
                track[i, done + k + 1, 1] = body[i, 0]
                track[i, done + k + 1, 2] = -body[i, 2]


@compiled
def _speed(s: Floats) -> float:
    return math.sqrt(s[VEL] * s[VEL] + s[VEL + 1] * s[VEL + 1] + s[VEL + 2] * s[VEL + 2])
