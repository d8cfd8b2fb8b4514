"""Statistics of a resample, many resamples at a time.

A resample is a row of counts: how often each cell of the (seeds, episodes) table was drawn. So no resample is ever
written out or sorted: the cells are sorted once, and a resample's quantiles are found by walking its counts in order.
The same functions give the value itself (all counts 1) and the jackknife (the counts of a left-out unit 0). A resample
that drew nothing has no value: NaN, which whoever draws must refuse.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sar_analysis.stats.scores import Array, Scores
from sar_core.compiled import compiled
from sar_core.errors import InputError

Counts = NDArray[np.uint16]
Statistic = Callable[[Counts], Array]


def iqm_of(scores: Scores) -> Statistic:
    """Interquartile mean: counts (resamples, cells) to (resamples,)."""
    cells = finite_cells(scores, "the IQM")
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    return lambda counts: trimmed_means(counts, order, ordered)


def mean_of(scores: Scores) -> Statistic:
    """Plain mean: counts (resamples, cells) to (resamples,)."""
    cells = finite_cells(scores, "the mean")

    def means(counts: Counts) -> Array:
        totals = counts.sum(axis=1, dtype=np.float64)
        found = np.full(len(counts), np.nan)
        np.divide(counts @ cells, totals, out=found, where=totals > 0.0)
        return found

    return means


def quantile_of(scores: Scores, q: float) -> Statistic:
    """Quantile with numpy's linear rule, such as CEP50 (q = 0.5); inf where it falls among the infinite errors."""
    if not 0.0 <= q <= 1.0:
        raise InputError(f"{scores.metric}: quantile {q}; allowed: 0 to 1")
    cells = scores.values.ravel()
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    return lambda counts: _quantiles(counts, order, ordered, q)


def mean_iqm_of_levels(scores: Scores) -> Statistic:
    """The mean over noise levels of each level's own IQM: every level keeps its say."""
    seeds, episodes = scores.values.shape
    parts = []
    for level in scores.level_names:
        columns = [e for e in range(episodes) if scores.levels[e] == level]
        cells = (np.arange(seeds)[:, None] * episodes + columns).ravel()
        parts.append((cells, iqm_of(scores.on(columns))))
    return lambda counts: np.mean([part(np.ascontiguousarray(counts[:, cells])) for cells, part in parts], axis=0)


def difference_of(first: Statistic, second: Statistic) -> Statistic:
    """First minus second on the same resamples, which is what pairs two conditions by (seed, episode)."""
    return lambda counts: first(counts) - second(counts)


def finite_cells(scores: Scores, what: str) -> Array:
    """The table as one row of cells; refused when an infinite value would make ``what`` infinite or undefined."""
    cells = scores.values.ravel()
    if np.isinf(cells).any():
        raise InputError(
            f"{scores.metric}: {int(np.isinf(cells).sum())} of {cells.size} values are infinite and {what} needs "
            "finite ones; allowed: a quantile, a profile or a survival median"
        )
    return cells


@compiled
def trimmed_means(counts: Counts, order: NDArray[np.intp], ordered: Array) -> Array:
    """Mean of the middle half of each resample; ``ordered`` are the cells ascending, ``order`` their places in counts.

    Cells that are drawn together share a place.
    """
    means = np.empty(len(counts))
    for b in range(len(counts)):
        total = 0
        for i in range(len(order)):
            total += counts[b, order[i]]
        if total == 0:
            means[b] = np.nan
            continue
        low = total // 4
        high = total - low
        seen = 0
        i = -1
        while seen <= low:
            i += 1
            seen += counts[b, order[i]]
        middle = min(seen, high) - low
        acc = middle * ordered[i]
        while seen < high:
            i += 1
            drawn = counts[b, order[i]]
            seen += drawn
            acc += drawn * ordered[i]
        if seen > high and middle < high - low:
            acc -= (seen - high) * ordered[i]
        means[b] = acc / (high - low)
    return means


@compiled
def _quantiles(counts: Counts, order: NDArray[np.intp], ordered: Array, q: float) -> Array:
    """numpy's linear quantile of each resample: between the floor and the ceiling of place (n - 1) q."""
    found = np.empty(len(counts))
    for b in range(len(counts)):
        total = 0
        for i in range(len(order)):
            total += counts[b, order[i]]
        if total == 0:
            found[b] = np.nan
            continue
        place = (total - 1) * q
        below = int(place)
        seen = 0
        i = -1
        while seen <= below:
            i += 1
            seen += counts[b, order[i]]
        left = ordered[i]
        while seen <= below + 1 and seen < total:
            i += 1
            seen += counts[b, order[i]]
        share = place - below
        found[b] = left if share == 0.0 or ordered[i] == left else left + share * (ordered[i] - left)
    return found


@compiled
def order_quantiles(counts: Counts, order: NDArray[np.intp], ordered: Array, q: float) -> Array:
    """The smallest value of each resample with at least a share q at or below it; never between two values."""
    found = np.empty(len(counts))
    for b in range(len(counts)):
        total = 0
        for i in range(len(order)):
            total += counts[b, order[i]]
        if total == 0:
            found[b] = np.nan
            continue
        rank = max(np.ceil(q * total), 1.0)
        seen = 0
        i = -1
        while seen < rank:
            i += 1
            seen += counts[b, order[i]]
        found[b] = ordered[i]
    return found


@compiled
def censored_medians(
    counts: Counts, order: NDArray[np.intp], ordered: Array, observed: NDArray[np.bool_], half: float
) -> Array:
    """First time at which each resample's product-limit curve is down to ``half``, inf where never; order as below."""
    found = np.empty(len(counts))
    for b in range(len(counts)):
        at_risk = 0.0
        for i in range(len(order)):
            at_risk += counts[b, order[i]]
        found[b] = np.nan if at_risk == 0.0 else np.inf
        survival = 1.0
        for i in range(len(order)):
            drawn = counts[b, order[i]]
            if drawn == 0:
                continue
            if observed[i]:
                survival *= 1.0 - drawn / at_risk
                if survival <= half:
                    found[b] = ordered[i]
                    break
            at_risk -= drawn
    return found


@compiled
def restricted_means(
    counts: Counts, order: NDArray[np.intp], ordered: Array, observed: NDArray[np.bool_], horizon: float
) -> Array:
    """Area under each resample's product-limit curve up to the horizon; of equal times events stand first."""
    found = np.empty(len(counts))
    for b in range(len(counts)):
        at_risk = 0.0
        for i in range(len(order)):
            at_risk += counts[b, order[i]]
        if at_risk == 0.0:
            found[b] = np.nan
            continue
        area, survival, before = 0.0, 1.0, 0.0
        for i in range(len(order)):
            drawn = counts[b, order[i]]
            if drawn == 0:
                continue
            area += survival * (ordered[i] - before)
            before = ordered[i]
            if observed[i]:
                survival *= 1.0 - drawn / at_risk
            at_risk -= drawn
        found[b] = area + survival * (horizon - before)
    return found
