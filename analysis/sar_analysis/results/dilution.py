"""Does geometry predict the error? Fixes of victims looked at at fixed times, whatever was thought of them.

At the moment of a confident report the question cannot be asked: confidence selects on geometry and error alike, and
what is left shows no relation. So the looks are at times that nobody chose. A mission's looks and a layout's missions
are no independent samples: every interval draws whole layouts again.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_analysis.results.summary import GDOP_BANDS, GDOP_EDGES, UNDEFINED
from sar_analysis.stats import clustered
from sar_analysis.stats.correlation import spearman
from sar_analysis.stats.interval import Interval
from sar_analysis.stats.layouts import DEFAULT, Options
from sar_core.errors import InputError

Floats = NDArray[np.float64]

BANDS = (*GDOP_BANDS, UNDEFINED)
DILUTIONS = ("path_gdop", "constellation_gdop", "information_dop_m")
UNIT = "looks"
MOST_VIEWS = 4
"""As many or more are one row."""
LEAST_ROOT = 2 * clustered.LEAST_BEYOND
"""Of fewer looks a median has no bootstrap, and none is drawn on as 1 / sqrt(N)."""


@dataclass(frozen=True)
class Looks:
    """What was held of victims, one entry per look (n,): search time, how far off, three dilutions (NaN: undefined),
    independent views, and the layout it was flown in. An infinite error is that of a victim not placed yet."""

    layouts: tuple[Hashable, ...]
    time_s: Floats
    error_m: Floats
    path_gdop: Floats
    constellation_gdop: Floats
    information_dop_m: Floats
    views: NDArray[np.int64]

    def __post_init__(self) -> None:
        sizes = {name: len(getattr(self, name)) for name in ("layouts", "time_s", "error_m", *DILUTIONS, "views")}
        if len(set(sizes.values())) != 1:
            told = ", ".join(f"{size} {name}" for name, size in sizes.items())
            raise InputError(f"looks: {told}; allowed: as many of each")
        if not (self.error_m >= 0.0).all() or not np.isfinite(self.time_s).all():
            raise InputError("looks: an error below 0 or NaN, or a time that is not finite; allowed: errors from 0")

    def where(self, mask: NDArray[np.bool_]) -> Looks:
        """Only these looks."""
        kept = np.flatnonzero(mask)
        columns = (getattr(self, name)[kept] for name in ("time_s", "error_m", *DILUTIONS, "views"))
        return Looks(tuple(self.layouts[k] for k in kept.tolist()), *columns)

    @property
    def times(self) -> tuple[float, ...]:
        """The times at which was looked."""
        return tuple(np.unique(self.time_s).tolist())


class ErrorsAt(NamedTuple):
    """Errors at one time of all victims, reported or not; None where so many were not that it is infinite."""

    time_s: float
    n: int
    reported: int
    cep50_m: Interval | None
    cep95_m: Interval | None


class ErrorBand(NamedTuple):
    """Errors of the looks whose constellation GDOP lay in one band; None where there are none."""

    name: str
    n: int
    cep50_m: Interval | None
    cep95_m: Interval | None


class Correlation(NamedTuple):
    """Spearman's rho of one dilution with the error at one time (None: all times); ``n`` looks had it defined."""

    dilution: str
    time_s: float | None
    n: int
    rho: Interval | None


class ErrorByViews(NamedTuple):
    """Errors at one time of the looks that rest on as many views, the last on MOST_VIEWS or more. ``root_m``: what
    1 / sqrt(N) makes of the median of the fewest views, two or three, that LEAST_ROOT looks have, its interval made
    smaller by as much; None below them."""

    time_s: float
    views: int
    n: int
    cep50_m: Interval
    cep95_m: Interval
    root_m: Interval | None


def errors_at(looks: Looks, options: Options = DEFAULT) -> tuple[ErrorsAt, ...]:
    """Errors of all victims at each time, whatever is known of them; one without a report is infinitely far off."""
    found = []
    for time_s in looks.times:
        then = looks.where(looks.time_s == time_s)
        ceps = (_bounded(_cep(then, q, options)) for q in (0.5, 0.95))
        found.append(ErrorsAt(time_s, len(then.error_m), int(np.isfinite(then.error_m).sum()), *ceps))
    return tuple(found)


def error_bands(looks: Looks, options: Options = DEFAULT) -> tuple[ErrorBand, ...]:
    """Errors of what was held by band of constellation GDOP, undefined a band of its own; bands as `GDOP_EDGES`."""
    looks = looks.where(np.isfinite(looks.error_m))
    gdop = looks.constellation_gdop
    place = np.where(np.isnan(gdop), len(BANDS) - 1, np.searchsorted(GDOP_EDGES, gdop, side="right"))
    found = []
    for k, name in enumerate(BANDS):
        mine = looks.where(place == k)
        n = len(mine.error_m)
        found.append(
            ErrorBand(name, n, _cep(mine, 0.5, options), _cep(mine, 0.95, options))
            if n
            else ErrorBand(name, 0, None, None)
        )
    return tuple(found)


def correlations(looks: Looks, options: Options = DEFAULT) -> tuple[Correlation, ...]:
    """Each dilution with the error, over all times and then at each; only looks in which it is defined."""
    found = []
    for time_s in (None, *looks.times):
        then = looks if time_s is None else looks.where(looks.time_s == time_s)
        for name in DILUTIONS:
            mine = then.where(np.isfinite(getattr(then, name)))
            rho = spearman(getattr(mine, name), mine.error_m, mine.layouts, options, UNIT)
            found.append(Correlation(name, time_s, len(mine.error_m), rho))
    return tuple(found)


def errors_by_views(looks: Looks, options: Options = DEFAULT) -> tuple[ErrorByViews, ...]:
    """Errors of what was held by number of views at each time, beside what 1 / sqrt(N) says."""
    found: list[ErrorByViews] = []
    looks = looks.where(np.isfinite(looks.error_m))
    for time_s in looks.times:
        then = looks.where(looks.time_s == time_s)
        counted = np.minimum(then.views, MOST_VIEWS)
        start: tuple[int, Interval] | None = None
        for views in np.unique(counted).tolist():
            mine = then.where(counted == views)
            median = _cep(mine, 0.5, options)
            if start is None and 2 <= views < MOST_VIEWS and len(mine.error_m) >= LEAST_ROOT:
                start = (views, median)
            root = None if start is None else _scaled(start[1], math.sqrt(start[0] / views))
            found.append(ErrorByViews(time_s, views, len(mine.error_m), median, _cep(mine, 0.95, options), root))
    return tuple(found)


def _bounded(found: Interval) -> Interval | None:
    """None if it is infinite; an infinite upper end is said."""
    if not math.isfinite(found.value):
        return None
    told = ("the upper end is a victim without a report",) if math.isinf(found.high) else ()
    return replace(found, notes=(*found.notes, *told))


def _scaled(found: Interval, by: float) -> Interval:
    return replace(found, value=by * found.value, low=by * found.low, high=by * found.high)


def _cep(looks: Looks, q: float, options: Options) -> Interval:
    return clustered.quantile(looks.error_m, q, looks.layouts, options, UNIT)
