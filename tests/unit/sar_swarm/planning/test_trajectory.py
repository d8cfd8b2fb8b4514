"""Rounded, timed and followed: what a drone would do with a planned path."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.geometry import box, no_obstacles
from sar_swarm.planning.planmap import PlanMap, plan_map
from sar_swarm.planning.trajectory import MotionLimits, blocked, follow, smooth
from tests.unit.sar_swarm import plancheck

BOUNDS = np.array([-200.0, -200.0, 0.0, 200.0, 200.0, 120.0])
OPEN = plan_map(no_obstacles(), BOUNDS)
MISSION = MotionLimits()
Floats = plancheck.Floats

coordinates = st.tuples(st.floats(-150.0, 150.0), st.floats(-150.0, 150.0), st.floats(5.0, 100.0))


def _duration(points: Floats, speeds: Floats) -> float:
    return float(np.sum(2.0 * np.linalg.norm(np.diff(points, axis=0), axis=1) / (speeds[:-1] + speeds[1:])))


@given(st.lists(coordinates, min_size=2, max_size=7), st.floats(0.0, 8.0), st.floats(0.0, 8.0))
def test_any_corners_become_a_path_within_limits(corners: list, start: float, end: float) -> None:
    points, speeds = smooth(np.array(corners), OPEN, 3.0, MISSION, start, end)
    if len(points) < 2:
        return
    acceleration, turn_rate, climb = plancheck.motion(points, speeds)
    assert np.linalg.norm(np.diff(points, axis=0), axis=1).max() <= 1.0 + 1e-9
    assert acceleration <= MISSION.acceleration_mps2 * 1.01
    assert turn_rate <= MISSION.turn_rate_rps * 1.01
    assert climb <= MISSION.climb_mps * 1.001
    assert speeds[0] <= start and speeds[-1] <= end


def test_a_straight_line_takes_the_time_of_a_trapezoid() -> None:
    """100 m from rest to rest at 2 m/s^2 up to 8 m/s: 16 m up, 16 m down, 68 m cruise; 4 + 4 + 8.5 s."""
    points, speeds = smooth(np.array([[0.0, 0.0, 30.0], [100.0, 0.0, 30.0]]), OPEN, 3.0, MISSION)
    assert _duration(points, speeds) == pytest.approx(16.5, rel=0.01)
    assert speeds.max() == 8.0


def test_a_climb_is_flown_at_the_climb_rate() -> None:
    _, speeds = smooth(np.array([[0.0, 0.0, 10.0], [0.0, 0.0, 40.0]]), OPEN, 3.0, MISSION)
    assert speeds.max() == pytest.approx(MISSION.climb_mps)


def test_asked_speeds_at_both_ends_are_kept_where_there_is_room() -> None:
    _, speeds = smooth(np.array([[0.0, 0.0, 30.0], [100.0, 0.0, 30.0]]), OPEN, 3.0, MISSION, 5.0, 3.0)
    assert (speeds[0], speeds[-1]) == (5.0, 3.0)


def _corridor() -> PlanMap:
    """An L of two corridors 6.2 m wide: with 3 m clearance only 0.2 m are left to move in."""
    return plan_map(
        np.array(
            [
                box(0.0, -23.1, 30.0, 106.2, 40.0, 60.0),
                box(-30.0, 33.1, 30.0, 60.0 - 6.2 + 100.0, 60.0, 60.0),
                box(73.1, 20.0, 30.0, 40.0, 126.2, 60.0),
            ]
        ),
        BOUNDS,
    )


def test_where_no_arc_fits_the_drone_stops_and_turns() -> None:
    there = np.array([60.0, 0.0, 30.0])
    points, speeds = smooth(np.array([[0.0, 0.0, 30.0], there, [0.0, 0.1, 30.0]]), OPEN, 3.0, MISSION)
    at = int(np.argmin(np.linalg.norm(points - there, axis=1)))
    assert speeds[at] == 0.0 and np.linalg.norm(points[at] - there) < 1e-6
    assert plancheck.motion(points, speeds)[0] <= MISSION.acceleration_mps2 * 1.01


def test_a_bend_in_a_narrow_corridor_is_flown_slowly_but_without_a_stop() -> None:
    plan = _corridor()
    ways = np.array([[-20.0, 0.0, 30.0], [50.0, 0.0, 30.0], [50.0, 40.0, 30.0]])
    points, speeds = smooth(ways, plan, 3.0, MISSION)
    assert 1.0 < speeds[5:-5].min() < 3.0
    assert plancheck.least_clearance(plan.obstacles, points) >= 3.0 - 1e-6


def test_a_corner_that_hugs_a_building_is_flown_without_stopping() -> None:
    """The way round a corner at exactly the clearance is moved outwards and taken at speed."""
    building = np.array([box(0.0, 0.0, 20.0, 40.0, 40.0, 60.0)])
    plan = plan_map(building, BOUNDS)
    ways = np.array([[-60.0, 23.0, 30.0], [23.0, 23.0, 30.0], [23.0, -60.0, 30.0]])
    points, speeds = smooth(ways, plan, 3.0, MISSION)
    assert speeds[5:-5].min() > 2.5
    assert plancheck.least_clearance(building, points) >= 3.0 - 1e-6


def _fly(points: Floats, speeds: Floats, lag_s: float, wind: Floats) -> tuple[float, float, float]:
    """A drone whose velocity follows the wanted one with a lag, 20 Hz: worst distance off the path, time, end miss."""
    pos, vel, at = points[0].copy(), np.zeros(3), 0.0
    dt, worst, time_s = 0.05, 0.0, 0.0
    track = plancheck.dense(points, 0.2)
    limit = 2.0 * _duration(points, np.maximum(speeds, 0.2)) + 20.0
    while time_s < limit:
        vx, vy, z, at = follow(points, speeds, at, pos)
        want = np.array([vx, vy, np.clip(z - pos[2], -1.5, 3.0)]) + wind * math.sin(0.5 * time_s)
        vel = vel + np.clip((want - vel) / lag_s, -4.0, 4.0) * dt
        pos = pos + vel * dt
        time_s += dt
        worst = max(worst, float(np.linalg.norm(track - pos, axis=1).min()))
        if at > len(points) - 1.5 and np.linalg.norm(pos - points[-1]) < 0.5:
            break
    return worst, time_s, float(np.linalg.norm(pos - points[-1]))


TOUR = np.array(
    [
        [0.0, 0.0, 30.0],
        [60.0, 0.0, 30.0],
        [60.0, 50.0, 36.0],
        [80.0, 55.0, 45.0],
        [20.0, 70.0, 30.0],
        [20.0, 70.0, 50.0],
        [-40.0, 20.0, 40.0],
    ]
)


@pytest.mark.parametrize("lag_s", [0.3, 0.5, 0.7])
def test_a_lagging_drone_stays_within_a_metre_and_a_half_and_in_time(lag_s: float) -> None:
    points, speeds = smooth(TOUR, OPEN, 3.0, MISSION)
    worst, time_s, miss = _fly(points, speeds, lag_s, np.array([0.3, 0.3, 0.0]))
    assert worst < 1.5
    assert miss < 0.5
    assert time_s < 1.25 * _duration(points, speeds)


def test_stops_are_passed_one_after_the_other() -> None:
    """A staircase without arcs: the follower reaches every stop, and does not cut from one tread to the next."""
    stairs = np.array([[0.0, 0.0, 30.0], [0.0, 0.0, 34.0], [4.0, 0.0, 34.0], [4.0, 0.0, 38.0], [8.0, 0.0, 38.0]])
    points = plancheck.dense(stairs, 1.0)
    speeds = np.full(len(points), 1.0)
    speeds[[0, 4, 8, 12, 16]] = 0.0
    worst, _, miss = _fly(points, speeds, 0.5, np.zeros(3))
    assert miss < 0.5 and worst < 0.8


def test_progress_never_goes_back_and_the_end_is_held() -> None:
    points, speeds = smooth(TOUR[:3], OPEN, 3.0, MISSION)
    _, _, _, at = follow(points, speeds, 30.0, points[20])
    assert at >= 30.0
    vx, vy, z, at = follow(points, speeds, float(len(points) - 1), points[-1] + np.array([1.0, 0.0, 0.0]))
    assert vx == pytest.approx(-0.95) and vy == pytest.approx(0.0) and z == points[-1, 2]


def test_a_single_point_is_held() -> None:
    points, speeds = smooth(np.array([[1.0, 2.0, 30.0], [1.0, 2.0, 30.0]]), OPEN, 3.0, MISSION)
    assert len(points) == 1 and speeds[0] == 0.0
    vx, vy, z, _ = follow(points, speeds, 0.0, np.array([3.0, 2.0, 28.0]))
    assert vx < 0.0 and vy == 0.0 and z == 30.0


def test_only_what_lies_ahead_can_block() -> None:
    points, _ = smooth(np.array([[0.0, 0.0, 30.0], [100.0, 0.0, 30.0]]), OPEN, 3.0, MISSION)
    risen = plan_map(np.array([box(50.0, 4.0, 30.0, 4.0, 4.0, 60.0)]), BOUNDS)
    assert not blocked(points, 0.0, OPEN, 3.0)
    assert blocked(points, 0.0, risen, 3.0) and blocked(points, 45.0, risen, 3.0)
    assert not blocked(points, 60.0, risen, 3.0)
    assert not blocked(points, 0.0, risen, 1.9)
