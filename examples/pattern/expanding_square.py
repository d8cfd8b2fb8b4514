"""A pattern to copy: the expanding square search (SS) of the IAMSAR Manual, one per drone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sar_swarm.piloting.patternlist import Pattern
from sar_swarm.planning.routes import Area, clamp, inner_area

TURNS = ((0, 1), (1, 0), (0, -1), (-1, 0))
"""North, east, south, west."""


def expanding_square(area: Area, drones: int, index: int, swath_m: float, overlap: float) -> NDArray[np.float64]:
    """Waypoints [K, 2]: drone ``index`` starts in the middle of its strip; every second leg is one lane longer."""
    west, south, east, north = area
    width = (east - west) / drones
    strip = inner_area((west + index * width, south, west + (index + 1) * width, north), swath_m)
    lane = swath_m * (1.0 - overlap)
    x, y = 0.5 * (strip[0] + strip[2]), 0.5 * (strip[1] + strip[3])
    points = [(x, y)]
    for leg in range(2 * int((north - south) / lane)):
        dx, dy = TURNS[leg % 4]
        length = lane * (leg // 2 + 1)
        x, y = x + length * dx, y + length * dy
        point = clamp((x, y), strip)
        if point != points[-1]:
            points.append(point)
    return np.array(points)


EXPANDING_SQUARE = Pattern(
    "expanding_square",
    "a square spiral outwards from the middle of each drone's strip",
    route=expanding_square,
)
