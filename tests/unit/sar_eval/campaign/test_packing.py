"""A campaign that moves house: two files, no names of machines, and the same table at the end."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest

from sar_core.errors import ContractError, InputError, MissingDataError
from sar_eval.campaign.campaign import open_campaign
from sar_eval.campaign.ledger import LEDGER, PACKED, read_ledger
from sar_eval.campaign.manifest import MANIFEST, Manifest
from sar_eval.campaign.merging import merge
from sar_eval.campaign.packing import pack
from sar_eval.campaign.plan import CampaignPlan
from tests.soak.killcheck import result_part
from tests.unit.sar_eval.campaign.desk import Desk, fly


def test_begun_here_and_finished_there_gives_the_equal_table(
    plan: CampaignPlan, manifest: Manifest, tmp_path: Path
) -> None:
    fly(tmp_path / "whole", manifest, plan.tasks, Desk())
    fly(tmp_path / "here", manifest, plan.tasks, Desk(limit=7), bags="all")
    packed, records = pack(tmp_path / "here", tmp_path / "sent")
    assert (packed.identity, records) == (manifest.identity, 7)
    assert sorted(item.name for item in (tmp_path / "sent").iterdir()) == [PACKED, MANIFEST]
    assert f'"{socket.gethostname()}"' not in (tmp_path / "sent" / MANIFEST).read_text()
    there = Path(shutil.copytree(tmp_path / "sent", tmp_path / "there"))
    desk = Desk()
    assert fly(there, manifest, plan.tasks, desk).results is not None
    assert len(desk.flown) == 17
    assert result_part(there) == result_part(tmp_path / "whole")
    assert read_ledger(tmp_path / "there" / LEDGER).keys() == set(manifest.episodes)


def test_a_later_state_replaces_an_earlier_one(plan: CampaignPlan, manifest: Manifest, tmp_path: Path) -> None:
    for limit in (3, 4):
        fly(tmp_path / "here", manifest, plan.tasks, Desk(limit=limit))
        pack(tmp_path / "here", tmp_path / "sent")
    assert len(read_ledger(tmp_path / "sent" / LEDGER)) == 7
    assert merge([tmp_path / "sent"], tmp_path / "merged", partial=True).recorded == 7


@pytest.mark.parametrize("name", [PACKED, MANIFEST])
def test_damage_on_the_way_is_noticed(plan: CampaignPlan, manifest: Manifest, tmp_path: Path, name: str) -> None:
    fly(tmp_path / "here", manifest, plan.tasks, Desk(limit=3))
    pack(tmp_path / "here", tmp_path / "sent")
    damaged = bytearray((tmp_path / "sent" / name).read_bytes())
    damaged[len(damaged) // 2] ^= 4
    (tmp_path / "sent" / name).write_bytes(damaged)
    with pytest.raises(ContractError), open_campaign(tmp_path / "sent", manifest):
        pass
    assert not (tmp_path / "sent" / LEDGER).exists()


def test_what_is_no_campaign_or_holds_another_is_refused(
    plan: CampaignPlan, manifest: Manifest, tmp_path: Path
) -> None:
    with pytest.raises(MissingDataError, match="no manifest"):
        pack(tmp_path, tmp_path / "sent")
    fly(tmp_path / "here", manifest, plan.tasks, Desk(limit=3))
    with pytest.raises(InputError, match="holds a campaign already"):
        pack(tmp_path / "here", tmp_path / "here")
    body = json.loads((tmp_path / "here" / MANIFEST).read_text())
    other = Manifest({key: body[key] for key in ("configuration", "code", "inputs")}, tuple(body["episodes"]), {})
    (tmp_path / "other").mkdir()
    other.write(tmp_path / "other")
    with pytest.raises(InputError, match="holds a campaign already"):
        pack(tmp_path / "here", tmp_path / "other")


def test_a_packed_ledger_without_its_manifest_is_not_taken_over(
    plan: CampaignPlan, manifest: Manifest, tmp_path: Path
) -> None:
    fly(tmp_path / "here", manifest, plan.tasks, Desk(limit=3))
    pack(tmp_path / "here", tmp_path / "sent")
    (tmp_path / "sent" / MANIFEST).unlink()
    with (
        pytest.raises(InputError, match=r"holds episodes\.jsonl\.zst but no manifest"),
        open_campaign(tmp_path / "sent", manifest),
    ):
        pass
