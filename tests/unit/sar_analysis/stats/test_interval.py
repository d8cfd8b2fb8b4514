"""Readings of an interval equal scipy's where scipy has one; what cannot be read is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from sar_analysis.stats.designs import left_out
from sar_analysis.stats.interval import acceleration, bca, jackknife_t, percentile
from sar_analysis.stats.statistics import mean_of
from sar_core.errors import InputError
from tests.unit.sar_analysis.stats.madescores import crossed


def test_intervals_of_seeds_equal_scipys_on_its_own_resamples() -> None:
    """scipy resamples the seed means; the same distribution gives the same percentile and BCa ends."""
    scores = crossed(seeds=9)
    means = scores.values.mean(axis=1)
    jackknife = left_out(scores, "seeds", mean_of(scores))
    for method in ("percentile", "BCa"):
        theirs = scipy.stats.bootstrap(
            (means,), np.mean, n_resamples=2000, method=method, random_state=np.random.default_rng(4), vectorized=True
        )
        cloud = theirs.bootstrap_distribution
        ours = percentile(cloud, 0.95) if method == "percentile" else bca(cloud, means.mean(), jackknife, 0.95)
        assert ours == pytest.approx(tuple(theirs.confidence_interval), rel=1e-9)


def test_ties_with_the_value_count_half_in_bca_as_in_scipy() -> None:
    grades = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 9.0])
    theirs = scipy.stats.bootstrap(
        (grades,), np.median, n_resamples=999, method="BCa", random_state=np.random.default_rng(4)
    )
    without = [np.array([np.median(np.delete(grades, i)) for i in range(9)])]
    ours = bca(theirs.bootstrap_distribution, 1.0, without, 0.9)
    again = scipy.stats.bootstrap(
        (grades,), np.median, n_resamples=0, method="BCa", bootstrap_result=theirs, confidence_level=0.9
    )
    assert ours == pytest.approx(tuple(again.confidence_interval), rel=1e-9)


def test_acceleration_of_several_samples_equals_scipys() -> None:
    """scipy's two-sample BCa pools the samples the same way."""
    rng = np.random.default_rng(2)
    x, y = rng.exponential(size=12), rng.exponential(size=7)
    theirs = scipy.stats.bootstrap(
        (x, y),
        lambda a, b, axis: a.mean(axis) - b.mean(axis),
        n_resamples=3000,
        method="BCa",
        random_state=np.random.default_rng(1),
    )
    without = [
        np.array([np.delete(x, i).mean() - y.mean() for i in range(12)]),
        np.array([x.mean() - np.delete(y, i).mean() for i in range(7)]),
    ]
    ours = bca(theirs.bootstrap_distribution, x.mean() - y.mean(), without, 0.95)
    assert ours == pytest.approx(tuple(theirs.confidence_interval), rel=1e-9)
    assert acceleration([np.ones(4)]) == 0.0


def test_t_of_two_samples_is_welchs() -> None:
    """Two independent means: the jackknife's variances add up and Satterthwaite's freedom is Welch's."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=9), rng.normal(size=5)
    without = [
        np.array([np.delete(x, i).mean() - y.mean() for i in range(9)]),
        np.array([x.mean() - np.delete(y, i).mean() for i in range(5)]),
    ]
    theirs = scipy.stats.ttest_ind(x, y, equal_var=False).confidence_interval(0.95)
    assert jackknife_t(x.mean() - y.mean(), without, 0.95) == pytest.approx((theirs.low, theirs.high), rel=1e-9)


def test_bca_without_a_bias_estimate_is_refused() -> None:
    with pytest.raises(InputError, match="bca: all 50 resamples lie on one side of the value 1"):
        bca(np.zeros(50), 1.0, [np.arange(4.0)], 0.95)
