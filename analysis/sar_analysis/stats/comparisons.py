"""Several comparisons at once: what each claim still means when many were tried."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sar_analysis.stats.aggregate import checked
from sar_analysis.stats.scores import Array
from sar_core.errors import InputError
from sar_core.streams import stream

MOST_SEEDS = 20
"""Up to so many seeds all 2^n flips are counted."""
FLIPS = 100_000
"""How many are drawn above."""


def holm(p_values: ArrayLike) -> Array:
    """Adjusted p-values in the order given; those below alpha are rejected with familywise error alpha (Holm 1979)."""
    p = checked(p_values, "holm").ravel()
    if ((p < 0.0) | (p > 1.0)).any():
        raise InputError(f"holm: p-values from {p.min():g} to {p.max():g}; allowed: 0 to 1")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def simultaneous_confidence(comparisons: int, confidence: float = 0.95) -> float:
    """The confidence each of several intervals needs so that all hold together with ``confidence`` (Bonferroni)."""
    if comparisons < 1:
        raise InputError(f"simultaneous confidence: {comparisons} comparisons; allowed: at least 1")
    return 1.0 - (1.0 - confidence) / comparisons


def sign_flip_p(seed_differences: Sequence[float] | Array, seed: int = 0) -> float:
    """Two-sided p of a mean paired difference: the share of sign flips at least as extreme (Fisher 1935).

    One difference per seed, because seeds are what varies independently. Up to MOST_SEEDS seeds all flips are counted;
    above, FLIPS of them are drawn and the observed signs counted with them, so that p is never 0 (Phipson & Smyth
    2010).
    """
    d = checked(seed_differences, "sign flip test").ravel()
    observed = abs(d.sum()) * (1.0 - 1e-12)
    if d.size > MOST_SEEDS:
        signs = 2.0 * stream("sign flips", seed).integers(0, 2, size=(FLIPS, d.size), dtype=np.int8) - 1.0
        return float((1 + (np.abs(signs @ d) >= observed).sum()) / (1 + FLIPS))
    sums = np.zeros(1)
    for difference in d:
        sums = np.concatenate((sums + difference, sums - difference))
    return float((np.abs(sums) >= observed).mean())


def least_p(seeds: int) -> float:
    """The smallest p the sign-flip test can give, whatever the difference."""
    return 2.0 / 2.0**seeds if seeds <= MOST_SEEDS else 1.0 / (1 + FLIPS)


def flip_test(seeds: int, seed: int = 0) -> str:
    """The test in words."""
    if seeds <= MOST_SEEDS:
        return "exact sign-flip test over seeds"
    return f"sign-flip test over seeds, {FLIPS} flips drawn with seed {seed}"


def comparisons_note(comparisons: int, confidence: float = 0.95) -> str:
    """The sentence under a table with several comparisons; empty when there is only one."""
    if comparisons < 2:
        return ""
    each = simultaneous_confidence(comparisons, confidence)
    return (
        f"{comparisons} comparisons, each at {100 * confidence:g} %: up to {comparisons * (1 - confidence):.2g} are "
        f"expected to miss by chance. For all to hold together each interval needs {100 * each:.4g} %; p-values are "
        "Holm-adjusted."
    )
