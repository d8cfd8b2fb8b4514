"""A campaign's bookkeeping without flying anything: results, ledger, what is flown again."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from sar_core.errors import ContractError, InputError, RunError
from sar_core.sealed import seal, unseal
from sar_eval.campaign.campaign import RESULTS, open_campaign
from sar_eval.campaign.ledger import LEDGER, Ledger, read_ledger
from sar_eval.campaign.manifest import MANIFEST, make_manifest, read_manifest
from sar_eval.campaign.plan import flight_order, make_plan
from sar_eval.campaign.workers import MissionJob, MissionOutcome
from sar_eval.episode.flight import Flight
from sar_eval.episode.invalid import invalid_record
from sar_eval.episode.record import Record
from tests.soak.killcheck import result_part
from tests.unit.sar_eval.campaign.desk import CHOICE, Desk, fly, made_up


def test_results_are_the_same_bytes_in_any_order_and_after_any_stop(plan, manifest, tmp_path):
    fly(tmp_path / "calm", manifest, plan.tasks, Desk())
    folder = tmp_path / "stopped"
    desks = [Desk(limit=n) for n in (0, 1, 5, 7, 100)]
    endings = [fly(folder, manifest, flight_order(plan.tasks, k), desk) for k, desk in enumerate(desks)]
    assert [ending.flown_now for ending in endings] == [0, 1, 5, 7, 11]
    assert sum(len(desk.flown) for desk in desks) == 24
    assert [ending.results is not None for ending in endings] == [False] * 4 + [True]
    assert result_part(folder) == result_part(tmp_path / "calm")
    assert len(json.loads((folder / RESULTS).read_text())["result"]["episodes"]) == 24
    again = Desk()
    assert fly(folder, manifest, plan.tasks, again).flown_now == 0 and again.flown == []


@pytest.mark.parametrize("torn", [b'{"schema_version": 1, "resu', b"\0\0\0", b"}"])
def test_a_torn_last_line_is_cut_off_and_its_mission_flown_again(torn, plan, manifest, tmp_path):
    fly(tmp_path / "c", manifest, plan.tasks, Desk(limit=3))
    ledger = tmp_path / "c" / LEDGER
    whole = ledger.read_bytes()
    ledger.write_bytes(whole + torn)
    desk = Desk()
    fly(tmp_path / "c", manifest, plan.tasks, desk)
    assert len(desk.flown) == 21
    assert ledger.read_bytes().startswith(whole + b'{"schema')
    assert len(read_ledger(ledger)) == 24
    assert "unfinished line" in (tmp_path / "c" / "logs" / "campaign.log").read_text()


def test_a_ledger_spoiled_in_the_middle_is_refused(plan, manifest, tmp_path):
    fly(tmp_path / "c", manifest, plan.tasks, Desk(limit=3))
    ledger = tmp_path / "c" / LEDGER
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(lines[0] + b"garbage\n" + lines[2])
    with pytest.raises(ContractError, match=r"episodes.jsonl:2"):
        fly(tmp_path / "c", manifest, plan.tasks, Desk())
    other = unseal(lines[0].decode())
    other["result"]["collisions"] = 9
    ledger.write_bytes(lines[0] + seal(other).encode() + b"\n")
    with pytest.raises(ContractError, match="second time"):
        read_ledger(ledger)


def test_another_campaign_in_the_folder_is_refused_and_the_key_named(plan, manifest, tmp_path):
    fly(tmp_path / "c", manifest, plan.tasks, Desk(limit=3))
    before = (tmp_path / "c" / LEDGER).read_bytes()
    slower = replace(CHOICE, scenario=CHOICE.scenario.model_copy(update={"speed_mps": 6.0}))
    with pytest.raises(InputError, match=r"configuration.scenario.speed_mps is 8.0 there, 6.0 now"):
        fly(tmp_path / "c", make_manifest(make_plan(slower)), plan.tasks, Desk())
    other_code = replace(manifest, decides={**manifest.decides, "code": {**manifest.decides["code"], "sar_sim": "0"}})
    with pytest.raises(InputError, match=r"code.sar_sim"):
        fly(tmp_path / "c", other_code, plan.tasks, Desk())
    with pytest.raises(InputError, match=r"configuration.seeds"):
        fly(tmp_path / "c", make_manifest(make_plan(replace(CHOICE, seeds=(4, 2)))), plan.tasks, Desk())
    assert (tmp_path / "c" / LEDGER).read_bytes() == before


def test_an_edited_manifest_is_noticed(plan, manifest, tmp_path):
    fly(tmp_path / "c", manifest, plan.tasks, Desk(limit=1))
    path = tmp_path / "c" / MANIFEST
    path.write_text(path.read_text().replace('"tier": "embedded"', '"tier": "gazebo"'))
    with pytest.raises(ContractError, match="changed"):
        read_manifest(tmp_path / "c")


def test_unknown_files_are_left_alone_and_a_foreign_ledger_is_not_taken_over(plan, manifest, tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "notes.txt").write_text("mine")
    fly(tmp_path / "c", manifest, plan.tasks, Desk(), bags="all")
    assert (tmp_path / "c" / "notes.txt").read_text() == "mine"
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / LEDGER).write_text("mine")
    with pytest.raises(InputError, match="but no manifest"):
        fly(tmp_path / "d", manifest, plan.tasks, Desk())
    assert (tmp_path / "d" / LEDGER).read_text() == "mine"


def test_a_second_process_is_refused_while_the_first_flies(manifest, tmp_path):
    with (
        open_campaign(tmp_path, manifest),
        pytest.raises(InputError, match="another process flies"),
        open_campaign(tmp_path, manifest),
    ):
        pass
    with open_campaign(tmp_path, manifest):
        pass


def test_missions_with_events_are_flown_again_with_a_bag(plan, manifest, tmp_path):
    desk = Desk()
    ending = fly(tmp_path, manifest, plan.tasks, desk, bags="events")
    eventful = sorted(task.key for task in plan.tasks if made_up(task).result["collisions"])
    assert len(eventful) == 4 and len(desk.flown) == 28
    assert sorted(p.name for p in (tmp_path / "bags").iterdir()) == eventful
    assert ending.differing == ()
    again = Desk()
    fly(tmp_path, manifest, plan.tasks, again, bags="events")
    assert again.flown == []
    later = Desk()
    fly(tmp_path, manifest, plan.tasks, later, bags="all")
    assert len(later.flown) == 20 and all(job.again for job in later.flown)


def test_a_mission_that_does_not_repeat_is_told_loudly(plan, manifest, tmp_path):
    def outcome(job: MissionJob) -> MissionOutcome:
        made = Desk.record(job)
        if job.again and job.task.seed == 4:
            assert made.record is not None
            made.record.result["coverage"] = 0.123
        return made

    ending = fly(tmp_path, manifest, plan.tasks, Desk(outcome), bags="events")
    assert len(ending.differing) == 4
    assert all((tmp_path / "bags" / f"{key}.differs").is_dir() for key in ending.differing)
    assert "differs in coverage" in (tmp_path / "logs" / "campaign.log").read_text()
    assert not any(r.result["coverage"] == 0.123 for r in read_ledger(tmp_path / LEDGER).values())


def test_a_stop_among_the_bags_is_told_as_unfinished(plan, manifest, tmp_path):
    ending = fly(tmp_path, manifest, plan.tasks, Desk(limit=26), bags="events")
    assert (ending.left, ending.bags_left) == (0, 2)


@pytest.mark.parametrize("reason", ["simulator_error", "worker_lost"])
def test_a_mission_without_outcome_is_an_invalid_record_with_its_message_in_the_log(reason, plan, manifest, tmp_path):
    def outcome(job: MissionJob) -> MissionOutcome:
        if job.task == plan.tasks[5]:
            return MissionOutcome(job, reason=reason, message="the wings fell off")
        return Desk.record(job)

    ending = fly(tmp_path, manifest, plan.tasks, Desk(outcome))
    assert ending.invalid == {reason: 1} and ending.results is not None
    record = read_ledger(tmp_path / LEDGER)[plan.tasks[5].key].result
    assert (record["valid"], record["invalid_reason"], record["collisions"]) == (False, reason, 0)
    assert "the wings fell off" in (tmp_path / "logs" / "campaign.log").read_text()


def test_invalid_missions_are_flown_again_when_asked_and_what_they_were_stays_in_the_log(plan, manifest, tmp_path):
    def outcome(job: MissionJob) -> MissionOutcome:
        if job.task in plan.tasks[5:7]:
            return MissionOutcome(job, reason="simulator_error", message="the wings fell off")
        return Desk.record(job)

    fly(tmp_path, manifest, plan.tasks, Desk(outcome))
    with open_campaign(tmp_path, manifest) as campaign:
        assert campaign.refly_invalid(plan.tasks[:6]) == 1, "only those asked for"
        assert campaign.refly_invalid(plan.tasks) == 1
        assert campaign.refly_invalid(plan.tasks) == 0
        assert campaign.missing(plan.tasks) == list(plan.tasks[5:7])
    desk = Desk()
    ending = fly(tmp_path, manifest, plan.tasks, desk)
    assert [job.task for job in desk.flown] == list(plan.tasks[5:7])
    assert (ending.invalid, ending.left) == ({}, 0)
    assert len((tmp_path / LEDGER).read_text().splitlines()) == len(plan)
    log = (tmp_path / "logs" / "campaign.log").read_text()
    assert log.count("INVALID(simulator_error), to be flown again") == 2


def test_an_invalid_record_has_every_field_of_a_flown_one(plan):
    episode = plan.tasks[0].prepare()
    made = invalid_record(episode, "worker_lost").result
    assert made.keys() == Flight(episode, None).result().keys()
    assert (made["episode_id"], made["flight_time_s"]) == (plan.tasks[0].key, 0.0)


def test_an_error_of_the_host_ends_the_campaign_and_keeps_what_is_flown(plan, manifest, tmp_path):
    def outcome(job: MissionJob) -> MissionOutcome:
        if job.task == plan.tasks[5]:
            return MissionOutcome(job, reason="host_error", message="no space left on device", fatal=True)
        return Desk.record(job)

    with pytest.raises(RunError, match="no space left"):
        fly(tmp_path, manifest, plan.tasks, Desk(outcome))
    assert len(read_ledger(tmp_path / LEDGER)) == 5


def test_a_line_that_does_not_fit_leaves_the_ledger_whole(plan, tmp_path, monkeypatch):
    ledger = Ledger(tmp_path)
    ledger.append(made_up(plan.tasks[0]))
    before = ledger.path.read_bytes()
    write = os.write
    monkeypatch.setattr("sar_eval.campaign.ledger.os.write", lambda handle, line: write(handle, line[:10]))
    with pytest.raises(RunError, match="No space left"):
        ledger.append(made_up(plan.tasks[1]))
    assert ledger.path.read_bytes() == before and list(ledger.records) == [plan.tasks[0].key]


def test_a_campaign_knows_only_records_of_its_plan(plan, manifest, tmp_path):
    fly(tmp_path, manifest, plan.tasks[:2], Desk())
    line = json.dumps(Record({"episode_id": "stranger"}, {}).as_dict()) + "\n"
    with (tmp_path / LEDGER).open("a") as file:
        file.write(line)
    with pytest.raises(ContractError, match="stranger is not in the plan"):
        fly(tmp_path, manifest, plan.tasks, Desk())
