"""Search patterns: from an area and a drone's place in the swarm to the waypoints that drone flies."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import InputError

Floats = NDArray[np.float64]

PATTERNS = ("partitioned_lawnmower",)


def lane_count(width_m: float, swath_m: float, overlap: float) -> int:
    """How many parallel lanes cover a strip when neighbouring swaths overlap by at least the given share."""
    return max(math.ceil(width_m / (swath_m * (1.0 - overlap)) - 1e-9), 1)


def partitioned_lawnmower(
    area: tuple[float, float, float, float], drones: int, index: int, swath_m: float, overlap: float
) -> Floats:
    """Waypoints [K, 2] in ENU: the area is split into equal strips along x, drone ``index`` sweeps its own strip.

    Lanes run along y and start in the south; they stop 0.4 swaths short of the edges, which the swath still reaches
    ahead of the drone and along its turns; only small corners between the ends of two lanes stay open.
    """
    x_min, y_min, x_max, y_max = area
    width = (x_max - x_min) / drones
    left = x_min + index * width
    lanes = lane_count(width, swath_m, overlap)
    spacing = width / lanes
    inset = min(0.4 * swath_m, 0.25 * (y_max - y_min))
    south, north = y_min + inset, y_max - inset
    points = []
    for lane in range(lanes):
        x = left + (lane + 0.5) * spacing
        ends = (south, north) if lane % 2 == 0 else (north, south)
        points += [(x, ends[0]), (x, ends[1])]
    return np.array(points)


def waypoints(
    pattern: str, area: tuple[float, float, float, float], drones: int, index: int, swath_m: float, overlap: float
) -> Floats:
    """The waypoints of a named pattern; an unknown name is an error, never a silent default."""
    if pattern == "partitioned_lawnmower":
        return partitioned_lawnmower(area, drones, index, swath_m, overlap)
    raise InputError(f"pattern {pattern!r} is not known; allowed: {', '.join(PATTERNS)}")
