"""Distances of tracks to what is around them, held to brute force."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from sar_core.geometry import BOX
from sar_core.tracks import beside, near_obstacles, to_fence

ROUTE = np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 10.0]])
SQUARE = np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 10.0], [0.0, 10.0]])


def test_beside_a_route_is_the_distance_to_its_nearest_leg_and_that_legs_direction() -> None:
    found = beside(ROUTE, np.array([[5.0, 3.0], [12.0, 5.0], [-3.0, -4.0]]))
    assert found.tolist() == [[3.0, 1.0, 0.0], [2.0, 0.0, 1.0], [5.0, 1.0, 0.0]]


def test_a_route_of_one_point_has_a_distance_and_no_direction() -> None:
    (row,) = beside(np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([[4.0, 5.0]]))
    assert row[0] == 5.0 and math.isnan(row[1]) and math.isnan(row[2])


def test_beside_equals_a_look_at_many_points_of_the_route() -> None:
    rng = np.random.default_rng(3)
    route, places = rng.uniform(-50, 50, (6, 2)), rng.uniform(-60, 60, (40, 2))
    s = np.linspace(0.0, 1.0, 2001)[:, None]
    points = np.concatenate([a + s * (b - a) for a, b in pairwise(route)])
    nearest = np.linalg.norm(places[:, None] - points[None], axis=2).min(axis=1)
    assert beside(route, places)[:, 0] == pytest.approx(nearest, abs=0.05)


def test_the_fence_is_as_far_as_its_nearest_edge_and_negative_outside() -> None:
    inside, outside = to_fence(SQUARE, np.array([[2.0, 5.0], [-3.0, 5.0]]))
    assert inside[0] == pytest.approx(2.0) and inside[1:] == pytest.approx([-1.0, 0.0])
    assert outside[0] == pytest.approx(-3.0)


def test_near_obstacles_misses_none_although_it_skips() -> None:
    box = np.array([[BOX, 50.0, 0.0, 10.0, 5.0, 5.0, 10.0, 0.0]])
    x = np.linspace(0.0, 100.0, 401)
    track = np.stack([x, np.zeros_like(x), np.full_like(x, 5.0)], axis=1)
    assert near_obstacles(box, track, 2.0).tolist() == [bool(abs(v - 50.0) - 5.0 < 2.0) for v in x]
    assert not near_obstacles(np.zeros((0, 8)), track, 2.0).any()
