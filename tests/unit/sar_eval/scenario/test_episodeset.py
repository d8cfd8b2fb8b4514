"""Episode sets: fixed data with a hash, the same for every seed and condition, never edited in silence."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_core.errors import ContractError, InputError
from sar_eval.scenario.episodeset import (
    EpisodeLayout,
    as_text,
    content_sha256,
    load_set,
    make_set,
    read_set,
    set_path,
    write_set,
)
from sar_eval.scenario.model import Scenario, scenario_from
from sar_eval.scenario.prepare import prepare
from sar_eval.scenario.resources import share_dir
from sar_eval.studies.sweep import CLOSES_AT_KAPPA, OPENS_AT_KAPPA
from sar_sim.radio.devices import PHONES, DeviceKind, design_of, known_addresses

WORLDS = sorted(path.stem for path in share_dir("worlds").glob("*.sdf"))
WIDE = ("collapsed_block", "village")
SECOND = (*(f"{world}-v2" for world in WORLDS), *(f"{world}_wide-v2" for world in WIDE))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("world", WORLDS)
def test_the_committed_sets_are_what_the_command_makes(world: str, version: int) -> None:
    path = set_path(f"{world}-v{version}")
    assert path.read_text() == as_text(make_set(world, version))
    found = load_set(f"{world}-v{version}")
    assert (len(found), len(found.layouts), len(found.levels), found.world) == (50, 10, 5, world)
    assert path.stat().st_size < 40_000


@pytest.mark.parametrize("world", WIDE)
def test_a_wide_set_flies_many_layouts_once(world: str) -> None:
    path = set_path(f"{world}_wide-v2")
    assert path.read_text() == as_text(make_set(world, 2, one_level_each=True))
    found = load_set(f"{world}_wide-v2")
    assert (len(found), len(found.layouts), found.world) == (200, 200, world)
    assert [found.layout_number(k) for k in (0, 7, 199)] == [0, 7, 199]
    assert [found.level(k).kappa for k in range(10)] == [1e4, 8.0, 4.0, 2.0, 1.0] * 2
    assert path.stat().st_size < 450_000
    episode = prepare(Scenario(episode_set=f"{world}_wide-v2"), 1, 7)
    assert (episode.layout, episode.scenario.sigma, episode.scenario.decoys) == (7, 0.1, 3)
    with pytest.raises(InputError, match=rf"{world}_wide-v2 has 200 episodes, 0 to 199"):
        found.level(200)
    with pytest.raises(InputError, match="its rules know no wide sets; allowed: 2 or more"):
        make_set(world, 1, one_level_each=True)


def holding(layout: EpisodeLayout) -> list[tuple[DeviceKind, bool | None]]:
    return sorted((d.kind, d.listed) for d in layout.devices if d.kind is not DeviceKind.VICTIM)


@pytest.mark.parametrize("name", SECOND)
def test_decoys_of_version_2_follow_their_design(name: str) -> None:
    """Counted again from the files; docs/stage1.md states these shares."""
    found = load_set(name)
    for k, layout in enumerate(found.layouts):
        assert holding(layout) == sorted(design_of(k))
        assert [d.listed for d in layout.devices if d.kind is DeviceKind.VICTIM] == [False, False]
        told = {d.address for d in layout.devices if d.listed}
        assert set(known_addresses(layout.devices)) == told
    kinds = DeviceKind
    for group in (found.layouts[first : first + 10] for first in range(0, len(found.layouts), 10)):
        halves = {
            listed: [held for held in map(holding, group) if held.count((kinds.RESCUER, listed)) == 1]
            for listed in (False, True)
        }
        for half in halves.values():
            assert len(half) == 5
            assert sum((kinds.PASSER_BY, False) in held for held in half) == 3
            assert sum((kinds.INTERFERENCE, False) in held for held in half) == 3
            assert sum((kinds.ACCESS_POINT, False) in held for held in half) == 2
            assert sum((kinds.ACCESS_POINT, True) in held for held in half) == 2
        assert (
            sum((kinds.RESCUER, False) in held or (kinds.PASSER_BY, False) in held for held in map(holding, group)) == 8
        )


def test_the_page_tells_the_design_row_by_row() -> None:
    page = (Path(__file__).parents[4] / "docs/stage1.md").read_text(encoding="utf-8")
    words = {False: "unlisted", True: "listed"}
    columns = (DeviceKind.RESCUER, DeviceKind.PASSER_BY, DeviceKind.ACCESS_POINT, DeviceKind.INTERFERENCE)
    for k in range(10):
        held = dict(design_of(k))
        cells = [
            "" if kind not in held else words[bool(held[kind])] if kind in columns[::2] else "yes" for kind in columns
        ]
        assert "| ".join(["", str(k) + " ", *(f"{cell} " if cell else "" for cell in cells)]) + "|" in page


@pytest.mark.parametrize("world", WIDE)
def test_every_level_of_a_wide_set_meets_every_row_of_the_design(world: str) -> None:
    found = load_set(f"{world}_wide-v2")
    met = Counter((k % 5, tuple(holding(found.layout(k)))) for k in range(len(found)))
    rows = {tuple(sorted(design_of(k))) for k in range(10)}
    assert {row for _, row in met} == rows
    assert all(met[level, row] == 4 * sum(tuple(sorted(design_of(k))) == row for k in range(10)) for level, row in met)


def test_worlds_share_no_layout_in_version_2() -> None:
    sets = [load_set(name) for name in SECOND]
    addresses = [d.address for found in sets for layout in found.layouts for d in layout.devices]
    assert len(set(addresses)) == len(addresses)
    assert len({layout.wind_rad for found in sets for layout in found.layouts}) == sum(len(f.layouts) for f in sets)
    first = [load_set(f"{world}-v1") for world in WORLDS]
    assert len({found.layouts[0].devices[0].address for found in first}) == 1


@pytest.mark.parametrize("name", SECOND)
def test_phones_of_version_2_differ_in_power_and_scans(name: str) -> None:
    devices = [d for layout in load_set(name).layouts for d in layout.devices]
    for d in devices:
        if d.kind not in PHONES:
            assert (d.power_db, d.randomises, d.sleep_share) == (10.0 * d.beacon, False, 0.0)
            continue
        assert abs(d.power_db - 3.0 * (d.kind is DeviceKind.RESCUER)) <= 10.0
        assert 15.0 <= d.scan_interval_s <= 45.0
        assert (d.randomises, d.sleep_share) == (True, 0.1)
    assert len({d.scan_interval_s for d in devices}) > 20


def test_levels_get_worse_and_straddle_the_gate() -> None:
    levels = load_set("village-v1").levels
    assert [level.kappa for level in levels] == [16.0, 8.0, 4.0, 2.0, 1.0]
    assert list(np.diff([level.sigma for level in levels]) > 0) == [True] * 4
    assert levels[2].kappa > OPENS_AT_KAPPA > levels[3].kappa > CLOSES_AT_KAPPA > levels[4].kappa


@pytest.mark.parametrize("name", SECOND)
def test_levels_of_version_2_are_clean_twice_inside_at_the_edge_and_beyond(name: str) -> None:
    levels = load_set(name).levels
    assert [(level.sigma, level.kappa) for level in levels] == [(0, 1e4), (0.05, 8), (0.1, 4), (0.2, 2), (0.4, 1)]
    assert levels[2].kappa > OPENS_AT_KAPPA > levels[3].kappa > CLOSES_AT_KAPPA > levels[4].kappa


def test_an_index_is_a_layout_at_a_level() -> None:
    found = load_set("village-v1")
    assert [found.level(k).kappa for k in range(5)] == [16.0, 8.0, 4.0, 2.0, 1.0]
    assert len({id(found.layout(k)) for k in range(5)}) == 1
    assert len({id(found.layout(k)) for k in range(50)}) == 10
    places = {tuple(layout.devices[0].track[0]) for layout in found.layouts}
    assert len(places) == 10
    for index in (-1, 50):
        with pytest.raises(InputError, match=r"village-v1 has 50 episodes, 0 to 49"):
            found.layout(index)


def test_every_seed_and_pattern_gets_the_same_episode_and_the_twin_lacks_its_victims_only() -> None:
    scenario = Scenario(episode_set="village-v1")
    one = prepare(scenario, 1, 7)
    other = prepare(scenario.model_copy(update={"pattern": "spiral"}), 2, 7)
    twin = prepare(scenario.model_copy(update={"victim_absent": True}), 1, 7)
    assert (one.scenario.sigma, one.scenario.kappa, one.world.name) == (0.1, 4.0, "village")
    assert np.array_equal(one.wind_mps, other.wind_mps)
    assert np.array_equal(one.wind_mps, twin.wind_mps)
    assert [d.address for d in one.devices] == [d.address for d in other.devices]
    assert [d.kind for d in one.devices].count(DeviceKind.VICTIM) == 2
    assert [d.address for d in twin.devices] == [d.address for d in one.devices if d.kind is not DeviceKind.VICTIM]
    assert known_addresses(twin.devices) == known_addresses(one.devices)
    angle = load_set("village-v1").layout(7).wind_rad
    assert math.atan2(one.wind_mps[1], one.wind_mps[0]) == pytest.approx(angle)


def test_set_and_hash_are_named_in_configuration_id_and_nothing_else_shares_them() -> None:
    drawn, fixed = prepare(Scenario(world="village"), 1, 7), prepare(Scenario(episode_set="village-v1"), 1, 7)
    resolved = fixed.resolved()
    assert resolved["episode_set"] == "village-v1"
    assert resolved["episode_set_sha256"] == load_set("village-v1").sha256
    assert (drawn.resolved()["episode_set"], drawn.resolved()["episode_set_sha256"]) == ("rules-2", None)
    assert fixed.episode_id != drawn.episode_id
    assert fixed.episode_id.startswith("village-v1-partitioned_lawnmower-4x-embedded-s001-e007")


def test_a_record_of_a_set_can_be_prepared_again() -> None:
    episode = prepare(Scenario(episode_set="village-v1"), 1, 7)
    again = prepare(scenario_from(json.loads(json.dumps(episode.plain_scenario())), "here"), 1, 7)
    assert again.config_sha256 == episode.config_sha256


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sigma": 0.3}, "sigma = 0.3 is given besides episode_set = village-v1, whose episode 7 has sigma = 0.1"),
        ({"kappa": 3.0}, "leave kappa out, or the set"),
        ({"victims": 1}, "has victims = 2"),
        ({"decoys": 4}, "has decoys = 3"),
        ({"world": "forest"}, "world = forest: village-v1 is of village"),
        ({"episode_set": "nowhere-v1"}, "episode set 'nowhere-v1' is not known; give a .json file or one of"),
    ],
)
def test_what_contradicts_the_set_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        prepare(Scenario(**{"episode_set": "village-v1", **given}), 1, 7)
    assert said in str(caught.value)


def test_an_index_beyond_the_set_is_refused() -> None:
    with pytest.raises(InputError, match=r"episode = 50: village-v1 has 50 episodes"):
        prepare(Scenario(episode_set="village-v1"), 1, 50)


def rewritten(folder: Path, change: Any, rehash: bool, name: str = "village-v1") -> Path:
    content = json.loads(set_path(name).read_text())
    change(content)
    if rehash:
        content["sha256"] = content_sha256(content)
    path = folder / "set.json"
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("change", "rehash", "said"),
    [
        (lambda c: c["levels"][0].update(kappa=15.0), False, "a set is never edited"),
        (lambda c: c["levels"][0].update(kappa=math.nan), True, "levels.0.kappa"),
        (lambda c: c["levels"][0].update(colour="red"), True, "unknown key"),
        (lambda c: c.pop("layouts"), True, "key 'layouts' is missing"),
        (lambda c: c["layouts"][0]["devices"][0].update(kind="ghost"), True, "device kind 'ghost': allowed: victim,"),
        (lambda c: c.update(name="village-v7"), True, "expected village-v1"),
        (lambda c: c.update(world_sha256="0" * 64), True, "that world is now"),
    ],
)
def test_a_set_that_is_not_what_it_says_is_refused(tmp_path: Path, change: Any, rehash: bool, said: str) -> None:
    with pytest.raises(ContractError) as caught:
        load_set(rewritten(tmp_path, change, rehash))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c["layouts"][0]["devices"][0].pop("listed"), "key 'layouts.0.devices.0.listed' is missing"),
        (lambda c: c["layouts"][0]["devices"][0].update(scan_interval_s=0), "scan_interval_s"),
        (lambda c: c.update(missions="some"), "missions"),
        (lambda c: c.update(missions="every_level"), "expected village-v2"),
        (lambda c: c.update(schema_version=3), "schema_version"),
        (lambda c: c.update(schema_version=1), "unknown key"),
    ],
)
def test_a_file_of_schema_2_says_all_of_it(tmp_path: Path, change: Any, said: str) -> None:
    with pytest.raises(ContractError) as caught:
        load_set(rewritten(tmp_path, change, True, "village_wide-v2"))
    assert said in str(caught.value)


def test_a_different_set_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "sets" / "field.json"
    content = make_set("open_field", 1)
    assert write_set(content, path)
    assert not write_set(content, path)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"holds a different set; a change is a new version"):
        write_set(make_set("open_field", 2), path)
    assert path.read_bytes() == before
    assert read_set(path).sha256 != make_set("open_field", 2)["sha256"]
