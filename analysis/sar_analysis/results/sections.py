"""One condition's part of the results: every figure with what it rests on, and in words what has no figure.

Plain values only, fit for JSON: an undefined number is None and a reason stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sar_analysis.metrics.catalogue import SEED_BY_SEED, Metric, estimated, scored, timed
from sar_analysis.metrics.metrics import CURVE_STEP_S, EpisodeMetrics
from sar_analysis.results.conditions import Group, crossed
from sar_analysis.results.summary import ConditionSummary, median, plain_estimate, profile_errors, summarise
from sar_analysis.stats.aggregate import iqm, performance_profile
from sar_analysis.stats.designs import Design
from sar_analysis.stats.interval import Interval, Reading
from sar_analysis.stats.rates import clopper_pearson
from sar_analysis.stats.resampling import bootstrap
from sar_analysis.stats.scores import Scores
from sar_core.errors import SarError

ENOUGH_SEEDS = 10
"""From here on a bootstrap over seeds and layouts covers what it claims; below, Student's t over seeds is used."""
TAUS_M = tuple(round(0.25 * k, 2) for k in range(41))
BAND = (0.025, 0.975)


@dataclass(frozen=True)
class Options:
    """How intervals are made where they are resampled."""

    resamples: int
    seed: int
    confidence: float = 0.95


def section(g: Group, options: Options) -> dict[str, Any]:
    """Everything known about one condition."""
    (summary,) = summarise(g.episodes, [name for name, _ in g.condition])
    return {
        "id": g.id,
        "label": g.label,
        "condition": g.plain,
        **counts(summary),
        "estimates": estimates(summary),
        "not_computed": missing(summary, g),
        "scores": [score for metric in scored() for score in scores(metric.key, g, options)],
        "times": times(g.valid),
        "gdop_bands": [asdict(band) for band in summary.gdop_bands],
        "coverage_curve": coverage_curve(g.valid),
        "profile": profile(g.valid),
    }


def counts(summary: ConditionSummary) -> dict[str, Any]:
    """What every table must carry."""
    return {
        "missions": summary.missions,
        "invalid": summary.invalid,
        "invalid_reasons": dict(summary.invalid_reasons),
        "seeds": list(summary.seeds),
        "episodes": summary.layouts,
        "victims": summary.victims,
        "flight_hours": summary.flight_hours,
    }


def estimates(summary: ConditionSummary) -> list[dict[str, Any]]:
    """Figures over missions; a missing end of an interval carries the reason."""
    found = []
    for key, estimate in summary.estimates.items():
        plain = plain_estimate(key, estimate)
        if plain["low"] is None or plain["high"] is None:
            few = f"{estimate.n} are too few for an end of a distribution-free interval"
            plain["note"] = few if estimate.method == "order statistics" else f"{estimate.method}, no interval"
        found.append(plain)
    return found


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
    if metric.aggregate == "quantile":
        return "no victim was found"
    if metric.key == "min_separation_m":
        return "a single drone keeps no distance"
    if all("from a record, not a bag" in e.notes for e in g.valid):
        return "needs bags; these are records"
    return "undefined in every mission"


def scores(metric: str, g: Group, options: Options) -> list[dict[str, Any]]:
    """The metric's IQM over the crossed table, once for each question an interval can answer."""
    try:
        table = crossed(metric, g.episodes)
    except SarError as error:
        return [{"metric": metric, "statistic": "iqm", "refused": str(error)}]
    few = len(table.seeds) < ENOUGH_SEEDS
    questions: tuple[tuple[Design, Reading], ...] = (("seeds", "t"), ("seeds_layouts", "t" if few else "percentile"))
    return [_score(table, design, reading, options) for design, reading in questions]


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
        return {**head, "value": iqm(table.values), "refused": str(error), "notes": list(table.notes)}
    return {**head, **interval(found)}


def interval(found: Interval) -> dict[str, Any]:
    """An interval as plain values; infinite parts are None and the notes say why."""
    return {
        **found.ends,
        "estimand": found.estimand,
        "method": found.method,
        "resamples": found.resamples,
        "seed": found.seed,
        "confidence": found.confidence,
        "notes": list(found.notes),
    }


def times(valid: Sequence[EpisodeMetrics]) -> list[dict[str, Any]]:
    """Median times; what did not come within the search is censored at its end."""
    return [_time(metric, valid) for metric in timed()]


def _time(metric: Metric, valid: Sequence[EpisodeMetrics]) -> dict[str, Any]:
    found, came = median(metric, valid)
    head = {
        "metric": metric.key,
        "n": len(came),
        "reached": sum(came),
        "censored": len(came) - sum(came),
        "unit": metric.of,
    }
    if found is None:
        empty = {"median": None, "low": None, "high": None, "method": metric.interval}
        return {**head, **empty, "notes": [f"no {metric.of} to time"]}
    value, low, high = found.ends.values()
    return {**head, "median": value, "low": low, "high": high, "method": found.method, "notes": list(found.notes)}


def coverage_curve(valid: Sequence[EpisodeMetrics]) -> dict[str, Any]:
    """Fraction scanned over search time: mean of the missions and the middle 95 % of them, point by point.

    What was scanned stays scanned: a search that ended before the longest keeps its last value.
    """
    curves = [e.coverage_curve for e in valid if e.coverage_curve]
    method = "mean of missions; low and high enclose the middle 95 % of missions at each time"
    if not curves:
        return {"time_s": [], "mean": [], "low": [], "high": [], "missions": 0, "method": method}
    length = max(map(len, curves))
    table = np.array([[*curve, *[curve[-1]] * (length - len(curve))] for curve in curves])
    low, high = np.quantile(table, BAND, axis=0)
    return {
        "time_s": [k * CURVE_STEP_S for k in range(length)],
        "mean": table.mean(axis=0).tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "missions": len(curves),
        "method": method,
    }


def profile(valid: Sequence[EpisodeMetrics]) -> dict[str, Any]:
    """Share of victims whose first confident report was less than tau off; one never found is below no tau."""
    errors = profile_errors(valid)
    method = "Clopper-Pearson at each tau, victims taken as independent"
    if not errors.size:
        return {"tau_m": [], "share": [], "low": [], "high": [], "victims": 0, "method": method}
    found = performance_profile(errors, TAUS_M)
    ends = [clopper_pearson(round(value * errors.size), errors.size, unit="victims") for value in found]
    return {
        "tau_m": list(TAUS_M),
        "share": found.tolist(),
        "low": [end.low for end in ends],
        "high": [end.high for end in ends],
        "victims": int(errors.size),
        "method": method,
    }


def seed_rows(g: Group) -> list[dict[str, Any]]:
    """One row per seed that was flown, its INVALID missions counted; a metric is None where the seed has none."""
    rows = []
    for seed in sorted({e.seed for e in g.episodes}):
        (own,) = summarise([e for e in g.episodes if e.seed == seed], [name for name, _ in g.condition])
        found = {name: own.estimate(name) for name in SEED_BY_SEED}
        rows.append(
            {
                "condition": g.id,
                "seed": seed,
                "missions": own.missions,
                "invalid": own.invalid,
                "metrics": {name: None if e is None else e.value for name, e in found.items()},
            }
        )
    return rows
