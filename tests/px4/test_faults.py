"""Every fault of a real autopilot's world ends in a defined state or an INVALID reason, soon, and never as a collision.

The vehicles are our own behind MAVLink, in processes of their own; what fails is real: a killed process, a stopped one,
a refused arming, a clock that jumps, datagrams that are lost.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import pytest

from sar_eval.backends.backend import SpoiltError
from sar_eval.episode.flight import FlightProgress, fly_episode
from sar_eval.episode.kernels import compile_kernels
from sar_eval.episode.record import Record
from sar_eval.px4.health import HealthLimits
from sar_eval.px4.launcher import Processes
from sar_eval.px4.wire import VehicleWire
from sar_eval.px4.world import Px4World
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare

SPEED = 3.0
PATIENT = HealthLimits(late_s=5.0, skew_s=1.0, rtf_floor=0.1)
"""A test machine may be slow; what these tests cause is judged by the gate's own limits."""
SOON_S = 5.0
"""Wall time from a fault to the end of the episode."""
SEARCHING_S = 10.0
"""Time of flight at which both drones have long been searching."""


@pytest.fixture(scope="module")
def episode() -> Episode:
    made = prepare(Scenario(world="open_field", drones=2, duration_s=12.0, altitude_m=12.0, radio=None), 0, 0, "sitl")
    compile_kernels(made)
    return made


@contextlib.contextmanager
def vehicles(episode: Episode, **parameters: str) -> Generator[tuple[Px4World, Processes], None, None]:
    """Ready to take off; parameters of the vehicles come on top of those they fly with."""
    launcher = Processes(None)
    started = launcher.start

    def start(homes: Any, given: Any, speed: float) -> None:
        started(homes, {**given, **parameters}, speed)

    launcher.start = start  # type: ignore[method-assign]
    world = Px4World(episode, launcher, SPEED, limits=PATIENT)
    world.open()
    try:
        yield world, launcher
    finally:
        world.close()


def flown(
    episode: Episode, world: Px4World, fault: Callable[[], None], at_s: float = SEARCHING_S
) -> tuple[Record, float]:
    """Fly and let the fault happen once; the record, and the wall time from the fault to it."""
    happened: list[float] = []

    def watch(now: FlightProgress) -> None:
        if now.time_s >= at_s and not happened:
            happened.append(time.monotonic())
            fault()

    record = fly_episode(episode, None, watch, world=world)
    assert happened, "the episode ended before the fault"
    return record, time.monotonic() - happened[0]


def check_spoilt(record: Record, reason: str, after_s: float) -> None:
    assert record.result["invalid_reason"] == reason, record.run.get("invalid_detail")
    assert not record.result["valid"]
    assert record.result["collisions"] == 0
    assert record.run["invalid_detail"]
    assert after_s < SOON_S


def test_half_of_all_datagrams_lost_is_flown_through(episode: Episode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways, from the first one on: requests are made again, the stream is dense enough."""
    dice = random.Random(1)
    write, receive = VehicleWire.write, VehicleWire.receive

    def lossy_write(self: VehicleWire, frame: bytes) -> None:
        if dice.random() < 0.5:
            write(self, frame)

    def lossy_receive(self: VehicleWire) -> Generator[tuple[float, Any], None, None]:
        yield from (item for item in receive(self) if dice.random() < 0.5)

    monkeypatch.setattr(VehicleWire, "write", lossy_write)
    monkeypatch.setattr(VehicleWire, "receive", lossy_receive)
    with vehicles(episode) as (world, _):
        record = fly_episode(episode, None, world=world)
    assert record.result["valid"], record.run.get("invalid_detail")
    assert record.result["collisions"] == 0
    assert record.result["landed"] == 2


def test_a_killed_vehicle_is_lost(episode: Episode) -> None:
    with vehicles(episode) as (world, launcher):
        record, after_s = flown(episode, world, lambda: os.kill(launcher.pids[1], signal.SIGKILL))
    check_spoilt(record, "vehicle_lost", after_s)
    assert "vehicle 2" in record.run["invalid_detail"]


def test_a_frozen_vehicle_is_lost(episode: Episode) -> None:
    with vehicles(episode) as (world, launcher):
        record, after_s = flown(episode, world, lambda: os.kill(launcher.pids[0], signal.SIGSTOP))
    check_spoilt(record, "vehicle_lost", after_s)


def test_telemetry_that_stops_while_heartbeats_go_on_is_a_gap(episode: Episode) -> None:
    with vehicles(episode) as (world, _):
        record, after_s = flown(episode, world, lambda: set_parameter(world, 1, "SAR_MUTE", 1.0))
    check_spoilt(record, "sensor_gap", after_s)


def test_a_stream_that_stops_ends_with_what_the_vehicle_does(episode: Episode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failsafe is hold; a swarm whose drone no longer listens is spoilt, not scored."""
    with vehicles(episode) as (world, _):
        vehicle = world.vehicles[1]
        record, after_s = flown(episode, world, lambda: monkeypatch.setattr(vehicle, "fly", lambda *_: None))
    check_spoilt(record, "offboard_lost", after_s)
    assert "auto.loiter" in record.run["invalid_detail"]


def test_a_clock_that_jumps_spoils(episode: Episode) -> None:
    with vehicles(episode) as (world, _):
        record, after_s = flown(episode, world, lambda: set_parameter(world, 1, "SAR_CLOCK_JUMP", 3.0))
    check_spoilt(record, "clock_jump", after_s)


def test_a_vehicle_that_does_not_arm_is_named(episode: Episode) -> None:
    with vehicles(episode, SAR_REFUSE_ARM="1") as (world, _):
        record = fly_episode(episode, None, world=world)
        after_s = time.monotonic() - world.vehicles[0].wanted_since_s
    check_spoilt(record, "arm_refused", after_s)


def test_our_own_vehicle_is_not_flown_as_px4(episode: Episode) -> None:
    world = Px4World(replace(episode, tier="sih"), Processes(None), SPEED, limits=PATIENT)
    with pytest.raises(SpoiltError, match="wrong_autopilot: "):
        world.open()


def test_a_host_that_stands_still_is_late(episode: Episode) -> None:
    with vehicles(episode) as (world, _):
        world.limits = replace(PATIENT, late_s=HealthLimits().late_s)
        record, after_s = flown(episode, world, lambda: time.sleep(1.0), at_s=2.0)
    check_spoilt(record, "late", after_s)


def set_parameter(world: Px4World, index: int, name: str, value: float) -> None:
    vehicle = world.vehicles[index]
    vehicle.wire.codec.param_set_send(*vehicle.target, name.encode(), value, 9)
