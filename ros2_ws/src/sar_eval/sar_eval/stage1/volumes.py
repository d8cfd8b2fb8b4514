"""What of the world reaches up to where Stage 1 flies: upright volumes in its plane, each with the distance to keep.

A body counts from the clearance that the swarm's planner keeps below the drones' altitude; nearer to its top the
distance to keep in the plane shrinks, as a ball's does, and `clearance.close_obstacles` of the swarm's own code says by
how much. Bodies are convex and so is a volume: a rectangle or a disc with a rim. ENU, metres.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.geometry import BOX, ROW, crosses_rectangle, from_segment2
from sar_swarm.planning.clearance import close_obstacles

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Bounds = tuple[float, float, float, float]
"""West, south, east, north."""

SPARE_M = 0.5
"""Ways keep this much more than tracks must, so that a drone a little off its way is still free to fly on."""
OUTLINE_M = 1.0
"""How far beyond its rim a volume's corners lie: what ways bend round."""
SIDES = 8
"""Of the polygon round a disc."""
HAIR_M = 1e-9
RINGS, SPOTS = 60, 32
"""A place inside a volume is moved out on rings 1 m apart, 32 places on each."""
_RIM, _SPAN = 7, 8


class Volumes(NamedTuple):
    """Volumes at one altitude, and the corners that ways round them are made of.

    rows float64[V, 9]: kind, x, y, cosine and sine of the yaw, half extents (a disc: radius, 0), distance to keep,
    radius of a circle around it all. corners float64[P, 2], all of them free; sees bool[P, P]: whether a way may lead
    straight from one to the other. bounds: what corners and moved places stay in.
    """

    rows: Floats
    corners: Floats
    sees: Bools
    bounds: Bounds


EVERYWHERE = (-math.inf, -math.inf, math.inf, math.inf)
NOTHING = Volumes(np.empty((0, 9)), np.empty((0, 2)), np.empty((0, 0), np.bool_), EVERYWHERE)
"""The empty plane."""


def make_volumes(obstacles: Floats, altitude_m: float, clearance_m: float, bounds: Bounds) -> Volumes:
    """The volumes of obstacles [M, 8] (sar_core.geometry) for flights at this altitude; worlds met lately are kept."""
    return _volumes(np.ascontiguousarray(obstacles, np.float64).tobytes(), altitude_m, clearance_m, bounds)


@lru_cache(maxsize=16)
def _volumes(obstacles: bytes, altitude_m: float, clearance_m: float, bounds: Bounds) -> Volumes:
    bodies = np.frombuffer(obstacles).reshape(-1, ROW)
    close, _, _ = close_obstacles(np.array([0.0, 0.0, altitude_m]), math.inf, bodies, clearance_m)
    if not len(close):
        return NOTHING
    radius = np.where(close[:, 0] == BOX, np.hypot(close[:, 5], close[:, 6]), close[:, 5])
    rows = np.column_stack([close, radius + close[:, _RIM]])
    corners = np.concatenate([_outline(row) for row in rows])
    free = [within(bounds, x, y) and room(rows, x, y, SPARE_M) >= SPARE_M for x, y in corners]
    corners = np.ascontiguousarray(corners[free])
    return Volumes(rows, corners, _sight(rows, corners), bounds)


def _outline(row: Floats) -> Floats:
    """Corners [P, 2] of a polygon around a volume that keeps OUTLINE_M from its rim."""
    kind, x, y, c, s, a, b, rim, _ = row
    grown = rim + OUTLINE_M
    if kind == BOX:
        own = np.array([(u * (a + grown), v * (b + grown)) for u, v in ((1, 1), (-1, 1), (-1, -1), (1, -1))])
    else:
        angle = 2.0 * math.pi * np.arange(SIDES) / SIDES
        own = (a + grown) / math.cos(math.pi / SIDES) * np.column_stack([np.cos(angle), np.sin(angle)])
    turned: Floats = np.array([x, y]) + own @ np.array([[c, s], [-s, c]])
    return turned


