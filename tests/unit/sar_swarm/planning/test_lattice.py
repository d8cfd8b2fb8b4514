"""The flood finds every way wider than its spacing, keeps its distance, and says when there is none."""

from __future__ import annotations

import numpy as np
import pytest

from sar_core.geometry import box, no_obstacles
from sar_swarm.planning.lattice import flood
from sar_swarm.planning.planmap import plan_map
from tests.unit.sar_swarm.plancheck import BOUNDS, Floats, least_clearance, wall

START, GOAL = np.array([2.0, 2.0, 2.0]), np.array([58.0, 58.0, 22.0])
GAP_M = 1.0
POINTS = 20_000


def way(rows: Floats, goal: Floats = GOAL, points: int = POINTS) -> tuple[bool, Floats, int]:
    return flood(plan_map(rows, BOUNDS, 5.0), START, goal, GAP_M, points)


def test_in_free_air_it_begins_at_the_start_and_ends_at_the_goal_inside_the_bounds() -> None:
    found, points, _ = way(no_obstacles())
    assert found
    assert np.array_equal(points[0], START) and np.array_equal(points[-1], GOAL)
    assert (points >= BOUNDS[:3]).all() and (points <= BOUNDS[3:]).all()


def test_a_goal_next_to_the_start_needs_one_lattice_point() -> None:
    found, points, checks = way(no_obstacles(), START + np.array([1.0, 0.0, 0.0]))
    assert found and len(points) == 3 and checks == 128


@pytest.mark.parametrize("at", [8.0, 30.0, 52.0])
def test_a_window_is_found_and_passed_clear(at: float) -> None:
    rows = np.array(wall(30.0, at, 8.0, 6.0))
    found, points, _ = way(rows)
    assert found
    assert least_clearance(rows, points) >= GAP_M - 1e-6


def test_a_wall_across_everything_leaves_none() -> None:
    found, points, checks = way(np.array([box(30.0, 30.0, 12.0, 2.0, 80.0, 40.0)]))
    assert not found and points.shape == (0, 3)
    assert checks < 6 * POINTS


def test_a_closed_room_is_given_up_after_flooding_the_room_alone() -> None:
    """The smaller flood goes on first, so a walled-in goal costs its own room."""
    sides = [
        box(50.0 + dx, 50.0 + dy, 12.0, 1.0 + 12 * (dx == 0), 1.0 + 12 * (dy == 0), 40.0)
        for dx, dy in ((6.0, 0.0), (-6.0, 0.0), (0.0, 6.0), (0.0, -6.0))
    ]
    found, _, checks = way(np.array(sides), np.array([50.0, 50.0, 12.0]))
    assert not found and checks < POINTS
