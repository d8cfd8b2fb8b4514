"""Rank correlation of what was looked at several times in the same layouts: whole layouts are drawn again."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sar_analysis.stats.designs import CELLS_PER_CHUNK
from sar_analysis.stats.interval import Array, Interval, expanded_percentile
from sar_analysis.stats.layouts import Options, draws
from sar_core.errors import InputError

RANKS = Options(resamples=1000)
LEAST_PAIRS = 3


def spearman(
    first: ArrayLike, second: ArrayLike, layouts: Sequence[Hashable], options: Options = RANKS, unit: str = "looks"
) -> Interval | None:
    """Spearman's rho of pairs (n,), tied values sharing their mean rank; None for fewer than three, or where either
    never varies.

    Ranks are taken anew in every resample. One layout says nothing about others: no ends.
    """
    x, y = np.asarray(first, np.float64).ravel(), np.asarray(second, np.float64).ravel()
    if not x.size == y.size == len(layouts) or np.isnan(x).any() or np.isnan(y).any():
        raise InputError(
            f"rank correlation: {x.size} and {y.size} values, {len(layouts)} layouts; allowed: as many of each, no NaN"
        )
    if x.size < LEAST_PAIRS or (x == x[0]).all() or (y == y[0]).all():
        return None
    names = {name: k for k, name in enumerate(dict.fromkeys(layouts))}
    of = np.array([names[name] for name in layouts], dtype=np.intp)
    value = float(_rhos(np.ones((1, x.size)), x, y)[0])
    low = high = math.nan
    if len(names) < 2:
        notes: tuple[str, ...] = ("one layout: says nothing about any other",)
    else:
        step = max(1, CELLS_PER_CHUNK // x.size)
        counts = draws(len(names), options.resamples, options.seed)
        parts = [_rhos(counts[at : at + step, of].astype(np.float64), x, y) for at in range(0, len(counts), step)]
        found = np.concatenate(parts)
        left = found[np.isfinite(found)]
        lost = len(found) - len(left)
        notes = (f"{lost} of {len(found)} resamples had no spread and are left out",) if lost else ()
        if len(left):
            low, high = expanded_percentile(left, len(names), options.confidence)
    return Interval(
        value,
        low,
        high,
        options.confidence,
        "bootstrap over layouts, expanded percentile",
        f"Spearman correlation of {unit}, on new layouts",
        options.resamples,
        options.seed,
        notes,
        x.size,
        unit,
        "layout",
    )


def _rhos(counts: Array, x: Array, y: Array) -> Array:
    """Rho of every resample: counts (resamples, n) say how often each pair was drawn; NaN without spread."""
    total = counts.sum(axis=1, keepdims=True)
    a, b = (_ranks(counts, values) - 0.5 * (total + 1.0) for values in (x, y))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(
            np.sum(counts * a * b, axis=1) / np.sqrt(np.sum(counts * a * a, axis=1) * np.sum(counts * b * b, axis=1))
        )


def _ranks(counts: Array, values: Array) -> Array:
    """Mean rank of each value in each resample (resamples, n); their mean is (total + 1) / 2."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    alike = np.add.reduceat(counts[:, order], starts, axis=1)
    ranks = np.cumsum(alike, axis=1) - alike + 0.5 * (alike + 1.0)
    place: NDArray[np.intp] = np.empty(len(values), np.intp)
    place[order] = np.repeat(np.arange(len(starts)), np.diff([*starts, len(values)]))
    return np.asarray(ranks[:, place])
