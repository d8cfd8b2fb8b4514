"""Flown episodes: what the analysis finds in a bag is what the referee, who saw every step, put into the record.

Counts, report times, errors and GDOP agree exactly, up to the record's nine digits. What the referee saw at 250 Hz and
the bag tells at 20 Hz agrees to the sampling: a chord misses the true way by at most a dt^2 / 8, 3 mm at 10 m/s^2.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.readingspeed import reading_speed
from sar_analysis.metrics import findings
from sar_analysis.metrics.metrics import EpisodeMetrics, episode_metrics
from sar_analysis.metrics.records import parse_record
from sar_analysis.results.conditions import group
from sar_eval.episode.flight import fly_episode
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_sim.judging import scoring
from tests.oracles import recompute
from tests.oracles.agreement import JUDGED, all_parts, event_parts, parts, record_of

DIGITS = 1e-9
SEPARATION_M = 3e-3
PATH_SHARE = 1e-4
OVERLAP = 2e-4
SCAN_S = 5e-3
CHARGE_PER_READING = 1e-3

NAMES = (
    *("episode_id", "tier", "profile", "world", "pattern", "vehicle", "seed", "episode", "config_sha256"),
    *("valid", "invalid_reason"),
)
SCENARIOS: dict[str, dict[str, Any]] = {
    "found": {"world": "village", "drones": 4, "duration_s": 40.0, "victims": 2, "decoys": 5},
    "crash": {
        "world": "village",
        "drones": 3,
        "duration_s": 15.0,
        "faults": [{"kind": "drone_lost", "drone": 2, "begin_s": 4.0}],
    },
    "absent": {"drones": 2, "duration_s": 15.0, "victim_absent": True, "decoys": 4},
    "silent": {"drones": 1, "duration_s": 8.0, "radio": None},
}


@dataclass(frozen=True)
class Flown:
    """One episode's record and its bag."""

    record: dict[str, Any]
    bag: Path

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = self.record["result"]
        return found


@pytest.fixture(scope="module", params=SCENARIOS)
def flown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Flown:
    bag = tmp_path_factory.mktemp("flown") / "bag"
    record = fly_episode(prepare(Scenario(**SCENARIOS[request.param]), 3, 1), bag)
    return Flown(record.as_dict(), bag)


@pytest.fixture(scope="module")
def measured(flown: Flown) -> EpisodeMetrics:
    return episode_metrics(flown.bag)


def close(ours: float | None, theirs: float | None, within: float = DIGITS) -> None:
    assert (ours is None) == (theirs is None), (ours, theirs)
    if ours is not None and theirs is not None:
        assert ours == pytest.approx(theirs, abs=within)


def test_who_what_and_validity(flown: Flown, measured: EpisodeMetrics) -> None:
    for name in NAMES:
        assert getattr(measured, name) == flown.result[name]
    scenario = flown.result["scenario"]
    assert measured.sigma == (scenario["sigma"] if scenario["radio"] else None)
    assert measured.drones == flown.result["num_drones"]
    assert measured.notes == ()


def test_counts_are_exact(flown: Flown, measured: EpisodeMetrics) -> None:
    for name in ("collisions", "near_misses", "geofence_breaches", "issues", "detections", "displaced", "false_alarms"):
        assert getattr(measured, name) == flown.result[name]
    by_kind = (measured.collisions_drone_drone, measured.collisions_drone_obstacle, measured.collisions_drone_ground)
    assert by_kind == tuple(flown.result["collisions_by_kind"].values())
    entered = [entry for entry in flown.result["failsafes"] if entry["state"] != "nominal"]
    assert measured.failsafe_entries <= len(entered)


def test_findings_are_exact(flown: Flown, measured: EpisodeMetrics) -> None:
    for name in ("time_to_first_detection_s", "localization_error_m", "gdop", "flight_time_s", "search_time_s"):
        close(getattr(measured, name), flown.result[name])
    assert [v.detected for v in measured.victims] == [v["found"] for v in flown.result["victims"]]


def test_reports_come_to_the_same_in_record_analysis_and_slow_script(flown: Flown) -> None:
    if flown.result["scenario"]["radio"] is not None:
        assert all_parts(flown.result, flown.bag) == []
    else:
        assert flown.result["issues"] is None and flown.result["victims"] == []


