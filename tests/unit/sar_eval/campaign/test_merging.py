"""Shards put together: the same folder as if one process had flown it all, or a refusal that leaves nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sar_core.errors import ContractError, InputError, MissingDataError
from sar_core.sealed import seal
from sar_eval.campaign.ledger import LEDGER
from sar_eval.campaign.manifest import MANIFEST, make_manifest
from sar_eval.campaign.merging import merge
from sar_eval.campaign.plan import make_plan, select
from sar_eval.campaign.workers import MissionJob, MissionOutcome
from sar_eval.episode.record import Record
from tests.soak.killcheck import result_part
from tests.unit.sar_eval.campaign.desk import CHOICE, Desk, fly


def test_shards_merge_to_the_same_bytes(plan, manifest, tmp_path):
    fly(tmp_path / "calm", manifest, plan.tasks, Desk())
    shards = [tmp_path / f"shard{i}" for i in range(3)]
    for i, shard in enumerate(shards):
        assert fly(shard, manifest, select(plan, (), (i + 1, 3)), Desk(), bags="all").results is None
    merged = merge(shards[::-1], tmp_path / "whole")
    assert (merged.recorded, merged.bags, merged.missing) == (24, 24, ())
    assert result_part(tmp_path / "whole") == result_part(tmp_path / "calm")
    desk = Desk()
    assert fly(tmp_path / "whole", manifest, plan.tasks, desk, bags="all").left == 0 and desk.flown == []


def test_merge_refuses_gaps_strangers_and_contradictions_and_leaves_nothing(plan, manifest, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    fly(first, manifest, select(plan, (), (1, 2)), Desk())
    fly(second, manifest, select(plan, (), (2, 2)), Desk(limit=11))
    with pytest.raises(MissingDataError, match="1 of 24 missions are in no shard"):
        merge([first, second], tmp_path / "whole")
    with pytest.raises(InputError, match="one of the shards"):
        merge([first, second], first, partial=True)
    with pytest.raises(MissingDataError, match="no manifest"):
        merge([first, tmp_path / "nothing"], tmp_path / "whole", partial=True)
    stranger = make_manifest(make_plan(replace(CHOICE, seeds=(4, 2))))
    fly(tmp_path / "stranger", stranger, [], Desk())
    with pytest.raises(InputError, match=r"configuration.seeds"):
        merge([first, tmp_path / "stranger"], tmp_path / "whole", partial=True)
    third = tmp_path / "third"

    def contradict(job: MissionJob) -> MissionOutcome:
        made = Desk.record(job)
        assert made.record is not None
        made.record.result["coverage"] = 0.5
        return made

    fly(third, manifest, plan.tasks[:1], Desk(contradict))
    with pytest.raises(ContractError, match="another result"):
        merge([first, third], tmp_path / "whole", partial=True)
    assert not (tmp_path / "whole").exists()
    partial = merge([first, second], tmp_path / "whole", partial=True)
    assert (partial.recorded, len(partial.missing), partial.results) == (23, 1, None)
    with pytest.raises(InputError, match="holds a campaign already"):
        merge([first, second], tmp_path / "whole", partial=True)


def test_merge_refuses_a_mission_that_leads_out_of_the_folder(plan, manifest, tmp_path):
    """In the plan or in the ledger: named, and nothing is written anywhere."""
    home = tmp_path / "runs"
    fly(home / "shard", manifest, plan.tasks[:2], Desk())
    outside = replace(manifest, episodes=("../../escaped", *manifest.episodes[1:]))
    outside.write(home / "shard")
    with pytest.raises(ContractError, match=r"manifest\.json: name '\.\./\.\./escaped'"):
        merge([home / "shard"], home / "whole", partial=True)
    manifest.write(home / "shard")
    with (home / "shard" / LEDGER).open("a") as file:
        file.write(seal(Record({"episode_id": "../x"}, {}).as_dict()) + "\n")
    with pytest.raises(ContractError, match=r"episodes\.jsonl:3: name '\.\./x'"):
        merge([home / "shard"], home / "whole", partial=True)
    assert {item.name for item in tmp_path.rglob("*")} == {
        "runs",
        "shard",
        MANIFEST,
        LEDGER,
        ".lock",
        "logs",
        "campaign.log",
    }


def test_a_version_in_older_results_is_not_compared(plan, manifest, tmp_path):
    """Shards flown before and after the version left the result are one campaign."""

    def older(job: MissionJob) -> MissionOutcome:
        made = Desk.record(job)
        assert made.record is not None
        made.record.result["version"] = "0.0.9"
        return made

    fly(tmp_path / "old", manifest, plan.tasks[:3], Desk(older))
    fly(tmp_path / "new", manifest, plan.tasks, Desk())
    assert merge([tmp_path / "old", tmp_path / "new"], tmp_path / "whole").recorded == 24
    ending = fly(tmp_path / "old", manifest, plan.tasks[:3], Desk(), bags="all")
    assert ending.differing == ()
