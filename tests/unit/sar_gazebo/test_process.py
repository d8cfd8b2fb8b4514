"""Gazebo and PX4 as processes, started, watched and ended: programs that only pretend, no evidence of Gazebo."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sar_core.errors import RunError
from sar_eval.backends.backend import SpoiltError
from sar_eval.px4 import gazebo as parts
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_gazebo.csi import HEALTH_TOPIC, TIER
from tests.unit.sar_gazebo.standins import publish

EPISODE = prepare(Scenario(world="open_field", drones=2), 0, 0, TIER)
STAYS = 'env >"{told}/$(basename $0)-$$"; echo "$@" >"{told}/$(basename $0)-$$.words"; echo hello; exec sleep 600'


@pytest.fixture
def process_module(gz: Any) -> ModuleType:
    return importlib.import_module("sar_gazebo.process")


@pytest.fixture
def place() -> Iterator[Path]:
    """For programs that another user may be asked to run: pytest's own folders are for one user only."""
    with tempfile.TemporaryDirectory(prefix="sar-gazebo_process.") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def told(place: Path) -> Path:
    """Where the pretenders write down how they were started."""
    folder = place / "told"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def program(place: Path, name: str, script: str) -> Path:
    path = place / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def open_gazebo(
    gz: Any, process_module: ModuleType, place: Path, told: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """Makes a Gazebo out of a script for gz; its CSI system has said ``health`` before it is waited for."""
    made: list[Any] = []

    def make(gz_script: str = STAYS, health: dict[str, Any] | None = None) -> Any:
        found = parts.Parts(
            program(place, "gz", gz_script.format(told=told)),
            program(place, "px4", STAYS.format(told=told)),
            place / "models",
        )
        monkeypatch.setattr(process_module, "find_parts", lambda: found)
        truth_listener = importlib.import_module("sar_gazebo.truthlistener").TruthListener(2, ())
        gazebo_process = process_module.GazeboProcess(EPISODE, truth_listener)
        made.append(gazebo_process)
        if health is not None:
            publish(gz, HEALTH_TOPIC, gz.StringMsg(data=json.dumps(health)))
            truth_listener.look()
        return gazebo_process

    yield make
    for gazebo_process in made:
        gazebo_process.stop()


def started(gazebo_process: Any) -> None:
    gazebo_process.start([None, None], {"MPC_XY_VEL_MAX": "12"}, 2.0)


def told_by(told: Path, name: str, count: int) -> list[dict[str, str]]:
    give_up = time.monotonic() + 20.0
    while True:
        files = [f for f in sorted(told.glob(f"{name}-*")) if f.suffix != ".words" and f.with_suffix(".words").exists()]
        if len(files) == count:
            rows = [dict(line.split("=", 1) for line in f.read_text().splitlines() if "=" in line) for f in files]
            return [{**row, "words": f.with_suffix(".words").read_text()} for row, f in zip(rows, files, strict=True)]
        assert time.monotonic() < give_up, f"{len(files)} of {count} {name} started"
        time.sleep(0.02)


def test_gazebo_gets_the_staged_world_and_px4s_are_attached_to_its_vehicles(
    open_gazebo: Any, process_module: ModuleType, told: Path
) -> None:
    gazebo_process = open_gazebo(health={"configured": True})
    started(gazebo_process)
    gazebo_process.check()
    (server,) = told_by(told, "gz", 1)
    words = server["words"].split()
    assert words[:3] == ["sim", "-s", "-r"] and words[-1].endswith("stage.sdf")
    assert server["GZ_SIM_RESOURCE_PATH"].split(os.pathsep)[0].endswith("models")
    assert server["PYTHONPATH"].split(os.pathsep) == process_module.python_path()
    pilots = sorted(told_by(told, "px4", 2), key=lambda row: row["PX4_GZ_MODEL_NAME"])
    assert [row["PX4_GZ_MODEL_NAME"] for row in pilots] == ["uav_1", "uav_2"]
    for row in pilots:
        assert (row["PX4_SIM_MODEL"], row["PX4_GZ_WORLD"]) == ("gz_x500", "open_field")
        assert (row["PX4_GZ_STANDALONE"], row["PX4_PARAM_MPC_XY_VEL_MAX"]) == ("1", "12")
        assert "PX4_HOME_LAT" not in row, "PX4 would move the whole world there"
        assert row["GZ_PARTITION"] == server["GZ_PARTITION"], "or they would not hear each other"
    world = Path(words[-1])
    assert "<real_time_factor>2</real_time_factor>" in world.read_text()
    gazebo_process.stop()
    assert not world.exists()
    gazebo_process.stop()


def test_another_python_finds_all_of_ours_on_that_path(process_module: ModuleType) -> None:
    """Gazebo's Python reads no path files, on which editable installs rest."""
    program = "import sar_core, sar_sim, sar_swarm, sar_eval, sar_gazebo.csi, sar_gazebo.stage"
    path = os.pathsep.join(process_module.python_path())
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], env={"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_csi_system_that_cannot_be_loaded_is_told_at_once(open_gazebo: Any) -> None:
    gazebo_process = open_gazebo(
        r"printf '\033[31m[Err] [PythonSystemLoader.cc:107] \033[0mError while loading module sar_gazebo.system\n'; "
        "echo ModuleNotFoundError: No module named sar_core; exec sleep 600"
    )
    with pytest.raises(RunError, match=r"Error while loading module sar_gazebo\.system ModuleNotFoundError: No module"):
        started(gazebo_process)


def test_a_gazebo_that_ends_is_named_with_its_last_words(open_gazebo: Any) -> None:
    gazebo_process = open_gazebo("echo no such plugin; exit 7")
    with pytest.raises(SpoiltError, match="Gazebo ended with 7: no such plugin") as spoilt:
        started(gazebo_process)
    assert spoilt.value.reason == "gazebo_lost"


def test_a_gazebo_that_ends_in_flight_spoils(open_gazebo: Any, told: Path) -> None:
    gazebo_process = open_gazebo(
        'echo up >"{told}/gz-1.up"; until [ -e "{told}/enough" ]; do sleep 0.05; done', {"configured": True}
    )
    started(gazebo_process)
    gazebo_process.check()
    (told / "enough").touch()
    give_up = time.monotonic() + 20.0
    with pytest.raises(SpoiltError, match="Gazebo ended with 0"):
        while time.monotonic() < give_up:
            gazebo_process.check()
            time.sleep(0.02)


def test_a_csi_system_that_never_comes_is_not_waited_for_for_ever(
    open_gazebo: Any, process_module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "CURTAIN_S", 0.2)
    with pytest.raises(SpoiltError, match=r"CSI system was not ready within .*: ") as spoilt:
        started(open_gazebo())
    assert spoilt.value.reason == "not_ready"


def test_a_csi_system_that_cannot_start_is_no_matter_of_another_try(open_gazebo: Any) -> None:
    gazebo_process = open_gazebo(
        health={"configured": False, "errors": 1, "last_error": "ContractError: stage it again"}
    )
    with pytest.raises(RunError, match="CSI system cannot start: ContractError: stage it again"):
        started(gazebo_process)


@pytest.mark.parametrize(
    ("health", "told_of_it"),
    [
        ({"configured": True, "errors": 1, "missed": 0, "last_error": "RunError: no pose"}, "RunError: no pose"),
        ({"configured": True, "errors": 0, "missed": 3, "last_error": ""}, "3 ticks were not served"),
    ],
)
def test_a_csi_system_that_fails_spoils(open_gazebo: Any, health: dict[str, Any], told_of_it: str) -> None:
    gazebo_process = open_gazebo(health=health)
    started(gazebo_process)
    with pytest.raises(SpoiltError, match=told_of_it) as spoilt:
        gazebo_process.check()
    assert spoilt.value.reason == "csi_lost"
