"""Coverage from the true track: when each cell was first scanned, by whom, and how much of the path re-covered.

A cell (5 m) is scanned when its centre comes within 14 m horizontally of a drone's true position, along the straight
legs between recorded ticks. Time is search time, 0 when all drones are at altitude.

Overlap ratio = re-covering path / path, horizontal, all drones. A stretch re-covers when the cell beneath it had been
scanned before the drone's present pass over it began, or when the drone has flown more than a swath (28 m) since then.
A pass begins where the drone comes within range of the cell and ends one cell width beyond the range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Area = tuple[float, float, float, float]

CELL_M = 5.0
RADIUS_M = 14.0
PIECE_M = 0.5
"""Legs are cut into pieces no longer than this; passes begin and end exactly, but end only between pieces."""
LOOK_M = 0.03
"""How often the path is asked what lies beneath it; about what the referee's 4 ms steps are at 8 m/s."""
COARSE = (2.0, 0.25)
"""Pieces and looks for very many tracks: twice as fast, overlap within 0.0002 of the fine one."""


def grid_shape(area_m: Area, cell_m: float = CELL_M) -> tuple[int, int]:
    """Cells south to north and west to east; a cell belongs to the area if its centre does."""
    west, south, east, north = area_m
    return math.floor((north - south) / cell_m + 0.5), math.floor((east - west) / cell_m + 0.5)


@compiled
def _crossing(rx: float, ry: float, vx: float, vy: float, radius: float) -> float:
    """Where on the way from r to r + v the circle about the origin is first touched, 0..1; 2 if it never is."""
    outside = rx * rx + ry * ry - radius * radius
    if outside <= 0.0:
        return 0.0
    square, ahead = vx * vx + vy * vy, -(rx * vx + ry * vy)
    root = ahead * ahead - square * outside
    if ahead <= 0.0 or root < 0.0:
        return 2.0
    s = (ahead - math.sqrt(root)) / square
    return s if s <= 1.0 else 2.0


@compiled
def _piece(
    grid: tuple[float, float, float, float],
    a: tuple[float, float],
    b: tuple[float, float],
    t0: float,
    t1: float,
    drone: int,
    flown: float,
    first: Floats,
    finder: Ints,
    entered: Floats,
    stale: NDArray[np.bool_],
) -> None:
    """One drone's way a-b: cells scanned, passes begun and passes ended. entered, stale [ny, nx] are this drone's."""
    west, south, cell, radius = grid
    ny, nx = first.shape
    leave = radius + cell
    reach = leave + cell
    vx, vy = b[0] - a[0], b[1] - a[1]
    length = math.sqrt(vx * vx + vy * vy)
    i0 = max(0, math.floor((min(a[0], b[0]) - reach - west) / cell))
    i1 = min(nx - 1, math.floor((max(a[0], b[0]) + reach - west) / cell))
    j0 = max(0, math.floor((min(a[1], b[1]) - reach - south) / cell))
    j1 = min(ny - 1, math.floor((max(a[1], b[1]) + reach - south) / cell))
    for j in range(j0, j1 + 1):
        for i in range(i0, i1 + 1):
            rx, ry = a[0] - west - (i + 0.5) * cell, a[1] - south - (j + 0.5) * cell
            s = _crossing(rx, ry, vx, vy, radius)
            if s <= 1.0:
                t = t0 + s * (t1 - t0)
                if math.isnan(entered[j, i]):
                    entered[j, i] = flown + s * length
                    stale[j, i] = first[j, i] < t
                if t < first[j, i]:
                    first[j, i] = t
                    finder[j, i] = drone
            if (rx + vx) ** 2 + (ry + vy) ** 2 > leave * leave:
                entered[j, i] = np.nan


@compiled
def _recovered(
    grid: tuple[float, float, float, float],
    a: tuple[float, float],
    b: tuple[float, float],
    flown: float,
    entered: Floats,
    stale: NDArray[np.bool_],
    look_m: float,
) -> float:
    """Metres of the way a-b that bring nothing to the cell beneath, looked at every ``look_m``."""
    west, south, cell, radius = grid
    ny, nx = entered.shape
    vx, vy = b[0] - a[0], b[1] - a[1]
    length = math.sqrt(vx * vx + vy * vy)
    looks = math.ceil(length / look_m)
    wasted = 0
    for p in range(looks):
        s = (p + 0.5) / looks
        i = math.floor((a[0] + s * vx - west) / cell)
        j = math.floor((a[1] + s * vy - south) / cell)
        if 0 <= i < nx and 0 <= j < ny and (stale[j, i] or flown + s * length - entered[j, i] > 2.0 * radius):
            wasted += 1
    return length * wasted / max(looks, 1)


