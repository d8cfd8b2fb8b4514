"""Coverage truth against hand-made tracks and against a slow, plain bookkeeper."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_sim.judging.coverage import Coverage, CoverageConfig

Floats = NDArray[np.float64]

FIELD = CoverageConfig(area_m=(0.0, 0.0, 400.0, 400.0))
SPEED = 8.0


def fly(corners: list[tuple[float, float]], begin_s: float = 0.0, period_s: float = 0.05) -> tuple[Floats, Floats]:
    """times[K] and track[K, 2] along straight lines at 8 m/s."""
    points = np.array(corners)
    reached = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))) / SPEED
    times = np.union1d(np.arange(0.0, reached[-1], period_s), reached)
    return begin_s + times, np.column_stack([np.interp(times, reached, points[:, i]) for i in range(2)])


def cover(config: CoverageConfig, *tracks: tuple[Floats, Floats], ticks: int = 1, altitude_m: float = 30.0) -> Coverage:
    """Fly several tracks on one clock; a drone waits at its track's ends."""
    times = np.unique(np.concatenate([t for t, _ in tracks]))
    positions = np.full((len(times), len(tracks), 3), altitude_m)
    for n, (t, xy) in enumerate(tracks):
        for axis in range(2):
            positions[:, n, axis] = np.interp(times, t, xy[:, axis])
    coverage = Coverage(config, len(tracks))
    for lo, hi in pairwise(np.unique(np.linspace(0, len(times) - 1, ticks + 1).astype(int))):
        coverage.observe(times[lo : hi + 1], positions[lo : hi + 1])
    return coverage


def lawnmower(spacing_m: float, lanes: int) -> list[tuple[float, float]]:
    corners = []
    for k in range(lanes):
        y = 14.0 + k * spacing_m
        corners += [(14.0, y), (386.0, y)] if k % 2 == 0 else [(386.0, y), (14.0, y)]
    return corners


class TestScanning:
    def test_a_straight_line_scans_its_swath_at_the_hand_computed_times(self) -> None:
        coverage = cover(FIELD, fly([(0.0, 200.0), (400.0, 200.0)]), ticks=300)
        x, y = np.meshgrid(np.arange(2.5, 400, 5), np.arange(2.5, 400, 5))
        with np.errstate(invalid="ignore"):
            expected = np.maximum(0.0, x - np.sqrt(14.0**2 - (y - 200.0) ** 2)) / SPEED
        expected[np.abs(y - 200.0) > 14.0] = np.inf
        np.testing.assert_allclose(coverage.first_scan_s, expected, atol=1e-9)
        assert coverage.scanned_cells == 80 * 6
        assert coverage.fraction == 6 / 80

    @pytest.mark.parametrize(("offset", "scanned"), [(13.99, 1), (14.01, 0)])
    @settings(max_examples=50)
    @given(heading=st.floats(0.0, 2 * math.pi), leg_m=st.floats(0.03, 90.0), phase=st.floats(0.0, 1.0))
    def test_range_is_exact_between_samples(
        self, offset: float, scanned: int, heading: float, leg_m: float, phase: float
    ) -> None:
        one_cell = CoverageConfig(area_m=(-2.5, -2.5, 2.5, 2.5))
        along = np.array([math.cos(heading), math.sin(heading)])
        way = np.arange(-50.0 - phase * leg_m, 50.0 + leg_m, leg_m)
        track = way[:, None] * along + offset * np.array([-along[1], along[0]])
        coverage = cover(one_cell, ((way - way[0]) / SPEED, track))
        assert coverage.scanned_cells == scanned
        if scanned:
            entry = (-math.sqrt(14.0**2 - offset**2) - way[0]) / SPEED
            assert coverage.first_scan_s[0, 0] == pytest.approx(entry, abs=1e-6)

    def test_height_does_not_matter(self) -> None:
        track = fly([(20.0, 20.0), (60.0, 20.0)])
        assert cover(FIELD, track, altitude_m=90.0).scanned_cells == cover(FIELD, track).scanned_cells > 0

    def test_the_grid_starts_in_the_south_west_and_rows_go_north(self) -> None:
        config = CoverageConfig(area_m=(100.0, -50.0, 160.0, -10.0))
        assert config.shape == (8, 12)
        coverage = cover(config, fly([(100.0, -50.0), (101.0, -50.0)]))
        assert np.isfinite(coverage.first_scan_s[0, 0])
        assert np.isinf(coverage.first_scan_s[-1, 0]) and np.isinf(coverage.first_scan_s[0, -1])

    def test_cells_belong_to_the_area_if_their_centres_do(self) -> None:
        assert CoverageConfig(area_m=(0.0, 0.0, 402.4, 402.6)).shape == (81, 80)

    def test_the_clock_starts_at_zero_even_within_a_leg(self) -> None:
        times, track = np.array([-10.0, 10.0]), np.array([[0.0, 200.0], [160.0, 200.0]])
        coverage = cover(FIELD, (times, track))
        late = cover(FIELD, (np.array([0.0, 10.0]), np.array([[80.0, 200.0], [160.0, 200.0]])))
        np.testing.assert_allclose(coverage.first_scan_s, late.first_scan_s, atol=1e-9)
        assert coverage.path_m == pytest.approx(80.0)
        before = cover(FIELD, (np.array([-10.0, 0.0]), np.array([[0.0, 200.0], [80.0, 200.0]])))
        assert (before.scanned_cells, before.path_m, before.overlap_ratio) == (0, 0.0, None)

    def test_coverage_over_time(self) -> None:
        coverage = cover(FIELD, fly(lawnmower(25.0, 16)), ticks=500)
        first = coverage.first_scan_s
        assert coverage.coverage_at(-1.0) == 0.0
        assert coverage.coverage_at(1e9) == coverage.fraction > 0.99
        half = coverage.coverage_at(400.0)
        assert half == np.mean(first <= 400.0) and 0.4 < half < 0.6
        reached = coverage.time_to(0.95)
        assert reached is not None
        assert coverage.coverage_at(reached) >= 0.95 > coverage.coverage_at(math.nextafter(reached, 0.0))
        assert cover(FIELD, fly(lawnmower(25.0, 15))).time_to(0.95) is None


