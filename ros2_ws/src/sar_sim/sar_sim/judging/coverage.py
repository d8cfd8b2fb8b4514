"""Coverage truth: which cells of the search area a drone has really been near, when first, and what path was wasted.

A cell is scanned when its centre comes within 14 m horizontally of a drone's true position, exactly along the straight
legs between samples. Time is search time: 0 when all drones are at altitude.

Overlap ratio = re-covering path / path, horizontal lengths of all drones during the search. A stretch of path is
re-covering when the drone brings nothing to the cell beneath it, that is, when

- the cell was scanned already when the drone's present pass over it began (by another drone, or by the same one on an
  earlier pass), or
- the drone has flown more than one swath width (28 m) since then: a straight pass needs half of that, so it has
  turned back or is circling over what it has just scanned.

A pass over a cell begins where the drone comes within range of it and lasts until it is one cell width out of range, so
that hovering at the edge of a cell's range is not many passes.

Cells are scanned about 14 m ahead, so a drone's own footprint does not count against it; neighbouring lanes do not
count unless more than half of the swath overlaps. Path outside the area is path, but re-covers nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled

Floats = NDArray[np.float64]

_FLOWN, _IDLE, _RECOVERED = range(3)
_PIECE_M = 0.5


@dataclass(frozen=True)
class CoverageConfig:
    """The search area as (west, south, east, north) in ENU metres; a cell belongs to it if its centre does."""

    area_m: tuple[float, float, float, float]
    cell_m: float = 5.0
    radius_m: float = 14.0

    @property
    def shape(self) -> tuple[int, int]:
        """Cells south to north, west to east."""
        west, south, east, north = self.area_m
        return math.floor((north - south) / self.cell_m + 0.5), math.floor((east - west) / self.cell_m + 0.5)


@compiled
def _enter_cells(
    grid: tuple[float, float, float, float],
    first: Floats,
    entered: Floats,
    stale: NDArray[np.bool_],
    a: tuple[float, float],
    b: tuple[float, float],
    t0: float,
    t1: float,
    flown: float,
) -> float:
    """Mark what one drone scans, enters and leaves on the piece a-b; returns how far it can go before that changes.

    entered float64[ny, nx] holds the odometer reading where the drone's pass over a cell began, nan without one; stale
    is whether the cell had been scanned by then. flown is the reading at a. The box of cells looked at is two cells
    wider than the range, so nothing outside it comes into range within two cells.
    """
    west, south, cell, radius = grid
    ny, nx = first.shape
    vx, vy = b[0] - a[0], b[1] - a[1]
    length = math.sqrt(vx * vx + vy * vy)
    leave = radius + cell
    reach = leave + cell
    i0 = max(0, math.floor((min(a[0], b[0]) - reach - west) / cell))
    i1 = min(nx - 1, math.floor((max(a[0], b[0]) + reach - west) / cell))
    j0 = max(0, math.floor((min(a[1], b[1]) - reach - south) / cell))
    j1 = min(ny - 1, math.floor((max(a[1], b[1]) + reach - south) / cell))
    idle = cell
    for j in range(j0, j1 + 1):
        for i in range(i0, i1 + 1):
            rx, ry = a[0] - west - (i + 0.5) * cell, a[1] - south - (j + 0.5) * cell
            ahead = -(rx * vx + ry * vy)
            s = 0.0
            if ahead > 0.0:
                s = 1.0 if ahead >= length * length else ahead / (length * length)
            nearest = math.sqrt((rx + s * vx) ** 2 + (ry + s * vy) ** 2)
            end = math.sqrt((rx + vx) ** 2 + (ry + vy) ** 2)
            if nearest <= radius:
                s = 0.0
                outside = rx * rx + ry * ry - radius * radius
                if outside > 0.0:
                    s = (ahead - math.sqrt(max(0.0, ahead * ahead - length * length * outside))) / (length * length)
                t = t0 + s * (t1 - t0)
                if math.isnan(entered[j, i]):
                    entered[j, i] = flown + s * length
                    stale[j, i] = first[j, i] < t
                first[j, i] = min(first[j, i], t)
            if end > leave:
                entered[j, i] = np.nan
            idle = min(idle, abs(end - radius), abs(end - leave))
    return idle


@compiled
def _sweep(
    grid: tuple[float, float, float, float],
    times: Floats,
    positions: Floats,
    first: Floats,
    entered: Floats,
    stale: NDArray[np.bool_],
    drones: Floats,
) -> None:
    """All drones over one tick, leg by leg so that who came first is decided in order of time.

    drones float64[N, 3]: metres flown, metres left in which no cell changes, metres re-covered.
    """
    west, south, cell, radius = grid
    ny, nx = first.shape
    for k in range(1, times.shape[0]):
        if times[k] <= 0.0:
            continue
        start = 0.0 if times[k - 1] >= 0.0 else -times[k - 1] / (times[k] - times[k - 1])
        for n in range(positions.shape[1]):
            ax, ay = positions[k - 1, n, 0], positions[k - 1, n, 1]
            wx, wy = positions[k, n, 0] - ax, positions[k, n, 1] - ay
            pieces = max(1, math.ceil((1.0 - start) * math.sqrt(wx * wx + wy * wy) / _PIECE_M))
            for p in range(pieces):
                s0 = start + (1.0 - start) * p / pieces
                s1 = start + (1.0 - start) * (p + 1) / pieces
                a = (ax + s0 * wx, ay + s0 * wy)
                b = (ax + s1 * wx, ay + s1 * wy)
                length = math.sqrt((b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2)
                if drones[n, _IDLE] > length:
                    drones[n, _IDLE] -= length
                else:
                    t0 = times[k - 1] + s0 * (times[k] - times[k - 1])
                    t1 = times[k - 1] + s1 * (times[k] - times[k - 1])
                    drones[n, _IDLE] = _enter_cells(grid, first, entered[n], stale[n], a, b, t0, t1, drones[n, _FLOWN])
                drones[n, _FLOWN] += length
                i = math.floor((0.5 * (a[0] + b[0]) - west) / cell)
                j = math.floor((0.5 * (a[1] + b[1]) - south) / cell)
                if 0 <= i < nx and 0 <= j < ny:
                    since = drones[n, _FLOWN] - entered[n, j, i]
                    if stale[n, j, i] or since > 2.0 * radius:
                        drones[n, _RECOVERED] += length


class Coverage:
    """Feed it the search's ticks of truth in turn; it keeps when each cell was first scanned."""

    def __init__(self, config: CoverageConfig, num_drones: int) -> None:
        self.config = config
        west, south, _, _ = config.area_m
        self._grid = (float(west), float(south), float(config.cell_m), float(config.radius_m))
        self._first = np.full(config.shape, np.inf)
        self._entered = np.full((num_drones, *config.shape), np.nan)
        self._stale = np.zeros((num_drones, *config.shape), dtype=np.bool_)
        self._drones = np.zeros((num_drones, 3))

    def observe(self, search_times_s: Floats, positions: Floats) -> None:
        """One tick: search_times_s float64[K], search clock (before 0 nothing counts); positions float64[K, N, 3], ENU.

        As for the referee, motion is straight between samples and the first sample repeats the last one before.
        """
        _sweep(
            self._grid,
            np.ascontiguousarray(search_times_s),
            np.ascontiguousarray(positions),
            self._first,
            self._entered,
            self._stale,
            self._drones,
        )

    @property
    def first_scan_s(self) -> Floats:
        """Search time of each cell's first scan, float64[ny, nx] from the south-west corner; inf = never."""
        return self._first.copy()

    @property
    def scanned_cells(self) -> int:
        return int(np.isfinite(self._first).sum())

    @property
    def fraction(self) -> float:
        return self.scanned_cells / self._first.size

    def coverage_at(self, search_time_s: float) -> float:
        """Fraction of cells scanned up to and including this search time."""
        return float(np.mean(self._first <= search_time_s))

    def time_to(self, fraction: float) -> float | None:
        """First search time at which at least this fraction was scanned; None if that never happened."""
        needed = max(1, math.ceil(fraction * self._first.size - 1e-9))
        reached = float(np.sort(self._first, axis=None)[needed - 1])
        return reached if math.isfinite(reached) else None

    @property
    def path_m(self) -> float:
        """Horizontal path of all drones during the search."""
        return float(self._drones[:, _FLOWN].sum())

    @property
    def overlap_ratio(self) -> float | None:
        """Re-covering path over path; None before anything has moved."""
        return float(self._drones[:, _RECOVERED].sum()) / self.path_m if self.path_m > 0.0 else None