@compiled
def _sweep(
    grid: tuple[float, float, float, float],
    times: Floats,
    positions: Floats,
    first: Floats,
    finder: Ints,
    paths: Floats,
    steps: tuple[float, float],
) -> None:
    """All legs in order of time. paths float64[N, 2]: metres flown and metres re-covered per drone."""
    ny, nx = first.shape
    number = positions.shape[1]
    entered = np.full((number, ny, nx), np.nan)
    stale = np.zeros((number, ny, nx), np.bool_)
    for k in range(1, times.shape[0]):
        for n in range(number):
            ax, ay = positions[k - 1, n, 0], positions[k - 1, n, 1]
            wx, wy = positions[k, n, 0] - ax, positions[k, n, 1] - ay
            pieces = max(1, math.ceil(math.sqrt(wx * wx + wy * wy) / steps[0]))
            for p in range(pieces):
                s0, s1 = p / pieces, (p + 1) / pieces
                a = (ax + s0 * wx, ay + s0 * wy)
                b = (ax + s1 * wx, ay + s1 * wy)
                span = times[k] - times[k - 1]
                t0, t1 = times[k - 1] + s0 * span, times[k - 1] + s1 * span
                _piece(grid, a, b, t0, t1, n, paths[n, 0], first, finder, entered[n], stale[n])
                paths[n, 1] += _recovered(grid, a, b, paths[n, 0], entered[n], stale[n], steps[1])
                paths[n, 0] += math.sqrt((b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2)


@dataclass(frozen=True)
class SweptCoverage:
    """first_scan_s float64[ny, nx] from the south-west corner (inf = never), finder int64[ny, nx] (-1 = nobody)."""

    first_scan_s: Floats
    finder: Ints
    path_m: Floats
    recovered_m: Floats

    @property
    def scanned_cells(self) -> int:
        """How many cells were scanned at all."""
        return int(np.isfinite(self.first_scan_s).sum())

    @property
    def fraction(self) -> float:
        """Fraction of cells scanned at all."""
        return self.scanned_cells / self.first_scan_s.size

    def at(self, search_time_s: float) -> float:
        """Fraction of cells scanned up to and including this search time, which is finite."""
        return float(np.mean(self.first_scan_s <= search_time_s))

    def time_to(self, fraction: float) -> float | None:
        """First search time with at least this fraction scanned; None if that never happened (censored)."""
        needed = max(1, math.ceil(fraction * self.first_scan_s.size - 1e-9))
        reached = float(np.sort(self.first_scan_s, axis=None)[needed - 1])
        return reached if math.isfinite(reached) else None

    @property
    def overlap_ratio(self) -> float | None:
        """Re-covering path over path; None if nothing moved."""
        flown = float(self.path_m.sum())
        return float(self.recovered_m.sum()) / flown if flown > 0.0 else None

    @property
    def cells_by_drone(self) -> Ints:
        """Cells each drone was the first to scan, int64[N]."""
        found = self.finder[self.finder >= 0]
        return np.bincount(found, minlength=len(self.path_m)).astype(np.int64)


def sweep(
    area_m: Area,
    times_s: Floats,
    positions: Floats,
    cell_m: float = CELL_M,
    steps_m: tuple[float, float] = (PIECE_M, LOOK_M),
) -> SweptCoverage:
    """Coverage of a search: times_s float64[K] on the search clock from 0 on, positions float64[K, N, 2 or 3] ENU.

    ``steps_m``: how long the pieces of the path are, and how often overlap is looked at.
    """
    shape = grid_shape(area_m, cell_m)
    first, finder = np.full(shape, np.inf), np.full(shape, -1, np.int64)
    paths = np.zeros((positions.shape[1], 2))
    grid = (float(area_m[0]), float(area_m[1]), float(cell_m), RADIUS_M)
    times, places = np.ascontiguousarray(times_s), np.ascontiguousarray(positions[..., :2])
    _sweep(grid, times, places, first, finder, paths, steps_m)
    return SweptCoverage(first, finder, paths[:, 0], paths[:, 1])
