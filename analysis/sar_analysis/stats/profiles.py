"""Performance profiles with a band: what fraction of missions stays below each error, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sar_analysis.stats.aggregate import checked, performance_profile
from sar_analysis.stats.designs import CELLS_PER_CHUNK, ESTIMANDS, Design, check_design, sampler
from sar_analysis.stats.interval import check_confidence
from sar_analysis.stats.resampling import RESAMPLES, check_resamples, flags_of
from sar_analysis.stats.scores import Array, Scores
from sar_core.errors import InputError
from sar_core.streams import stream


@dataclass(frozen=True)
class Profile:
    """Fractions below each tau, all arrays (taus,); the band is pointwise: it holds at one tau, not at all at once."""

    taus: Array
    fraction: Array
    low: Array
    high: Array
    confidence: float
    method: str
    estimand: str
    resamples: int
    seed: int
    notes: tuple[str, ...]


def profile_band(
    scores: Scores,
    taus: ArrayLike,
    design: Design = "seeds",
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = 0.95,
) -> Profile:
    """The profile of a table of errors with its percentile band; an undetected victim is inf and below no tau."""
    check_design(scores, design)
    check_confidence(confidence)
    check_resamples(scores, resamples)
    levels = checked(taus, "tau").ravel()
    if (np.diff(levels) <= 0.0).any():
        raise InputError(f"{scores.metric}: taus do not increase; allowed: each above the one before")
    below = (scores.values.ravel()[:, None] < levels).astype(np.float64)
    found = _resampled(scores, below, design, resamples, seed)
    tail = 0.5 * (1.0 - confidence)
    low, high = np.quantile(found, (tail, 1.0 - tail), axis=0)
    notes = (*scores.notes, *flags_of(scores.values, design, "percentile", float(low.min()), float(high.max())))
    return Profile(
        levels,
        performance_profile(scores.values, levels),
        low,
        high,
        confidence,
        f"{design} bootstrap, percentile, pointwise",
        ESTIMANDS[design],
        resamples,
        seed,
        notes,
    )


def _resampled(scores: Scores, below: Array, design: Design, resamples: int, seed: int) -> Array:
    """Fractions (resamples, taus) from indicators (cells, taus), chunk by chunk."""
    rng, draw = stream(f"bootstrap profile {design}", seed), sampler(scores, design)
    step = max(1, CELLS_PER_CHUNK // scores.values.size)
    found = np.empty((resamples, below.shape[1]))
    for start in range(0, resamples, step):
        counts = draw(rng, min(step, resamples - start))
        found[start : start + len(counts)] = (counts @ below) / scores.values.size
    return found
