"""Rigid-body multirotors under PX4's control law: N vehicles in one compiled kernel, one call per swarm tick.

Frame NED/FRD inside; positions leave in ENU. One step is 4 ms: the autopilot looks at the estimate and sets the
motors, then the body moves by a fourth-order Runge-Kutta step in which the motor lag is followed exactly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_core.geometry import distance_to, gradient, nearest
from sar_sim import autopilot as ap
from sar_sim import estimator as est
from sar_sim.autopilot import Gains
from sar_sim.estimator import FilterGains
from sar_sim.wind import gust_step

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STEP_S = 0.004
GRAVITY = 9.80665

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


class Noise(NamedTuple):
    """Sensor noise as scalars for the kernel."""

    accel: tuple[float, float, float]
    gyro: tuple[float, float, float]
    gps_pos: tuple[float, float, float]
    gps_vel: tuple[float, float, float]
    heading: float


@njit(cache=True)
def _rotate(q: Floats, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Body to world."""
    w, a, b, c = q[0], q[1], q[2], q[3]
    tx = 2.0 * (b * z - c * y)
    ty = 2.0 * (c * x - a * z)
    tz = 2.0 * (a * y - b * x)
    return x + w * tx + b * tz - c * ty, y + w * ty + c * tx - a * tz, z + w * tz + a * ty - b * tx


@njit(cache=True)
def _unrotate(q: Floats, x: float, y: float, z: float) -> tuple[float, float, float]:
    """World to body."""
    w, a, b, c = q[0], -q[1], -q[2], -q[3]
    tx = 2.0 * (b * z - c * y)
    ty = 2.0 * (c * x - a * z)
    tz = 2.0 * (a * y - b * x)
    return x + w * tx + b * tz - c * ty, y + w * ty + c * tx - a * tz, z + w * tz + a * ty - b * tx


@njit(cache=True)
def derivative(s: Floats, rotor: Floats, scale: Floats, wind: Floats, f: Airframe, out: Floats) -> None:
    """Time derivative of (pos, vel, quat, rate) for rotor speeds (share of full) and per-motor thrust scale."""
    q = s[QUAT : QUAT + 4]
    thrust = 0.0
    tx = 0.0
    ty = 0.0
    tz = 0.0
    spin = 0.0
    for i in range(4):
        speed = rotor[i]
        t = f.thrust_max * scale[i] * (speed * speed if f.thrust_exponent == 2.0 else speed**f.thrust_exponent)
        thrust += t
        spin += speed
        tx -= f.rotor_y[i] * t
        ty += f.rotor_x[i] * t
        tz += (f.moment_ratio if i < 2 else -f.moment_ratio) * t
    ax, ay, az = s[VEL] - wind[0], s[VEL + 1] - wind[1], s[VEL + 2] - wind[2]
    fx, fy, fz = _rotate(q, 0.0, 0.0, -thrust)
    fx -= f.drag_linear * ax
    fy -= f.drag_linear * ay
    fz -= f.drag_linear * az
    if f.drag_rotor > 0.0:
        bx, by, _ = _unrotate(q, ax, ay, az)
        dx, dy, dz = _rotate(q, -f.drag_rotor * spin * bx, -f.drag_rotor * spin * by, 0.0)
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
    out[6] = 0.5 * (-q[1] * p - q[2] * r - q[3] * y)
    out[7] = 0.5 * (q[0] * p + q[2] * y - q[3] * r)
    out[8] = 0.5 * (q[0] * r - q[1] * y + q[3] * p)
    out[9] = 0.5 * (q[0] * y + q[1] * r - q[2] * p)
    out[10] = (tx - f.drag_angular * p - (f.inertia_z - f.inertia_y) * r * y) / f.inertia_x
    out[11] = (ty - f.drag_angular * r - (f.inertia_x - f.inertia_z) * p * y) / f.inertia_y
    out[12] = (tz - f.drag_angular * y - (f.inertia_y - f.inertia_x) * p * r) / f.inertia_z


@njit(cache=True)
def integrate(s: Floats, target: Floats, scale: Floats, wind: Floats, f: Airframe, work: Floats, dt: float) -> None:
    """One Runge-Kutta step of one body row towards the rotor targets; work is scratch of shape [7, BODY]."""
    half = work[5]
    end = work[6]
    for i in range(4):
        tau = f.lag_up if target[i] > s[ROTOR + i] else f.lag_down
        gap = s[ROTOR + i] - target[i]
        half[i] = target[i] + gap * math.exp(-0.5 * dt / tau)
        end[i] = target[i] + gap * math.exp(-dt / tau)
    k1, k2, k3, k4, mid = work[0], work[1], work[2], work[3], work[4]
    derivative(s, s[ROTOR : ROTOR + 4], scale, wind, f, k1)
    for j in range(13):
        mid[j] = s[j] + 0.5 * dt * k1[j]
    derivative(mid, half, scale, wind, f, k2)
    for j in range(13):
        mid[j] = s[j] + 0.5 * dt * k2[j]
    derivative(mid, half, scale, wind, f, k3)
    for j in range(13):
        mid[j] = s[j] + dt * k3[j]
    derivative(mid, end, scale, wind, f, k4)
    for j in range(13):
        s[j] += dt / 6.0 * (k1[j] + 2.0 * k2[j] + 2.0 * k3[j] + k4[j])
    for i in range(4):
        s[ROTOR + i] = end[i]
    n = math.sqrt(s[QUAT] ** 2 + s[QUAT + 1] ** 2 + s[QUAT + 2] ** 2 + s[QUAT + 3] ** 2)
    for j in range(4):
        s[QUAT + j] /= n


