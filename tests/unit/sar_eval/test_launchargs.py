from __future__ import annotations

import json
from pathlib import Path

import pytest

from sar_core.errors import InputError
from sar_eval.launchargs import EPISODE, MEDIAN_SEEDS, NOISE_SWEEP, Argument, flights, number, truth

PROMISED = {
    *("world", "backend", "num_drones", "sigma", "kappa", "bag_dir", "headless", "rviz", "foxglove", "log_level"),
    *("speed_factor", "use_sim_time", "pattern", "episode", "duration_s"),
}


def given(arguments: tuple[Argument, ...], **values: str) -> dict[str, str]:
    """As launch hands them over: all of them, as text."""
    defaults = {argument.name: argument.default for argument in arguments}
    assert set(values) <= set(defaults)
    return {**defaults, **values}


@pytest.mark.parametrize(
    ("arguments", "more"), [(EPISODE, {"seed"}), (MEDIAN_SEEDS, {"seeds_file"}), (NOISE_SWEEP, {"seed", "seeds_file"})]
)
def test_promised_arguments_are_there_once_and_described(arguments: tuple[Argument, ...], more: set[str]) -> None:
    names = [argument.name for argument in arguments]
    assert len(names) == len(set(names))
    assert set(names) >= PROMISED | more
    assert all(argument.description.endswith(".") for argument in arguments)
    assert all(argument.default in argument.choices for argument in arguments if argument.choices)


def test_defaults_fly_the_default_scenario() -> None:
    (flight,) = flights(given(EPISODE))
    assert (flight.episode.seed, flight.episode.index) == (0, 0)
    assert flight.bag == Path("runs") / flight.episode.episode_id
    assert flight.record == Path("runs") / f"{flight.episode.episode_id}.json"


def test_arguments_reach_the_scenario() -> None:
    values = {
        "world": "forest",
        "num_drones": "3",
        "duration_s": "30",
        "sigma": "0.2",
        "kappa": "inf",
        "pattern": "spiral",
    }
    (flight,) = flights(given(EPISODE, seed="7", episode="4", bag_dir="there", **values))
    scenario = flight.episode.scenario
    assert (scenario.world, scenario.drones, scenario.duration_s, scenario.pattern) == ("forest", 3, 30.0, "spiral")
    assert (scenario.sigma, scenario.kappa) == (0.2, float("inf"))
    assert (flight.episode.seed, flight.episode.index, flight.bag.parent) == (7, 4, Path("there"))


def test_median_seeds_fly_every_episode(tmp_path: Path) -> None:
    rows = [
        {"policy": "p", "seed": seed, "episode": episode, "return": value + episode}
        for seed, value in enumerate((50.0, 10.0, 30.0, 31.0, 90.0))
        for episode in range(4)
    ]
    file = tmp_path / "stage1.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flown = [
        (f.episode.seed, f.episode.index) for f in flights(given(MEDIAN_SEEDS, seeds_file=str(file), episode="0-1"))
    ]
    assert flown == [(seed, index) for seed in (0, 2, 3) for index in (0, 1)]


def test_median_seeds_need_results() -> None:
    with pytest.raises(InputError, match="seeds_file is empty"):
        flights(given(MEDIAN_SEEDS))


def test_a_sweep_has_a_folder_for_each_noise() -> None:
    planned = flights(given(NOISE_SWEEP, sigma="0.0,0.4", kappa="inf,1", seed="1,4", bag_dir="s"))
    assert len(planned) == 8
    assert len({flight.bag for flight in planned}) == 8
    assert [str(f.bag.parent) for f in planned[::2]] == [
        f"s/sigma_{sigma}-kappa_{kappa}" for sigma in ("0", "0.4") for kappa in ("inf", "1")
    ]
    assert {(f.episode.scenario.sigma, f.episode.scenario.kappa) for f in planned[2:4]} == {(0.0, 1.0)}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("num_drones", "two", "num_drones = 'two': give a whole number"),
        ("duration_s", "long", "duration_s = 'long': give a number"),
        ("sigma", "0.1;0.2", "sigma = '0.1;0.2': give numbers"),
        ("seed", "x", "seed = 'x'"),
        ("world", "atlantis", "atlantis"),
    ],
)
def test_a_wrong_value_is_named(name: str, value: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        flights(given(EPISODE, **{name: value}))


def test_numbers_and_switches() -> None:
    assert number({"speed_factor": "1.5"}, "speed_factor") == 1.5
    assert truth({"rviz": "true"}, "rviz") and not truth({"rviz": "false"}, "rviz")
    with pytest.raises(InputError, match="rviz = 'yes': allowed: true, false"):
        truth({"rviz": "yes"}, "rviz")
