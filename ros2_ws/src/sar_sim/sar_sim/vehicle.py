"""Rigid-body multirotors under PX4's control law: N vehicles in one compiled kernel, one call per swarm tick.

Frame NED/FRD inside; positions leave in ENU. One step is 4 ms: the autopilot looks at the estimate and sets the
motors, then the body moves by a fourth-order Runge-Kutta step in which the motor lag is followed exactly.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_core.geometry import distance_to, gradient, nearest
from sar_sim import autopilot as ap
from sar_sim import estimator as est
from sar_sim.autopilot import Gains
from sar_sim.estimator import FilterGains
from sar_sim.wind import GUST_LAW, gust_coefficients, gust_step

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Records = NDArray[np.void]

STEP_S = 0.004
GRAVITY = 9.80665
LIVELY_MPS2 = 25.0
"""No vehicle here accelerates faster; bounds how far one can get within a call."""

# Columns of one body row.
POS, VEL, QUAT, RATE, ROTOR = 0, 3, 6, 10, 13
BODY = 17
# Columns of one per-step noise row (unit normals).
N_GYRO, N_ACCEL, N_GUST, N_HEADING = 0, 3, 6, 9
NOISE = 10
GPS_NOISE = 6


class Airframe(NamedTuple):
    """What the vehicle is made of, SI units. Built from a vehicle file; see configs/vehicles."""

    mass: float
    inertia_x: float
    inertia_y: float
    inertia_z: float
    thrust_max: float  # N per motor at full command
    moment_ratio: float  # m, reaction torque per thrust
    rotor_x: tuple[float, float, float, float]
    rotor_y: tuple[float, float, float, float]
    rotor_idle: float  # rotor speed at zero command while armed, as a share of full
    thrust_exponent: float  # thrust = thrust_max * speed ** exponent
    lag_up: float
    lag_down: float
    drag_linear: float  # N per m/s, isotropic
    drag_rotor: float  # N per m/s at full rotor speed, in the rotor plane, per motor
    drag_angular: float  # N m per rad/s
    hull_radius: float
    gear_height: float
    endurance: float  # s of hover on a full battery


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


@njit(cache=True, error_model="numpy")
def rotate(
    w: float, a: float, b: float, c: float, x: float, y: float, z: float
) -> tuple[float, float, float]:
    """Turn a vector by a unit quaternion (w, a, b, c); with the vector part negated, turn it back."""
    tx = 2.0 * (b * z - c * y)
    ty = 2.0 * (c * x - a * z)
    tz = 2.0 * (a * y - b * x)
    return x + w * tx + b * tz - c * ty, y + w * ty + c * tx - a * tz, z + w * tz + a * ty - b * tx


@njit(cache=True, error_model="numpy")
def thrust_of(speed: float, f: Airframe) -> float:
    """Nominal thrust (N) of one rotor at a share of full speed."""
    if f.thrust_exponent == 2.0:
        return f.thrust_max * speed * speed
    if f.thrust_exponent == 1.0:
        return f.thrust_max * speed
    return float(f.thrust_max * speed**f.thrust_exponent)


@njit(cache=True, error_model="numpy")
def derivative(s: Floats, rotor: Floats, scale: Floats, wind: Floats, f: Airframe, out: Floats) -> None:
    """Time derivative of (pos, vel, quat, rate) for rotor speeds (share of full) and per-motor thrust scale."""
    thrust = 0.0
    tx = 0.0
    ty = 0.0
    tz = 0.0
    spin = 0.0
    for i in range(4):
        speed = rotor[i]
        t = scale[i] * thrust_of(speed, f)
        thrust += t
        spin += speed
        tx -= f.rotor_y[i] * t
        ty += f.rotor_x[i] * t
        tz += (f.moment_ratio if i < 2 else -f.moment_ratio) * t
    ax, ay, az = s[VEL] - wind[0], s[VEL + 1] - wind[1], s[VEL + 2] - wind[2]
    qw, qx, qy, qz = s[QUAT], s[QUAT + 1], s[QUAT + 2], s[QUAT + 3]
    fx, fy, fz = rotate(qw, qx, qy, qz, 0.0, 0.0, -thrust)
    fx -= f.drag_linear * ax
    fy -= f.drag_linear * ay
    fz -= f.drag_linear * az
    if f.drag_rotor > 0.0:
        bx, by, _ = rotate(qw, -qx, -qy, -qz, ax, ay, az)
        drag = f.drag_rotor * spin
        dx, dy, dz = rotate(qw, qx, qy, qz, -drag * bx, -drag * by, 0.0)
        fx += dx
        fy += dy
        fz += dz
    p, r, y = s[RATE], s[RATE + 1], s[RATE + 2]
    out[0] = s[VEL]
    out[1] = s[VEL + 1]
    out[2] = s[VEL + 2]
    out[3] = fx / f.mass
    out[4] = fy / f.mass
    out[5] = fz / f.mass + GRAVITY
    out[6] = 0.5 * (-qx * p - qy * r - qz * y)
    out[7] = 0.5 * (qw * p + qy * y - qz * r)
    out[8] = 0.5 * (qw * r - qx * y + qz * p)
    out[9] = 0.5 * (qw * y + qx * r - qy * p)
    out[10] = (tx - f.drag_angular * p - (f.inertia_z - f.inertia_y) * r * y) / f.inertia_x
    out[11] = (ty - f.drag_angular * r - (f.inertia_x - f.inertia_z) * p * y) / f.inertia_y
    out[12] = (tz - f.drag_angular * y - (f.inertia_y - f.inertia_x) * p * r) / f.inertia_z


@njit(cache=True, error_model="numpy")
def integrate(
    s: Floats,
    rotor: Floats,
    target: Floats,
    scale: Floats,
    air: Floats,
    f: Airframe,
    decay: Floats,
    k1: Floats,
    k2: Floats,
    k3: Floats,
    k4: Floats,
    mid: Floats,
    half: Floats,
    end: Floats,
    dt: float,
) -> None:
    """One Runge-Kutta step of one body row towards the rotor targets, in moving air.

    rotor is the rotor part of the same row; decay [4] holds exp(-t / lag) for half and full step, up and down; the
    arrays from k1 on are scratch.
    """
    for i in range(4):
        gap = rotor[i] - target[i]
        rising = gap < 0.0
        half[i] = target[i] + gap * (decay[0] if rising else decay[2])
        end[i] = target[i] + gap * (decay[1] if rising else decay[3])
    derivative(s, rotor, scale, air, f, k1)
    for j in range(13):
        mid[j] = s[j] + 0.5 * dt * k1[j]
    derivative(mid, half, scale, air, f, k2)
    for j in range(13):
        mid[j] = s[j] + 0.5 * dt * k2[j]
    derivative(mid, half, scale, air, f, k3)
    for j in range(13):
        mid[j] = s[j] + dt * k3[j]
    derivative(mid, end, scale, air, f, k4)
    for j in range(13):
        s[j] += dt / 6.0 * (k1[j] + 2.0 * k2[j] + 2.0 * k3[j] + k4[j])
    for i in range(4):
        rotor[i] = end[i]
    n = 1.0 / math.sqrt(s[QUAT] ** 2 + s[QUAT + 1] ** 2 + s[QUAT + 2] ** 2 + s[QUAT + 3] ** 2)
    for j in range(4):
        s[QUAT + j] *= n


@njit(cache=True, error_model="numpy")
def hold_on_ground(s: Floats, f: Airframe) -> bool:
    """Keep the feet above the ground plane z = 0; on it the vehicle stands still and level. True while touching."""
    depth = s[POS + 2] + f.gear_height
    if depth < -1e-3:
        return False
    thrust_up = 0.0
    for i in range(4):
        thrust_up += thrust_of(s[ROTOR + i], f)
    if depth > 0.0:
        s[POS + 2] = -f.gear_height
    if s[VEL + 2] > 0.0 or thrust_up < f.mass * GRAVITY:
        yaw = math.atan2(
            2.0 * (s[QUAT] * s[QUAT + 3] + s[QUAT + 1] * s[QUAT + 2]),
            1.0 - 2.0 * (s[QUAT + 2] ** 2 + s[QUAT + 3] ** 2),
        )
        for k in range(3):
            s[VEL + k] = 0.0
            s[RATE + k] = 0.0
        s[QUAT] = math.cos(yaw / 2)
        s[QUAT + 1] = 0.0
        s[QUAT + 2] = 0.0
        s[QUAT + 3] = math.sin(yaw / 2)
    return True


@njit(cache=True, error_model="numpy")
def push_out(s: Floats, row: Floats, radius: float) -> None:
    """Contact with an obstacle: move the hull out along the surface normal and stop the motion into it."""
    d = distance_to(row, s[POS + 1], s[POS], -s[POS + 2])
    if d >= radius:
        return
    gx, gy, gz = gradient(row, s[POS + 1], s[POS], -s[POS + 2])
    nx, ny, nz = gy, gx, -gz
    s[POS] += nx * (radius - d)
    s[POS + 1] += ny * (radius - d)
    s[POS + 2] += nz * (radius - d)
    into = s[VEL] * nx + s[VEL + 1] * ny + s[VEL + 2] * nz
    if into < 0.0:
        s[VEL] -= 1.2 * into * nx
        s[VEL + 1] -= 1.2 * into * ny
        s[VEL + 2] -= 1.2 * into * nz


@njit(cache=True, error_model="numpy")
def part_vehicles(body: Floats, radius: float) -> None:
    """Hull contact between equal vehicles: share the overlap and exchange the approach speed inelastically."""
    n = body.shape[0]
    for a in range(n):
        for b in range(a + 1, n):
            dx = body[a, 0] - body[b, 0]
            dy = body[a, 1] - body[b, 1]
            dz = body[a, 2] - body[b, 2]
            d = math.sqrt(dx * dx + dy * dy + dz * dz)
            if d >= 2.0 * radius or d < 1e-9:
                continue
            dx, dy, dz = dx / d, dy / d, dz / d
            push = radius - 0.5 * d
            closing = (
                (body[a, 3] - body[b, 3]) * dx + (body[a, 4] - body[b, 4]) * dy + (body[a, 5] - body[b, 5]) * dz
            )
            j = -0.6 * closing if closing < 0.0 else 0.0
            body[a, 0] += dx * push
            body[a, 1] += dy * push
            body[a, 2] += dz * push
            body[b, 0] -= dx * push
            body[b, 1] -= dy * push
            body[b, 2] -= dz * push
            body[a, 3] += dx * j
            body[a, 4] += dy * j
            body[a, 5] += dz * j
            body[b, 3] -= dx * j
            body[b, 4] -= dy * j
            body[b, 5] -= dz * j


@njit(cache=True, error_model="numpy")
def estimated_attitude(s: Floats, e: Floats, out: Floats) -> None:
    """A body row's attitude turned by the small world-frame attitude error."""
    a, b, c = 0.5 * e[est.E_ATT], 0.5 * e[est.E_ATT + 1], 0.5 * e[est.E_ATT + 2]
    n = 1.0 / math.sqrt(1.0 + a * a + b * b + c * c)
    w, x, y, z = s[QUAT], s[QUAT + 1], s[QUAT + 2], s[QUAT + 3]
    out[0] = (w - a * x - b * y - c * z) * n
    out[1] = (x + a * w + b * z - c * y) * n
    out[2] = (y - a * z + b * w + c * x) * n
    out[3] = (z + a * y - b * x + c * w) * n


