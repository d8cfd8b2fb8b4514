"""Stage 1's flights: points that fly the swarm's patterns over an empty plane, compiled, many missions per call.

Every drone hears every other at once and without loss. What the search needs of the world is its area, where drones
start and how long they search; the pattern's code is the swarm's own (routes, draws) or its compiled twin (waypoints).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_eval.scenario.model import Episode
from sar_sim.vehicle.kinematic import COURSE, SPEED, STATE, Agility, X, Y, approach, corner_speed, halt
from sar_swarm.piloting.controller import ABEAM_M
from sar_swarm.piloting.errand import ROUTE_ACCEPT_M
from sar_swarm.piloting.navigation import Chart
from sar_swarm.piloting.patterns import MEMORY, Place, draw_step, fixed_route
from sar_swarm.piloting.waypoints import along_field, least_visited, remember_all, wander
from sar_swarm.planning.routes import Area, inner_area

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEP_S = 0.25
FIRST_DRAWS = 64
"""Random steps drawn before a flight; one that needs more is flown again with twice as many."""
_ROUTE, _PHEROMONE, _FIELD, _WANDER = range(4)
_RULES = {"pheromone": _PHEROMONE, "potential_field": _FIELD, "levy_flight": _WANDER, "random_walk": _WANDER}


@dataclass(frozen=True)
class Task:
    """One mission to fly: the pattern by name, its place and time, and the key (seed, episode) of its draws."""

    pattern: str
    key: tuple[int, int]
    area: Area
    swath_m: float
    overlap: float
    duration_s: float
    agility: Agility
    starts: tuple[tuple[float, float], ...]

    @property
    def drones(self) -> int:
        return len(self.starts)


@dataclass(frozen=True)
class Track:
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


def task_of(episode: Episode) -> Task:
    """The Stage-1 mission of an episode: same pattern, area, start places, speed, limits and search time."""
    s = episode.scenario
    corner = Chart.corner_speed_mps
    agility = Agility(s.speed_mps, s.acceleration_mps2, math.radians(s.turn_rate_dps), corner, STEP_S)
    starts = tuple((float(x), float(y)) for x, y in episode.spawns[:, :2])
    key = (episode.seed, episode.index)
    return Task(s.pattern, key, episode.world.area, s.swath_m, s.overlap, s.duration_s, agility, starts)


@compiled
def _search(
    rules: _Rules, starts: Floats, routes: Floats, lengths: Ints, draws: Floats, memory: int, track: Floats
) -> int:
    """Fly one mission into track float64[K, N, 2]; how many steps until all were done, or -1 if draws ran out.

    routes float64[N, L, 2] with lengths[N] points each; draws float64[N, S, 2].
    """
    n = starts.shape[0]
    a = rules.agility
    state = np.zeros((n, STATE))
    goals = np.full((n, 2), np.nan)
    legs = np.zeros(n, np.int64)
    ends = np.zeros(n)
    walks = np.zeros((n, 4))
    visited = np.full((n, memory * n, 2), np.nan)
    latest = np.full((n, n + 1, 2), np.nan)
    peers = np.empty((n, 2))
    for i in range(n):
        state[i, X], state[i, Y] = starts[i, 0], starts[i, 1]
        track[0, i, 0], track[0, i, 1] = starts[i, 0], starts[i, 1]
    for k in range(1, rules.steps + 1):
        resting = True
        for i in range(n):
            x, y = track[k - 1, i, 0], track[k - 1, i, 1]
            if rules.rule != _ROUTE:
                for j in range(n):
                    peers[j, 0] = np.nan if j == i else track[k - 1, j, 0]
                    peers[j, 1] = np.nan if j == i else track[k - 1, j, 1]
                remember_all(i, x, y, peers, 0.5 * rules.swath, visited[i], latest[i], walks[i])
            if math.isnan(goals[i, 0]):
                known = visited[i, : min(int(walks[i, 3]), visited.shape[1])]
                if rules.rule == _ROUTE:
                    if legs[i] < lengths[i]:
                        goals[i] = routes[i, legs[i]]
                        after = legs[i] + 1
                        cx = routes[i, after, 0] if after < lengths[i] else np.nan
                        cy = routes[i, after, 1] if after < lengths[i] else np.nan
                        ends[i] = corner_speed(x, y, goals[i, 0], goals[i, 1], cx, cy, rules.accept, a)
                else:
                    if rules.rule == _PHEROMONE:
                        gx, gy = least_visited(i, x, y, rules.inner, rules.swath, known)
                    elif rules.rule == _FIELD:
                        gx, gy = along_field(i, n, x, y, rules.area, rules.inner, rules.swath, known, peers)
                    else:
                        gx, gy = wander(x, y, rules.inner, draws[i], walks[i])
                        if math.isnan(gx):
                            return -1
                    goals[i, 0], goals[i, 1] = gx, gy
                    ends[i] = corner_speed(x, y, gx, gy, np.nan, np.nan, rules.accept, a)
            if math.isnan(goals[i, 0]):
                halt(state[i], a)
            else:
                resting = False
                approach(state[i], goals[i, 0], goals[i, 1], ends[i], a)
                dx, dy = goals[i, 0] - state[i, X], goals[i, 1] - state[i, Y]
                left = math.sqrt(dx * dx + dy * dy)
                behind = dx * math.cos(state[i, COURSE]) + dy * math.sin(state[i, COURSE]) < 0.0
                if left < rules.accept or (left < rules.abeam and behind):
                    goals[i] = np.nan
                    legs[i] += 1
            track[k, i, 0], track[k, i, 1] = state[i, X], state[i, Y]
        if resting and state[:, SPEED].max() <= 0.0:
            return k
    return rules.steps


@cache
def _routes(pattern: str, area: Area, drones: int, swath_m: float, overlap: float) -> tuple[Floats, Ints]:
    """Every drone's fixed route, padded to one array [N, L, 2], and how long each is; empty for reactive patterns."""
    found = [fixed_route(pattern, area, drones, i, swath_m, overlap) for i in range(drones)]
    routes = [np.empty((0, 2)) if route is None else route for route in found]
    padded = np.full((drones, max(1, *(len(route) for route in routes)), 2), np.nan)
    for i, route in enumerate(routes):
        padded[i, : len(route)] = route
    return padded, np.array([len(route) for route in routes], np.int64)


