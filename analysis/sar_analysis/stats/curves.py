"""Curves of missions that share layouts: a mean or a share at each of many places, with its interval place by place.

Each place is drawn and judged like the figure it is (clustered.py): a share where the layouts with or without are too
few is given by Korn and Graubard, a mean that does not vary by what unseen layouts may do. A curve's interval holds at
one place, not at all at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_analysis.stats.effective import korn_graubard
from sar_analysis.stats.interval import Array, Cluster, expanded_tail
from sar_analysis.stats.layouts import DEFAULT, LEAST_LAYOUTS, Groups, Layouts, Options, draws, grouped
from sar_analysis.stats.rates import beta_ends

BOOTSTRAP = "expanded percentile, at each place"
ONE = "none: all that is possible"


@dataclass(frozen=True)
class Curve:
    """Ends (places,), and how they were made."""

    low: Array
    high: Array
    method: str
    cluster: Cluster
    resamples: int
    seed: int
    notes: tuple[str, ...]

    @property
    def made(self) -> dict[str, Any]:
        """As documents hold it."""
        how = {"method": self.method, "cluster": self.cluster, "resamples": self.resamples, "seed": self.seed}
        return {**how, "notes": list(self.notes)}


def shares(hits: NDArray[np.bool_], layouts: Layouts, options: Options = DEFAULT) -> Curve:
    """Of entries by place (n, places): the share of entries that hit."""
    groups = grouped(len(hits), layouts)
    events, sizes = _totals(groups, hits.astype(np.float64)), groups.totals(np.ones(len(hits)))
    low, high = np.zeros(hits.shape[1]), np.ones(hits.shape[1])
    if groups.count < 2:
        return _one(groups, low, high, options)
    few = np.minimum((events > 0).sum(axis=0), (events < sizes[:, None]).sum(axis=0)) < LEAST_LAYOUTS
    low[~few], high[~few] = _ends(groups, events[:, ~few], sizes, options)
    for place in np.flatnonzero(few):
        low[place], high[place] = korn_graubard(events[:, place], sizes, options.confidence)
    rare = f"Korn-Graubard at {int(few.sum())} of {len(few)} places, where fewer than {LEAST_LAYOUTS} layouts differ"
    return _made(groups, low, high, options, (rare,) if few.any() else ())


def means(
    values: Array, layouts: Layouts, options: Options = DEFAULT, bounds: tuple[float, float] = (0.0, 1.0)
) -> Curve:
    """Of entries by place (n, places): the mean of the entries; ``bounds`` is what no value can be beyond."""
    groups = grouped(len(values), layouts)
    places = values.shape[1]
    if groups.count < 2:
        return _one(groups, np.full(places, float(bounds[0])), np.full(places, float(bounds[1])), options)
    low, high = _ends(groups, _totals(groups, values), groups.totals(np.ones(len(values))), options)
    same, value = low == high, values.mean(axis=0)
    unseen = float(beta_ends(0.0, groups.count, options.confidence)[1])
    low[same], high[same] = ((value + unseen * (bound - value))[same] for bound in bounds)
    told = f"nothing varied at {int(same.sum())} of {places} places: ends by the rule of layouts not seen"
    return _made(groups, low, high, options, (told,) if same.any() else ())


def _totals(groups: Groups, values: Array) -> Array:
    """Sums of entries (n, places) by layout (layouts, places)."""
    found = np.zeros((groups.count, values.shape[1]))
    np.add.at(found, groups.of, values)
    return found


def _ends(groups: Groups, totals: Array, sizes: Array, options: Options) -> tuple[Array, Array]:
    """Expanded percentiles of totals (layouts, places) over sizes (layouts,) of every resample."""
    counts = draws(groups.count, options.resamples, options.seed).T.astype(np.float64)
    drawn = np.ascontiguousarray(totals.T) @ counts
    drawn /= sizes @ counts
    tail = expanded_tail(groups.count, options.confidence)
    low, high = np.quantile(drawn, (tail, 1.0 - tail), axis=1, overwrite_input=True)
    return low, high


def _made(groups: Groups, low: Array, high: Array, options: Options, notes: tuple[str, ...]) -> Curve:
    method = f"bootstrap over {groups.plural}, {BOOTSTRAP}"
    return Curve(low, high, method, groups.cluster, options.resamples, options.seed, (*groups.few, *notes))


def _one(groups: Groups, low: Array, high: Array, options: Options) -> Curve:
    told = f"one {groups.cluster}: says nothing about any other"
    return Curve(low, high, ONE, groups.cluster, options.resamples, options.seed, (told,))
