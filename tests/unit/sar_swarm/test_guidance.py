"""Guidance in a plain kinematic world: legs are followed, obstacles kept clear of, neighbours pushed off fairly."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_core.geometry import box, cylinder, nearest, no_obstacles
from sar_swarm.guidance import BRAKING_MPS2, follow_leg, repel, sidestep, steer

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


def cross(rows: Floats, respond: Callable[[Floats, Floats], Floats]) -> tuple[float, bool]:
    """Fly from west to east; the least distance to an obstacle, and whether the goal was reached in two minutes."""
    position, velocity, side = np.array([-70.0, 0.0, 5.0]), np.zeros(2), 0.0
    start, goal = np.array([-70.0, 0.0]), np.array([70.0, 0.0])
    least = math.inf
    for _ in range(int(120 / TICK)):
        vx, vy = follow_leg(position, start, goal, SPEED, 0.0)
        vx, vy, side = steer(position, vx, vy, rows, CLEARANCE, HORIZON, side)
        velocity = respond(velocity, np.array([vx, vy]))
        position[:2] += velocity * TICK
        least = min(least, nearest(rows, *position)[0])
        if np.linalg.norm(position[:2] - goal) < 3.0:
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
    vx, vy, side = steer(here, 5.0, 0.0, behind, CLEARANCE, HORIZON, 0.0)
    assert (vx, vy, side) == (pytest.approx(5.0), pytest.approx(0.0), 0.0)


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


@given(points, points, points, st.floats(1, 12), st.floats(0, 5))
def test_leg_speed_allows_braking_to_the_end_speed(
    at: tuple[float, float], start: tuple[float, float], end: tuple[float, float], speed: float, end_speed: float
) -> None:
    vx, vy = follow_leg(np.array([*at, 30.0]), np.array(start), np.array(end), speed, min(end_speed, speed))
    left = math.dist(at, end)
    v = math.hypot(vx, vy)
    assert v <= speed + 1e-9
    assert v * v <= min(end_speed, speed) ** 2 + 2.0 * BRAKING_MPS2 * left + 1e-9


@given(st.floats(-40, 40), st.floats(0, 90))
def test_off_the_leg_the_drone_returns_to_it(offset: float, along: float) -> None:
    vx, vy = follow_leg(np.array([along, offset, 30.0]), np.zeros(2), np.array([100.0, 0.0]), SPEED, 3.0)
    assert vx > 0.0
    assert abs(offset) < 1e-6 or vy * offset < 0.0


def test_a_leg_is_flown_to_its_end_and_stopped_there() -> None:
    position = np.array([0.0, 20.0, 30.0])
    start, end = np.zeros(2), np.array([60.0, 0.0])
    for _ in range(800):
        position[:2] += TICK * np.array(follow_leg(position, start, end, SPEED, 0.0))
    assert position[:2] == pytest.approx(end, abs=0.05)
    assert follow_leg(np.array([60.0, 0.0, 30.0]), end, end, SPEED, 0.0) == (0.0, 0.0)


def heard(position: Floats, velocity: Floats | None = None, stamp: float = 0.0) -> Floats:
    return np.concatenate([position, np.zeros(3) if velocity is None else velocity, [stamp]])[None, :]


vectors = st.tuples(st.floats(-6, 6), st.floats(-6, 6), st.floats(-6, 6)).map(np.array)


@given(vectors, vectors)
def test_two_drones_push_each_other_equally(a: Floats, b: Floats) -> None:
    on_a = np.array(repel(a, heard(b), 0.0, 2.0, 5.0, 6.0))
    on_b = np.array(repel(b, heard(a), 0.0, 2.0, 5.0, 6.0))
    assert on_a == pytest.approx(-on_b, abs=1e-9)
    gap = a - b
    if 1e-3 < np.linalg.norm(gap) < 4.999:
        assert on_a @ gap > 0.0
    if np.linalg.norm(gap) > 5.0:
        assert not on_a.any()


def test_push_grows_as_they_come_nearer() -> None:
    pushes = [repel(np.array([d, 0.0, 0.0]), heard(np.zeros(3)), 0.0, 2.0, 5.0, 6.0)[0] for d in (4.9, 4, 3, 2, 1)]
    assert pushes == sorted(pushes) and pushes[0] > 0.0


def test_old_news_is_carried_forward_then_dropped() -> None:
    """Heard 1 s ago at 10 m coming with 7 m/s, the other is now at 3 m; after the time-out it counts no more."""
    here, other = np.zeros(3), heard(np.array([10.0, 0.0, 0.0]), np.array([-7.0, 0.0, 0.0]), stamp=4.0)
    now = repel(here, other, 5.0, 2.0, 5.0, 6.0)
    assert now == repel(here, heard(np.array([3.0, 0.0, 0.0])), 0.0, 2.0, 5.0, 6.0)
    assert repel(here, other, 6.5, 2.0, 5.0, 6.0) == (0.0, 0.0, 0.0)


def test_unheard_neighbours_have_no_influence() -> None:
    others = np.full((4, 7), np.nan)
    assert repel(np.zeros(3), others, 1.0, 2.0, 5.0, 6.0) == (0.0, 0.0, 0.0)
    others[2] = heard(np.array([2.0, 0.0, 0.0]), stamp=1.0)[0]
    assert repel(np.zeros(3), others, 1.0, 2.0, 5.0, 6.0)[0] < 0.0


@given(vectors, vectors, vectors, vectors)
def test_two_drones_foresee_the_same_miss(a: Floats, va: Floats, b: Floats, vb: Floats) -> None:
    """What one steps aside, the other steps to the opposite side by as much; the step never closes the gap."""
    on_a = np.array(sidestep(a, va, heard(b, vb), 0.0, 2.0, 5.0, 4.0))
    on_b = np.array(sidestep(b, vb, heard(a, va), 0.0, 2.0, 5.0, 4.0))
    assert on_a == pytest.approx(-on_b, abs=1e-6)
    gap, drift = a - b, va - vb
    times = np.linspace(0.0, 4.0, 400)
    if on_a.any():
        assert np.linalg.norm(gap + times[:, None] * drift, axis=1).min() < 5.05
    elif np.linalg.norm(drift) > 0.5 and gap @ drift < -0.1:
        assert np.linalg.norm(gap + times[:, None] * drift, axis=1).min() > 4.9 or gap @ drift > -4.0 * drift @ drift


@pytest.mark.parametrize("heading", [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
def test_head_on_both_step_to_their_right(heading: float) -> None:
    ahead = np.array([math.cos(heading), math.sin(heading), 0.0])
    right = np.array([math.sin(heading), -math.cos(heading), 0.0])
    step = np.array(sidestep(np.zeros(3), 8.0 * ahead, heard(40.0 * ahead, -8.0 * ahead), 0.0, 2.0, 5.0, 4.0))
    assert step @ right > 1.0
    assert step == pytest.approx(step @ right * right, abs=1e-9)


@pytest.mark.parametrize(
    ("where", "motion"),
    [((40.0, 0.0, 0.0), (8.0, 0.0, 0.0)), ((0.0, 10.0, 0.0), (0.0, 0.0, 0.0)), ((90.0, 0.0, 0.0), (-8.0, 0.0, 0.0))],
    ids=["same way", "abeam", "beyond the horizon"],
)
def test_no_conflict_no_step(where: tuple[float, float, float], motion: tuple[float, float, float]) -> None:
    other = heard(np.array(where), np.array(motion))
    assert sidestep(np.zeros(3), np.array([8.0, 0.0, 0.0]), other, 0.0, 2.0, 5.0, 4.0) == (0.0, 0.0, 0.0)


def test_unheard_and_stale_neighbours_need_no_step() -> None:
    coming = heard(np.array([20.0, 0.0, 0.0]), np.array([-8.0, 0.0, 0.0]))
    assert sidestep(np.zeros(3), np.zeros(3), np.full((2, 7), np.nan), 0.0, 2.0, 5.0, 4.0) == (0.0, 0.0, 0.0)
    assert sidestep(np.zeros(3), np.zeros(3), coming, 2.0, 2.0, 5.0, 4.0) == (0.0, 0.0, 0.0)
    assert sidestep(np.zeros(3), np.zeros(3), coming, 0.0, 2.0, 5.0, 4.0) != (0.0, 0.0, 0.0)
