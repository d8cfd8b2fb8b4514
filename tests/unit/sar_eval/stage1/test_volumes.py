"""Volumes in the plane of flight: the clearance of the planner, held to the exact distance in space."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sar_core.geometry import box, cylinder, nearest, segment_distance
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.stage1.kinematics import task_of
from sar_eval.stage1.volumes import EVERYWHERE, NOTHING, SPARE_M, blocked, free_place, make_volumes, room
from sar_swarm.piloting.navigation import Chart
from tests.unit.sar_eval.stage1.madeworlds import ALTITUDE_M, CLEARANCE_M, bodies

Floats = np.ndarray


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12))
def test_a_way_is_blocked_where_it_comes_nearer_in_space_than_the_clearance(seed: int, count: int) -> None:
    """Against golden-section searches over the bodies themselves, at the altitude of flight."""
    rng = np.random.default_rng(seed)
    obstacles = bodies(rng, count)
    volumes = make_volumes(obstacles, ALTITUDE_M, CLEARANCE_M, EVERYWHERE)
    for _ in range(10):
        a, b = (np.array([*rng.uniform(-120.0, 120.0, 2), ALTITUDE_M]) for _ in range(2))
        if nearest(obstacles, *a)[0] < CLEARANCE_M:
            continue
        least = min(segment_distance(row, a, b)[0] for row in obstacles)
        if abs(least - CLEARANCE_M) > 1e-3:
            assert blocked(volumes.rows, a[0], a[1], b[0], b[1], 0.0) == (least < CLEARANCE_M)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12))
def test_room_is_nothing_where_the_clearance_ends_in_space(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    obstacles = bodies(rng, count)
    volumes = make_volumes(obstacles, ALTITUDE_M, CLEARANCE_M, EVERYWHERE)
    for x, y in rng.uniform(-120.0, 120.0, (20, 2)):
        far = nearest(obstacles, x, y, ALTITUDE_M)[0]
        found = room(volumes.rows, x, y, 500.0)
        if abs(far - CLEARANCE_M) > 1e-6 and len(volumes.rows):
            assert (found > 0.0) == (far > CLEARANCE_M)
        assert room(volumes.rows, x, y, 3.0) == min(found, 3.0)


def test_a_body_counts_from_the_clearance_below_the_altitude_and_the_less_the_lower() -> None:
    """A house 2.4 m below is to be kept from by 3.2 m in the plane: 4 m in all."""
    for top, rim in ((25.9, None), (26.1, math.sqrt(16.0 - 3.9**2)), (27.6, 3.2), (30.0, 4.0), (50.0, 4.0)):
        rows = make_volumes(box(0, 0, top / 2, 10, 10, top)[None], 30.0, 4.0, EVERYWHERE).rows
        if rim is None:
            assert len(rows) == 0
        else:
            assert room(rows, 5.0 + rim, 0.0, 10.0) == pytest.approx(0.0, abs=1e-9)


def test_what_stands_in_the_worlds_at_their_own_altitude() -> None:
    """docs/stage1.md tells these numbers."""
    counts = {}
    for world in ("village", "open_field", "forest", "collapsed_block"):
        counts[world] = len(task_of(prepare(Scenario(world=world), 0, 0)).volumes.rows)
    assert counts == {"village": 15, "open_field": 0, "forest": 62, "collapsed_block": 28}
    high = task_of(prepare(Scenario(world="village", altitude_m=41.0), 0, 0)).volumes
    assert high is NOTHING, "5 m above the church"


def test_the_clearance_is_the_planners() -> None:
    assert Chart.clearance_m == CLEARANCE_M


def test_a_place_inside_is_moved_to_the_nearest_that_is_free() -> None:
    """A tower of 10 m, 4 m to keep and half a metre to spare: from 2 m off its middle, the nearest place is on a ring
    of 8 m around."""
    volumes = make_volumes(box(0, 0, 25, 10, 10, 50)[None], 30.0, 4.0, EVERYWHERE)
    assert free_place(volumes, 40.0, 3.0) == (40.0, 3.0)
    x, y = free_place(volumes, 2.0, 0.0)
    assert room(volumes.rows, x, y, 10.0) >= SPARE_M
    assert math.hypot(x - 2.0, y) == pytest.approx(8.0)
    fenced = make_volumes(box(0, 0, 25, 10, 10, 50)[None], 30.0, 4.0, (-50.0, -50.0, 9.0, 50.0))
    assert free_place(fenced, 2.0, 0.0)[0] <= 9.0
    nowhere = make_volumes(box(0, 0, 25, 300, 300, 50)[None], 30.0, 4.0, EVERYWHERE)
    assert math.isnan(free_place(nowhere, 0.0, 0.0)[0])


def test_who_is_too_near_may_leave_but_not_come_nearer() -> None:
    rows = make_volumes(cylinder(0, 0, 25, 5, 50)[None], 30.0, 4.0, EVERYWHERE).rows
    assert not blocked(rows, 7.0, 0.0, 30.0, 0.0, 0.0)
    assert blocked(rows, 7.0, 0.0, 6.9, 0.0, 0.0)
    assert blocked(rows, 7.0, 0.0, -30.0, 3.0, 0.0)
