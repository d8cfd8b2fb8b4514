from __future__ import annotations

import json
from pathlib import Path

import pytest

from sar_core.errors import InputError
from sar_eval.ros.launchargs import (
    EPISODE,
    MEDIAN_SEEDS,
    NOISE_SWEEP,
    Argument,
    LaunchedFlight,
    check_names,
    check_values,
    clear,
    given_words,
    number,
    plan_tour,
    stage1_command,
    told_time,
    truth,
)
from sar_eval.scenario.model import Scenario
from sar_swarm.piloting.patternlist import STANDARD

PROMISED = {
    *("world", "backend", "num_drones", "sigma", "kappa", "bag_dir", "rviz", "foxglove", "log_level", "sim_speed"),
    *("speed_factor", "use_sim_time", "pattern", "episode", "duration_s", "composed", "record_csi"),
}


def given(arguments: tuple[Argument, ...], **values: str) -> dict[str, str]:
    """As launch hands them over: all of them, as text."""
    defaults = {argument.name: argument.default for argument in arguments}
    assert set(values) <= set(defaults)
    return {**defaults, **values}


def stage1_file(folder: Path, **more: object) -> Path:
    """Five seeds of which 0, 2 and 3 are the median ones, two policies."""
    rows = [
        {"policy": policy, "seed": seed, "episode": episode, "return": value + episode, **more}
        for policy in more.pop("policies", ("spiral", "pheromone"))  # type: ignore[attr-defined]
        for seed, value in enumerate((50.0, 10.0, 30.0, 31.0, 90.0))
        for episode in range(4)
    ]
    file = folder / "stage1.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def flown(flight: LaunchedFlight, valid: bool = True, **result: object) -> None:
    """Leave what a flight leaves."""
    flight.bag.mkdir(parents=True)
    told = {"config_sha256": flight.episode.config_sha256, "valid": valid, **result}
    flight.record.write_text(json.dumps({"result": told, "run": {"bag": str(flight.bag)}}))


@pytest.mark.parametrize(
    ("arguments", "more"), [(EPISODE, {"seed"}), (MEDIAN_SEEDS, {"seeds_file"}), (NOISE_SWEEP, {"seed", "seeds_file"})]
)
def test_promised_arguments_are_there_once_and_described(arguments: tuple[Argument, ...], more: set[str]) -> None:
    names = [argument.name for argument in arguments]
    assert len(names) == len(set(names))
    assert set(names) >= PROMISED | more
    assert "headless" not in names, "nothing reads it"
    assert all(argument.description.endswith(".") for argument in arguments)
    check_values(arguments, given(arguments))


def test_every_launch_file_has_a_folder_of_its_own() -> None:
    folders = [given(arguments)["bag_dir"] for arguments in (EPISODE, MEDIAN_SEEDS, NOISE_SWEEP)]
    assert folders == ["runs/episode", "runs/median_seeds", "runs/noise_sweep"]


def test_a_bare_episode_flies_the_default_scenario(tmp_path: Path) -> None:
    tour = plan_tour(given(EPISODE, bag_dir=str(tmp_path / "e")))
    (flight,) = tour.flights
    assert (flight.episode.seed, flight.episode.index) == (0, 0)
    assert flight.episode.scenario == Scenario()
    assert flight.bag == tmp_path / "e" / flight.episode.episode_id
    assert flight.record == tmp_path / "e" / f"{flight.episode.episode_id}.json"
    assert stage1_command(given(EPISODE)) is None


def test_a_bare_episode_given_again_takes_a_folder_of_its_own_and_says_which(tmp_path: Path) -> None:
    values = given(EPISODE, bag_dir=str(tmp_path / "e"))
    for count in (1, 2, 3):
        tour = plan_tour(values)
        (flight,) = tour.left
        assert flight.bag.parent.name == ("e" if count == 1 else f"e-{count}")
        assert any(f"goes to {flight.bag.parent}" in note for note in tour.notes) == (count > 1)
        flown(flight, valid=count != 2)


def test_bare_median_seeds_make_stage_1_and_fly_its_seeds_in_the_village(tmp_path: Path) -> None:
    values = given(MEDIAN_SEEDS, bag_dir=str(tmp_path))
    command = stage1_command(values)
    assert command is not None
    file, words = command
    assert file == tmp_path / "stage1-village-v2.jsonl"
    assert words == f"stage1 --world village --episode-set village-v2 --seeds 0-9 --out {file}".split()
    made = stage1_file(tmp_path, world="village", episode_set="village-v2", policies=STANDARD)
    tour = plan_tour(values, made=made)
    assert [(f.episode.seed, f.episode.index) for f in tour.left] == [(s, e) for s in (0, 2, 3) for e in (0, 1)]
    assert {f.episode.scenario.pattern for f in tour.left} == {Scenario().pattern}
    assert {(f.episode.world.name, f.episode.episode_set) for f in tour.left} == {("village", "village-v2")}
    assert tour.stage1 == made
    assert tour.notes == (
        f"{made}: the median seeds are 0, 2, 3",
        "village-v2: 3 seeds x 2 episodes x 1 pattern; 6 flights to fly, about 4 min",
    )