class TestOverlap:
    OUT = ((14.0, 200.0), (386.0, 200.0))

    def test_a_straight_line_wastes_nothing(self) -> None:
        for heading in np.linspace(0.0, math.pi, 7):
            end = (200.0 + 180.0 * math.cos(heading), 200.0 + 180.0 * math.sin(heading))
            begin = (400.0 - end[0], 400.0 - end[1])
            coverage = cover(FIELD, fly([begin, end]), ticks=200)
            assert coverage.overlap_ratio == 0.0
            assert coverage.path_m == pytest.approx(360.0)

    def test_the_way_back_is_wasted_but_for_the_turn(self) -> None:
        coverage = cover(FIELD, fly([*self.OUT, self.OUT[0]]), ticks=300)
        assert coverage.overlap_ratio is not None
        wasted_back = coverage.overlap_ratio * coverage.path_m / 372.0
        assert 1.0 - 12.0 / 372.0 < wasted_back < 1.0

    def test_a_second_drone_on_the_same_line_wastes_all_of_its_path(self) -> None:
        coverage = cover(FIELD, fly(list(self.OUT)), fly([(-60.0, 200.0), self.OUT[1]], begin_s=60.0), ticks=300)
        assert coverage.overlap_ratio == pytest.approx(386.0 / (372.0 + 446.0), abs=1e-3)

    def test_a_drone_close_behind_another_wastes_its_path_too(self) -> None:
        coverage = cover(FIELD, fly(list(self.OUT), begin_s=1.0), fly(list(self.OUT)), ticks=300)
        assert coverage.overlap_ratio == pytest.approx(0.5, abs=0.03)

    @pytest.mark.parametrize(
        ("spacing_m", "lowest", "highest"), [(25.2, 0.0, 0.01), (22.4, 0.0, 0.01), (11.0, 0.8, 1.0)]
    )
    def test_a_lawnmower_wastes_path_only_where_most_of_its_swath_overlaps(
        self, spacing_m: float, lowest: float, highest: float
    ) -> None:
        coverage = cover(FIELD, fly(lawnmower(spacing_m, 10)), ticks=500)
        assert coverage.overlap_ratio is not None
        assert lowest <= coverage.overlap_ratio <= highest

    def test_circling_on_the_spot_is_wasted_after_one_swath_width(self) -> None:
        turns = np.linspace(0.0, 2 * math.pi * 20, 4000)
        track = np.column_stack([200.0 + 5.0 * np.cos(turns), 200.0 + 5.0 * np.sin(turns)])
        coverage = cover(FIELD, (turns, track))
        length = 20 * 2 * math.pi * 5.0
        assert coverage.overlap_ratio == pytest.approx(1.0 - 28.0 / length, abs=0.01)

    def test_trembling_at_the_edge_of_range_is_not_many_passes(self) -> None:
        start = np.array([27.5 - 14.0, 202.5])
        wait = np.arange(0.0, 20.0, 0.05)
        tremble = start + 0.05 * np.sin(np.outer(wait, [3.0, 4.0]))
        times, track = fly([(13.5, 202.5), (386.0, 202.5)], begin_s=20.0)
        coverage = cover(FIELD, (np.append(wait, times), np.concatenate([tremble, track])), ticks=200)
        assert coverage.overlap_ratio == 0.0

    def test_path_outside_the_area_is_path_but_wastes_nothing(self) -> None:
        outside = [(-300.0, -100.0), (-10.0, -100.0), (-300.0, -100.0)]
        coverage = cover(FIELD, fly(outside))
        assert (coverage.overlap_ratio, coverage.scanned_cells) == (0.0, 0)
        assert coverage.path_m == pytest.approx(580.0)


