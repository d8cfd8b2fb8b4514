"""Search patterns: where a drone flies next, from the area, its place in the swarm and what it has heard of the others.

Six patterns and a lower bound, by the definitions of ADR-148's reference code (ruvnet/ruv-drone, src/planning), made
flyable: a drone flies to a waypoint before it asks for the next, waypoints lie inside the area, and where the source
puts all drones on one path each has a place of its own beside it. ``patternlist`` names them all; fixed routes are in
``planning.routes``, what decides as it goes is here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.errors import InputError
from sar_core.streams import stream
from sar_swarm.piloting.patternlist import find, function_of, names
from sar_swarm.planning.routes import Area, Point, clamp, inner_area

Floats = NDArray[np.float64]

ROUNDING_M = 1e-6
"""By which a waypoint on the edge of the area may lie outside it."""
MEMORY = 256
"""Remembered places per drone of the swarm: 3.6 km of path each at a swath of 28 m."""
HEADINGS = 8
SAMPLES = 6
VISITED_GAIN, PEER_GAIN, FRONTIER_GAIN = 1.0, 2.0, 1.5
LEVY_EXPONENT = 1.5
SHORT_STEP = 0.25
"""Share of a swath; a step that the edge leaves shorter is none."""
GOLDEN = 0.6180339887498949
_TWO_PI = 2.0 * math.pi


@dataclass(frozen=True)
class Place:
    """Where a drone stands when it asks for a waypoint; ``key`` (seed, episode) opens its random streams."""

    index: int
    drones: int
    area: Area
    swath_m: float
    position: Point
    peers: Floats
    """float64[P, 2]: row j is drone j as last heard; NaN where never heard of, and in the own row."""
    key: tuple[int, int]


class Walk(NamedTuple):
    """A reactive pattern's memory: steps drawn, the rest of a step begun, and places the swarm has been."""

    visited: Floats
    """float64[C, 2]: a ring of places, the own and the others' as heard; NaN where still empty."""
    latest: Floats
    """float64[P + 1, 2]: the last remembered place of each peer and, in the last row, the own."""
    entered: int = 0
    step: int = 0
    heading_rad: float = 0.0
    left_m: float = 0.0


def fixed_route(pattern: str, area: Area, drones: int, index: int, swath_m: float, overlap: float) -> Floats | None:
    """The waypoints [K, 2] a drone is given before the mission; None for patterns that decide as they go."""
    found = find(pattern)
    if found.route is None:
        return None
    way = np.asarray(function_of(found.route)(area, drones, index, swath_m, overlap), dtype=np.float64)
    if way.ndim != 2 or way.shape[1] != 2 or not len(way) or not np.isfinite(way).all():
        raise InputError(f"pattern {found.name!r}: drone {index + 1}'s route is no finite array [K, 2]")
    low, high = np.array(area[:2]) - ROUNDING_M, np.array(area[2:]) + ROUNDING_M
    outside = np.flatnonzero(((way < low) | (way > high)).any(axis=1))
    if len(outside):
        (x, y), (west, south, east, north) = way[outside[0]], area
        raise InputError(
            f"pattern {found.name!r}: drone {index + 1}'s waypoint {outside[0]} ({x:g}, {y:g}) lies outside the area, "
            f"{west:g} to {east:g} east and {south:g} to {north:g} north"
        )
    return way


def fixed_routes(pattern: str, area: Area, drones: int, swath_m: float, overlap: float) -> tuple[Floats, ...] | None:
    """Every drone's waypoints; None for patterns that decide as they go."""
    routes = [fixed_route(pattern, area, drones, i, swath_m, overlap) for i in range(drones)]
    given = tuple(route for route in routes if route is not None)
    return given if len(given) == drones else None


def start_walk(peers: int, memory: int = MEMORY) -> Walk:
    """An empty memory for a swarm whose link knows ``peers`` rows; it holds ``memory`` places for each drone."""
    return Walk(np.full((memory * max(peers, 1), 2), np.nan), np.full((peers + 1, 2), np.nan))


@compiled
def _strayed(latest: Floats, x: float, y: float, peers: Floats, apart: float) -> bool:
    """Whether any drone is farther than this from its last remembered place, or is heard of for the first time."""
    own = latest.shape[0] - 1
    for k in range(latest.shape[0]):
        px = x if k == own else peers[k, 0]
        py = y if k == own else peers[k, 1]
        if math.isfinite(px) and math.isfinite(py):
            gap = math.hypot(px - latest[k, 0], py - latest[k, 1])
            if not gap <= apart:
                return True
    return False


