"""Aggregates over a (seeds, episodes) matrix of scores: what a row of the table says before any interval.

IQM, optimality gap, probability of improvement and performance profiles are those of Agarwal et al. 2021 (Deep
Reinforcement Learning at the Edge of the Statistical Precipice, section 4). All refuse values that are not numbers.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import ArrayLike

from sar_analysis.stats.scores import Array, Scores
from sar_core.errors import InputError


def checked(scores: ArrayLike, what: str) -> Array:
    """The scores as floats; refused when empty or NaN, because every aggregate would pass the NaN on or hide it."""
    array = np.asarray(scores, dtype=np.float64)
    if array.size == 0:
        raise InputError(f"{what}: no scores; at least one is needed")
    if np.isnan(array).any():
        raise InputError(f"{what}: {int(np.isnan(array).sum())} of {array.size} scores are NaN; allowed: numbers")
    return array


def iqm(scores: ArrayLike) -> float:
    """Mean of the middle half of all scores: floor(n/4) are cut at either end (Agarwal 2021; not the middle's median).

    Below four scores nothing is cut and this is the plain mean.
    """
    flat = checked(scores, "iqm").ravel()
    cut = flat.size // 4
    return float(np.partition(flat, (cut, flat.size - cut - 1))[cut : flat.size - cut].mean())


def iqm_per_level(scores: Scores) -> dict[Hashable, float]:
    """The IQM of each noise level apart; the pooled one trims the easiest and the hardest level away."""
    return {level: iqm(scores.at_level(level).values) for level in scores.level_names}


def optimality_gap(scores: ArrayLike, reference: ArrayLike = 1.0) -> float:
    """Mean shortfall below the reference; a score beyond it counts as reaching it (Agarwal 2021, section 4.3).

    ``reference`` is one number or broadcasts against (seeds, episodes), such as an oracle's return per episode.
    """
    return float(shortfall(scores, reference).mean())


def shortfall(scores: ArrayLike, reference: ArrayLike = 1.0) -> Array:
    """How far each score stays below the reference, 0 where it does not: the table whose mean is the optimality gap."""
    return np.asarray(np.maximum(checked(reference, "reference") - checked(scores, "optimality gap"), 0.0))


def wins(x: ArrayLike, y: ArrayLike) -> Array:
    """1 where x beats y, one half where they tie, 0 where it loses; higher is better; shapes broadcast."""
    a, b = checked(x, "x"), checked(y, "y")
    return np.asarray((a > b) + 0.5 * (a == b), dtype=np.float64)


def probability_of_improvement(x: ArrayLike, y: ArrayLike) -> float:
    """P(X > Y), ties half, over every pair of runs of a task, averaged over tasks (Agarwal 2021, eq. 1).

    ``x`` (runs_x, tasks) and ``y`` (runs_y, tasks): the runs are independent and need not be equally many.
    """
    a, b = checked(x, "x"), checked(y, "y")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise InputError(
            f"probability of improvement: shapes {a.shape} and {b.shape}; allowed: (runs, tasks), same tasks"
        )
    return float(wins(a[:, None, :], b[None, :, :]).mean())


def performance_profile(errors: ArrayLike, taus: ArrayLike) -> Array:
    """The fraction of errors below each tau, shape of ``taus``; an undetected victim is an error of inf.

    Agarwal 2021, section 4.2 counts scores above tau; an error is better when smaller, so here it is below.
    """
    ordered = np.sort(checked(errors, "performance profile").ravel())
    return np.asarray(np.searchsorted(ordered, checked(taus, "tau"), side="left") / ordered.size, dtype=np.float64)
