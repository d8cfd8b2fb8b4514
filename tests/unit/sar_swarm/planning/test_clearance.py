"""Keeping clear of the map in a plain kinematic world: the way test is exact, obstacles are gone round, never into."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_core.geometry import box, cylinder, nearest, no_obstacles, segment_distance
from sar_swarm.planning.clearance import close_obstacles, go_round, reach_of, way_blocked

Floats = NDArray[np.float64]

TICK = 0.05
CLEARANCE = 3.0
HORIZON = 2.5
SPEED = 8.0
coordinates = st.floats(-100, 100)
points = st.tuples(coordinates, coordinates)


def obstacle_field(seed: int, count: int = 12) -> Floats:
    """Houses and trunks between (-60, -60) and (60, 60), none near (-70, 0) and (70, 0)."""
    rng = np.random.default_rng(seed)
    rows: list[Floats] = []
    while len(rows) < count:
        x, y = rng.uniform(-60, 60, 2)
        if min(math.hypot(x + 70, y), math.hypot(x - 70, y)) < 15.0:
            continue
        if rng.random() < 0.6:
            rows.append(box(x, y, 10, *rng.uniform(2, 12, 2), 20, rng.uniform(-3, 3)))
        else:
            rows.append(cylinder(x, y, 10, rng.uniform(0.3, 3), 20))
    return np.array(rows)


@given(st.integers(0, 10_000), points, st.floats(0, 40), st.floats(-math.pi, math.pi), st.floats(0, 30))
def test_the_way_is_blocked_exactly_where_an_obstacle_is_too_near(
    seed: int, at: tuple[float, float], length: float, heading: float, height: float
) -> None:
    rows = obstacle_field(seed)
    here = np.array([*at, height])
    there = here + length * np.array([math.cos(heading), math.sin(heading), 0.0])
    least = min(segment_distance(row, here, there)[0] for row in rows)
    assume(abs(least - CLEARANCE) > 1e-4)
    close, at_once, row = close_obstacles(here, length, rows, CLEARANCE)
    assert way_blocked(close, there[0] - here[0], there[1] - here[1]) == (least < CLEARANCE)
    if at_once < CLEARANCE:
        assert (at_once, row) == (pytest.approx(nearest(rows, *here)[0]), nearest(rows, *here)[1])


def steer(
    pos: Floats, vx: float, vy: float, rows: Floats, clearance: float, horizon_s: float, side: float
) -> tuple[float, float, float]:
    """Round the map and nothing else."""
    speed = math.hypot(vx, vy)
    close, least, row = close_obstacles(pos, reach_of(speed, horizon_s), rows, clearance)
    return go_round(pos, vx, vy, rows, close, least, row, clearance, horizon_s, side)


def cross(rows: Floats, respond: Callable[[Floats, Floats], Floats]) -> tuple[float, bool]:
    """Fly from west to east; the least distance to an obstacle, and whether the goal was reached in two minutes."""
    position, velocity, side = np.array([-70.0, 0.0, 5.0]), np.zeros(2), 0.0
    goal = (70.0, 0.0)
    least = math.inf
    for _ in range(int(120 / TICK)):
        gap = np.array(goal) - position[:2]
        vx, vy = gap * min(SPEED, 0.95 * float(np.hypot(*gap))) / float(np.hypot(*gap))
        vx, vy, side = steer(position, vx, vy, rows, CLEARANCE, HORIZON, side)
        velocity = respond(velocity, np.array([vx, vy]))
        position[:2] += velocity * TICK
        least = min(least, nearest(rows, *position)[0])
        if math.dist(position[:2], goal) < 3.0:
            return least, True
    return least, False


def at_once(_: Floats, wanted: Floats) -> Floats:
    return wanted


def like_a_multirotor(velocity: Floats, wanted: Floats) -> Floats:
    """PX4's velocity loop: 1.8 m/s2 per m/s of error, at most 8 m/s2."""
    pull = 1.8 * (wanted - velocity)
    size = float(np.linalg.norm(pull))
    return velocity + pull * min(1.0, 8.0 / max(size, 1e-9)) * TICK


def test_a_drone_that_obeys_at_once_keeps_the_whole_clearance() -> None:
    outcomes = [cross(obstacle_field(seed), at_once) for seed in range(40)]
    assert min(least for least, _ in outcomes) > CLEARANCE - 0.01
    assert sum(arrived for _, arrived in outcomes) >= 36


def test_a_drone_with_inertia_hits_nothing() -> None:
    outcomes = [cross(obstacle_field(seed), like_a_multirotor) for seed in range(40)]
    assert min(least for least, _ in outcomes) > 0.5
    assert sum(arrived for _, arrived in outcomes) >= 36


@given(points, st.floats(-math.pi, math.pi), st.integers(0, 1000))
def test_steer_never_speeds_up_and_never_points_into_an_obstacle(
    at: tuple[float, float], heading: float, seed: int
) -> None:
    rows = obstacle_field(seed)
    here = np.array([*at, 5.0])
    assume(nearest(rows, *here)[0] > CLEARANCE)
    vx, vy, side = steer(here, SPEED * math.cos(heading), SPEED * math.sin(heading), rows, CLEARANCE, HORIZON, 0.0)
    speed = math.hypot(vx, vy)
    assert speed <= SPEED + 1e-9
    assert side in (-1.0, 0.0, 1.0)
    ahead = here + np.array([vx, vy, 0.0])
    assert nearest(rows, *ahead)[0] > CLEARANCE - 1e-3


def test_free_way_is_left_alone() -> None:
    here = np.zeros(3)
    assert steer(here, 5.0, -2.0, no_obstacles(), CLEARANCE, HORIZON, 1.0) == (5.0, -2.0, 0.0)
    behind = box(-20, 0, 0, 4, 4, 4)[None, :]
    assert steer(here, 5.0, 0.0, behind, CLEARANCE, HORIZON, 0.0) == (5.0, 0.0, 0.0)
    below = box(10, 0, -20, 4, 4, 4)[None, :]
    assert steer(here, 5.0, 0.0, below, CLEARANCE, HORIZON, 0.0) == (5.0, 0.0, 0.0)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_the_side_once_taken_is_kept(side: float) -> None:
    """Dead ahead both ways are equal; the memory decides, so that the drone does not dither."""
    wall = box(12, 0, 0, 2, 10, 20)[None, :]
    _, vy, taken = steer(np.zeros(3), 8.0, 0.0, wall, CLEARANCE, HORIZON, side)
    assert taken == side and math.copysign(1.0, vy) == side


def test_too_near_means_back_off() -> None:
    wall = box(3, 0, 0, 2, 10, 20)[None, :]
    vx, vy, _ = steer(np.zeros(3), 8.0, 0.0, wall, CLEARANCE, HORIZON, 0.0)
    assert vx < 0.0 and abs(vy) < 1e-6 and math.hypot(vx, vy) < 2.0


def test_in_a_tight_yard_the_drone_slows_down() -> None:
    """Walls all round: no way is free for the full look-ahead, a short one is, so it is flown slowly."""
    yard = np.array(
        [box(12, 0, 0, 2, 40, 20), box(-12, 0, 0, 2, 40, 20), box(0, 12, 0, 40, 2, 20), box(0, -12, 0, 40, 2, 20)]
    )
    vx, vy, _ = steer(np.zeros(3), 8.0, 0.0, yard, CLEARANCE, HORIZON, 0.0)
    assert 0.0 < math.hypot(vx, vy) <= 4.0 and vx > 0.0
