"""What the launch tests share: `ros2 launch` as users call it, in a folder of its own, and what to wait for.

Read by launch_test, not by pytest.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
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

from sar_eval.bag.check import check_bag
from sar_eval.ros.nodetable import STARTED

PATIENCE_S = 400.0
PROMPT_S = 15.0
"""From a signal to the end of the launch; 23 s is what a node that was not told took."""
SHORT = {"world": "village", "num_drones": "2", "duration_s": "20"}
"""An episode of half a minute; all limits are the defaults."""


class Scene:
    """One `ros2 launch` in a folder of its own; its bags and records go to runs/ below it, as they would for a user."""

    def __init__(self, file: str = "episode", /, cache: str | None = None, **arguments: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sar_eval-launch-", dir=os.environ.get("SCENE_FOLDER")))
        self.words = ["launch", "sar_eval", f"{file}.launch.py", *(f"{k}:={v}" for k, v in arguments.items())]
        self.environment = {} if cache is None else {"NUMBA_CACHE_DIR": str(self.folder / cache)}
        self.process = ExecuteProcess(
            cmd=["env", "--default-signal=INT", FindExecutable(name="ros2"), *self.words],  # who ran us may ignore it
            cwd=str(self.folder),
            additional_env=self.environment,
            sigterm_timeout="60",
            output="screen",
        )

    def again(self, *more: str) -> subprocess.CompletedProcess[str]:
        """The same command once more, to its end."""
        return subprocess.run(
            ["ros2", *self.words, *more],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    def wait_for_start(self) -> None:
        """The first tick of a flight."""
        wait_for("the first tick", lambda: any(self.folder.rglob(f"*{STARTED}")))

    def wait_for_words(self, words: str, proc_output: Any) -> None:
        """Until the launch has printed them."""
        wait_for(repr(words), lambda: words in self.told(proc_output))

    def interrupt(self, proc_info: Any) -> float:
        """SIGINT to launch alone, as `kill -INT` sends it; how long it took to end."""
        began = time.monotonic()
        os.kill(self.process.process_details["pid"], signal.SIGINT)
        proc_info.assertWaitForShutdown(process=self.process, timeout=PATIENCE_S)
        return time.monotonic() - began

    @property
    def records(self) -> list[dict[str, Any]]:
        """By name; a report's own files are none."""
        files = (f for f in sorted(self.folder.rglob("*-e[0-9]*.json")) if "report" not in f.parts)
        return [dict(json.loads(file.read_text())) for file in files]

    @property
    def record(self) -> dict[str, Any]:
        (record,) = self.records
        return record

    def assert_good_bags(self) -> None:
        """Every record's bag is there, passes the check, and holds what the record says."""
        for record in self.records:
            report = check_bag(Path(record["run"]["bag"]))
            assert report.ok, report.findings
            assert report.messages == record["run"]["bag_messages"]

    def told(self, proc_output: Any) -> str:
        """All that the launch printed so far."""
        try:
            return "".join(line.text.decode() for line in proc_output[self.process])
        except KeyError:
            return ""

    def assert_gone(self, told: str) -> None:
        """A stop was said in a word; nobody had to be killed, nobody is left and nobody complained at length."""
        assert "interrupted" in told, told
        assert "Traceback" not in told and "escalating" not in told, told
        assert processes_in(self.folder) == []

    def node(self, name: str) -> int:
        """The process id of one of its nodes."""
        return next(pid for pid, words in processes_in(self.folder) if f"/{name}_node" in words)


def processes_in(folder: Path) -> list[tuple[int, str]]:
    """Processes that work in a folder, by id and command."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if Path(os.readlink(place / "cwd")) == folder.resolve():
                found.append((int(place.name), (place / "cmdline").read_bytes().decode().replace("\0", " ")))
        except OSError:
            continue
    return [(pid, words) for pid, words in found if pid != os.getpid() and "_ros2_daemon" not in words]


def described(*scenes: Scene) -> LaunchDescription:
    """Launches the scenes side by side; the tests begin at once and may outlast them."""
    lasting = [launch_testing.util.KeepAliveProc(), launch_testing.actions.ReadyToTest()]
    return LaunchDescription([*(scene.process for scene in scenes), *lasting])


def wait_for(what: str, there: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not there():
        assert time.monotonic() < give_up, f"waited {PATIENCE_S:g} s for {what}"
        time.sleep(0.05)
