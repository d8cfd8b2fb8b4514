"""The sorted map gives the answers of a plain check against every obstacle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.errors import InputError
from sar_core.geometry import box, cylinder, nearest, no_obstacles, segment_distance
from sar_core.streams import stream
from sar_swarm.planning.planmap import clearance_at, edge_free, plan_map, repulsion
from tests.unit.sar_swarm import plancheck
from tests.unit.sar_swarm.plancheck import BOUNDS

inside = st.tuples(st.floats(0.0, 60.0), st.floats(0.0, 60.0), st.floats(0.0, 24.0))


@given(st.integers(0, 30), inside, inside, st.floats(0.1, 5.0))
def test_edges_and_points_as_by_brute_force(world: int, a: tuple, b: tuple, clearance: float) -> None:
    rows = plancheck.clutter(stream("map test", world))
    plan = plan_map(rows, BOUNDS, 5.0)
    least = min(segment_distance(row, np.array(a), np.array(b))[0] for row in rows)
    if abs(least - clearance) > 1e-4:
        assert edge_free(plan, *a, *b, clearance) == (least > clearance)
    assert clearance_at(plan, *a) == pytest.approx(min(max(nearest(rows, *a)[0], 0.0), 5.0), abs=1e-9)


def test_an_edge_along_the_clearance_is_free_and_one_hair_nearer_is_not() -> None:
    plan = plan_map(np.array([box(30.0, 30.0, 12.0, 10.0, 10.0, 10.0)]), BOUNDS, 5.0)
    assert edge_free(plan, 0.0, 38.0, 12.0, 60.0, 38.0, 12.0, 3.0)
    assert not edge_free(plan, 0.0, 38.0 - 1e-6, 12.0, 60.0, 38.0 - 1e-6, 12.0, 3.0)


def test_outside_the_bounds_nothing_is_free() -> None:
    plan = plan_map(no_obstacles(), BOUNDS)
    assert edge_free(plan, 1.0, 1.0, 1.0, 59.0, 59.0, 23.0, 3.0)
    assert not edge_free(plan, 1.0, 1.0, 1.0, 59.0, 59.0, 24.1, 3.0)
    assert not edge_free(plan, 1.0, math.nan, 1.0, 59.0, 59.0, 23.0, 3.0)
    assert math.isnan(clearance_at(plan, -0.1, 1.0, 1.0))


def test_the_field_pushes_straight_away_by_its_law() -> None:
    """(d0 - d) / d^2 at d = 2 of d0 = 5 is 0.75."""
    plan = plan_map(np.array([cylinder(30.0, 30.0, 12.0, 2.0, 10.0)]), BOUNDS, 5.0)
    assert repulsion(plan, 34.0, 30.0, 12.0, 5.0) == pytest.approx((0.75, 0.0, 0.0))
    assert repulsion(plan, 30.0, 30.0, 19.0, 5.0) == pytest.approx((0.0, 0.0, 0.75))
    assert repulsion(plan, 40.0, 30.0, 12.0, 5.0) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("obstacles", "bounds", "reach"),
    [
        (no_obstacles(), BOUNDS[::-1], 5.0),
        (no_obstacles(), BOUNDS * math.nan, 5.0),
        (no_obstacles(), BOUNDS, 0.0),
        (np.full((1, 8), math.nan), BOUNDS, 5.0),
    ],
)
def test_a_map_that_makes_no_sense_is_refused(obstacles: np.ndarray, bounds: np.ndarray, reach: float) -> None:
    with pytest.raises(InputError):
        plan_map(obstacles, bounds, reach)
