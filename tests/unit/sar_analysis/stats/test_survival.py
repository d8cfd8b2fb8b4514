"""Kaplan-Meier against the textbooks' leukaemia trial and scipy's own curve."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from sar_analysis.stats import survival
from sar_core.errors import InputError

# Weeks in remission, Freireich et al. 1963 (Blood 21, 699), as in Cox & Oakes 1984, table 1.1; + is censored.
DRUG = "6 6 6 6+ 7 9+ 10 10+ 11+ 13 16 17+ 19+ 20+ 22 23 25+ 32+ 32+ 34+ 35+"
PLACEBO = "1 1 2 2 3 4 4 5 5 8 8 8 8 11 11 12 12 15 17 22 23"
SURVIVALS = st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=40)


def parsed(text: str) -> tuple[list[float], list[bool]]:
    words = text.split()
    return [float(word.rstrip("+")) for word in words], [not word.endswith("+") for word in words]


def test_the_drug_groups_steps_and_errors_are_the_textbooks() -> None:
    curve = survival.kaplan_meier(*parsed(DRUG))
    np.testing.assert_array_equal(curve.times, [6, 7, 10, 13, 16, 22, 23])
    np.testing.assert_array_equal(curve.at_risk, [21, 17, 15, 12, 11, 7, 6])
    np.testing.assert_array_equal(curve.events, [3, 1, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(curve.survival, [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448], atol=5e-4)
    np.testing.assert_allclose(curve.deviation, [0.0764, 0.0869, 0.0963, 0.1068, 0.1141, 0.1282, 0.1346], atol=5e-5)


def test_the_medians_are_23_and_8_weeks() -> None:
    drug = survival.median_time(*parsed(DRUG))
    assert (drug.value, drug.low, drug.high) == (23.0, 13.0, np.inf)
    assert drug.notes == ("the upper end is not reached: 9 of 21 had the event",)
    placebo = survival.median_time(*parsed(PLACEBO))
    assert (placebo.value, placebo.low, placebo.high, placebo.notes) == (8.0, 4.0, 11.0, ())


@given(SURVIVALS)
def test_curve_and_band_are_scipys(cases: list[tuple[int, bool]]) -> None:
    times, observed = np.array([t for t, _ in cases], float), np.array([o for _, o in cases])
    curve = survival.kaplan_meier(times, observed)
    theirs = scipy.stats.ecdf(scipy.stats.CensoredData(times[observed], right=times[~observed])).sf
    np.testing.assert_allclose(curve.survival, theirs.evaluate(curve.times), atol=1e-12)
    inside = (curve.survival > 0.0) & (curve.survival < 1.0)
    low, high = survival.band(curve)
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        limits = theirs.confidence_interval(0.95, method="log-log")
    for ours, oracle in ((low, limits.low), (high, limits.high)):
        np.testing.assert_allclose(ours[inside], oracle.evaluate(curve.times)[inside], atol=1e-12)


def test_without_censoring_the_curve_is_the_empirical_one() -> None:
    times = np.random.default_rng(0).exponential(size=101)
    interval = survival.median_time(times, np.ones(101, bool))
    assert interval.value == np.median(times)
    assert interval.low < interval.value < interval.high


def test_half_of_them_is_enough_for_a_median() -> None:
    assert survival.median_time([5.0, 7.0, 240.0, 240.0], [True, True, False, False]).value == 7.0


def test_a_median_that_never_came_is_said_so() -> None:
    interval = survival.median_time([240.0] * 6 + [100.0], [False] * 6 + [True])
    assert interval.value == interval.high == np.inf
    assert interval.notes == ("median not reached: 1 of 7 had the event",)
    never = survival.median_time([240.0], [False])
    assert never.value == np.inf and np.isnan((never.low, never.high)).all()
    assert never.notes == (
        "median not reached: 0 of 1 had the event",
        "no interval: 1 missions, and a median's takes 6",
    )


@pytest.mark.parametrize("missions", range(1, 6))
def test_so_few_missions_have_no_interval_of_a_median(missions: int) -> None:
    """All lie on one side of the median with probability 2 / 2^n, above 5 % up to five: no interval can hold."""
    found = survival.median_time(np.arange(1.0, missions + 1), np.ones(missions, bool))
    assert np.isnan((found.low, found.high)).all() and any("takes 6" in note for note in found.notes)
    enough = survival.median_time(np.arange(1.0, 7.0), np.ones(6, bool))
    assert enough.low < enough.value < enough.high


def test_times_all_alike_are_said_to_be_so() -> None:
    found = survival.median_time([5.0] * 20, [True] * 20)
    assert (found.low, found.value, found.high) == (5.0, 5.0, 5.0)
    assert found.notes == ("no width: the times about the median are all alike, which does not make it certain",)


def test_nonsense_is_refused() -> None:
    with pytest.raises(InputError, match="2 times and 1 flags"):
        survival.median_time([1.0, 2.0], [True])
    with pytest.raises(InputError, match="no scores"):
        survival.median_time([], [])
    for bad in (-1.0, np.inf):
        with pytest.raises(InputError, match="times below 0 or infinite"):
            survival.median_time([bad], [True])
