"""A multirotor as a rigid body: forces, integration, and contact with ground, obstacles and each other.

Frame NED/FRD, SI. Compiled pure functions over one body row: position 3, velocity 3, quaternion 4 (w, x, y, z, body to
world), body rates 3, rotor speeds 4 (share of full).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.geometry import distance_to, gradient

Floats = NDArray[np.float64]

GRAVITY = 9.80665
BOUNCE = 1.2
"""1 plus the coefficient of restitution of a hull: what turns an approach speed into the change at contact."""
STANDING_M = 1e-3  # feet nearer to the ground than this touch it

POS, VEL, QUAT, RATE, ROTOR = 0, 3, 6, 10, 13
BODY = 17


Motion = tuple[float, float, float, float, float, float, float, float, float, float]
"""Velocity 3, quaternion 4, body rates 3: what a step integrates together, or its rate of change."""
Wrench = tuple[float, float, float, float, float]
"""Thrust (N, upwards), body torque (N m), sum of rotor speeds."""


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


def rotor_decay(f: Airframe, h: float) -> Floats:
    """Share of a rotor's speed error left after half a step and a step of h seconds: rising, then falling [4]."""
    lags = np.array([0.5 / f.lag_up, 1.0 / f.lag_up, 0.5 / f.lag_down, 1.0 / f.lag_down])
    decay: Floats = np.exp(-h * lags)
    return decay


