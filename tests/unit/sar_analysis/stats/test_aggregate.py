"""Aggregates against scipy, brute force and hand-made cases; what is not a number is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from sar_analysis.stats import aggregate
from sar_analysis.stats.scores import of_matrix
from sar_core.errors import InputError

NUMBERS = st.floats(-1e6, 1e6)
MATRICES = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=NUMBERS)
GRADES = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.sampled_from([0.0, 1.0, 2.0]))


@given(MATRICES)
def test_iqm_is_scipys_trimmed_mean(scores: np.ndarray) -> None:
    expected = scipy.stats.trim_mean(scores, 0.25, axis=None)
    assert aggregate.iqm(scores) == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_iqm_is_the_mean_not_the_median_of_the_middle_half() -> None:
    scores = [-100.0, -50.0, 0.0, 0.0, 0.0, 8.0, 70.0, 90.0]
    assert aggregate.iqm(scores) == 2.0
    assert np.median(np.sort(scores)[2:6]) == 0.0


def test_below_four_scores_the_iqm_is_the_mean() -> None:
    assert aggregate.iqm([1.0, 2.0, 9.0]) == 4.0


def test_each_level_has_its_own_iqm_and_the_pooled_one_hides_the_hardest() -> None:
    values = np.array([[1.0] * 4 + [10.0] * 8 + [100.0] * 4] * 2)
    scores = of_matrix("return", values, levels=["low"] * 4 + ["mid"] * 8 + ["high"] * 4)
    assert aggregate.iqm_per_level(scores) == {"low": 1.0, "mid": 10.0, "high": 100.0}
    assert aggregate.iqm(values) == 10.0


def test_optimality_gap_counts_shortfall_only_and_takes_a_reference_per_episode() -> None:
    assert aggregate.optimality_gap([[0.5, 2.0], [1.0, 0.0]]) == pytest.approx((0.5 + 0 + 0 + 1.0) / 4)
    assert aggregate.optimality_gap([[80.0, 90.0], [120.0, 30.0]], [100.0, 60.0]) == pytest.approx(
        (20 + 0 + 0 + 30) / 4
    )


@given(GRADES, st.data())
def test_improvement_counts_every_pair_with_ties_half(x: np.ndarray, data: st.DataObject) -> None:
    shape = (data.draw(st.integers(1, 6)), x.shape[1])
    y = data.draw(arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0, 2.0])))
    tasks = []
    for m in range(x.shape[1]):
        pairs = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in itertools.product(x[:, m], y[:, m])]
        tasks.append(sum(pairs) / len(pairs))
    assert aggregate.probability_of_improvement(x, y) == pytest.approx(np.mean(tasks), abs=1e-12)
    assert aggregate.probability_of_improvement(y, x) == pytest.approx(1.0 - np.mean(tasks), abs=1e-12)


def test_profile_counts_errors_strictly_below_tau_and_the_undetected_never() -> None:
    profile = aggregate.performance_profile([[1.0, 5.0], [5.0, np.inf]], [0.0, 1.0, 1.1, 5.0, 5.1, 1e9])
    np.testing.assert_array_equal(profile, [0.0, 0.0, 0.25, 0.25, 0.75, 0.75])


@pytest.mark.parametrize("bad", [[], [1.0, float("nan")]])
def test_what_is_not_a_number_is_refused(bad: list[float]) -> None:
    for function in (aggregate.iqm, aggregate.optimality_gap, lambda s: aggregate.performance_profile(s, [1.0])):
        with pytest.raises(InputError, match=r"no scores|1 of 2 scores are NaN"):
            function(bad)


def test_improvement_refuses_other_tasks() -> None:
    with pytest.raises(InputError, match=r"shapes \(2, 3\) and \(2, 4\)"):
        aggregate.probability_of_improvement(np.zeros((2, 3)), np.zeros((2, 4)))
