"""The error of a GPS-aided inertial estimate, so that the swarm sees an estimate and never the truth.

PX4's EKF2 is, near steady flight, a linear filter whose gains follow from the noise it *assumes* (EKF2_* parameters
and the accuracies the receiver reports) while its error is driven by the noise the sensors *have*. We carry that
error itself: the estimate is truth plus error. Per horizontal axis the error is (position, velocity, tilt), vertical
(position, velocity, accelerometer bias), heading one number. Gains are the steady state of the same Kalman filter.

Left out: the delayed fusion horizon, magnetometer field states, horizontal accelerometer and gyro biases, and the
barometer, whose bias EKF2 lets wander against GPS height (0.13 m per root second), so that it says little of height.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from sar_core.compiled import inlined

Floats = NDArray[np.float64]
Gain = tuple[float, float, float]

GRAVITY = 9.80665
FILTER_DT = 0.012
GPS_PERIOD = 0.125
HEADING_PERIOD = 0.02

# Columns of one vehicle's error row: estimate minus truth, NED.
E_POS, E_VEL, E_ATT, E_BIAS_Z = 0, 3, 6, 9
ERROR = 10


@dataclass(frozen=True)
class AssumedNoise:
    """What the filter believes: EKF2 parameters combined with the receiver's reported accuracies."""

    accel_mps2: float
    gyro_rps: float
    accel_bias_mps3: float
    gps_horizontal_m: float
    gps_vertical_m: float
    gps_velocity_mps: float
    gps_vertical_velocity_mps: float
    heading_rad: float


class FilterGains(NamedTuple):
    """Steady-state gains, one sequential scalar update per measurement."""

    xy_from_pos: Gain
    xy_from_vel: Gain
    z_from_gps: Gain
    z_from_vel: Gain
    heading: float


def _steady_gains(
    coupling: float, accel_std: float, third_std: float, position_std: float, speed_std: float
) -> tuple[Gain, Gain]:
    """Steady gains (from position, from velocity) for a state (position, velocity, third) seen at every GPS fix.

    The third state accelerates the estimate by ``coupling``; noise enters as EKF2 lets it, once per FILTER_DT.
    Between fixes the covariance is carried exactly (Van Loan's matrix exponential); at a fix velocity comes first.
    """
    rate = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, coupling], [0.0, 0.0, 0.0]])
    density = np.diag([0.0, accel_std**2, third_std**2]) * FILTER_DT
    exponential = linalg.expm(np.block([[-rate, density], [np.zeros((3, 3)), rate.T]]) * GPS_PERIOD)
    transition = exponential[3:, 3:].T
    process = transition @ exponential[:3, 3:]
    seen = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    p = linalg.solve_discrete_are(transition.T, seen.T, process, np.diag([speed_std**2, position_std**2]))
    from_speed = p[:, 1] / (p[1, 1] + speed_std**2)
    p = p - np.outer(from_speed, p[1])
    return _as_gain(p[:, 0] / (p[0, 0] + position_std**2)), _as_gain(from_speed)


def _as_gain(v: Floats) -> Gain:
    return float(v[0]), float(v[1]), float(v[2])


def design_filter(assumed: AssumedNoise) -> FilterGains:
    """Steady-state Kalman gains for the noise the filter assumes."""
    a = assumed
    xy = _steady_gains(GRAVITY, a.accel_mps2, a.gyro_rps, a.gps_horizontal_m, a.gps_velocity_mps)
    z = _steady_gains(-1.0, a.accel_mps2, a.accel_bias_mps3, a.gps_vertical_m, a.gps_vertical_velocity_mps)
    # Scalar Riccati equation for heading: p^2 = q (p + r), with q per measurement.
    q = a.gyro_rps**2 * FILTER_DT * HEADING_PERIOD
    r = a.heading_rad**2
    p = 0.5 * (q + np.sqrt(q * q + 4.0 * q * r))
    return FilterGains(*xy, *z, float(p / (p + r)))


@inlined
def predict_error(
    e: Floats,
    fx: float,
    fy: float,
    fz: float,
    nax: float,
    nay: float,
    naz: float,
    ngx: float,
    ngy: float,
    ngz: float,
    dt: float,
) -> None:
    """Carry the error over one IMU sample: specific force f, accelerometer and gyro noise, all in NED axes."""
    ax = e[E_ATT + 1] * fz - e[E_ATT + 2] * fy + nax
    ay = e[E_ATT + 2] * fx - e[E_ATT] * fz + nay
    az = e[E_ATT] * fy - e[E_ATT + 1] * fx + naz - e[E_BIAS_Z]
    e[E_POS] += e[E_VEL] * dt + 0.5 * ax * dt * dt
    e[E_POS + 1] += e[E_VEL + 1] * dt + 0.5 * ay * dt * dt
    e[E_POS + 2] += e[E_VEL + 2] * dt + 0.5 * az * dt * dt
    e[E_VEL] += ax * dt
    e[E_VEL + 1] += ay * dt
    e[E_VEL + 2] += az * dt
    e[E_ATT] += ngx * dt
    e[E_ATT + 1] += ngy * dt
    e[E_ATT + 2] += ngz * dt


@inlined
def _update(e: Floats, p: int, v: int, t: int, sign: float, observed: int, noise: float, gain: Gain) -> None:
    innovation = noise - e[observed]
    e[p] += gain[0] * innovation
    e[v] += gain[1] * innovation
    e[t] += sign * gain[2] * innovation


@inlined
def fuse_gps(e: Floats, gains: FilterGains, position_noise: Floats, velocity_noise: Floats) -> None:
    """Velocity, then position, each as one scalar update per axis.

    With specific force -g downwards, a tilt error about east accelerates the estimate south and one about north
    accelerates it east, hence the signs.
    """
    _update(e, 0, 3, 7, -1.0, 3, velocity_noise[0], gains.xy_from_vel)
    _update(e, 0, 3, 7, -1.0, 0, position_noise[0], gains.xy_from_pos)
    _update(e, 1, 4, 6, 1.0, 4, velocity_noise[1], gains.xy_from_vel)
    _update(e, 1, 4, 6, 1.0, 1, position_noise[1], gains.xy_from_pos)
    _update(e, 2, 5, 9, 1.0, 5, velocity_noise[2], gains.z_from_vel)
    _update(e, 2, 5, 9, 1.0, 2, position_noise[2], gains.z_from_gps)


@inlined
def fuse_heading(e: Floats, gains: FilterGains, noise: float) -> None:
    e[E_ATT + 2] += gains.heading * (noise - e[E_ATT + 2])
