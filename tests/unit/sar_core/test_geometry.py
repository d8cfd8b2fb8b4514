"""Distances to obstacles against brute force: dense surface points, dense samples along segments."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from sar_core.geometry import (
    ROW,
    box,
    cylinder,
    distance_to,
    gradient,
    nearest,
    no_obstacles,
    segment_distance,
)

Floats = NDArray[np.float64]

COORDINATE = st.floats(-12.0, 12.0)
POINT = st.tuples(COORDINATE, COORDINATE, COORDINATE).map(np.array)
SIZE = st.floats(0.2, 8.0)
BOXES = st.builds(box, COORDINATE, COORDINATE, COORDINATE, SIZE, SIZE, SIZE, st.floats(-7.0, 7.0))
CYLINDERS = st.builds(cylinder, COORDINATE, COORDINATE, COORDINATE, SIZE, SIZE)


def surface_of(row: Floats, step: float) -> Floats:
    """Points on the surface, no farther than `step` from any surface point; built without the code under test."""
    if row[0] == 0.0:
        half = row[4:7]
        grids = [np.linspace(-h, h, max(2, math.ceil(2 * h / step) + 1)) for h in half]
        faces = []
        for axis, sign in itertools.product(range(3), (-1.0, 1.0)):
            axes = [np.array([sign * half[i]]) if i == axis else grids[i] for i in range(3)]
            faces.append(np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3))
        local = np.concatenate(faces)
        c, s = math.cos(row[7]), math.sin(row[7])
        world = np.stack([c * local[:, 0] - s * local[:, 1], s * local[:, 0] + c * local[:, 1], local[:, 2]], -1)
    else:
        radius, half_height = row[4], row[6]
        turns = np.linspace(0.0, 2 * np.pi, math.ceil(2 * np.pi * radius / step) + 8)
        rim = np.stack([np.cos(turns), np.sin(turns)], -1)
        heights = np.linspace(-half_height, half_height, max(2, math.ceil(2 * half_height / step) + 1))
        radii = np.linspace(0.0, radius, max(2, math.ceil(radius / step) + 1))
        side = [np.column_stack([radius * rim, np.full(len(rim), z)]) for z in heights]
        caps = [np.column_stack([r * rim, np.full(len(rim), z)]) for r in radii for z in (-half_height, half_height)]
        world = np.concatenate(side + caps)
    return world + row[1:4]


def is_inside(row: Floats, p: Floats) -> bool:
    x, y, z = p - row[1:4]
    if abs(z) > row[6]:
        return False
    if row[0] != 0.0:
        return bool(math.hypot(x, y) <= row[4])
    along, across = x * math.cos(row[7]) + y * math.sin(row[7]), y * math.cos(row[7]) - x * math.sin(row[7])
    return bool(abs(along) <= row[4] and abs(across) <= row[5])


@pytest.mark.parametrize(
    "row",
    [
        box(1.0, -2.0, 3.0, 4.0, 2.0, 6.0, 0.7),
        box(0.0, 0.0, 0.5, 9.0, 0.3, 1.0, -2.2),
        cylinder(-1.0, 2.0, 4.0, 0.4, 8.0),
        cylinder(0.0, 0.0, 0.5, 3.0, 1.0),
    ],
)
def test_signed_distance_against_surface_points(row: Floats) -> None:
    step = 0.04
    tree = cKDTree(surface_of(row, step))
    points = np.random.default_rng(1).uniform(-6.0, 8.0, (1500, 3))
    points[:500] = row[1:4] + np.random.default_rng(2).uniform(-1.0, 1.0, (500, 3)) * np.maximum(row[4:7], row[4]) / 2
    brute = tree.query(points)[0]
    signs = np.array([-1.0 if is_inside(row, p) else 1.0 for p in points])
    ours = np.array([distance_to(row, *p) for p in points])
    assert (signs < 0).any() and (signs > 0).any()
    np.testing.assert_array_equal(np.sign(ours), signs)
    np.testing.assert_array_less(np.abs(ours), brute + 1e-9)
    np.testing.assert_array_less(brute - step, np.abs(ours))


def test_hand_computed_distances() -> None:
    cube = box(0.0, 0.0, 1.0, 2.0, 2.0, 2.0)
    assert distance_to(cube, 3.0, 0.0, 1.0) == 2.0
    assert distance_to(cube, 4.0, 5.0, 1.0) == 5.0
    assert distance_to(cube, 0.0, 0.0, 1.75) == -0.25
    pole = cylinder(0.0, 0.0, 5.0, 0.5, 10.0)
    assert distance_to(pole, 3.0, 4.0, 5.0) == 4.5
    assert distance_to(pole, 0.0, 3.5, 14.0) == 5.0
    turned = box(0.0, 0.0, 0.0, 2.0, 2.0, 2.0, math.pi / 4)
    assert distance_to(turned, 2.0, 0.0, 0.0) == pytest.approx(2.0 - math.sqrt(2.0))


@settings(deadline=None)
@given(BOXES | CYLINDERS, POINT, POINT)
def test_segment_distance_against_dense_sampling(row: Floats, a: Floats, b: Floats) -> None:
    best, where = segment_distance(row, a, b)
    steps = np.linspace(0.0, 1.0, 2001)
    sampled = min(distance_to(row, *(a + s * (b - a))) for s in steps)
    length = float(np.linalg.norm(b - a))
    assert best <= sampled + 1e-9
    assert best >= sampled - length / 2000 / 2 - 1e-9
    assert 0.0 <= where <= 1.0
    assert distance_to(row, *(a + where * (b - a))) == pytest.approx(best, abs=1e-6 * length + 1e-12)


@given(BOXES | CYLINDERS, POINT, POINT)
def test_distance_never_changes_faster_than_one_moves(row: Floats, a: Floats, b: Floats) -> None:
    change = abs(distance_to(row, *a) - distance_to(row, *b))
    assert change <= float(np.linalg.norm(a - b)) + 1e-9


def test_a_segment_through_a_wall_is_inside_it_although_both_ends_are_far() -> None:
    wall = box(0.0, 0.0, 2.0, 0.2, 20.0, 4.0)
    best, where = segment_distance(wall, np.array([-30.0, 1.0, 2.0]), np.array([10.0, 1.0, 2.0]))
    assert best == pytest.approx(-0.1, abs=1e-4)
    assert where == pytest.approx(0.75, abs=1e-5)


def test_a_standing_point_is_a_segment_too() -> None:
    pole = cylinder(0.0, 0.0, 5.0, 0.5, 10.0)
    p = np.array([2.5, 0.0, 1.0])
    assert segment_distance(pole, p, p)[0] == 2.0


def test_nearest_is_the_least_of_all_and_says_which() -> None:
    rng = np.random.default_rng(3)
    rows = np.array([box(*rng.uniform((-50, -50, -50, 1, 1, 1, -3), (50, 50, 50, 6, 6, 6, 3))) for _ in range(30)])
    for p in rng.uniform(-60, 60, (50, 3)):
        every = [distance_to(row, *p) for row in rows]
        assert nearest(rows, *p) == (min(every), int(np.argmin(every)))
    assert no_obstacles().shape == (0, ROW)
    assert nearest(no_obstacles(), 0.0, 0.0, 0.0) == (math.inf, -1)


@pytest.mark.parametrize(
    ("row", "point", "direction"),
    [
        (box(0.0, 0.0, 0.0, 2.0, 2.0, 2.0), (3.0, 0.2, 0.1), (1.0, 0.0, 0.0)),
        (box(0.0, 0.0, 0.0, 2.0, 2.0, 2.0), (4.0, 5.0, 0.0), (0.6, 0.8, 0.0)),
        (box(0.0, 0.0, 0.0, 2.0, 2.0, 2.0), (0.1, 0.0, 0.8), (0.0, 0.0, 1.0)),
        (cylinder(0.0, 0.0, 0.0, 1.0, 4.0), (-3.0, -4.0, 0.5), (-0.6, -0.8, 0.0)),
    ],
)
def test_gradient_points_away(
    row: Floats, point: tuple[float, float, float], direction: tuple[float, float, float]
) -> None:
    np.testing.assert_allclose(gradient(row, *point), direction, atol=1e-6)
