"""Rank correlation against scipy, and its intervals against layouts that hang together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from sar_analysis.stats.correlation import _rhos, kendall, kendall_taus, spearman
from sar_analysis.stats.interval import expanded_percentile
from sar_analysis.stats.layouts import Options, draws
from sar_core.errors import InputError

FEW = Options(resamples=200)
PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), min_size=3, max_size=30)


@given(PAIRS)
def test_ties_and_all_it_is_scipys(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, float).T
    found = spearman(x, y, list(range(len(pairs))), FEW)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found is None
    else:
        assert found is not None and found.n == len(pairs)
        assert found.value == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


def test_a_resample_is_what_scipy_says_of_the_pairs_written_out() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 8, 40).astype(float), rng.normal(size=40)
    counts = draws(40, 100, 2)[:20]
    expected = [spearmanr(np.repeat(x, row), np.repeat(y, row)).statistic for row in counts]
    np.testing.assert_allclose(_rhos(counts.astype(float), x, y), expected, atol=1e-12)


def test_an_infinite_error_is_the_largest() -> None:
    found = spearman([1.0, 2.0, 3.0, 4.0], [0.5, 0.7, 2.0, math.inf], [0, 1, 2, 3], FEW)
    assert found is not None and found.value == 1.0


def test_looks_that_hang_together_by_layout_count_as_layouts() -> None:
    rng = np.random.default_rng(1)
    common = rng.normal(size=(2, 10))
    layouts = np.repeat(np.arange(10), 30)
    x, y = (common[k][layouts] + 0.01 * rng.normal(size=300) for k in range(2))
    together, apart = spearman(x, y, layouts.tolist()), spearman(x, y, list(range(300)))
    assert together is not None and apart is not None and together.value == apart.value
    assert together.high - together.low > 3.0 * (apart.high - apart.low)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_tau_is_scipys(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, float).T
    (found,) = kendall_taus(first[None], second[None])
    if len(set(first)) < 2 or len(set(second)) < 2:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(kendalltau(first, second).statistic, abs=1e-12)


def test_tau_draws_layouts_again_and_ranks_the_means_of_what_was_drawn() -> None:
    """Against a plain loop over the resamples; the patterns differ little, so that resamples rank them otherwise."""
    rng = np.random.default_rng(8)
    sizes = rng.integers(1, 4, (10, 5)).astype(float)
    first, second = (sizes * (0.2 * np.arange(5) + rng.normal(size=(10, 5))) for _ in range(2))
    found = kendall(first, second, sizes, FEW)
    counts = draws(10, FEW.resamples, FEW.seed)
    expected = [kendalltau((c @ first) / (c @ sizes), (c @ second) / (c @ sizes)).statistic for c in counts]
    assert found is not None and found.low == pytest.approx(expanded_percentile(np.array(expected), 10, 0.95)[0])
    assert found.low < found.value < found.high and (found.cluster, found.resamples, found.n) == ("layout", 200, 5)


def test_tau_without_width_or_layouts_has_no_ends_and_without_items_is_none() -> None:
    means, sizes = np.tile(np.arange(3.0), (6, 1)), np.ones((6, 3))
    same = kendall(means, means, sizes, FEW)
    assert same is not None and same.value == 1.0 and math.isnan(same.low) and "alike" in same.notes[0]
    one = kendall(means[:1], means[:1], sizes[:1], FEW)
    assert one is not None and math.isnan(one.high) and "one layout" in one.notes[0]
    assert kendall(means[:, :1], means[:, :1], sizes[:, :1], FEW) is None
    assert kendall(np.zeros((6, 3)), means, sizes, FEW) is None


def test_one_layout_has_no_ends_and_says_so() -> None:
    found = spearman([1.0, 2.0, 3.0], [1.0, 3.0, 2.0], ["a"] * 3)
    assert found is not None and found.value == pytest.approx(0.5)
    assert math.isnan(found.low) and math.isnan(found.high) and "one layout" in found.notes[0]


@pytest.mark.parametrize(
    ("x", "y", "layouts"),
    [([1.0, 2.0], [1.0], [0, 1]), ([1.0, 2.0], [1.0, 2.0], [0]), ([1.0, math.nan], [1.0, 2.0], [0, 1])],
    ids=["sizes", "layouts", "NaN"],
)
def test_what_is_no_pair_is_refused(x: list[float], y: list[float], layouts: list[int]) -> None:
    with pytest.raises(InputError, match="as many of each, no NaN"):
        spearman(x, y, layouts)