@njit(cache=True, error_model="numpy")
def fly_one(
    s: Floats,
    rotor: Floats,
    m: Floats,
    e: Floats,
    gust: Floats,
    gust_law: Floats,
    scale: Floats,
    sp: Floats,
    armed: bool,
    charge: float,
    noise: Floats,
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
    k1, k2, k3, k4, mid = work[0], work[1], work[2], work[3], work[4]
    half, end, command, target, q_est = work[5], work[6], work[7], work[8], work[9]
    position, velocity, gyro, air, noise_a, noise_g = work[10], work[11], work[12], work[13], work[14], work[15]
    mean_wind = math.sqrt(wind[0] * wind[0] + wind[1] * wind[1])
    along_x = wind[0] / mean_wind if mean_wind > 0.0 else 1.0
    along_y = wind[1] / mean_wind if mean_wind > 0.0 else 0.0
    hover_power = 4.0 * (frame.mass * GRAVITY / 4.0) ** 1.5
    quiet = 1.0 if armed else 0.1
    for k in range(noise.shape[0]):
        step = first_step + k
        ms = step * 4
        for j in range(3):
            gyro[j] = s[RATE + j] + sensor.gyro[j] * noise[k, N_GYRO + j]
        ap.filter_gyro(m, gains, gyro, dt)
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
            tilt_cos = 1.0 - 2.0 * (q_est[1] ** 2 + q_est[2] ** 2)
            touching = s[POS + 2] + frame.gear_height > -0.02
            ap.detect_landing(m, touching, velocity[2], ap.POSITION_EVERY * dt)
            acc_z = m[ap.VEL_DOT + 2]
            ap.position_step(m, gains, sp, position, velocity, acc_z, tilt_cos, armed, ap.POSITION_EVERY * dt)
        if armed and m[ap.TAKEOFF] >= ap.RAMP:
            rr, rp, ry = ap.attitude_step(m, gains, q_est, sp[ap.SP_YAWRATE])
            tr, tp, ty = ap.rate_step(m, gains, rr, rp, ry, dt)
            ap.allocate(m, mix, unmix, tr, tp, ty, m[ap.THRUST_SP], command)
        else:
            for j in range(4):
                command[j] = 0.0
            for j in range(3):
                m[ap.RATE_INT + j] = 0.0
        power = 0.0
        running = armed and charge > 0.0
        for j in range(4):
            target[j] = frame.rotor_idle + (1.0 - frame.rotor_idle) * command[j] if running else 0.0
            thrust = thrust_of(rotor[j], frame)
            power += thrust * math.sqrt(thrust)
        charge = max(charge - power / hover_power * dt / frame.endurance, 0.0)

        gu, gv, gw = gust_step(gust, gust_law, noise[k, N_GUST], noise[k, N_GUST + 1], noise[k, N_GUST + 2])
        air[0] = wind[0] + gu * along_x - gv * along_y
        air[1] = wind[1] + gu * along_y + gv * along_x
        air[2] = wind[2] + gw
        vx, vy, vz = s[VEL], s[VEL + 1], s[VEL + 2]
        integrate(s, rotor, target, scale, air, frame, decay, k1, k2, k3, k4, mid, half, end, dt)
        hold_on_ground(s, frame)
        if near:
            for o in range(obstacles.shape[0]):
                push_out(s, obstacles[o], frame.hull_radius)

        fx, fy, fz = (s[VEL] - vx) / dt, (s[VEL + 1] - vy) / dt, (s[VEL + 2] - vz) / dt - GRAVITY
        qw, qx, qy, qz = s[QUAT], s[QUAT + 1], s[QUAT + 2], s[QUAT + 3]
        ax, ay, az = rotate(
            qw,
            qx,
            qy,
            qz,
            quiet * sensor.accel[0] * noise[k, N_ACCEL],
            quiet * sensor.accel[1] * noise[k, N_ACCEL + 1],
            quiet * sensor.accel[2] * noise[k, N_ACCEL + 2],
        )
        gx, gy, gz = rotate(
            qw,
            qx,
            qy,
            qz,
            quiet * sensor.gyro[0] * noise[k, N_GYRO],
            quiet * sensor.gyro[1] * noise[k, N_GYRO + 1],
            quiet * sensor.gyro[2] * noise[k, N_GYRO + 2],
        )
        est.predict_error(e, fx, fy, fz, ax, ay, az, gx, gy, gz, dt)
        if ms // 125 != (ms + 4) // 125:
            for j in range(3):
                noise_a[j] = sensor.gps_pos[j] * gps_noise[j]
                noise_g[j] = sensor.gps_vel[j] * gps_noise[3 + j]
            est.fuse_gps(e, filter_gains, noise_a, noise_g)
        if (step + 1) % 5 == 0:
            est.fuse_heading(e, filter_gains, sensor.heading * noise[k, N_HEADING])
        track[k + 1, 0] = s[1]
        track[k + 1, 1] = s[0]
        track[k + 1, 2] = -s[2]
    return charge


@njit(cache=True, error_model="numpy")
def advance(
    body: Floats,
    memory: Floats,
    error: Floats,
    gust: Floats,
    charge: Floats,
    scale: Floats,
    setpoints: Floats,
    armed: Bools,
    noise: Floats,
    gps_noise: Floats,
    wind: Floats,
    obstacles: Floats,
    frames: Records,
    gain_sets: Records,
    mix: Floats,
    unmix: Floats,
    filters: Records,
    sensors: Records,
    first_step: int,
    track: Floats,
) -> None:
    """Advance all vehicles by noise.shape[1] steps of 4 ms, in place.

    Shapes: body [N, BODY], memory [N, MEMORY], error [N, ERROR], gust [N, GUST], charge [N] in 0..1,
    scale [N, 4] thrust scale per motor, setpoints [N, SETPOINT] NED, armed [N], noise [N, K, NOISE] unit normals,
    gps_noise [N, GPS_NOISE] for the one fix a call may contain, wind [3] NED mean, obstacles [M, 8] ENU,
    track [N, K + 1, 3] receives true positions in ENU, the first being the state on entry. The vehicle's constants
    come as one-element records (:func:`as_record`) of Airframe, Gains, FilterGains and Noise.
    """
    frame, gains, filter_gains, sensor = frames[0], gain_sets[0], filters[0], sensors[0]
    n, steps = noise.shape[0], noise.shape[1]
    horizon = steps * STEP_S
    decay = np.exp(
        np.array([-0.5 / frame.lag_up, -1.0 / frame.lag_up, -0.5 / frame.lag_down, -1.0 / frame.lag_down]) * STEP_S
    )
    work = np.zeros((16, 13))
    law = np.zeros(GUST_LAW)
    close_pair = False
    near = np.zeros(n, dtype=np.bool_)
    for i in range(n):
        track[i, 0, 0] = body[i, 1]
        track[i, 0, 1] = body[i, 0]
        track[i, 0, 2] = -body[i, 2]
        reach = frame.hull_radius + (_speed(body[i]) + LIVELY_MPS2 * horizon) * horizon
        near[i] = nearest(obstacles, body[i, 1], body[i, 0], -body[i, 2])[0] < reach
        for j in range(i):
            dx = body[i, 0] - body[j, 0]
            dy = body[i, 1] - body[j, 1]
            dz = body[i, 2] - body[j, 2]
            together = 2.0 * reach + (_speed(body[j]) - _speed(body[i])) * horizon
            close_pair = close_pair or dx * dx + dy * dy + dz * dz < together * together
    block = 1 if close_pair else steps
    for k in range(0, steps, block):
        for i in range(n):
            gust_coefficients(body[i], wind, STEP_S, law)
            charge[i] = fly_one(
                body[i],
                body[i, ROTOR:],
                memory[i],
                error[i],
                gust[i],
                law,
                scale[i],
                setpoints[i],
                armed[i],
                charge[i],
                noise[i, k : k + block],
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
                track[i, k:],
                work,
            )
        if close_pair:
            part_vehicles(body, frame.hull_radius)
            for i in range(n):
                track[i, k + 1, 0] = body[i, 1]
                track[i, k + 1, 1] = body[i, 0]
                track[i, k + 1, 2] = -body[i, 2]


@njit(cache=True, error_model="numpy")
def _speed(s: Floats) -> float:
    return math.sqrt(s[VEL] * s[VEL] + s[VEL + 1] * s[VEL + 1] + s[VEL + 2] * s[VEL + 2])
