"""What the launch tests share: `ros2 launch` as users call it, under test, and what to wait for.

Read by launch_test, not by pytest.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import launch_testing.actions
import launch_testing.util
from launch import LaunchDescription
from launch.actions import ExecuteProcess
from launch.substitutions import FindExecutable

from sar_eval.bagcheck import check_bag
from sar_eval.nodetable import STARTED

PATIENCE_S = 400.0
SHORT = {
    "world": "village",
    "num_drones": "2",
    "duration_s": "20",
    "lockstep_timeout_s": "60",
    "ready_timeout_s": "300",
}


class Scene:
    """A launch of one episode, with a folder of its own."""

    def __init__(self, **arguments: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sar_eval-launch-", dir=os.environ.get("SCENE_FOLDER")))
        given = [f"{name}:={value}" for name, value in {**SHORT, **arguments, "bag_dir": str(self.folder)}.items()]
        command = [FindExecutable(name="ros2"), "launch", "sar_eval", "episode.launch.py", *given]
        self.process = ExecuteProcess(cmd=command, sigterm_timeout="60", output="screen")

    def wait_for_start(self) -> None:
        wait_for("the first tick", lambda: any(self.folder.glob(f"*{STARTED}")))

    @property
    def record(self) -> dict[str, Any]:
        (file,) = self.folder.glob("*.json")
        return dict(json.loads(file.read_text()))

    @property
    def bag(self) -> Path:
        (folder,) = (f for f in self.folder.iterdir() if f.is_dir())
        return folder

    def assert_good_bag(self) -> None:
        report = check_bag(self.bag)
        assert report.ok, report.findings
        assert report.messages == self.record["run"]["bag_messages"]

    def told(self, proc_output: Any) -> str:
        """All that the launch printed."""
        return "".join(line.text.decode() for line in proc_output[self.process])

    def node(self, name: str) -> int:
        """The process id of one of its nodes."""
        pid = self.process.process_details["pid"]
        for place in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                words = (place / "cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            if parent == pid and any(word.endswith(f"/{name}_node") for word in words):
                return int(place.name)
        raise AssertionError(f"{name} does not run")


def described(*scenes: Scene) -> LaunchDescription:
    """Launches the scenes side by side; the tests begin at once and may outlast them."""
    lasting = [launch_testing.util.KeepAliveProc(), launch_testing.actions.ReadyToTest()]
    return LaunchDescription([*(scene.process for scene in scenes), *lasting])


def wait_for(what: str, there: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not there():
        assert time.monotonic() < give_up, f"waited {PATIENCE_S:g} s for {what}"
        time.sleep(0.05)
