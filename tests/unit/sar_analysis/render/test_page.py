"""The page on metrics: its example runs as printed, and it explains every column there is."""

import re
from pathlib import Path

import numpy as np
import pytest

from sar_analysis.table import analyze
from tests.unit.sar_analysis.bagmaker import Made, straight

PAGE = Path(__file__).parents[4] / "docs" / "metrics.md"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = straight(4.0, np.array([[2.5, 52.5, 30.0]]), np.array([[8.0, 0.0, 0.0]]))
    Made(path, 1.0, 3.0, devices=[(7, 0, (20.0, 50.0, 0.5))]).write(tmp_path / "runs" / "one")
    return tmp_path


def test_three_lines_give_a_table(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs)
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    *lines, last = [line for line in example.splitlines() if line.strip()]
    assert len(lines) + 1 == 3
    names: dict[str, object] = {}
    exec("\n".join(lines), names)
    assert eval(last, names) == [analyze(runs).episodes[0].coverage_240s]


def test_every_column_is_explained_and_none_is_invented(runs: Path) -> None:
    (section,) = re.findall(r"## What the columns mean\n(.*?)\n## ", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    table = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    explained = [name for cell in table for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(explained) == sorted(analyze(runs).columns())
