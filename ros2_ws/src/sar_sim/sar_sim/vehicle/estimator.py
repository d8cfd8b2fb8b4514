"""The error of a GPS-aided inertial estimate, so that the swarm sees an estimate and never the truth.

PX4's EKF2 is, near steady flight, a linear filter whose gains follow from the noise it *assumes* (EKF2_* parameters
and the accuracies the receiver reports) while its error is driven by the noise the sensors *have*. We carry that
error itself: the estimate is truth plus error. Per horizontal axis the error is (position, velocity, tilt), vertical
(position, velocity, accelerometer bias), heading one number. Gains are the steady state of the same Kalman filter.

What the aiding sensors suffer is one row of aids per vehicle: no fix, a fix that drifts away, a compass that is wrong.
Without a fix the horizontal error grows by itself, until EKF2 gives up and supposes that it stands still; height then
rests on the barometer.

Left out: the delayed fusion horizon, magnetometer field states, horizontal accelerometer and gyro biases, gates that
reject a measurement, and, while there is a fix, the barometer, whose bias EKF2 lets wander against GPS height (0.13 m
per root second), so that it says little of height.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from sar_core.compiled import compiled, inlined

Floats = NDArray[np.float64]
Gain = tuple[float, float, float]
Axes = tuple[float, float, float]

GRAVITY = 9.80665
FILTER_DT = 0.012
GPS_PERIOD_MS = 125
"""8 Hz, as PX4's simulated receiver (sensor_gps_sim) has."""
GPS_PERIOD = GPS_PERIOD_MS / 1000.0
HEADING_PERIOD = 0.02

# Columns of one vehicle's error row: estimate minus truth, NED.
E_POS, E_VEL, E_ATT, E_BIAS_Z = 0, 3, 6, 9
ERROR = 10

# Columns of one vehicle's aids row: what is wrong with its aiding sensors, NED; all zero while nothing is.
A_LOST = 0  # 1 while there is no fix
A_DRIFT = 1  # 2, m: how far the fix is off, north and east
A_RATE = 3  # 2, m/s: how fast that grows
A_HEADING = 5  # rad: what the compass adds to the heading
A_HEIGHT = 6  # m: the height error the barometer has kept since the last fix
A_FIX = 7  # the step after the last fix
A_STANDING = 8  # 1 while the estimator makes up a position
A_PLACE = 9  # 2, m: that position
AIDS = 11

BARO_STD_M = 0.085
"""1 Pa per sample, as PX4's simulated barometer (sensor_baro_sim) has."""
RESET_STEPS = 1250
"""EKF2_NOAID_TOUT, 5 s of 4 ms: then EKF2 supposes that it stands still, which keeps the attitude level; a fix that
comes back later replaces position and velocity instead of correcting them."""
NO_AID_M = 10.0
"""EKF2_NOAID_NOISE: how little that supposition is trusted."""
NO_SPEED_MPS = 1e6
LARGE_YAW_RAD = 0.1
"""A heading error beyond this is turned exactly; a sound compass keeps it thirty times smaller."""


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
    xy_from_nothing: Gain = (0.0, 0.0, 0.0)
    """For the standing position that EKF2 makes up when it has no aid at all."""


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
    alone, _ = _steady_gains(GRAVITY, a.accel_mps2, a.gyro_rps, NO_AID_M, NO_SPEED_MPS)
    return FilterGains(*xy, *z, float(p / (p + r)), alone)


@inlined
def predict_error(e: Floats, force: Axes, accel_noise: Axes, gyro_noise: Axes, dt: float) -> None:
    """Carry the error over one IMU sample: specific force and the sensors' noise, all in NED axes.

    Tilt errors are small and act linearly, and so does heading until a bad compass makes it large.
    """
    fx, fy, fz = force
    nax, nay, naz = accel_noise
    ngx, ngy, ngz = gyro_noise
    yaw = e[E_ATT + 2]
    if abs(yaw) > LARGE_YAW_RAD:
        c, s = math.cos(yaw) - 1.0, math.sin(yaw)
        ax = e[E_ATT + 1] * fz + c * fx - s * fy + nax
        ay = s * fx + c * fy - e[E_ATT] * fz + nay
    else:
        ax = e[E_ATT + 1] * fz - yaw * fy + nax
        ay = yaw * fx - e[E_ATT] * fz + nay
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


@compiled
def _do_without(s: Floats, e: Floats, gains: FilterGains, height_noise: float, aid: Floats, step: int) -> None:
    """Height by barometer, and after a while a made-up place where the estimate stands (EKF2's fake position)."""
    _update(e, 2, 5, 9, 1.0, 2, aid[A_HEIGHT] + BARO_STD_M * height_noise, gains.z_from_gps)
    if step - aid[A_FIX] <= RESET_STEPS:
        return
    if aid[A_STANDING] == 0.0:
        aid[A_STANDING] = 1.0
        for j in range(2):
            aid[A_PLACE + j] = s[j] + e[E_POS + j]
            e[E_VEL + j] = -s[3 + j]
    _update(e, 0, 3, 7, -1.0, 0, aid[A_PLACE] - s[0], gains.xy_from_nothing)
    _update(e, 1, 4, 6, 1.0, 1, aid[A_PLACE + 1] - s[1], gains.xy_from_nothing)


@inlined
def fuse_fix(
    s: Floats,
    e: Floats,
    gains: FilterGains,
    position_noise: Floats,
    velocity_noise: Floats,
    height_noise: float,
    aid: Floats,
    step: int,
) -> None:
    """The instant of a fix: fuse it, drifting as it may be, or do without it.

    s is the true body row, aid the vehicle's aids row. Noise in metres and m/s, NED; that of the barometer in its
    standard deviations.
    """
    if aid[A_LOST] > 0.0:
        _do_without(s, e, gains, height_noise, aid, step)
        return
    aid[A_STANDING] = 0.0
    for j in range(2):
        aid[A_DRIFT + j] += aid[A_RATE + j] * GPS_PERIOD
        position_noise[j] += aid[A_DRIFT + j]
        velocity_noise[j] += aid[A_RATE + j]
    if step - aid[A_FIX] > RESET_STEPS:
        for j in range(3):
            e[E_POS + j] = position_noise[j]
            e[E_VEL + j] = velocity_noise[j]
    else:
        fuse_gps(e, gains, position_noise, velocity_noise)
    aid[A_HEIGHT] = e[E_POS + 2]
    aid[A_FIX] = step + 1
