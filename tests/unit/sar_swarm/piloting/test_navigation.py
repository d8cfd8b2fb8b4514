"""The way to a goal: straight where it is free, round what blocks it, made anew when it leads nowhere."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_core.geometry import box, no_obstacles, segment_distance
from sar_swarm.piloting.navigation import BERTH_M, MAX_FAILURES, RETRY_S, Chart, Way, along_line, pursue, standing
from sar_swarm.planning.planmap import plan_map
from sar_swarm.planning.rrt_apf import Code
from sar_swarm.planning.trajectory import MotionLimits

Floats = NDArray[np.float64]

BOUNDS = (-200.0, -200.0, 5.0, 200.0, 200.0, 80.0)
NOBODY = np.full((1, 9), np.nan)
START = np.array([-100.0, 0.0, 30.0])
GOAL = (100.0, 0.0, 30.0)


def chart(*rows: Floats) -> Chart:
    return Chart(np.array(rows) if rows else no_obstacles(), BOUNDS, MotionLimits())


def go(where: Chart, way: Way | None, position: Floats, time_s: float, others: Floats = NOBODY) -> Way:
    return pursue(where, way, GOAL, 3.0, position, np.zeros(3), others, time_s, 7)[0]


def off_line(points: Floats) -> Floats:
    """How far each point is from the straight line, which runs along x at 30 m."""
    return np.hypot(points[:, 1], points[:, 2] - 30.0)


def test_a_free_way_is_the_straight_line() -> None:
    way = go(chart(), None, START, 0.0)
    assert off_line(way.points).max() < 1e-6
    assert way.points[-1] == pytest.approx(GOAL)


def test_the_line_is_left_only_where_it_is_blocked() -> None:
    """A house in the middle of a lane of 200 m: all but 70 m of it are flown where the lane lies."""
    way = go(chart(box(0.0, 0.0, 30.0, 16.0, 16.0, 60.0)), None, START, 0.0)
    away = way.points[off_line(way.points) > 1.0]
    assert len(away) > 0
    assert away[:, 0].max() - away[:, 0].min() < 70.0


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(-80, 80), st.floats(-30, 30), st.floats(4, 25)), min_size=1, max_size=8))
def test_a_way_along_the_line_keeps_its_clearance(houses: list[tuple[float, float, float]]) -> None:
    rows = np.array([box(x, y, 20.0, size, size, 40.0) for x, y, size in houses])
    code, corners = along_line(plan_map(rows, np.array(BOUNDS)), START, np.array(GOAL), 3.0, 1)
    if code is not Code.FOUND:
        assert min(math.dist((x, y), (a, 0.0)) for x, y, _ in houses for a in (-100.0, 100.0)) < 45.0
        return
    for a, b in pairwise(corners):
        assert min(segment_distance(row, a, b)[0] for row in rows) > 3.0 - 1e-6


def test_pushed_off_its_way_a_drone_plans_anew_from_where_it_is() -> None:
    where = chart()
    way = go(where, None, START, 0.0)
    pushed = START + np.array([20.0, 15.0, 0.0])
    kept = go(where, way, pushed, 0.5 * RETRY_S)
    anew = go(where, kept, pushed, 2.0 * RETRY_S)
    assert kept.plans == 1 and anew.plans == 2
    assert anew.points[0] == pytest.approx(pushed)


def test_a_neighbour_standing_in_the_way_is_gone_round() -> None:
    others = np.full((2, 9), np.nan)
    others[1] = [-70.0, 0.0, 30.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0]
    where = chart()
    way = go(where, None, START, 0.0)
    assert np.hypot(way.points[:, 0] + 70.0, way.points[:, 1]).min() < 1.0
    way = go(where, way, START, 2.0, others)
    gap = np.linalg.norm(way.points - others[1, :3], axis=1)
    assert way.plans == 2 and gap.min() > BERTH_M


def test_only_those_who_stand_or_are_silent_are_in_the_way() -> None:
    others = np.full((4, 9), np.nan)
    others[1] = [-80.0, 0.0, 30.0, 8.0, 0.0, 0.0, 10.0, 0.0, 0.0]
    others[2] = [-80.0, 9.0, 30.0, 8.0, 0.0, 0.0, 5.0, 0.0, 0.0]
    others[3] = [100.0, 0.0, 30.0, 0.0, 0.0, 0.0, 10.0, 0.0, 0.0]
    assert [row[2] for row in standing(others, START, 10.0)] == [9.0]


def test_a_goal_that_cannot_be_reached_is_given_up_after_some_plans() -> None:
    """Walled in on all sides up to the ceiling; between the tries a second passes, and the drone stays where it is."""
    walls = [
        box(100.0 + dx, dy, 42.0, w, d, 90.0)
        for dx, dy, w, d in ((-9, 0, 2, 22), (9, 0, 2, 22), (0, -9, 20, 2), (0, 9, 20, 2))
    ]
    where = chart(*walls)
    way = go(where, None, START, 0.0)
    for k in range(1, 12):
        way = go(where, way, START, k * (RETRY_S + 0.01))
    assert way.hopeless and way.failures == MAX_FAILURES
    assert pursue(where, way, GOAL, 3.0, START, np.zeros(3), NOBODY, 20.0, 7)[1][:2] == (0.0, 0.0)


def test_a_place_under_a_roof_is_lifted_above_it() -> None:
    where = chart(box(0.0, 0.0, 20.0, 20.0, 20.0, 40.0), box(50.0, 0.0, 50.0, 20.0, 20.0, 100.0))
    lifted = where.free_altitude(0.0, 0.0, 30.0)
    assert lifted is not None and 44.0 <= lifted <= 48.0
    assert where.free_altitude(-50.0, 0.0, 30.0) == 30.0
    assert where.free_altitude(50.0, 0.0, 30.0) is None


def test_gentle_turns_are_flown_through_and_sharp_ones_slowly() -> None:
    where = chart()
    speeds = [
        where.corner_speed((0, 0), (50, 0), (50 + 50 * math.cos(a), 50 * math.sin(a)), 3.0)
        for a in (0.0, 0.6, 1.6, 3.1)
    ]
    assert speeds[0] == where.limits.speed_mps and speeds == sorted(speeds, reverse=True)
    assert speeds[1] > 4.0 and speeds[-1] == where.corner_speed_mps
    assert where.corner_speed((0, 0), (50, 0), None, 8.4) > where.corner_speed((0, 0), (50, 0), None, 3.0)
