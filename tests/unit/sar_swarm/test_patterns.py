"""Search patterns against brute force: what the lanes reach, and where they may go."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_core.errors import InputError
from sar_swarm.patterns import PATTERNS, lane_count, partitioned_lawnmower, waypoints

Floats = NDArray[np.float64]
Area = tuple[float, float, float, float]

FIELD: Area = (-200.0, -200.0, 200.0, 200.0)

areas = st.builds(
    lambda x, y, w, h: (x, y, x + w, y + h),
    st.floats(-500, 500),
    st.floats(-500, 500),
    st.floats(20, 1000),
    st.floats(20, 1000),
)
swaths = st.floats(5, 60)
overlaps = st.floats(0, 0.8)


def distance_to_path(points: Floats, path: Floats) -> Floats:
    """Distance from each point [P, 2] to the polyline [K, 2]."""
    best = np.full(len(points), np.inf)
    for a, b in pairwise(path):
        leg = b - a
        share = np.clip((points - a) @ leg / max(leg @ leg, 1e-12), 0.0, 1.0)
        best = np.minimum(best, np.linalg.norm(points - (a + share[:, None] * leg), axis=1))
    return best


def covered(area: Area, drones: int, swath: float, overlap: float, cell: float = 5.0) -> tuple[Floats, Floats]:
    """Cell centres of the area and each one's distance to the nearest drone's path."""
    x_min, y_min, x_max, y_max = area
    x = np.arange(x_min + cell / 2, x_max, cell)
    y = np.arange(y_min + cell / 2, y_max, cell)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    paths = [partitioned_lawnmower(area, drones, i, swath, overlap) for i in range(drones)]
    return points, np.min([distance_to_path(points, path) for path in paths], axis=0)


@pytest.mark.parametrize("drones", [1, 2, 3, 4, 5, 8, 16, 64])
def test_the_reference_area_is_covered(drones: int) -> None:
    """Every cell of the referee's 5 m grid comes under a swath; of the plane itself, all but small corners."""
    _, distance = covered(FIELD, drones, 28.0, 0.1)
    assert distance.max() <= 14.0
    _, distance = covered(FIELD, drones, 28.0, 0.1, cell=2.0)
    assert np.mean(distance <= 14.0) > 0.995


@given(areas, st.integers(1, 64), swaths, overlaps)
def test_between_lane_ends_every_point_lies_under_a_swath(
    area: Area, drones: int, swath: float, overlap: float
) -> None:
    """Brute force across the area: neighbouring lanes, also those of different drones, never part too far."""
    x_min, _, x_max, _ = area
    lanes = np.concatenate([partitioned_lawnmower(area, drones, i, swath, overlap)[:, 0] for i in range(drones)])
    across = np.linspace(x_min, x_max, 500)
    gap = np.abs(across[:, None] - lanes[None, :]).min(axis=1)
    assert gap.max() <= swath * (1.0 - overlap) / 2.0 + 1e-6


@given(areas, st.integers(1, 64), swaths, overlaps)
def test_lanes_stay_inside_the_own_strip(area: Area, drones: int, swath: float, overlap: float) -> None:
    x_min, y_min, x_max, y_max = area
    width = (x_max - x_min) / drones
    for i in {0, drones // 2, drones - 1}:
        path = partitioned_lawnmower(area, drones, i, swath, overlap)
        assert np.all((path[:, 0] > x_min + i * width) & (path[:, 0] < x_min + (i + 1) * width))
        assert np.all((path[:, 1] > y_min) & (path[:, 1] < y_max))


@given(areas, st.integers(1, 64), swaths, overlaps)
def test_legs_alternate_and_only_ever_run_along_an_axis(area: Area, drones: int, swath: float, overlap: float) -> None:
    path = partitioned_lawnmower(area, drones, 0, swath, overlap)
    assert len(path) == 2 * lane_count((area[2] - area[0]) / drones, swath, overlap)
    legs = np.diff(path, axis=0)
    assert np.all(legs[0::2, 0] == 0.0)
    assert np.all(legs[1::2, 1] == 0.0)
    assert np.all(np.sign(legs[0::2, 1]) == np.where(np.arange(len(legs[0::2])) % 2 == 0, 1.0, -1.0))


@given(st.floats(1, 1000), swaths, overlaps)
def test_lane_count_is_the_least_that_suffices(width: float, swath: float, overlap: float) -> None:
    lanes = lane_count(width, swath, overlap)
    reach = swath * (1.0 - overlap)
    assert lanes * reach >= width - 1e-6
    assert lanes == 1 or (lanes - 1) * reach < width
    assert isinstance(lanes, int)


def test_exact_fit_needs_no_extra_lane() -> None:
    assert lane_count(100.0, 25.0, 0.0) == 4
    assert lane_count(4 * 28.0 * 0.9, 28.0, 0.1) == 4


def test_drones_share_the_work_equally() -> None:
    lengths = []
    for i in range(4):
        path = partitioned_lawnmower(FIELD, 4, i, 28.0, 0.1)
        lengths.append(float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum()))
    assert max(lengths) == pytest.approx(min(lengths))
    assert math.isclose(lengths[0], 4 * (400.0 - 2 * 11.2) + 3 * 25.0)


def test_unknown_pattern_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"pattern 'spiral' is not known; allowed: partitioned_lawnmower"):
        waypoints("spiral", FIELD, 4, 0, 28.0, 0.1)
    for name in PATTERNS:
        assert waypoints(name, FIELD, 4, 0, 28.0, 0.1).shape[1] == 2
