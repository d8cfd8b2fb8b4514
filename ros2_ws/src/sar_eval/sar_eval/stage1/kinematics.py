"""Stage 1's flights: points that fly the swarm's patterns in one plane, compiled, many missions per call.

Every drone hears every other at once and without loss. What the search needs of the world is its area, the volumes that
reach up to its altitude, where drones start and how long they search. Routes and draws are the swarm's own code; a
reactive pattern's decisions are its compiled twin's or, where it has none, its own, for which the compiled flight stops
and asks. Ways lead round volumes; a goal inside one is moved to the nearest free place, and one to which no way leads
counts as reached, and to its drone's memory as visited.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_eval.scenario.model import FENCE_MARGIN_M, Episode
from sar_eval.stage1.detours import MOST, approach_free, lay
from sar_eval.stage1.volumes import NOTHING, SPARE_M, Volumes, blocked, free_place, make_volumes
from sar_sim.vehicle.kinematic import COURSE, SPEED, STATE, Agility, X, Y, approach, corner_speed, halt
from sar_swarm.piloting.controller import ABEAM_M
from sar_swarm.piloting.navigation import Chart
from sar_swarm.piloting.patternlist import Twin, find
from sar_swarm.piloting.patterns import MEMORY, Place, Walk, draw_step, fixed_route, next_waypoint
from sar_swarm.piloting.searchtask import ROUTE_ACCEPT_M
from sar_swarm.piloting.waypoints import ENTERED, along_field, least_visited, remember_all, wander
from sar_swarm.planning.routes import Area, inner_area

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEP_S = 0.25
FIRST_DRAWS = 64
"""Random steps drawn before a flight; one that needs more gets twice as many."""
_ROUTE, _ASK = -1, 0
"""What decides where to next besides the compiled copies: the fixed route, or the pattern's own code."""
_UNLAID = -1
"""There is no way to the goal yet."""
VIA_ACCEPT_M = 2.0
"""How near a point of a way counts as reached, once the next one is in sight."""
_PHEROMONE, _FIELD, _WANDER = int(Twin.PHEROMONE), int(Twin.FIELD), int(Twin.WANDER)


@dataclass(frozen=True, eq=False)
class KinematicTask:
    """One mission to fly: the pattern by name, its place and time, the key (seed, episode) of its draws, volumes."""

    pattern: str
    key: tuple[int, int]
    area: Area
    swath_m: float
    overlap: float
    duration_s: float
    agility: Agility
    starts: tuple[tuple[float, float], ...]
    volumes: Volumes = NOTHING

    @property
    def drones(self) -> int:
        return len(self.starts)


@dataclass(frozen=True)
class KinematicTrack:
    """A flown search: times float64[K] from 0 on, positions float64[K, N, 2] there, straight in between."""

    times_s: Floats
    positions: Floats

    @property
    def path_m(self) -> float:
        return float(np.linalg.norm(np.diff(self.positions, axis=0), axis=2).sum())


class _Rules(NamedTuple):
    rule: int
    area: Area
    inner: Area
    swath: float
    accept: float
    abeam: float
    steps: int
    agility: Agility


def task_of(episode: Episode) -> KinematicTask:
    """The Stage-1 mission of an episode: same pattern, area, start places, speed, limits and search time."""
    s, w = episode.scenario, episode.world
    corner = Chart.corner_speed_mps
    agility = Agility(s.speed_mps, s.acceleration_mps2, math.radians(s.turn_rate_dps), corner, STEP_S)
    starts = tuple((float(x), float(y)) for x, y in episode.spawns[:, :2])
    key = (episode.seed, episode.index)
    (west, south), (east, north) = w.fence.min(axis=0) + FENCE_MARGIN_M, w.fence.max(axis=0) - FENCE_MARGIN_M
    bounds = float(west), float(south), float(east), float(north)
    volumes = make_volumes(w.obstacles, episode.altitude_m, Chart.clearance_m, bounds)
    return KinematicTask(s.pattern, key, w.area, s.swath_m, s.overlap, s.duration_s, agility, starts, volumes)


