"""The code in a campaign's identity: all that flies, sub-packages too, and nothing that only tells."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sar_core.errors import ContractError
from sar_eval.campaign import sources as module
from sar_eval.campaign.sources import FLIGHT, PACKAGE, WHOLE, code, core_type, first_difference, folders, sources


@pytest.fixture
def copies(tmp_path: Path) -> dict[str, Path]:
    """The packages as they are, to be edited."""
    for package, folder in folders().items():
        shutil.copytree(folder, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return {package: tmp_path / package for package in folders()}


def edit(file: Path) -> None:
    file.write_text(file.read_text() + "\n# edited\n")


@pytest.mark.parametrize(
    "edited",
    [
        "sar_core/streams.py",
        "sar_sim/vehicle/fleet.py",
        "sar_swarm/sensing/gate.py",
        "sar_gazebo/world.py",
        "sar_eval/scenario/model.py",
        "sar_eval/episode/attempts.py",
        "sar_eval/backends/registry.py",
        "sar_eval/px4/world.py",
        "sar_eval/px4/containers.py",
        "sar_eval/sitl/craft.py",
        "sar_eval/sitl/__init__.py",
    ],
)
def test_a_file_that_flies_is_part_of_it_and_named(copies: dict[str, Path], edited: str) -> None:
    package, _, path = edited.partition("/")
    before = sources(copies)
    edit(copies[package] / path)
    parted = first_difference(sources(copies), before)
    assert parted is not None and parted[0] == f"{package}.{path}"


@pytest.mark.parametrize(
    "edited",
    ["cli/app.py", "cli/campaign.py", "campaign/campaign.py", "studies/sweep.py", "backends/machine.py", "__init__.py"],
)
def test_a_file_that_only_tells_is_not(copies: dict[str, Path], edited: str) -> None:
    before = sources(copies)
    file = copies[PACKAGE] / edited
    file.write_text(file.read_text().replace('__version__ = "', '__version__ = "9.') + "\n# edited\n")
    assert sources(copies) == before


@pytest.mark.parametrize("package", [*WHOLE, "sar_eval/px4"])
def test_a_room_of_a_room_is_part_of_it(copies: dict[str, Path], package: str) -> None:
    home, _, inside = package.partition("/")
    before = sources(copies)
    room = copies[home] / inside / "room"
    room.mkdir()
    (room / "__init__.py").touch()
    (room / "desk.py").write_text("DESK = 1\n")
    found = sources(copies)
    new = {f"{home}/{file}" for file in found[home]} - {f"{home}/{file}" for file in before[home]}
    assert new == {f"{package}/room/__init__.py", f"{package}/room/desk.py"}


def test_a_module_outside_the_rooms_that_fly_is_followed(copies: dict[str, Path]) -> None:
    found = sources(copies)[PACKAGE]
    assert "bag/encoders.py" in found and "bag/repair.py" not in found, "what flights write with, not what mends it"


def remove_an_import(home: Path) -> None:
    (home / "scenario" / "tiers.py").unlink()


def remove_a_root(home: Path) -> None:
    shutil.rmtree(home / "sitl")


def remove_what_is_left_out(home: Path) -> None:
    (home / "backends" / "machine.py").unlink()


@pytest.mark.parametrize(
    ("remove", "named"),
    [
        (remove_an_import, "sar_eval.scenario.tiers"),
        (remove_a_root, FLIGHT[-1]),
        (remove_what_is_left_out, "sar_eval.backends.machine"),
    ],
)
def test_a_module_that_is_not_there_is_an_error(
    copies: dict[str, Path], remove: Callable[[Path], None], named: str
) -> None:
    remove(copies[PACKAGE])
    with pytest.raises(ContractError, match=f"module {named}: is not in"):
        sources(copies)


def test_a_source_that_is_no_python_is_named(copies: dict[str, Path]) -> None:
    (copies[PACKAGE] / "px4" / "world.py").write_text("def half(")
    with pytest.raises(ContractError, match=r"px4/world\.py: cannot be read as Python"):
        sources(copies)


def test_a_missing_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WHOLE", (*WHOLE, "sar_nowhere"))
    with pytest.raises(ContractError, match="package sar_nowhere"):
        folders()


def test_a_file_edited_meanwhile_is_read_again(copies: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "folders", lambda: copies)
    before = code()
    edit(copies[PACKAGE] / "px4" / "wire.py")
    parted = first_difference(code(), before)
    assert parted is not None and parted[0] == "sar_eval.px4/wire.py"


@pytest.mark.skipif(platform.machine() != "x86_64" or core_type() == "auto", reason="no OpenBLAS for x86-64 here")
def test_the_kernels_that_openblas_takes_are_part_of_it() -> None:
    """By what they are, not by how they were chosen: another machine of the same type goes on."""
    assert code()["openblas"] == core_type()
    ask = [sys.executable, "-c", "from sar_eval.campaign.sources import core_type; print(core_type())"]

    def asked(**variables: str) -> str:
        found = subprocess.run(ask, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
        return found.stdout.strip()

    assert asked(OPENBLAS_CORETYPE=core_type()) == core_type()
    assert asked(OPENBLAS_CORETYPE="Nehalem") != asked(OPENBLAS_CORETYPE="Haswell")
