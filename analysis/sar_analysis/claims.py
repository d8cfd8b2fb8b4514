"""From a registration and its tables to its claims: each interval as registered, and whether each threshold holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sar_analysis.improvement import paired_improvement
from sar_analysis.interval import Interval
from sar_analysis.prereg import Registration, Threshold
from sar_analysis.resampling import bootstrap, paired
from sar_analysis.scores import Scores, listed
from sar_analysis.statistics import Statistic, iqm_of, mean_iqm_of_levels, mean_of, quantile_of
from sar_core.errors import MissingDataError

ESTIMATORS: dict[str, Callable[[Scores], Statistic]] = {
    "iqm": iqm_of,
    "mean_iqm_of_levels": mean_iqm_of_levels,
    "mean": mean_of,
    "median": lambda scores: quantile_of(scores, 0.5),
}


@dataclass(frozen=True)
class Verdict:
    """One registered threshold, the interval that decided it, and how."""

    threshold: Threshold
    interval: Interval
    holds: bool


def estimate(registration: Registration, scores: Scores) -> Interval:
    """A condition's own interval; under a comparing estimator its IQM, which has to be shown beside any comparison."""
    b = registration.bootstrap
    make = ESTIMATORS.get(registration.estimator, iqm_of)
    return bootstrap(scores, make, b.method, b.reading, b.resamples, b.seed, b.confidence)


def compare(registration: Registration, first: Scores, second: Scores) -> Interval:
    """First against second, paired by (seed, episode), with the registered estimator and method."""
    b = registration.bootstrap
    settings = (b.method, b.reading, b.resamples, b.seed, b.confidence)
    if registration.estimator == "probability_of_improvement":
        return paired_improvement(first, second, *settings)
    return paired(first, second, ESTIMATORS[registration.estimator], *settings)


def decide(registration: Registration, tables: Mapping[str, Scores]) -> tuple[Verdict, ...]:
    """Every threshold of the registration in its order; ``tables`` holds one table per condition name."""
    missing = [condition.name for condition in registration.conditions if condition.name not in tables]
    if missing:
        raise MissingDataError(f"{registration.metric}: no table for condition {listed(missing)}; all are needed")
    verdicts = []
    for threshold in registration.thresholds:
        scores = tables[threshold.condition]
        if threshold.against is None:
            interval = estimate(registration, scores)
        else:
            interval = compare(registration, scores, tables[threshold.against])
        verdicts.append(Verdict(threshold, interval, threshold.holds(interval)))
    return tuple(verdicts)
