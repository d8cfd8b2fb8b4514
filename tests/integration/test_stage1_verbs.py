"""Stage 1 from the command line: fly, choose seeds, and the words and exit codes when a file is not what it should."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.stage1.observations import fit, write_observations
from tests.unit.sar_eval.madeflights import made_flights

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def statistics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("statistics") / "made-v1.json"
    episode = prepare(Scenario(episode_set="village-v2"), 0, 0)
    write_observations(fit(made_flights(50, 0), episode, "made-v1"), path)
    return path


@pytest.fixture(scope="module")
def results(sar_eval: Run, statistics: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stage1") / "stage1.jsonl"
    options = ("--seeds", "0-2,5", "--episodes", "0-2", "--policy", "spiral", "--policy", "levy", "--workers", "2")
    done = sar_eval(
        "stage1", "--episode-set", "village-v2", *options, "--observations", statistics, "--out", path, "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["episodes"] == 24
    return path


def test_median_seeds_of_a_flown_file(sar_eval: Run, results: Path) -> None:
    done = sar_eval("median-seeds", results, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["seeds"]) == 3
    assert [c["seed"] for c in told["picks"][0]["candidates"]] == [0, 1, 2, 5]
    text = sar_eval("median-seeds", results, "--per-policy")
    assert "policy levy_flight" in text.stdout
    assert "do not pair" in text.stderr


def test_nothing_is_overwritten(sar_eval: Run, statistics: Path, results: Path) -> None:
    before = results.read_bytes()
    done = sar_eval("stage1", "--seeds", "0", "--observations", statistics, "--out", results)
    assert (done.returncode, results.read_bytes()) == (1, before)
    assert "exists already" in done.stderr


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (lambda rows: rows[:-1], 4, "is missing; every policy needs the same"),
        (lambda rows: [{**rows[0], "return": float("nan")}, *rows[1:]], 2, "return = nan"),
        (lambda rows: [{**rows[0], "schema_version": 4}, *rows[1:]], 2, "schema_version = 4"),
    ],
)
def test_a_file_that_is_not_whole_or_not_sound(
    sar_eval: Run,
    results: Path,
    tmp_path: Path,
    change: Callable[[list[dict[str, object]]], list[object]],
    code: int,
    said: str,
) -> None:
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    path = tmp_path / "other.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in change(rows)))
    done = sar_eval("median-seeds", path)
    assert done.returncode == code
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_seeds_that_are_no_numbers(sar_eval: Run, tmp_path: Path) -> None:
    done = sar_eval("stage1", "--seeds", "9-0", "--out", tmp_path / "a.jsonl")
    assert done.returncode == 1
    assert "the range 9-0 runs from low to high" in done.stderr


def test_episode_sets_from_the_command_line(sar_eval: Run, tmp_path: Path) -> None:
    path = tmp_path / "field.json"
    assert sar_eval("episodes", "make", "--world", "open_field", "--out", path).returncode == 0
    other = sar_eval("episodes", "make", "--world", "open_field", "--version", "3", "--out", path)
    assert other.returncode == 1
    assert "a change is a new version" in other.stderr
    path.write_text(path.read_text().replace('"kappa": 8.0', '"kappa": 9.0'))
    broken = sar_eval("episodes", "check", path)
    assert broken.returncode == 2
    assert "a set is never edited" in broken.stderr
    shown = sar_eval("episodes", "show", "village-v1", "--json")
    assert len(json.loads(shown.stdout)["layouts"]) == 10


def test_wide_sets_from_the_command_line(sar_eval: Run, tmp_path: Path) -> None:
    path = tmp_path / "field.json"
    made = sar_eval("episodes", "make", "--world", "open_field", "--wide", "--out", path)
    assert (made.returncode, "open_field_wide-v2 written" in made.stdout) == (0, True)
    assert sar_eval("episodes", "check", path).returncode == 0
    picture = tmp_path / "map.png"
    shown = sar_eval("episodes", "show", path, "--picture", picture)
    assert "200 layouts each at one of 5 levels, 200 episodes" in shown.stdout
    assert picture.stat().st_size > 10_000


def test_levels_of_a_set_are_placed_against_the_gates(sar_eval: Run) -> None:
    told = sar_eval("episodes", "levels", "village-v2", "--duration-s", "10", "--json")
    rows = json.loads(told.stdout)
    assert [row["kappa"] for row in rows] == [1e4, 8.0, 4.0, 2.0, 1.0]
    assert [row["open_share"] for row in rows[:3]] == [1.0, 1.0, 1.0] and rows[4]["open_share"] < 0.1
    assert "predict" in sar_eval("episodes", "levels", "village-v2", "--duration-s", "10").stdout
    short = sar_eval("episodes", "levels", "village-v2", "--duration-s", "1")
    assert (short.returncode, "duration_s = 1: allowed: 10 or more" in short.stderr) == (1, True)
