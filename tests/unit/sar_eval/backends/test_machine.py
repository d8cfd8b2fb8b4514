"""The doctor sees what is there, says what is not, and never dies of what it looks at."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

from sar_eval.backends import machine as doctor
from sar_eval.backends.machine import Probe, as_json, best_tier, diagnose, healthy
from sar_eval.cli.machine import probe_table as as_table


def by_name(probes: list[Probe]) -> dict[str, Probe]:
    return {p.name: p for p in probes}


def program(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but what a test puts there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("PX4_BIN", "ROS_DISTRO"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def probe(name: str, found: bool, required: bool = False) -> Probe:
    return Probe(name, found, "1.0" if found else "", "flying", "pip install 'sar-eval[x]'", required)


def test_default_install_is_seen_with_its_versions() -> None:
    import numpy

    probes = by_name(diagnose())
    assert probes["numpy"].found
    assert probes["numpy"].version == numpy.__version__
    assert probes["yaml"].version
    assert healthy(probes.values())


def test_every_absent_thing_says_what_it_is_for_and_how_to_get_it(empty_machine: Path) -> None:
    probes = diagnose()
    names = [p.name for p in probes]
    assert len(names) == len(set(names))
    absent = [p for p in probes if not p.found]
    assert {"PX4", "Gazebo", "libsdformat", "ros2 CLI", "Docker client", "Docker engine"} <= {p.name for p in absent}
    assert all(p.purpose and p.how_to_get and not p.version for p in absent)


def test_programs_on_path_are_seen(empty_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    px4 = program(empty_machine, "px4", "exit 1")
    program(empty_machine, "gz", '[ "$1" = sim ] && echo 8.9.0')
    program(empty_machine, "ign", '[ "$1" = sdf ] && echo 12.3.0')
    program(empty_machine, "ros2", "exit 0")
    program(empty_machine, "docker", '[ "$1" = --version ] && echo "Docker version 28.2.2, build x"')
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    probes = by_name(diagnose())
    assert probes["PX4"].version == str(px4)
    assert probes["Gazebo"].version == "8.9.0"
    assert probes["libsdformat"].version == "12.3.0"
    assert probes["ros2 CLI"].version == "jazzy"
    assert probes["Docker client"].version == "28.2.2, build x"
    assert not probes["Docker engine"].found


def test_px4_bin_wins_over_path_and_a_wrong_one_is_named(empty_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(empty_machine, "px4", "exit 0")
    own = program(empty_machine, "px4_own", "exit 0")
    monkeypatch.setenv("PX4_BIN", str(own))
    assert by_name(diagnose())["PX4"].version == str(own)
    monkeypatch.setenv("PX4_BIN", "/no/such/px4")
    wrong = by_name(diagnose())["PX4"]
    assert not wrong.found
    assert "/no/such/px4" in wrong.how_to_get


def test_px4s_models_for_gazebo_are_seen_beside_its_binary(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(empty_machine, "px4", "exit 0")
    assert not by_name(diagnose())["PX4's Gazebo models"].found
    models = empty_machine.parent / "models"
    (models / "x500").mkdir(parents=True)
    (models / "x500" / "model.sdf").write_text("<sdf/>")
    monkeypatch.setenv("PX4_GZ_MODELS", str(models))
    assert by_name(diagnose())["PX4's Gazebo models"].version == str(models)


def test_a_failing_silent_or_hanging_program_counts_as_absent(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "COMMAND_TIMEOUT_S", 0.2)
    program(empty_machine, "gz", "while :; do :; done")
    program(empty_machine, "ign", "echo broken; exit 3")
    program(empty_machine, "docker", "exit 0")
    probes = by_name(diagnose())
    assert not probes["Gazebo"].found
    assert not probes["libsdformat"].found
    assert not probes["Docker client"].found


def test_modules_are_found_without_being_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gazebo = [f"gz/{name}" for name in ("math7", "msgs10", "sim8", "transport13")]
    for name in ("rclpy", *gazebo, "sdformat14", "sar_msgs", "sar_msgs/msg"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "__init__.py").write_text("" if name == "sar_msgs" else "raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("gz", "sar_msgs"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    probes = by_name(diagnose())
    for name in ("gz", "sar_msgs"):
        sys.modules.pop(name, None)
    assert probes["rclpy"].found
    assert probes["Gazebo Python modules"].found
    assert probes["sar_msgs"].found


def test_messages_that_were_never_built_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sar_msgs").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for name in [name for name in sys.modules if name.partition(".")[0] == "sar_msgs"]:
        monkeypatch.delitem(sys.modules, name)
    assert not by_name(diagnose())["sar_msgs"].found
    sys.modules.pop("sar_msgs", None)


EVERYTHING = ["PX4", "pymavlink", "Gazebo", "Gazebo Python modules", "PX4's Gazebo models"]


@pytest.mark.parametrize(
    ("there", "tier", "reason"),
    [
        ([], "embedded", "sih also needs PX4 and pymavlink"),
        (["PX4"], "embedded", "sih also needs pymavlink"),
        (["Gazebo", "Gazebo Python modules"], "embedded", "sih also needs PX4 and pymavlink"),
        (["PX4", "pymavlink"], "sih", "gazebo also needs Gazebo, Gazebo Python modules and PX4's Gazebo models"),
        (["PX4", "pymavlink", "Gazebo"], "sih", "needs Gazebo Python modules and PX4's Gazebo models"),
        (["PX4", "pymavlink", "Gazebo", "Gazebo Python modules"], "sih", "gazebo also needs PX4's Gazebo models"),
        (EVERYTHING, "gazebo", "were found"),
    ],
)
def test_best_tier_is_the_highest_with_all_its_tools(there: list[str], tier: str, reason: str) -> None:
    got, why = best_tier([probe(name, name in there) for name in EVERYTHING])
    assert got == tier
    assert reason in why


def test_tiers_ask_for_things_the_doctor_probes() -> None:
    _, why = best_tier([])
    named = {p.name for p in diagnose()}
    assert set(EVERYTHING) <= named
    assert "PX4" in why


def test_only_a_required_thing_makes_it_unhealthy() -> None:
    assert healthy([probe("PX4", found=False), probe("numpy", found=True, required=True)])
    assert not healthy([probe("numpy", found=False, required=True)])


def test_table_shows_remedies_as_written_and_only_where_needed() -> None:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(as_table([probe("here", True), probe("gone", False)]))
    lines = captured.get().splitlines()
    (here,) = (line for line in lines if "here" in line)
    (gone,) = (line for line in lines if "gone" in line)
    assert "pip install" not in here
    assert "pip install 'sar-eval[x]'" in gone


def test_json_is_one_line_with_every_probe() -> None:
    text = as_json([probe("PX4", True), probe("pymavlink", True)])
    assert "\n" not in text
    document = json.loads(text)
    assert document["best_tier"] == "sih"
    assert document["probes"][0] == {
        "name": "PX4",
        "found": True,
        "version": "1.0",
        "purpose": "flying",
        "how_to_get": "pip install 'sar-eval[x]'",
        "required": False,
    }
