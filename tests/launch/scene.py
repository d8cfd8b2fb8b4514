"""What the launch tests share: an episode to launch, and what to wait for. Read by launch_test, not by pytest."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import launch_testing.actions
from launch import LaunchDescription
from launch.actions import GroupAction, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

from sar_eval.bagcheck import check_bag
from sar_eval.nodetable import STARTED
from sar_eval.resources import share_dir

PATIENCE_S = 400.0
SHORT = {
    "world": "village",
    "num_drones": "2",
    "duration_s": "20",
    "lockstep_timeout_s": "60",
    "ready_timeout_s": "300",
}


class Scene:
    """An episode about to be launched, with a folder of its own."""

    def __init__(self, **arguments: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sar_eval-launch-", dir=os.environ.get("SCENE_FOLDER")))
        self.arguments = {**SHORT, **arguments, "bag_dir": str(self.folder)}

    def included(self) -> GroupAction:
        source = PythonLaunchDescriptionSource(str(share_dir("launch") / "episode.launch.py"))
        return GroupAction([IncludeLaunchDescription(source, launch_arguments=self.arguments.items())])

    def wait_for_start(self) -> None:
        wait_for("the first tick", lambda: any(self.folder.glob(f"*{STARTED}")))

    def wait_for_end(self) -> None:
        """The launch file takes the mark of the start away once every node is gone and the record is there."""
        self.wait_for_start()
        wait_for("the end", lambda: not any(self.folder.glob(f"*{STARTED}")))

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


def described(*scenes: Scene) -> LaunchDescription:
    """Launches the scenes side by side; the tests begin at once."""
    return LaunchDescription([*(scene.included() for scene in scenes), launch_testing.actions.ReadyToTest()])


def wait_for(what: str, there: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not there():
        assert time.monotonic() < give_up, f"waited {PATIENCE_S:g} s for {what}"
        time.sleep(0.05)


def node_process(name: str) -> int:
    """The process id of a node that this process launched."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            words = (place / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if parent == os.getpid() and any(word.endswith(f"/{name}_node") for word in words):
            return int(place.name)
    raise AssertionError(f"{name} does not run")
