"""Statistics on counts against the slow clear way: write the resample out and hand it to numpy or scipy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sar_analysis.stats import statistics
from sar_analysis.stats.scores import of_matrix
from sar_core.errors import InputError

VALUES = arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 6)), elements=st.integers(-50, 50).map(float))


@st.composite
def tables_with_counts(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A table and a few resamples of it as counts, none of them empty."""
    values = draw(VALUES)
    counts = draw(arrays(np.uint16, (3, values.size), elements=st.integers(0, 4)))
    counts[:, draw(st.integers(0, values.size - 1))] += 1
    return values, counts


@given(tables_with_counts())
def test_iqm_and_mean_of_counts_equal_those_of_the_written_out_resample(case: tuple[np.ndarray, np.ndarray]) -> None:
    values, counts = case
    resamples = [np.repeat(values.ravel(), row) for row in counts]
    scores = of_matrix("m", values)
    expected = [scipy.stats.trim_mean(resample, 0.25) for resample in resamples]
    np.testing.assert_allclose(statistics.iqm_of(scores)(counts), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        statistics.mean_of(scores)(counts), [r.mean() for r in resamples], rtol=1e-12, atol=1e-12
    )


@given(tables_with_counts(), st.sampled_from([0.0, 0.05, 0.25, 0.5, 0.95, 1.0]))
def test_quantile_of_counts_is_numpys(case: tuple[np.ndarray, np.ndarray], q: float) -> None:
    values, counts = case
    expected = [np.quantile(np.repeat(values.ravel(), row), q) for row in counts]
    np.testing.assert_allclose(
        statistics.quantile_of(of_matrix("m", values), q)(counts), expected, rtol=1e-12, atol=1e-12
    )


def test_an_undetected_victim_leaves_the_median_alone_until_it_reaches_it() -> None:
    errors = of_matrix("error_m", np.array([[1.0, 3.0, np.inf]]))
    counts = np.array([[1, 1, 1], [1, 1, 2], [1, 0, 2]], dtype=np.uint16)
    np.testing.assert_array_equal(statistics.quantile_of(errors, 0.5)(counts), [3.0, np.inf, np.inf])


def test_a_resample_that_drew_nothing_has_no_value() -> None:
    scores = of_matrix("m", np.array([[1.0, 2.0]]))
    counts = np.array([[0, 0], [0, 1]], dtype=np.uint16)
    for make in (statistics.iqm_of, statistics.mean_of, lambda s: statistics.quantile_of(s, 0.5)):
        np.testing.assert_array_equal(make(scores)(counts), [np.nan, 2.0])


def test_levels_keep_their_say() -> None:
    values = np.array([[1.0] * 4 + [10.0] * 8 + [100.0] * 4] * 2)
    scores = of_matrix("return", values, levels=["low"] * 4 + ["mid"] * 8 + ["high"] * 4)
    counts = np.ones((1, values.size), dtype=np.uint16)
    assert statistics.mean_iqm_of_levels(scores)(counts)[0] == pytest.approx((1.0 + 10.0 + 100.0) / 3.0)
    assert statistics.iqm_of(scores)(counts)[0] == 10.0


def test_infinite_values_are_refused_where_they_would_make_nonsense() -> None:
    scores = of_matrix("error_m", np.array([[1.0, np.inf]]))
    for make in (statistics.iqm_of, statistics.mean_of):
        with pytest.raises(InputError, match="error_m: 1 of 2 values are infinite"):
            make(scores)
    with pytest.raises(InputError, match=r"quantile 1\.5; allowed: 0 to 1"):
        statistics.quantile_of(scores, 1.5)
