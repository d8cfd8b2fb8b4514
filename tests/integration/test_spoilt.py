"""A flight that its world spoils: INVALID with the reason, and a bag that is whole up to that moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sar_core.errors import InputError
from sar_eval.backends.backend import SimTick, SpoiltError
from sar_eval.backends.embedded import Simulator
from sar_eval.bag.check import check_bag
from sar_eval.bag.encoders import REPORT_TICKS
from sar_eval.campaign.plan import MissionTask
from sar_eval.campaign.workers import MissionJob, fly_job
from sar_eval.episode import attempts as flying
from sar_eval.episode.flight import fly_episode
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_swarm.piloting.controller import Command


class Frail(Simulator):
    """The embedded simulator, which breaks in one tick."""

    breaks_in = 0

    def first(self) -> SimTick:
        if self.breaks_in == 0:
            raise SpoiltError("not_ready", "vehicle 2 would not arm")
        return super().first()

    def step(self, commands: Sequence[Command], search_begin_s: float) -> SimTick:
        if self.tick + 1 == self.breaks_in:
            raise SpoiltError("vehicle_lost", "vehicle 1 ended")
        return super().step(commands, search_begin_s)


@pytest.mark.parametrize("tick", [1, REPORT_TICKS, REPORT_TICKS + 1, 5 * REPORT_TICKS + 1, 5 * REPORT_TICKS + 7])
def test_the_bag_is_whole_in_whichever_tick_it_happens(tick: int, tmp_path: Path) -> None:
    """Right after a report too, when the second it ended was written already."""
    episode = prepare(Scenario(world="open_field", drones=2, duration_s=20.0), 0, 0)
    world = Frail(episode)
    world.breaks_in = tick
    record = fly_episode(episode, tmp_path / "bag", world=world)
    assert (record.result["valid"], record.result["invalid_reason"]) == (False, "vehicle_lost")
    assert record.run["invalid_detail"] == "vehicle 1 ended"
    report = check_bag(tmp_path / "bag")
    assert report.ok, report.findings


@pytest.fixture
def worlds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tick in which the world of each attempt breaks, -1 for never; attempts take theirs from the front."""
    ticks: list[int] = []

    @contextmanager
    def backend_of(episode: Any, *_: object) -> Iterator[Frail]:
        world = Frail(episode)
        world.breaks_in = ticks.pop(0)
        yield world

    monkeypatch.setattr(flying, "backend_of", backend_of)
    return ticks


def test_attempts_spoilt_before_and_after_the_first_tick_leave_one_whole_bag(worlds: list[int], tmp_path: Path) -> None:
    worlds += [0, 30, 0, -1]
    episode = prepare(Scenario(world="open_field", drones=2, duration_s=3.0, altitude_m=10.0), 0, 0, "sitl")
    record = flying.fly(episode, tmp_path / "bag")
    assert record.result["valid"]
    told = [(attempt["reason"], attempt["flight_time_s"]) for attempt in record.run["spoilt_attempts"]]
    assert told == [("not_ready", 0.0), ("vehicle_lost", pytest.approx(1.45, abs=0.01)), ("not_ready", 0.0)]
    assert check_bag(tmp_path / "bag").ok
    assert [path.name for path in tmp_path.iterdir()] == ["bag"]


def test_a_flight_that_never_began_leaves_no_bag(worlds: list[int], tmp_path: Path) -> None:
    worlds += [0, 0]
    episode = prepare(Scenario(world="open_field", drones=2), 0, 0, "sitl")
    record = flying.fly(episode, tmp_path / "bag", retries=1)
    assert (record.result["invalid_reason"], record.run["bag"]) == ("not_ready", None)
    assert list(tmp_path.iterdir()) == []


def test_a_campaigns_mission_that_never_began_has_a_record_and_no_bag(worlds: list[int], tmp_path: Path) -> None:
    worlds += [0] * (1 + flying.RETRIES)
    mission = MissionTask("m", Scenario(world="open_field", drones=2), 0, 0, "sitl")
    outcome = fly_job(MissionJob(mission, str(tmp_path)))
    assert outcome.record is not None and outcome.record.result["invalid_reason"] == "not_ready"
    assert (outcome.bag, outcome.reason) == (None, None)


def test_who_waits_for_a_campaign_hears_of_spoilt_attempts_and_how_far_it_is(worlds: list[int], tmp_path: Path) -> None:
    worlds += [30, -1]
    mission = MissionTask("m", Scenario(world="open_field", drones=2, duration_s=3.0, altitude_m=10.0), 0, 0, "sitl")
    told: list[str] = []
    outcome = fly_job(MissionJob(mission, str(tmp_path)), tell=told.append)
    assert outcome.record is not None and outcome.record.result["valid"]
    spoilt, began = told
    assert spoilt.startswith("m: attempt 1 was spoilt (vehicle_lost: ") and spoilt.endswith("; it is flown again")
    assert began.startswith("m: 1 of 3 s searched, coverage ")


def test_what_is_set_up_wrongly_is_tried_once_and_ends_the_campaign(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tries: list[int] = []

    @contextmanager
    def backend_of(*_: object) -> Iterator[Frail]:
        tries.append(1)
        raise SpoiltError("wrong_autopilot", "vehicle 1 is the embedded autopilot", final=True)
        yield

    monkeypatch.setattr(flying, "backend_of", backend_of)
    mission = MissionTask("m", Scenario(world="open_field", drones=2), 0, 0, "sih")
    outcome = fly_job(MissionJob(mission, str(tmp_path)))
    assert (outcome.fatal, outcome.record, outcome.reason, tries) == (True, None, "wrong_autopilot", [1])
    assert outcome.message == "wrong_autopilot: vehicle 1 is the embedded autopilot"


def test_a_bag_of_another_day_is_not_flown_over(worlds: list[int], tmp_path: Path) -> None:
    """Not even by the second attempt; nothing is started for it."""
    (tmp_path / "bag").mkdir()
    with pytest.raises(InputError, match="exists already and bags are never overwritten"):
        flying.fly(prepare(Scenario(world="open_field", drones=2), 0, 0, "sitl"), tmp_path / "bag")
    assert (tmp_path / "bag").is_dir()
