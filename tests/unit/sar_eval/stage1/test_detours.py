"""Ways round volumes: free, no longer than need be, found where there is one; and steps that can always brake."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra

from sar_core.geometry import box, cylinder
from sar_eval.stage1.detours import MOST, braking_m, lay, shortest
from sar_eval.stage1.volumes import EVERYWHERE, SPARE_M, Volumes, blocked, make_volumes, room
from sar_sim.vehicle.kinematic import COURSE, SPEED, STATE, Agility, X, Y, halt
from tests.unit.sar_eval.stage1.madeworlds import ALTITUDE_M, CLEARANCE_M, bodies

AGILITY = Agility(8.0, 3.0, math.radians(30.0), 3.0, 0.25)
Spot = tuple[float, float]


def world(seed: int, count: int) -> tuple[Volumes, list[Spot]]:
    """Volumes and free places among them."""
    rng = np.random.default_rng(seed)
    volumes = make_volumes(bodies(rng, count), ALTITUDE_M, CLEARANCE_M, EVERYWHERE)
    places = [(float(x), float(y)) for x, y in rng.uniform(-110.0, 110.0, (40, 2))]
    return volumes, [place for place in places if room(volumes.rows, *place, 1.0) >= SPARE_M]


def laid(volumes: Volumes, p: Spot, q: Spot) -> list[Spot]:
    way = np.empty((MOST, 2))
    return [(float(x), float(y)) for x, y in way[: lay(volumes, *p, *q, way)]]


def by_dijkstra(volumes: Volumes, p: Spot, q: Spot) -> float:
    """Length of the shortest way over all corners: every pair tried, no heuristic, no limit."""
    points = np.array([p, q, *volumes.corners])
    count = len(points)
    cost = np.full((count, count), np.inf)
    for i in range(count):
        for j in range(count):
            if i != j and not blocked(volumes.rows, *points[i], *points[j], SPARE_M):
                cost[i, j] = math.dist(points[i], points[j])
    return float(dijkstra(np.where(np.isfinite(cost), cost, 0.0), directed=False, indices=0)[1])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 10))
def test_the_shortest_way_is_that_of_the_whole_graph(seed: int, count: int) -> None:
    volumes, places = world(seed, count)
    way = np.empty((MOST, 2))
    for p, q in zip(places[:6:2], places[1:6:2], strict=True):
        used = shortest(volumes, *p, *q, np.inf, way)
        points = [p, *map(tuple, way[:used])]
        length = sum(map(math.dist, points[:-1], points[1:])) if used else math.inf
        best = by_dijkstra(volumes, p, q)
        assert length == pytest.approx(best) if math.isfinite(best) else used == 0
        if used > 1:
            assert shortest(volumes, *p, *q, 0.999 * length, way) == 0, "no longer than the limit"


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 14))
def test_every_leg_of_a_way_is_free_and_it_ends_at_the_goal(seed: int, count: int) -> None:
    volumes, places = world(seed, count)
    for p, q in zip(places[::2], places[1::2], strict=False):
        way = laid(volumes, p, q)
        if way:
            assert way[-1] == q
            for a, b in zip([p, *way], way, strict=False):
                assert not blocked(volumes.rows, *a, *b, SPARE_M - 1e-9)
        else:
            assert not math.isfinite(by_dijkstra(volumes, p, q))


def test_a_free_way_is_straight() -> None:
    volumes, _ = world(3, 8)
    assert laid(volumes, (-300.0, -300.0), (300.0, -300.0)) == [(300.0, -300.0)]


def test_a_lane_is_left_only_where_something_stands() -> None:
    """A tower half way along 400 m: the way leaves the lane 20 m or so before its rim and comes back as soon after."""
    volumes = make_volumes(box(0, 2, 30, 10, 10, 60)[None], 30.0, 4.0, EVERYWHERE)
    way = laid(volumes, (-200.0, 0.0), (200.0, 0.0))
    assert way[-1] == (200.0, 0.0)
    off = [(x, y) for x, y in way if y != 0.0]
    assert off and all(y < 0.0 for _, y in off), "round the nearer side"
    on = [x for x, y in way[:-1] if y == 0.0]
    assert -32.0 < min(on) < -9.0 and 9.0 < max(on) < 32.0


def test_no_way_leads_out_of_a_ring_of_walls() -> None:
    walls = [
        box(0, 30, 30, 70, 4, 60),
        box(0, -30, 30, 70, 4, 60),
        box(30, 0, 30, 4, 70, 60),
        box(-30, 0, 30, 4, 70, 60),
    ]
    volumes = make_volumes(np.array(walls), 30.0, 4.0, EVERYWHERE)
    assert laid(volumes, (0.0, 0.0), (100.0, 0.0)) == []
    assert laid(volumes, (0.0, 0.0), (15.0, 5.0)) == [(15.0, 5.0)]


def test_a_detour_that_leads_far_round_is_found() -> None:
    """A wall of 300 m: the ellipse around the line does not reach its end."""
    volumes = make_volumes(box(0, 0, 30, 300, 2, 60)[None], 30.0, 4.0, EVERYWHERE)
    way = laid(volumes, (0.0, -20.0), (0.0, 20.0))
    assert max(abs(x) for x, _ in way) > 150.0


def test_corners_beyond_the_bounds_are_not_flown_over() -> None:
    pole = cylinder(0, 0, 30, 3, 60)[None]
    way = laid(make_volumes(pole, 30.0, 4.0, (-50.0, -2.0, 50.0, 50.0)), (-30.0, -1.0), (30.0, -1.0))
    assert way and min(y for _, y in way) >= -2.0


@pytest.mark.parametrize("speed", [0.0, 0.3, 0.75, 3.1, 8.0])
def test_braking_takes_what_halting_takes(speed: float) -> None:
    state = np.zeros(STATE)
    state[SPEED] = speed
    for _ in range(20):
        halt(state, AGILITY)
    assert state[SPEED] == 0.0
    assert braking_m(speed, AGILITY) == pytest.approx(math.hypot(state[X], state[Y]), abs=1e-12)
    assert state[COURSE] == 0.0
