"""The compiled decisions are those of the clear version, place after place."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from sar_core.streams import stream
from sar_swarm.piloting.patterns import Place, Walk, draw_step, known_visits, next_waypoint, remember, start_walk
from sar_swarm.piloting.waypoints import ENTERED, along_field, least_visited, remember_all, wander
from sar_swarm.planning.routes import inner_area

AREA = (-200.0, -150.0, 200.0, 250.0)
INNER = inner_area(AREA, 28.0)
Floats = NDArray[np.float64]


def random_place(number: int) -> tuple[Place, Walk, Floats]:
    """A drone among others with a memory of random visits, at times on the edge or beyond it."""
    rng = stream("test waypoints", number)
    drones = int(rng.integers(1, 7))
    me = int(rng.integers(drones))
    x, y = rng.uniform((-230.0, -180.0), (230.0, 280.0))
    peers = rng.uniform((-200.0, -150.0), (200.0, 250.0), (drones, 2))
    peers[me] = math.nan
    peers[rng.random(drones) < 0.2] = math.nan
    visited = rng.uniform((-200.0, -150.0), (200.0, 250.0), (int(rng.integers(0, 250)), 2))
    walk = start_walk(drones)
    walk.visited[: len(visited)] = visited
    walk = walk._replace(entered=len(visited))
    return Place(me, drones, AREA, 28.0, (float(x), float(y)), peers, (number, 1)), walk, visited


@pytest.mark.parametrize("pattern", ["pheromone", "potential_field"])
def test_the_same_next_place(pattern: str) -> None:
    for number in range(300):
        place, walk, visited = random_place(number)
        _, clear = next_waypoint(pattern, walk, place)
        x, y = place.position
        if pattern == "pheromone":
            ours = least_visited(place.index, x, y, INNER, 28.0, visited)
        else:
            ours = along_field(place.index, place.drones, x, y, AREA, INNER, 28.0, visited, place.peers)
        assert ours == pytest.approx(clear, abs=1e-9), number


@pytest.mark.parametrize("pattern", ["levy_flight", "random_walk"])
def test_the_same_random_way(pattern: str) -> None:
    for number in range(20):
        place, walk, _ = random_place(number)
        draws = np.array([draw_step(pattern, place, step) for step in range(40)])
        state = np.zeros(4)
        position = place.position
        for _ in range(40):
            walk, clear = next_waypoint(pattern, walk, Place(**{**vars(place), "position": position}))
            ours = wander(position[0], position[1], INNER, draws, state)
            assert ours == pytest.approx(clear, abs=1e-9)
            position = clear


def test_draws_that_run_out_are_said() -> None:
    assert math.isnan(wander(0.0, 0.0, INNER, np.empty((0, 2)), np.zeros(4))[0])


def test_the_same_memory_in_the_same_order() -> None:
    rng = stream("test memory")
    walk = start_walk(4, memory=8)
    visited, latest, state = np.full((32, 2), np.nan), np.full((5, 2), np.nan), np.zeros(4)
    peers = np.zeros((4, 2))
    x = y = 0.0
    for _ in range(400):
        peers += rng.normal(0.0, 6.0, (4, 2))
        peers[1] = math.nan
        x, y = x + float(rng.normal(0.0, 6.0)), y + float(rng.normal(0.0, 6.0))
        heard = peers.copy()
        heard[3] = math.nan if rng.random() < 0.2 else heard[3]
        walk = remember(walk, (x, y), heard, 28.0)
        remember_all(1, x, y, heard, 14.0, visited, latest, state)
        assert int(state[ENTERED]) == walk.entered
        assert np.array_equal(visited[: min(walk.entered, 32)], known_visits(walk), equal_nan=True)
    assert walk.entered > 64
