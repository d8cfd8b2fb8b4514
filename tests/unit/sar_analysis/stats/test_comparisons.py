"""Many comparisons: a worked example, a brute force, and the sentence a reader gets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from sar_analysis.stats import comparisons
from sar_core.errors import InputError


def test_holm_by_hand() -> None:
    """Four p-values by the step-down rule: 4 x .005, 3 x .01, 2 x .03, and .04 raised to its predecessor's."""
    np.testing.assert_allclose(comparisons.holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(comparisons.holm([0.9, 0.8]), [1.0, 1.0])


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6))
def test_holm_rejects_what_closed_bonferroni_testing_rejects(p: list[float]) -> None:
    """A hypothesis's adjusted p is the worst Bonferroni p over all intersections that hold it (Marcus et al. 1976)."""
    places = range(len(p))
    subsets = [c for size in range(1, len(p) + 1) for c in itertools.combinations(places, size)]
    for i, adjusted in enumerate(comparisons.holm(p)):
        worst = max(min(1.0, len(c) * min(p[j] for j in c)) for c in subsets if i in c)
        assert adjusted == pytest.approx(worst, abs=1e-12)


@given(st.lists(st.integers(-5, 5).map(float), min_size=2, max_size=8))
def test_sign_flips_are_scipys_exact_permutation_test(d: list[float]) -> None:
    theirs = scipy.stats.permutation_test(
        (d,),
        lambda x, axis: abs(np.sum(x, axis)),
        permutation_type="samples",
        alternative="greater",
        n_resamples=np.inf,
    )
    assert comparisons.sign_flip_p(d) == pytest.approx(theirs.pvalue, abs=1e-12)


def test_above_twenty_seeds_flips_are_drawn() -> None:
    rng = np.random.default_rng(3)
    d = rng.normal(0.3, 1.0, 24)
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=12)))
    one, two = signs @ d[:12], np.sort(signs @ d[12:])
    below = np.searchsorted(two, -abs(d.sum()) - one + 1e-9, side="right").mean() / len(two)
    assert comparisons.sign_flip_p(d) == pytest.approx(2 * below, abs=0.006), "both halves of all 2^24 flips"
    assert comparisons.sign_flip_p(d, 1) == comparisons.sign_flip_p(d, 1) != comparisons.sign_flip_p(d, 2)
    assert comparisons.sign_flip_p([1.0] * 40) == comparisons.least_p(40) == 1 / (1 + comparisons.FLIPS)
    assert comparisons.sign_flip_p([1.0] * 5) == comparisons.least_p(5) == 2 / 2**5
    assert "drawn with seed 7" in comparisons.flip_test(21, 7) and "exact" in comparisons.flip_test(20, 7)


def test_the_note_names_number_and_confidence() -> None:
    assert comparisons.comparisons_note(1) == ""
    assert comparisons.comparisons_note(10).startswith("10 comparisons, each at 95 %: up to 0.5 are expected to miss")
    assert "99.5 %" in comparisons.comparisons_note(10)


def test_nonsense_is_refused() -> None:
    with pytest.raises(InputError, match=r"p-values from -0\.1 to 0\.5; allowed: 0 to 1"):
        comparisons.holm([-0.1, 0.5])
    with pytest.raises(InputError, match="0 comparisons; allowed: at least 1"):
        comparisons.simultaneous_confidence(0)