def test_what_is_sampled_agrees_to_the_sampling(flown: Flown, measured: EpisodeMetrics) -> None:
    r = flown.result
    cells = r["area_w"] * r["area_h"] / 25.0
    close(measured.coverage, r["coverage"], within=1.0 / cells)
    close(measured.coverage_240s, r["coverage_240s"], within=1.0 / cells)
    assert measured.coverage_curve == pytest.approx(r["coverage_curve"], abs=2.0 / cells)
    close(measured.time_to_95_s, r["time_to_95_s"], within=SCAN_S)
    close(measured.overlap_ratio, r["overlap_ratio"], within=OVERLAP)
    close(measured.min_separation_m, r["min_separation_m"], within=SEPARATION_M)
    close(measured.min_clearance_m, r["min_clearance_m"], within=SEPARATION_M)
    close(measured.path_m, r["path_m"], within=PATH_SHARE * r["path_m"])
    for drone, share in zip(r["drones"], measured.path_shares, strict=True):
        close(share, drone["path_m"] / r["path_m"], within=PATH_SHARE)
    spent = sum(1.0 - drone["batt"] / 100.0 for drone in r["drones"])
    close(measured.energy_batteries, spent, within=CHARGE_PER_READING * len(r["drones"]))


def test_record_and_bag_give_the_same_row(flown: Flown, measured: EpisodeMetrics) -> None:
    """The record's own reader: the same issues, victims, decoys and last reports, by the same names."""
    read = parse_record(json.dumps(flown.record), "record")
    assert read.collisions == measured.collisions
    ours, theirs = asdict(measured), asdict(read)
    assert list(parts({name: ours[name] for name in JUDGED}, theirs)) == []


def test_record_and_bag_are_one_condition(flown: Flown, measured: EpisodeMetrics) -> None:
    """A folder that mixes both must not split by where a row came from, and both can be held against an oracle."""
    read = parse_record(json.dumps(flown.record), "record")
    assert read.configuration == measured.configuration
    assert (read.task_sha256, read.world_sha256) == (measured.task_sha256, measured.world_sha256)
    assert read.version == measured.version
    assert len(group([read, measured])) == 1


def test_record_and_bag_give_the_same_return(flown: Flown, measured: EpisodeMetrics) -> None:
    """One sum of one set of counts: the record made while flying and the bag read afterwards agree in every one."""
    read = parse_record(json.dumps(flown.record), "record")
    assert read.return_counts is not None
    assert read.return_counts == measured.return_counts
    assert read.episode_return == measured.episode_return
    assert [v.views for v in read.victims] == [v.views for v in measured.victims]
    assert read.episode_set == measured.episode_set == flown.result["episode_set"]


WITHIN = {
    "coverage": 5e-4,
    "coverage_240s": 5e-4,
    "time_to_95_s": 0.05,
    "overlap_ratio": 5e-3,
    "min_separation_m": 2e-3,
}
"""The slow script looks at ten points of a leg; what is missing here must agree to the last digits."""


def test_row_equals_an_independent_slow_recomputation(flown: Flown, measured: EpisodeMetrics) -> None:
    slow = recompute.row(flown.bag)
    assert len(slow) >= 17
    for name, value in slow.items():
        if isinstance(value, float):
            close(getattr(measured, name), value, within=WITHIN.get(name, 1e-6))
        else:
            assert getattr(measured, name) == value, name


def test_a_crash_is_seen(flown: Flown, measured: EpisodeMetrics) -> None:
    assert (measured.collisions_drone_ground > 0) == bool(flown.result["scenario"]["faults"])


def test_reports_agree_where_almost_every_report_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the confidence asked for lowered on all sides issues and updates abound, and each must be the same one."""
    for module in (scoring, findings, recompute):
        monkeypatch.setattr(module, "CONFIDENT", 0.01)
    record = fly_episode(prepare(Scenario(**SCENARIOS["found"]), 4, 2), tmp_path / "bag")
    assert len(record.result["issue_events"]) >= 3
    assert all_parts(record.result, tmp_path / "bag") == []
    told, moved = recompute.messages(tmp_path / "bag", reports_only=True), deepcopy(record.result)
    moved["issue_events"][0]["error_m"] = 77.0
    assert len(list(parts(record_of(told), moved))) == 1
    del told["/events/report"][0]
    assert list(event_parts(told)) != []


@pytest.mark.alone
def test_a_bag_is_analysed_faster_than_rosbags_iterates_it(flown: Flown) -> None:
    speed = reading_speed(flown.bag)
    assert speed.messages == flown.record["run"]["bag_messages"]
    assert speed.read_ratio > 1.0
    assert speed.analyse_ratio > 1.0


def test_an_interrupted_episode_is_invalid_in_both(tmp_path: Path) -> None:
    asked = iter([None] * 20)
    scenario = Scenario(drones=2, duration_s=30.0, radio=None)
    record = fly_episode(prepare(scenario, 1, 1), tmp_path / "bag", stop=lambda: next(asked, "interrupted"))
    measured = episode_metrics(tmp_path / "bag")
    assert (measured.valid, measured.invalid_reason) == (False, "interrupted")
    assert record.result["valid"] is False
    assert measured.return_counts is not None
    assert vars(measured.return_counts) == record.result["return_counts"]
    close(measured.flight_time_s, record.result["flight_time_s"])
