"""Real PX4 in a real Gazebo, wherever both are found with Gazebo's Python modules and PX4's models."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_analysis.metrics.metrics import episode_metrics
from sar_core.errors import MissingDependencyError
from sar_eval.backends.embedded import make_receiver
from sar_eval.backends.registry import backend_of
from sar_eval.episode.attempts import fly
from sar_eval.episode.flight import Flight, FlightProgress, fly_episode
from sar_eval.episode.kernels import compile_kernels
from sar_eval.px4.gazebo import find_parts
from sar_eval.px4.world import Px4World
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_sim.vehicle.fleet import stamp_ns


def lacking() -> str:
    try:
        find_parts()
    except MissingDependencyError as error:
        return str(error)
    return ""


pytestmark = [pytest.mark.px4, pytest.mark.skipif(bool(lacking()), reason=f"no Gazebo tier here: {lacking()}")]


@pytest.fixture(scope="module")
def episode() -> Episode:
    made = prepare(Scenario(world="village", drones=2, duration_s=20.0, altitude_m=30.0), 3, 0, "gazebo")
    compile_kernels(made)
    return made


def test_two_vehicles_fly_a_short_mission_on_the_plugins_csi(episode: Episode, tmp_path: Path) -> None:
    record = fly(episode, tmp_path / "bag")
    assert record.result["valid"], record.run["spoilt_attempts"]
    assert (record.result["tier"], record.result["landed"], record.result["collisions"]) == ("gazebo", 2, 0)
    told = record.run["gazebo"]
    assert (told["csi"]["errors"], told["csi"]["missed"], told["touches"]) == (0, 0, [])
    assert told["csi"]["frames"] > 100
    assert abs(told["clock_apart_s"]) < 0.1
    assert told["px4_truth_apart_m"]["p50"] < 0.5, "PX4's own truth is Gazebo's, on a sphere and by arrival"
    assert record.run["autopilot"]["estimate_error_m"]["p95"] < 3.0
    flown = episode_metrics(tmp_path / "bag")
    assert (flown.invalid_reason, flown.tier) == (None, "gazebo")


def test_what_gazebo_hears_is_what_the_embedded_receivers_would(episode: Episode) -> None:
    """On the ground, where a pose at the tick and the one at the next step differ by the last digits at most."""
    with backend_of(episode) as world:
        flight = Flight(episode, None, world)
        assert flight.receiver is not None
        ours = make_receiver(episode)
        heard = 0
        for tick in range(1, 21):
            now = world.step(flight.swarm.commands, float("inf"))
            theirs = flight.receiver.listen(stamp_ns(tick), tick, now.state.position, now.state.attitude)
            mine = ours.listen(stamp_ns(tick), tick, now.state.position, now.state.attitude)
            for got, made in zip(theirs, mine, strict=True):
                heard += len(got.address)
                assert got.stamp_ns == made.stamp_ns
                np.testing.assert_array_equal(got.address, made.address)
                np.testing.assert_array_equal(got.beacon, made.beacon)
                np.testing.assert_allclose(got.rssi_dbm, made.rssi_dbm, atol=1.0)
                np.testing.assert_allclose(got.csi, made.csi, atol=1)
    assert heard > 0


def test_vehicles_stand_on_the_spawn_points_of_the_world(episode: Episode) -> None:
    with backend_of(episode) as world:
        first = world.first()
    np.testing.assert_allclose(first.state.position[:, :2], episode.spawns[:, :2], atol=0.05)


def test_a_killed_gazebo_spoils_the_flight(episode: Episode) -> None:
    with backend_of(episode) as world:
        assert isinstance(world, Px4World)
        gazebo_process: Any = world.launcher

        def watch(now: FlightProgress) -> None:
            if now.time_s >= 3.0:
                os.kill(gazebo_process.server_pid, signal.SIGKILL)

        record = fly_episode(episode, None, watch, world=world)
    assert record.result["invalid_reason"] in ("gazebo_lost", "vehicle_lost", "csi_lost")
    assert record.result["collisions"] == 0
