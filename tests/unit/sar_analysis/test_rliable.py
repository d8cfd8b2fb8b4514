"""Our aggregates and stratified intervals against rliable's own code on the same fixtures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sar_analysis.stats import aggregate
from sar_analysis.stats.improvement import improvement
from sar_analysis.stats.profiles import profile_band
from sar_analysis.stats.resampling import bootstrap
from sar_analysis.stats.scores import Scores, of_matrix
from sar_analysis.stats.statistics import Statistic, iqm_of, mean_of

REASON = "rliable is the oracle of these tests; get it with: pip install 'sar-eval[oracle]'"
library = pytest.importorskip("rliable.library", reason=REASON)
metrics = pytest.importorskip("rliable.metrics", reason=REASON)

RESAMPLES = 50_000
# The endpoints of two 95 % intervals of 50,000 resamples each differ by 0.0045 widths (one standard deviation:
# sqrt(2 * 0.025 * 0.975 / 50000) / phi(1.96) / 3.92); 4.5 of them.
MONTE_CARLO = 0.02


def fixtures() -> list[np.ndarray]:
    """Tables with seed and episode effects, ties, one run per task and sizes that four does not divide."""
    rng = np.random.default_rng(5)
    crossed = rng.normal(size=(10, 1)) + 2.0 * rng.normal(size=(1, 50)) + rng.normal(size=(10, 50))
    return [
        crossed,
        rng.integers(0, 3, (10, 50)).astype(float),
        rng.exponential(size=(3, 7)),
        rng.normal(size=(1, 5)),
        np.zeros((4, 4)),
    ]


@pytest.mark.parametrize("scores", fixtures(), ids=lambda s: f"{s.shape[0]}x{s.shape[1]}")
def test_values_agree(scores: np.ndarray) -> None:
    assert aggregate.iqm(scores) == pytest.approx(metrics.aggregate_iqm(scores), abs=1e-12)
    for gamma in (1.0, -0.5):
        expected = metrics.aggregate_optimality_gap(scores, gamma)
        assert aggregate.optimality_gap(scores, gamma) == pytest.approx(expected, abs=1e-12)
    other = scores[::-1, :] + 0.25 * (np.arange(scores.shape[1]) % 2)
    for x, y in ((scores, other), (other, scores), (scores, scores)):
        expected = metrics.probability_of_improvement(x, y)
        assert aggregate.probability_of_improvement(x, y) == pytest.approx(expected, abs=1e-12)
    taus = np.linspace(-1.0, 3.0, 41)
    expected = library.score_distributions(-scores, -taus)
    np.testing.assert_allclose(aggregate.performance_profile(scores, taus), expected, atol=1e-12)


def gap_of(scores: Scores) -> Statistic:
    """The optimality gap at 1 as the mean of the shortfalls."""
    return mean_of(of_matrix("gap", aggregate.shortfall(scores.values)))


def rliables(scores: Any, function: Callable[..., float], reps: int) -> tuple[float, float]:
    """The stratified percentile interval; rliable draws from numpy's global generator."""
    np.random.seed(1)
    _, found = library.get_interval_estimates({"a": scores}, lambda *s: np.array([function(*s)]), reps=reps)
    return float(found["a"][0, 0]), float(found["a"][1, 0])


@pytest.mark.parametrize(
    ("make", "function"),
    [(iqm_of, metrics.aggregate_iqm), (gap_of, metrics.aggregate_optimality_gap)],
    ids=["iqm", "optimality gap"],
)
def test_stratified_intervals_agree(make: Callable[[Scores], Statistic], function: Callable[..., float]) -> None:
    scores = fixtures()[0]
    low, high = rliables(scores, function, RESAMPLES)
    ours = bootstrap(of_matrix("return", scores), make, "stratified", resamples=RESAMPLES)
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=MONTE_CARLO * (high - low))
    seeds = bootstrap(of_matrix("return", scores), make, "seeds", resamples=RESAMPLES)
    assert seeds.high - seeds.low > 1.5 * (high - low), "the fixture must tell the designs apart"


def test_profile_bands_agree() -> None:
    scores, taus = fixtures()[0], np.linspace(-3.0, 3.0, 7)
    np.random.seed(2)
    fraction, ends = library.create_performance_profile({"a": -scores}, -taus, reps=2000)
    ours = profile_band(of_matrix("error_m", scores), taus, "stratified")
    np.testing.assert_allclose(ours.fraction, fraction["a"], atol=1e-12)
    np.testing.assert_allclose([ours.low, ours.high], ends["a"], atol=2.0 / scores.size)


@pytest.mark.slow
def test_intervals_of_improvement_agree() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 9, (6, 8)).astype(float), rng.integers(0, 8, (9, 8)).astype(float)
    reps = 2000
    low, high = rliables([x, y], metrics.probability_of_improvement, reps)
    ours = improvement(of_matrix("x", x), of_matrix("y", y), "stratified", resamples=RESAMPLES)
    assert ours.value == pytest.approx(metrics.probability_of_improvement(x, y), abs=1e-12)
    wider = MONTE_CARLO * np.sqrt(0.5 * (1.0 + RESAMPLES / reps))
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=wider * (high - low))
