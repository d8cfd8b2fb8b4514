"""Intervals over layouts against scipy's bootstrap, hand-worked effective samples, and what must never be printed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from sar_analysis.stats import clustered, effective
from sar_analysis.stats.interval import Array, Interval, bca, expanded_percentile, percentile
from sar_analysis.stats.layouts import Options, draws, grouped
from sar_analysis.stats.rates import clopper_pearson, order_quantile, poisson_rate
from sar_analysis.stats.resampling import distribution
from sar_analysis.stats.scores import of_matrix
from sar_analysis.stats.statistics import Counts, mean_of
from sar_analysis.stats.survival import kaplan_meier, median_time
from sar_core.errors import InputError

LAYOUTS = [k // 3 for k in range(30)]
RNG = np.random.default_rng(7)
HAD = np.array([k < had for had in (0, 1, 2, 3, 1, 0, 2, 1, 3, 0) for k in range(3)], dtype=float)
ERRORS = RNG.lognormal(np.repeat(RNG.normal(0.0, 0.6, 10), 3), 0.7)
MANY = Options(resamples=40_000)


def scipys(statistic: Callable[..., Array], method: str, confidence: float = 0.95) -> tuple[float, float]:
    """scipy's interval over the ten layouts, as indices that are drawn again."""
    found = scipy.stats.bootstrap(
        (np.arange(10),),
        statistic,
        vectorized=False,
        n_resamples=20_000,
        confidence_level=confidence,
        method=method,
        rng=np.random.default_rng(3),
    ).confidence_interval
    return float(found.low), float(found.high)


def by_layout(statistic: Callable[[Array], float]) -> Callable[[Array], float]:
    table = ERRORS.reshape(10, 3)
    return lambda drawn: statistic(table[np.asarray(drawn)].ravel())


def widened(confidence: float = 0.95, units: int = 10) -> float:
    """The plain percentile's confidence at which it is the expanded one."""
    t = scipy.stats.t.ppf(0.5 - 0.5 * confidence, units - 1)
    return 1.0 - 2.0 * float(scipy.stats.norm.cdf(math.sqrt(units / (units - 1)) * t))


@pytest.mark.parametrize(
    ("ours", "statistic"),
    [
        (lambda: clustered.quantile(ERRORS, 0.5, LAYOUTS, MANY), lambda x: np.quantile(x, 0.5, method="inverted_cdf")),
        (lambda: clustered.iqm(ERRORS, LAYOUTS, MANY), lambda x: scipy.stats.trim_mean(x, 0.25)),
    ],
)
def test_layouts_drawn_again_are_scipys(ours: Callable[[], Interval], statistic: Callable[[Array], float]) -> None:
    found, theirs = ours(), scipys(by_layout(statistic), "percentile", widened())
    assert (found.low, found.high) == pytest.approx(theirs, rel=0.03)
    assert found.method == "bootstrap over layouts, expanded percentile"
    assert (found.cluster, found.resamples, found.seed, found.n) == ("layout", 40_000, 0, 30)


def test_a_mean_and_a_rate_are_by_the_bootstrap_t_of_its_definition() -> None:
    """Efron & Tibshirani 1993, section 12.5, resample by resample."""
    table, rng = ERRORS.reshape(10, 3), np.random.default_rng(11)
    own = table.mean(axis=1)
    error = own.std(ddof=1) / math.sqrt(10)
    drawn = own[rng.integers(0, 10, (40_000, 10))]
    t = (drawn.mean(axis=1) - own.mean()) / (drawn.std(axis=1, ddof=1) / math.sqrt(10))
    low, high = own.mean() - np.quantile(t, (0.975, 0.025)) * error
    for found in (
        clustered.mean(ERRORS, LAYOUTS, MANY),
        clustered.rate(np.round(ERRORS * 1e9), np.full(30, 1e9), LAYOUTS, MANY),
    ):
        assert found.method == "bootstrap over layouts, bootstrap-t"
        assert (found.low, found.high) == pytest.approx((low, high), rel=0.03)


