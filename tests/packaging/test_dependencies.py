"""What a ROS 2 workspace needs is declared: by keys that rosdep knows, or, where it has none, in docs/ros.md."""

from __future__ import annotations

import ast
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(p.parent for p in (ROOT / "ros2_ws" / "src").glob("*/package.xml") if p.parent.name != "sar_msgs")
KEYS = {
    "matplotlib": "python3-matplotlib",
    "numba": "python3-numba",
    "numpy": "python3-numpy",
    "pydantic": "python3-pydantic",
    "rich": "python3-rich",
    "rosbags": "python3-rosbags-pip",
    "scipy": "python3-scipy",
    "typer": "python3-typer",
    "yaml": "python3-yaml",
    **{name: name for name in ("sar_core", "sar_sim", "sar_swarm", "sar_analysis", "sar_eval", "sar_msgs")},
    **{name: name for name in ("ament_index_python", "launch", "launch_ros", "rcl_interfaces", "rclpy", "tf2_msgs")},
    **{name: name for name in ("diagnostic_msgs", "geometry_msgs", "std_msgs", "visualization_msgs")},
}
"""Key of an imported module, as rosdistro's rosdep/python.yaml and the distribution's index have it."""
BY_TYPE = {"sar_eval": {"nav_msgs", "rosgraph_msgs"}}
"""Messages that are found by the name of their type."""


def imported(package: Path) -> set[str]:
    found: set[str] = set()
    for file in (package / package.name).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_import_with_a_key_is_declared(package: Path) -> None:
    declared = {node.text for node in ET.parse(package / "package.xml").getroot().iter("exec_depend")}
    needed = {KEYS[name] for name in imported(package) if name in KEYS and name != package.name}
    assert needed | BY_TYPE.get(package.name, set()) <= declared


def test_what_rosdep_lacks_or_has_too_old_is_in_the_page_with_numpy_kept() -> None:
    page = (ROOT / "docs" / "ros.md").read_text(encoding="utf-8")
    line = page.partition("pip install --break-system-packages")[2].partition("colcon build")[0]
    for wish in ("'numpy<2'", "'numba>=", "'pydantic>=", "'typer>=", "'rosbags>=", "'mcap>=", "'zstandard>="):
        assert wish in line
