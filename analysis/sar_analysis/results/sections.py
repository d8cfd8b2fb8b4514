"""One condition's part of the results: every figure with what it rests on, and in words what has no figure.

Plain values only, fit for JSON: an undefined number is None and a reason stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sar_analysis.metrics.catalogue import METRICS, SEED_BY_SEED, Metric, estimated, scored, timed
from sar_analysis.metrics.metrics import CURVE_STEP_S, EpisodeMetrics
from sar_analysis.results.conditions import Group, crossed
from sar_analysis.results.summary import (
    NOT_HELD,
    ONE_KIND,
    Band,
    ConditionSummary,
    both_kinds,
    gdop_bands,
    median,
    plain_estimate,
    profile_errors,
    restricted_mean,
    summarise,
    watch,
)
from sar_analysis.stats import clustered
from sar_analysis.stats.aggregate import performance_profile
from sar_analysis.stats.curves import means, shares
from sar_analysis.stats.designs import Design
from sar_analysis.stats.interval import Interval, Reading
from sar_analysis.stats.layouts import DEFAULT, Options
from sar_analysis.stats.resampling import ENOUGH_SEEDS, bootstrap
from sar_analysis.stats.scores import Scores
from sar_core.errors import SarError

TAUS_M = tuple(round(0.25 * k, 2) for k in range(41))
BAND = (0.025, 0.975)


def section(g: Group, options: Options) -> dict[str, Any]:
    """Everything known about one condition."""
    (summary,) = summarise(g.episodes, [name for name, _ in g.condition], options)
    return {
        "id": g.id,
        "label": g.label,
        "condition": g.plain,
        **counts(summary),
        "estimates": estimates(summary),
        "not_computed": missing(summary, g),
        "scores": [score for metric in scored() for score in scores(metric.key, g, options)],
        "times": times(g.valid, options),
        "gdop_bands": [_band(band) for band in gdop_bands(g.valid, options)],
        "coverage_curve": coverage_curve(g.valid, options),
        "profile": profile(g.valid, options),
    }


def counts(summary: ConditionSummary) -> dict[str, Any]:
    """What every table must carry."""
    return {
        "missions": summary.missions,
        "invalid": summary.invalid,
        "invalid_reasons": dict(summary.invalid_reasons),
        "seeds": list(summary.seeds),
        "episodes": summary.episodes,
        "victims": summary.victims,
        "flight_hours": summary.flight_hours,
    }


def estimates(summary: ConditionSummary) -> list[dict[str, Any]]:
    """Figures over missions."""
    return [plain_estimate(key, found) for key, found in summary.estimates.items()]


def _band(band: Band) -> dict[str, Any]:
    ceps = {name: figure(getattr(band, name)) for name in ("cep50_m", "cep95_m")}
    return {"name": band.name, "detections": band.detections, **ceps}


def figure(found: Interval | None) -> dict[str, Any] | None:
    """A figure as documents hold it; None where there is none."""
    return None if found is None else found.plain


def missing(summary: ConditionSummary, g: Group) -> list[dict[str, str]]:
    """Figures the condition cannot have, and why."""
    return [{"metric": m.key, "why": _why(m, summary, g)} for m in estimated() if m.key not in summary.estimates]


def _why(metric: Metric, summary: ConditionSummary, g: Group) -> str:
    if not summary.missions:
        return "no valid mission"
    if metric.sensing and all(e.false_alarms is None for e in g.valid):
        return "flown without radio"
    if metric.sensing and not summary.victims:
        return "no victims in these missions"
    if all(e.schema < metric.since for e in g.valid):
        return NOT_HELD
    if metric.mixed and not both_kinds(g.valid):
        return ONE_KIND
    if metric.aggregate == "quantile":
        return "no victim was issued"
    if metric.key == "min_separation_m":
        return "a single drone keeps no distance"
    if all("from a record, not a bag" in e.notes for e in g.valid):
        return "needs bags; these are records"
    return "undefined in every mission"


def scores(metric: str, g: Group, options: Options) -> list[dict[str, Any]]:
    """The metric's IQM over the crossed table, once for each question an interval can answer; the headline first."""
    try:
        table = crossed(metric, g.episodes)
    except SarError as error:
        return [{"metric": metric, "statistic": "iqm", "refused": str(error)}]
    few = len(table.seeds) < ENOUGH_SEEDS
    questions: tuple[tuple[Design, Reading], ...] = (("seeds", "t"), ("seeds_layouts", "t" if few else "percentile"))
    return [_of_layouts(table, options), *(_score(table, design, reading, options) for design, reading in questions)]


def _of_layouts(table: Scores, options: Options) -> dict[str, Any]:
    """The headline: on new layouts, by these seeds."""
    layouts = [layout for _ in table.seeds for layout in table.layouts]
    found = clustered.iqm(table.values.ravel(), layouts, options, bounds=METRICS[table.metric].bounds)
    told = replace(found, notes=(*table.notes, *found.notes))
    head = {"metric": table.metric, "statistic": "iqm", "design": "layouts", "reading": "expanded percentile"}
    return {**head, "n": found.n, **interval(told)}


