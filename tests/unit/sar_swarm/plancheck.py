"""Referees for the planner that share no code with it: plain numpy distances, finite differences, a grid search."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from sar_core.geometry import box, cylinder

Floats = NDArray[np.float64]

SIDE_M, HEIGHT_M = 60.0, 24.0
BOUNDS = np.array([0.0, 0.0, 0.0, SIDE_M, SIDE_M, HEIGHT_M])


def distances(rows: Floats, points: Floats) -> Floats:
    """Distance from every point [N, 3] to the nearest of the obstacles [M, 8], 0 inside; [N]."""
    best = np.full(len(points), np.inf)
    for kind, cx, cy, cz, a, b, h, yaw in rows:
        x, y, z = points[:, 0] - cx, points[:, 1] - cy, points[:, 2] - cz
        up = np.maximum(np.abs(z) - h, 0.0)
        if kind == 0.0:
            u, v = np.cos(yaw) * x + np.sin(yaw) * y, np.cos(yaw) * y - np.sin(yaw) * x
            flat = np.hypot(np.maximum(np.abs(u) - a, 0.0), np.maximum(np.abs(v) - b, 0.0))
        else:
            flat = np.maximum(np.hypot(x, y) - a, 0.0)
        best = np.minimum(best, np.hypot(flat, up))
    return best


def dense(points: Floats, every_m: float = 0.1) -> Floats:
    """Points at most ``every_m`` apart along a polyline [K, 3]."""
    pieces = [points[:1]]
    for a, b in pairwise(points):
        count = max(int(np.ceil(np.linalg.norm(b - a) / every_m)), 1)
        pieces.append(a + (b - a) * np.linspace(0.0, 1.0, count + 1)[1:, None])
    return np.concatenate(pieces)


def least_clearance(rows: Floats, points: Floats) -> float:
    return float(distances(rows, dense(points)).min())


def motion(points: Floats, speeds: Floats) -> tuple[float, float, float]:
    """Largest acceleration, course rate and climb rate of the timed path, by finite differences.

    Between samples the speed changes evenly, so a piece takes its length over the mean of both speeds. Course counts
    where the drone moves horizontally and does not stop: a multirotor that stands still may turn as it likes.
    """
    pieces = np.diff(points, axis=0)
    spans = 2.0 * np.linalg.norm(pieces, axis=1) / (speeds[:-1] + speeds[1:])
    velocity = pieces / spans[:, None]
    between = 0.5 * (spans[:-1] + spans[1:])
    acceleration = np.linalg.norm(np.diff(velocity, axis=0), axis=1) / between
    course = np.unwrap(np.arctan2(velocity[:, 1], velocity[:, 0]))
    level = np.hypot(velocity[:, 0], velocity[:, 1]) > 1e-4
    turning = (speeds[1:-1] > 1e-3) & level[:-1] & level[1:]
    rate = np.abs(np.diff(course)) / between * turning
    return acceleration.max(initial=0.0), rate.max(initial=0.0), np.abs(velocity[:, 2]).max()


def oracle(rows: Floats, start: Floats, goal: Floats, clearance: float) -> bool | None:
    """Grid search: True a way is proven, False none is proven, None undecided at the finest grid.

    Points 1 m apart, then 0.5 m where that leaves it open. Proven: start and goal are joined through face neighbours
    whose distance is at least the clearance plus half a spacing, which keeps the lines between them clear. Proven none:
    they are not even joined through corner neighbours whose distance is at least the clearance less half a cell's
    diagonal, which no free way can avoid. What lies between is too near the clearance to call.
    """
    for spacing in (1.0, 0.5):
        grid, near = _field(rows, spacing, clearance + spacing)
        half = spacing * np.sqrt(3.0) / 2.0 + 1e-9
        loose, _ = ndimage.label(near >= clearance - half, np.ones((3, 3, 3)))
        ends = [_around(grid, end, half) for end in (start, goal)]
        if not {loose[at] for at in ends[0]} & {loose[at] for at in ends[1]}:
            return False
        strict, _ = ndimage.label(near >= clearance + spacing / 2.0)
        seen = []
        for end in (start, goal):
            around = [at for at in _around(grid, end, 2.0 * spacing) if strict[at] > 0]
            seen.append({strict[at] for at in around if least_clearance(rows, np.array([end, grid[at]])) >= clearance})
        if seen[0] & seen[1]:
            return True
    return None


@cache
def _grid(spacing: float) -> Floats:
    axes = [np.arange(0.0, side + spacing / 2, spacing) for side in (SIDE_M, SIDE_M, HEIGHT_M)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def _field(rows: Floats, spacing: float, reach: float) -> tuple[Floats, Floats]:
    """Grid points [X, Y, Z, 3] and their distance to the nearest obstacle [X, Y, Z], at most ``reach``."""
    grid = _grid(spacing)
    axes = (grid[:, 0, 0, 0], grid[0, :, 0, 1], grid[0, 0, :, 2])
    near = np.full(grid.shape[:3], reach)
    for row in rows:
        flat = np.hypot(row[4], row[5]) + reach
        spans = ((row[1], flat), (row[2], flat), (row[3], row[6] + reach))
        window = tuple(
            slice(*np.searchsorted(axis, (centre - half, centre + half)))
            for axis, (centre, half) in zip(axes, spans, strict=True)
        )
        part = distances(row[None], grid[window].reshape(-1, 3)).reshape(near[window].shape)
        near[window] = np.minimum(near[window], part)
    return grid, near


def _around(grid: Floats, end: Floats, within: float) -> list[tuple[int, ...]]:
    """Indices of the grid points within a distance of an end."""
    axes = (grid[:, 0, 0, 0], grid[0, :, 0, 1], grid[0, 0, :, 2])
    low = [int(np.searchsorted(axis, x - within)) for axis, x in zip(axes, end, strict=True)]
    high = [int(np.searchsorted(axis, x + within)) + 1 for axis, x in zip(axes, end, strict=True)]
    near = grid[low[0] : high[0], low[1] : high[1], low[2] : high[2]]
    return [tuple(at + low) for at in np.argwhere(np.linalg.norm(near - end, axis=-1) <= within)]


def clutter(rng: np.random.Generator) -> Floats:
    """Boxes and cylinders of many sizes."""
    rows = []
    for _ in range(rng.integers(10, 60)):
        x, y = rng.uniform(0.0, SIDE_M, 2)
        z = rng.uniform(0.0, HEIGHT_M)
        if rng.random() < 0.6:
            rows.append(box(x, y, z, *rng.uniform(0.5, 18.0, 3), rng.uniform(-np.pi, np.pi)))
        else:
            rows.append(cylinder(x, y, z, rng.uniform(0.2, 6.0), rng.uniform(1.0, 30.0)))
    return np.array(rows)


def trunks(rng: np.random.Generator) -> Floats:
    """A forest from floor to ceiling."""
    return np.array(
        [
            cylinder(*rng.uniform(0.0, SIDE_M, 2), HEIGHT_M / 2, rng.uniform(0.2, 1.5), HEIGHT_M)
            for _ in range(rng.integers(40, 130))
        ]
    )


def wall(x: float, y: float, z: float, gap: float) -> list[Floats]:
    """A wall across the whole space at x, with a square window around y, z."""
    left, right, low, high = y - gap / 2, y + gap / 2, z - gap / 2, z + gap / 2
    return [
        box(x, left / 2, HEIGHT_M / 2, 1.0, left, HEIGHT_M),
        box(x, (SIDE_M + right) / 2, HEIGHT_M / 2, 1.0, SIDE_M - right, HEIGHT_M),
        box(x, y, low / 2, 1.0, gap, low),
        box(x, y, (HEIGHT_M + high) / 2, 1.0, gap, HEIGHT_M - high),
    ]


def walls(rng: np.random.Generator, clearance: float) -> Floats:
    """One to four walls, each with a window; some windows are too small to pass."""
    rows: list[Floats] = []
    count = int(rng.integers(1, 5))
    for n in range(count):
        gap = rng.uniform(2.0 * clearance - 1.0, 2.0 * clearance + 9.0)
        y, z = rng.uniform(gap / 2, SIDE_M - gap / 2), rng.uniform(gap / 2, HEIGHT_M - gap / 2)
        rows += wall(SIDE_M * (n + 1) / (count + 1), y, z, gap)
    return np.array(rows)


def closed_room(rng: np.random.Generator, goal: Floats, clearance: float) -> Floats:
    """Four walls, floor and lid around the goal; nothing gets in."""
    half = clearance + rng.uniform(1.0, 4.0, 3)
    thick = rng.uniform(0.4, 1.5)
    rows = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            centre, size = goal.copy(), 2.0 * half + 2.0 * thick
            centre[axis] += sign * (half[axis] + thick / 2)
            size[axis] = thick
            rows.append(box(*centre, *size))
    return np.array(rows)
