"""Seeds as given, or the median ones of a Stage-1 file, and what the manifest is told of it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sar_analysis.stage1.medianseeds import choose
from sar_analysis.stage1.rows import read_stage1
from sar_core.errors import InputError, MissingDataError
from sar_eval.campaign.seedchoice import choose_seeds


@pytest.fixture
def stage1(tmp_path: Path) -> Path:
    path = tmp_path / "stage1.jsonl"
    rows = [(seed, episode, 10.0 * seed + episode) for seed in range(7) for episode in range(3)]
    line = '{{"policy": "spiral", "seed": {}, "episode": {}, "return": {}}}'
    path.write_text("\n".join(line.format(*row) for row in rows))
    return path


def test_seeds_given_alone_are_taken_as_they_are() -> None:
    assert choose_seeds((4, 1), None) == ((4, 1), None)


def test_of_a_file_the_median_seeds_are_taken_and_the_rule_is_told(stage1: Path) -> None:
    seeds, origin = choose_seeds(None, stage1)
    assert seeds == choose(read_stage1(stage1)).seeds and 3 in seeds and not {0, 6} & set(seeds)
    assert origin is not None
    assert (origin.file, origin.sha256) == (str(stage1), hashlib.sha256(stage1.read_bytes()).hexdigest())
    assert f"{len(seeds)} median seeds" in origin.rule


def test_with_both_the_file_must_have_flown_them(stage1: Path) -> None:
    seeds, origin = choose_seeds((6, 0), stage1)
    assert seeds == (6, 0) and origin is not None and origin.rule == "given"
    with pytest.raises(MissingDataError, match=r"seed 9 is not in it; it has 0, 1, 2, 3, 4, 5, 6"):
        choose_seeds((6, 9), stage1)


def test_with_neither_both_ways_are_named() -> None:
    with pytest.raises(InputError, match=r"give --seeds 1,4,7, or --stage1 FILE"):
        choose_seeds(None, None)
