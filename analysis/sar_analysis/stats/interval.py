"""An interval with all a reader needs to repeat it, and the ways to read one off resamples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from sar_core.errors import InputError

Array = NDArray[np.float64]
Reading = Literal["percentile", "bca", "t"]
Cluster = Literal["", "layout", "mission", "seed", "seed and layout", "episode within seed", "run", "cell"]
_ROUNDING = 1e-14
"""Of the estimates: a standard error below is what sums of equal numbers leave."""
READINGS: tuple[Reading, ...] = ("percentile", "bca", "t")


@dataclass(frozen=True)
class Interval:
    """A value with its interval; ``notes`` flags in words whatever makes it less than it looks.

    ``estimand`` says what the interval is about; exact methods have no ``resamples`` and no ``seed``. ``n`` counts what
    the value rests on, ``unit`` names it. ``cluster`` names what was taken as independent, such as layouts, where
    anything was. ``exact`` is the same value's interval without resampling, where there is one. An end that cannot be
    given is NaN.
    """

    value: float
    low: float
    high: float
    confidence: float
    method: str
    estimand: str
    resamples: int | None = None
    seed: int | None = None
    notes: tuple[str, ...] = ()
    n: int = 0
    unit: str = ""
    cluster: Cluster = ""
    exact: Interval | None = None

    @property
    def ends(self) -> dict[str, float | None]:
        """Value, low and high as JSON can hold them: None where one is undefined or beyond every number."""
        parts = {"value": self.value, "low": self.low, "high": self.high}
        return {name: part if math.isfinite(part) else None for name, part in parts.items()}

    @property
    def plain(self) -> dict[str, Any]:
        """As documents hold a figure: what it is, what it rests on, how its interval was made, the exact one beside."""
        made = {"method": self.method, "cluster": self.cluster or None, "resamples": self.resamples, "seed": self.seed}
        exact = None if self.exact is None else {**self.exact.ends, "method": self.exact.method}
        return {**self.ends, "n": self.n, "unit": self.unit, **made, "notes": list(self.notes), "exact": exact}


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that is not strictly between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence is {confidence}; allowed: between 0 and 1, both excluded")


def percentile(distribution: Array, confidence: float) -> tuple[float, float]:
    """The middle ``confidence`` of the bootstrap distribution (Efron & Tibshirani 1993, section 13.3)."""
    check_confidence(confidence)
    tail = 0.5 * (1.0 - confidence)
    return _ends(distribution, tail, 1.0 - tail)


def expanded_percentile(distribution: Array, units: int, confidence: float) -> tuple[float, float]:
    """The percentile interval of ``units`` that were drawn again, widened for how few they are.

    Hesterberg 2015 (The American Statistician 69, 371), expanded percentile: the plain one is too narrow by
    sqrt((n - 1) / n) and by normal instead of t quantiles; at ten units the tails become 1.0 % instead of 2.5 %.
    """
    tail = expanded_tail(units, confidence)
    return _ends(distribution, tail, 1.0 - tail)


def expanded_tail(units: int, confidence: float) -> float:
    """What of the distribution lies beyond either end of the expanded percentile interval."""
    check_confidence(confidence)
    if units < 2:
        raise InputError(f"expanded percentile: {units} units; allowed: at least 2")
    return float(ndtr(stdtrit(units - 1, 0.5 * (1.0 - confidence)) * math.sqrt(units / (units - 1))))


def studentised(value: float, error: float, ratios: Array, confidence: float) -> tuple[float, float]:
    """The bootstrap-t interval from (estimate - value) / error of each resample (Efron & Tibshirani 1993, 12.5).

    An end is infinite where too many resamples had no spread to be measured by.
    """
    check_confidence(confidence)
    tail = 0.5 * (1.0 - confidence)
    low, high = _ends(ratios, tail, 1.0 - tail)
    return value - high * error, value - low * error


def acceleration(left_out: list[Array]) -> float:
    """BCa's acceleration from the estimates with one unit left out, one array per independent sample.

    Davison & Hinkley 1997, section 5.3.2: sum n^-3 l^3 / (6 (sum n^-2 l^2)^1.5) over samples, with the jackknife's
    l = (n - 1)(mean - estimate). For one sample this is Efron & Tibshirani 1993, eq. 14.15. 0 when nothing varies.
    """
    cubes = squares = 0.0
    for estimates in left_out:
        n = len(estimates)
        influence = (n - 1) * (estimates.mean() - estimates)
        cubes += float((influence**3).sum()) / n**3
        squares += float((influence**2).sum()) / n**2
    return cubes / (6.0 * squares**1.5) if squares > 0.0 else 0.0


def bca(distribution: Array, value: float, left_out: list[Array], confidence: float) -> tuple[float, float]:
    """The percentile interval corrected for bias and acceleration (Efron & Tibshirani 1993, eq. 14.9 to 14.14).

    Resamples equal to the value count half below it, so that discrete scores do not look biased.
    """
    check_confidence(confidence)
    below = float((distribution < value).mean() + 0.5 * (distribution == value).mean())
    if not 0.0 < below < 1.0:
        raise InputError(
            f"bca: all {len(distribution)} resamples lie on one side of the value {value:g}; allowed: percentile"
        )
    bias, a = float(ndtri(below)), acceleration(left_out)
    tail = 0.5 * (1.0 - confidence)
    shifted = bias + ndtri(np.array((tail, 1.0 - tail)))
    lower, upper = ndtr(bias + shifted / (1.0 - a * shifted))
    return _ends(distribution, float(lower), float(upper))


def jackknife_t(value: float, left_out: list[Array], confidence: float) -> tuple[float, float]:
    """Student's t around the value with the jackknife's variance, added over the independent samples.

    Efron & Tibshirani 1993, eq. 11.5 for the variance; Satterthwaite 1946 for the degrees of freedom of the sum. With
    few seeds this is the reading that widens as it should: resampling three seeds cannot show a fourth.
    """
    check_confidence(confidence)
    error, freedom = jackknife_error(left_out)
    if error == 0.0:
        return value, value
    half = float(stdtrit(freedom, 0.5 + 0.5 * confidence)) * error
    return value - half, value + half


def jackknife_p(value: float, left_out: list[Array]) -> float | None:
    """Two-sided p of the value being 0 by the same Student's t; None where nothing varied and nothing can be said."""
    error, freedom = jackknife_error(left_out)
    return None if error == 0.0 else 2.0 * float(stdtr(freedom, -abs(value) / error))


def jackknife_error(left_out: list[Array]) -> tuple[float, float]:
    """Standard error and degrees of freedom from the estimates with one unit left out; both 0 when nothing varied."""
    freedoms = np.array([len(estimates) - 1 for estimates in left_out], dtype=np.float64)
    variances = np.array([estimates.var() * (len(estimates) - 1) for estimates in left_out])
    total = float(variances.sum())
    largest = max((float(np.abs(estimates).max()) for estimates in left_out), default=0.0)
    if total <= (_ROUNDING * largest) ** 2:
        return 0.0, 0.0
    return math.sqrt(total), total**2 / float((variances**2 / freedoms).sum())


def _ends(distribution: Array, lower: float, upper: float) -> tuple[float, float]:
    """Two quantiles; among infinite resamples the outer neighbour, since nothing lies between a number and inf."""
    if np.isfinite(distribution).all():
        low, high = np.quantile(distribution, (lower, upper))
        return float(low), float(high)
    ordered = np.sort(distribution)
    last = len(ordered) - 1
    return float(ordered[math.floor(lower * last)]), float(ordered[math.ceil(upper * last)])
