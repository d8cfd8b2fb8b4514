"""The programs `stage` and `bridge`, as `ros2 run` starts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_gazebo import main
from sar_gazebo.stage import read_cast


def test_stage_writes_an_episode_and_says_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.stage(["--world", "open_field", "--drones", "2", "--out", str(tmp_path / "new" / "stage")]) == 0
    assert "2 vehicles" in capsys.readouterr().out
    assert read_cast(tmp_path / "new" / "stage" / "stage.json").models == ("uav_1", "uav_2")
    assert (tmp_path / "new" / "stage" / "stage.sdf").is_file()


def test_stage_names_what_is_wrong_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.stage(["--world", "atlantis", "--out", str(tmp_path)]) == 1
    assert "'atlantis'" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main.stage(["--world", "open_field", "--out", str(tmp_path / "file")]) == 3
    assert capsys.readouterr().err.startswith("error: ")
