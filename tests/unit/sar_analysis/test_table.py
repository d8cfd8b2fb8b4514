"""Tables of many episodes: what is wrong with some never hides, and never spoils the others."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from sar_analysis.table import analyze, find_bags
from sar_core.errors import MissingDataError
from tests.unit.sar_analysis.bagmaker import Made, straight
from tests.unit.sar_analysis.recordmaker import record


def bag(folder: Path, seed: int = 0, speed: float = 8.0, **more: object) -> Path:
    path = straight(4.0, np.array([[2.5, 52.5, 30.0]]), np.array([[speed, 0.0, 0.0]]))
    info = {"seed": seed, "episode_id": f"s{seed}", "config_sha256": f"c{seed}"}
    return Made(path, 1.0, 3.0, info=info, **more).write(folder)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Six good ones, one of them INVALID, and one of everything else."""
    root = tmp_path / "runs"
    for seed in range(5):
        bag(root / f"deep{seed % 2}" / f"good{seed}", seed)
    bag(root / "spoilt", 5, status={"valid": False, "invalid_reason": "interrupted"})
    bag(root / "z_again", 0)
    bag(root / "z_other", 1, speed=4.0)
    bag(root / "foreign", 6, schema_version="9")
    file = next(bag(root / "corrupt", 7).glob("*.mcap"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    (root / "cut.partial").mkdir()
    (root / "hollow").mkdir()
    (root / "hollow" / "metadata.yaml").write_text("x")
    return root


@pytest.mark.parametrize("workers", [1, 2])
def test_everything_is_counted_and_named(runs: Path, workers: int) -> None:
    table = analyze(runs, workers)
    assert [e.seed for e in table.episodes] == [0, 1, 2, 3, 4, 5]
    assert table.counts() == {
        "episodes": 6,
        "invalid": 1,
        "duplicate": 2,
        "schema_version": 1,
        "unfinished": 1,
        "unreadable": 2,
    }
    said = "\n".join(table.warnings())
    for words in (
        "s5 (interrupted)",
        "equal values",
        "DIFFERENT in",
        "schema_version is 9",
        "checksum is wrong",
        "cut",
    ):
        assert words in said
    assert len(table.valid) == 5
    assert {v["seed"] for v in table.victims()} == set()


def test_the_order_of_processes_does_not_matter(runs: Path) -> None:
    assert analyze(runs, 1) == analyze(runs, 2)


def test_a_repeated_episode_counts_once_and_the_valid_one_counts(tmp_path: Path) -> None:
    bag(tmp_path / "a", 1, status={"valid": False, "invalid_reason": "interrupted"})
    bag(tmp_path / "b", 1)
    table = analyze(tmp_path)
    assert [e.valid for e in table.episodes] == [True]
    assert table.problems[0].where.endswith("/a")
    assert "valid" in table.problems[0].reason


def test_mixtures_are_named(tmp_path: Path) -> None:
    bag(tmp_path / "a", 1)
    bag(tmp_path / "b", 2, config={"episode_set": 2})
    path = straight(4.0, np.zeros((1, 3)), np.ones((1, 3)))
    Made(path, 1.0, 3.0, info={"tier": "sih", "world_sha256": "other"}).write(tmp_path / "c")
    said = "\n".join(analyze(tmp_path).warnings())
    assert "2 tiers in one table: embedded, sih" in said
    assert "2 episode sets in one table: 1, 2" in said
    assert "2 different worlds are all called field" in said


def test_csv_holds_every_row(runs: Path, tmp_path: Path) -> None:
    table = analyze(runs)
    with open(table.to_csv(tmp_path / "t.csv"), encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["coverage"]) for row in rows] == [e.coverage for e in table.episodes]
    assert rows[5]["invalid_reason"] == "interrupted"
    assert rows[0]["time_to_95_s"] == ""
    assert set(table.columns()) == set(rows[0])


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="neither a bag nor"):
        analyze(tmp_path)
    with pytest.raises(MissingDataError, match="no such folder"):
        analyze(tmp_path / "nowhere")
    (tmp_path / "r.jsonl").write_text("\n")
    with pytest.raises(MissingDataError, match="no episode records"):
        analyze(tmp_path / "r.jsonl")


def test_bad_records_are_problems_too(tmp_path: Path) -> None:
    lines = ["no json", "[1]", json.dumps({"schema_version": 7}), json.dumps({"schema_version": 1, "result": {}})]
    (tmp_path / "r.jsonl").write_text("\n".join(lines))
    table = analyze(tmp_path)
    assert table.counts() == {"episodes": 0, "invalid": 0, "schema_version": 1, "unreadable": 3}
    assert "r.jsonl:3" in table.problems[2].where


def test_a_bag_is_found_once(runs: Path) -> None:
    assert len(find_bags(runs)) == len(set(find_bags(runs))) == 12
    assert find_bags(runs / "spoilt") == [runs / "spoilt"]


def test_bags_and_the_records_of_what_has_no_bag_are_one_table(tmp_path: Path) -> None:
    """As a campaign leaves them that records only missions with events."""
    known = analyze(bag(tmp_path / "bags" / "one", 0)).episodes[0]
    identity = {"tier": known.tier, "config_sha256": known.config_sha256, "episode": known.episode}
    lines = [record(**identity, seed=0, coverage_240s=0.9), record(**identity, seed=1, coverage_240s=0.9)]
    (tmp_path / "episodes.jsonl").write_text("\n".join(lines))
    table = analyze(tmp_path)
    assert [(e.seed, e.coverage_240s == 0.9) for e in table.episodes] == [(0, False), (1, True)]
    assert table.problems == () and list(table.bags) == [known.key]
