"""How to do it again: the campaign's command and machine from its manifest, and no folder of this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from sar_analysis.results.card import campaign, host

MANIFEST: dict[str, Any] = {
    "identity": "ab" * 32,
    "configuration": {
        "worlds": ["village"],
        "patterns": ["spiral", "pheromone"],
        "victims": "both",
        "seeds": [1, 3, 6],
        "episode_set": "v1",
        "scenario": {"name": "default"},
    },
    "host": {"processor": "a CPU", "cores": 2, "platform": "Linux", "python": "3.11.7", "hostname": "private"},
}


def write(folder: Path, episodes: list[str]) -> Path:
    (folder / "manifest.json").write_text(json.dumps(MANIFEST | {"episodes": episodes}))
    return folder


@pytest.mark.parametrize(("episodes", "told"), [((0, 1, 2), "0-2"), ((3, 5), "3,5"), ((7,), "7"), (range(50), "0-49")])
def test_a_campaigns_command_is_told_by_its_manifest(tmp_path: Path, episodes: Iterable[int], told: str) -> None:
    names = [f"village-v1-spiral-4x-embedded-s00{s}-e{k:03d}" for k in episodes for s in (1, 3, 6)]
    found = campaign(write(tmp_path, [*names, *(f"{name}-absent" for name in names)]))
    assert found is not None
    assert found.command == (
        f"sar-eval stage2 --seeds 1,3,6 --episodes {told} --world village --pattern spiral --pattern pheromone "
        "--victims both --episode-set v1"
    )
    assert found.machine == "a CPU, 2 cores, Linux" and "private" not in str(found)
    assert found.commit is None
    assert campaign(tmp_path / "episodes.jsonl") == found, "a file's manifest lies beside it"


def test_published_results_know_the_whole_command_and_the_commit(tmp_path: Path) -> None:
    host = {**MANIFEST["host"], "command": "sar-eval eval --full", "commit": "cd" * 20}
    episodes = ["village-v1-spiral-4x-embedded-s001-e000"]
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST | {"host": host, "episodes": episodes}))
    found = campaign(tmp_path)
    assert found is not None
    assert (found.command, found.commit) == ("sar-eval eval --full", "cd" * 20)


def test_without_a_manifest_nothing_is_made_up(tmp_path: Path) -> None:
    assert campaign(tmp_path) is None
    (tmp_path / "manifest.json").write_text("[1, 2]")
    assert campaign(tmp_path) is None
    (tmp_path / "manifest.json").write_text("{")
    assert campaign(tmp_path) is None
    assert campaign(write(tmp_path, ["a mission of another naming"])) is None


def test_the_command_names_no_folder_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/bin/sar-eval", "report", "/home/me/runs", "--out", "results/study"])
    assert host().command == "sar-eval report runs --out results/study"


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("__main__.py", "python -m pack"),
        ("tool.py", "python -m pack.tool"),
        ("room/tool.py", "python -m pack.room.tool"),
        ("../tool.py", "tool.py"),
    ],
)
def test_a_module_is_told_as_it_is_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str, told: str
) -> None:
    package = tmp_path / "pack"
    (package / "room").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "room" / "__init__.py").touch()
    monkeypatch.setattr(sys, "argv", [str((package / file).resolve()), "runs"])
    assert host().command == f"{told} runs"
