"""The analysis stands alone: no simulator, no swarm, no evaluator, no ROS; and its rooms know only those below."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sar_analysis

FORBIDDEN = ("sar_sim", "sar_swarm", "sar_eval", "rclpy")
ROOT = Path(sar_analysis.__file__).parent
FLOORS = (("bags",), ("metrics",), ("stats", "table"), ("stage1", "prereg"), ("results",), ("render",))
"""From the ground up: a room may import itself and what lies on a lower floor."""
MODULES = sorted(file for file in ROOT.rglob("*.py") if file.stem != "__init__")


def test_imports_with_everything_else_made_unimportable() -> None:
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in MODULES]
    script = (
        "import sys, importlib\n"
        f"sys.modules.update(dict.fromkeys({FORBIDDEN!r}))\n"
        f"for name in {names!r}: importlib.import_module('sar_analysis.' + name)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def room_of(parts: tuple[str, ...]) -> str:
    return parts[0].removesuffix(".py")


def imported(file: Path) -> set[str]:
    """The rooms that a module takes anything from."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {room_of(tuple(name.split(".")[1:])) for name in names if name.startswith("sar_analysis.")}
    return found


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_room_knows_only_those_below_and_nothing_below_render_prints(file: Path) -> None:
    floor_of = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
    own = room_of(file.relative_to(ROOT).parts)
    above = {room for room in imported(file) if room != own and floor_of[room] >= floor_of[own]}
    assert not above, f"{own} imports {above}"
    calls = [node.func for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    assert own == "render" or not any(isinstance(call, ast.Name) and call.id == "print" for call in calls)
