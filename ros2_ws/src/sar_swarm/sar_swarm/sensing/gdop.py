"""What geometry alone says about a fix: dilution of precision, diversity of views, and the Cramér-Rao bound.

Horizontal geometry, ENU, SI. What is undefined is None, never 0: a zero would read as a perfect constellation. Three
dilutions are told apart: the path's (every 30 degree sector of every drone's way counts as a sensor), the
constellation's (the drones that hear it now), and the information's (metres, the root of a covariance's trace).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.radio import BASELINE
from sar_swarm.sensing.position import AX, AZ, DRONE, PHASE_STD, PX, PZ, RANGE, RANGE_STD

Floats = NDArray[np.float64]

MIN_RANGE_M = 1e-9
MIN_DETERMINANT = 1e-12
VIEW_CORRELATION_RAD = math.pi / 6.0
CONSTELLATION_S = 2.0
"""A drone stands in the constellation while its latest usable observation is no older than this."""
BANDS = ((1.2, "excellent"), (2.0, "good"), (4.0, "fair"), (math.inf, "poor"))


def gdop(sensors: Floats, target: Floats) -> float | None:
    """Horizontal dilution of precision sqrt(trace((H^T H)^-1)), H's rows the unit lines of sight; dimensionless.

    ``sensors`` float64[N, >=2] and ``target`` float64[>=2] in metres. None for fewer than two sensors, a sensor on the
    target, or lines of sight that are all parallel.
    """
    if len(sensors) < 2:
        return None
    offset = np.asarray(target, dtype=np.float64)[:2] - np.asarray(sensors, dtype=np.float64)[:, :2]
    distance = np.hypot(offset[:, 0], offset[:, 1])
    if not np.all(distance >= MIN_RANGE_M):
        return None
    c, s = offset[:, 0] / distance, offset[:, 1] / distance
    a, b, d = float(c @ c), float(c @ s), float(s @ s)
    determinant = a * d - b * b
    if not abs(determinant) >= MIN_DETERMINANT:
        return None
    return math.sqrt((a + d) / determinant)


def constellation_gdop(latest: Floats, target: Floats, time_s: float) -> float | None:
    """Dilution by the drones that hear a transmitter at ``time_s``: one horizontal line of sight for each.

    ``latest`` float64[N, 3] holds one row per drone, (time, x, y) of its latest usable observation: the newest that a
    swarm knows of where it stood. Rows older than CONSTELLATION_S, or of later than ``time_s``, do not count. None for
    fewer than two drones or parallel lines.
    """
    latest = np.asarray(latest, dtype=np.float64).reshape(-1, 3)
    age = time_s - latest[:, 0]
    return gdop(latest[(age >= 0.0) & (age <= CONSTELLATION_S), 1:], target)


def band(value: float | None) -> str:
    """A word for a GDOP: excellent below 1.2, good to 2, fair to 4, poor above, or undefined."""
    if value is None or math.isnan(value):
        return "undefined"
    return next(name for limit, name in BANDS if value < limit or limit == math.inf)


def _separations(azimuths: Floats) -> Floats:
    """Pairwise angles in [0, pi], float64[N, N]."""
    azimuths = np.asarray(azimuths, dtype=np.float64)
    difference = np.abs(azimuths[:, None] - azimuths[None, :]) % (2.0 * math.pi)
    return np.minimum(difference, 2.0 * math.pi - difference)


def gdi(azimuths: Floats) -> float | None:
    """Geometric diversity: the mean over views of the angle (rad) to the nearest other view; ideal 2 pi / N."""
    if len(azimuths) < 2:
        return None
    separations = _separations(azimuths)
    np.fill_diagonal(separations, math.inf)
    return float(separations.min(axis=1).mean())


def effective_views(azimuths: Floats) -> float:
    """How many independent views N views are worth: tr(R)^2 / tr(R^2), R_ij = exp(-theta^2 / (2 (pi/6)^2))."""
    n = len(azimuths)
    if n == 0:
        return 0.0
    correlation = np.exp(-0.5 * (_separations(azimuths) / VIEW_CORRELATION_RAD) ** 2)
    return float(np.clip(n * n / np.sum(correlation * correlation), 1.0, n))


def fisher(
    observations: Floats,
    target: Floats,
    height_m: float,
    pose_std_m: float = 0.0,
    yaw_std_rad: float = 0.0,
    power_log_std: float = 0.0,
) -> Floats:
    """Fisher information float64[2, 2] about (x, y) in log-range and array phase, device height known.

    ``observations`` are rows of :mod:`sar_swarm.sensing.position`; only their geometry and standard deviations count.
    Each drone's position (per axis) and yaw error is one draw shared by all its observations, the transmit power error
    one draw shared by all: both are nuisance parameters with a prior, taken out by the Schur complement.
    """
    total, mixed, power = np.zeros((2, 2)), np.zeros(2), 0.0
    for drone in np.unique(observations[:, DRONE]):
        rows = observations[observations[:, DRONE] == drone]
        towards = np.column_stack([target[0] - rows[:, PX], target[1] - rows[:, PX + 1], height_m - rows[:, PZ]])
        distance = np.linalg.norm(towards, axis=1)
        u, axis = towards / distance[:, None], rows[:, AX : AZ + 1]
        s = np.sum(u * axis, axis=1)
        along = u / distance[:, None]
        across = BASELINE * (axis - s[:, None] * u) / distance[:, None]
        turning = BASELINE * (axis[:, 0] * u[:, 1] - axis[:, 1] * u[:, 0])
        weight = np.concatenate([(rows[:, RANGE] / rows[:, RANGE_STD]) ** 2, rows[:, PHASE_STD] ** -2.0])
        jacobian = np.vstack([along, across])[:, :2]
        columns, prior = [], []
        if pose_std_m > 0.0:
            columns += list(-np.vstack([along, across]).T)
            prior += [pose_std_m**-2.0] * 3
        if yaw_std_rad > 0.0:
            columns.append(np.concatenate([np.zeros(len(rows)), turning]))
            prior.append(yaw_std_rad**-2.0)
        offset = np.concatenate([np.ones(len(rows)), np.zeros(len(rows))])
        wanted = np.column_stack([jacobian, offset])
        information = wanted.T @ (weight[:, None] * wanted)
        if columns:
            nuisance = np.column_stack(columns)
            cross = wanted.T @ (weight[:, None] * nuisance)
            own = nuisance.T @ (weight[:, None] * nuisance) + np.diag(prior)
            information -= cross @ np.linalg.solve(own, cross.T)
        total += information[:2, :2]
        mixed += information[:2, 2]
        power += float(information[2, 2])
    if power_log_std > 0.0:
        total -= np.outer(mixed, mixed) / (power + power_log_std**-2.0)
    return total


def crlb(
    observations: Floats,
    target: Floats,
    height_m: float,
    pose_std_m: float = 0.0,
    yaw_std_rad: float = 0.0,
    power_log_std: float = 0.0,
) -> float | None:
    """Cramér-Rao bound on the horizontal RMSE (m) of any unbiased fix, or None where the geometry fixes nothing."""
    information = fisher(observations, target, height_m, pose_std_m, yaw_std_rad, power_log_std)
    determinant = float(information[0, 0] * information[1, 1] - information[0, 1] ** 2)
    if not abs(determinant) >= MIN_DETERMINANT:
        return None
    return math.sqrt(float(information[0, 0] + information[1, 1]) / determinant)
