"""The launch files under ROS 2's own launch, each scene a file for launch_test; left out where ROS 2 has no launch."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SCENES = sorted(file.stem for file in HERE.glob("*.py") if file.stem not in ("scene", Path(__file__).stem))
LACKING = [
    name
    for name in ("rclpy", "launch_ros", "launch_testing", "sar_msgs")
    if (spec := importlib.util.find_spec(name)) is None or spec.origin is None
]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.skipif(
        bool(LACKING),
        reason=f"{', '.join(LACKING)} missing: needs ROS 2 Jazzy installed, and ros2_ws built by colcon and sourced",
    ),
]
TIMEOUT_S = 900.0


def test_every_scene_of_the_contract_is_there() -> None:
    assert SCENES == ["crash", "interrupt", "mission", "neighbours"]


@pytest.mark.parametrize("scene", SCENES)
def test_scene(scene: str, tmp_path: Path) -> None:
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SCENE_FOLDER": str(tmp_path)}
    command = [sys.executable, "-m", "launch_testing.launch_test", str(HERE / f"{scene}.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
