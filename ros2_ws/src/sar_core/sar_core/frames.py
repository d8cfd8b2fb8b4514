"""The one place where ENU/FLU (ROS, REP-103) and NED/FRD (PX4) meet.

Vectors are arrays whose last axis is 3; quaternions are (w, x, y, z), body to world, last axis 4.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled

Floats = NDArray[np.float64]

_SQRT_HALF = np.sqrt(0.5)
# Rotation that carries NED axes to ENU axes: swap x and y, negate z.
_Q_ENU_NED = np.array([0.0, _SQRT_HALF, _SQRT_HALF, 0.0])
# Rotation that carries FRD axes to FLU axes: half a turn about x.
_Q_FRD_FLU = np.array([0.0, 1.0, 0.0, 0.0])


def swap_world(v: Floats) -> Floats:
    """ENU to NED or NED to ENU: the map is its own inverse."""
    v = np.asarray(v, dtype=np.float64)
    return np.stack([v[..., 1], v[..., 0], -v[..., 2]], axis=-1)


def swap_body(v: Floats) -> Floats:
    """FLU to FRD or FRD to FLU: the map is its own inverse."""
    v = np.asarray(v, dtype=np.float64)
    return np.stack([v[..., 0], -v[..., 1], -v[..., 2]], axis=-1)


def swap_yaw(yaw: Floats | float) -> Floats:
    """Heading between ENU (from east, counter-clockwise) and NED (from north, clockwise); its own inverse."""
    return wrap_pi(np.pi / 2.0 - np.asarray(yaw, dtype=np.float64))


def wrap_pi(angle: Floats | float) -> Floats:
    """Angle in [-pi, pi); a hair below -pi would round up to +pi, so that end is folded over."""
    wrapped = (np.asarray(angle, dtype=np.float64) + np.pi) % (2.0 * np.pi) - np.pi
    return np.where(wrapped >= np.pi, -np.pi, wrapped)


def quat_multiply(a: Floats, b: Floats) -> Floats:
    """Hamilton product of quaternions (w, x, y, z), broadcast over leading axes."""
    aw, ax, ay, az = np.moveaxis(np.asarray(a, dtype=np.float64), -1, 0)
    bw, bx, by, bz = np.moveaxis(np.asarray(b, dtype=np.float64), -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def swap_attitude(q: Floats) -> Floats:
    """Attitude between (body FRD in NED) and (body FLU in ENU); its own inverse up to the quaternion's sign."""
    out = quat_multiply(quat_multiply(_Q_ENU_NED, q), _Q_FRD_FLU)
    return np.where(out[..., :1] < 0.0, -out, out)


def yaw_of(q: Floats) -> Floats:
    """Rotation about the world's third axis contained in a body-to-world quaternion."""
    w, x, y, z = np.moveaxis(np.asarray(q, dtype=np.float64), -1, 0)
    yaw: Floats = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return yaw


@compiled
def swap_attitude_into(q: Floats, out: Floats) -> None:
    """:func:`swap_attitude` for one quaternion, compiled and without allocation."""
    h = math.sqrt(0.5)
    w, x, y, z = h * (q[0] + q[3]), h * (q[1] + q[2]), h * (q[1] - q[2]), h * (q[0] - q[3])
    s = -1.0 if w < 0.0 else 1.0
    out[0], out[1], out[2], out[3] = s * w, s * x, s * y, s * z
