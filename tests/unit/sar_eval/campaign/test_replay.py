"""A mission found by its id and prepared as it was flown; what two flights differ in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sar_core.errors import InputError, MissingDataError
from sar_eval.campaign.replay import differences, find
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare


@pytest.fixture(scope="module")
def episode() -> Episode:
    return prepare(Scenario(drones=2, episode_set="village-v2", world="village"), 3, 7)


def result(flown: Episode, **changes: Any) -> dict[str, Any]:
    told = {"episode_id": flown.episode_id, "seed": 3, "episode": 7, "scenario": flown.plain_scenario()}
    return told | changes


def written(folder: Path, *rows: Any) -> Path:
    path = folder / "results.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_result_or_a_record_gives_the_very_episode(wrapped: bool, episode: Episode, tmp_path: Path) -> None:
    row = result(episode, coverage=0.5)
    path = written(tmp_path, result(episode, episode_id="other"), "", {"result": row, "run": {}} if wrapped else row)
    found = find(path, episode.episode_id)
    assert found.result["coverage"] == 0.5
    assert (found.episode.episode_id, found.episode.config_sha256) == (episode.episode_id, episode.config_sha256)


def test_an_id_that_is_not_there_is_told_with_some_that_are(episode: Episode, tmp_path: Path) -> None:
    path = written(tmp_path, *(result(episode, episode_id=f"e{k}") for k in range(5)))
    with pytest.raises(MissingDataError, match=r"no episode 'mine' among 5 results \(e0, e1, e2 \.\.\.\)"):
        find(path, "mine")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scenario": None}, r"results\.jsonl:1: the result of .* carries no scenario"),
        ({"scenario": {"drones": 0}}, r"results\.jsonl:1: its scenario cannot be read"),
        ({"seed": "3"}, r"results\.jsonl:1: the result of .* names no seed and episode"),
        ({"episode": None}, r"results\.jsonl:1: the result of .* names no seed and episode"),
    ],
)
def test_a_result_that_cannot_be_flown_again_is_refused_by_its_line(
    changes: dict[str, Any], said: str, episode: Episode, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        find(written(tmp_path, result(episode, **changes)), episode.episode_id)


@pytest.mark.parametrize(
    ("line", "said"), [("{", "not a line of JSON"), ("[1]", "found list"), ("[" * 99_999, "not a")]
)
def test_a_line_that_holds_no_result_is_refused_by_its_number(line: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"results\.jsonl:2: .*{said}"):
        find(written(tmp_path, {"episode_id": "a"}, line), "b")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.jsonl: cannot read results"):
        find(tmp_path / "none.jsonl", "a")


def test_two_results_differ_in_what_json_keeps_apart() -> None:
    before = {"coverage": 0.5, "places": [1, 2], "version": "1", "gone": 1}
    assert differences(before, {"coverage": 0.5, "places": (1, 2), "version": "2", "gone": 1}) == []
    assert differences(before, {"coverage": 0.5000000001, "places": (1, 2), "more": 3}) == ["coverage", "gone", "more"]
