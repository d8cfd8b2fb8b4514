"""Curves over layouts, place by place, against the figures and the bootstrap they are made like."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from sar_analysis.stats import clustered
from sar_analysis.stats.curves import means, shares
from sar_analysis.stats.interval import expanded_tail
from sar_analysis.stats.layouts import Options

RNG = np.random.default_rng(5)
LAYOUTS = [k // 6 for k in range(72)]
OWN = RNG.normal(0.0, 1.0, 12)[np.array(LAYOUTS)]
ERRORS = np.abs(RNG.normal(2.0, 1.0, 72) + OWN)
TAUS = np.array([0.01, 1.0, 2.0, 3.0, 50.0])
OPTIONS = Options(resamples=20_000)


def test_a_share_of_a_curve_is_the_share_it_would_be_by_itself() -> None:
    hits = ERRORS[:, None] < TAUS
    found = shares(hits, LAYOUTS, OPTIONS)
    for place in range(len(TAUS)):
        alone = clustered.share(hits[:, place], 1, LAYOUTS, OPTIONS)
        assert (found.low[place], found.high[place]) == pytest.approx((alone.low, alone.high)), TAUS[place]
    assert found.notes == ("Korn-Graubard at 2 of 5 places, where fewer than 5 layouts differ",)
    assert (found.cluster, found.resamples, found.seed) == ("layout", 20_000, 0)


def test_a_mean_of_a_curve_is_scipys_bootstrap_over_layouts() -> None:
    values = np.column_stack([ERRORS / 10.0, np.full(72, 0.25)])
    found = means(values, LAYOUTS, OPTIONS)
    by_layout = values[:, 0].reshape(12, 6).mean(axis=1)
    theirs = scipy.stats.bootstrap(
        (by_layout,),
        np.mean,
        n_resamples=20_000,
        confidence_level=1.0 - 2.0 * expanded_tail(12, 0.95),
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    width = theirs.high - theirs.low
    assert (found.low[0], found.high[0]) == pytest.approx((theirs.low, theirs.high), abs=0.03 * width)
    assert found.low[1] < 0.25 < found.high[1], "a place where nothing varied is not certain"
    assert "nothing varied at 1 of 2 places" in found.notes[0]


def test_one_layout_says_nothing_about_others() -> None:
    for found in (means(np.full((4, 3), 0.5), ["a"] * 4), shares(np.ones((4, 3), dtype=bool), ["a"] * 4)):
        assert found.low.tolist() == [0.0] * 3 and found.high.tolist() == [1.0] * 3
        assert found.notes == ("one layout: says nothing about any other",)