def test_a_rate_whose_events_crowd_says_that_it_falls_short() -> None:
    counts = np.zeros(30)
    counts[0] = 40.0
    assert any("covers 79 to 92 %" in note for note in clustered.rate(counts, 1, LAYOUTS).notes)
    many = clustered.rate(np.tile(counts, 10), 1, range(300))
    assert not clustered.falls_short(many), "a hundred layouts are enough, however they crowd"


def test_a_share_over_layouts_is_scipys() -> None:
    totals = HAD.reshape(10, 3).sum(axis=1)
    found = clustered.share(HAD, 1, LAYOUTS, MANY)
    theirs = scipys(lambda drawn: totals[np.asarray(drawn)].sum() / 30.0, "percentile", widened())
    assert (found.low, found.high) == pytest.approx(theirs, abs=1 / 30 + 1e-9)


def test_percentile_and_bca_of_independent_values_are_scipys() -> None:
    values = np.random.default_rng(1).exponential(size=40)
    table = of_matrix("x", values[:, None])
    found = distribution(table, mean_of(table), "iid", 40_000, 0)
    left = (values.sum() - values) / 39.0
    for ours, method in ((percentile(found, 0.95), "percentile"), (bca(found, values.mean(), [left], 0.95), "BCa")):
        theirs = scipy.stats.bootstrap((values,), np.mean, n_resamples=40_000, method=method, rng=2)
        assert ours == pytest.approx(tuple(theirs.confidence_interval), rel=0.02)


def test_the_expanded_percentile_is_hesterbergs() -> None:
    """Of ten the tails are Phi(-2.262 sqrt(10 / 9)) = 0.86 %; of infinitely many they are the plain 2.5 %."""
    ladder = np.linspace(0.0, 1.0, 100_001)
    assert expanded_percentile(ladder, 10, 0.95) == pytest.approx((0.00855, 0.99145), abs=5e-5)
    assert expanded_percentile(ladder, 10**9, 0.95) == pytest.approx((0.025, 0.975), abs=1e-5)


def test_korn_graubard_worked_by_hand() -> None:
    """Ten layouts of three missions; in one all three had it: p = 0.1.

    Residuals 3 - 0.3 and nine of -0.3: squares 7.29 + 0.81 = 8.1; variance 10/9 * 8.1 / 900 = 0.01, of independent
    missions 0.09 / 29 = 0.0031034: design effect 3.2222, 30 / 3.2222 = 9.3103. Times (t_29 / t_9)^2 = (2.0452 /
    2.2622)^2 = 0.81737: 7.6100 effective missions.
    """
    events, trials = np.array([3.0, *[0.0] * 9]), np.full(10, 3.0)
    assert effective.linear_error(events, trials) ** 2 == pytest.approx(0.01)
    worth = effective.effective_trials(events, trials, 0.95)
    assert worth == pytest.approx(7.6100, abs=2e-3)
    low, high = effective.korn_graubard(events, trials)
    # What `qbeta` of R's svyciprop(method = "beta") is: the tails of a beta, by their own integral.
    assert scipy.stats.beta.cdf(low, 0.1 * worth, 0.9 * worth + 1.0) == pytest.approx(0.025)
    assert scipy.stats.beta.sf(high, 0.1 * worth + 1.0, 0.9 * worth) == pytest.approx(0.025)
    found = clustered.share(np.repeat([1.0, *[0.0] * 9], 3), 1, LAYOUTS)
    assert (found.low, found.high) == (low, high)
    assert found.method == "Korn-Graubard: Clopper-Pearson on 7.61 effective of 30"
    assert found.notes == ("rare: it, or its absence, was seen in 1 layouts, fewer than 5",)


@given(st.integers(2, 60).flatmap(lambda n: st.tuples(st.integers(0, min(n, 4)), st.just(n))))
def test_a_mission_per_layout_makes_it_the_exact_interval(case: tuple[int, int]) -> None:
    k, n = case
    values = [1.0] * k + [0.0] * (n - k)
    found, exact = clustered.share(values, 1), clopper_pearson(k, n)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=1e-9)
    assert found.cluster == "mission"
    counted, garwood = clustered.rate(values, [0.5] * n), poisson_rate(k, 0.5 * n, "hour")
    assert counted.value == garwood.value
    assert counted.low <= garwood.low + 1e-12 and counted.high >= garwood.high - 1e-9


