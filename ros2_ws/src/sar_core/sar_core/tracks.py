"""Where true tracks lie: beside their lanes, inside a fence, near obstacles. K ticks, ENU, metres; compiled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.geometry import distance_to, room

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@compiled
def beside(route: Floats, positions: Floats) -> Floats:
    """Distance to a route and the direction of its leg there, float64[K, 3]: metres, and a unit vector (NaN: no leg).

    route float64[S, 2], positions float64[K, 2 or 3]; of two legs equally near the earlier one counts.
    """
    out = np.full((positions.shape[0], 3), np.nan)
    for k in range(positions.shape[0]):
        x, y = positions[k, 0], positions[k, 1]
        best = (x - route[0, 0]) ** 2 + (y - route[0, 1]) ** 2
        for s in range(1, route.shape[0]):
            ax, ay = route[s - 1, 0], route[s - 1, 1]
            ex, ey = route[s, 0] - ax, route[s, 1] - ay
            square = ex * ex + ey * ey
            if square <= 0.0:
                continue
            t = min(max(((x - ax) * ex + (y - ay) * ey) / square, 0.0), 1.0)
            d = (ax + t * ex - x) ** 2 + (ay + t * ey - y) ** 2
            if d < best or (d == best and math.isnan(out[k, 1])):
                best = d
                length = math.sqrt(square)
                out[k, 1], out[k, 2] = ex / length, ey / length
        out[k, 0] = math.sqrt(best)
    return out


@compiled
def to_fence(fence: Floats, positions: Floats) -> Floats:
    """Per tick, float64[K, 3]: distance to the fence, negative outside, and the unit vector to its nearest edge."""
    out = np.empty((positions.shape[0], 3))
    for k in range(positions.shape[0]):
        out[k, 0], out[k, 1], out[k, 2] = room(positions[k, 0], positions[k, 1], fence)
    return out


@compiled
def near_obstacles(obstacles: Floats, positions: Floats, within_m: float) -> Bools:
    """Whether a point is nearer than this to an obstacle, bool[K] for positions float64[K, 3].

    What is d farther away than that cannot be met before d has been flown, so most is skipped.
    """
    ticks = positions.shape[0]
    out = np.zeros(ticks, np.bool_)
    way = np.zeros(ticks)
    for k in range(1, ticks):
        step = 0.0
        for i in range(3):
            step += (positions[k, i] - positions[k - 1, i]) ** 2
        way[k] = way[k - 1] + math.sqrt(step)
    for m in range(obstacles.shape[0]):
        free_until = -1.0
        for k in range(ticks):
            if way[k] < free_until or out[k]:
                continue
            d = distance_to(obstacles[m], positions[k, 0], positions[k, 1], positions[k, 2]) - within_m
            if d < 0.0:
                out[k] = True
            else:
                free_until = way[k] + d
    return out
