"""Several comparisons at once: what each claim still means when many were tried."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sar_analysis.aggregate import checked
from sar_analysis.scores import Array
from sar_core.errors import InputError

MOST_SEEDS = 20


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


def sign_flip_p(seed_differences: Sequence[float] | Array) -> float:
    """Two-sided exact p of a mean paired difference: the share of all sign flips at least as extreme (Fisher 1935).

    One difference per seed, because seeds are what varies independently. With n seeds no p is below 2 / 2^n.
    """
    d = checked(seed_differences, "sign flip test").ravel()
    if d.size > MOST_SEEDS:
        raise InputError(f"sign flip test: {d.size} seeds; allowed: up to {MOST_SEEDS} (all 2^n flips are counted)")
    sums = np.zeros(1)
    for difference in d:
        sums = np.concatenate((sums + difference, sums - difference))
    observed = abs(d.sum())
    return float((np.abs(sums) >= observed * (1.0 - 1e-12)).mean())


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
