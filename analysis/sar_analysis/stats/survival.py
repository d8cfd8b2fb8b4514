"""Times that may never come within a mission: Kaplan-Meier curve and median with an interval.

A victim not found and an area not covered are censored at the end of the search, not counted as that time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from sar_analysis.stats.aggregate import checked
from sar_analysis.stats.interval import Interval, check_confidence
from sar_analysis.stats.scores import Array
from sar_core.errors import InputError

HALF = 0.5 + 1e-12  # a product of fractions may miss one half by a rounding


@dataclass(frozen=True)
class SurvivalCurve:
    """The product-limit curve at its event times, ascending; all arrays (events,).

    ``survival`` is P(time > t); ``greenwood`` is the sum of d / (n (n - d)), infinite once everybody is gone.
    """

    times: Array
    at_risk: Array
    events: Array
    survival: Array
    greenwood: Array

    @property
    def deviation(self) -> Array:
        """Standard error of ``survival`` (Greenwood 1926)."""
        with np.errstate(invalid="ignore"):
            return np.where(self.survival > 0.0, self.survival * np.sqrt(self.greenwood), 0.0)


def kaplan_meier(times: ArrayLike, observed: ArrayLike) -> SurvivalCurve:
    """The curve of ``times`` (n,), ``observed`` (n,) false where censored (Kaplan & Meier 1958).

    One censored at an event's time is still at risk there.
    """
    t = checked(times, "kaplan-meier").ravel()
    seen = np.asarray(observed, dtype=bool).ravel()
    if t.size != seen.size:
        raise InputError(f"kaplan-meier: {t.size} times and {seen.size} flags; allowed: as many of either")
    if not np.isfinite(t).all() or (t < 0.0).any():
        raise InputError(
            "kaplan-meier: times below 0 or infinite; allowed: finite from 0, censored ones marked as such"
        )
    steps, events = np.unique(t[seen], return_counts=True)
    at_risk = t.size - np.searchsorted(np.sort(t), steps, side="left")
    with np.errstate(divide="ignore"):
        greenwood = np.cumsum(events / (at_risk * (at_risk - events).astype(np.float64)))
    survival = np.cumprod(1.0 - events / at_risk, dtype=np.float64)
    return SurvivalCurve(steps, at_risk.astype(np.float64), events.astype(np.float64), survival, greenwood)


def band(curve: SurvivalCurve, confidence: float = 0.95) -> tuple[Array, Array]:
    """Pointwise limits of the survival at the event times on the log(-log) scale (Kalbfleisch & Prentice 1980, 1.3)."""
    check_confidence(confidence)
    z = float(ndtri(0.5 + 0.5 * confidence))
    inside = (curve.survival > 0.0) & (curve.survival < 1.0)
    low, high = curve.survival.copy(), curve.survival.copy()
    log_survival = np.log(curve.survival[inside])
    width = z * np.sqrt(curve.greenwood[inside]) / -log_survival
    low[inside] = np.exp(log_survival * np.exp(width))
    high[inside] = np.exp(log_survival * np.exp(-width))
    return low, high


def median_time(
    times: ArrayLike, observed: ArrayLike, confidence: float = 0.95, worth: float | None = None, unit: str = "missions"
) -> Interval:
    """The first time by which half have had it, inf where half never did; the interval inverts the band at one half.

    Brookmeyer & Crowley 1982 with the log(-log) scale: the times at which one half lies within the survival's limits.
    So few missions that all lie on one side of the median too often (fewer than 6 at 95 %) have no interval. ``worth``
    is how many independent ones they are, where they are not: Greenwood's variance grows by as much.
    """
    curve = kaplan_meier(times, observed)
    n, found = np.size(np.asarray(times)), int(curve.events.sum())
    effective = n if worth is None else worth
    low, high = band(replace(curve, greenwood=curve.greenwood * (n / effective)), confidence)
    value, early, late = (_first(curve.times, limit) for limit in (curve.survival, low, high))
    needed = math.ceil(math.log2(2.0 / (1.0 - confidence)))
    notes = []
    if np.isinf(value):
        notes.append(f"median not reached: {found} of {n} had the event")
    if effective < needed:
        early = late = math.nan
        told = f"{n} {unit}" if worth is None else f"{worth:.3g} effective {unit}"
        notes.append(f"no interval: {told}, and a median's takes {needed}")
    elif early == late < np.inf:
        notes.append("no width: the times about the median are all alike, which does not make it certain")
    elif np.isfinite(value) and np.isinf(late):
        notes.append(f"the upper end is not reached: {found} of {n} had the event")
    estimand = f"median time, {unit} taken as independent"
    method = "Kaplan-Meier, log-log"
    return Interval(value, early, late, confidence, method, estimand, notes=tuple(notes), n=n, unit=unit)


def _first(times: Array, curve: Array) -> float:
    """The first time at which the curve is down to one half; inf when it never is."""
    reached = np.flatnonzero(curve <= HALF)
    return float(times[reached[0]]) if reached.size else np.inf
