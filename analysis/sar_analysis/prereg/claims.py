"""From a registration and its tables to its claims: each interval as registered, and whether each threshold holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sar_analysis.prereg.prereg import Registration, Threshold
from sar_analysis.stats.improvement import paired_improvement
from sar_analysis.stats.interval import Interval
from sar_analysis.stats.resampling import bootstrap, paired
from sar_analysis.stats.scores import Scores, listed, on_common_episodes
from sar_analysis.stats.statistics import Statistic, iqm_of, mean_iqm_of_levels, mean_of, quantile_of
from sar_core.errors import MissingDataError, SarError

ESTIMATORS: dict[str, Callable[[Scores], Statistic]] = {
    "iqm": iqm_of,
    "mean_iqm_of_levels": mean_iqm_of_levels,
    "mean": mean_of,
    "median": lambda scores: quantile_of(scores, 0.5),
}


@dataclass(frozen=True)
class Verdict:
    """One registered threshold, the interval that decided it, and how; undecided, the reason stands in ``refused``."""

    threshold: Threshold
    interval: Interval | None
    holds: bool | None
    refused: str | None = None


def estimate(registration: Registration, scores: Scores) -> Interval:
    """A condition's own interval; under a comparing estimator its IQM, which has to be shown beside any comparison."""
    b = registration.bootstrap
    make = ESTIMATORS.get(registration.estimator, iqm_of)
    return bootstrap(scores, make, b.method, b.reading, b.resamples, b.seed, b.confidence)


def compare(registration: Registration, first: Scores, second: Scores) -> Interval:
    """First against second, paired by (seed, episode), with the registered estimator and method.

    Under best_effort either side may have lost episodes of its own: what both still have is compared.
    """
    if registration.failure_policy == "best_effort":
        first, second = on_common_episodes([first, second])
    b = registration.bootstrap
    settings = (b.method, b.reading, b.resamples, b.seed, b.confidence)
    if registration.estimator == "probability_of_improvement":
        return paired_improvement(first, second, *settings)
    return paired(first, second, ESTIMATORS[registration.estimator], *settings)


def decide(registration: Registration, tables: Mapping[str, Scores | str]) -> tuple[Verdict, ...]:
    """Every threshold of the registration in its order, each on its own: one that cannot be decided says why.

    ``tables`` holds one table per condition name, or the reason why there is none.
    """
    missing = [condition.name for condition in registration.conditions if condition.name not in tables]
    if missing:
        raise MissingDataError(f"{registration.metric}: no table for condition {listed(missing)}; all are needed")
    return tuple(_decided(registration, threshold, tables) for threshold in registration.thresholds)


def _decided(registration: Registration, threshold: Threshold, tables: Mapping[str, Scores | str]) -> Verdict:
    sides = [tables[name] for name in (threshold.condition, threshold.against) if name is not None]
    reasons = [side for side in sides if isinstance(side, str)]
    if reasons:
        return Verdict(threshold, None, None, "; ".join(dict.fromkeys(reasons)))
    scores = [side for side in sides if isinstance(side, Scores)]
    try:
        interval = estimate(registration, *scores) if len(scores) == 1 else compare(registration, *scores)
    except SarError as error:
        return Verdict(threshold, None, None, str(error))
    if math.isnan(getattr(interval, threshold.part)):
        end = f"its {threshold.part} end" if threshold.part != "value" else "its value"
        why = f"{registration.metric}: {end} is undefined; a median among misses needs a percentile interval"
        return Verdict(threshold, None, None, why)
    return Verdict(threshold, interval, threshold.holds(interval))
