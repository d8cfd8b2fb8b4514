"""Against a real PX4 in its own simulator, wherever a px4 binary is found (px4 on PATH, or PX4_BIN)."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from sar_analysis.metrics.metrics import episode_metrics
from sar_eval.episode.attempts import fly
from sar_eval.episode.flight import FlightProgress, fly_episode
from sar_eval.px4.binary import find_px4
from sar_eval.px4.launcher import Processes
from sar_eval.px4.world import Px4World
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare

pytestmark = [
    pytest.mark.px4,
    pytest.mark.skipif(
        shutil.which(os.environ.get("PX4_BIN") or "px4") is None,
        reason="no px4 binary here: put px4 on PATH or set PX4_BIN",
    ),
]
SCENARIO = Scenario(world="open_field", drones=2, duration_s=20.0, altitude_m=15.0)


def test_two_vehicles_fly_a_short_mission(tmp_path: Path) -> None:
    record = fly(prepare(SCENARIO, 0, 0, "sih"), tmp_path / "bag")
    told = record.run["autopilot"]
    assert record.result["valid"], record.run["spoilt_attempts"]
    assert record.result["tier"] == "sih"
    assert record.result["landed"] == 2
    assert record.result["collisions"] == 0
    assert int(told["version"].split(".")[0]) >= 1
    assert told["skew_residual_s"] <= 0.05
    assert told["estimate_error_m"]["p95"] < 3.0, "one frame for truth and estimates"
    flown = episode_metrics(tmp_path / "bag")
    assert flown.invalid_reason is None
    assert flown.tier == "sih"
    assert flown.coverage_240s == pytest.approx(record.result["coverage_240s"], abs=0.02)


def test_vehicles_start_on_the_spawn_points_of_the_world() -> None:
    """Home is a float32 in PX4's simulator: half a grid step of 0.42 m north, of 0.07 m east."""
    episode = prepare(SCENARIO, 0, 0, "sih")
    world = Px4World(episode, Processes(find_px4()))
    world.open()
    try:
        first = world.first()
    finally:
        world.close()
    off = abs(first.state.position[:, :2] - episode.spawns[:, :2])
    assert off[:, 0].max() < 0.1
    assert off[:, 1].max() < 0.3


def test_a_killed_px4_is_a_lost_vehicle() -> None:
    episode = prepare(SCENARIO, 0, 0, "sih")
    launcher = Processes(find_px4())
    world = Px4World(episode, launcher)
    world.open()

    def watch(now: FlightProgress) -> None:
        if now.time_s >= 3.0:
            os.kill(launcher.pids[1], signal.SIGKILL)

    try:
        record = fly_episode(episode, None, watch, world=world)
    finally:
        world.close()
    assert record.result["invalid_reason"] == "vehicle_lost"
    assert record.result["collisions"] == 0
