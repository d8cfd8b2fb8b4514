"""Inputs that tempt an analysis into a silent number: each is refused or flagged in words, and tables count it."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from sar_analysis.render.markdown import results_markdown, tables_markdown
from sar_analysis.render.report import write_report
from sar_analysis.results.document import build_results
from sar_analysis.table import analyze
from sar_core.errors import MissingDataError
from tests.unit.sar_analysis.campaigns import bag, campaign
from tests.unit.sar_analysis.documents import plain
from tests.unit.sar_analysis.recordmaker import record

RESAMPLES = 200


def page(root: Path) -> str:
    document = build_results(analyze(root), resamples=RESAMPLES)
    return f"{results_markdown(document)}\n{tables_markdown(document)}"


def lines_of(text: str, title: str) -> str:
    return text.partition(f"## {title}")[2].partition("\n## ")[0]


def test_one_episode(tmp_path: Path) -> None:
    bag(tmp_path)
    text = page(tmp_path)
    assert "One seed: everything here holds for that seed only, and no interval over seeds can be given." in text
    assert "c01: refused: 1 seed cannot carry an interval over seeds; at least 2 are needed." in text
    assert "refused" in lines_of(text, "IQM (new seeds, these episodes)")
    assert "0 of 1: 0.0 % [0.0, 100.0]" in text, "one layout says nothing about others"


def test_all_equal_is_not_called_certain(tmp_path: Path) -> None:
    text = lines_of(page(campaign(tmp_path)), "IQM (new seeds, these episodes)")
    assert "the interval has no width because nothing varied, not because the value is certain" in text


def test_zeros_keep_an_interval(tmp_path: Path) -> None:
    text = page(campaign(tmp_path))
    assert "0 of 4: 0.0 % [0.0, 84.2]" in lines_of(text, "False alarms and collisions")
    assert "not reached (0 of 4)" in lines_of(text, "Times")


def test_nan_in_a_record_is_named_and_left_out(tmp_path: Path) -> None:
    lines = [record(), record(seed=2, coverage_240s=math.nan)]
    (tmp_path / "r.jsonl").write_text("\n".join(lines))
    document = build_results(analyze(tmp_path / "r.jsonl"), resamples=RESAMPLES)
    result = plain(document.result)
    assert (result["counts"]["episodes"], result["counts"]["unreadable"]) == (1, 1)
    assert any("r.jsonl:2" in text and "NaN is no number" in text for text in result["warnings"])
    assert "NaN" not in results_markdown(document).partition("## What does not count")[0]
    whys = {item["why"] for c in result["conditions"] for item in c["not_computed"]}
    assert "needs bags; these are records" in whys


def test_a_seed_that_lacks_an_episode_costs_the_episode_not_the_truth(tmp_path: Path) -> None:
    campaign(tmp_path, seeds=2, episodes=2)
    bag(tmp_path, 2, 0)
    text = page(tmp_path)
    assert "missing: c01 was not flown by every seed: seed 2 episode 1" in text
    assert (
        "1 of 2 episodes left out: no value for every seed" in lines_of(text, "IQM (new seeds, these episodes)").lower()
    )


def test_another_schema_version_is_counted_not_read(tmp_path: Path) -> None:
    campaign(tmp_path)
    bag(tmp_path, 5, schema_version="9")
    result = plain(build_results(analyze(tmp_path), resamples=RESAMPLES).result)
    assert (result["counts"]["episodes"], result["counts"]["schema_version"]) == (4, 1)
    assert any("schema_version is 9" in text for text in result["warnings"])


def test_duplicates_count_once_and_differences_shout(tmp_path: Path) -> None:
    campaign(tmp_path / "a")
    bag(tmp_path / "b", 0, 0)
    bag(tmp_path / "b", 1, 1, speed=4.0)
    result = plain(build_results(analyze(tmp_path), resamples=RESAMPLES).result)
    assert (result["counts"]["episodes"], result["counts"]["duplicates"]) == (4, 2)
    said = "\n".join(result["warnings"])
    assert "b/0-0: the same episode as a/0-0, with equal values; counted once" in said
    assert "b/1-1: the same episode as a/1-1, but DIFFERENT in" in said


def test_invalid_missions_are_counted_in_every_table(tmp_path: Path) -> None:
    campaign(tmp_path)
    bag(tmp_path, 2, 0, status={"valid": False, "invalid_reason": "takeoff_timeout"})
    text = page(tmp_path)
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    tables = [part for part in sections if part.count("| --- |") and "paper-to-paper" not in part]
    assert len(tables) >= 9
    for part in tables:
        assert "4 valid and 1 invalid missions" in part, part
    assert "1 of 5: 1 takeoff_timeout" in lines_of(text, "Invalid missions")
    assert "| c01 embedded | 4 | 1 |" in lines_of(text, "False alarms and collisions")
    assert "| c01 embedded | 0 | 1 | 2 |" in lines_of(text, "Each seed")


def test_all_invalid_gives_no_figure_at_all(tmp_path: Path) -> None:
    campaign(tmp_path, status={"valid": False, "invalid_reason": "interrupted"})
    text = page(tmp_path)
    assert "No mission is valid: there is no figure to give." in text
    first = lines_of(text, "In ten seconds")
    assert "| present | 0 | 4 |" in first
    assert first.count("no valid mission") == 10
    assert "%" not in first.partition("Stage 2 (embedded), seeds")[0].partition("---")[2]
    assert "4 of 4: 4 interrupted" in lines_of(text, "Invalid missions")


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with pytest.raises(MissingDataError, match=r"neither a bag nor a \.jsonl file"):
        write_report(tmp_path / "runs", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_corrupt_bag_among_good_ones_is_named_and_the_others_count(tmp_path: Path) -> None:
    campaign(tmp_path)
    file = next(bag(tmp_path, 3, 0).glob("*.mcap"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    result = plain(build_results(analyze(tmp_path), resamples=RESAMPLES).result)
    assert (result["counts"]["valid"], result["counts"]["unreadable"]) == (4, 1)
    assert any(text.startswith("unreadable: 3-0/") for text in result["warnings"])


def test_only_corrupt_bags_is_missing_data(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "metadata.yaml").write_text("x")
    with pytest.raises(MissingDataError, match=r"no episode can be read: unreadable: x: no \.mcap file inside"):
        build_results(analyze(tmp_path))
