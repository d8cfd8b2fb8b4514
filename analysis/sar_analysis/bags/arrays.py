"""The parts of a recorded episode as arrays: names, shapes and units of everything the metrics look at.

Stamps are simulation time in integer nanoseconds. Frames are ENU for the world and FLU for bodies; drones count from 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

VICTIM = 0
"""The kind of device that is looked for; all others are decoys."""


@dataclass(frozen=True)
class Info:
    """What was flown; area as (west, south, east, north) in ENU metres."""

    episode_id: str
    tier: str
    world: str
    world_sha256: str
    config_sha256: str
    vehicle: str
    pattern: str
    seed: int
    episode: int
    drones: int
    duration_s: float
    altitude_m: float
    speed_mps: float
    wind_mps: float
    area_m: tuple[float, float, float, float]


@dataclass(frozen=True)
class TruthSeries:
    """True states at K ticks of N drones, ENU/FLU: stamps [K], vectors [K, N, 3], attitude [K, N, 4] as x y z w."""

    stamps_ns: Ints
    position: Floats
    velocity: Floats
    attitude: Floats
    angular_velocity: Floats

    @property
    def times_s(self) -> Floats:
        """Simulation time of each tick, float64[K]."""
        return np.asarray(self.stamps_ns / 1e9, np.float64)


@dataclass(frozen=True)
class StatusSeries:
    """The referee's running account, one row per second: all arrays [K]."""

    stamps_ns: Ints
    phase: Ints
    search_time_s: Floats
    coverage: Floats
    collisions: Ints
    near_misses: Ints
    airborne: Ints
    valid: Bools
    invalid_reason: tuple[str, ...]
    issues: Ints | None = None
    """[K, 4] issues, found, displaced and decoy alarms so far; None for a bag that does not tell."""


@dataclass(frozen=True)
class Events:
    """The referee's announcements in order: all arrays [K]; begin and end of one contact share an id."""

    stamps_ns: Ints
    event_id: Ints
    kind: Ints
    phase: Ints
    uav: Ints
    other_uav: Ints
    begin_ns: Ints
    end_ns: Ints
    min_distance_m: Floats
    position: Floats
    obstacle: tuple[str, ...]


@dataclass(frozen=True)
class Reports:
    """What drones claimed, in order: [K], position [K, 3] ENU, covariance [K, 4].

    Dilutions are nan where undefined: path and constellation are GDOPs, information (m) is the root of the covariance's
    trace. Of a bag that told only one `gdop`, that is the path's, and the others are nan.
    """

    stamps_ns: Ints
    uav: Ints
    address: NDArray[np.uint64]
    position: Floats
    covariance: Floats
    confidence: Floats
    path_gdop: Floats
    constellation_gdop: Floats
    information_dop: Floats
    views: Ints
    observations: Ints
    speed_mps: Floats


@dataclass(frozen=True)
class Devices:
    """Every transmitter's truth: address and kind [D], position [K, D, 3] at stamps [K].

    ``listed`` [D]: whether the swarm was told of it; None for a bag that does not say.
    """

    stamps_ns: Ints
    address: NDArray[np.uint64]
    kind: Ints
    position: Floats
    listed: Bools | None = None


@dataclass(frozen=True)
class Hearings:
    """Observations of all drones, in order of time: all arrays [K], drones from 1."""

    stamps_ns: Ints
    uav: Ints
    address: NDArray[np.uint64]
    usable: Bools


@dataclass(frozen=True)
class HealthSeries:
    """One drone's own account, twice a second: all arrays [K]."""

    stamps_ns: Ints
    phase: Ints
    failsafe: Ints
    armed: Bools
    battery_fraction: Floats
    band: Ints | None
    """The safety layer's worst band since the row before, as the fence state is; None in bags older than the fields."""
    fence: Ints | None


@dataclass(frozen=True)
class SetpointSeries:
    """What one drone's autopilot was asked, ENU: stamps [K], velocity and wanted velocity [K, 3], NaN: not asked.

    ``wanted`` is what the safety layer was asked for and ``limit_excess`` [K] how far its answer breaks a limit; both
    None in bags older than the fields.
    """

    stamps_ns: Ints
    velocity: Floats
    wanted: Floats | None
    limit_excess: Floats | None


@dataclass(frozen=True)
class Gates:
    """Changes of all drones' gates: all arrays [K]."""

    stamps_ns: Ints
    uav: Ints
    address: NDArray[np.uint64]
    open: Bools
    state: Ints
    coherence: Floats


@dataclass(frozen=True)
class Grid:
    """Scanned cells as the recorder saw them each second: bool[K, ny, nx] from the south-west corner."""

    stamps_ns: Ints
    cell_m: float
    scanned: Bools