def test_stage_1_is_made_only_where_it_can_be() -> None:
    with pytest.raises(InputError, match="world = 'forest': Stage 1 has statistics of sensing for village only"):
        stage1_command(given(MEDIAN_SEEDS, world="forest"))
    with pytest.raises(InputError, match="atlantis"):
        stage1_command(given(MEDIAN_SEEDS, world="atlantis"))


def test_a_stage_1_file_of_another_world_is_flown_there_with_its_patterns(tmp_path: Path) -> None:
    file = stage1_file(tmp_path, world="forest", episode_set="forest-v2")
    values = given(MEDIAN_SEEDS, seeds_file=str(file), bag_dir=str(tmp_path))
    assert stage1_command(values) is None
    tour = plan_tour(values)
    assert {(f.episode.world.name, f.episode.episode_set) for f in tour.left} == {("forest", "forest-v2")}
    assert list(dict.fromkeys(f.episode.scenario.pattern for f in tour.left)) == ["spiral", "pheromone"]
    assert len(tour.left) == 12
    assert tour.stage1 == file


def test_what_is_given_wins_over_the_file_and_a_contradiction_is_said(tmp_path: Path) -> None:
    file = stage1_file(tmp_path, world="forest", episode_set="forest-v2")
    values = given(MEDIAN_SEEDS, seeds_file=str(file), bag_dir=str(tmp_path), world="village", pattern="levy_flight")
    tour = plan_tour(values)
    assert {(f.episode.world.name, f.episode.episode_set) for f in tour.left} == {("village", "village-v2")}
    assert {f.episode.scenario.pattern for f in tour.left} == {"levy_flight"}
    told = " | ".join(tour.notes)
    assert "world = 'village' is flown, as asked, but" in told and "was flown in 'forest'" in told
    assert "pattern = 'levy_flight' is flown" in told
    assert tour.stage1 is None, "another set's Stage 1 says nothing of these flights"


def test_a_scenario_file_wins_over_stage_1_too(tmp_path: Path) -> None:
    config = tmp_path / "mine.yaml"
    config.write_text("world: open_field\ndrones: 2\n")
    file = stage1_file(tmp_path, world="forest")
    tour = plan_tour(given(MEDIAN_SEEDS, seeds_file=str(file), config=str(config), bag_dir=str(tmp_path)))
    assert {(f.episode.world.name, f.episode.scenario.drones) for f in tour.left} == {("open_field", 2)}


def test_a_file_from_elsewhere_need_not_say_what_it_flew(tmp_path: Path) -> None:
    file = stage1_file(tmp_path, policies=("mine",))
    tour = plan_tour(given(MEDIAN_SEEDS, seeds_file=str(file), bag_dir=str(tmp_path)))
    assert {f.episode.scenario.pattern for f in tour.left} == {Scenario().pattern}
    assert any("only their names are known: mine" in note for note in tour.notes)


def test_a_file_of_two_worlds_is_refused(tmp_path: Path) -> None:
    file = stage1_file(tmp_path, world="forest")
    text = file.read_text()
    file.write_text(text.replace('"forest"', '"village"', 1))
    with pytest.raises(InputError, match="world = forest, village: one file for one world"):
        plan_tour(given(MEDIAN_SEEDS, seeds_file=str(file), bag_dir=str(tmp_path)))


def test_given_again_only_what_is_missing_is_flown(tmp_path: Path) -> None:
    values = given(MEDIAN_SEEDS, seeds_file=str(stage1_file(tmp_path)), bag_dir=str(tmp_path), pattern="spiral")
    first = plan_tour(values).left
    flown(first[0])
    flown(first[1], valid=False)
    flown(first[2])
    first[2].bag.rmdir()
    tour = plan_tour(values)
    assert [r.result["config_sha256"] for r in tour.flown] == [first[0].episode.config_sha256]
    assert [f.bag for f in tour.left] == [f.bag for f in first[1:]]
    assert tour.notes[-1].startswith("open_field: 3 seeds x 2 episodes x 1 pattern; 1 of 6 flown already; 5 flights to")
    clear(first[1])
    assert not first[1].bag.exists() and not first[1].record.exists()
    for flight in tour.left:
        clear(flight)
        flown(flight)
    assert plan_tour(values).left == ()
    assert plan_tour(values).notes[-1].endswith("6 of 6 flown already; nothing left to fly")


def test_what_another_configuration_or_nobody_left_is_not_overwritten(tmp_path: Path) -> None:
    values = given(NOISE_SWEEP, sigma="0.1", kappa="4", bag_dir=str(tmp_path))
    (flight,) = plan_tour(values).left
    flown(flight)
    with pytest.raises(InputError, match=r"was flown with another configuration .* give another bag_dir"):
        plan_tour({**values, "duration_s": "30"})
    flight.record.unlink()
    with pytest.raises(InputError, match="no record beside it says what was flown"):
        plan_tour(values)
    flight.record.write_text("{")
    with pytest.raises(InputError, match="not the record of an episode"):
        plan_tour(values)


