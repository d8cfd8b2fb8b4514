"""Motion against closed forms: straight ways, steady turns, constant jerk."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from sar_analysis.metrics.motion import (
    charge_used,
    closest_approach,
    entries,
    jerks,
    leg_distances,
    path_lengths,
    rms,
    yaw_rates,
)

places = st.tuples(*[st.floats(-50, 50)] * 3)
UNEVEN_S = np.cumsum([0.0, *[0.052, 0.048] * 10])


@given(places, places)
def test_a_leg_is_as_near_as_its_nearest_point(a: tuple[float, ...], b: tuple[float, ...]) -> None:
    distance, where = leg_distances(np.array([a, b]))
    along = np.linspace(0.0, 1.0, 2001)[:, None]
    dense = np.linalg.norm((1.0 - along) * a + along * b, axis=1)
    assert distance[0] <= dense.min() + 1e-9
    assert distance[0] == pytest.approx(dense.min(), abs=1e-9 + math.dist(a, b) / 2000)
    assert 0.0 <= where[0] <= 1.0


def test_two_that_pass_between_ticks_are_seen() -> None:
    """Head on, 2 m aside, nearest half way between the ticks."""
    positions = np.array([[[0.0, 0, 0], [10.0, 2, 0]], [[10.0, 0, 0], [0.0, 2, 0]]])
    found = closest_approach(np.array([4.0, 5.0]), positions)
    assert found is not None
    assert (found.distance_m, found.time_s, found.drones) == (pytest.approx(2.0), pytest.approx(4.5), (1, 2))


def test_the_closest_pair_of_three_counts_from_one() -> None:
    positions = np.zeros((2, 3, 3))
    positions[:, :, 0] = 0.0, 100.0, 103.0
    found = closest_approach(np.array([0.0, 1.0]), positions)
    assert found is not None and (found.distance_m, found.drones) == (3.0, (2, 3))


def test_alone_or_in_one_tick_nobody_is_close() -> None:
    assert closest_approach(np.array([0.0, 1.0]), np.zeros((2, 1, 3))) is None
    assert closest_approach(np.array([0.0]), np.zeros((1, 2, 3))) is None


def test_ways_add_up_per_drone() -> None:
    positions = np.array([[[0.0, 0], [1, 1]], [[3.0, 4], [1, 1]], [[0.0, 0], [1, 1]]])
    assert path_lengths(positions).tolist() == [10.0, 0.0]


@given(st.tuples(*[st.floats(-1.4, 1.4)] * 3), st.tuples(*[st.floats(-3, 3)] * 3))
def test_turning_is_about_the_worlds_vertical(turned: tuple[float, ...], rates: tuple[float, ...]) -> None:
    attitude = Rotation.from_euler("ZYX", turned)
    expected = attitude.apply(rates)[2]
    found = yaw_rates(attitude.as_quat()[None, None], np.array(rates)[None, None])
    assert found[0, 0] == pytest.approx(expected, abs=1e-9)


def test_constant_jerk_is_exact_on_uneven_ticks() -> None:
    jerk = np.array([1.0, -2.0, 0.5])
    velocity = (0.5 * jerk * UNEVEN_S[:, None] ** 2 + [3.0, 0.0, 1.0] * UNEVEN_S[:, None])[:, None, :]
    found = jerks(UNEVEN_S, velocity)
    assert found.shape == (len(UNEVEN_S) - 2, 1)
    assert found == pytest.approx(np.linalg.norm(jerk), abs=1e-9)


def test_of_nothing_there_is_no_mean_square() -> None:
    assert rms(np.empty(0)) is None
    assert rms(np.array([3.0, -4.0])) == pytest.approx(math.sqrt(12.5))


def test_a_reset_hides_no_charge() -> None:
    assert charge_used(np.array([1.0, 0.8, 0.9, 0.7])) == pytest.approx(0.4)
    assert charge_used(np.empty(0)) == 0.0


@pytest.mark.parametrize(
    ("states", "times"), [([0, 0, 0], 0), ([0, 1, 1, 0, 1], 2), ([2, 2], 1), ([0, 1, 2, 1], 3), ([], 0)]
)
def test_an_entry_is_counted_once_per_state_entered(states: list[int], times: int) -> None:
    assert entries(np.array(states, dtype=np.int64)) == times