def remember(walk: Walk, position: Point, peers: Floats, swath_m: float) -> Walk:
    """Called every tick: a drone's place (peers float64[P, 2] as heard) enters once it is half a swath further on."""
    if not _strayed(walk.latest, float(position[0]), float(position[1]), peers, 0.5 * swath_m):
        return walk
    places = np.vstack([peers, [position]])
    gaps = np.hypot(*(places - walk.latest).T)
    moved = np.flatnonzero(np.isfinite(places).all(axis=1) & ~(gaps <= 0.5 * swath_m))
    visited, latest = walk.visited.copy(), walk.latest.copy()
    visited[(walk.entered + np.arange(len(moved))) % len(visited)] = places[moved]
    latest[moved] = places[moved]
    return walk._replace(visited=visited, latest=latest, entered=walk.entered + len(moved))


def known_visits(walk: Walk) -> Floats:
    """The remembered places float64[K, 2], in no particular order."""
    return walk.visited[: min(walk.entered, len(walk.visited))]


def next_waypoint(pattern: str, walk: Walk, place: Place) -> tuple[Walk, Point]:
    """Where a reactive pattern sends the drone next; draws depend on (key, index, step) alone, not on call order."""
    found = find(pattern)
    if found.decide is None:
        those = ", ".join(name for name in names() if find(name).decide is not None)
        raise InputError(f"pattern {found.name!r} does not choose waypoints as it goes; those that do: {those}")
    walk, (x, y) = function_of(found.decide)(walk, place)
    if not (math.isfinite(x) and math.isfinite(y)):
        raise InputError(f"pattern {found.name!r}: it sent drone {place.index + 1} to ({x}, {y})")
    return walk, (float(x), float(y))


def pheromone(walk: Walk, place: Place) -> tuple[Walk, Point]:
    """To the least visited of eight headings."""
    return walk._replace(step=walk.step + 1), _least_visited(known_visits(walk), place)


def potential_field(walk: Walk, place: Place) -> tuple[Walk, Point]:
    """Along the force of visits, peers and the frontier."""
    return walk._replace(step=walk.step + 1), _follow_field(known_visits(walk), place)


def levy_flight(walk: Walk, place: Place) -> tuple[Walk, Point]:
    """On along a step whose length is drawn from a Pareto law."""
    return _wander("levy_flight", walk, place)


def random_walk(walk: Walk, place: Place) -> tuple[Walk, Point]:
    """On along a step of one swath."""
    return _wander("random_walk", walk, place)


def draw_step(pattern: str, place: Place, step: int) -> tuple[float, float]:
    """Heading (rad) and length (m) of a random pattern's step: uniform, and Pareto (levy_flight) or one swath."""
    west, south, east, north = place.area
    angle, u = stream("pattern." + pattern, *place.key, place.index, step).random(2)
    if pattern == "random_walk":
        return _TWO_PI * angle, place.swath_m
    length = place.swath_m * (1.0 - u) ** (-1.0 / LEVY_EXPONENT)
    return _TWO_PI * angle, min(length, math.hypot(east - west, north - south))


def _wander(name: str, walk: Walk, place: Place) -> tuple[Walk, Point]:
    """The next leg of a random step: to its end or, where it would leave the area, to the edge that reflects it.

    The rest of a reflected step is flown by the next calls, so the way flown has the length that was drawn.
    """
    inner = inner_area(place.area, place.swath_m)
    x, y = clamp(place.position, inner)
    heading, left = walk.heading_rad, walk.left_m
    step = walk.step
    if left <= 0.0:
        heading, left = draw_step(name, place, step)
        step += 1
    dx, dy = math.cos(heading), math.sin(heading)
    to_x = ((inner[2] if dx > 0.0 else inner[0]) - x) / dx if dx else math.inf
    to_y = ((inner[3] if dy > 0.0 else inner[1]) - y) / dy if dy else math.inf
    if to_x <= 0.0:
        dx, to_x = -dx, math.inf if dx == 0.0 else (inner[2] - inner[0]) / abs(dx)
    if to_y <= 0.0:
        dy, to_y = -dy, math.inf if dy == 0.0 else (inner[3] - inner[1]) / abs(dy)
    leg = min(to_x, to_y, left)
    goal = clamp((x + leg * dx, y + leg * dy), inner)
    if leg >= left:
        return walk._replace(step=step, left_m=0.0), goal
    turned = math.atan2(-dy if to_y <= leg else dy, -dx if to_x <= leg else dx)
    return walk._replace(step=step, heading_rad=turned, left_m=left - leg), goal


