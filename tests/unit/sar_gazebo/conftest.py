"""Gazebo's Python modules as stand-ins where a test asks for them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from sar_gazebo.partition import PARTITION
from tests.unit.sar_gazebo import standins

SHELLS = tuple(
    f"sar_gazebo.{name}" for name in ("system", "bridge", "csilistener", "truthlistener", "process", "world")
)
"""What imports Gazebo's modules."""


@pytest.fixture
def gz(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Stand-ins of gz.sim8, gz.transport13, gz.msgs10 and rclpy in place of the real modules."""
    for name, module in standins.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    for name in SHELLS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name, value in PARTITION.items():
        monkeypatch.setenv(name, value)
    standins.Air.reset()
    yield standins
    for name in SHELLS:
        sys.modules.pop(name, None)


@pytest.fixture
def system_module(gz: Any) -> ModuleType:
    return importlib.import_module("sar_gazebo.system")


@pytest.fixture
def bridge_module(gz: Any) -> ModuleType:
    return importlib.import_module("sar_gazebo.bridge")
