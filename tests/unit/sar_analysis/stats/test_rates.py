"""Exact intervals against scipy's own, textbook figures, and their definition by tail sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from sar_analysis.stats import rates
from sar_core.errors import InputError


@given(
    st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.8, 0.95, 0.99])
)
def test_clopper_pearson_is_scipys(case: tuple[int, int], confidence: float) -> None:
    events, missions = case
    ours = rates.clopper_pearson(events, missions, confidence)
    theirs = scipy.stats.binomtest(events, missions).proportion_ci(confidence, method="exact")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_no_event_in_150_missions_still_allows_two_and_a_half_percent() -> None:
    interval = rates.clopper_pearson(0, 150)
    assert interval.high == pytest.approx(1.0 - 0.025 ** (1 / 150), rel=1e-12)
    assert round(100 * interval.high, 1) == 2.4
    assert interval.notes == ("0 of 150: nothing varied, so only one end is informative",)


@given(st.integers(0, 300))
def test_poisson_ends_are_where_the_tails_reach_alpha(events: int) -> None:
    interval = rates.poisson_rate(events, 1.0, "mission")
    assert scipy.stats.poisson.cdf(events, interval.high) == pytest.approx(0.025, rel=1e-8)
    if events:
        assert scipy.stats.poisson.sf(events - 1, interval.low) == pytest.approx(0.025, rel=1e-8)


def test_poisson_gives_garwoods_table() -> None:
    """Garwood 1936, Biometrika 28, 437: limits of the mean for counts 0, 1 and 10 at 95 %."""
    for events, low, high in ((0, 0.0, 3.689), (1, 0.0253, 5.572), (10, 4.795, 18.39)):
        interval = rates.poisson_rate(events, 2.0, "flight hour")
        assert (2 * interval.low, 2 * interval.high) == pytest.approx((low, high), rel=1e-3)
        assert interval.value == events / 2.0
        assert interval.estimand.startswith("events per flight hour")


def test_quantile_interval_of_ten_is_the_second_and_the_ninth() -> None:
    """Printed tables of the sign-test interval for a median: n = 10, ranks 2 and 9, 97.9 % confidence."""
    found = rates.order_quantile([float(k) for k in range(10, 0, -1)], 0.5)
    assert (found.value, found.low, found.high, found.n) == (5.0, 2.0, 9.0, 10)


def test_quantile_interval_covers_what_it_promises() -> None:
    rng = np.random.default_rng(3)
    truth = scipy.stats.expon.ppf(0.5)
    found = [rates.order_quantile(rng.exponential(size=25).tolist(), 0.5) for _ in range(400)]
    assert sum(interval.low <= truth <= interval.high for interval in found) / 400 > 0.93


def test_an_upper_end_that_does_not_exist_is_not_invented() -> None:
    """All n lie below the 95 % quantile with probability 0.95^n, which is under 2.5 % from n = 72 on."""
    assert 0.95**72 < 0.025 < 0.95**71
    values = [float(k) for k in range(72)]
    few, enough = rates.order_quantile(values[:71], 0.95), rates.order_quantile(values, 0.95)
    assert math.isnan(few.high) and few.ends["high"] is None
    assert enough.high == 71.0


def test_detectable_difference_gives_the_classic_sample_size() -> None:
    """A paired t-test for d = 0.5 at 5 % two-sided and 80 % power needs 34 pairs (Cohen 1988; G*Power 3.1)."""
    assert rates.detectable_difference(1.0, 34) < 0.5 < rates.detectable_difference(1.0, 33)
    assert rates.detectable_difference(3.0, 34) == pytest.approx(3.0 * rates.detectable_difference(1.0, 34))


def test_detectable_difference_is_found_as_often_as_promised() -> None:
    effect = rates.detectable_difference(2.0, 5)
    samples = np.random.default_rng(1).normal(effect, 2.0, (40_000, 5))
    p = scipy.stats.ttest_1samp(samples, 0.0, axis=1).pvalue
    assert (p < 0.05).mean() == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 40_000))


def test_detectable_rate_is_seen_as_often_as_promised() -> None:
    assert 1.0 - (1.0 - rates.detectable_rate(150, 0.95)) ** 150 == pytest.approx(0.95)
    assert round(100 * rates.detectable_rate(150, 0.95), 2) == 1.98


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rates.clopper_pearson(3, 2), "3 missions with an event of 2"),
        (lambda: rates.clopper_pearson(0, 0), "0 missions with an event of 0"),
        (lambda: rates.clopper_pearson(-1, 2), "missions with an event: -1; allowed: a whole number from 0"),
        (lambda: rates.poisson_rate(1.5, 2.0, "hour"), r"events: 1\.5; allowed"),  # type: ignore[arg-type]
        (lambda: rates.poisson_rate(1, 0.0, "hour"), r"exposure is 0\.0 hour; allowed"),
        (lambda: rates.poisson_rate(1, math.nan, "hour"), "exposure is nan hour"),
        (lambda: rates.clopper_pearson(1, 2, 95.0), r"confidence is 95\.0"),
        (lambda: rates.detectable_difference(1.0, 1), "1 units; allowed: at least 2"),
        (lambda: rates.detectable_difference(0.0, 5), r"standard deviation 0\.0"),
        (lambda: rates.detectable_difference(1.0, 5, 0.01), r"power 0\.01"),
        (lambda: rates.detectable_rate(0), "0 missions"),
        (lambda: rates.detectable_rate(5, 1.0), r"power 1\.0"),
    ],
)
def test_nonsense_is_refused(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()  # type: ignore[operator]


def test_two_units_have_a_detectable_difference_too() -> None:
    """scipy's far lower tail is nan on the way there; the power found is still the one asked for."""
    found = rates.detectable_difference(1.0, 2)
    critical = scipy.stats.t.ppf(0.975, 1)
    assert scipy.stats.nct.sf(critical, 1, found * math.sqrt(2)) == pytest.approx(0.8, abs=1e-9)
