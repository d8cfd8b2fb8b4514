"""The package's sources, and Gazebo's Python modules as stand-ins where a test asks for them."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.sar_gazebo import standins

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "ros2_ws" / "src" / "sar_gazebo"
if importlib.util.find_spec("sar_gazebo") is None:
    sys.path.insert(0, str(SOURCE))


@pytest.fixture
def gz(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Stand-ins of gz.sim8, gz.transport13, gz.msgs10 and rclpy in place of the real modules."""
    for name, module in standins.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("sar_gazebo.system", "sar_gazebo.bridge"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    standins.Air.reset()
    yield standins
    for name in ("sar_gazebo.system", "sar_gazebo.bridge"):
        sys.modules.pop(name, None)


@pytest.fixture
def system_module(gz: Any) -> ModuleType:
    return importlib.import_module("sar_gazebo.system")


@pytest.fixture
def bridge_module(gz: Any) -> ModuleType:
    return importlib.import_module("sar_gazebo.bridge")
