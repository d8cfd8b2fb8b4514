"""Designs draw what they say; intervals equal scipy's where scipy has one; bad tables are refused in words."""

from __future__ import annotations

import itertools
import tracemalloc
from collections import Counter

import numpy as np
import pytest
import scipy.stats

from sar_analysis.stats.aggregate import iqm, probability_of_improvement
from sar_analysis.stats.designs import ESTIMANDS, Design, check_design, left_out, sampler
from sar_analysis.stats.improvement import improvement, paired_improvement
from sar_analysis.stats.interval import acceleration, bca, jackknife_t, percentile
from sar_analysis.stats.resampling import bootstrap, distribution, paired
from sar_analysis.stats.scores import Scores, of_matrix
from sar_analysis.stats.statistics import iqm_of, mean_iqm_of_levels, mean_of, quantile_of
from sar_core.errors import InputError

DESIGNS: list[Design] = list(ESTIMANDS)


def crossed(seeds: int = 6, episodes: int = 10, shared_layouts: bool = False) -> Scores:
    """Seed, layout and cell effects; two noise levels of equal size."""
    rng = np.random.default_rng(8)
    values = rng.normal(size=(seeds, 1)) + rng.normal(size=(1, episodes)) + rng.normal(size=(seeds, episodes))
    half = episodes // 2
    layouts = list(range(half)) * 2 if shared_layouts else list(range(episodes))
    return of_matrix("return", values, levels=[0.1] * half + [0.2] * half, layouts=layouts)


def drawn(scores: Scores, design: Design, resamples: int = 400) -> np.ndarray:
    counts = sampler(scores, design)(np.random.default_rng(0), resamples)
    return counts.reshape(resamples, *scores.values.shape).astype(int)


@pytest.mark.parametrize("design", DESIGNS)
def test_every_resample_has_as_many_cells_as_the_table_and_each_cell_its_turn(design: Design) -> None:
    scores = crossed()
    counts = drawn(scores, design, 4000)
    assert set(counts.sum(axis=(1, 2))) == {scores.values.size}
    np.testing.assert_allclose(counts.mean(axis=0), 1.0, atol=0.15)


def test_seeds_keep_their_episodes() -> None:
    counts = drawn(crossed(), "seeds")
    assert (counts == counts[:, :, :1]).all()
    assert (counts[:, :, 0].std(axis=1) > 0).any()


@pytest.mark.parametrize("shared", [False, True])
def test_layouts_are_drawn_whole_and_every_noise_level_keeps_its_size(shared: bool) -> None:
    scores = crossed(shared_layouts=shared)
    counts = drawn(scores, "seeds_layouts")
    by_seed, by_episode = counts.sum(axis=2) // 10, counts.sum(axis=1) // 6
    np.testing.assert_array_equal(counts, by_seed[:, :, None] * by_episode[:, None, :])
    np.testing.assert_array_equal(by_episode[:, :5].sum(axis=1), 5)
    assert (by_episode[:, :5] == by_episode[:, 5:]).all() == shared


def test_cluster_draws_seeds_then_episodes_within() -> None:
    counts = drawn(crossed(), "cluster")
    assert (counts.sum(axis=2) % 10 == 0).all()
    assert not (counts == counts[:, :, :1]).all()
    assert set(counts.sum(axis=2).ravel() // 10) >= {0, 1, 2, 3}


def test_strata_draw_runs_within_each_episode() -> None:
    assert (drawn(crossed(), "stratified").sum(axis=1) == 6).all()


def test_seeds_design_has_the_exact_distribution_of_all_resamples() -> None:
    scores = crossed(seeds=3, episodes=4)
    exact = Counter(round(iqm(scores.values[list(rows)]), 9) for rows in itertools.product(range(3), repeat=3))
    found = Counter(np.round(distribution(scores, iqm_of(scores), "seeds", 27_000, 1), 9).tolist())
    assert found.keys() == exact.keys()
    for value, ways in exact.items():
        assert found[value] == pytest.approx(1000 * ways, abs=5 * np.sqrt(1000 * ways))


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


def test_t_over_seed_means_is_students() -> None:
    scores = crossed(seeds=4)
    ours = bootstrap(scores, mean_of, "seeds", "t")
    theirs = scipy.stats.ttest_1samp(scores.values.mean(axis=1), 0.0).confidence_interval(0.95)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
    assert (ours.method, ours.resamples, ours.seed, ours.notes) == ("seeds jackknife, t", None, None, ())


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


def test_paired_improvement_compares_cell_by_cell() -> None:
    first = crossed()
    second = of_matrix("return", first.values - 0.01, first.levels, first.layouts)
    assert paired_improvement(first, second, resamples=500).value == 1.0
    assert paired_improvement(first, first, resamples=500).value == 0.5
    assert improvement(first, second, "seeds", resamples=500).value < 0.6


@pytest.mark.parametrize("design", ["seeds", "stratified"])
def test_improvement_resamples_both_sides_apart(design: Design) -> None:
    """Against the slow way: draw the rows of either side, or of each column, and count all pairs again."""
    rng = np.random.default_rng(6)
    x, y = rng.normal(0.4, 1.0, (6, 5)), rng.normal(0.0, 1.0, (4, 5))
    x += rng.normal(size=(6, 1))
    slow = []
    for _ in range(4000):
        picks = [rng.integers(0, len(m), m.shape if design == "stratified" else (len(m), 1)) for m in (x, y)]
        a, b = (np.take_along_axis(m, np.broadcast_to(p, m.shape), axis=0) for m, p in zip((x, y), picks, strict=True))
        slow.append(probability_of_improvement(a, b))
    low, high = np.quantile(slow, (0.025, 0.975))
    ours = improvement(of_matrix("x", x), of_matrix("y", y), design)
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.06 * (high - low))


def test_memory_does_not_grow_with_resamples() -> None:
    scores = crossed(10, 50)
    peaks = []
    for resamples in (2_000, 20_000):
        tracemalloc.start()
        bootstrap(scores, resamples=resamples)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 20 * 20_000


@pytest.mark.parametrize(
    ("values", "design", "message"),
    [
        (np.ones((1, 5)), "seeds", "1 seed cannot carry an interval over seeds; at least 2"),
        (np.ones((3, 1)), "cluster", "1 episode cannot be redrawn within seeds"),
        (np.ones((3, 1)), "seeds_layouts", "a single layout at its noise level cannot be redrawn: episode 0"),
        (np.ones((1, 1)), "iid", "1 value cannot be redrawn"),
        (np.ones((3, 3)), "nested", "bootstrap design 'nested'; allowed: seeds, seeds_layouts"),
    ],
)
def test_too_few_units_are_refused(values: np.ndarray, design: Design, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_design(of_matrix("return", values), design)


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


def test_bca_without_a_bias_estimate_is_refused() -> None:
    with pytest.raises(InputError, match="bca: all 50 resamples lie on one side of the value 1"):
        bca(np.zeros(50), 1.0, [np.arange(4.0)], 0.95)


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