def test_none_in_ten_layouts_counts_layouts_not_missions() -> None:
    found = clustered.share(np.zeros(30), 1, LAYOUTS)
    exact = clopper_pearson(0, 10)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
    rate = clustered.rate(np.zeros(30), np.full(30, 0.1), LAYOUTS)
    assert (rate.low, rate.high) == pytest.approx((0.0, poisson_rate(0, 1.0, "hour").high))


def test_victims_found_are_a_ratio_of_sums() -> None:
    found, present = RNG.binomial(3, 0.5, 30).astype(float), np.full(30, 3.0)
    present[5], found[5] = 0.0, 0.0
    figure = clustered.share(found, present, LAYOUTS, unit="victims")
    assert figure.value == found.sum() / 87.0 and figure.n == 87
    assert figure.low < figure.value < figure.high


def test_a_quantile_of_few_is_by_order_statistics() -> None:
    values = RNG.permutation(40).astype(float)
    found, exact = clustered.quantile(values, 0.95), order_quantile(values.tolist(), 0.95)
    assert found.value == exact.value and found.low == exact.low and math.isnan(found.high)
    assert "no upper end: 40 effective values are too few" in found.notes


def test_victims_never_found_keep_a_quantile() -> None:
    values = ERRORS.copy()
    values[np.quantile(ERRORS, 0.6) < ERRORS] = math.inf
    found = clustered.quantile(values, 0.5, LAYOUTS)
    assert math.isfinite(found.value) and found.low < found.value < found.high


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.integers(0, 4)), min_size=1, max_size=40))
def test_the_restricted_mean_is_the_area_under_the_curve(cases: list[tuple[int, bool, int]]) -> None:
    times, seen = np.array([float(t) for t, _, _ in cases]), np.array([s for _, s, _ in cases])
    found = clustered.rmst(times, seen, 20.0, [layout for *_, layout in cases], Options(100))
    curve = kaplan_meier(times, seen)
    steps = curve.times <= 20.0
    edges = np.concatenate(([0.0], curve.times[steps], [20.0]))
    area = float((np.diff(edges) * np.concatenate(([1.0], curve.survival[steps]))).sum())
    assert found.value == pytest.approx(area)
    assert math.isnan(found.low) or found.low < found.high


@pytest.mark.parametrize("layouts", [[0], [0, 0, 0]])
def test_one_layout_says_nothing_about_others(layouts: list[int]) -> None:
    n = len(layouts)
    ones, some = np.ones(n), np.arange(1.0, n + 1)
    figures = {
        "share": (clustered.share(ones, 1, layouts), 0.0, 1.0),
        "rate": (clustered.rate(ones, ones, layouts), 0.0, math.nan),
        "mean": (clustered.mean(some, layouts, bounds=(0.0, 9.0)), 0.0, 9.0),
        "iqm": (clustered.iqm(some, layouts), math.nan, math.nan),
        "quantile": (clustered.quantile(some, 0.5, layouts), math.nan, math.nan),
        "rmst": (clustered.rmst(some, ones, 240.0, layouts), 0.0, 240.0),
    }
    for name, (found, low, high) in figures.items():
        assert (found.low, found.high) == pytest.approx((low, high), nan_ok=True), name
        assert found.notes == ("one layout: says nothing about any other",), name


@pytest.mark.parametrize("layouts", [LAYOUTS, None])
def test_where_nothing_varied_no_interval_is_without_width(layouts: list[int] | None) -> None:
    third = np.tile([1.0, 0.0, 0.0], 10)
    level, ones = np.full(30, 0.7), np.ones(30)
    for found in (
        clustered.share(third, 1, layouts),
        clustered.share(ones, 1, layouts),
        clustered.rate(third, ones, layouts),
        clustered.mean(level, layouts, bounds=(0.0, 1.0)),
        clustered.mean(level, layouts),
        clustered.iqm(level, layouts),
        clustered.quantile(level, 0.5, layouts),
        clustered.rmst(np.full(30, 240.0), np.zeros(30), 240.0, layouts),
    ):
        assert math.isnan(found.low) or found.low < found.high, found
        assert found.notes or found.resamples, found


