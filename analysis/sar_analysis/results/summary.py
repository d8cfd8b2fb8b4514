"""What a condition's missions come to: rates with exact intervals, circular errors, strata by geometry and by noise.

A condition is everything that was set the same: tier, world, vehicle, pattern, profile, drones, noise, victims or none.
Only valid missions enter a figure; the invalid ones are counted beside it. Missions and victims are taken as
independent here; intervals over crossed seeds and episodes are the bootstrap's business.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_analysis.metrics.catalogue import Metric, estimated
from sar_analysis.metrics.findings import Victim
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.stats.interval import Interval
from sar_analysis.stats.rates import clopper_pearson, order_quantile, poisson_rate
from sar_analysis.stats.survival import median_time
from sar_core.errors import InputError

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
CONDITION = ("tier", "world", "vehicle", "pattern", "profile", "drones", "sigma", "kappa", "victim_absent")
NOISE = ("sigma", "kappa")
GDOP_EDGES = (1.2, 2.0, 4.0)
"""Between the geometries of three or four drones all round (1.15, 1.0), two at right angles (1.41), and worse."""


@dataclass(frozen=True)
class Band:
    """Localisation errors of detections whose GDOP fell into one band; errors None where there are none."""

    name: str
    detections: int
    cep50_m: float | None
    cep95_m: float | None


@dataclass(frozen=True)
class ConditionSummary:
    """One condition. `condition` pairs names with values; estimates leave out what nothing was known of."""

    condition: tuple[tuple[str, Any], ...]
    missions: int
    invalid: int
    invalid_reasons: tuple[tuple[str, int], ...]
    seeds: tuple[int, ...]
    layouts: int
    victims: int
    flight_hours: float
    estimates: Mapping[str, Interval]
    gdop_bands: tuple[Band, ...]

    def estimate(self, metric: str) -> Interval | None:
        """One figure by name; None where the condition cannot have it."""
        return self.estimates.get(metric)

    def rows(self) -> list[dict[str, Any]]:
        """One flat dict per figure, with the condition and the counts every table must carry."""
        head = {**dict(self.condition), "missions": self.missions, "invalid": self.invalid, "seeds": len(self.seeds)}
        return [{**head, **plain_estimate(key, found)} for key, found in self.estimates.items()]


def plain_estimate(key: str, found: Interval) -> dict[str, Any]:
    """A figure as documents hold it."""
    return {"metric": key, **found.ends, "n": found.n, "unit": found.unit, "method": found.method}


def summarise(episodes: Iterable[EpisodeMetrics], by: Sequence[str] = CONDITION) -> tuple[ConditionSummary, ...]:
    """One summary per condition, in the order in which conditions first occur."""
    known = set(EpisodeMetrics.__dataclass_fields__)
    if unknown := [name for name in by if name not in known]:
        raise InputError(f"by: {', '.join(unknown)} is no metric; allowed are {', '.join(sorted(known))}")
    groups: dict[tuple[Any, ...], list[EpisodeMetrics]] = {}
    for episode in episodes:
        groups.setdefault(tuple(getattr(episode, name) for name in by), []).append(episode)
    return tuple(summary_of(group, tuple(zip(by, key, strict=True))) for key, group in groups.items())


def summary_of(group: Sequence[EpisodeMetrics], condition: tuple[tuple[str, Any], ...] = ()) -> ConditionSummary:
    """What these missions come to, as one condition."""
    valid = [e for e in group if e.valid]
    reasons = [e.invalid_reason or "no reason given" for e in group if not e.valid]
    victims = [v for e in valid for v in e.victims]
    return ConditionSummary(
        condition=condition,
        missions=len(valid),
        invalid=len(reasons),
        invalid_reasons=tuple((reason, reasons.count(reason)) for reason in sorted(set(reasons))),
        seeds=tuple(sorted({e.seed for e in valid})),
        layouts=len({e.episode for e in valid}),
        victims=len(victims),
        flight_hours=sum(e.flight_hours for e in valid),
        estimates={m.key: found for m in estimated() if (found := estimate(m, valid)) is not None},
        gdop_bands=gdop_bands(victims),
    )


def estimate(metric: Metric, valid: Sequence[EpisodeMetrics]) -> Interval | None:
    """A metric's figure over missions, by what the catalogue says of it; None where nothing is known."""
    if metric.aggregate in ("share", "rate") and metric.counts is not None:
        events, exposure = metric.counts(valid)
        if exposure <= 0.0:
            return None
        if metric.aggregate == "share":
            return clopper_pearson(events, int(exposure), CONFIDENCE, metric.of)
        return poisson_rate(events, exposure, metric.of, CONFIDENCE)
    if metric.aggregate == "quantile" and metric.samples is not None:
        sampled = metric.samples(valid)
        return order_quantile(sampled, metric.quantile, CONFIDENCE, metric.of) if sampled else None
    values = [value for e in valid if (value := metric.at(e)) is not None]
    if not values:
        return None
    value, how = (min(values), "least of all") if metric.aggregate == "least" else (float(np.mean(values)), "mean")
    return Interval(value, math.nan, math.nan, CONFIDENCE, how, "", n=len(values), unit=metric.of)


def median(metric: Metric, valid: Sequence[EpisodeMetrics]) -> tuple[Interval | None, list[bool]]:
    """A censored time's median, None without anything to time, and of each whether it came within its search.

    A report after the search (on the way home) is censored too. Every mission is watched for as long as it searched;
    if late reports counted while those without any left at the search's end, the late ones would look like all.
    """
    watched = [] if metric.timed is None else metric.timed(valid)
    came = [t is not None and t <= end for t, end in watched]
    times = [t if seen and t is not None else end for (t, end), seen in zip(watched, came, strict=True)]
    return median_time(times, came, CONFIDENCE) if times else None, came


def gdop_bands(victims: Sequence[Victim]) -> tuple[Band, ...]:
    """Errors at the first confident report, by the GDOP of that report; undefined GDOP is a band of its own."""
    edges = (0.0, *GDOP_EDGES, math.inf)
    names = ["< 1.2", "1.2 - 2", "2 - 4", ">= 4"]
    bands = []
    for name, low, high in zip(names, edges[:-1], edges[1:], strict=True):
        bands.append(_band(name, [v for v in victims if v.gdop is not None and low <= v.gdop < high]))
    bands.append(_band("undefined", [v for v in victims if v.detected and v.gdop is None]))
    return tuple(bands)


def _band(name: str, victims: Sequence[Victim]) -> Band:
    errors = [v.error_m for v in victims if v.error_m is not None]
    if not errors:
        return Band(name, 0, None, None)
    return Band(name, len(errors), order_quantile(errors, 0.5).value, order_quantile(errors, 0.95).value)


def profile_errors(episodes: Iterable[EpisodeMetrics]) -> Floats:
    """Error of every victim at its first confident report, for profiles over tau; inf if it was never found."""
    errors = [v.error_m if v.error_m is not None else math.inf for e in episodes if e.valid for v in e.victims]
    return np.array(errors, np.float64)
