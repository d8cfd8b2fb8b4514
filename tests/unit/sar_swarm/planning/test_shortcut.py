"""Detours are cut where the line is free, and nowhere else."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.geometry import box, no_obstacles
from sar_swarm.planning.dice import seed
from sar_swarm.planning.planmap import plan_map
from sar_swarm.planning.shortcut import cut_corners, length_of
from tests.unit.sar_swarm.plancheck import BOUNDS, HEIGHT_M, SIDE_M, Floats, least_clearance

FREE = plan_map(no_obstacles(), BOUNDS, 5.0)
BLOCK = np.array([box(30.0, 30.0, 12.0, 20.0, 20.0, 24.0)])
AROUND = np.array([[5.0, 30.0, 12.0], [5.0, 55.0, 12.0], [55.0, 55.0, 12.0], [55.0, 30.0, 12.0]])
places = st.tuples(st.floats(0, SIDE_M), st.floats(0, SIDE_M), st.floats(0, HEIGHT_M))


def shortened(rows: Floats, points: Floats, tries: int = 40, key: int = 1) -> Floats:
    plan = FREE if not len(rows) else plan_map(rows, BOUNDS, 5.0)
    short: Floats = cut_corners(plan, points, 1.0, tries, seed(np.uint64(key)))[0]
    return short


@given(st.lists(places, min_size=2, max_size=8))
def test_in_free_air_every_way_becomes_its_line(corners: list[tuple[float, float, float]]) -> None:
    points = np.array(corners)
    short = shortened(no_obstacles(), points)
    assert np.array_equal(short, points[[0, -1]])
    assert length_of(short) == pytest.approx(math.dist(corners[0], corners[-1]))


@given(st.integers(0, 2**63))
def test_round_a_block_it_stays_clear_and_gets_shorter_with_the_ends_in_place(key: int) -> None:
    short = shortened(BLOCK, AROUND, key=key)
    assert np.array_equal(short[[0, -1]], AROUND[[0, -1]])
    assert least_clearance(BLOCK, short) >= 1.0 - 1e-6
    assert length_of(short) < length_of(AROUND)


def test_without_tries_only_corners_that_see_each_other_are_joined() -> None:
    assert np.array_equal(shortened(BLOCK, AROUND, tries=0), AROUND)
    doubled = np.repeat(AROUND, 2, axis=0)
    assert len(shortened(BLOCK, doubled, tries=0)) <= 5


def test_the_same_key_gives_the_same_way() -> None:
    assert np.array_equal(shortened(BLOCK, AROUND, key=9), shortened(BLOCK, AROUND, key=9))


def test_lengths_are_sums() -> None:
    assert length_of(AROUND) == 100.0
    assert length_of(AROUND[:1]) == 0.0
