"""Many missions of one condition, flown in parallel without bags, and what they come to with honest intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sar_core.streams import stream

Floats = NDArray[np.float64]

RESAMPLES = 2000


@dataclass(frozen=True)
class Rate:
    """A share or rate with its two-sided 95 % interval."""

    value: float
    low: float
    high: float


def proportion(successes: int, trials: int) -> Rate | None:
    """Clopper-Pearson; None without trials."""
    if trials == 0:
        return None
    interval = stats.binomtest(successes, trials).proportion_ci(0.95, method="exact")
    return Rate(successes / trials, float(interval.low), float(interval.high))


def poisson_rate(events: int, exposure: float) -> Rate | None:
    """Events per unit of exposure with the exact Poisson interval; None without exposure."""
    if exposure <= 0.0:
        return None
    low = stats.chi2.ppf(0.025, 2 * events) / 2 if events else 0.0
    high = stats.chi2.ppf(0.975, 2 * (events + 1)) / 2
    return Rate(events / exposure, float(low) / exposure, float(high) / exposure)


def percentile_of(values: list[float], share: float, label: str) -> Rate | None:
    """A percentile of values (inf allowed: never) with a percentile-bootstrap interval, seeded by the label."""
    if not values:
        return None
    data = np.sort(np.array(values))
    draws = stream(f"bootstrap {label}").integers(0, len(data), (RESAMPLES, len(data)))
    samples = np.sort(data[draws], axis=1)
    k = min(math.ceil(share * len(data)) - 1, len(data) - 1)
    low, high = np.quantile(samples[:, max(k, 0)], (0.025, 0.975), method="inverted_cdf")
    return Rate(float(data[max(k, 0)]), float(low), float(high))


@dataclass(frozen=True)
class Summary:
    """What a condition's missions come to; victims and missions are counted over valid missions only."""

    missions: int
    invalid: int
    victims: int
    found_240s: Rate | None
    found_at_all: Rate | None
    time_to_detection_s: Rate | None
    cep50_m: Rate | None
    cep95_m: Rate | None
    final_cep50_m: Rate | None
    missions_with_false_alarm: Rate | None
    false_alarms_per_mission: Rate | None
    false_alarms_per_hour: Rate | None
    false_alarms_by_kind: dict[str, int]
    missions_with_collision: Rate | None
    collisions_per_mission: Rate | None
    near_misses_per_mission: Rate | None
    mean_coverage_240s: float | None
    flight_hours: float
    collided: tuple[str, ...]
    """Episode ids of the missions with a collision, as ``sar-eval replay`` takes them."""


def _flight_hours(results: list[dict[str, Any]]) -> float:
    return float(sum(r["flight_time_s"] * r["num_drones"] for r in results)) / 3600.0


def summarise(results: list[dict[str, Any]]) -> Summary:
    """Rates and percentiles over missions; those flown without radio say nothing of alarms.

    A victim never found has an infinite time; localisation errors are those of found victims at their first report.
    """
    valid = [r for r in results if r["valid"]]
    victims = [v for r in valid for v in r["victims"]]
    found = [v for v in victims if v["detected"]]
    listening = [r for r in valid if r["false_alarms"] is not None]
    alarms = [a for r in listening for a in r["false_alarm_events"]]
    kinds: dict[str, int] = {}
    for alarm in alarms:
        kinds[alarm["kind"]] = kinds.get(alarm["kind"], 0) + 1
    errors = [v["error_m"] for v in found]
    return Summary(
        missions=len(results),
        invalid=len(results) - len(valid),
        victims=len(victims),
        found_240s=proportion(sum(v["time_s"] <= 240.0 for v in found), len(victims)),
        found_at_all=proportion(len(found), len(victims)),
        time_to_detection_s=percentile_of([v["time_s"] if v["detected"] else math.inf for v in victims], 0.5, "time"),
        cep50_m=percentile_of(errors, 0.5, "cep50"),
        cep95_m=percentile_of(errors, 0.95, "cep95"),
        final_cep50_m=percentile_of([v["final_error_m"] for v in found], 0.5, "final cep50"),
        missions_with_false_alarm=proportion(sum(r["false_alarms"] > 0 for r in listening), len(listening)),
        false_alarms_per_mission=poisson_rate(len(alarms), len(listening)),
        false_alarms_per_hour=poisson_rate(len(alarms), _flight_hours(listening)),
        false_alarms_by_kind=kinds,
        missions_with_collision=proportion(sum(r["collisions"] > 0 for r in valid), len(valid)),
        collisions_per_mission=poisson_rate(sum(r["collisions"] for r in valid), len(valid)),
        near_misses_per_mission=poisson_rate(sum(r["near_misses"] for r in valid), len(valid)),
        mean_coverage_240s=float(np.mean([r["coverage_240s"] for r in valid])) if valid else None,
        flight_hours=_flight_hours(valid),
        collided=tuple(r["episode_id"] for r in valid if r["collisions"] > 0),
    )
