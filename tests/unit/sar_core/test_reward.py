"""The return and its counts, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.reward import Counts, Weights, depleted, episode_return, idle_steps

COUNTS = Counts(
    new_cells=7,
    confirmed_victims=2,
    triangulations=3,
    idle_steps=11,
    collisions=1,
    geofence_breaches=1,
    depleted=1,
)
EACH_HALF_SECOND = np.arange(0.0, 10.01, 0.5)


def test_the_return_is_the_published_sum() -> None:
    assert episode_return(COUNTS) == 70.0 + 100.0 + 15.0 - 22.0 - 100.0 - 50.0 - 30.0


def test_every_count_has_a_weight() -> None:
    assert vars(COUNTS).keys() == vars(Weights()).keys()


def track(*speeds: float) -> np.ndarray:
    """Drones that fly north at constant speeds, one fix each half second."""
    places = np.zeros((len(EACH_HALF_SECOND), len(speeds), 3))
    places[:, :, 1] = EACH_HALF_SECOND[:, None] * speeds
    return places


@pytest.mark.parametrize(("speeds", "steps"), [((0.0,), 10), ((0.49,), 10), ((0.51,), 0), ((8.0, 0.1, 0.2), 20)])
def test_a_drone_is_idle_below_half_a_metre_per_second(speeds: tuple[float, ...], steps: int) -> None:
    assert idle_steps(EACH_HALF_SECOND, track(*speeds)) == steps


def test_climbing_on_the_spot_is_idle() -> None:
    places = track(0.0)
    places[:, :, 2] = 3.0 * EACH_HALF_SECOND[:, None]
    assert idle_steps(EACH_HALF_SECOND, places) == 10


@given(st.integers(0, 20))
def test_a_second_that_is_not_over_does_not_count(ticks: int) -> None:
    assert idle_steps(EACH_HALF_SECOND[:ticks], track(0.0)[:ticks]) == max(ticks - 1, 0) // 2


@pytest.mark.parametrize(
    ("failsafe", "phase", "is_depleted"),
    [
        ([0, 0, 0], [2, 2, 2], True),
        ([0, 3, 0], [2, 2, 2], False),
        ([0, 0, 4], [2, 2, 2], False),
        ([0, 0, 0], [2, 3, 3], False),
        ([1, 2, 1], [2, 2, 2], True),
    ],
)
def test_an_empty_battery_is_forgiven_who_turned_home(failsafe: list[int], phase: list[int], is_depleted: bool) -> None:
    assert depleted([0.4, 0.2, 0.0], failsafe, phase) is is_depleted


def test_turning_home_with_an_empty_battery_is_too_late_and_charge_left_is_no_matter() -> None:
    assert depleted([0.1, 0.0, 0.0], [0, 0, 3], [2, 2, 2])
    assert not depleted([0.3, 0.2, 0.1], [0, 0, 0], [2, 2, 2])
    assert not depleted([], [], [])