@njit(cache=True)
def hold_on_ground(s: Floats, f: Airframe) -> bool:
    """Keep the feet above the ground plane z = 0; on it the vehicle stands still and level. True while touching."""
    depth = s[POS + 2] + f.gear_height
    if depth < -1e-3:
        return False
    thrust_up = 0.0
    for i in range(4):
        thrust_up += f.thrust_max * s[ROTOR + i] ** f.thrust_exponent
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def estimated_attitude(q: Floats, e: Floats, out: Floats) -> None:
    """Truth turned by the small world-frame attitude error."""
    a, b, c = 0.5 * e[est.E_ATT], 0.5 * e[est.E_ATT + 1], 0.5 * e[est.E_ATT + 2]
    n = 1.0 / math.sqrt(1.0 + a * a + b * b + c * c)
    out[0] = (q[0] - a * q[1] - b * q[2] - c * q[3]) * n
    out[1] = (q[1] + a * q[0] + b * q[3] - c * q[2]) * n
    out[2] = (q[2] - a * q[3] + b * q[0] + c * q[1]) * n
    out[3] = (q[3] + a * q[2] - b * q[1] + c * q[0]) * n


@njit(cache=True)
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
    frame: Airframe,
    gains: Gains,
    mix: Floats,
    unmix: Floats,
    filter_gains: FilterGains,
    sensor: Noise,
    first_step: int,
    track: Floats,
) -> None:
    """Advance all vehicles by noise.shape[0] steps of 4 ms, in place.

    Shapes: body [N, BODY], memory [N, MEMORY], error [N, ERROR], gust [N, GUST], charge [N] in 0..1,
    scale [N, 4] thrust scale per motor, setpoints [N, SETPOINT] NED, armed [N], noise [K, N, NOISE] unit normals,
    gps_noise [N, GPS_NOISE] for the one fix a call may contain, wind [3] NED mean, obstacles [M, 8] ENU,
    track [K + 1, N, 3] receives true positions in ENU, the first row being the state on entry.
    """
    steps = noise.shape[0]
    n = body.shape[0]
    dt = STEP_S
    work = np.zeros((7, BODY))
    u = np.zeros(4)
    target = np.zeros(4)
    q_est = np.zeros(4)
    pos = np.zeros(3)
    vel = np.zeros(3)
    gyro = np.zeros(3)
    air = np.zeros(3)
    noise_a = np.zeros(3)
    noise_g = np.zeros(3)
    mean_wind = math.sqrt(wind[0] * wind[0] + wind[1] * wind[1])
    along_x = wind[0] / mean_wind if mean_wind > 0.0 else 1.0
    along_y = wind[1] / mean_wind if mean_wind > 0.0 else 0.0
    horizon = steps * dt
    hover_power = 4.0 * (frame.mass * GRAVITY / 4.0) ** 1.5
    close_pair = np.inf
    near = np.full(n, -1)
    for i in range(n):
        track[0, i, 0] = body[i, 1]
        track[0, i, 1] = body[i, 0]
        track[0, i, 2] = -body[i, 2]
        speed = math.sqrt(body[i, 3] ** 2 + body[i, 4] ** 2 + body[i, 5] ** 2)
        reach = frame.hull_radius + (speed + 25.0 * horizon) * horizon
        clearance, index = nearest(obstacles, body[i, 1], body[i, 0], -body[i, 2])
        if clearance < reach:
            near[i] = index
        for j in range(i):
            dx = body[i, 0] - body[j, 0]
            dy = body[i, 1] - body[j, 1]
            dz = body[i, 2] - body[j, 2]
            close_pair = min(close_pair, math.sqrt(dx * dx + dy * dy + dz * dz) - 2.0 * reach)

    for k in range(steps):
        step = first_step + k
        ms = step * 4
        gps_due = ms // 125 != (ms + 4) // 125
        heading_due = (step + 1) % 5 == 0
        for i in range(n):
            s = body[i]
            m = memory[i]
            e = error[i]
            sp = setpoints[i]
            for j in range(3):
                gyro[j] = s[RATE + j] + sensor.gyro[j] * noise[k, i, N_GYRO + j]
            ap.filter_gyro(m, gains, gyro, dt)
            estimated_attitude(s[QUAT : QUAT + 4], e, q_est)
            if step % ap.POSITION_EVERY == 0:
                for j in range(3):
                    pos[j] = s[POS + j] + e[est.E_POS + j]
                    vel[j] = s[VEL + j] + e[est.E_VEL + j]
                if math.isfinite(sp[ap.SP_YAW]):
                    m[ap.YAW_SP] = sp[ap.SP_YAW]
                else:
                    m[ap.YAW_SP] = math.atan2(
                        2.0 * (q_est[0] * q_est[3] + q_est[1] * q_est[2]),
                        1.0 - 2.0 * (q_est[2] ** 2 + q_est[3] ** 2),
                    )
                tilt_cos = 1.0 - 2.0 * (q_est[1] ** 2 + q_est[2] ** 2)
                touching = s[POS + 2] + frame.gear_height > -0.02
                ap.detect_landing(m, touching, vel[2], ap.POSITION_EVERY * dt)
                ap.position_step(
                    m, gains, sp, pos, vel, m[ap.VEL_DOT + 2], tilt_cos, armed[i], ap.POSITION_EVERY * dt
                )
            if armed[i] and m[ap.TAKEOFF] >= ap.RAMP:
                rr, rp, ry = ap.attitude_step(m, gains, q_est, sp[ap.SP_YAWRATE])
                tr, tp, ty = ap.rate_step(m, gains, rr, rp, ry, dt)
                ap.allocate(m, mix, unmix, tr, tp, ty, m[ap.THRUST_SP], u)
            else:
                u[:] = 0.0
                for j in range(3):
                    m[ap.RATE_INT + j] = 0.0
            power = 0.0
            alive = charge[i] > 0.0
            for j in range(4):
                target[j] = frame.rotor_idle + (1.0 - frame.rotor_idle) * u[j] if armed[i] and alive else 0.0
                power += (frame.thrust_max * s[ROTOR + j] ** frame.thrust_exponent) ** 1.5
            charge[i] = max(charge[i] - power / hover_power * dt / frame.endurance, 0.0)

            air[0] = s[VEL] - wind[0]
            air[1] = s[VEL + 1] - wind[1]
            speed = math.sqrt(air[0] ** 2 + air[1] ** 2 + s[VEL + 2] ** 2)
            gu, gv, gw = gust_step(gust[i], -s[POS + 2], mean_wind, speed, noise[k, i, N_GUST : N_GUST + 3], dt)
            air[0] = wind[0] + gu * along_x - gv * along_y
            air[1] = wind[1] + gu * along_y + gv * along_x
            air[2] = wind[2] + gw

            vx, vy, vz = s[VEL], s[VEL + 1], s[VEL + 2]
            integrate(s, target, scale[i], air, frame, work, dt)
            hold_on_ground(s, frame)
            if near[i] >= 0:
                for o in range(obstacles.shape[0]):
                    push_out(s, obstacles[o], frame.hull_radius)

            fx, fy, fz = (s[VEL] - vx) / dt, (s[VEL + 1] - vy) / dt, (s[VEL + 2] - vz) / dt - GRAVITY
            quiet = 1.0 if armed[i] else 0.1
            na = noise[k, i, N_ACCEL : N_ACCEL + 3]
            ng = noise[k, i, N_GYRO : N_GYRO + 3]
            q = s[QUAT : QUAT + 4]
            noise_a[0], noise_a[1], noise_a[2] = _rotate(
                q, quiet * sensor.accel[0] * na[0], quiet * sensor.accel[1] * na[1], quiet * sensor.accel[2] * na[2]
            )
            noise_g[0], noise_g[1], noise_g[2] = _rotate(
                q, quiet * sensor.gyro[0] * ng[0], quiet * sensor.gyro[1] * ng[1], quiet * sensor.gyro[2] * ng[2]
            )
            est.predict_error(e, fx, fy, fz, noise_a, noise_g, dt)
            if gps_due:
                for j in range(3):
                    noise_a[j] = sensor.gps_pos[j] * gps_noise[i, j]
                    noise_g[j] = sensor.gps_vel[j] * gps_noise[i, 3 + j]
                est.fuse_gps(e, filter_gains, noise_a, noise_g)
            if heading_due:
                est.fuse_heading(e, filter_gains, sensor.heading * noise[k, i, N_HEADING])
        if close_pair < 0.0:
            part_vehicles(body, frame.hull_radius)
        for i in range(n):
            track[k + 1, i, 0] = body[i, 1]
            track[k + 1, i, 1] = body[i, 0]
            track[k + 1, i, 2] = -body[i, 2]