def test_arguments_reach_the_scenario() -> None:
    values = {
        "world": "forest",
        "num_drones": "3",
        "duration_s": "30",
        "sigma": "0.2",
        "kappa": "inf",
        "pattern": "spiral",
    }
    (flight,) = plan_tour(given(EPISODE, seed="7", episode="4", bag_dir="there", **values)).flights
    scenario = flight.episode.scenario
    assert (scenario.world, scenario.drones, scenario.duration_s, scenario.pattern) == ("forest", 3, 30.0, "spiral")
    assert (scenario.sigma, scenario.kappa) == (0.2, float("inf"))
    assert (flight.episode.seed, flight.episode.index, flight.bag.parent) == (7, 4, Path("there"))


def test_a_sweep_has_a_folder_for_each_noise(tmp_path: Path) -> None:
    tour = plan_tour(given(NOISE_SWEEP, sigma="0.0,0.4", kappa="inf,1", seed="1,4", bag_dir="s"))
    planned = tour.flights
    assert len(planned) == 8
    assert len({flight.bag for flight in planned}) == 8
    assert [str(f.bag.parent) for f in planned[::2]] == [
        f"s/sigma_{sigma}-kappa_{kappa}" for sigma in ("0", "0.4") for kappa in ("inf", "1")
    ]
    assert {(f.episode.scenario.sigma, f.episode.scenario.kappa) for f in planned[2:4]} == {(0.0, 1.0)}
    assert "2 seeds x 1 episode x 1 pattern x 4 noise levels" in tour.notes[-1]


def test_a_sweep_takes_seeds_and_world_of_a_stage_1_file_but_not_its_noise(tmp_path: Path) -> None:
    file = stage1_file(tmp_path, world="forest", episode_set="forest-v2")
    tour = plan_tour(given(NOISE_SWEEP, sigma="0.1", kappa="4", seeds_file=str(file), bag_dir=str(tmp_path)))
    assert [f.episode.seed for f in tour.left] == [0, 2, 3]
    assert {(f.episode.world.name, f.episode.scenario.episode_set) for f in tour.left} == {("forest", None)}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("num_drones", "two", "num_drones = 'two': give a whole number"),
        ("num_drones", "99", "num_drones = 99: allowed are 1 to 64"),
        ("seed", "x", "seed = 'x'"),
        ("speed_factor", "-1", "speed_factor = -1: allowed are 0 to 1000"),
        ("speed_factor", "nan", "speed_factor = nan: allowed are 0 to 1000"),
        ("sim_speed", "0", "sim_speed = 0: allowed are 0.1 to 8"),
        ("lockstep_timeout_s", "0", "lockstep_timeout_s = 0: allowed are 0.1 to 600"),
        ("ready_timeout_s", "soon", "ready_timeout_s = 'soon': give a number"),
        ("domain_id", "500", "domain_id = 500: allowed are 0 to 232"),
        ("domain_id", "my", "domain_id = 'my': give auto, or a number"),
        ("rviz", "yes", "rviz = 'yes': allowed: true, false"),
        ("backend", "ardupilot", "backend = 'ardupilot': allowed: auto, embedded"),
        ("pattern", "zigzag", "pattern = 'zigzag': allowed: partitioned_lawnmower"),
        ("log_level", "loud", "log_level = 'loud': allowed: debug"),
    ],
)
def test_a_wrong_value_is_refused_by_name(name: str, value: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_values(EPISODE, given(EPISODE, **{name: value}))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("duration_s", "long", "duration_s = 'long': give a number"),
        ("duration_s", "-3", "duration_s = -3"),
        ("sigma", "0.1;0.2", "sigma = '0.1;0.2': give numbers"),
        ("world", "atlantis", "atlantis"),
    ],
)
def test_what_the_scenario_refuses_is_named(name: str, value: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        plan_tour(given(EPISODE, **{name: value}))


def test_a_misspelt_argument_is_refused_with_the_nearest() -> None:
    check_names(EPISODE, ["seed:=3", "--show-args"])
    with pytest.raises(InputError, match=r"sedd:=3: there is no argument sedd; did you mean seed\? allowed: world"):
        check_names(EPISODE, ["sedd:=3"])
    with pytest.raises(InputError, match="there is no argument headless"):
        check_names(EPISODE, ["headless:=true"])


def test_only_what_this_launch_file_was_given_is_looked_at() -> None:
    ours = ["/opt/ros/bin/ros2", "launch", "sar_eval", "episode.launch.py", "sedd:=3"]
    assert given_words(ours, "episode.launch.py") == ["sedd:=3"]
    assert given_words(["ros2", "launch", "share/launch/episode.launch.py", "a:=b"], "episode.launch.py") == ["a:=b"]
    assert given_words(["ros2", "launch", "their", "all.launch.py", "robot:=r2"], "episode.launch.py") == []


def test_numbers_switches_and_spans() -> None:
    assert number({"speed_factor": "1.5"}, "speed_factor") == 1.5
    assert truth({"rviz": "true"}, "rviz") and not truth({"rviz": "false"}, "rviz")
    assert [told_time(s) for s in (20.0, 100.0, 8000.0)] == ["20 s", "2 min", "2 h 14 min"]
