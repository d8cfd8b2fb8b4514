"""Fixed routes against brute force: what they reach, where they may go, and that a lost one is shared out whole."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_swarm.planning.routes import boustrophedon, lane_count, partitioned_lawnmower, spiral, take_over

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


@given(areas, st.integers(1, 12), swaths)
def test_boustrophedon_rows_lie_one_swath_apart_across_the_whole_area(area: Area, drones: int, swath: float) -> None:
    """Each drone alone: rows exactly one swath apart, a last narrower one, and only the first strip left to another."""
    for i in range(drones):
        columns = boustrophedon(area, drones, i, swath)[0::2, 0]
        assert np.allclose(np.diff(columns)[:-1], swath)
        assert np.all(np.diff(columns) <= swath + 1e-6)
        assert np.all((columns > area[0]) & (columns < area[2]))
        assert columns[0] - area[0] <= swath
        assert area[2] - columns[-1] <= swath / 2 + 1e-6


@given(areas, st.integers(2, 12), swaths)
def test_boustrophedon_drones_share_the_rows_but_never_the_path(area: Area, drones: int, swath: float) -> None:
    """Sideways within one row spacing only: no partition, yet no two drones on one line."""
    firsts = [boustrophedon(area, drones, i, swath)[0, 0] for i in range(drones)]
    reach = min(swath, area[2] - area[0])
    assert max(firsts) - min(firsts) < reach
    assert np.diff(np.sort(firsts)).min() >= 1e-3 * reach / drones
    if area[2] - area[0] >= swath:
        assert np.allclose(np.diff(firsts), -swath / drones)


def test_one_boustrophedon_drone_covers_the_area_and_more_of_them_hardly_faster() -> None:
    """At exactly one swath apart small corners stay open between the ends of two rows, for one drone alone."""
    points = np.stack(np.meshgrid(np.arange(-197.5, 200, 5.0), np.arange(-197.5, 200, 5.0)), axis=-1).reshape(-1, 2)
    alone = boustrophedon(FIELD, 1, 0, 28.0)
    distance = distance_to_path(points, alone)
    assert np.mean(distance <= 14.0) > 0.99
    assert distance.max() < 16.0
    early = [boustrophedon(FIELD, 4, i, 28.0)[:8] for i in range(4)]
    four = np.mean(np.min([distance_to_path(points, path) for path in early], axis=0) <= 14.0)
    one = np.mean(distance_to_path(points, alone[:8]) <= 14.0)
    assert one <= four < 1.4 * one


@pytest.mark.parametrize("drones", [1, 2, 3, 4, 8])
def test_spiral_keeps_the_archimedean_law(drones: int) -> None:
    """On the steps of 0.6 rad r = swath / 2 pi theta, as long as the area's edge does not cut in."""
    arms = set()
    for i in range(drones):
        path = spiral(FIELD, drones, i, 28.0)
        radius = np.hypot(path[:, 0], path[:, 1])
        free = radius < 192.0
        theta = 2.0 * math.pi * radius[free] / 28.0
        turned = np.arctan2(path[free, 1], path[free, 0]) - theta
        arm = turned[1] if drones == 1 else turned[0]
        assert np.allclose(np.exp(1j * turned[radius[free] > 1e-9]), np.exp(1j * arm))
        arms.add(round(arm % (2.0 * math.pi) * drones / (2.0 * math.pi)) % drones)
        steps = theta / 0.6
        kept = np.unique(np.round(steps[np.abs(steps - np.round(steps)) < 1e-6]))
        assert np.array_equal(kept, np.arange(kept[0], kept[-1] + 1))
        assert np.hypot(*np.diff(path, axis=0).T).max() <= 28.0 * 1.05
    assert arms == set(range(drones))


@given(areas, st.integers(1, 12), swaths)
@settings(max_examples=40)
def test_spiral_starts_apart_and_stays_inside(area: Area, drones: int, swath: float) -> None:
    paths = [spiral(area, drones, i, swath) for i in range(drones)]
    for path in paths:
        assert np.all((path >= np.array(area[:2])) & (path <= np.array(area[2:])))
    side = min(area[2] - area[0], area[3] - area[1])
    if side / 2 - 0.25 * swath > 12.0 + 0.3 * swath and drones > 1 and 4.0 / math.sin(math.pi / drones) < 12.0:
        starts = np.array([path[0] for path in paths])
        gaps = np.linalg.norm(starts[:, None] - starts[None], axis=2) + 1e9 * np.eye(drones)
        assert gaps.min() >= 8.0 - 1e-6


@pytest.mark.parametrize("drones", [1, 3, 4])
def test_spiral_reaches_the_corners(drones: int) -> None:
    points = np.stack(np.meshgrid(np.arange(-197.5, 200, 5.0), np.arange(-197.5, 200, 5.0)), axis=-1).reshape(-1, 2)
    paths = [spiral(FIELD, drones, i, 28.0) for i in range(drones)]
    distance = np.min([distance_to_path(points, path) for path in paths], axis=0)
    assert np.mean(distance <= 14.0) > 0.99
    assert distance.max() < 16.0


routes_left = st.lists(
    st.lists(st.tuples(st.floats(-200, 200), st.floats(-200, 200)), min_size=0, max_size=8).map(
        lambda points: np.array(points, dtype=np.float64).reshape(-1, 2)
    ),
    max_size=3,
)


def sampled(path: Floats) -> Floats:
    """Points every metre or so along a polyline."""
    if len(path) < 2:
        return path
    parts = [a + np.linspace(0, 1, 2 + int(np.hypot(*(b - a))))[:, None] * (b - a) for a, b in pairwise(path)]
    return np.vstack(parts)


@given(routes_left, st.sets(st.integers(0, 11), min_size=1, max_size=6), st.booleans())
def test_shares_of_lost_drones_make_up_the_whole(routes: list[Floats], alive: set[int], from_home: bool) -> None:
    start = (0.0, -210.0) if from_home else None
    shares = [take_over(routes, sorted(alive), me, start) for me in sorted(alive)]
    together = np.vstack(shares)
    for route in routes:
        for point in route:
            assert np.hypot(*(together - point).T).min() < 1e-6
        if len(np.unique(route, axis=0)) > 1:
            flown = np.min([distance_to_path(sampled(route), share) for share in shares], axis=0)
            assert np.all(flown < 1e-6)


@given(st.sets(st.integers(0, 11), min_size=1, max_size=6))
def test_shares_are_equally_long_and_follow_on_each_other(alive: set[int]) -> None:
    route = partitioned_lawnmower(FIELD, 4, 2, 28.0, 0.1)[3:]
    shares = [take_over([route], sorted(alive), me) for me in sorted(alive)]
    lengths = [np.hypot(*np.diff(share, axis=0).T).sum() for share in shares]
    assert np.allclose(lengths, np.hypot(*np.diff(route, axis=0).T).sum() / len(alive))
    for a, b in pairwise(shares):
        assert np.allclose(a[-1], b[0])


def test_a_share_is_flown_from_its_nearer_end_and_only_by_the_living() -> None:
    route = np.array([[0.0, 0.0], [0.0, 100.0]])
    assert np.allclose(take_over([route], [1, 2], 2, (5.0, 120.0)), [[0.0, 100.0], [0.0, 50.0]])
    assert np.allclose(take_over([route], [1, 2], 2, (5.0, 20.0)), [[0.0, 50.0], [0.0, 100.0]])
    assert take_over([route], [1, 2], 3).shape == (0, 2)
    assert take_over([], [1, 2], 1).shape == (0, 2)