def plain_coverage(config: CoverageConfig, times: Floats, positions: Floats) -> tuple[Floats, float]:
    """First scans and overlap ratio by looking at every cell every 2 ms."""
    west, south, _, _ = config.area_m
    ny, nx = config.shape
    x, y = np.meshgrid(west + 5.0 * np.arange(nx) + 2.5, south + 5.0 * np.arange(ny) + 2.5)
    dense = np.arange(times[0], times[-1], 2e-3)
    number = positions.shape[1]
    tracks = [[np.interp(dense, times, positions[:, n, axis]) for axis in range(2)] for n in range(number)]
    first = np.full((ny, nx), np.inf)
    passing = [np.zeros((ny, nx), dtype=bool) for _ in range(number)]
    known = [np.zeros((ny, nx), dtype=bool) for _ in range(number)]
    flown_at = [np.zeros((ny, nx)) for _ in range(number)]
    flown = [0.0] * number
    wasted = 0.0
    for k, t in enumerate(dense):
        for n, (east, north) in enumerate(tracks):
            step = math.hypot(east[k] - east[k - 1], north[k] - north[k - 1]) if k else 0.0
            flown[n] += step
            distance = np.hypot(x - east[k], y - north[k])
            fresh = (distance <= 14.0) & ~passing[n]
            known[n][fresh] = np.isfinite(first[fresh])
            flown_at[n][fresh] = flown[n]
            passing[n] = (passing[n] | fresh) & (distance <= 19.0)
            first[(distance <= 14.0) & np.isinf(first)] = t
            i, j = math.floor((east[k] - west) / 5.0), math.floor((north[k] - south) / 5.0)
            if 0 <= i < nx and 0 <= j < ny and (known[n][j, i] or flown[n] - flown_at[n][j, i] > 28.0):
                wasted += step
    return first, wasted / sum(flown)


@pytest.mark.parametrize("seed", range(3))
def test_random_flights_agree_with_the_plain_bookkeeper(seed: int) -> None:
    rng = np.random.default_rng(seed)
    config = CoverageConfig(area_m=(-60.0, -40.0, 60.0, 50.0))
    times = np.arange(0.0, 25.0, 0.05 if seed else 0.4)
    positions = np.zeros((len(times), 2, 3))
    for n in range(2):
        for axis in range(2):
            rates, phases = rng.uniform(0.05, 0.5, 4), rng.uniform(0, 6, 4)
            positions[:, n, axis] = 75.0 * np.sin(np.outer(times, rates) + phases).mean(axis=1)
    coverage = Coverage(config, 2)
    for lo in range(0, len(times) - 1, 7):
        coverage.observe(times[lo : lo + 8], positions[lo : lo + 8])
    first, ratio = plain_coverage(config, times, positions)
    ours = coverage.first_scan_s
    grazed = np.isinf(first) & np.isfinite(ours)
    assert grazed.sum() <= 1
    assert not (np.isinf(ours) & np.isfinite(first)).any()
    both = np.isfinite(first)
    assert both.sum() > 50
    late = first[both] - ours[both]
    assert late.min() > -1e-9 and np.quantile(late, 0.95) <= 2.1e-3
    assert 0.05 < ratio < 0.95
    assert coverage.overlap_ratio == pytest.approx(ratio, abs=0.01)


@given(ticks=st.integers(2, 400))
def test_how_a_search_is_cut_into_ticks_changes_nothing(ticks: int) -> None:
    tracks = fly(lawnmower(18.0, 4), period_s=0.3), fly([(386.0, 60.0), (14.0, 20.0)], begin_s=31.0, period_s=0.3)
    whole, cut = cover(FIELD, *tracks), cover(FIELD, *tracks, ticks=ticks)
    np.testing.assert_array_equal(cut.first_scan_s, whole.first_scan_s)
    assert cut.overlap_ratio == whole.overlap_ratio
