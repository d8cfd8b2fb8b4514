"""Figures of missions that share layouts, each with the interval that answers: what would new layouts give?

Whole layouts are drawn again, with all their missions. Shares, quantiles and trimmed means are read as percentiles,
widened for how few the layouts are (`expanded_percentile`); means and rates, whose layouts may be skewed, by the
bootstrap-t (`studentised`), unless it is left without an end. What a bootstrap cannot see it does not judge: a share
with fewer than LEAST_LAYOUTS layouts that had the event, or that had a mission without it, a rate with fewer that had
any, and a quantile with fewer on either side of it or fewer than LEAST_BEYOND values, are given on the effective sample
instead (`effective.py`). The rule was fixed by `python -m benchmarks.layoutstudy`; docs/statistics.md has its table.
Where so few layouts cover less than they claim all the same, the notes say so (`falls_short`). No interval is without
width: one layout says nothing about others, and where nothing varied the notes say what the ends stand for or why there
are none.

Arrays are (n,), one entry per mission or victim, with a layout for each; without layouts each entry stands for itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sar_analysis.stats import survival
from sar_analysis.stats.aggregate import checked
from sar_analysis.stats.designs import CELLS_PER_CHUNK
from sar_analysis.stats.effective import (
    Ends,
    crowding,
    effective_poisson,
    effective_trials,
    korn_graubard,
    linear_error,
)
from sar_analysis.stats.interval import Array, Interval, expanded_percentile, studentised
from sar_analysis.stats.layouts import DEFAULT, LEAST_LAYOUTS, Groups, Layouts, Options, draws, grouped
from sar_analysis.stats.rates import beta_ends
from sar_analysis.stats.resampling import alike
from sar_analysis.stats.statistics import (
    Counts,
    Statistic,
    censored_medians,
    order_quantiles,
    restricted_means,
    trimmed_means,
)
from sar_analysis.stats.survival import HALF
from sar_core.errors import InputError

LEAST_BEYOND = 12
CROWDED = 4.0
"""From this crowding on the interval of a rate covers 79 to 92 %, whatever was tried in the study."""
ENOUGH_FOR_RATES = 100
FEW = {"rate": (ENOUGH_FOR_RATES, 79), "mean": (30, 92), "mean time": (30, 88)}
"""How many layouts are enough, and what per cent an interval still covers with fewer that differ as much as the study
tried: mean times of which most are misses."""
SHORT = "not 95"
"""How the note of a figure ends whose interval is known to cover less than it claims."""
UNSEEN = "rule of layouts not seen"
UNBOUNDED = (-math.inf, math.inf)


def share(
    successes: ArrayLike, trials: ArrayLike, layouts: Layouts = None, options: Options = DEFAULT, unit: str = "missions"
) -> Interval:
    """Successes of trials, summed over entries: missions with an event (trials 1), victims found of those present."""
    y, d = _pair(successes, trials, "share")
    if (y > d).any() or not _whole(y, d):
        raise InputError("share: successes are no whole numbers from 0 up to the trials of their mission")
    groups, y, d = _exposed(y, d, layouts, "trials")
    events, sizes = groups.totals(y), groups.totals(d)
    value, n = float(events.sum() / sizes.sum()), int(sizes.sum())
    found = _Figure(value, f"share of {unit}", n, unit, groups, options)
    if groups.count < 2:
        return found.whole((0.0, 1.0))
    few = min(int((events > 0).sum()), int((events < sizes).sum()))
    drawn = found.resampled(_ratio(events, sizes)) if few >= LEAST_LAYOUTS else None
    if drawn is not None:
        return found.bootstrap(drawn)
    return _of_effective(found, events, sizes, few)


def _of_effective(found: _Figure, events: Array, sizes: Array, few: int) -> Interval:
    """A share too rare for a bootstrap, from the totals of each layout."""
    confidence = found.options.confidence
    worth = effective_trials(events, sizes, confidence)
    how = f"Korn-Graubard: Clopper-Pearson on {worth:.3g} effective of {found.n}"
    return found.exact(korn_graubard(events, sizes, confidence), how, _rarity(few, found.value in (0.0, 1.0)))


def mixed_share(
    successes: ArrayLike,
    trials: ArrayLike,
    side: ArrayLike,
    layouts: Layouts = None,
    options: Options = DEFAULT,
    unit: str = "missions",
) -> Interval:
    """The same at one mission on either side (n,) for each on the other, however many there are of either.

    With as many of either, and layouts that have as many, this is `share`.
    """
    y, d = _pair(successes, trials, "share")
    of_one = np.asarray(side, dtype=np.float64).ravel()
    if (y > d).any() or not _whole(y, d) or of_one.size != y.size:
        raise InputError("share: successes are no whole numbers from 0 up to the trials, or no side for each mission")
    sizes = np.array([of_one.sum(), (1.0 - of_one).sum()])
    if not d.any() or not sizes.all():
        raise InputError(f"share: {d.sum():g} trials in {sizes[0]:g} and {sizes[1]:g} missions; allowed: some of each")
    groups, sides = grouped(y.size, layouts), (of_one, 1.0 - of_one)
    had, tried, flown = (np.stack([groups.totals(x * own) for own in sides], 1) for x in (y, d, np.ones_like(y)))

    def statistic(counts: Counts) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            per_mission = ((counts @ part) / (counts @ flown) for part in (had, tried))
            events, all_trials = (rates.sum(axis=1) for rates in per_mission)
            return np.asarray(events / all_trials)

    n = int(d.sum())
    weights = 1.0 / sizes
    weights *= n / float((tried @ weights).sum())
    events, worth = had @ weights, tried @ weights
    value = float(events.sum() / n)
    found = _Figure(
        value, f"share of {unit}, one mission of either kind for each of the other", n, unit, groups, options
    )
    if groups.count < 2:
        return found.whole((0.0, 1.0))
    few = min(int((events > 0).sum()), int((events < worth).sum()))
    drawn = found.resampled(statistic) if few >= LEAST_LAYOUTS else None
    return found.bootstrap(drawn) if drawn is not None else _of_effective(found, events, worth, few)


def rate(
    events: ArrayLike, exposure: ArrayLike, layouts: Layouts = None, options: Options = DEFAULT, unit: str = "hour"
) -> Interval:
    """Events per exposure, summed over missions: collisions per flight hour, false alarms per decoy-hour."""
    y, d = _pair(events, exposure, "rate")
    if not _whole(y):
        raise InputError("rate: events are no whole numbers from 0")
    groups, y, d = _exposed(y, d, layouts, "exposure")
    counts, hours = groups.totals(y), groups.totals(d)
    value = float(counts.sum() / hours.sum())
    found = _Figure(value, f"events per {unit}", int(y.sum()), f"per {unit}", groups, options)
    if groups.count < 2:
        return found.whole((0.0, math.inf))
    few = int((counts > 0).sum())
    made = found.ratio(counts, hours, (0.0, math.inf)) if few >= LEAST_LAYOUTS else None
    if made is None:
        ends = effective_poisson(counts, hours, len(y), options.confidence)
        made = found.exact(ends, "Poisson on the effective exposure", _rarity(few, value == 0.0))
    crowded = crowding(counts, hours)
    if crowded < CROWDED or groups.count >= ENOUGH_FOR_RATES:
        return _of_few(made, groups, "rate") if value > 0.0 else made
    note = f"events crowd: layouts vary {crowded:.3g} times as much as Poisson counts, so it covers 79 to 92 %, {SHORT}"
    return replace(made, notes=(*made.notes, note))


def falls_short(found: Interval) -> bool:
    """Whether the study knows that such an interval covers less than it claims."""
    return any(note.endswith(SHORT) for note in found.notes)


def mean(
    values: ArrayLike,
    layouts: Layouts = None,
    options: Options = DEFAULT,
    unit: str = "missions",
    bounds: tuple[float, float] = UNBOUNDED,
) -> Interval:
    """Mean of the entries, such as coverage; ``bounds`` is what no value can be beyond."""
    x = _finite(values, "mean")
    groups = grouped(x.size, layouts)
    found = _Figure(float(x.mean()), f"mean of {unit}", x.size, unit, groups, options)
    if groups.count < 2:
        return found.whole(bounds)
    made = None if alike(x) else found.ratio(groups.totals(x), groups.totals(np.ones_like(x)), bounds)
    return _of_few(made or found.unvaried(bounds), groups, "mean")


def iqm(
    values: ArrayLike,
    layouts: Layouts = None,
    options: Options = DEFAULT,
    unit: str = "missions",
    bounds: tuple[float, float] = UNBOUNDED,
) -> Interval:
    """Mean of the middle half of the entries (Agarwal 2021)."""
    x = _finite(values, "iqm")
    groups = grouped(x.size, layouts)
    order = np.argsort(x, kind="stable")
    statistic = _on_cells(groups, order, lambda counts, of: trimmed_means(counts, of, x[order]))
    found = _Figure(_value(statistic, groups), f"IQM of {unit}", x.size, unit, groups, options)
    return found.interval(statistic, bounds, alike(x))


def rmst(
    durations: ArrayLike,
    observed: ArrayLike,
    horizon: float,
    layouts: Layouts = None,
    options: Options = DEFAULT,
    unit: str = "missions",
) -> Interval:
    """Restricted mean time: the area under Kaplan and Meier's curve up to the horizon, in the durations' unit.

    ``observed`` is false where the watch ended first. Behind the last watch the curve is taken as level.
    """
    t, seen = _finite(durations, "restricted mean").ravel(), np.asarray(observed, dtype=bool).ravel()
    if t.size != seen.size:
        raise InputError(f"restricted mean: {t.size} durations and {seen.size} flags; allowed: as many of either")
    if not (horizon > 0.0 and math.isfinite(horizon)) or (t < 0.0).any():
        raise InputError(f"restricted mean: horizon {horizon}, durations from {t.min():g}; allowed: above 0, from 0")
    seen, t = seen & (t <= horizon), np.minimum(t, horizon)
    groups = grouped(t.size, layouts)
    order = np.lexsort((~seen, t))
    ordered, events = t[order], seen[order]
    statistic = _on_cells(groups, order, lambda counts, of: restricted_means(counts, of, ordered, events, horizon))
    estimand = f"mean time of {unit} up to {horizon:g}"
    found = _Figure(_value(statistic, groups), estimand, t.size, unit, groups, options)
    made = found.interval(statistic, (0.0, horizon), alike(t) and bool(seen.all() or not seen.any()))
    return _of_few(made, groups, "mean time")


def median_time(
    durations: ArrayLike,
    observed: ArrayLike,
    layouts: Layouts = None,
    options: Options = DEFAULT,
    unit: str = "missions",
) -> Interval:
    """The first time by which half have had it by Kaplan and Meier's curve, inf where half never did.

    ``observed`` is false where the watch ended first.
    """
    t, seen = _finite(durations, "median time").ravel(), np.asarray(observed, dtype=bool).ravel()
    groups = grouped(t.size, layouts)
    exact = survival.median_time(t, seen, options.confidence, unit=unit)
    found = _Figure(exact.value, f"median time of {unit}", t.size, unit, groups, options)
    if groups.count < 2:
        whole = found.whole((0.0, math.inf))
        return replace(whole, notes=(*exact.notes, *whole.notes))
    by_then, sizes = groups.totals((seen & (t <= exact.value)).astype(np.float64)), groups.totals(np.ones_like(t))
    few = min(int((by_then > 0).sum()), int((by_then < sizes).sum()))
    beyond = min(int(by_then.sum()), int((sizes - by_then).sum()))
    order = np.lexsort((~seen, t))
    ordered, events = t[order], seen[order]
    statistic = _on_cells(groups, order, lambda counts, of: censored_medians(counts, of, ordered, events, HALF))
    drawn = found.resampled(statistic) if few >= LEAST_LAYOUTS and beyond >= LEAST_BEYOND else None
    if drawn is not None:
        made = found.bootstrap(drawn)
        late = ("the upper end is not reached",) if math.isinf(made.high) else ()
        return replace(made, notes=(*made.notes, *late))
    worth = effective_trials(by_then, sizes, options.confidence)
    rough = survival.median_time(t, seen, options.confidence, worth, unit)
    sides = f"{beyond} values in {few} layouts on one side; a bootstrap takes {LEAST_BEYOND} in {LEAST_LAYOUTS}"
    how = f"Kaplan-Meier, log-log, on {worth:.3g} effective of {t.size}"
    return found.exact((rough.low, rough.high), how, (sides, *rough.notes))


def quantile(
    values: ArrayLike, q: float, layouts: Layouts = None, options: Options = DEFAULT, unit: str = "victims"
) -> Interval:
    """The smallest value with at least a share q at or below it, such as CEP50; never found is inf."""
    x = checked(values, "quantile").ravel()
    if not 0.0 < q < 1.0:
        raise InputError(f"quantile {q}; allowed: between 0 and 1, both excluded")
    groups = grouped(x.size, layouts)
    order = np.argsort(x, kind="stable")
    ordered = x[order]
    statistic = _on_cells(groups, order, lambda counts, of: order_quantiles(counts, of, ordered, q))
    value = _value(statistic, groups)
    found = _Figure(value, f"quantile {q:g} of {unit}", x.size, unit, groups, options)
    if groups.count < 2:
        return found.whole((math.nan, math.nan))
    below, sizes = groups.totals((x <= value).astype(np.float64)), groups.totals(np.ones_like(x))
    few = min(int((below > 0).sum()), int((below < sizes).sum()))
    beyond = min(int(below.sum()), int((sizes - below).sum()))
    drawn = found.resampled(statistic) if few >= LEAST_LAYOUTS and beyond >= LEAST_BEYOND else None
    if drawn is not None:
        return found.bootstrap(drawn)
    worth = effective_trials(below, sizes, options.confidence)
    low, high = (math.nan, math.nan) if alike(x) else _woodruff(ordered, q, worth, options.confidence)
    open_ends = [name for name, end in (("lower", low), ("upper", high)) if math.isnan(end)]
    why = (f"no {' and no '.join(open_ends)} end: {worth:.3g} effective values are too few",) if open_ends else ()
    notes = (f"{beyond} values in {few} layouts on one side; a bootstrap takes {LEAST_BEYOND} in {LEAST_LAYOUTS}", *why)
    return found.exact((low, high), f"order statistics on {worth:.3g} effective of {x.size}", notes)


def calibration_error(
    said: ArrayLike, right: ArrayLike, bins: NDArray[np.intp], layouts: Layouts = None, options: Options = DEFAULT
) -> Interval:
    """Expected calibration error: the gap between what a bin's entries said and how often they were right, by entries.

    It counts gaps of either sign, so resamples lie above the value more than below it; the note says so.
    """
    p, hits = _finite(said, "calibration error"), _finite(right, "calibration error")
    groups = grouped(p.size, layouts)
    gaps = np.zeros((groups.count, int(bins.max()) + 1))
    np.add.at(gaps, (groups.of, bins), p - hits)
    sizes = groups.totals(np.ones_like(p))
    statistic: Statistic = lambda counts: np.abs(counts @ gaps).sum(axis=1) / (counts @ sizes)  # noqa: E731
    found = _Figure(_value(statistic, groups), "calibration error of reports", p.size, "reports", groups, options)
    made = found.interval(statistic, (0.0, 1.0), alike(p - hits))
    return replace(made, notes=(*made.notes, "gaps of either sign count, so resamples lean upwards"))


def drawn(
    statistic: Statistic,
    groups: Groups,
    estimand: str,
    n: int,
    options: Options = DEFAULT,
    unit: str = "missions",
    bounds: tuple[float, float] = UNBOUNDED,
) -> Interval:
    """Any statistic of how often each layout is drawn (resamples, layouts), such as a rank correlation.

    Where some resamples have no value (NaN), as where a layout alone held one kind, nothing narrower than the bounds
    is known.
    """
    found = _Figure(_value(statistic, groups), estimand, n, unit, groups, options)
    if groups.count < 2:
        return found.whole(bounds)
    lost = int(np.isnan(found.every(statistic)).sum())
    if lost == 0:
        resamples = found.resampled(statistic)
        return found.unvaried(bounds) if resamples is None else found.bootstrap(resamples)
    low, high = (end if math.isfinite(end) else math.nan for end in bounds)
    told = f"{lost} of {options.resamples} resamples have no value: too few {groups.plural} hold what it takes"
    return found.exact((low, high), "none: all that is possible", (told,))


def _woodruff(ordered: Array, q: float, worth: float, confidence: float) -> Ends:
    """The values whose share at or below may be q: Woodruff 1952 with Clopper-Pearson's ends; NaN where none is.

    With as many effective values as there are this is `rates.order_quantile`.
    """
    share_below = np.searchsorted(ordered, ordered, side="right") / len(ordered)
    lower, upper = beta_ends(share_below * worth, (1.0 - share_below) * worth, confidence)
    at_none = float(beta_ends(0.0, worth, confidence)[1])
    above = np.flatnonzero(lower >= q)
    low = math.nan if at_none >= q else float(ordered[np.flatnonzero(upper >= q)[0]])
    return low, float(ordered[above[0]]) if above.size else math.nan


@dataclass(frozen=True)
class _Figure:
    """A value on its way to an interval."""

    value: float
    estimand: str
    n: int
    unit: str
    groups: Groups
    options: Options

    def interval(self, statistic: Statistic, bounds: Ends, unvaried: bool) -> Interval:
        """By percentiles of the resamples where anything varied."""
        if self.groups.count < 2:
            return self.whole(bounds)
        drawn = None if unvaried else self.resampled(statistic)
        return self.unvaried(bounds) if drawn is None else self.bootstrap(drawn)

    def ratio(self, events: Array, sizes: Array, bounds: Ends) -> Interval | None:
        """Of layouts' totals by the bootstrap-t; by percentiles where that has no end, None where all are alike."""
        options, m = self.options, self.groups.count
        drawn = self.resampled(_ratio(events, sizes))
        if drawn is None:
            return None
        error = linear_error(events, sizes)
        spread = _errors(draws(m, options.resamples, options.seed), events, sizes, drawn)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(drawn == self.value, 0.0, (drawn - self.value) / spread)
        low, high = studentised(self.value, error, ratios, options.confidence)
        if not (math.isfinite(low) and math.isfinite(high)):
            return self.bootstrap(drawn)
        method = f"bootstrap over {self.groups.plural}, bootstrap-t"
        ends = max(low, bounds[0]), min(high, bounds[1])
        return self._made(*ends, method, options.resamples, options.seed, self.groups.few)

    def unvaried(self, bounds: Ends) -> Interval:
        """What layouts that were not seen could still do within the bounds."""
        unseen = float(beta_ends(0.0, self.groups.count, self.options.confidence)[1])
        low, high = (self.value + unseen * (bound - self.value) for bound in bounds)
        told = f"nothing varied: up to {100 * unseen:.3g} % of layouts may differ, by as much as is possible"
        ends = (low if math.isfinite(low) else math.nan, high if math.isfinite(high) else math.nan)
        if math.isnan(ends[0]) or math.isnan(ends[1]):
            told = "nothing varied: without bounds of the value an end cannot be given"
        return self.exact(ends, UNSEEN, (told,))

    def every(self, statistic: Statistic) -> Array:
        """The statistic of every resample, NaN where it has none."""
        counts = draws(self.groups.count, self.options.resamples, self.options.seed)
        step = max(1, CELLS_PER_CHUNK // self.groups.count)
        return np.concatenate([statistic(counts[at : at + step]) for at in range(0, len(counts), step)])

    def resampled(self, statistic: Statistic) -> Array | None:
        """The statistic of every resample that has one; None where all are alike: an interval without width."""
        found = self.every(statistic)
        found = found[~np.isnan(found)]
        low, high = expanded_percentile(found, self.groups.count, self.options.confidence)
        return None if alike(np.array((low, high))) else found

    def bootstrap(self, drawn: Array) -> Interval:
        low, high = expanded_percentile(drawn, self.groups.count, self.options.confidence)
        method = f"bootstrap over {self.groups.plural}, expanded percentile"
        return self._made(low, high, method, self.options.resamples, self.options.seed, self.groups.few)

    def exact(self, ends: Ends, method: str, notes: tuple[str, ...]) -> Interval:
        return self._made(*ends, method, None, None, notes)

    def whole(self, bounds: Ends) -> Interval:
        """All that is possible: one layout says nothing about others."""
        ends = tuple(end if math.isfinite(end) else math.nan for end in bounds)
        notes = (f"one {self.groups.cluster}: says nothing about any other",)
        return self._made(ends[0], ends[1], "none: all that is possible", None, None, notes)

    def _made(
        self, low: float, high: float, method: str, resamples: int | None, seed: int | None, notes: tuple[str, ...]
    ) -> Interval:
        return Interval(
            self.value,
            low,
            high,
            self.options.confidence,
            method,
            f"{self.estimand}, on new {self.groups.plural}",
            resamples,
            seed,
            notes,
            self.n,
            self.unit,
            self.groups.cluster,
        )


def _of_few(made: Interval, groups: Groups, kind: str) -> Interval:
    """With what the study found of so few layouts; where nothing varied the notes say so by now."""
    enough, least = FEW[kind]
    if not 2 <= groups.count < enough or made.method == UNSEEN:
        return made
    note = f"{groups.count} {groups.plural}: where they differ much, a {kind} covers down to {least} %, {SHORT}"
    return replace(made, notes=(*made.notes, note))


def _rarity(few: int, unvaried: bool) -> tuple[str, ...]:
    if unvaried:
        return ("nothing varied: the missions of a layout are counted as one, the worst there is",)
    if few < LEAST_LAYOUTS:
        return (f"rare: it, or its absence, was seen in {few} layouts, fewer than {LEAST_LAYOUTS}",)
    return ("all resamples are alike",)


def _ratio(numerators: Array, denominators: Array) -> Statistic:
    return lambda counts: np.asarray((counts @ numerators) / (counts @ denominators))


def _errors(counts: Counts, events: Array, sizes: Array, found: Array) -> Array:
    """`linear_error` of every resample whose ratios were found; 0 where that is all that rounding leaves."""
    m, totals = len(events), counts @ sizes
    squares = counts @ events**2 - 2.0 * found * (counts @ (events * sizes)) + found**2 * (counts @ sizes**2)
    squares[squares <= 1e-12 * (counts @ events**2)] = 0.0
    return np.asarray(np.sqrt(m / (m - 1) * squares) / totals)


def _on_cells(
    groups: Groups, order: NDArray[np.intp], of_counts: Callable[[Counts, NDArray[np.intp]], Array]
) -> Statistic:
    """A statistic of sorted entries that finds each entry's count at its layout."""
    places = np.ascontiguousarray(groups.of[order])
    return lambda counts: of_counts(counts, places)


def _value(statistic: Statistic, groups: Groups) -> float:
    return float(statistic(np.ones((1, groups.count), dtype=np.uint16))[0])


def _pair(first: ArrayLike, second: ArrayLike, what: str) -> tuple[Array, Array]:
    y, d = np.broadcast_arrays(_finite(first, what), _finite(second, what))
    if (y < 0.0).any() or (d < 0.0).any():
        raise InputError(f"{what}: counts or exposures below 0; allowed: from 0")
    return y.ravel(), d.ravel()


def _exposed(y: Array, d: Array, layouts: Layouts, what: str) -> tuple[Groups, Array, Array]:
    """Without the entries that had nothing to count in."""
    mask = d > 0.0
    if not mask.any():
        raise InputError(f"no {what} in any of {d.size} missions; at least one is needed")
    if (y[~mask] > 0.0).any():
        raise InputError(f"events without {what}; allowed: none")
    return grouped(d.size, layouts).kept(mask), y[mask], d[mask]


def _finite(values: ArrayLike, what: str) -> Array:
    array = checked(values, what).ravel()
    if not np.isfinite(array).all():
        raise InputError(f"{what}: infinite values; allowed: finite ones (a quantile takes infinite ones)")
    return array


def _whole(*arrays: Array) -> bool:
    return all(bool((array == np.floor(array)).all()) for array in arrays)
