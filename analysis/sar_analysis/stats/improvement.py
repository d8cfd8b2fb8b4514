"""P(X > Y) between two conditions whose runs do not pair: other training seeds, or another number of them."""

from __future__ import annotations

import dataclasses

import numpy as np

from sar_analysis.stats.aggregate import probability_of_improvement, wins
from sar_analysis.stats.designs import CELLS_PER_CHUNK, CLUSTERS, ESTIMANDS, Design, check_design, sampler
from sar_analysis.stats.interval import Interval, Reading, percentile
from sar_analysis.stats.resampling import RESAMPLES, bootstrap, check_paired, check_resamples, flags_of
from sar_analysis.stats.scores import Array, Scores, listed
from sar_analysis.stats.statistics import Counts, mean_of
from sar_core.errors import InputError
from sar_core.streams import stream

UNPAIRED: tuple[Design, ...] = ("seeds", "stratified")


def improvement(
    first: Scores,
    second: Scores,
    design: Design = "seeds",
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = 0.95,
) -> Interval:
    """P(first > second) over every pair of runs of an episode, ties half; the two sides are resampled apart.

    ``stratified`` draws each episode's runs on their own, as rliable does; ``seeds`` keeps a seed's episodes together.
    """
    if design not in UNPAIRED:
        raise InputError(f"{first.metric}: design {design!r} for runs that do not pair; allowed: {listed(UNPAIRED)}")
    if first.episodes != second.episodes:
        raise InputError(f"{first.metric} against {second.metric}: other episodes; allowed: the same on both sides")
    check_resamples(first, resamples)
    for side in (first, second):
        check_design(side, design)
    table = wins(first.values.T[:, :, None], second.values.T[:, None, :])
    draw_x, draw_y = sampler(first, design), sampler(second, design)
    rng = stream(f"bootstrap improvement {design}", seed)
    step = max(1, CELLS_PER_CHUNK // max(first.values.size, second.values.size))
    found = np.empty(resamples)
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        found[start : start + count] = _resampled(table, draw_x(rng, count), draw_y(rng, count))
    low, high = percentile(found, confidence)
    value = probability_of_improvement(first.values, second.values)
    fewest = min(first, second, key=lambda side: len(side.seeds))
    notes = tuple(
        dict.fromkeys((*first.notes, *second.notes, *flags_of(fewest.values, design, "percentile", low, high)))
    )
    estimand = f"P(improvement), runs not paired: {ESTIMANDS[design]}"
    method, n = f"{design} bootstrap, percentile", first.values.size + second.values.size
    return Interval(
        value, low, high, confidence, method, estimand, resamples, seed, notes, n, "missions", CLUSTERS[design]
    )


def paired_improvement(
    first: Scores,
    second: Scores,
    design: Design = "seeds",
    reading: Reading = "percentile",
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = 0.95,
) -> Interval:
    """P(first > second) on the same seed and episode, ties half."""
    check_paired(first, second)
    notes = tuple(dict.fromkeys((*first.notes, *second.notes)))
    table = dataclasses.replace(first, values=wins(first.values, second.values), notes=notes)
    interval = bootstrap(table, mean_of, design, reading, resamples, seed, confidence)
    return dataclasses.replace(interval, estimand=f"P(improvement), paired by seed and episode: {interval.estimand}")


def _resampled(table: Array, left: Counts, right: Counts) -> Array:
    """P of each resample from wins (episodes, runs_x, runs_y) and counts (resamples, cells) of either side."""
    episodes, runs_x, runs_y = table.shape
    x = left.reshape(-1, runs_x, episodes).transpose(2, 0, 1).astype(np.float64)
    y = right.reshape(-1, runs_y, episodes).transpose(2, 0, 1)
    return np.asarray(((x @ table) * y).sum(axis=(0, 2)) / table.size)
