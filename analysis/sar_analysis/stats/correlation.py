"""Rank correlations with whole layouts drawn again: of what was looked at, and of what items came to in two ways."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sar_analysis.stats.designs import CELLS_PER_CHUNK
from sar_analysis.stats.interval import Array, Interval, expanded_percentile
from sar_analysis.stats.layouts import DEFAULT, Options, draws
from sar_core.errors import InputError

LEAST_PAIRS = 3


def spearman(
    first: ArrayLike, second: ArrayLike, layouts: Sequence[Hashable], options: Options = DEFAULT, unit: str = "looks"
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
    drawn = None
    if len(names) > 1:
        step = max(1, CELLS_PER_CHUNK // x.size)
        counts = draws(len(names), options.resamples, options.seed)
        parts = [_rhos(counts[at : at + step, of].astype(np.float64), x, y) for at in range(0, len(counts), step)]
        drawn = np.concatenate(parts)
    return _interval(value, drawn, len(names), options, f"Spearman correlation of {unit}", x.size, unit)


def kendall(first: Array, second: Array, sizes: Array, options: Options = DEFAULT) -> Interval | None:
    """Kendall's tau-b of how two ways rank the items by their means; None below two items or where a way has only ties.

    All (layouts, items): sums by the first way, by the second, and of how many missions. Means are ranked to nine
    digits; an item that a resample lacks leaves that resample out.
    """

    def taus(counts: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            ways = (np.round(counts @ sums / (counts @ sizes), 9) for sums in (first, second))
        return kendall_taus(*ways)

    value = float(taus(np.ones((1, len(sizes))))[0])
    if not math.isfinite(value):
        return None
    drawn = taus(draws(len(sizes), options.resamples, options.seed).astype(np.float64)) if len(sizes) > 1 else None
    items = sizes.shape[1]
    return _interval(value, drawn, len(sizes), options, "Kendall's tau of patterns", items, "patterns")


def kendall_taus(first: Array, second: Array) -> Array:
    """Tau-b of each row of two rankings (rows, items) (Kendall 1945); NaN where a side is all ties or lacks an item."""
    one, other = np.triu_indices(first.shape[1], 1)
    a, b = (np.sign(side[:, one] - side[:, other]) for side in (first, second))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((a * b).sum(axis=1) / np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1)))


def _interval(
    value: float, drawn: Array | None, layouts: int, options: Options, estimand: str, n: int, unit: str
) -> Interval:
    """By expanded percentiles of the resamples that had a correlation; none of one layout, nor without width."""
    low = high = math.nan
    notes: tuple[str, ...] = ("one layout: says nothing about any other",)
    if drawn is not None:
        left = drawn[np.isfinite(drawn)]
        lost = len(drawn) - len(left)
        notes = (f"{lost} of {len(drawn)} resamples had no spread and are left out",) if lost else ()
        if len(left):
            low, high = expanded_percentile(left, layouts, options.confidence)
        if low == high:
            low = high = math.nan
            notes = (*notes, "all resamples are alike: no interval")
    return Interval(
        value,
        low,
        high,
        options.confidence,
        "bootstrap over layouts, expanded percentile",
        f"{estimand}, on new layouts",
        options.resamples,
        options.seed,
        notes,
        n,
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
