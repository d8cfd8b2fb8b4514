"""Who may know what: the swarm without the simulator, the simulator without the swarm, both without ROS."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import sar_core
import sar_sim
import sar_swarm

FOREIGN = {
    "sar_core": {"sar_sim", "sar_swarm", "sar_eval", "rclpy"},
    "sar_sim": {"sar_swarm", "sar_eval", "rclpy"},
    "sar_swarm": {"sar_sim", "sar_eval", "rclpy"},
}
PACKAGES = {"sar_core": sar_core, "sar_sim": sar_sim, "sar_swarm": sar_swarm}

IMPORT_WITHOUT = """
import importlib, sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {forbidden!r}:
            raise ModuleNotFoundError(f"walled off: {{name}}")

sys.meta_path.insert(0, Wall())
for name in {modules!r}:
    importlib.import_module(name)
assert not [m for m in sys.modules if m.split(".")[0] in {forbidden!r}]
print("imported", len({modules!r}))
"""


def modules_of(package: str) -> list[str]:
    return [package, *modules_below(package, PACKAGES[package].__path__)]


def modules_below(package: str, places: Iterable[str]) -> list[str]:
    """Every module of the tree, named by its file: nothing is imported to look for it, and no folder is passed over."""
    found = []
    for place in map(Path, places):
        files = (file.relative_to(place).with_suffix("") for file in sorted(place.rglob("*.py")))
        names = (".".join(p for p in file.parts if p != "__init__") for file in files)
        found += [f"{package}.{name}" for name in names if name]
    assert found
    return found


def walled_import(modules: list[str], forbidden: set[str]) -> subprocess.CompletedProcess[str]:
    code = IMPORT_WITHOUT.format(modules=modules, forbidden=sorted(forbidden))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("package", sorted(FOREIGN))
def test_package_imports_with_the_others_walled_off(package: str) -> None:
    modules = modules_of(package)
    done = walled_import(modules, FOREIGN[package])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"imported {len(modules)}"


def test_the_wall_holds() -> None:
    """The check above can fail: a package that needs the simulator does not pass the wall."""
    done = walled_import(["sar_sim.vehicle.fleet"], {"sar_sim"})
    assert done.returncode != 0 and "walled off: sar_sim" in done.stderr


@pytest.mark.parametrize("package", sorted(FOREIGN))
def test_no_import_hides_in_a_function(package: str) -> None:
    assert foreign_imports(Path(next(iter(PACKAGES[package].__path__))), FOREIGN[package]) == []


def foreign_imports(folder: Path, foreign: set[str]) -> list[str]:
    """Where a file of the tree imports what it may not, as path and name."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            bad = {name.split(".")[0] for name in names} & foreign
            found += [f"{path.relative_to(folder).as_posix()} imports {name}" for name in sorted(bad)]
    return found


def test_rooms_of_a_package_are_looked_into(tmp_path: Path) -> None:
    room = tmp_path / "radio"
    room.mkdir()
    for name, text in (("__init__.py", ""), ("channel.py", "def f():\n    from sar_sim.fleet import Fleet\n")):
        (room / name).write_text(text)
    assert modules_below("sar_swarm", [str(tmp_path)]) == ["sar_swarm.radio", "sar_swarm.radio.channel"]
    assert foreign_imports(tmp_path, {"sar_sim"}) == ["radio/channel.py imports sar_sim"]
