"""Exact intervals for rare events, and the smallest effect a campaign of a given size could have seen."""

from __future__ import annotations

import math

import scipy.stats
from scipy.optimize import brentq

from sar_analysis.stats.interval import Interval, check_confidence
from sar_core.errors import InputError

POWER = 0.8


def clopper_pearson(events: int, missions: int, confidence: float = 0.95) -> Interval:
    """P(mission with at least one event), two-sided and exact (Clopper & Pearson 1934, as beta quantiles).

    ``events`` is the number of missions that had one, not the number of events.
    """
    check_confidence(confidence)
    _check_count("missions with an event", events)
    if missions < 1 or events > missions:
        raise InputError(f"{events} missions with an event of {missions}; allowed: at least 1 mission, no more events")
    tail = 0.5 * (1.0 - confidence)
    low = float(scipy.stats.beta.ppf(tail, events, missions - events + 1)) if events else 0.0
    high = float(scipy.stats.beta.ppf(1.0 - tail, events + 1, missions - events)) if events < missions else 1.0
    notes = (
        (f"{events} of {missions}: nothing varied, so only one end is informative",) if events in (0, missions) else ()
    )
    estimand = "P(mission with at least one), missions taken as independent"
    return Interval(events / missions, low, high, confidence, "Clopper-Pearson", estimand, notes=notes)


def poisson_rate(events: int, exposure: float, unit: str, confidence: float = 0.95) -> Interval:
    """Events per unit of exposure (mission, flight hour), two-sided, exact (Garwood 1936, by chi-square quantiles)."""
    check_confidence(confidence)
    _check_count("events", events)
    if not (exposure > 0.0 and math.isfinite(exposure)):
        raise InputError(f"exposure is {exposure} {unit}; allowed: finite and above 0")
    tail = 0.5 * (1.0 - confidence)
    low = float(scipy.stats.chi2.ppf(tail, 2 * events)) / 2.0 if events else 0.0
    high = float(scipy.stats.chi2.ppf(1.0 - tail, 2 * events + 2)) / 2.0
    notes = (f"no event in {exposure:g} {unit}: only the upper end is informative",) if events == 0 else ()
    estimand = f"events per {unit}, events taken as independent"
    return Interval(
        events / exposure, low / exposure, high / exposure, confidence, "exact Poisson", estimand, notes=notes
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
    freedom = units - 1
    critical = float(scipy.stats.t.ppf(0.5 + 0.5 * confidence, freedom))

    def missing(shift: float) -> float:
        upper = scipy.stats.nct.sf(critical, freedom, shift)
        lower = scipy.stats.nct.cdf(-critical, freedom, shift)
        # scipy 1.17 gives nan for some lower tails so far out that they are below 1e-12.
        return float(upper + (0.0 if math.isnan(lower) else lower)) - power

    highest = critical
    while missing(highest) < 0.0:
        highest *= 2.0
    return deviation * float(brentq(missing, 1e-9, highest, xtol=1e-12)) / math.sqrt(units)


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
