"""Exact intervals of shares, rates and quantiles, and the smallest effect a campaign of a given size could see."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.stats
from scipy.optimize import brentq
from scipy.special import betaincinv, gammaincinv

from sar_analysis.stats.interval import Array, Interval, check_confidence
from sar_core.errors import InputError

POWER = 0.8


def beta_ends(had: float | Array, missed: float | Array, confidence: float) -> tuple[Array, Array]:
    """Two-sided exact ends of a share (Clopper & Pearson 1934, as beta quantiles), for trials that had the event and
    trials that missed it; neither number need be whole."""
    tail, had, missed = 0.5 * (1.0 - confidence), np.asarray(had, np.float64), np.asarray(missed, np.float64)
    low = np.where(had > 0.0, betaincinv(np.maximum(had, 1e-300), missed + 1.0, tail), 0.0)
    high = np.where(missed > 0.0, betaincinv(had + 1.0, np.maximum(missed, 1e-300), 1.0 - tail), 1.0)
    return low, high


def gamma_ends(count: float, confidence: float) -> tuple[float, float]:
    """Two-sided exact ends of a Poisson mean (Garwood 1936, as gamma quantiles), for a count that need not be whole."""
    tail = 0.5 * (1.0 - confidence)
    low = float(gammaincinv(count, tail)) if count > 0.0 else 0.0
    return low, float(gammaincinv(count + 1.0, 1.0 - tail))


def clopper_pearson(events: int, trials: int, confidence: float = 0.95, unit: str = "missions") -> Interval:
    """A share of trials, two-sided and exact (Clopper & Pearson 1934).

    ``events`` is the number of trials that had one (missions with a collision), not the number of events.
    """
    check_confidence(confidence)
    _check_count(f"{unit} with an event", events)
    if trials < 1 or events > trials:
        raise InputError(f"{events} {unit} with an event of {trials}; allowed: at least 1, no more events")
    low, high = map(float, beta_ends(events, trials - events, confidence))
    notes = (f"{events} of {trials}: nothing varied, so only one end is informative",) if events in (0, trials) else ()
    return Interval(
        events / trials,
        low,
        high,
        confidence,
        f"Clopper-Pearson, {events} of n",
        f"share of {unit}, taken as independent",
        notes=notes,
        n=trials,
        unit=unit,
    )


def poisson_rate(events: int, exposure: float, unit: str, confidence: float = 0.95) -> Interval:
    """Events per unit of exposure (mission, flight hour), two-sided, exact (Garwood 1936).

    ``n`` of the interval counts events.
    """
    check_confidence(confidence)
    _check_count("events", events)
    if not (exposure > 0.0 and math.isfinite(exposure)):
        raise InputError(f"exposure is {exposure} {unit}; allowed: finite and above 0")
    low, high = gamma_ends(events, confidence)
    notes = (f"no event in {exposure:g} {unit}: only the upper end is informative",) if events == 0 else ()
    return Interval(
        events / exposure,
        low / exposure,
        high / exposure,
        confidence,
        f"exact Poisson over {exposure:.6g}",
        f"events per {unit}, events taken as independent",
        notes=notes,
        n=events,
        unit=f"per {unit}",
    )


def order_quantile(values: Sequence[float], p: float, confidence: float = 0.95, unit: str = "values") -> Interval:
    """The smallest value with at least a share p at or below it; interval by order statistics, free of distribution.

    The r-th and s-th smallest enclose it with probability P(r <= B < s), B binomial (David & Nagaraja 2003, 7.1). With
    too few values an end does not exist and is NaN: the upper one of a 95 % quantile takes 72.
    """
    check_confidence(confidence)
    n = len(values)
    if n == 0:
        raise InputError(f"quantile {p:g}: no {unit}; at least one is needed")
    ordered = np.sort(np.asarray(values, np.float64))
    tail = 0.5 * (1.0 - confidence)
    lower = int(scipy.stats.binom.ppf(tail, n, p))
    upper = int(scipy.stats.binom.ppf(1.0 - tail, n, p)) + 1
    return Interval(
        float(ordered[max(math.ceil(p * n) - 1, 0)]),
        float(ordered[lower - 1]) if lower >= 1 else math.nan,
        float(ordered[upper - 1]) if upper <= n else math.nan,
        confidence,
        "order statistics",
        f"quantile {p:g} of {unit}, taken as independent",
        n=n,
        unit=unit,
    )


def detectable_difference(deviation: float, units: int, power: float = POWER, confidence: float = 0.95) -> float:
    """The smallest true mean difference that a two-sided paired t-test over ``units`` pairs finds with this power.

    ``deviation`` is the standard deviation of the differences between units (seeds, not episodes). The power is that
    of the noncentral t distribution (Cohen 1988, section 2.2; both rejection regions counted).
    """
    check_confidence(confidence)
    if units < 2:
        raise InputError(f"detectable difference: {units} units; allowed: at least 2")
    if not (deviation > 0.0 and math.isfinite(deviation)):
        raise InputError(f"detectable difference: standard deviation {deviation}; allowed: finite and above 0")
    if not 1.0 - confidence < power < 1.0:
        raise InputError(f"detectable difference: power {power}; allowed: above {1.0 - confidence:g} and below 1")
    return deviation * needed_shift(units - 1, power, 1.0 - confidence) / math.sqrt(units)


def needed_shift(freedom: int, power: float, alpha: float) -> float:
    """How many standard errors off a value must be for a two-sided t-test to find it with this power."""
    critical = float(scipy.stats.t.ppf(1.0 - 0.5 * alpha, freedom))

    def missing(shift: float) -> float:
        upper = scipy.stats.nct.sf(critical, freedom, shift)
        lower = scipy.stats.nct.cdf(-critical, freedom, shift)
        # scipy 1.17 gives nan for some lower tails so far out that they are below 1e-12.
        return float(upper + (0.0 if math.isnan(lower) else lower)) - power

    highest = critical
    while missing(highest) < 0.0:
        highest *= 2.0
    return float(brentq(missing, 1e-9, highest, xtol=1e-12))


def detectable_rate(missions: int, power: float = POWER) -> float:
    """The smallest P(mission with at least one) for which at least one such mission is seen with this power."""
    if missions < 1:
        raise InputError(f"detectable rate: {missions} missions; allowed: at least 1")
    if not 0.0 < power < 1.0:
        raise InputError(f"detectable rate: power {power}; allowed: between 0 and 1, both excluded")
    return -math.expm1(math.log1p(-power) / missions)


def _check_count(name: str, count: int) -> None:
    if isinstance(count, bool) or int(count) != count or count < 0:
        raise InputError(f"{name}: {count}; allowed: a whole number from 0")