class _Search(NamedTuple):
    """A mission under way: arrays over N drones, which the flight changes."""

    track: Floats
    """[K, N, 2]"""
    state: Floats
    """[N, STATE]"""
    goals: Floats
    """[N, 2]: where each flies to; NaN where that is still to be chosen."""
    ends: Floats
    """[N]: speed at the point flown to (m/s)."""
    legs: Ints
    """[N]: goals reached."""
    walks: Floats
    """[N, 4]: columns of planning.waypoints."""
    visited: Floats
    """[N, C, 2]: each drone's memory, as in patterns.Walk."""
    latest: Floats
    """[N, N + 1, 2]"""
    ways: Floats
    """[N, MOST, 2]: among volumes, each drone's way to its goal."""
    points: Ints
    """[N]: points of that way, the goal the last."""
    at: Ints
    """[N]: the point flown to."""
    spare: Floats
    """[N]: how far any volume is at least (m)."""


def _at_rest(starts: Floats, steps: int) -> _Search:
    """A mission of so many steps with all drones at their starts [N, 2]."""
    n = len(starts)
    state = np.zeros((n, STATE))
    state[:, X], state[:, Y] = starts[:, 0], starts[:, 1]
    track = np.empty((steps + 1, n, 2))
    track[0] = starts
    return _Search(
        track,
        state,
        goals=np.full((n, 2), np.nan),
        ends=np.zeros(n),
        legs=np.zeros(n, np.int64),
        walks=np.zeros((n, 4)),
        visited=np.full((n, MEMORY * n, 2), np.nan),
        latest=np.full((n, n + 1, 2), np.nan),
        ways=np.empty((n, MOST, 2)),
        points=np.zeros(n, np.int64),
        at=np.full(n, _UNLAID, np.int64),
        spare=np.zeros(n),
    )


@inlined
def _arrival(rules: _Rules, route: Floats, length: int, leg: int, x: float, y: float, gx: float, gy: float) -> float:
    """How fast to arrive at a goal coming from (x, y): by a route's next point, where there is one."""
    known = rules.rule == _ROUTE and leg + 1 < length
    cx = route[leg + 1, 0] if known else np.nan
    cy = route[leg + 1, 1] if known else np.nan
    return corner_speed(x, y, gx, gy, cx, cy, rules.accept, rules.agility)


@inlined
def _head(rules: _Rules, route: Floats, length: int, search: _Search, i: int, k: int, x: float, y: float) -> None:
    """Let drone i fly from (x, y) to point k of its way."""
    way = search.ways[i]
    search.at[i] = k
    if k + 1 < search.points[i]:
        search.ends[i] = corner_speed(
            x, y, way[k, 0], way[k, 1], way[k + 1, 0], way[k + 1, 1], ROUTE_ACCEPT_M, rules.agility
        )
    else:
        search.ends[i] = _arrival(rules, route, length, search.legs[i], x, y, way[k, 0], way[k, 1])


@compiled
def _set_out(
    rules: _Rules, volumes: Volumes, route: Floats, length: int, search: _Search, i: int, x: float, y: float
) -> None:
    """Lay drone i's way from (x, y) to its goal, which is moved if it is not free; without a way it is given up."""
    gx, gy = search.goals[i]
    fx, fy = free_place(volumes, gx, gy)
    there = (fx != gx or fy != gy) and math.hypot(fx - x, fy - y) < rules.accept
    search.points[i] = 0 if there or math.isnan(fx) else lay(volumes, x, y, fx, fy, search.ways[i])
    if search.points[i] > 0:
        search.goals[i, 0], search.goals[i, 1] = fx, fy
        _head(rules, route, length, search, i, 0, x, y)
        return
    row = int(search.walks[i, ENTERED]) % search.visited.shape[1]
    search.visited[i, row, 0], search.visited[i, row, 1] = gx, gy
    search.walks[i, ENTERED] += 1.0
    _reached(search, i)


@inlined
def _reached(search: _Search, i: int) -> None:
    search.goals[i, 0], search.goals[i, 1] = np.nan, np.nan
    search.at[i] = _UNLAID
    search.legs[i] += 1


