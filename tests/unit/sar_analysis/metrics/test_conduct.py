"""Conduct from a bag made by hand, with other constants, from a bag that is older, and from records."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from sar_analysis.bags.reader import read_bag
from sar_analysis.metrics.conduct import bag_conduct, demand_same_constants
from sar_analysis.metrics.metrics import episode_metrics
from sar_analysis.metrics.records import parse_record
from sar_analysis.table import analyze
from sar_core.errors import ContractError
from sar_core.indices import load_indices
from tests.unit.sar_analysis.bagmaker import NS, Made, stamps, straight
from tests.unit.sar_analysis.recordmaker import record

INDICES = load_indices(Path(__file__).resolve().parents[4] / "configs" / "indices")
GEOMETRY = {
    "name": "field",
    "obstacles": [],
    "obstacle_names": [],
    "area_m": [0.0, 0.0, 100.0, 100.0],
    "fence": [[-50.0, -50.0], [150.0, -50.0], [150.0, 150.0], [-50.0, 150.0]],
    "ceiling_m": 120.0,
    "spawns": [],
    "hull_radius_m": 0.3,
}
WORLD = {"schema_version": "1", "world_sha256": "", "geometry": json.dumps(GEOMETRY)}


def pair(**changes: object) -> Made:
    """Two fly east at 5 m/s for 16 s, 3 m apart; of the search's 12 s the first is told to go 1 m/s slower for 2 s."""
    flown = straight(16.0, np.array([[10.0, 50.0, 30.0], [10.0, 53.0, 30.0]]), np.array([[5.0, 0, 0]] * 2))
    velocity = np.zeros_like(flown)
    velocity[..., 0] = 5.0
    asked, times = velocity.copy(), stamps(16.0) / NS
    told = asked.copy()
    told[(times > 6.0) & (times <= 8.0), 0, 0] = 4.0
    bands = np.zeros((33, 2), np.int64)
    bands[[5, 9, 10, 20], 1] = 3
    given = {"velocity": velocity, "setpoints": told, "wanted": asked, "bands": bands, "extra": {"world": WORLD}}
    given["routes"] = [[[10.0, 50.0], [90.0, 50.0]], [[10.0, 53.0], [90.0, 53.0]]]
    return Made(flown, 2.0, 14.0, **(given | changes))  # type: ignore[arg-type]


def test_the_terms_of_a_bag(tmp_path: Path) -> None:
    found = bag_conduct(read_bag(pair().write(tmp_path / "b")), INDICES)
    assert found is not None and found.interventions is not None
    assert found.comfort.exposure == 1.0 and found.comfort.airborne_s == pytest.approx(24.0, abs=0.1)
    assert (found.comfort.force_entries, found.comfort.jerk_mean_mps3) == (0, 0.0)
    told = found.interventions
    assert (told.asked_ticks, told.changed_ticks, told.changed_entries) == (2 * 241, 40, 1)
    assert told.change_mean_mps == pytest.approx(40 / 482)
    assert (told.split_entries, told.diverge_entries) == (3, 0)
    assert found.rules.separation_m2s == pytest.approx(2 * 4.0 * 12.0, rel=0.01)
    assert found.rules.lane_m2s is not None
    assert found.assumptions.neighbours_fresh is found.assumptions.estimate_near is None
    assert found.assumptions.commands_tracked is not None and found.assumptions.commands_tracked.violations == 0


def test_other_constants_from_a_bag_but_not_from_a_record(tmp_path: Path) -> None:
    bag = read_bag(pair().write(tmp_path / "b"))
    near = INDICES.quality.model_copy(update={"neighbour_m": 2.0})
    other = dataclasses.replace(INDICES, quality=near, sha256={**INDICES.sha256, "quality.yaml": "f" * 64})
    first, second = bag_conduct(bag, INDICES), bag_conduct(bag, other)
    assert first is not None and second is not None and second.comfort.exposure == 0.0
    demand_same_constants(first, INDICES, "a.jsonl:1")
    with pytest.raises(ContractError, match=r"a\.jsonl:1: its terms were computed with quality\.yaml .* its bag can"):
        demand_same_constants(first, other, "a.jsonl:1")


def test_a_table_computes_anew_from_bags_and_refuses_records_made_with_other_constants(tmp_path: Path) -> None:
    bag = read_bag(pair().write(tmp_path / "bags" / "b"))
    near = INDICES.quality.model_copy(update={"neighbour_m": 2.0})
    other = dataclasses.replace(INDICES, quality=near, sha256={**INDICES.sha256, "quality.yaml": "f" * 64})
    flown, again = bag_conduct(bag, INDICES), bag_conduct(bag, other)
    assert flown is not None and again is not None
    table = analyze(tmp_path / "bags")
    ours, theirs = (table.conduct(indices)[0]["comfort.exposure"] for indices in (INDICES, other))
    assert (ours, theirs) == (1.0, 0.0)
    (tmp_path / "one.jsonl").write_text(record(conduct=flown.plain()) + "\n")
    table = analyze(tmp_path / "one.jsonl")
    assert table.conduct(INDICES)[0]["rules.separation_m2s"] == flown.rules.separation_m2s
    with pytest.raises(ContractError, match=rf"{table.episodes[0].episode_id}: its terms .* its bag can"):
        table.conduct(other)
    both = record(conduct=flown.plain()) + "\n" + record(seed=2, conduct=again.plain()) + "\n"
    (tmp_path / "two.jsonl").write_text(both)
    assert any("different quality.yaml" in text for text in analyze(tmp_path / "two.jsonl").warnings())


def test_what_a_bag_lacks_is_null(tmp_path: Path) -> None:
    older = pair(older=True, wanted=None, bands=None, routes=None, extra={}, schema_version="1")
    bag = read_bag(older.write(tmp_path / "b"))
    bare = dataclasses.replace(bag, setpoints=())
    found = bag_conduct(bare, INDICES)
    assert found is not None and found.interventions is None and found.comfort.exposure is None
    assert found.rules.lane_s is found.rules.fence_crossings is found.rules.empty_m is None
    assert found.comfort.jerk_rms_mps3 == 0.0
    never = read_bag(pair(status={"phase": 1, "search_time_s": 0.0}).write(tmp_path / "never"))
    assert bag_conduct(never, INDICES) is None


def test_a_record_gives_the_row_its_jerk_and_an_older_one_none(tmp_path: Path) -> None:
    bag = read_bag(pair().write(tmp_path / "b"))
    found = bag_conduct(bag, INDICES)
    assert found is not None
    row = parse_record(record(conduct=found.plain()), "a.jsonl:1")
    assert row.conduct == found
    assert (row.jerk_rms_mps3, row.jerk_mean_mps3) == (found.comfort.jerk_rms_mps3, found.comfort.jerk_mean_mps3)
    measured = episode_metrics(bag)
    assert (measured.jerk_rms_mps3, measured.jerk_mean_mps3) == (row.jerk_rms_mps3, row.jerk_mean_mps3)
    for old in (record(), record(conduct=None)):
        row = parse_record(old, "a.jsonl:1")
        assert row.conduct is row.jerk_rms_mps3 is row.jerk_mean_mps3 is None
    with pytest.raises(ContractError, match=r"a\.jsonl:1: the record's result lacks or mistypes"):
        parse_record(record(conduct={"comfort": {}}), "a.jsonl:1")
