"""The launch files under ROS 2's own launch: each case is a folder with what is launched and its tester.

Left out where ROS 2 has no launch. The same without: tests/unit/sar_eval/ros/test_launchargs.py (what is flown, flown
again, refused) and tests/graph (flights, ends, stops).
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CASES = sorted(file.parent.name for file in HERE.glob("*/case.launch.py"))
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
TIMEOUT_S = 3600.0


def test_every_case_of_the_contract_is_there() -> None:
    ends = ["compiling", "crash", "interrupt", "starting", "stuck"]
    assert sorted(["bare", "mission", "neighbours", "refusal", "resume", *ends]) == CASES
    assert all((HERE / case / "tester.py").is_file() for case in CASES)


@pytest.mark.parametrize("case", CASES)
def test_case(case: str, tmp_path: Path) -> None:
    paths = [str(HERE), str(HERE / case), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SCENE_FOLDER": str(tmp_path)}
    command = [sys.executable, "-m", "launch_testing.launch_test", str(HERE / case / "case.launch.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
