"""A campaign between clones: begun in one and finished in another, and what an edited file does to it meanwhile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sar_eval.campaign.ledger import LEDGER, read_ledger
from sar_eval.campaign.packing import pack
from tests.soak.killcheck import result_part

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("ros2_ws/src/sar_core", "ros2_ws/src/sar_sim", "ros2_ws/src/sar_swarm", "analysis")
PLACES += ("ros2_ws/src/sar_eval", "ros2_ws/src/sar_gazebo")
SCENARIO = "drones: 2\nduration_s: 5.0\nradio: null\n"
OPTIONS = ("--pattern", "random_walk", "--victims", "present", "--workers", "1")
START_S = 1800.0

Stage2 = Callable[..., "subprocess.Popen[str]"]


def command_of(checkout: Path, **variables: str) -> Stage2:
    """The stage2 command of a checkout, with its own code and shared folders."""
    path = os.pathsep.join(str(checkout / place) for place in PLACES)
    environment = {**os.environ, **variables, "PYTHONPATH": path}

    def stage2(folder: Path, *options: str) -> subprocess.Popen[str]:
        config = folder.parent / "scenario.yaml"
        config.write_text(SCENARIO)
        words = ["stage2", *OPTIONS, "--config", str(config), "--out", str(folder), *options]
        return subprocess.Popen(
            [sys.executable, "-m", "sar_eval", *words], env=environment, stderr=subprocess.PIPE, text=True
        )

    return stage2


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("clone")
    stale = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "install", "log")
    for name in ("ros2_ws", "analysis", "worlds", "px4_params", "configs", "launch"):
        shutil.copytree(ROOT / name, target / name, symlinks=True, ignore=stale)
    return target


@pytest.fixture(scope="module")
def there(clone: Path) -> Stage2:
    return command_of(clone, NUMBA_CACHE_DIR=str(clone / "kernels"))


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, complaint = process.communicate(timeout=START_S)
    return process.returncode, complaint


@pytest.mark.slow
def test_begun_in_one_clone_and_finished_in_another_it_gives_the_equal_table(there: Stage2, tmp_path: Path) -> None:
    here, part = command_of(ROOT), ("--seeds", "1,4", "--episodes", "0-1")
    assert ended(here(tmp_path / "whole", *part))[0] == 0
    assert ended(here(tmp_path / "begun", *part, "--only", "seed=4"))[0] == 0
    pack(tmp_path / "begun", tmp_path / "sent")
    code, complaint = ended(there(tmp_path / "sent", *part))
    assert code == 0, complaint
    assert "2 of 4 missions are flown, 2 to fly" in complaint
    assert result_part(tmp_path / "sent") == result_part(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "named", "key"),
    [
        ("px4_params/x500.params", "px4_params/x500.params was edited", "vehicle_sha256"),
        ("configs/indices/safety.yaml", "configs/indices/safety.yaml was edited", "safety_sha256"),
        (
            "ros2_ws/src/sar_eval/sar_eval/px4/world.py",
            "sar_eval.px4/world.py was changed",
            "code.sar_eval.px4/world.py",
        ),
    ],
)
def test_a_file_edited_while_it_flies_ends_it_and_nothing_is_mixed(
    clone: Path, there: Stage2, tmp_path: Path, file: str, named: str, key: str
) -> None:
    edited, part = clone / file, ("--seeds", "1-40", "--episodes", "0")
    before = edited.read_bytes()
    process = there(tmp_path / "c", *part)
    give_up = time.monotonic() + START_S
    while len(read_ledger(tmp_path / "c" / LEDGER)) < 2 and process.poll() is None and time.monotonic() < give_up:
        time.sleep(0.02)
    try:
        edited.write_bytes(before + b"\n# edited\n")
        code, complaint = ended(process)
        assert code == 2, complaint
        assert named in complaint and "nothing was mixed in" in complaint
        flown = read_ledger(tmp_path / "c" / LEDGER).values()
        assert 2 <= len(flown) < 40
        assert len({record.result["configuration"]["vehicle_sha256"] for record in flown}) == 1
        assert len({record.result["conduct"]["indices"]["safety.yaml"] for record in flown}) == 1
        code, complaint = ended(there(tmp_path / "c", *part))
        assert code == 1 and "holds another campaign" in complaint and key in complaint
    finally:
        edited.write_bytes(before)
    code, complaint = ended(there(tmp_path / "c", *part, "--only", "seed=1"))
    assert code == 0, complaint
