"""Stage-1 files, ours or anyone's: what is wrong with one is said in a line that names file, line, key and value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sar_analysis.stage1.rows import read_stage1
from sar_core.errors import ContractError, MissingDataError, SarError


def rows(policies: int = 2, seeds: int = 3, episodes: int = 2) -> list[dict[str, Any]]:
    """The least a foreign file may hold."""
    return [
        {"policy": f"p{p}", "seed": s, "episode": e, "return": 10.0 * s + e - p}
        for p in range(policies)
        for s in range(seeds)
        for e in range(episodes)
    ]


def written(folder: Path, lines: list[Any]) -> Path:
    path = folder / "stage1.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def test_the_least_a_foreign_file_needs_is_read(tmp_path: Path) -> None:
    found = read_stage1(written(tmp_path, rows()))
    assert len(found) == 12
    assert found[0].episode_return == 0.0
    assert found[0].coverage_240s is None
    assert [row.key for row in found[:2]] == [("p0", 0, 0, False), ("p0", 0, 1, False)]


def test_whole_numbers_and_anything_under_extra_are_fine(tmp_path: Path) -> None:
    lines = [{**row, "return": 7, "extra": {"gdop": [1, 2]}, "schema_version": 1} for row in rows()]
    assert read_stage1(written(tmp_path, lines))[0].episode_return == 7.0


@pytest.mark.parametrize("version", [1, 2, None])
def test_rows_before_constellations_have_none(tmp_path: Path, version: int | None) -> None:
    lines = [{**row, "errors_m": [2.0], "schema_version": version} for row in rows()]
    found = read_stage1(written(tmp_path, lines))
    assert {(row.gdop, row.gdops) for row in found} == {(None, None)}


def test_the_constellations_of_issues_are_read(tmp_path: Path) -> None:
    lines = [{**row, "schema_version": 3, "errors_m": [2.0, 3.0], "gdop": 1.2, "gdops": [1.2, None]} for row in rows()]
    assert read_stage1(written(tmp_path, lines))[0].gdops == [1.2, None]


def spoilt(change: dict[str, Any], drop: str | None = None, row: int = 3) -> list[dict[str, Any]]:
    found = rows()
    found[row].update(change)
    if drop is not None:
        del found[row][drop]
    return found


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (spoilt({}, "seed"), "key 'seed' is missing; needed are policy, seed, episode and return"),
        (spoilt({}, "return"), "key 'return' is missing"),
        (spoilt({"return": float("nan")}), "return = nan: input should be a finite number"),
        (spoilt({"return": float("inf")}), "return = inf: input should be a finite number"),
        (spoilt({"return": "12"}), "return = '12'"),
        (spoilt({"return": None}), "return = None"),
        (spoilt({"return": True}), "return = True"),
        (spoilt({"seed": 1.5}), "seed = 1.5"),
        (spoilt({"seed": -1}), "seed = -1"),
        (spoilt({"policy": ""}), "policy = ''"),
        (spoilt({"coverage_240s": 1.2}), "coverage_240s = 1.2"),
        (spoilt({"cep": 1.0}), "unknown key 'cep'; put it under 'extra'; allowed: policy, seed, episode, return"),
        (spoilt({"gdops": [1.2, -1.0]}), "gdops.1 = -1.0"),
        (spoilt({"gdop": float("inf")}), "gdop = inf"),
        (spoilt({"schema_version": 4}), "schema_version = 4"),
        (spoilt({"schema_version": 2}), "schema_version = 2"),
        (spoilt({"schema_version": 1}), "schema_version = 1, but"),
        (spoilt({"episode_set_sha256": "aa"}), "one file holds one kind of result"),
        (spoilt({"stage": 2}), "stage = 2"),
        ([*rows(), rows()[4]], "policy p0, seed 2, episode 0 stands already in"),
        ([*rows()[:3], "{'policy': 1}"], "not a line of JSON"),
        ([*rows()[:3], [1, 2]], "expected an object with policy, seed, episode and return"),
    ],
)
def test_a_line_that_breaks_the_contract(tmp_path: Path, lines: list[Any], said: str) -> None:
    path = written(tmp_path, lines)
    with pytest.raises(ContractError) as caught:
        read_stage1(path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            [row for row in rows() if (row["policy"], row["seed"]) != ("p1", 2)],
            "policy p1, seed 2, episode 0 is missing",
        ),
        (rows()[:-1], "policy p1, seed 2, episode 1 is missing; every policy needs the same 3 seeds and 2 episodes"),
        ([], "holds no Stage-1 result"),
    ],
)
def test_what_should_be_there_and_is_not(tmp_path: Path, lines: list[Any], said: str) -> None:
    with pytest.raises(MissingDataError) as caught:
        read_stage1(written(tmp_path, lines))
    assert said in str(caught.value)


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(SarError, match=r"no such file of Stage-1 results; make one") as caught:
        read_stage1(tmp_path / "none.jsonl")
    assert caught.value.exit_code == 4
