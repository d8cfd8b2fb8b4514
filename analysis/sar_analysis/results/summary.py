"""What a condition's missions come to: rates, circular errors, means and times, each with its interval over layouts.

A condition is everything that was set the same: tier, world, vehicle, pattern, profile, drones, noise, victims or none.
Only valid missions enter a figure; the invalid ones are counted beside it. Every interval is over layouts, which
missions share; intervals over crossed seeds and episodes are made from the crossed table.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_analysis.bags.reader import OLDER
from sar_analysis.metrics.catalogue import COVERAGE_TIME_S, ISSUES, Metric, estimated
from sar_analysis.metrics.findings import Victim
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.stats import clustered
from sar_analysis.stats.interval import Interval
from sar_analysis.stats.layouts import DEFAULT, Options
from sar_analysis.stats.rates import clopper_pearson, order_quantile, poisson_rate
from sar_analysis.stats.survival import median_time
from sar_core.errors import InputError

Floats = NDArray[np.float64]

CONDITION = ("tier", "world", "vehicle", "pattern", "profile", "drones", "sigma", "kappa", "victim_absent")
NOISE = ("sigma", "kappa")
EXTREME = "extreme, no interval"
NOT_HELD = "records of schema 1 do not hold it"
ONE_KIND = "needs missions with victims and without"
UNDEFINED, NOT_RECORDED = "undefined", "not recorded"
"""A GDOP that fewer than two drones have none of, and one that records of schema 1 do not hold."""
GDOP_EDGES = (1.2, 2.0, 4.0)
"""Between the geometries of three or four drones all round (1.15, 1.0), two at right angles (1.41), and worse."""
GDOP_BANDS = ("< 1.2", "1.2 - 2", "2 - 4", ">= 4")


@dataclass(frozen=True)
class Band:
    """Localisation errors of detections whose GDOP fell into one band; errors None where there are none."""

    name: str
    detections: int
    cep50_m: Interval | None
    cep95_m: Interval | None


@dataclass(frozen=True)
class ConditionSummary:
    """One condition. `condition` pairs names with values; estimates leave out what nothing was known of."""

    condition: tuple[tuple[str, Any], ...]
    missions: int
    invalid: int
    invalid_reasons: tuple[tuple[str, int], ...]
    seeds: tuple[int, ...]
    episodes: int
    victims: int
    flight_hours: float
    estimates: Mapping[str, Interval]

    def estimate(self, metric: str) -> Interval | None:
        """One figure by name; None where the condition cannot have it."""
        return self.estimates.get(metric)

    def rows(self) -> list[dict[str, Any]]:
        """One flat dict per figure, with the condition and the counts every table must carry."""
        head = {**dict(self.condition), "missions": self.missions, "invalid": self.invalid, "seeds": len(self.seeds)}
        return [{**head, **plain_estimate(key, found)} for key, found in self.estimates.items()]


def plain_estimate(key: str, found: Interval) -> dict[str, Any]:
    """A figure as documents hold it."""
    return {"metric": key, **found.plain}


def summarise(
    episodes: Iterable[EpisodeMetrics],
    by: Sequence[str] = CONDITION,
    options: Options = DEFAULT,
    metrics: Sequence[str] | None = None,
) -> tuple[ConditionSummary, ...]:
    """One summary per condition, in the order in which conditions first occur."""
    known = set(EpisodeMetrics.__dataclass_fields__)
    if unknown := [name for name in by if name not in known]:
        raise InputError(f"by: {', '.join(unknown)} is no metric; allowed are {', '.join(sorted(known))}")
    groups: dict[tuple[Any, ...], list[EpisodeMetrics]] = {}
    for episode in episodes:
        groups.setdefault(tuple(getattr(episode, name) for name in by), []).append(episode)
    return tuple(summary_of(group, tuple(zip(by, key, strict=True)), options, metrics) for key, group in groups.items())


def summary_of(
    group: Sequence[EpisodeMetrics],
    condition: tuple[tuple[str, Any], ...] = (),
    options: Options = DEFAULT,
    metrics: Sequence[str] | None = None,
) -> ConditionSummary:
    """What these missions come to, as one condition; of all metrics, or of those named."""
    valid = [e for e in group if e.valid]
    reasons = [e.invalid_reason or "no reason given" for e in group if not e.valid]
    asked = [m for m in estimated() if metrics is None or m.key in metrics]
    return ConditionSummary(
        condition=condition,
        missions=len(valid),
        invalid=len(reasons),
        invalid_reasons=tuple((reason, reasons.count(reason)) for reason in sorted(set(reasons))),
        seeds=tuple(sorted({e.seed for e in valid})),
        episodes=len({e.episode for e in valid}),
        victims=sum(len(e.victims) for e in valid),
        flight_hours=sum(e.flight_hours for e in valid),
        estimates={m.key: found for m in asked if (found := estimate(m, valid, options)) is not None},
    )


def estimate(metric: Metric, valid: Sequence[EpisodeMetrics], options: Options = DEFAULT) -> Interval | None:
    """A metric's figure over missions, by what the catalogue says of it; None where nothing is known.

    The interval is over layouts; the exact one of missions or victims taken as independent stands beside it.
    """
    if metric.mixed:
        return _mixed(metric, valid, options)
    if metric.aggregate == "restricted mean":
        return _restricted(metric, valid, options)
    if metric.aggregate in ("share", "rate") and metric.counts is not None:
        counted = [(*count, e.layout) for e in valid if (count := metric.counts(e)) is not None]
        return _counted(metric, counted, options) if any(exposure > 0.0 for _, exposure, _ in counted) else None
    if metric.aggregate == "quantile" and metric.samples is not None:
        sampled = [(x, e.layout) for e in valid for x in metric.samples(e)]
        if not sampled:
            return None
        values, layouts = _columns(sampled)
        found = clustered.quantile(values, metric.quantile, layouts, options, metric.of)
        return replace(found, exact=order_quantile(values, metric.quantile, options.confidence, metric.of))
    own = [(value, e.layout) for e in valid if (value := metric.at(e)) is not None]
    if not own:
        return None
    values, layouts = _columns(own)
    if metric.aggregate == "least":
        return extreme(min(values), len(values), metric.of, options)
    return clustered.mean(values, layouts, options, metric.of, metric.bounds)


def both_kinds(valid: Sequence[EpisodeMetrics]) -> bool:
    """Whether there are missions with victims and missions without."""
    return len({e.victim_absent for e in valid}) == 2


def _mixed(metric: Metric, valid: Sequence[EpisodeMetrics], options: Options) -> Interval | None:
    """At one mission without victims for each with, however many of either are valid."""
    counted = [
        (*count, e.victim_absent, e.layout)
        for e in valid
        if metric.counts is not None and (count := metric.counts(e)) is not None
    ]
    if len({absent for _, _, absent, _ in counted}) < 2 or not any(trials for _, trials, _, _ in counted):
        return None
    had, trials, absent, layouts = _columns(counted)
    found = clustered.mixed_share(had, trials, absent, layouts, options, metric.of)
    if 2 * sum(absent) != len(absent):
        return found
    return replace(found, exact=clopper_pearson(sum(had), sum(trials), options.confidence, metric.of))


def _restricted(metric: Metric, valid: Sequence[EpisodeMetrics], options: Options) -> Interval | None:
    found = restricted_mean(metric, watch(metric, valid), options)
    if found is None:
        return None
    horizon, told = found
    shorter = (f"up to {horizon:g} s, the longest search",) if horizon < COVERAGE_TIME_S else ()
    return replace(told, notes=(*told.notes, *shorter))


def _counted(metric: Metric, counted: Sequence[tuple[int, float, Hashable]], options: Options) -> Interval:
    events, exposure, layouts = _columns(counted)
    had, total = sum(events), sum(exposure)
    if metric.aggregate == "share":
        found = clustered.share(events, exposure, layouts, options, metric.of)
        return replace(found, exact=clopper_pearson(had, int(total), options.confidence, metric.of))
    found = clustered.rate(events, exposure, layouts, options, metric.of)
    return replace(found, exact=poisson_rate(had, total, metric.of, options.confidence))


def _columns(rows: Sequence[tuple[Any, ...]]) -> tuple[list[Any], ...]:
    return tuple(map(list, zip(*rows, strict=True)))


def extreme(value: float, n: int, unit: str, options: Options = DEFAULT) -> Interval:
    """The least or the most of all that was seen, which has no interval: unseen missions may go further."""
    notes = ("an extreme of what was seen: no interval says how far unseen missions go",)
    return Interval(
        value, math.nan, math.nan, options.confidence, EXTREME, "the least seen", None, None, notes, n, unit
    )


class Watch(NamedTuple):
    """Times that may not come: how long each was watched for [s], whether it came within that, and its layout."""

    durations: list[float]
    came: list[bool]
    layouts: list[Hashable]


def watch(metric: Metric, valid: Sequence[EpisodeMetrics]) -> Watch:
    """A censored time over missions.

    A report after the search (on the way home) is censored too. Every mission is watched for as long as it searched;
    if late reports counted while those without any left at the search's end, the late ones would look like all.
    """
    made = Watch([], [], [])
    for e in valid:
        for at, end in () if metric.timed is None else metric.timed(e):
            came = at is not None and at <= end
            made.durations.append(at if came and at is not None else end)
            made.came.append(came)
            made.layouts.append(e.layout)
    return made


def median(metric: Metric, seen: Watch, options: Options = DEFAULT) -> Interval | None:
    """The median over layouts, Kaplan and Meier's own interval beside it; None without anything to time."""
    if not seen.came:
        return None
    found = clustered.median_time(*seen, options, metric.of)
    return replace(found, exact=median_time(seen.durations, seen.came, options.confidence, unit=metric.of))


