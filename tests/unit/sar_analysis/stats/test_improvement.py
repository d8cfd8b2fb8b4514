"""The chance to be better: paired, or with both sides drawn apart."""

from __future__ import annotations

import numpy as np
import pytest

from sar_analysis.stats.aggregate import probability_of_improvement
from sar_analysis.stats.designs import Design
from sar_analysis.stats.improvement import improvement, paired_improvement
from sar_analysis.stats.scores import of_matrix
from tests.unit.sar_analysis.stats.madescores import crossed


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