def _score(table: Scores, design: Design, reading: Reading, options: Options) -> dict[str, Any]:
    head = {"metric": table.metric, "statistic": "iqm", "design": design, "reading": reading, "n": table.values.size}
    try:
        found = bootstrap(
            table,
            design=design,
            reading=reading,
            resamples=options.resamples,
            seed=options.seed,
            confidence=options.confidence,
        )
    except SarError as error:
        return {**head, "refused": str(error), "notes": list(table.notes)}
    return {**head, **interval(found)}


def interval(found: Interval) -> dict[str, Any]:
    """An interval as plain values; infinite parts are None and the notes say why."""
    return {
        **found.ends,
        "estimand": found.estimand,
        "method": found.method,
        "cluster": found.cluster or None,
        "resamples": found.resamples,
        "seed": found.seed,
        "confidence": found.confidence,
        "notes": list(found.notes),
    }


def times(valid: Sequence[EpisodeMetrics], options: Options = DEFAULT) -> list[dict[str, Any]]:
    """Times; what did not come within the search is censored at its end."""
    return [_time(metric, valid, options) for metric in timed()]


def _time(metric: Metric, valid: Sequence[EpisodeMetrics], options: Options) -> dict[str, Any]:
    seen = watch(metric, valid)
    n, reached = len(seen.came), sum(seen.came)
    head = {"metric": metric.key, "n": n, "reached": reached, "censored": n - reached, "unit": metric.of}
    found, mean = median(metric, seen, options), restricted_mean(metric, seen, options)
    told = {
        "horizon_s": None if mean is None else mean[0],
        "restricted_mean": None if mean is None else mean[1].plain,
    }
    if found is None:
        made = dict.fromkeys(("median", "low", "high", "cluster", "resamples", "seed", "exact"))
        return {**head, **made, "method": "nothing to time", "notes": [f"no {metric.of} to time"], **told}
    plain = found.plain
    return {**head, "median": plain.pop("value"), **plain, **told}


def coverage_curve(valid: Sequence[EpisodeMetrics], options: Options = DEFAULT) -> dict[str, Any]:
    """Fraction scanned over search time: mean of the missions with its interval, and their middle 95 %, by the point.

    What was scanned stays scanned: a search that ended before the longest keeps its last value.
    """
    curves = [e.coverage_curve for e in valid if e.coverage_curve]
    names = ("time_s", "mean", "mean_low", "mean_high", "low", "high")
    if not curves:
        nothing = {"missions": 0, "method": "no mission searched", "cluster": None, "resamples": None, "seed": None}
        return {**{name: [] for name in names}, **nothing, "notes": []}
    length = max(map(len, curves))
    table = np.array([[*curve, *[curve[-1]] * (length - len(curve))] for curve in curves])
    layouts = [e.layout for e in valid if e.coverage_curve]
    found = means(table, layouts, options)
    low, high = np.quantile(table, BAND, axis=0)
    times = [k * CURVE_STEP_S for k in range(length)]
    columns = (times, table.mean(axis=0).tolist(), list(found.low), list(found.high), low.tolist(), high.tolist())
    return {**dict(zip(names, columns, strict=True)), "missions": len(curves), **found.made}


def profile(valid: Sequence[EpisodeMetrics], options: Options) -> dict[str, Any]:
    """Share of victims whose issue was less than tau off; one never issued is below no tau."""
    errors = profile_errors(valid)
    if not errors.size:
        nothing = {"victims": 0, "method": "no victims", "cluster": None, "resamples": None, "seed": None, "notes": []}
        return {**{name: [] for name in ("tau_m", "share", "low", "high")}, **nothing}
    layouts = [e.layout for e in valid for _ in e.victims]
    found = shares(errors[:, None] < np.array(TAUS_M), layouts, options)
    return {
        "tau_m": list(TAUS_M),
        "share": performance_profile(errors, TAUS_M).tolist(),
        "low": list(found.low),
        "high": list(found.high),
        "victims": int(errors.size),
        **found.made,
    }


def seed_rows(g: Group, options: Options) -> list[dict[str, Any]]:
    """One row per seed that was flown, its INVALID missions counted; a metric is None where the seed has none."""
    rows = []
    for seed in sorted({e.seed for e in g.episodes}):
        mine = [e for e in g.episodes if e.seed == seed]
        (own,) = summarise(mine, [name for name, _ in g.condition], options, SEED_BY_SEED)
        rows.append(
            {
                "condition": g.id,
                "seed": seed,
                "missions": own.missions,
                "invalid": own.invalid,
                "metrics": {name: figure(own.estimate(name)) for name in SEED_BY_SEED},
            }
        )
    return rows
