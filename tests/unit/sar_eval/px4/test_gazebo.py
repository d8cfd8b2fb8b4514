"""What the gazebo tier needs: found where it may lie, and named where it is missing."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from sar_core.errors import MissingDependencyError
from sar_eval.cli.console import tier_of
from sar_eval.px4 import gazebo as parts


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one: its bin folder is all of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    for name in ("PX4_BIN", "PX4_GZ_MODELS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def program(machine: Path, name: str) -> Path:
    path = machine / "bin" / name
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return path


def put_models(folder: Path) -> Path:
    (folder / "x500").mkdir(parents=True)
    (folder / "x500" / "model.sdf").write_text("<sdf/>")
    return folder


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of Gazebo's Python modules that can be imported; all, unless a test takes some away."""
    there = {*parts.MODULES, "sar_gazebo"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name in there else None)
    return there


def test_all_that_is_there_is_found(machine: Path, modules: set[str]) -> None:
    px4, gz = program(machine, "px4"), program(machine, "gz")
    models = put_models(machine / "share" / "gz" / "models")
    assert parts.find_parts() == parts.Parts(gz, px4, models)


@pytest.mark.parametrize(
    ("lacks", "told"),
    [
        ("px4", "px4 is not on PATH"),
        ("gz", "gz is not on PATH: install Gazebo Harmonic"),
        ("module", "has no module gz.transport13"),
        ("models", "set PX4_GZ_MODELS to the folder"),
    ],
)
def test_what_is_missing_is_named_before_anything_is_started(
    machine: Path, modules: set[str], lacks: str, told: str
) -> None:
    for name in {"px4", "gz"} - {lacks}:
        program(machine, name)
    if lacks == "module":
        modules.remove("gz.transport13")
    if lacks != "models":
        put_models(machine / "share" / "gz" / "models")
    with pytest.raises(MissingDependencyError, match=told) as refusal:
        tier_of("gazebo")
    assert refusal.value.exit_code == 5


@pytest.mark.parametrize("binary", ["bin/px4", "build/px4_sitl_default/bin/px4"])
def test_models_are_found_in_a_package_and_in_a_source_tree(machine: Path, binary: str) -> None:
    place = {"bin/px4": "share/gz/models"}.get(binary, "Tools/simulation/gz/models")
    models = put_models(machine / place)
    assert parts.find_models(machine / binary) == models


def test_a_folder_that_is_given_is_the_only_one_looked_at(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_models(machine / "share" / "gz" / "models")
    monkeypatch.setenv("PX4_GZ_MODELS", str(machine / "elsewhere"))
    with pytest.raises(MissingDependencyError, match="elsewhere"):
        parts.find_models(machine / "bin" / "px4")


def test_a_package_without_its_parent_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib.util, "find_spec", absent)
    monkeypatch.setattr(parts.shutil, "which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(
        MissingDependencyError, match=r"gz\.math7, gz\.msgs10, gz\.sim8, gz\.transport13, sdformat14, sar_gazebo"
    ):
        parts.find_gazebo()