@inlined
def rotate(w: float, a: float, b: float, c: float, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Turn a vector by a unit quaternion (w, a, b, c); with the vector part negated, turn it back."""
    tx = 2.0 * (b * z - c * y)
    ty = 2.0 * (c * x - a * z)
    tz = 2.0 * (a * y - b * x)
    return x + w * tx + b * tz - c * ty, y + w * ty + c * tx - a * tz, z + w * tz + a * ty - b * tx


@inlined
def thrust_of(speed: float, f: Airframe) -> float:
    """Nominal thrust (N) of one rotor at a share of full speed."""
    if f.thrust_exponent == 2.0:
        return f.thrust_max * speed * speed
    if f.thrust_exponent == 1.0:
        return f.thrust_max * speed
    return float(f.thrust_max * speed**f.thrust_exponent)


@inlined
def rotor_wrench(rotor: Floats, scale: Floats, f: Airframe) -> Wrench:
    """What four rotors do together, each with its own thrust scale."""
    thrust = 0.0
    tx = 0.0
    ty = 0.0
    tz = 0.0
    spin = 0.0
    for i in range(4):
        t = scale[i] * thrust_of(rotor[i], f)
        thrust += t
        spin += rotor[i]
        tx -= f.rotor_y[i] * t
        ty += f.rotor_x[i] * t
        tz += (f.moment_ratio if i < 2 else -f.moment_ratio) * t
    return thrust, tx, ty, tz, spin


@inlined
def derivative(motion: Motion, wrench: Wrench, air: tuple[float, float, float], f: Airframe) -> Motion:
    """Time derivative of velocity, quaternion and body rates under a rotor wrench in moving air.

    Nothing depends on position, so it is left out. Scalars in and out keep the whole step in registers.
    """
    vx, vy, vz, qw, qx, qy, qz, p, q, r = motion
    thrust, tx, ty, tz, spin = wrench
    ax, ay, az = vx - air[0], vy - air[1], vz - air[2]
    bx, by, _ = rotate(qw, -qx, -qy, -qz, ax, ay, az)
    drag = f.drag_rotor * spin
    fx, fy, fz = rotate(qw, qx, qy, qz, -drag * bx, -drag * by, -thrust)
    return (
        (fx - f.drag_linear * ax) / f.mass,
        (fy - f.drag_linear * ay) / f.mass,
        (fz - f.drag_linear * az) / f.mass + GRAVITY,
        0.5 * (-qx * p - qy * q - qz * r),
        0.5 * (qw * p + qy * r - qz * q),
        0.5 * (qw * q - qx * r + qz * p),
        0.5 * (qw * r + qx * q - qy * p),
        (tx - f.drag_angular * p - (f.inertia_z - f.inertia_y) * q * r) / f.inertia_x,
        (ty - f.drag_angular * q - (f.inertia_x - f.inertia_z) * p * r) / f.inertia_y,
        (tz - f.drag_angular * r - (f.inertia_y - f.inertia_x) * p * q) / f.inertia_z,
    )


@inlined
def _moved(m: Motion, rate: Motion, h: float) -> Motion:
    """Motion after h seconds at a rate of change."""
    return (
        m[0] + h * rate[0],
        m[1] + h * rate[1],
        m[2] + h * rate[2],
        m[3] + h * rate[3],
        m[4] + h * rate[4],
        m[5] + h * rate[5],
        m[6] + h * rate[6],
        m[7] + h * rate[7],
        m[8] + h * rate[8],
        m[9] + h * rate[9],
    )


@inlined
def _slope(a: Motion, b: Motion, c: Motion, d: Motion) -> Motion:
    """Six times the mean rate of change over a Runge-Kutta step."""
    return (
        a[0] + 2.0 * (b[0] + c[0]) + d[0],
        a[1] + 2.0 * (b[1] + c[1]) + d[1],
        a[2] + 2.0 * (b[2] + c[2]) + d[2],
        a[3] + 2.0 * (b[3] + c[3]) + d[3],
        a[4] + 2.0 * (b[4] + c[4]) + d[4],
        a[5] + 2.0 * (b[5] + c[5]) + d[5],
        a[6] + 2.0 * (b[6] + c[6]) + d[6],
        a[7] + 2.0 * (b[7] + c[7]) + d[7],
        a[8] + 2.0 * (b[8] + c[8]) + d[8],
        a[9] + 2.0 * (b[9] + c[9]) + d[9],
    )


@inlined
def integrate(
    s: Floats,
    rotor: Floats,
    target: Floats,
    scale: Floats,
    air: Floats,
    f: Airframe,
    decay: Floats,
    half: Floats,
    h: float,
) -> None:
    """One classical Runge-Kutta step (h seconds) of one body row towards the rotor targets, in moving air.

    rotor is the rotor part of the same row; its lag is followed exactly, decay [4] holding exp(-t / lag) for half and
    full step, up and down. half [4] is scratch.
    """
    first = rotor_wrench(rotor, scale, f)
    for i in range(4):
        gap = rotor[i] - target[i]
        rising = gap < 0.0
        half[i] = target[i] + gap * (decay[0] if rising else decay[2])
        rotor[i] = target[i] + gap * (decay[1] if rising else decay[3])
    middle = rotor_wrench(half, scale, f)
    last = rotor_wrench(rotor, scale, f)
    wind = (air[0], air[1], air[2])
    m = (s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12])
    k1 = derivative(m, first, wind, f)
    k2 = derivative(_moved(m, k1, 0.5 * h), middle, wind, f)
    k3 = derivative(_moved(m, k2, 0.5 * h), middle, wind, f)
    k4 = derivative(_moved(m, k3, h), last, wind, f)
    g = h / 6.0
    s[0] += h * m[0] + h * g * (k1[0] + k2[0] + k3[0])
    s[1] += h * m[1] + h * g * (k1[1] + k2[1] + k3[1])
    s[2] += h * m[2] + h * g * (k1[2] + k2[2] + k3[2])
    s[3], s[4], s[5], w, x, y, z, s[10], s[11], s[12] = _moved(m, _slope(k1, k2, k3, k4), g)
    n = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
    s[6], s[7], s[8], s[9] = w * n, x * n, y * n, z * n


@compiled
def hold_on_ground(s: Floats, f: Airframe) -> bool:
    """Keep the feet above the ground plane z = 0; on it the vehicle stands still and level. True while touching."""
    depth = s[POS + 2] + f.gear_height
    if depth < -STANDING_M:
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


@compiled
def push_out(s: Floats, row: Floats, radius: float) -> float:
    """Contact with an obstacle: move the hull out along the surface normal and stop the motion into it.

    Returns how far hull and surface were apart, negative where they overlapped.
    """
    d = distance_to(row, s[POS + 1], s[POS], -s[POS + 2])
    if d >= radius:
        return d - radius
    gx, gy, gz = gradient(row, s[POS + 1], s[POS], -s[POS + 2])
    nx, ny, nz = gy, gx, -gz
    s[POS] += nx * (radius - d)
    s[POS + 1] += ny * (radius - d)
    s[POS + 2] += nz * (radius - d)
    into = s[VEL] * nx + s[VEL + 1] * ny + s[VEL + 2] * nz
    if into < 0.0:
        s[VEL] -= BOUNCE * into * nx
        s[VEL + 1] -= BOUNCE * into * ny
        s[VEL + 2] -= BOUNCE * into * nz
    return d - radius


@compiled
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
            closing = (body[a, 3] - body[b, 3]) * dx + (body[a, 4] - body[b, 4]) * dy + (body[a, 5] - body[b, 5]) * dz
            j = -0.5 * BOUNCE * closing if closing < 0.0 else 0.0
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
