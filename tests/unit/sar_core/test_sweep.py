"""Coverage of short tracks that can be counted by hand; the referee's and the record's recounts are elsewhere."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.sweep import RADIUS_M, Area, SweptCoverage, grid_shape, sweep

AREA: Area = (0.0, 0.0, 100.0, 50.0)


def flown(*corners: tuple[float, float], speed_mps: float = 5.0, drones: int = 1) -> SweptCoverage:
    """Drones, all on the same way, from corner to corner at one speed."""
    points = np.array(corners)
    times = np.concatenate([[0.0], np.linalg.norm(np.diff(points, axis=0), axis=1).cumsum() / speed_mps])
    return sweep(AREA, times, np.repeat(points[:, None, :], drones, axis=1))


@pytest.mark.parametrize(
    ("area", "shape"), [(AREA, (10, 20)), ((0.0, 0.0, 102.4, 47.4), (9, 20)), ((-3.0, -3.0, -0.4, 9.6), (3, 1))]
)
def test_a_cell_belongs_to_the_area_if_its_centre_does(area: Area, shape: tuple[int, int]) -> None:
    assert grid_shape(area) == shape


def test_a_straight_lane_scans_each_cell_when_its_centre_comes_within_range() -> None:
    """A cell beside the lane by dy is reached sqrt(r^2 - dy^2) before the drone is level with it."""
    swept = flown((0.0, 25.0), (100.0, 25.0))
    for row in range(10):
        aside = abs(5.0 * row + 2.5 - 25.0)
        for column in range(20):
            begin = 5.0 * column + 2.5 - math.sqrt(max(RADIUS_M**2 - aside**2, 0.0))
            expected = max(begin, 0.0) / 5.0 if aside <= RADIUS_M else math.inf
            assert swept.first_scan_s[row, column] == pytest.approx(expected, abs=1e-9)


def test_the_first_to_come_is_the_finder_and_the_second_finds_nothing() -> None:
    swept = flown((0.0, 25.0), (100.0, 25.0), drones=2)
    assert swept.cells_by_drone.tolist() == [swept.scanned_cells, 0]


def test_there_and_back_wastes_the_way_back() -> None:
    """All but the first metres back, which still belong to the pass there."""
    there = flown((0.0, 25.0), (100.0, 25.0))
    back = flown((0.0, 25.0), (100.0, 25.0), (0.0, 25.0))
    assert there.overlap_ratio == 0.0
    assert back.path_m.tolist() == pytest.approx([200.0])
    assert 75.0 < back.recovered_m[0] < 100.0
    assert back.scanned_cells == there.scanned_cells


def test_who_stands_still_has_no_overlap_rather_than_none_of_it() -> None:
    swept = flown((50.0, 25.0), (50.0, 25.0))
    assert swept.overlap_ratio is None and swept.scanned_cells > 0


def test_a_share_that_was_never_reached_has_no_time() -> None:
    swept = flown((0.0, 25.0), (100.0, 25.0))
    assert swept.time_to(swept.fraction) == swept.first_scan_s[np.isfinite(swept.first_scan_s)].max()
    assert swept.time_to(swept.fraction + 0.01) is None
    assert swept.time_to(0.0) == 0.0


@given(st.lists(st.tuples(st.floats(-20, 120), st.floats(-20, 70)), min_size=2, max_size=5))
def test_shares_grow_with_time_and_reach_what_was_scanned(corners: list[tuple[float, float]]) -> None:
    swept = flown(*corners)
    shares = [swept.at(time_s) for time_s in np.linspace(0.0, 200.0, 21)]
    assert shares == sorted(shares) and shares[-1] == swept.fraction
    assert (np.isfinite(swept.first_scan_s) == (swept.finder >= 0)).all()
    for share in (0.05, 0.2, 0.5):
        time_s = swept.time_to(share)
        assert (time_s is None) == (swept.fraction < share)
        assert time_s is None or swept.at(time_s) >= share
    if swept.overlap_ratio is not None:
        assert 0.0 <= swept.overlap_ratio <= 1.0
