"""The tables of docs/ros.md are what the code says, and the page's other facts hold."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from sar_eval.ros.nodetable import topic_table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "ros.md"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "rostables.py"))


def test_the_page_is_up_to_date(script: dict[str, Any]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert script["filled"](page) == page, "run: python scripts/rostables.py docs/ros.md"


def test_a_stale_table_is_seen(script: dict[str, Any]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    stale = page.replace("| /clock | rosgraph_msgs/Clock |", "| /clock | std_msgs/Empty |")
    assert stale != page == script["filled"](stale)


def test_a_page_without_a_block_is_refused(script: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match="one block <!-- nodes"):
        script["filled"]("# nothing")


def test_the_swarm_reads_no_truth() -> None:
    heard = {wire.topic for wire in topic_table(4, csi=True) if "swarm" in wire.subscribers}
    assert not [topic for topic in heard if re.match(r"/(truth/|sim/truth|episode/markers)", topic)]


def test_every_launch_file_has_its_table_of_arguments(script: dict[str, Any]) -> None:
    files = {file.name.removesuffix(".launch.py") for file in (ROOT / "launch").glob("*.launch.py")}
    assert files == set(script["LAUNCH_FILES"])
