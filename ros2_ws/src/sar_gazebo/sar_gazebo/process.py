"""Brings an episode's Gazebo and its PX4 vehicles to life, and takes them away again."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sar_core.errors import RunError
from sar_core.geodesy import Origin
from sar_eval.backends.backend import SpoiltError, Stop, heed, never
from sar_eval.px4.gazebo import find_parts
from sar_eval.px4.launcher import Processes, end, end_with_parent, last_words, read_log
from sar_eval.scenario.model import Episode
from sar_eval.scenario.resources import share_dir
from sar_gazebo.partition import join
from sar_gazebo.stage import stage, vehicles
from sar_gazebo.truthlistener import TruthListener

CURTAIN_S = 180.0
"""Wall time Gazebo has to load the world; its first start on a machine compiles the receivers."""
POLL_S = 0.05
PACKAGES = ("sar_core", "sar_sim", "sar_swarm", "sar_eval", "sar_gazebo")
LOADER_FAILED = "Error while loading module"
LOG = "gazebo.log"


def python_path() -> list[str]:
    """Where this Python has our packages and what they need, for the Python in Gazebo.

    That one has its own standard library, and reads no path files: an editable install's folders are named.
    """
    own = [spec.origin for spec in map(importlib.util.find_spec, PACKAGES) if spec is not None and spec.origin]
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    others = [p for p in sys.path if p and Path(p).is_dir() and p not in standard and Path(p).name != "lib-dynload"]
    return list(dict.fromkeys([*(str(Path(origin).parents[1]) for origin in own), *others]))


class GazeboProcess:
    """A Gazebo with an episode's world on, and a PX4 attached to each of its vehicles."""

    def __init__(self, episode: Episode, truth_listener: TruthListener, stop: Stop = never) -> None:
        self._episode, self._truth_listener, self._stop = episode, truth_listener, stop
        self._parts = find_parts()
        self._server: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._vehicles = Processes(self._parts.px4, [vehicle.environment for vehicle in vehicles(episode)])

    @property
    def server_pid(self) -> int:
        """Gazebo's process."""
        assert self._server is not None
        return self._server.pid

    def start(self, homes: Sequence[Origin], parameters: Mapping[str, str], speed: float) -> None:
        """``homes`` are in the staged world already."""
        join()
        self._folder = Path(tempfile.mkdtemp(prefix="sar-eval-gz."))
        world = self._folder / "stage.sdf"
        world.write_text(stage(self._episode, speed), encoding="utf-8")
        with (self._folder / LOG).open("wb") as log:
            self._server = subprocess.Popen(
                [str(self._parts.gz), "sim", "-s", "-r", "-v", "3", str(world)],
                cwd=self._folder,
                env={**os.environ, **self._paths()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        self._await_curtain()
        self._vehicles.start(homes, parameters, speed)

    def _paths(self) -> dict[str, str]:
        """Where Gazebo finds models, and its Python our packages."""
        resources = [str(share_dir("models")), str(self._parts.models), os.environ.get("GZ_SIM_RESOURCE_PATH", "")]
        return {
            "GZ_SIM_RESOURCE_PATH": os.pathsep.join(filter(None, resources)),
            "PYTHONPATH": os.pathsep.join(python_path()),
        }

    def _await_curtain(self) -> None:
        """Until the CSI system says that it is ready; what would be no better another time ends the run."""
        assert self._folder is not None
        give_up = time.monotonic() + CURTAIN_S
        while not self._truth_listener.health.get("configured"):
            heed(self._stop)
            self._check_loading()
            if self._truth_listener.health.get("errors"):
                raise RunError(f"Gazebo's CSI system cannot start: {self._truth_listener.health['last_error']}")
            self._check_server()
            if time.monotonic() > give_up:
                said = last_words(self._folder / LOG)
                raise SpoiltError("not_ready", f"Gazebo's CSI system was not ready within {CURTAIN_S:g} s: {said}")
            time.sleep(POLL_S)
            self._truth_listener.look()

    def _check_loading(self) -> None:
        """Gazebo goes on without a Python system that it cannot load, and says so in its log alone."""
        assert self._folder is not None
        lines = [line for line in read_log(self._folder / LOG) if line.strip()]
        for number, line in enumerate(lines):
            if LOADER_FAILED in line:
                why = " ".join(lines[number : number + 2])
                raise RunError(f"Gazebo cannot load the CSI system: {why}")

    def check(self) -> None:
        self._check_server()
        self._vehicles.check()

    def _check_server(self) -> None:
        assert self._server is not None and self._folder is not None
        code = self._server.poll()
        if code is not None:
            raise SpoiltError("gazebo_lost", f"Gazebo ended with {code}: {last_words(self._folder / LOG)}")
        health = self._truth_listener.health
        if health.get("errors") or health.get("missed"):
            said = health.get("last_error") or f"{health['missed']} ticks were not served"
            raise SpoiltError("csi_lost", f"Gazebo's CSI system failed: {said}")

    def stop(self) -> None:
        """Vehicles first, then Gazebo; safe to call again."""
        self._vehicles.stop()
        if self._server is not None:
            end([self._server])
            self._server = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
