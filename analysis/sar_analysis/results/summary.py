"""What a condition's missions come to: rates with exact intervals, circular errors, strata by geometry and by noise.

A condition is everything that was set the same: tier, world, vehicle, pattern, profile, drones, noise, victims or none.
Only valid missions enter a figure; the invalid ones are counted beside it. Missions and victims are taken as
independent here; intervals over crossed seeds and episodes are the bootstrap's business.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import betaincinv

from sar_analysis.metrics.catalogue import Metric, estimated
from sar_analysis.metrics.findings import Victim
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_core.errors import InputError

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
CONDITION = ("tier", "world", "vehicle", "pattern", "profile", "drones", "sigma", "kappa", "victim_absent")
NOISE = ("sigma", "kappa")
GDOP_EDGES = (1.2, 2.0, 4.0)
"""Between the geometries of three or four drones all round (1.15, 1.0), two at right angles (1.41), and worse."""


@dataclass(frozen=True)
class Estimate:
    """One figure with its two-sided 95 % interval, None where an end cannot be given; n is what it rests on."""

    metric: str
    value: float
    low: float | None
    high: float | None
    n: int
    unit: str
    method: str


@dataclass(frozen=True)
class Band:
    """Localisation errors of detections whose GDOP fell into one band; errors None where there are none."""

    name: str
    detections: int
    cep50_m: float | None
    cep95_m: float | None


@dataclass(frozen=True)
class Summary:
    """One condition. `condition` pairs names with values; estimates leave out what nothing was known of."""

    condition: tuple[tuple[str, Any], ...]
    missions: int
    invalid: int
    invalid_reasons: tuple[tuple[str, int], ...]
    seeds: tuple[int, ...]
    layouts: int
    victims: int
    flight_hours: float
    estimates: tuple[Estimate, ...]
    gdop_bands: tuple[Band, ...]

    def estimate(self, metric: str) -> Estimate | None:
        """One figure by name; None where the condition cannot have it."""
        return next((e for e in self.estimates if e.metric == metric), None)

    def rows(self) -> list[dict[str, Any]]:
        """One flat dict per figure, with the condition and the counts every table must carry."""
        head = {**dict(self.condition), "missions": self.missions, "invalid": self.invalid, "seeds": len(self.seeds)}
        return [{**head, **asdict(estimate)} for estimate in self.estimates]


def summarise(episodes: Iterable[EpisodeMetrics], by: Sequence[str] = CONDITION) -> tuple[Summary, ...]:
    """One summary per condition, in the order in which conditions first occur."""
    known = set(EpisodeMetrics.__dataclass_fields__)
    if unknown := [name for name in by if name not in known]:
        raise InputError(f"by: {', '.join(unknown)} is no metric; allowed are {', '.join(sorted(known))}")
    groups: dict[tuple[Any, ...], list[EpisodeMetrics]] = {}
    for episode in episodes:
        groups.setdefault(tuple(getattr(episode, name) for name in by), []).append(episode)
    return tuple(_summary(tuple(zip(by, key, strict=True)), group) for key, group in groups.items())


def _summary(condition: tuple[tuple[str, Any], ...], group: Sequence[EpisodeMetrics]) -> Summary:
    valid = [e for e in group if e.valid]
    reasons = [e.invalid_reason or "no reason given" for e in group if not e.valid]
    victims = [v for e in valid for v in e.victims]
    return Summary(
        condition=condition,
        missions=len(valid),
        invalid=len(reasons),
        invalid_reasons=tuple((reason, reasons.count(reason)) for reason in sorted(set(reasons))),
        seeds=tuple(sorted({e.seed for e in valid})),
        layouts=len({e.episode for e in valid}),
        victims=len(victims),
        flight_hours=sum(e.flight_hours for e in valid),
        estimates=tuple(e for metric in estimated() if (e := _estimate(metric, valid)) is not None),
        gdop_bands=gdop_bands(victims),
    )


def _estimate(metric: Metric, valid: Sequence[EpisodeMetrics]) -> Estimate | None:
    """A metric's figure over missions, by what the catalogue says of it; None where nothing is known."""
    if metric.aggregate == "share" and metric.counts is not None:
        successes, trials = metric.counts(valid)
        return share(metric.key, successes, int(trials), metric.of)
    if metric.aggregate == "rate" and metric.counts is not None:
        return rate(metric.key, *metric.counts(valid), metric.of)
    if metric.aggregate == "quantile" and metric.samples is not None:
        return quantile(metric.key, metric.samples(valid), metric.quantile)
    values = [value for e in valid if (value := metric.at(e)) is not None]
    if not values:
        return None
    value, how = (min(values), "least of all") if metric.aggregate == "least" else (float(np.mean(values)), "mean")
    return Estimate(metric.key, value, None, None, len(values), metric.of, how)


def share(metric: str, successes: int, trials: int, unit: str) -> Estimate | None:
    """A share with the exact interval of Clopper and Pearson (1934); None without trials."""
    if trials == 0:
        return None
    tail, missed = (1.0 - CONFIDENCE) / 2.0, trials - successes
    return Estimate(
        metric,
        successes / trials,
        float(betaincinv(successes, missed + 1, tail)) if successes else 0.0,
        float(betaincinv(successes + 1, missed, 1.0 - tail)) if missed else 1.0,
        trials,
        unit,
        f"Clopper-Pearson, {successes} of n",
    )


def rate(metric: str, events: int, exposure: float, unit: str) -> Estimate | None:
    """Events per unit of exposure, exact Poisson interval (Garwood 1936); n counts events; None without exposure."""
    if exposure <= 0.0:
        return None
    tail = (1.0 - CONFIDENCE) / 2.0
    low = float(stats.chi2.ppf(tail, 2 * events)) / 2.0 if events else 0.0
    high = float(stats.chi2.ppf(1.0 - tail, 2 * events + 2)) / 2.0
    method = f"exact Poisson over {exposure:.6g}"
    return Estimate(metric, events / exposure, low / exposure, high / exposure, events, f"per {unit}", method)


def quantile(metric: str, values: Sequence[float], p: float) -> Estimate | None:
    """The smallest value with at least a share p at or below it; interval by order statistics, free of distribution.

    The r-th and s-th smallest enclose it with probability P(r <= B < s), B binomial (David & Nagaraja 2003, 7.1). With
    too few values an end does not exist: the upper one of a 95 % quantile takes 72.
    """
    n = len(values)
    if n == 0:
        return None
    ordered = np.sort(np.asarray(values, np.float64))
    tail = (1.0 - CONFIDENCE) / 2.0
    lower = int(stats.binom.ppf(tail, n, p))
    upper = int(stats.binom.ppf(1.0 - tail, n, p)) + 1
    return Estimate(
        metric,
        float(ordered[max(math.ceil(p * n) - 1, 0)]),
        float(ordered[lower - 1]) if lower >= 1 else None,
        float(ordered[upper - 1]) if upper <= n else None,
        n,
        "detected victims",
        "order statistics",
    )


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
    half, most = quantile("cep50_m", errors, 0.5), quantile("cep95_m", errors, 0.95)
    return Band(name, len(errors), half.value if half else None, most.value if most else None)


def profile_errors(episodes: Iterable[EpisodeMetrics]) -> Floats:
    """Error of every victim at its first confident report, for profiles over tau; inf if it was never found."""
    errors = [v.error_m if v.error_m is not None else math.inf for e in episodes if e.valid for v in e.victims]
    return np.array(errors, np.float64)
