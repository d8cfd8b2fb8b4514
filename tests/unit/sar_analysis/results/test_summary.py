"""Summaries of conditions against scipy, printed tables and counts by hand."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from sar_analysis.metrics.findings import Victim
from sar_analysis.metrics.metrics import EpisodeMetrics, episode_metrics
from sar_analysis.results.sections import times
from sar_analysis.results.summary import (
    NOISE,
    gdop_bands,
    profile_errors,
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
    return Victim(
        *(0.0, 0.0, True, time_s, error, 0.9), constellation_gdop=gdop, path_gdop=9.0, views=2, final_error_m=error / 2
    )


LOST = Victim(0.0, 0.0, False)


def mission(episode: EpisodeMetrics, *victims: Victim, **more: object) -> EpisodeMetrics:
    seen = sum(v.detected for v in victims)
    return dataclasses.replace(episode, victims=victims, detections=seen, flight_hours=0.5, **more)


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
    assert (s.missions, s.invalid, s.estimates) == (0, 1, {})


def test_conditions_and_noise_levels_stay_apart(episode: EpisodeMetrics) -> None:
    group = [mission(episode, LOST, sigma=sigma, seed=k) for k, sigma in enumerate((0.02, 0.1, 0.02))]
    group.append(mission(episode, LOST, sigma=0.02, tier="sih"))
    assert [s.missions for s in summarise(group)] == [2, 1, 1]
    assert [(dict(s.condition)["sigma"], s.missions) for s in summarise(group, by=NOISE)] == [(0.02, 3), (0.1, 1)]
    with pytest.raises(InputError, match="sigmas is no metric"):
        summarise(group, by=("sigmas",))


def test_gdop_bands(episode: EpisodeMetrics) -> None:
    victims = [found(1.0, 1.19), found(2.0, 1.2), found(3.0, 1.99), found(4.0, 3.0), found(9.0, 4.0), found(7.0, None)]
    found_bands = gdop_bands([mission(episode, *victims, LOST)])
    bands = {b.name: (b.detections, None if b.cep50_m is None else b.cep50_m.value) for b in found_bands}
    assert bands == {"< 1.2": (1, 1.0), "1.2 - 2": (2, 2.0), "2 - 4": (1, 4.0), ">= 4": (1, 9.0), "undefined": (1, 7.0)}
    assert [b.cep95_m for b in gdop_bands([])] == [None] * 5


def test_a_geometry_that_was_not_recorded_is_not_called_undefined(episode: EpisodeMetrics) -> None:
    old = gdop_bands([mission(episode, found(2.0, None), LOST, schema=1)])
    assert [(b.name, b.detections) for b in old if b.detections] == [("not recorded", 1)]
    assert "undefined" not in {b.name for b in old}


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
