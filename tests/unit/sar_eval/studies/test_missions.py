"""Rates with intervals against scipy and against brute force; seeds of calibration stay out of evaluations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sar_core.errors import InputError
from sar_eval.episode.pool import CALIBRATION_SEED, plan_missions
from sar_eval.scenario.model import Scenario
from sar_eval.studies.calibration import plan_calibration
from sar_eval.studies.missions import percentile_of, poisson_rate, proportion, summarise


@pytest.mark.parametrize(("k", "n"), [(0, 50), (1, 50), (25, 50), (50, 50), (0, 150)])
def test_a_proportion_has_the_clopper_pearson_interval(k: int, n: int) -> None:
    rate = proportion(k, n)
    assert rate is not None
    low = stats.beta.ppf(0.025, k, n - k + 1) if k else 0.0
    high = stats.beta.ppf(0.975, k + 1, n - k) if k < n else 1.0
    assert (rate.value, rate.low, rate.high) == pytest.approx((k / n, low, high), abs=1e-9)


def test_none_of_150_still_allows_two_and_a_half_percent() -> None:
    rate = proportion(0, 150)
    assert rate is not None and rate.high == pytest.approx(0.0243, abs=1e-4)


@pytest.mark.parametrize("events", [0, 1, 7])
def test_a_poisson_interval_is_exact(events: int) -> None:
    rate = poisson_rate(events, 2.0)
    assert rate is not None
    if events:
        assert stats.poisson.sf(events - 1, 2.0 * rate.low) == pytest.approx(0.025)
    assert stats.poisson.cdf(events, 2.0 * rate.high) == pytest.approx(0.025)


def test_a_percentile_counts_never_as_infinite() -> None:
    rate = percentile_of([1.0, 2.0, math.inf, math.inf, math.inf], 0.5, "x")
    assert rate is not None and rate.value == math.inf and rate.high == math.inf


def test_the_bootstrap_covers_the_median_of_a_known_law() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        rate = percentile_of(list(rng.exponential(1.0, 60)), 0.5, "coverage")
        assert rate is not None
        hits += rate.low <= math.log(2.0) <= rate.high
    assert 0.88 <= hits / 200 <= 0.99


def mission(found: bool, alarms: int | None, valid: bool = True, collisions: int = 0) -> dict[str, Any]:
    victim = {"detected": found, "time_s": 50.0, "error_m": 2.0, "final_error_m": 1.0}
    return {
        "episode_id": f"somewhere-{found}-{alarms}",
        "valid": valid,
        "victims": [victim],
        "false_alarms": alarms,
        "false_alarm_events": [{"kind": "rescuer"}] * (alarms or 0),
        "collisions": collisions,
        "near_misses": 2 * collisions,
        "coverage_240s": 0.9,
        "flight_time_s": 900.0,
        "num_drones": 4,
    }


def test_a_summary_counts_valid_missions_only() -> None:
    summary = summarise([mission(True, 0), mission(False, 2), mission(True, 5, valid=False)])
    assert (summary.missions, summary.invalid, summary.victims) == (3, 1, 2)
    assert summary.found_at_all is not None and summary.found_at_all.value == 0.5
    assert summary.false_alarms_by_kind == {"rescuer": 2}
    assert summary.false_alarms_per_hour is not None and summary.false_alarms_per_hour.value == 1.0


def test_evaluations_never_use_a_calibration_seed() -> None:
    calibration = {spec.seed for spec in plan_calibration("default", 50)}
    evaluation = {spec.seed for spec in plan_missions(Scenario(), 50, CALIBRATION_SEED - 50)}
    assert not calibration & evaluation
    with pytest.raises(InputError, match="belong to calibration"):
        plan_missions(Scenario(), 51, CALIBRATION_SEED - 50)


def test_missions_without_radio_say_nothing_of_alarms() -> None:
    deaf = summarise([mission(False, None), mission(False, None)])
    assert deaf.missions_with_false_alarm is None and deaf.false_alarms_per_hour is None
    mixed = summarise([mission(False, None), mission(True, 1)])
    assert mixed.false_alarms_per_mission is not None and mixed.false_alarms_per_mission.value == 1.0


def test_missions_with_a_collision_are_named_for_replay() -> None:
    summary = summarise([mission(True, 0), mission(True, 3, collisions=2), mission(True, 1, False, 5)])
    assert summary.collided == ("somewhere-True-3",)
    assert summary.collisions_per_mission is not None and summary.collisions_per_mission.value == 1.0
    assert summary.near_misses_per_mission is not None and summary.near_misses_per_mission.value == 2.0
