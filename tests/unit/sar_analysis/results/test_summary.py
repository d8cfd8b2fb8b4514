"""Summaries of conditions against scipy, printed tables and counts by hand."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sar_analysis.metrics.findings import Victim
from sar_analysis.metrics.metrics import EpisodeMetrics, episode_metrics
from sar_analysis.results.sections import times
from sar_analysis.results.summary import (
    NOISE,
    gdop_bands,
    profile_errors,
    quantile,
    rate,
    share,
    summarise,
)
from sar_core.errors import InputError
from tests.unit.sar_analysis.bagmaker import Made, straight


@pytest.fixture(scope="module")
def episode(tmp_path_factory: pytest.TempPathFactory) -> EpisodeMetrics:
    path = straight(4.0, np.array([[2.5, 52.5, 30.0]]), np.array([[8.0, 0.0, 0.0]]))
    made = Made(path, 1.0, 3.0, devices=[(7, 0, (20.0, 50.0, 0.5))])
    return episode_metrics(made.write(tmp_path_factory.mktemp("summary") / "bag"))


def found(error: float, gdop: float | None = 1.5, time_s: float = 30.0) -> Victim:
    return Victim(0.0, 0.0, True, time_s, error, gdop, 2, 0.9, error / 2)


LOST = Victim(0.0, 0.0, False)


def mission(episode: EpisodeMetrics, *victims: Victim, **more: object) -> EpisodeMetrics:
    seen = sum(v.detected for v in victims)
    return dataclasses.replace(episode, victims=victims, detections=seen, flight_hours=0.5, **more)


def test_nothing_in_150_missions_still_allows_2_4_percent() -> None:
    """The figure the statistics page of the design quotes for 0 of 150, two-sided."""
    none = share("x", 0, 150, "missions")
    assert none is not None
    assert (none.value, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(1.0 - 0.025 ** (1.0 / 150.0), rel=1e-9)
    assert round(none.high, 3) == 0.024


def test_poisson_ends_solve_their_tail_equations() -> None:
    for events in (0, 1, 7, 40):
        e = rate("x", events, 4.0, "hour")
        assert e is not None
        assert e.value == events / 4.0
        assert stats.poisson.cdf(events, e.high * 4.0) == pytest.approx(0.025)
        if events:
            assert stats.poisson.sf(events - 1, e.low * 4.0) == pytest.approx(0.025)
        else:
            assert e.low == 0.0
            assert e.high * 4.0 == pytest.approx(3.6889, abs=1e-4)


def test_quantile_interval_of_ten_is_the_second_and_the_ninth() -> None:
    """Printed tables of the sign-test interval for a median: n = 10, ranks 2 and 9, 97.9 % confidence."""
    e = quantile("x", [float(k) for k in range(10, 0, -1)], 0.5)
    assert e is not None
    assert (e.value, e.low, e.high) == (5.0, 2.0, 9.0)


def test_quantile_interval_covers_what_it_promises() -> None:
    rng = np.random.default_rng(3)
    truth = stats.expon.ppf(0.5)
    hits = 0
    for _ in range(400):
        e = quantile("x", rng.exponential(size=25).tolist(), 0.5)
        assert e is not None
        hits += e.low <= truth <= e.high
    assert hits / 400 > 0.93


def test_an_upper_end_that_does_not_exist_is_not_invented() -> None:
    """All n lie below the 95 % quantile with probability 0.95^n, which is under 2.5 % from n = 72 on."""
    assert 0.95**72 < 0.025 < 0.95**71
    values = [float(k) for k in range(72)]
    few, enough = quantile("x", values[:71], 0.95), quantile("x", values, 0.95)
    assert few is not None
    assert enough is not None
    assert few.high is None
    assert enough.high == 71.0


def test_no_trials_no_figure() -> None:
    assert share("x", 0, 0, "missions") is None
    assert rate("x", 0, 0.0, "hour") is None
    assert quantile("x", [], 0.5) is None


def test_counts_per_mission_victim_and_hour(episode: EpisodeMetrics) -> None:
    group = [
        mission(episode, found(2.0), LOST, seed=1, false_alarms=2, collisions=1, collisions_drone_ground=1),
        mission(episode, found(4.0, time_s=300.0), seed=1, false_alarms=0, near_misses=3),
        mission(episode, LOST, seed=2, false_alarms=0),
        mission(episode, found(1.0), seed=3, false_alarms=9, collisions=5, valid=False, invalid_reason="interrupted"),
    ]
    (s,) = summarise(group)
    assert (s.missions, s.invalid, s.victims, s.seeds, s.flight_hours) == (3, 1, 4, (1, 2), 1.5)
    assert s.invalid_reasons == (("interrupted", 1),)
    expected = {
        "missions_with_detection": 2 / 3,
        "victims_found": 2 / 4,
        "victims_found_240s": 1 / 4,
        "missions_with_false_alarm": 1 / 3,
        "false_alarms_per_mission": 2 / 3,
        "false_alarms_per_hour": 2 / 1.5,
        "missions_with_collision": 1 / 3,
        "collisions_drone_ground_per_mission": 1 / 3,
        "collisions_drone_drone_per_mission": 0.0,
        "near_misses_per_mission": 1.0,
        "cep50_m": 2.0,
        "cep95_m": 4.0,
        "final_cep50_m": 1.0,
    }
    for name, value in expected.items():
        figure = s.estimate(name)
        assert figure is not None, name
        assert figure.value == pytest.approx(value), name
    assert all({"missions", "invalid", "tier", "low", "high", "method"} <= set(row) for row in s.rows())


def test_without_radio_there_are_no_alarm_figures(episode: EpisodeMetrics) -> None:
    (s,) = summarise([mission(episode, false_alarms=None)])
    assert s.estimate("false_alarms_per_mission") is None
    assert s.estimate("missions_with_detection") is None
    assert s.estimate("missions_with_collision") is not None


def test_all_invalid_gives_counts_but_no_figures(episode: EpisodeMetrics) -> None:
    (s,) = summarise([mission(episode, LOST, valid=False, invalid_reason="takeoff_timeout")])
    assert (s.missions, s.invalid, s.estimates) == (0, 1, ())


def test_conditions_and_noise_levels_stay_apart(episode: EpisodeMetrics) -> None:
    group = [mission(episode, LOST, sigma=sigma, seed=k) for k, sigma in enumerate((0.02, 0.1, 0.02))]
    group.append(mission(episode, LOST, sigma=0.02, tier="sih"))
    assert [s.missions for s in summarise(group)] == [2, 1, 1]
    assert [(dict(s.condition)["sigma"], s.missions) for s in summarise(group, by=NOISE)] == [(0.02, 3), (0.1, 1)]
    with pytest.raises(InputError, match="sigmas is no metric"):
        summarise(group, by=("sigmas",))


def test_gdop_bands() -> None:
    victims = [found(1.0, 1.19), found(2.0, 1.2), found(3.0, 1.99), found(4.0, 3.0), found(9.0, 4.0), found(7.0, None)]
    bands = {b.name: (b.detections, b.cep50_m) for b in gdop_bands([*victims, LOST])}
    assert bands == {"< 1.2": (1, 1.0), "1.2 - 2": (2, 2.0), "2 - 4": (1, 4.0), ">= 4": (1, 9.0), "undefined": (1, 7.0)}
    assert [b.cep95_m for b in gdop_bands([])] == [None] * 5


def test_victims_never_found_are_infinite_errors_and_censored_times(episode: EpisodeMetrics) -> None:
    found_late = found(3.0, time_s=12.0)
    group = [mission(episode, found(2.0, time_s=1.5), LOST, found_late), mission(episode, LOST, valid=False)]
    assert profile_errors(group).tolist() == [2.0, math.inf, 3.0]
    (each,) = [t for t in times(group[:1]) if t["metric"] == "time_to_each_victim_s"]
    assert (each["n"], each["reached"], each["censored"], each["median"]) == (3, 1, 2, None)


def test_bag_has_the_fields_used_here(tmp_path: Path, episode: EpisodeMetrics) -> None:
    (s,) = summarise([episode])
    assert s.victims == 1
    coverage = s.estimate("coverage_240s")
    assert coverage is not None
    assert coverage.value == episode.coverage_240s