@inlined
def within(bounds: Bounds, x: float, y: float) -> bool:
    return bool(bounds[0] <= x <= bounds[2] and bounds[1] <= y <= bounds[3])


@inlined
def _off(rows: Floats, m: int, px: float, py: float, qx: float, qy: float) -> float:
    """Distance from the segment p-q to a volume's body, 0 where they touch."""
    if rows[m, 0] != BOX:
        return max(math.sqrt(from_segment2(rows[m, 1], rows[m, 2], px, py, qx, qy)) - float(rows[m, 5]), 0.0)
    c, s, a, b = rows[m, 3], rows[m, 4], rows[m, 5], rows[m, 6]
    ux, uy = c * (px - rows[m, 1]) + s * (py - rows[m, 2]), c * (py - rows[m, 2]) - s * (px - rows[m, 1])
    vx, vy = c * (qx - rows[m, 1]) + s * (qy - rows[m, 2]), c * (qy - rows[m, 2]) - s * (qx - rows[m, 1])
    if crosses_rectangle(ux, uy, vx, vy, a, b):
        return 0.0
    least = max(abs(ux) - a, 0.0) ** 2 + max(abs(uy) - b, 0.0) ** 2
    least = min(least, max(abs(vx) - a, 0.0) ** 2 + max(abs(vy) - b, 0.0) ** 2)
    for sx in (-a, a):
        for sy in (-b, b):
            least = min(least, from_segment2(sx, sy, ux, uy, vx, vy))
    return math.sqrt(least)


@compiled
def room(rows: Floats, x: float, y: float, most: float) -> float:
    """How far a place is from the nearest volume, told up to ``most``; negative by how much it is inside a rim."""
    least = most
    for m in range(rows.shape[0]):
        if (x - rows[m, 1]) ** 2 + (y - rows[m, 2]) ** 2 < (least + rows[m, _SPAN]) ** 2:
            least = min(least, _off(rows, m, x, y, x, y) - rows[m, _RIM])
    return least


@compiled
def blocked(rows: Floats, px: float, py: float, qx: float, qy: float, spare: float) -> bool:
    """Whether the straight way from p to q comes nearer to a body than its rim and the spare distance.

    From a place that is nearer already the way may lead out, but no nearer.
    """
    for m in range(rows.shape[0]):
        span = rows[m, _SPAN] + spare
        if max(px, qx) - rows[m, 1] <= -span or min(px, qx) - rows[m, 1] >= span:
            continue
        if max(py, qy) - rows[m, 2] <= -span or min(py, qy) - rows[m, 2] >= span:
            continue
        if from_segment2(rows[m, 1], rows[m, 2], px, py, qx, qy) >= span * span:
            continue
        near = _off(rows, m, px, py, qx, qy)
        if near < rows[m, _RIM] + spare and near < min(_off(rows, m, px, py, px, py), rows[m, _RIM] + spare) - HAIR_M:
            return True
    return False


@compiled
def free_place(volumes: Volumes, x: float, y: float) -> tuple[float, float]:
    """The place itself where ways may end there, or the nearest one on rings around it that is; NaN if none is."""
    if room(volumes.rows, x, y, SPARE_M) >= SPARE_M:
        return x, y
    for ring in range(1, RINGS + 1):
        for spot in range(SPOTS):
            angle = 2.0 * math.pi * spot / SPOTS
            u, v = x + ring * math.cos(angle), y + ring * math.sin(angle)
            if within(volumes.bounds, u, v) and room(volumes.rows, u, v, SPARE_M) >= SPARE_M:
                return u, v
    return np.nan, np.nan


@compiled
def _sight(rows: Floats, corners: Floats) -> Bools:
    """Which corners see each other."""
    count = corners.shape[0]
    sees = np.zeros((count, count), np.bool_)
    for i in range(count):
        for j in range(i):
            free = not blocked(rows, corners[i, 0], corners[i, 1], corners[j, 0], corners[j, 1], SPARE_M)
            sees[i, j], sees[j, i] = free, free
    return sees
