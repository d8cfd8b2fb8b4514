"""What the kernel works on, in named groups: the vehicles' rows, their noise, their surroundings, what they are.

Arrays with an axis over vehicles come as named tuples of arrays. What every step of a vehicle reads or writes comes as
a record, which compiled code takes by reference: a tuple would be copied into every function it enters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_sim.vehicle.autopilot import MEMORY, SETPOINT, Gains
from sar_sim.vehicle.estimator import AIDS, ERROR, FilterGains
from sar_sim.vehicle.rigidbody import BODY, Airframe
from sar_sim.vehicle.wind import GUST

Floats = NDArray[np.float64]
Records = NDArray[np.void]

# Columns of one per-step noise row (unit normals).
N_GYRO, N_ACCEL = 0, 3
NOISE = 6
# Columns of one row of slower noise, one row per SLOW_EVERY steps.
N_GUST, N_HEADING = 0, 3
SLOW_NOISE = 4
SLOW_EVERY = 5
GPS_NOISE = 6


def as_record(values: tuple[Any, ...]) -> Records:
    """A named tuple, of named tuples if need be, as a one-element structured array."""
    return np.array([_plain(values)], dtype=_record_type(values))


def _plain(values: Any) -> Any:
    return tuple(_plain(value) for value in values) if hasattr(values, "_fields") else values


def _record_type(value: Any) -> Any:
    if hasattr(value, "_fields"):
        return np.dtype([(name, _record_type(part)) for name, part in zip(value._fields, value, strict=True)])
    return np.dtype((np.float64, np.shape(value)))


class Noise(NamedTuple):
    """Sensor noise as scalars for the kernel."""

    accel: tuple[float, float, float]
    gyro: tuple[float, float, float]
    gps_pos: tuple[float, float, float]
    gps_vel: tuple[float, float, float]
    heading: float


class Constants(NamedTuple):
    """What one kind of vehicle is and how it is flown."""

    airframe: Airframe
    gains: Gains
    decay: Floats  # [4] as of rotor_decay
    mix: Floats  # [4, 4]
    unmix: Floats  # [4, 4]
    filter_gains: FilterGains
    noise: Noise


class Rows(NamedTuple):
    """N vehicles, a row each, changed in place."""

    body: Floats  # [N, BODY]
    memory: Floats  # [N, MEMORY] of the autopilot
    error: Floats  # [N, ERROR] of the estimate
    gust: Floats  # [N, GUST]
    charge: Floats  # [N] in 0..1
    clear: Floats  # [N] a lower bound of the distance to the nearest obstacle, renewed when it no longer says enough
    scale: Floats  # [N, 4] thrust scale per motor
    aids: Floats  # [N, AIDS] what the aiding sensors suffer
    setpoints: Floats  # [N, SETPOINT] NED


def make_rows(n: int) -> Rows:
    """Sound vehicles with full batteries, nothing commanded; body, memory and gust are for the caller to fill."""
    return Rows(
        body=np.zeros((n, BODY)),
        memory=np.zeros((n, MEMORY)),
        error=np.zeros((n, ERROR)),
        gust=np.zeros((n, GUST)),
        charge=np.ones(n),
        clear=np.full(n, -np.inf),
        scale=np.ones((n, 4)),
        aids=np.zeros((n, AIDS)),
        setpoints=np.full((n, SETPOINT), np.nan),
    )


class Normals(NamedTuple):
    """One second's unit normals."""

    steps: Floats  # [N, STEPS, NOISE] one row per step
    slow: Floats  # [N, STEPS / SLOW_EVERY, SLOW_NOISE]
    fixes: Floats  # [fixes, N, GPS_NOISE]


class Surroundings(NamedTuple):
    """What the vehicles fly in."""

    wind: Floats  # [3] NED, the mean
    obstacles: Floats  # [M, 8] ENU


class Scratch(NamedTuple):
    """Rows [4] that a step of one vehicle writes before it reads them."""

    half: Floats
    command: Floats
    target: Floats
    attitude: Floats
    position: Floats
    velocity: Floats
    gyro: Floats
    fix_position: Floats
    fix_velocity: Floats


SCRATCH = np.dtype([(name, np.float64, 4) for name in Scratch._fields])
