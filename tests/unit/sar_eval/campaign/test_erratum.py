"""Whose records an erratum takes, and what it must know of the layouts they were flown on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sar_analysis.stats.layouts import Options
from sar_core.errors import ContractError, MissingDataError
from sar_core.sealed import seal
from sar_eval.campaign.erratum import campaign_erratum, layouts_of
from sar_eval.campaign.ledger import PACKED
from sar_eval.scenario.episodeset import load_set
from sar_sim.radio.devices import DeviceKind, known_addresses

SET = "village-v1"
FEW = Options(resamples=200)


def record(index: int, schema: int = 1, absent: bool = False, **changes: Any) -> dict[str, Any]:
    """A mission by the keys of schema 1 that found its first victim 3 m off and raised no alarm."""
    layout = load_set(SET).layouts[load_set(SET).layout_number(index)]
    places = [d.track[0, 1:3].tolist() for d in layout.devices if d.kind is DeviceKind.VICTIM]
    found = {"detected": True, "time_s": 30.0, "error_m": 3.0}
    missed = {"detected": False, "time_s": None, "error_m": None}
    victims = [{"x": x, "y": y, **(missed if k else found)} for k, (x, y) in enumerate(places)]
    result = {
        "episode_id": f"made-{index}",
        "episode_set": SET,
        "episode": index,
        "valid": True,
        "search_time_s": 200.0,
        "victims": [] if absent else victims,
        "detections": int(not absent),
        "false_alarms": 0,
        "false_alarm_events": [],
        "configuration": {"victim_absent": absent},
    }
    return {"schema_version": schema, "result": result | changes, "run": {}}


def written(file: Path, *records: dict[str, Any]) -> Path:
    file.write_text("\n".join(map(seal, records)) + "\n", encoding="utf-8")
    return file


def test_records_of_a_folder_or_a_file_give_the_same_figures(tmp_path: Path) -> None:
    flown = [record(k) for k in range(20)]
    file = written(tmp_path / "records.jsonl", *flown)
    told = campaign_erratum(file, options=FEW)
    found = {c.words: c for c in told}["victims found; now: right when issued, by 240 s"]
    assert found.published is not None
    assert found.published.value == found.corrected.value == pytest.approx(1.0 / len(flown[0]["result"]["victims"]))
    assert told == campaign_erratum(written(tmp_path / "again.jsonl", *flown), options=FEW)


def test_records_of_another_schema_are_refused_by_line(tmp_path: Path) -> None:
    file = written(tmp_path / "records.jsonl", record(0), record(1, schema=2))
    with pytest.raises(ContractError, match=r"records\.jsonl:2: schema_version is 2; an erratum is of 1 only"):
        campaign_erratum(file)


def test_what_flew_several_sets_or_nothing_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "mixed.jsonl", record(0), record(1, episode_set="forest-v1"))
    with pytest.raises(ContractError, match=r"flew forest-v1, village-v1; allowed: one episode set"):
        campaign_erratum(file)
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(ContractError, match="flew nothing"):
        campaign_erratum(tmp_path / "none.jsonl")
    with pytest.raises(MissingDataError, match=rf"{PACKED}: not there"):
        campaign_erratum(tmp_path)


def test_a_layout_knows_its_victims_and_whether_a_rescuer_is_unlisted() -> None:
    episodes = load_set(SET)
    for drawn, told in zip(episodes.layouts, layouts_of(episodes), strict=True):
        known = known_addresses(drawn.devices)
        assert set(told.victims) == {d.address for d in drawn.devices if d.kind is DeviceKind.VICTIM}
        unlisted = [d for d in drawn.devices if d.kind is DeviceKind.RESCUER and d.address not in known]
        assert told.unlisted_rescuer == bool(unlisted)
    assert {layout.unlisted_rescuer for layout in layouts_of(episodes)} == {True, False}
