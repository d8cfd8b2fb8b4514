"""A scenario as a user writes it and as a record keeps it, and what tells one episode from another."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.errors import InputError
from sar_eval.scenario.model import (
    Episode,
    FaultConfig,
    Scenario,
    Source,
    load_scenario,
    make_fault,
    read_mapping,
    scenario_from,
)
from sar_eval.scenario.prepare import prepare


@pytest.fixture(scope="module")
def episode() -> Episode:
    return prepare(Scenario(), 3, 5)


def written(folder: Path, text: str) -> Path:
    path = folder / "mission.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_is_given_wins_over_the_file_and_each_is_named_where_it_came_from(tmp_path: Path) -> None:
    path = written(tmp_path, "drones: 3\nwind_mps: 1\nworld: forest\n")
    scenario, source = load_scenario(path, {"drones": 5})
    assert (scenario.drones, scenario.wind_mps, scenario.world) == (5, 1.0, "forest")
    assert (source.of("drones"), source.of("wind_mps"), source.of("wind_mps", "drones")) == (
        "command line",
        str(path),
        "command line",
    )
    assert Source().of("drones") == "command line"


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    assert load_scenario(written(tmp_path, ""), {})[0] == load_scenario(None, {})[0] == Scenario()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("drones: 3\ndrones: 4", "key 'drones' is given 2 times; allowed is once"),
        ("link: {loss: 0.1, loss: 0.2}", "key 'loss' is given 2 times; allowed is once"),
        ("faults: [{kind: gps_loss, drone: 1, drone: 2, begin_s: 1}]", "key 'drone' is given 2 times"),
        ("- drones", "a scenario is a mapping of keys to values, found list"),
        ("drones: [", "cannot read the scenario"),
        ("[" * 5000, "cannot read the scenario (maximum recursion depth exceeded"),
        ("link: &a {b: *a}", "unknown key 'link.b'"),
        (
            "faults: [{kind: gps_lost, drone: 1, begin_s: 1}]",
            "faults.0.kind = 'gps_lost': not a known fault; allowed: ",
        ),
        ("faults: [{kind: gps_loss, drone: 1, at_s: 1}]", "'faults.0.at_s'"),
        ("link: {lost: 1}", "'link.lost'"),
        ("drone: 3", "unknown key 'drone' (value 3)"),
    ],
)
def test_a_file_is_refused_in_one_line_that_names_it(text: str, said: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load_scenario(path, {})
    assert str(caught.value).startswith(f"{path}: ") and said in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(st.characters(blacklist_categories=("Cs",)), max_size=60))
def test_no_text_gives_anything_but_a_mapping_or_a_refusal(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = written(tmp_path_factory.getbasetemp(), text)
    try:
        assert isinstance(read_mapping(path), dict)
    except InputError as error:
        assert str(error).startswith(f"{path}: ")


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(),
        Scenario(kappa=math.inf, sigma=0.0),
        Scenario(faults=(FaultConfig(kind="gps_loss", drone=2, begin_s=5.0, end_s=9.0),), drones=2),
        Scenario(radio=None, wind_mps=0.0, altitude_m=12.0),
    ],
)
def test_a_record_in_json_gives_the_scenario_back(scenario: Scenario) -> None:
    plain = json.loads(json.dumps(prepare(scenario, 0, 0).plain_scenario(), allow_nan=False))
    assert scenario_from(plain, "here") == scenario


def test_beside_a_set_a_default_counts_as_not_given() -> None:
    """A record says every value; the set decides some of them again, and differs from the defaults."""
    told = scenario_from({"episode_set": "village-v1", "sigma": Scenario().sigma, "drones": 2}, "here")
    assert "sigma" not in told.model_fields_set and "drones" in told.model_fields_set
    assert "sigma" in scenario_from({"episode_set": "village-v1", "sigma": 0.4}, "here").model_fields_set


@pytest.mark.parametrize("plain", [{"drones": 0}, {"kappa": "many"}, {"kappa": None}, {"what": 1}])
def test_a_record_that_holds_no_scenario_is_refused_by_its_place(plain: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"results\.jsonl:3: its scenario cannot be read"):
        scenario_from(plain, "results.jsonl:3")


def test_a_fault_counts_drones_from_zero_and_lasts_for_ever_unless_told() -> None:
    fault = make_fault(FaultConfig(kind="gps_loss", drone=3, begin_s=5.0))
    assert (fault.drone, fault.begin_s, fault.end_s) == (2, 5.0, math.inf)


CHANGES: dict[str, dict[str, Any]] = {
    "seed": {"seed": 4},
    "index": {"index": 6},
    "tier": {"tier": "sih"},
    "no victim": {"scenario": Scenario(victim_absent=True)},
    "a fault": {"scenario": Scenario(faults=(FaultConfig(kind="gps_loss", drone=1, begin_s=5.0),))},
    "its time": {"scenario": Scenario(faults=(FaultConfig(kind="gps_loss", drone=1, begin_s=6.0),))},
    "drones": {"scenario": Scenario(drones=3)},
    "pattern": {"scenario": Scenario(pattern="spiral")},
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_tells_episodes_apart_is_in_id_and_hash(change: str, episode: Episode) -> None:
    others = {name: replace(episode, **values) for name, values in CHANGES.items()}
    mine = others.pop(change)
    for other in (episode, *others.values()):
        assert mine.episode_id != other.episode_id
        assert mine.config_sha256 != other.config_sha256


@pytest.mark.parametrize("change", [{"sigma": 0.06}, {"duration_s": 99.0}, {"kappa": math.inf}, {"attention": "none"}])
def test_what_the_id_leaves_out_is_in_the_hash(change: dict[str, Any], episode: Episode) -> None:
    other = replace(episode, scenario=Scenario(**change))
    assert other.episode_id == episode.episode_id and other.config_sha256 != episode.config_sha256
    json.dumps(other.resolved(), allow_nan=False)