def test_the_same_seed_gives_the_same_bits_and_another_does_not() -> None:
    first, again, other = (clustered.mean(ERRORS, LAYOUTS, Options(seed=s)) for s in (1, 1, 2))
    assert (first.low, first.high) == (again.low, again.high) != (other.low, other.high)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: clustered.share([2.0], [1.0]), "whole numbers from 0 up to the trials"),
        (lambda: clustered.share([0.0], [0.0]), "no trials in any of 1 missions"),
        (lambda: clustered.rate([0.5], [1.0]), "no whole numbers"),
        (lambda: clustered.rate([-1.0], [1.0]), "below 0"),
        (lambda: clustered.mean([math.inf], [0]), "infinite"),
        (lambda: clustered.mean([1.0, 2.0], [0]), "2 values and 1 layouts"),
        (lambda: clustered.quantile([1.0], 1.0), "quantile 1.0"),
        (lambda: clustered.rmst([1.0], [True], 0.0), "horizon 0.0"),
        (lambda: clustered.mean([1.0, 2.0], None, Options(10)), "10 resamples"),
    ],
)
def test_nonsense_is_refused(call: Callable[[], Interval], match: str) -> None:
    with pytest.raises(InputError, match=match):
        call()


def test_a_median_time_draws_layouts_again_and_censors_what_did_not_come() -> None:
    rng = np.random.default_rng(8)
    layouts = [k // 5 for k in range(60)]
    times = rng.exponential(80.0, 60) * rng.uniform(0.5, 1.5, 12)[np.array(layouts)]
    came = times <= 120.0
    found = clustered.median_time(np.minimum(times, 120.0), came, layouts, Options(4000))
    by_hand = []
    for _ in range(4000):
        drawn = rng.integers(0, 12, 12)
        rows = [5 * layout + k for layout in drawn for k in range(5)]
        by_hand.append(median_time(np.minimum(times, 120.0)[rows], came[rows]).value)
    assert found.value == median_time(np.minimum(times, 120.0), came).value
    assert "expanded percentile" in found.method and (found.cluster, found.resamples) == ("layout", 4000)
    tail = (1.0 - widened(units=12)) / 2.0
    below, above = np.mean(np.array(by_hand) < found.low), np.mean(np.array(by_hand) > found.high)
    assert below < tail + 0.006 and above < tail + 0.006, "as few by hand lie beyond either end"
    at = np.mean(np.array(by_hand) <= found.low), np.mean(np.array(by_hand) >= found.high)
    assert min(at) > tail - 0.006, "and no fewer than the tails hold"


def test_a_median_of_few_layouts_is_kaplan_meiers_on_what_they_are_worth() -> None:
    layouts = [k // 10 for k in range(40)]
    times = np.array([10.0 * (1 + layout) + 0.1 * k for k, layout in enumerate(layouts)])
    alone = clustered.median_time(times, np.ones(40, bool))
    shared = clustered.median_time(times, np.ones(40, bool), layouts)
    assert shared.method.startswith("Kaplan-Meier, log-log, on ") and shared.resamples is None
    assert math.isnan(shared.low) and math.isnan(shared.high), "four layouts cannot tell where a median lies"
    assert alone.low < alone.value < alone.high and alone.cluster == "mission"
    never = clustered.median_time([100.0] * 12, [False] * 12, list(range(12)))
    assert never.value == math.inf and any("median not reached" in note for note in never.notes)


def test_any_statistic_of_layouts_has_the_interval_of_its_resamples() -> None:
    groups = grouped(12, [k // 2 for k in range(12)])
    values = np.arange(12.0) ** 1.5
    found = clustered.drawn(lambda c: (c @ groups.totals(values)) / (2.0 * c.sum(axis=1)), groups, "mean", 12)
    resamples = [np.repeat(values.reshape(6, 2), row, axis=0).mean() for row in draws(6, 10_000, 0)]
    assert found.value == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx(expanded_percentile(np.array(resamples), 6, 0.95))
    assert (found.cluster, found.resamples, found.seed) == ("layout", 10_000, 0)


def test_a_statistic_that_a_resample_may_lack_is_anything_within_its_bounds() -> None:
    def lacking(counts: Counts) -> Array:
        return np.where(counts[:, 0] > 0, counts[:, 0] / 6.0, np.nan)

    found = clustered.drawn(lacking, grouped(6, None), "share", 6, bounds=(0.0, math.inf))
    assert found.low == 0.0 and math.isnan(found.high) and "resamples have no value" in found.notes[0]


@pytest.mark.parametrize(("layouts", "said"), [(10, True), (30, False)])
def test_means_of_few_layouts_say_that_they_fall_short(layouts: int, said: bool) -> None:
    """As the layout study found."""
    times = np.linspace(1.0, 300.0, 3 * layouts)
    of = [k % layouts for k in range(len(times))]
    mean, restricted = clustered.mean(times, of), clustered.rmst(times, times < 240.0, 240.0, of)
    assert clustered.falls_short(mean) is clustered.falls_short(restricted) is said
    told = [note for found in (mean, restricted) for note in found.notes]
    assert [note.split(" covers ")[1] for note in told] == (
        ["down to 92 %, not 95", "down to 88 %, not 95"] if said else []
    )
    assert clustered.falls_short(clustered.rate(np.arange(3 * layouts) % 2, 1, of)) is True
    assert not clustered.falls_short(clustered.rate(np.arange(300) % 2, 1, range(300)))
    assert not clustered.falls_short(clustered.rate(np.zeros(3 * layouts), 1, of))
    assert not clustered.falls_short(clustered.mean(np.ones(3 * layouts), of)), "nothing varied, and it says so"
    assert not clustered.falls_short(clustered.quantile(times, 0.5, of))


def test_a_calibration_error_weighs_bins_and_draws_layouts() -> None:
    said, right = np.array([0.2, 0.2, 0.9, 0.9] * 6), np.array([0.0, 1.0, 1.0, 1.0] * 5 + [0.0, 0.0, 1.0, 0.0])
    bins = (said * 10).astype(np.int64)
    found = clustered.calibration_error(said, right, bins, [k // 4 for k in range(24)], Options(2000))
    low, high = said < 0.5, said > 0.5
    gaps = [abs(said[own].sum() - right[own].sum()) for own in (low, high)]
    assert found.value == pytest.approx(sum(gaps) / 24.0)
    assert 0.0 <= found.low < found.high <= 1.0 and "lean upwards" in found.notes[-1]


def test_a_mixed_share_weighs_missions_and_of_even_numbers_is_the_share() -> None:
    """Twelve layouts, each with two missions of either side; then one of the four is lost in some of them."""
    rng = np.random.default_rng(5)
    layouts = np.repeat(np.arange(12), 4)
    side = np.tile([True, True, False, False], 12)
    trials = rng.integers(1, 5, 48)
    hits = np.where(side, rng.binomial(trials, 0.7), 0)
    even, plain = (
        f for f in (clustered.mixed_share(hits, trials, side, layouts), clustered.share(hits, trials, layouts))
    )
    assert (even.value, even.low, even.high, even.n) == pytest.approx((plain.value, plain.low, plain.high, plain.n))
    kept = np.array([k for k in range(48) if k % 4 or k % 3])
    some = clustered.mixed_share(hits[kept], trials[kept], side[kept], layouts[kept])
    y, d, one = hits[kept], trials[kept], side[kept]
    per = [(part[one].mean(), part[~one].mean()) for part in (y, d)]
    assert some.value == pytest.approx(sum(per[0]) / sum(per[1])) and some.low < some.value < some.high
    assert some.method == "bootstrap over layouts, expanded percentile" and some.cluster == "layout"


def test_a_mixed_share_that_is_rare_or_of_one_side_says_so() -> None:
    layouts, side = np.repeat(np.arange(8), 2), np.tile([True, False], 8)
    never = clustered.mixed_share(np.zeros(16), np.ones(16), side, layouts)
    assert never.value == never.low == 0.0 < never.high and never.method.startswith("Korn-Graubard")
    with pytest.raises(InputError, match="some of each"):
        clustered.mixed_share(np.ones(4), np.ones(4), np.ones(4))
    apart = clustered.mixed_share(
        [1, 1, 0, 1, 1, 0] * 4, [1] * 24, [True, True, True, False, False, False] * 4, range(24)
    )
    assert 0.0 < apart.low < apart.value < apart.high < 1.0, "resamples that lack a side are left out"
