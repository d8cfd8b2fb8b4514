"""Routes fixed before the mission, and how a lost drone's is shared out. Waypoints are float64[K, 2], ENU metres.

All are called alike; the overlap concerns the partition alone, for the other definitions say one swath.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Area = tuple[float, float, float, float]
"""West, south, east, north in ENU metres."""
Point = tuple[float, float]

SPIRAL_STEP_RAD = 0.6
SPIRAL_APART_M = 8.0
_TWO_PI = 2.0 * math.pi


def inner_area(area: Area, swath_m: float) -> Area:
    """The area less a quarter swath on each side: near enough to its corners to scan them."""
    west, south, east, north = area
    x, y = min(0.25 * swath_m, 0.25 * (east - west)), min(0.25 * swath_m, 0.25 * (north - south))
    return west + x, south + y, east - x, north - y


def clamp(point: Point, area: Area) -> Point:
    """The nearest point of the area; its centre for a place that is not finite."""
    if not (math.isfinite(point[0]) and math.isfinite(point[1])):
        return 0.5 * (area[0] + area[2]), 0.5 * (area[1] + area[3])
    return min(max(point[0], area[0]), area[2]), min(max(point[1], area[1]), area[3])


def lane_count(width_m: float, swath_m: float, overlap: float) -> int:
    """How many parallel lanes cover a strip when neighbouring swaths overlap by at least the given share."""
    return max(math.ceil(width_m / (swath_m * (1.0 - overlap)) - 1e-9), 1)


def _serpentine(columns: Sequence[float], south: float, north: float, inset_m: float) -> Floats:
    """Waypoints [2 K, 2] up and down the lanes at the given x, the first one northwards.

    Lanes stop short of the edges by the inset, which the swath still reaches ahead of the drone and along its turns.
    """
    inset = min(inset_m, 0.25 * (north - south))
    low, high = south + inset, north - inset
    points = []
    for lane, x in enumerate(columns):
        ends = (low, high) if lane % 2 == 0 else (high, low)
        points += [(x, ends[0]), (x, ends[1])]
    return np.array(points)


def partitioned_lawnmower(area: Area, drones: int, index: int, swath_m: float, overlap: float) -> Floats:
    """Waypoints [K, 2] in ENU: the area is split into equal strips along x, drone ``index`` sweeps its own strip.

    Lanes run along y and start in the south; only small corners between the ends of two lanes stay open.
    """
    west, south, east, north = area
    width = (east - west) / drones
    lanes = lane_count(width, swath_m, overlap)
    spacing = width / lanes
    columns = [west + index * width + (lane + 0.5) * spacing for lane in range(lanes)]
    return _serpentine(columns, south, north, 0.4 * swath_m)


def boustrophedon(area: Area, drones: int, index: int, swath_m: float, _overlap: float = 0.0) -> Floats:
    """Waypoints [K, 2]: every drone sweeps the whole area from the south-west, in rows exactly one swath apart.

    Drones are offset sideways within the row spacing only, the lowest index farthest on, so that it leads and each
    next one turns behind it. Nothing is partitioned: N drones cover hardly more than one does. A drone may leave up to
    half a swath open along the west edge, which is where another one's first row lies; in the east a last, narrower
    row closes what would stay open.
    """
    west, south, east, north = area
    shift = (drones - index - 0.5) / drones
    pitch = min(swath_m, east - west)
    rows = max(math.ceil((east - west) / pitch - shift), 1)
    columns = [west + (row + shift) * pitch for row in range(rows)]
    open_m = east - columns[-1] - 0.5 * swath_m
    if open_m > 1e-9:
        columns.append(east - 0.5 * open_m)
    return _serpentine(columns, south, north, 0.25 * swath_m)


def spiral(area: Area, drones: int, index: int, swath_m: float, _overlap: float = 0.0) -> Floats:
    """Waypoints [K, 2] of r = swath / 2 pi theta about the area's centre, N arms each turned by 2 pi / N from the next.

    They begin where neighbours are 8 m apart, dealt out from west to east so that drones from one side do not cross on
    their way in, and end when the corners are reached. The source's steps of 0.6 rad are all kept; where a chord would
    be longer than a swath, points of the same curve are filled in, for far out the chords alone leave holes between
    the turns. What lies outside the area is pulled to its edge.
    """
    inner = inner_area(area, swath_m)
    centre = 0.5 * (inner[0] + inner[2]), 0.5 * (inner[1] + inner[3])
    growth = swath_m / _TWO_PI
    corner = math.hypot(inner[2] - centre[0], inner[3] - centre[1])
    start = 0.5 * SPIRAL_APART_M / math.sin(math.pi / drones) if drones > 1 else 0.0
    end = max(corner, start) / growth + _TWO_PI / drones
    first = math.ceil(start / growth / SPIRAL_STEP_RAD - 1e-9)
    arm = sorted(range(drones), key=lambda k: math.cos(SPIRAL_STEP_RAD * first + _TWO_PI * k / drones))[index]
    points: list[Point] = []
    for step in range(first, math.ceil(end / SPIRAL_STEP_RAD) + 1):
        parts = max(math.ceil(SPIRAL_STEP_RAD * growth * SPIRAL_STEP_RAD * (step + 1) / swath_m), 1)
        for part in range(parts):
            theta = SPIRAL_STEP_RAD * (step + part / parts)
            bearing = theta + _TWO_PI * arm / drones
            radius = growth * theta
            point = clamp((centre[0] + radius * math.cos(bearing), centre[1] + radius * math.sin(bearing)), inner)
            if not points or point != points[-1]:
                points.append(point)
    return np.array(points)


def take_over(routes: Sequence[Floats], alive: Sequence[int], me: int, start: Point | None = None) -> Floats:
    """My share [K, 2] of what lost drones had left to fly (each a remaining route [K, 2], in order of their index).

    Every route is cut by length into as many contiguous pieces as drones are alive, the k-th for the k-th of them:
    whoever knows the same cuts the same, neighbouring pieces share their cut, and nothing is left out. A piece is
    flown from whichever end is nearer to ``start`` (the own last waypoint) and then to the end of the piece before.
    """
    pieces: list[Floats] = []
    at = start
    for number, route in enumerate(routes):
        if me not in alive or len(route) == 0:
            continue
        rank = sorted(alive).index(me)
        piece = _piece(np.asarray(route, dtype=np.float64), rank, len(alive), number)
        if len(piece) == 0:
            continue
        if at is not None and math.dist(at, piece[-1]) < math.dist(at, piece[0]):
            piece = piece[::-1]
        at = float(piece[-1, 0]), float(piece[-1, 1])
        pieces.append(piece)
    return np.vstack(pieces) if pieces else np.empty((0, 2))


def _piece(route: Floats, rank: int, shares: int, number: int) -> Floats:
    """Piece ``rank`` of ``shares`` equally long ones; a route without length goes whole to one drone."""
    way = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(route, axis=0).T))])
    if way[-1] <= 0.0:
        return route[:1] if number % shares == rank else np.empty((0, 2))
    low, high = way[-1] * rank / shares, way[-1] * (rank + 1) / shares
    within = route[(way > low) & (way < high)]
    ends = [[np.interp(cut, way, route[:, 0]), np.interp(cut, way, route[:, 1])] for cut in (low, high)]
    return np.vstack([ends[0], within, ends[1]])
