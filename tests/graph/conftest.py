"""Real nodes on real rclpy in real processes. Without ROS 2 for Python these tests say what is missing."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sar_eval.episode.flight import fly_episode
from sar_eval.episode.kernels import compile_kernels
from sar_eval.episode.record import Record
from sar_eval.ros.graph import POLL_S, Graph
from sar_eval.ros.nodetable import STARTED
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare

HERE = Path(__file__).parent
PATIENT = {"lockstep_timeout_s": 60.0, "ready_timeout_s": 120.0}
"""For tests that are not about time: a busy machine is not a fault."""


def started(graph: Graph) -> float:
    """Start it; seconds to the first tick, inf if it ends without one."""
    began = time.monotonic()
    graph.start()
    while not graph.file.with_suffix(STARTED).exists():
        if graph.ended:
            return math.inf
        time.sleep(POLL_S)
    return time.monotonic() - began


def lacking() -> str:
    """What of ROS 2 is missing here; empty if nothing is."""
    for module in ("rclpy", "sar_msgs"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed: run make ros"
    import sar_msgs.msg

    return "" if hasattr(sar_msgs.msg, "TickDone") else "sar_msgs is older than its definitions: run make ros"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = lacking()
    for item in items:
        if reason and HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def plan() -> Callable[..., Episode]:
    """A short mission, its kernels loaded so that the nodes are forked with them."""

    def make(seed: int = 1, index: int = 0, **changes: Any) -> Episode:
        brief = {"drones": 4, "duration_s": 4.0, "altitude_m": 10.0, **changes}
        episode = prepare(Scenario(**brief), seed, index)
        compile_kernels(episode)
        return episode

    return make


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Record, Path]]:
    """An episode flown in one process: its record and its bag. Each is flown once."""
    flown: dict[tuple[str, bool], tuple[Record, Path]] = {}

    def fly(episode: Episode, csi: bool = False) -> tuple[Record, Path]:
        key = (episode.config_sha256, csi)
        if key not in flown:
            bag = tmp_path_factory.mktemp("alone") / "bag"
            flown[key] = fly_episode(episode, bag, csi=csi), bag
        return flown[key]

    return fly