@compiled
def _turn(rules: _Rules, rows: Floats, route: Floats, length: int, search: _Search, i: int, past: bool) -> None:
    """Near a point of its way, fly on to the next as soon as that is in sight; past it and not in sight, lay anew."""
    k = search.at[i]
    way, state = search.ways[i], search.state[i]
    if not blocked(rows, state[X], state[Y], way[k + 1, 0], way[k + 1, 1], 0.0):
        _head(rules, route, length, search, i, k + 1, way[k, 0], way[k, 1])
    elif past:
        search.at[i] = _UNLAID


@compiled
def _fly_on(
    rules: _Rules,
    volumes: Volumes,
    routes: Floats,
    lengths: Ints,
    draws: Floats,
    search: _Search,
    step: int,
    drone: int,
) -> tuple[int, int]:
    """Fly on from this drone's turn in this step; (last step, N) when all is done.

    Returns earlier where a drone needs an answer from outside, with its turn: a waypoint, or more draws. Asked again
    for that turn, it goes on as if it had never stopped. routes float64[N, L, 2] with lengths[N] points each; draws
    float64[N, S, 2].
    """
    n = search.goals.shape[0]
    a = rules.agility
    track, state, goals, ends, legs = search.track, search.state, search.goals, search.ends, search.legs
    walks, visited, latest = search.walks, search.visited, search.latest
    at, spare = search.at, search.spare
    among = volumes.rows.shape[0] > 0
    peers = np.empty((n, 2))
    for k in range(step, rules.steps + 1):
        resting = True
        for i in range(drone, n):
            x, y = track[k - 1, i, 0], track[k - 1, i, 1]
            if rules.rule != _ROUTE:
                for j in range(n):
                    peers[j, 0] = np.nan if j == i else track[k - 1, j, 0]
                    peers[j, 1] = np.nan if j == i else track[k - 1, j, 1]
                remember_all(i, x, y, peers, 0.5 * rules.swath, visited[i], latest[i], walks[i])
            if math.isnan(goals[i, 0]):
                known = visited[i, : min(int(walks[i, ENTERED]), visited.shape[1])]
                if rules.rule == _ROUTE:
                    if legs[i] < lengths[i]:
                        goals[i] = routes[i, legs[i]]
                        ends[i] = _arrival(rules, routes[i], lengths[i], legs[i], x, y, goals[i, 0], goals[i, 1])
                else:
                    gx, gy = np.nan, np.nan
                    if rules.rule == _PHEROMONE:
                        gx, gy = least_visited(i, x, y, rules.inner, rules.swath, known)
                    elif rules.rule == _FIELD:
                        gx, gy = along_field(i, n, x, y, rules.area, rules.inner, rules.swath, known, peers)
                    elif rules.rule == _WANDER:
                        gx, gy = wander(x, y, rules.inner, draws[i], walks[i])
                    if math.isnan(gx):
                        return k, i
                    goals[i, 0], goals[i, 1] = gx, gy
                    ends[i] = corner_speed(x, y, gx, gy, np.nan, np.nan, rules.accept, a)
            if among and not math.isnan(goals[i, 0]) and (at[i] == _UNLAID or state[i, SPEED] <= 0.0):
                resting = False
                _set_out(rules, volumes, routes[i], lengths[i], search, i, x, y)
            if math.isnan(goals[i, 0]):
                halt(state[i], a)
                spare[i] = 0.0
            else:
                resting = False
                last = not among or at[i] == search.points[i] - 1
                if among:
                    gx, gy = search.ways[i, at[i]]
                    spare[i] = approach_free(volumes.rows, state[i], gx, gy, ends[i], a, spare[i])
                else:
                    gx, gy = goals[i]
                    approach(state[i], gx, gy, ends[i], a)
                dx, dy = gx - state[i, X], gy - state[i, Y]
                left = math.sqrt(dx * dx + dy * dy)
                behind = dx * math.cos(state[i, COURSE]) + dy * math.sin(state[i, COURSE]) < 0.0
                if left < (rules.accept if last else VIA_ACCEPT_M) or (left < rules.abeam and behind):
                    if last:
                        _reached(search, i)
                    else:
                        past = behind or left < SPARE_M
                        _turn(rules, volumes.rows, routes[i], lengths[i], search, i, past)
            track[k, i, 0], track[k, i, 1] = state[i, X], state[i, Y]
        drone = 0
        if resting and state[:, SPEED].max() <= 0.0:
            return k, n
    return rules.steps, n


