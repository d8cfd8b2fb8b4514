"""The door of a campaign: records flown with other inputs, code or autopilots stay outside, and the file is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sar_core.errors import ContractError
from sar_core.sealed import seal
from sar_eval.campaign.acceptance import Acceptance
from sar_eval.campaign.campaign import open_campaign
from sar_eval.campaign.ledger import LEDGER, read_ledger
from sar_eval.campaign.manifest import Manifest, input_hashes, make_manifest
from sar_eval.campaign.merging import merge
from sar_eval.campaign.plan import CampaignChoice, CampaignPlan, make_plan
from sar_eval.campaign.sources import code
from sar_eval.campaign.workers import MissionJob, MissionOutcome
from sar_eval.episode.conduct import indices
from sar_eval.episode.invalid import invalid_record
from sar_eval.episode.record import Record
from sar_eval.scenario.model import Scenario

CHOICE = CampaignChoice(Scenario(drones=2), ("village",), ("spiral",), "both", (1,), (0, 1), episode_set="v2")
PX4 = {"version": "1.18.0", "git": "0123456789abcdef"}


@pytest.fixture(scope="module")
def plan() -> CampaignPlan:
    return make_plan(CHOICE)


@pytest.fixture(scope="module")
def manifest(plan: CampaignPlan) -> Manifest:
    return make_manifest(plan)


@pytest.fixture(scope="module")
def record(plan: CampaignPlan) -> Record:
    """As a worker makes it, with every hash of what it read."""
    return invalid_record(plan.tasks[0].prepare(), "simulator_error")


def changed(record: Record, **configuration: Any) -> Record:
    return Record({**record.result, "configuration": {**record.result["configuration"], **configuration}}, record.run)


def flown_by(record: Record, tier: str = "sih", **autopilot: str) -> Record:
    return Record({**record.result, "tier": tier}, {**record.run, "autopilot": {**PX4, "late_s": 0.1, **autopilot}})


@pytest.mark.parametrize(
    ("key", "file"),
    [
        ("world", "worlds/village.sdf"),
        ("vehicle", "configs/vehicles/x500.yaml or .*/px4_params/x500.params"),
        ("radio", "configs/radio/open_ground.yaml"),
        ("calibration", "configs/calibration/open_ground.json"),
        ("episode_set", "configs/episodes/village-v2.json"),
        ("policy", "None"),
    ],
)
def test_an_input_that_was_edited_is_named(manifest: Manifest, record: Record, key: str, file: str) -> None:
    door = Acceptance(manifest)
    assert door.complaint(record) == ""
    told = door.complaint(changed(record, **{f"{key}_sha256": "f" * 64}))
    assert re.search(f"{file} was edited: sha256 ffffffffffff", told), told


@pytest.mark.parametrize("name", ["flight_rules", "quality", "safety"])
def test_constants_that_were_edited_are_named(manifest: Manifest, record: Record, name: str) -> None:
    def judged(**digests: str) -> Record:
        made = {file: digests.get(Path(file).stem, digest) for file, digest in indices().sha256.items()}
        return Record({**record.result, "conduct": {"indices": made}}, record.run)

    door = Acceptance(manifest)
    assert door.complaint(judged()) == door.complaint(Record({**record.result, "conduct": None}, {})) == ""
    assert f"configs/indices/{name}.yaml was edited: sha256 ffffffffffff" in door.complaint(judged(**{name: "f" * 64}))


def test_a_campaign_hashed_by_the_second_rule_says_nothing_of_constants(manifest: Manifest, record: Record) -> None:
    inputs = {"conditions": {"village-spiral": {}, "village-spiral-absent": {}}}
    before = replace(manifest, decides={**manifest.decides, "identity_rule": 2, "inputs": inputs})
    assert Acceptance(before).complaint(Record({**record.result, "conduct": {"indices": {"x.yaml": "0"}}}, {})) == ""


def test_a_condition_of_another_campaign_is_refused(manifest: Manifest, record: Record) -> None:
    stranger = Record({**record.result, "world": "canyon"}, record.run)
    assert "canyon-spiral is no condition" in Acceptance(manifest).complaint(stranger)


@pytest.mark.parametrize("part", ["version", "git"])
def test_another_autopilot_than_the_first_records_is_refused(manifest: Manifest, record: Record, part: str) -> None:
    door = Acceptance(manifest)
    assert door.complaint(flown_by(record)) == door.complaint(record) == door.complaint(flown_by(record)) == ""
    told = door.complaint(flown_by(record, **{part: "9.9.9"}))
    assert "9.9.9" in told and "by 1.18.0 0123456789abcdef" in told


def test_our_own_vehicle_may_tell_another_version(manifest: Manifest, record: Record) -> None:
    door = Acceptance(manifest)
    assert door.complaint(flown_by(record, "sitl")) == door.complaint(flown_by(record, "sitl", version="9.9.9")) == ""


class Scripted:
    """Flyers that hand over what they are given."""

    def __init__(self, make: Callable[[MissionJob], MissionOutcome]) -> None:
        self._make = make

    def fly(
        self, more: Callable[[], MissionJob | None], stop: Callable[[], str | None]
    ) -> Generator[MissionOutcome, None, None]:
        while (job := more()) is not None:
            yield self._make(job)


def honest(job: MissionJob) -> MissionOutcome:
    return MissionOutcome(job, invalid_record(job.task.prepare(), "simulator_error"), code=code())


def other_params(job: MissionJob) -> MissionOutcome:
    made = honest(job)
    assert made.record is not None
    return replace(made, record=changed(made.record, vehicle_sha256="f" * 64))


def other_bridge(job: MissionJob) -> MissionOutcome:
    now = code()
    return replace(honest(job), code={**now, "sar_eval": {**now["sar_eval"], "px4/world.py": "edited"}})


def edited_in_flight(job: MissionJob) -> MissionOutcome:
    """A file that vehicles read by themselves, after the worker had read it."""
    return replace(honest(job), inputs={**input_hashes(job.task.prepare()), "vehicle_sha256": "f" * 64})


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (other_params, r"px4_params/x500\.params was edited"),
        (other_bridge, r"sar_eval\.px4/world\.py was changed"),
        (edited_in_flight, r"px4_params/x500\.params was edited"),
    ],
)
def test_a_campaign_ends_before_it_mixes(
    plan: CampaignPlan, manifest: Manifest, tmp_path: Path, wrong: Callable[[MissionJob], MissionOutcome], named: str
) -> None:
    def turn(job: MissionJob) -> MissionOutcome:
        return (wrong if job.task == plan.tasks[2] else honest)(job)

    with (
        open_campaign(tmp_path, manifest) as campaign,
        pytest.raises(ContractError, match=f"{plan.tasks[2].key}: .*{named}.*nothing was mixed in"),
    ):
        campaign.fly(list(plan.tasks), Scripted(turn))
    assert list(read_ledger(tmp_path / LEDGER)) == [task.key for task in plan.tasks[:2]]
    with open_campaign(tmp_path, manifest) as campaign:
        assert campaign.fly(list(plan.tasks), Scripted(honest)).results is not None


def test_a_ledger_that_was_mixed_is_neither_gone_on_with_nor_merged(
    plan: CampaignPlan, manifest: Manifest, record: Record, tmp_path: Path
) -> None:
    manifest.write(tmp_path)
    (tmp_path / LEDGER).write_text(seal(changed(record, world_sha256="f" * 64).as_dict()) + "\n")
    with (
        pytest.raises(ContractError, match=r"village\.sdf was edited.*not of one experiment"),
        open_campaign(tmp_path, manifest),
    ):
        pass
    with pytest.raises(ContractError, match=r"village\.sdf was edited.*not of one experiment"):
        merge([tmp_path], tmp_path / "whole", partial=True)


def test_shards_of_two_autopilots_are_not_merged(
    plan: CampaignPlan, manifest: Manifest, record: Record, tmp_path: Path
) -> None:
    other = invalid_record(plan.tasks[1].prepare(), "simulator_error")
    for name, flown in (("a", flown_by(record)), ("b", flown_by(other, git="fedcba"))):
        (tmp_path / name).mkdir()
        manifest.write(tmp_path / name)
        (tmp_path / name / LEDGER).write_text(seal(flown.as_dict()) + "\n")
    with pytest.raises(ContractError, match=r"flown by autopilot 1\.18\.0 fedcba"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "whole", partial=True)
    assert not (tmp_path / "whole").exists()
