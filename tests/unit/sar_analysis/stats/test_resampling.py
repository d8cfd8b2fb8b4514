"""Intervals hold their value, say what they are and repeat; whatever makes one less than it looks is flagged."""

from __future__ import annotations

import itertools
import tracemalloc
from collections import Counter

import numpy as np
import pytest
import scipy.stats

from sar_analysis.stats.aggregate import iqm
from sar_analysis.stats.designs import ESTIMANDS, Design
from sar_analysis.stats.improvement import improvement
from sar_analysis.stats.resampling import bootstrap, distribution, paired
from sar_analysis.stats.scores import of_matrix
from sar_analysis.stats.statistics import iqm_of, mean_iqm_of_levels, mean_of, quantile_of
from sar_core.errors import InputError
from tests.unit.sar_analysis.stats.madescores import crossed

DESIGNS: list[Design] = list(ESTIMANDS)


def test_seeds_design_has_the_exact_distribution_of_all_resamples() -> None:
    scores = crossed(seeds=3, episodes=4)
    exact = Counter(round(iqm(scores.values[list(rows)]), 9) for rows in itertools.product(range(3), repeat=3))
    found = Counter(np.round(distribution(scores, iqm_of(scores), "seeds", 27_000, 1), 9).tolist())
    assert found.keys() == exact.keys()
    for value, ways in exact.items():
        assert found[value] == pytest.approx(1000 * ways, abs=5 * np.sqrt(1000 * ways))


def test_t_over_seed_means_is_students() -> None:
    scores = crossed(seeds=4)
    ours = bootstrap(scores, mean_of, "seeds", "t")
    theirs = scipy.stats.ttest_1samp(scores.values.mean(axis=1), 0.0).confidence_interval(0.95)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
    assert (ours.method, ours.resamples, ours.seed, ours.notes) == ("seeds jackknife, t", None, None, ())


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("reading", ["percentile", "bca"])
def test_intervals_hold_their_value_say_what_they_are_and_repeat(design: Design, reading: str) -> None:
    scores = crossed()
    first = bootstrap(scores, iqm_of, design, reading, resamples=2000, seed=3)  # type: ignore[arg-type]
    assert first == bootstrap(scores, iqm_of, design, reading, resamples=2000, seed=3)  # type: ignore[arg-type]
    assert first.low < first.value < first.high
    assert first.value == pytest.approx(iqm(scores.values), rel=1e-12)
    assert (first.method, first.estimand) == (f"{design} bootstrap, {reading}", ESTIMANDS[design])
    assert (first.resamples, first.seed, first.notes) == (2000, 3, ())
    assert first != bootstrap(scores, iqm_of, design, reading, resamples=2000, seed=4)  # type: ignore[arg-type]


def test_new_layouts_ask_for_a_wider_interval_than_these_episodes() -> None:
    scores = crossed(seeds=20, episodes=10)
    these, new = (bootstrap(scores, design=design) for design in ("seeds", "seeds_layouts"))
    assert new.high - new.low > 1.2 * (these.high - these.low)


def test_a_median_that_is_sometimes_never_reached_has_an_open_end() -> None:
    errors = np.where(np.arange(60).reshape(6, 10) % 10 < 6, 3.0 + np.arange(6)[:, None], np.inf)
    errors[4:, :] = np.inf
    interval = bootstrap(of_matrix("error_m", errors), lambda s: quantile_of(s, 0.25), "seeds", resamples=2000)
    assert 3.0 <= interval.low <= interval.value < interval.high == np.inf


def test_pairing_removes_what_both_conditions_share() -> None:
    first = crossed()
    second = of_matrix("return", first.values - 0.25, first.levels, first.layouts)
    gap = paired(first, second, iqm_of, "seeds_layouts", resamples=1000)
    assert (gap.value, gap.low, gap.high) == pytest.approx((0.25, 0.25, 0.25))
    assert "nothing varied" in gap.notes[0] and "paired by seed and episode" in gap.estimand
    median = paired(first, second, lambda s: quantile_of(s, 0.5), "seeds", resamples=1000)
    assert median.value == pytest.approx(0.25)


def test_a_difference_of_two_medians_that_were_never_reached_is_refused() -> None:
    never = of_matrix("error_m", np.full((5, 4), np.inf))
    with pytest.raises(InputError, match="error_m: undefined in 1 of 1 tables"):
        paired(never, never, lambda s: quantile_of(s, 0.5), resamples=200)


def test_memory_does_not_grow_with_resamples() -> None:
    scores = crossed(10, 50)
    peaks = []
    for resamples in (2_000, 20_000):
        tracemalloc.start()
        bootstrap(scores, resamples=resamples)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 20 * 20_000


@pytest.mark.parametrize("reading", ["percentile", "bca"])
def test_equal_values_and_few_seeds_are_flagged_in_words(reading: str) -> None:
    interval = bootstrap(of_matrix("return", np.zeros((3, 1))), reading=reading)  # type: ignore[arg-type]
    assert (interval.value, interval.low, interval.high) == (0.0, 0.0, 0.0)
    assert [note.partition(":")[0] for note in interval.notes] == [
        "all 3 values are 0",
        "only 3 seeds",
        "one episode",
        "only 3 values",
    ]


@pytest.mark.parametrize("reading", ["percentile", "bca"])
def test_rare_events_that_an_iqm_passes_over_are_flagged(reading: str) -> None:
    values = np.zeros((8, 20))
    values[2, 3] = values[5, 11] = 1.0
    interval = bootstrap(of_matrix("collisions", values), reading=reading)  # type: ignore[arg-type]
    assert (interval.low, interval.high) == (0.0, 0.0)
    assert interval.notes == (
        "no width: the statistic passes over every value that varied, which does not make it certain",
    )


def test_a_noise_level_that_a_resample_leaves_empty_is_refused() -> None:
    scores = of_matrix("return", np.arange(12.0).reshape(4, 3), levels=["low", "low", "high"])
    with pytest.raises(InputError, match=r"return: undefined in \d+ of 2000 resamples .*a noise level left empty"):
        bootstrap(scores, mean_iqm_of_levels, "cluster", resamples=2000)
    assert bootstrap(scores, mean_iqm_of_levels, "seeds", resamples=2000).value == pytest.approx(0.5 * (5.0 + 6.5))


def test_bad_settings_are_refused() -> None:
    scores = crossed()
    with pytest.raises(InputError, match="interval 'basic'; allowed: percentile, bca, t"):
        bootstrap(scores, reading="basic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="10 resamples; allowed: at least 100"):
        bootstrap(scores, resamples=10)
    with pytest.raises(InputError, match="confidence is 95"):
        bootstrap(scores, confidence=95.0)
    with pytest.raises(InputError, match="seeds differ in 5; allowed: the same"):
        paired(scores, of_matrix("return", scores.values[:5], scores.levels, scores.layouts))
    with pytest.raises(InputError, match="design 'cluster' for runs that do not pair; allowed: seeds, stratified"):
        improvement(scores, scores, "cluster")
