"""Bootstrap intervals of a crossed table, with the estimand named, for one condition or a paired comparison."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sar_analysis.stats.designs import (
    CELLS_PER_CHUNK,
    CLUSTERS,
    ESTIMANDS,
    Design,
    check_design,
    defined,
    left_out,
    sampler,
)
from sar_analysis.stats.interval import READINGS, Interval, Reading, bca, jackknife_t, percentile
from sar_analysis.stats.scores import Array, Scores, listed
from sar_analysis.stats.statistics import Statistic, difference_of, iqm_of
from sar_core.errors import InputError
from sar_core.streams import stream

RESAMPLES = 10_000
FEW_SEEDS = 5
ENOUGH_SEEDS = 10
"""From here on a bootstrap over seeds and layouts covers what it claims; below, Student's t over seeds is used."""
LEAST = 100
ROUNDING = 1e-12


def bootstrap(
    scores: Scores,
    make: Callable[[Scores], Statistic] = iqm_of,
    design: Design = "seeds",
    reading: Reading = "percentile",
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = 0.95,
) -> Interval:
    """The statistic of the table with its interval under one design; the same seed gives the same bits."""
    return _interval(scores, make(scores), design, reading, resamples, seed, confidence, scores.notes)


def paired(
    first: Scores,
    second: Scores,
    make: Callable[[Scores], Statistic] = iqm_of,
    design: Design = "seeds",
    reading: Reading = "percentile",
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = 0.95,
) -> Interval:
    """First condition's statistic minus the second's, both on the same resamples of (seed, episode)."""
    check_paired(first, second)
    statistic = difference_of(make(first), make(second))
    notes = tuple(dict.fromkeys((*first.notes, *second.notes)))
    with np.errstate(invalid="ignore"):
        gaps = first.values - second.values
        interval = _interval(first, statistic, design, reading, resamples, seed, confidence, notes, gaps)
    return replace(interval, estimand=f"difference, paired by seed and episode: {interval.estimand}")


def distribution(scores: Scores, statistic: Statistic, design: Design, resamples: int, seed: int) -> Array:
    """The statistic of each resample, (resamples,); chunk by chunk, so memory does not grow with their number."""
    rng, draw = stream(f"bootstrap {design}", seed), sampler(scores, design)
    step = max(1, CELLS_PER_CHUNK // scores.values.size)
    found = np.empty(resamples)
    for start in range(0, resamples, step):
        stop = min(start + step, resamples)
        found[start:stop] = statistic(draw(rng, stop - start))
    return defined(scores, found, "resamples")


def check_resamples(scores: Scores, resamples: int) -> None:
    """Refuse so few resamples that the tails of an interval would be single ones."""
    if resamples < LEAST:
        raise InputError(f"{scores.metric}: {resamples} resamples; allowed: at least {LEAST}")


def check_paired(first: Scores, second: Scores) -> None:
    """Refuse two tables whose seeds, episodes or labels differ: there would be nothing to pair."""
    for name in ("seeds", "episodes", "levels", "layouts"):
        a, b = getattr(first, name), getattr(second, name)
        if a != b:
            odd = sorted(set(map(str, a)) ^ set(map(str, b))) or ["their order"]
            raise InputError(
                f"{first.metric} against {second.metric}: {name} differ in {listed(odd)}; allowed: the same"
            )


def _interval(
    scores: Scores,
    statistic: Statistic,
    design: Design,
    reading: Reading,
    resamples: int,
    seed: int,
    confidence: float,
    notes: tuple[str, ...],
    varying: Array | None = None,
) -> Interval:
    check_design(scores, design)
    if reading not in READINGS:
        raise InputError(f"{scores.metric}: interval {reading!r}; allowed: {listed(READINGS)}")
    check_resamples(scores, resamples)
    value = float(defined(scores, statistic(np.ones((1, scores.values.size), dtype=np.uint16)), "tables")[0])
    values = scores.values if varying is None else varying
    unit, cluster = "missions", CLUSTERS[design]
    made = Interval(
        value, math.nan, math.nan, confidence, "", ESTIMANDS[design], n=values.size, unit=unit, cluster=cluster
    )
    if reading == "t":
        low, high = jackknife_t(value, left_out(scores, design, statistic), confidence)
        flags = (*notes, *flags_of(values, design, reading, low, high))
        return replace(made, low=low, high=high, method=f"{design} jackknife, t", notes=flags)
    found = distribution(scores, statistic, design, resamples, seed)
    if reading == "percentile" or alike(values) or alike(found):
        low, high = percentile(found, confidence)
    else:
        low, high = bca(found, value, left_out(scores, design, statistic), confidence)
    flags = (*notes, *flags_of(values, design, reading, low, high))
    method = f"{design} bootstrap, {reading}"
    return replace(made, low=low, high=high, method=method, resamples=resamples, seed=seed, notes=flags)


def alike(values: Array) -> bool:
    """Whether all values are one up to rounding; infinite ones are alike only among themselves."""
    low, high = float(values.min()), float(values.max())
    return low == high or high - low <= ROUNDING * max(abs(low), abs(high)) < np.inf


def flags_of(values: Array, design: Design, reading: Reading, low: float, high: float) -> tuple[str, ...]:
    """What a reader must know before trusting an interval over ``values`` (seeds, episodes), in words."""
    seeds, episodes = values.shape
    flags = []
    if alike(values):
        flags.append(
            f"all {values.size} values are {values.flat[0]:g}: the interval has no width because nothing varied, "
            "not because the value is certain"
        )
    elif alike(np.array((low, high))):
        flags.append("no width: the statistic passes over every value that varied, which does not make it certain")
    if design != "iid" and reading != "t" and seeds < FEW_SEEDS:
        flags.append(f"only {seeds} seeds: a bootstrap over so few covers less than it claims")
    if episodes == 1:
        flags.append("one episode: says nothing about any other")
    if values.size < 4:
        flags.append(f"only {values.size} values: an IQM trims none of them")
    return tuple(flags)
