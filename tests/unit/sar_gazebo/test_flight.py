"""A mission of the gazebo tier before a puppet Gazebo: no evidence of Gazebo.

The vehicles are our own behind MAVLink, in processes of their own. The puppet takes their true poses, publishes them as
Gazebo would, and runs the real CSI system over them, all through stand-ins of Gazebo's Python modules.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from sar_eval.episode.flight import FlightProgress, fly_episode
from sar_eval.episode.kernels import compile_kernels
from sar_eval.episode.record import Record
from sar_eval.px4.health import HealthLimits
from sar_eval.px4.launcher import Processes
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_gazebo.csi import BEGIN_TOPIC, KEYS, TIER
from sar_gazebo.stage import stage
from tests.unit.sar_gazebo.standins import publish, stamped

SPEED = 3.0
PATIENT = HealthLimits(late_s=5.0, skew_s=1.0, rtf_floor=0.1)
"""A test machine may be slow."""
STEP_S = 0.004
POSE_STEPS = 5
SEARCHING_S = 10.0


@pytest.fixture(scope="module")
def episode() -> Episode:
    made = prepare(Scenario(world="open_field", drones=2, duration_s=8.0, altitude_m=12.0), 3, 0, TIER)
    compile_kernels(made)
    return made


class Puppet:
    """Moves Gazebo's world as far as the vehicles' telemetry reaches, whenever the evaluator looks."""

    def __init__(self, gz: Any, system: Any, world: Any, episode: Episode) -> None:
        self.gz, self.system, self.world = gz, system, world
        names = [f"uav_{i + 1}" for i in range(episode.scenario.drones)]
        self.names, self.ecm = names, gz.EntityComponentManager(names)
        self.step: int | None = None
        self.deaf = False
        self.blind = ""
        self._look = world.truth_listener.look
        world.truth_listener.look = self.look
        root = importlib.import_module("xml.etree.ElementTree").fromstring(stage(episode))
        plugin = next(p for p in root.iter("plugin") if p.find("module_name") is not None)
        self.system.configure(1, gz.Element({key: plugin.findtext(key) for key in KEYS}), self.ecm, object())

    def look(self) -> None:
        told = [vehicle.told for vehicle in self.world.vehicles]
        if told and all(t.truth.times and len(t.clock.readings) > 1 for t in told):
            clock = told[0].clock
            end_s = clock.at(min(t.truth.last_s for t in told))
            first = math.ceil(end_s / STEP_S) - 1 if self.step is None else self.step
            for step in range(first + 1, math.floor(end_s / STEP_S) + 1):
                self._advance(step, [t.truth.at(clock.instant(step * STEP_S)) for t in told])
        self._look()

    def _advance(self, step: int, rows: list[Any]) -> None:
        self.step = step
        for name, row in zip(self.names, rows, strict=True):
            self.ecm.poses[name] = self.gz.Pose3d(*row[:3].tolist(), *row[6:10].tolist())
            if step % POSE_STEPS == 0 and name != self.blind:
                self._publish_pose(name, row, step * 4_000_000)
        if not self.deaf:
            self.system.post_update(self.gz.UpdateInfo(sim_time=timedelta(milliseconds=4 * step)), self.ecm)

    def _publish_pose(self, name: str, row: Any, time_ns: int) -> None:
        gz = self.gz
        w, x, y, z = row[6:10].tolist()
        body = stamped(gz.PoseMsg(name, gz.Vector3d(*row[:3].tolist()), gz.QuaternionMsg(x, y, z, w)), time_ns)
        publish(gz, f"/model/{name}/pose", gz.Pose_V([body, gz.PoseMsg(f"{name}::base_link")]))


class Pretender:
    """A Gazebo whose vehicles are ours."""

    def __init__(self) -> None:
        self.vehicles = Processes(None)
        self.start, self.check, self.stop = self.vehicles.start, self.vehicles.check, self.vehicles.stop


@contextmanager
def staged(
    gz: Any, system: ModuleType, episode: Episode, monkeypatch: pytest.MonkeyPatch
) -> Generator[tuple[Any, Puppet], None, None]:
    module = importlib.import_module("sar_gazebo.world")
    monkeypatch.setattr(module.GazeboWorld, "_check_identity", lambda self: None)
    monkeypatch.setattr("sar_eval.px4.world.parameters_of", lambda episode: {})
    truth_listener = importlib.import_module("sar_gazebo.truthlistener").TruthListener(
        episode.scenario.drones, (), SPEED
    )
    world = module.GazeboWorld(episode, Pretender(), truth_listener, SPEED)
    world.limits = PATIENT
    puppet = Puppet(gz, system.get_system(), world, episode)
    world.open()
    try:
        yield world, puppet
    finally:
        world.close()


def flown(episode: Episode, world: Any, fault: Callable[[], None] | None = None) -> tuple[Record, float]:
    """Fly, and let a fault happen once; the record, and the wall time from the fault to it."""
    happened: list[float] = []

    def watch(now: FlightProgress) -> None:
        if fault is not None and now.time_s >= SEARCHING_S and not happened:
            happened.append(time.monotonic())
            fault()

    record = fly_episode(episode, None, watch, world=world)
    return record, time.monotonic() - happened[0] if happened else math.nan


def test_a_mission_is_flown_on_gazebos_truth_and_the_plugins_csi(
    gz: Any, system_module: ModuleType, episode: Episode, monkeypatch: pytest.MonkeyPatch
) -> None:
    with staged(gz, system_module, episode, monkeypatch) as (world, _):
        record, _ = flown(episode, world)
    assert not [topic for topic, listeners in gz.Air.listeners.items() if listeners and topic != BEGIN_TOPIC]
    assert record.result["valid"], record.run.get("invalid_detail")
    assert record.result["tier"] == "gazebo" and "gazebo" in record.result["episode_id"]
    assert (record.result["landed"], record.result["collisions"]) == (2, 0)
    told = record.run["gazebo"]
    assert (told["csi"]["errors"], told["csi"]["missed"], told["touches"]) == (0, 0, [])
    assert told["csi"]["frames"] > 100 and told["csi"]["begin_ns"] % 100_000_000 == 0
    assert abs(told["clock_apart_s"]) < 0.1
    assert told["px4_truth_apart_m"]["p50"] < 0.1, "the puppet's poses are the vehicles' own truth"


def test_poses_of_one_drone_that_stop_spoil_soon(
    gz: Any, system_module: ModuleType, episode: Episode, monkeypatch: pytest.MonkeyPatch
) -> None:
    with staged(gz, system_module, episode, monkeypatch) as (world, puppet):
        record, after_s = flown(episode, world, lambda: setattr(puppet, "blind", "uav_2"))
    assert record.result["invalid_reason"] == "sensor_gap", record.run.get("invalid_detail")
    assert "Gazebo has sent no poses of all drones" in record.run["invalid_detail"]
    assert record.result["collisions"] == 0 and after_s < 5.0


def test_a_csi_system_that_falls_silent_spoils_soon(
    gz: Any, system_module: ModuleType, episode: Episode, monkeypatch: pytest.MonkeyPatch
) -> None:
    with staged(gz, system_module, episode, monkeypatch) as (world, puppet):
        record, after_s = flown(episode, world, lambda: setattr(puppet, "deaf", True))
    assert record.result["invalid_reason"] == "csi_lost", record.run.get("invalid_detail")
    assert record.result["collisions"] == 0 and after_s < 5.0