def _draws(task: Task, count: int) -> Floats:
    """The first random steps [N, S, 2] of every drone, as its controller would draw them; none for other patterns."""
    if _RULES.get(task.pattern) != _WANDER:
        return np.empty((task.drones, 0, 2))
    nobody = np.empty((0, 2))
    out = np.empty((task.drones, count, 2))
    for i in range(task.drones):
        place = Place(i, task.drones, task.area, task.swath_m, (0.0, 0.0), nobody, task.key)
        for step in range(count):
            out[i, step] = draw_step(task.pattern, place, step)
    return out


def fly(task: Task) -> Track:
    """Fly one mission from all drones at altitude and at rest to the end of the search."""
    rule = _RULES.get(task.pattern, _ROUTE)
    routes, lengths = _routes(task.pattern, task.area, task.drones, task.swath_m, task.overlap)
    accept = ROUTE_ACCEPT_M if rule == _ROUTE else max(ROUTE_ACCEPT_M, 0.3 * task.swath_m)
    steps = math.ceil(task.duration_s / task.agility.step_s - 1e-9)
    rules = _Rules(
        rule, task.area, inner_area(task.area, task.swath_m), task.swath_m, accept, ABEAM_M, steps, task.agility
    )
    starts = np.array(task.starts)
    count = FIRST_DRAWS
    while True:
        track = np.empty((steps + 1, task.drones, 2))
        flown = _search(rules, starts, routes, lengths, _draws(task, count), MEMORY, track)
        if flown >= 0:
            break
        count *= 2
    return Track(np.arange(flown + 1, dtype=np.float64) * task.agility.step_s, track[: flown + 1])


def fly_batch(tasks: Sequence[Task]) -> list[Track]:
    """Many missions, each as if flown alone."""
    return [fly(task) for task in tasks]