def _ask(task: KinematicTask, rules: _Rules, search: _Search, step: int, i: int) -> None:
    """Let the pattern's own code choose drone i's next waypoint, on what its controller would know."""
    x, y = (float(v) for v in search.track[step - 1, i])
    peers = search.track[step - 1].copy()
    peers[i] = math.nan
    heading, left, drawn, entered = search.walks[i].tolist()
    walk = Walk(search.visited[i].copy(), search.latest[i].copy(), int(entered), int(drawn), heading, left)
    place = Place(i, task.drones, task.area, task.swath_m, (x, y), peers, task.key)
    walk, goal = next_waypoint(task.pattern, walk, place)
    search.walks[i] = walk.heading_rad, walk.left_m, walk.step, walk.entered
    search.visited[i], search.latest[i] = walk.visited, walk.latest
    search.goals[i] = goal
    search.ends[i] = corner_speed(x, y, *goal, math.nan, math.nan, rules.accept, rules.agility)


@cache
def _routes(pattern: str, area: Area, drones: int, swath_m: float, overlap: float) -> tuple[Floats, Ints]:
    """Every drone's fixed route, padded to one array [N, L, 2], and how long each is; empty for reactive patterns."""
    found = [fixed_route(pattern, area, drones, i, swath_m, overlap) for i in range(drones)]
    routes = [np.empty((0, 2)) if route is None else route for route in found]
    padded = np.full((drones, max(1, *(len(route) for route in routes)), 2), np.nan)
    for i, route in enumerate(routes):
        padded[i, : len(route)] = route
    return padded, np.array([len(route) for route in routes], np.int64)


def _draws(task: KinematicTask, count: int) -> Floats:
    """The first random steps [N, S, 2] of every drone, as its controller would draw them; none for other patterns."""
    if find(task.pattern).twin is not Twin.WANDER:
        return np.empty((task.drones, 0, 2))
    nobody = np.empty((0, 2))
    out = np.empty((task.drones, count, 2))
    for i in range(task.drones):
        place = Place(i, task.drones, task.area, task.swath_m, (0.0, 0.0), nobody, task.key)
        for step in range(count):
            out[i, step] = draw_step(task.pattern, place, step)
    return out


def fly(task: KinematicTask) -> KinematicTrack:
    """Fly one mission from all drones at altitude and at rest to the end of the search."""
    pattern = find(task.pattern)
    rule = _ROUTE if pattern.route is not None else _ASK if pattern.twin is None else int(pattern.twin)
    routes, lengths = _routes(task.pattern, task.area, task.drones, task.swath_m, task.overlap)
    accept = ROUTE_ACCEPT_M if rule == _ROUTE else max(ROUTE_ACCEPT_M, 0.3 * task.swath_m)
    steps = math.ceil(task.duration_s / task.agility.step_s - 1e-9)
    rules = _Rules(
        rule, task.area, inner_area(task.area, task.swath_m), task.swath_m, accept, ABEAM_M, steps, task.agility
    )
    draws = _draws(task, FIRST_DRAWS)
    search = _at_rest(np.array(task.starts), steps)
    step, drone = 1, 0
    while True:
        step, drone = _fly_on(rules, task.volumes, routes, lengths, draws, search, step, drone)
        if drone == task.drones:
            break
        if rule == _ASK:
            _ask(task, rules, search, step, drone)
        else:
            draws = _draws(task, 2 * draws.shape[1])
    return KinematicTrack(np.arange(step + 1, dtype=np.float64) * task.agility.step_s, search.track[: step + 1])