def restricted_mean(metric: Metric, seen: Watch, options: Options = DEFAULT) -> tuple[float, Interval] | None:
    """The horizon [s], at most 240 s and no longer than any search, and the mean time up to it; a miss counts as it."""
    horizon = min(COVERAGE_TIME_S, max(seen.durations, default=0.0))
    if horizon <= 0.0:
        return None
    return horizon, clustered.rmst(seen.durations, seen.came, horizon, seen.layouts, options, metric.of)


def gdop_bands(valid: Sequence[EpisodeMetrics], options: Options = DEFAULT) -> tuple[Band, ...]:
    """Errors at the issue, right or not, by the constellation's GDOP at it; what has none is a band of its own."""
    last = NOT_RECORDED if any(e.schema < ISSUES or OLDER in e.notes for e in valid) else UNDEFINED
    own: dict[str, list[tuple[Victim, Hashable]]] = {name: [] for name in (*GDOP_BANDS, last)}
    for v, layout in ((v, e.layout) for e in valid for v in e.victims if v.issued_s is not None):
        gdop = v.constellation_gdop
        own[last if gdop is None else GDOP_BANDS[bisect_right(GDOP_EDGES, gdop)]].append((v, layout))
    return tuple(_band(name, victims, options) for name, victims in own.items())


def _band(name: str, victims: Sequence[tuple[Victim, Hashable]], options: Options) -> Band:
    found = [(v.error_m, layout) for v, layout in victims if v.error_m is not None]
    if not found:
        return Band(name, 0, None, None)
    errors, layouts = _columns(found)
    ceps = (clustered.quantile(errors, q, layouts, options, "detected victims") for q in (0.5, 0.95))
    return Band(name, len(errors), *ceps)


def profile_errors(episodes: Iterable[EpisodeMetrics]) -> Floats:
    """Error of every victim at its first confident report, for profiles over tau; inf if it was never found."""
    errors = [v.error_m if v.error_m is not None else math.inf for e in episodes if e.valid for v in e.victims]
    return np.array(errors, np.float64)
