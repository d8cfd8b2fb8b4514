"""The house stays one a newcomer can find their way in: rooms of a size, a name for one thing, doors that hold."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IN_WORKSPACE = ("sar_core", "sar_sim", "sar_swarm", "sar_eval", "sar_gazebo")
PACKAGES = (*(ROOT / "ros2_ws" / "src" / name / name for name in IN_WORKSPACE), ROOT / "analysis" / "sar_analysis")
MOST_MODULES = 22
SHARED_NAMES: dict[str, str] = {}
"""Class names that stand in two modules, with the reason."""
BROKEN = {
    "sar_swarm/piloting/safety.py": "from sar_sim.world.world import World",
    "sar_sim/judging/referee.py": "import rclpy",
    "sar_eval/campaign/ledger.py": "from sar_eval.cli.console import say",
    "sar_eval/scenario/model.py": "from sar_eval.episode.flight import Flight",
    "sar_eval/backends/registry.py": "from sar_gazebo.tier import GAZEBO",
}
"""A forbidden import for each kind of door."""


def modules() -> list[Path]:
    return [file for package in PACKAGES for file in package.rglob("*.py")]


def test_no_folder_is_a_drawer() -> None:
    sizes = Counter(file.parent for file in modules() if file.name != "__init__.py")
    assert {str(folder.relative_to(ROOT)): n for folder, n in sizes.items() if n > MOST_MODULES} == {}


def test_rooms_are_one_level_deep() -> None:
    deep = [file for package in PACKAGES for file in package.rglob("*.py") if len(file.relative_to(package).parts) > 2]
    assert not deep


def test_a_class_name_means_one_thing() -> None:
    found = defaultdict(set)
    for file in modules():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].add(file.relative_to(ROOT).as_posix())
    twice = {name: sorted(files) for name, files in found.items() if len(files) > 1}
    assert {name: files for name, files in twice.items() if name not in SHARED_NAMES} == {}
    assert set(SHARED_NAMES) <= set(twice), "a reason that is no longer needed"


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    places = [str(folder / package.parent.relative_to(ROOT)) for package in PACKAGES]
    code = f"import sys; sys.path[:0] = {places!r}; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize("edited", BROKEN)
def test_a_forbidden_import_is_found(edited: str, tmp_path: Path) -> None:
    """That the contracts hold as they are, `make lint` says."""
    for package in PACKAGES:
        shutil.copytree(package, tmp_path / package.relative_to(ROOT), ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    file = tmp_path / "ros2_ws" / "src" / edited.partition("/")[0] / edited
    file.write_text(file.read_text(encoding="utf-8") + f"\n{BROKEN[edited]}\n", encoding="utf-8")
    done = lint_imports(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert edited.removesuffix(".py").replace("/", ".") in done.stdout
