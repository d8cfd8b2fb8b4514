"""However an episode ends, its last status says so, and what was still going on is closed in the bag."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from sar_core.errors import RunError
from sar_eval.bag.check import check_bag
from sar_eval.bag.writer import BagWriter
from sar_eval.episode import score as module
from sar_eval.episode.flight import fly_episode
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_sim.judging.referee import RefereeConfig
from sar_sim.vehicle.fleet import Fleet

DONE = 4
BEGIN, END = 1, 2
SECOND_NS = 1_000_000_000


def planned(**changes: Any):
    return prepare(Scenario(**{"drones": 2, "duration_s": 2.0, **changes}), 0, 0)


def nanoseconds(time: Any) -> int:
    return int(time.sec * SECOND_NS + time.nanosec)


def check_last_status(bag: Any, valid: bool, reason: str) -> None:
    last = bag.topic("/episode/status")[-1]
    assert last.log_time == bag.messages[-1].log_time
    assert (last.decoded.phase, last.decoded.valid, last.decoded.invalid_reason) == (DONE, valid, reason)


def test_an_ordinary_end_is_told_once_at_the_last_stamp(read_bag, tmp_path):
    record = fly_episode(planned(), tmp_path / "bag")
    bag = read_bag(tmp_path / "bag")
    check_last_status(bag, True, "")
    assert bag.messages[-1].log_time == round(record.result["flight_time_s"] * SECOND_NS)
    phases = [m.decoded.phase for m in bag.topic("/episode/status")]
    assert sorted(set(phases)) == [1, 2, 3, DONE]
    assert phases == sorted(phases)
    assert phases.count(DONE) == 1


@pytest.mark.parametrize("after_s", [7, 8])
def test_contacts_still_open_at_the_end_are_closed_in_the_bag(after_s, read_bag, monkeypatch, tmp_path):
    """Two drones that always count as too near each other; the episode is stopped while they still are."""
    near = functools.partial(RefereeConfig, collision_m=50.0, near_miss_m=60.0, rearm_m=55.0)
    monkeypatch.setattr(module, "RefereeConfig", near)
    asked = iter([None] * (after_s - 1))
    record = fly_episode(planned(), tmp_path / "bag", stop=lambda: next(asked, "interrupted"))
    assert record.result["flight_time_s"] == after_s
    report = check_bag(tmp_path / "bag")
    assert report.ok, report.findings
    bag = read_bag(tmp_path / "bag")
    check_last_status(bag, False, "interrupted")
    begin, end = bag.topic("/events/collision")
    assert (begin.decoded.phase, end.decoded.phase) == (BEGIN, END)
    assert begin.decoded.event_id == end.decoded.event_id == 1
    assert nanoseconds(begin.decoded.begin) == nanoseconds(begin.decoded.end) == nanoseconds(end.decoded.begin)
    assert nanoseconds(end.decoded.end) == end.log_time == after_s * SECOND_NS
    assert record.result["collisions"] == 1


def test_a_truth_that_is_no_number_makes_the_episode_invalid(read_bag, monkeypatch, tmp_path):
    tick = Fleet.tick

    def broken(fleet: Fleet, steps: int) -> Any:
        track = tick(fleet, steps)
        return np.full_like(track, np.nan) if steps < 100 and fleet.step > 1000 else track

    monkeypatch.setattr(Fleet, "tick", broken)
    record = fly_episode(planned(), tmp_path / "bag")
    assert (record.result["valid"], record.result["invalid_reason"]) == (False, "truth_not_finite")
    assert check_bag(tmp_path / "bag").ok
    check_last_status(read_bag(tmp_path / "bag"), False, "truth_not_finite")


def test_a_failed_write_is_never_taken_for_a_failed_simulation(monkeypatch, tmp_path):
    """Whatever the folder is called: an error of the disk ends the run; of what never reached it nothing is left."""

    def full(writer: BagWriter) -> None:
        raise RunError(f"{writer.partial}: cannot write")

    monkeypatch.setattr(BagWriter, "flush", full)
    with pytest.raises(RunError, match="cannot write"):
        fly_episode(planned(), tmp_path / "truth")
    assert not list(tmp_path.iterdir())


def test_what_is_not_modelled_is_nan_and_not_zero(read_bag, tmp_path):
    fly_episode(planned(), tmp_path / "bag")
    health = read_bag(tmp_path / "bag").topic("/uav_2/status")
    assert all(np.isnan(m.decoded.battery_voltage_v) for m in health)
    assert all(0.9 < m.decoded.battery_fraction <= 1.0 for m in health)