@compiled
def pressure(visited: Floats, x: float, y: float) -> float:
    """Visit pressure at a point: the sum of 1 / (1 + distance in m) over the visited places [K, 2]."""
    total = 0.0
    for k in range(visited.shape[0]):
        total += 1.0 / (1.0 + math.sqrt((x - visited[k, 0]) ** 2 + (y - visited[k, 1]) ** 2))
    return total


def headings(place: Place) -> list[Point]:
    """The pheromone pattern's candidates: one swath away in eight directions from index pi / 3 on, kept in the area.

    One that the edge leaves too short is no step and falls out; at least the nearest stay.
    """
    inner = inner_area(place.area, place.swath_m)
    here = clamp(place.position, inner)
    found = []
    for k in range(HEADINGS):
        angle = place.index * math.pi / 3.0 + k * _TWO_PI / HEADINGS
        goal = here[0] + place.swath_m * math.cos(angle), here[1] + place.swath_m * math.sin(angle)
        found.append(clamp(goal, inner))
    return [goal for goal in found if math.dist(goal, here) >= SHORT_STEP * place.swath_m] or found


def _least_visited(visited: Floats, place: Place) -> Point:
    return min(headings(place), key=lambda goal: pressure(visited, goal[0], goal[1]))


def samples(place: Place) -> Floats:
    """The 6 x 6 points [36, 2] among which a drone looks for the frontier: one in each tile of the area.

    Every drone looks at other points of the tiles; with the same ones, all would be drawn to one and the same place.
    """
    west, south, east, north = place.area
    u, v = (place.index + 0.5) / place.drones, (place.index + 0.5) * GOLDEN % 1.0
    x = west + (east - west) * (np.arange(SAMPLES) + u) / SAMPLES
    y = south + (north - south) * (np.arange(SAMPLES) + v) / SAMPLES
    return np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)


@compiled
def frontier(points: Floats, visited: Floats, x: float, y: float) -> int:
    """Which of the points [S, 2] is farthest from everything visited; from (x, y) if nothing was."""
    best, best_gap = 0, -1.0
    for s in range(points.shape[0]):
        px, py = points[s, 0], points[s, 1]
        gap = math.inf if visited.shape[0] else (px - x) ** 2 + (py - y) ** 2
        for k in range(visited.shape[0]):
            gap = min(gap, (px - visited[k, 0]) ** 2 + (py - visited[k, 1]) ** 2)
            if gap <= best_gap:
                break
        if gap > best_gap:
            best, best_gap = s, gap
    return best


@compiled
def repulsion(x: float, y: float, places: Floats, gain: float) -> tuple[float, float]:
    """Sum of gain / (d^2 + 1) away from the places [K, 2]; the 1 m^2 keeps it finite, NaN pushes none."""
    fx, fy = 0.0, 0.0
    for k in range(places.shape[0]):
        dx, dy = x - places[k, 0], y - places[k, 1]
        square = dx * dx + dy * dy + 1.0
        if math.isfinite(square):
            fx += gain * dx / square**1.5
            fy += gain * dy / square**1.5
    return fx, fy


def field(visited: Floats, place: Place) -> tuple[Point, Point]:
    """Force on a drone, and the frontier point that attracts it: 1/d^2 from visits, 2/d^2 from peers, 1.5 towards."""
    x, y = clamp(place.position, inner_area(place.area, place.swath_m))
    points = samples(place)
    goal = points[frontier(points, visited, x, y)]
    away = math.dist(goal, (x, y))
    pulled = (goal - (x, y)) * (FRONTIER_GAIN / max(away, 1e-6))
    force = pulled + repulsion(x, y, visited, VISITED_GAIN) + repulsion(x, y, place.peers, PEER_GAIN)
    return (float(force[0]), float(force[1])), (float(goal[0]), float(goal[1]))


def _follow_field(visited: Floats, place: Place) -> Point:
    """One swath along the force, kept in the area; where force or edge leave no step, towards the frontier itself."""
    inner = inner_area(place.area, place.swath_m)
    here = clamp(place.position, inner)
    force, goal = field(visited, place)
    for fx, fy in (force, (goal[0] - here[0], goal[1] - here[1])):
        length = math.hypot(fx, fy)
        if length > 1e-9:
            scale = place.swath_m / length
            point = clamp((here[0] + scale * fx, here[1] + scale * fy), inner)
            if math.dist(point, here) >= SHORT_STEP * place.swath_m:
                return point
    return clamp(goal, inner)
