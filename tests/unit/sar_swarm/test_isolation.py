"""Who may know what: the swarm without the simulator, the simulator without the swarm, both without ROS."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
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
    found = [f"{package}.{m.name}" for m in pkgutil.iter_modules(PACKAGES[package].__path__)]
    assert found
    return [package, *found]


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
    folder = Path(next(iter(PACKAGES[package].__path__)))
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            foreign = {name.split(".")[0] for name in names} & FOREIGN[package]
            assert not foreign, f"{path.name} imports {foreign}"
