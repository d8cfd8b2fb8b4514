"""One job from end to end without a crew: outcomes for whatever happens. Crews and kills are in tests/integration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sar_core.errors import InputError, RunError
from sar_eval.bag.writer import partial_of
from sar_eval.campaign import workers
from sar_eval.campaign.plan import CampaignPlan
from sar_eval.campaign.workers import RETRIES, Milestones, MissionJob, WorkerCrew, fly_job
from sar_eval.episode.flight import FlightProgress
from sar_eval.episode.record import Record

SOUND = Record({"invalid_reason": None}, {"bag": None})


class Flights:
    """What stands in for flying: each call is the next of these, and an error is raised."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *coming: Record | BaseException) -> None:
        self.coming, self.bags = list(coming), list[Path | None]()
        monkeypatch.setattr(workers, "fly", self.fly)

    def fly(self, episode: object, bag: Path | None, *_: Any, **__: Any) -> Record:
        self.bags.append(bag)
        now = self.coming.pop(0)
        if isinstance(now, BaseException):
            if bag is not None:
                partial_of(bag).mkdir(parents=True)
            raise now
        return Record(now.result, {**now.run, "bag": None if bag is None else str(bag)})


@pytest.fixture
def job(plan: CampaignPlan) -> MissionJob:
    return MissionJob(plan.tasks[0])


def test_a_record_comes_with_the_code_it_was_flown_by(job: MissionJob, monkeypatch: pytest.MonkeyPatch) -> None:
    Flights(monkeypatch, SOUND)
    outcome = fly_job(job)
    assert outcome.record is not None and outcome.reason is None and not outcome.fatal
    assert outcome.code == workers.code() and outcome.inputs is None, "the simulator reads nothing by itself"
    assert outcome.record.run["bag"] is None and isinstance(outcome.record.run["worker"], int)


def test_each_attempt_has_a_bag_of_its_own_named_after_the_mission(
    job: MissionJob, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flights = Flights(monkeypatch, ZeroDivisionError(), SOUND)
    outcome = fly_job(MissionJob(job.task, str(tmp_path)))
    first, second = flights.bags
    assert first != second and first is not None and second is not None
    assert first.name == second.name == job.task.key and outcome.bag == str(second)


def test_a_simulator_that_raises_again_is_an_outcome_with_its_traceback(
    job: MissionJob, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flights = Flights(monkeypatch, *[ZeroDivisionError("broken")] * 9)
    outcome = fly_job(MissionJob(job.task, str(tmp_path)))
    assert (outcome.reason, outcome.fatal, outcome.record) == ("simulator_error", False, None)
    assert "ZeroDivisionError: broken" in outcome.message and len(flights.bags) == 1 + RETRIES
    assert outcome.bag is not None and outcome.bag.endswith(".partial"), "what was recorded is kept"


@pytest.mark.parametrize("error", [RunError("disk full"), OSError("disk full")])
def test_a_bag_that_cannot_be_written_is_the_hosts_trouble(
    error: Exception, job: MissionJob, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flights = Flights(monkeypatch, error)
    outcome = fly_job(MissionJob(job.task, str(tmp_path)))
    assert (outcome.reason, outcome.message, outcome.fatal) == ("host_error", "disk full", True)
    assert len(flights.bags) == 1


def test_a_mission_that_can_no_longer_be_prepared_is_too(job: MissionJob, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: object) -> None:
        raise InputError("village.sdf: cannot read world file")

    monkeypatch.setattr(type(job.task), "prepare", gone)
    outcome = fly_job(job)
    assert (outcome.reason, outcome.fatal) == ("host_error", True) and "village.sdf" in outcome.message


def test_what_no_attempt_mends_ends_the_campaign_by_its_own_name(
    job: MissionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    Flights(monkeypatch, Record({"invalid_reason": "wrong_px4"}, {"final": True, "invalid_detail": "1.14"}))
    outcome = fly_job(job)
    assert (outcome.reason, outcome.message, outcome.fatal) == ("wrong_px4", "wrong_px4: 1.14", True)


def test_milestones_are_told_once_a_minute_of_search_and_anew_in_another_attempt() -> None:
    told: list[str] = []
    watch = Milestones(240.0, told.append)

    def fly(seconds: float) -> None:
        for k in range(int(seconds)):
            watch(FlightProgress(float(k), max(k - 20.0, 0.0), 0.25, 1))

    fly(200)
    assert [text.partition(" of")[0] for text in told] == ["1", "61", "121"]
    assert told[-1].endswith("of 240 s searched, coverage 25%, collisions 1")
    fly(60)
    assert len(told) == 4, "the next attempt begins again"


def test_a_crew_of_nobody_is_refused() -> None:
    with pytest.raises(InputError, match="workers = 0: must be 1 or more"):
        WorkerCrew(0)
