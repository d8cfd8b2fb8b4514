"""The Gazebo system's shell, driven through stand-ins that follow the documented signatures: no evidence of Gazebo."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from sar_eval.episode.flight import Flight
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_gazebo.csi import BEGIN_TOPIC, KEYS, TIER, decode
from sar_sim.radio.receiver import Frames
from sar_sim.vehicle.fleet import STEP_NS, stamp_ns

SCENARIO = Scenario(world="village", drones=3, victims=4, decoys=4, sigma=0.1, kappa=4.0)
SEED, INDEX = 5, 3
TICKS = 400


class Trace(NamedTuple):
    """A flight of the embedded simulator, tick 1 first: true positions and attitudes, and what was received."""

    positions: list[Any]
    attitudes: list[Any]
    frames: list[list[Frames]]


@pytest.fixture(scope="module")
def trace() -> Trace:
    flight = Flight(prepare(SCENARIO, SEED, INDEX), None)
    flown = Trace([], [], [])
    for _ in range(TICKS):
        flight.advance()
        assert flight.swarm.sensing is not None
        flown.positions.append(flight.score.state.position.copy())
        flown.attitudes.append(flight.score.state.attitude.copy())
        flown.frames.append(flight.swarm.sensing.heard.frames)
    assert sum(len(f.address) for tick in flown.frames for f in tick) > 500, "the flight must hear something"
    assert flight.score.state.position[:, 2].min() > 5.0, "the flight must be in the air"
    return flown


def plugin(gz: Any, **changed: str) -> Any:
    episode = prepare(SCENARIO, SEED, INDEX, TIER)
    values = (json.dumps(episode.plain_scenario()), str(SEED), str(INDEX), episode.config_sha256)
    return gz.Element({**dict(zip(KEYS, values, strict=True)), **changed})


def started(gz: Any, module: ModuleType, models: int = SCENARIO.drones, **changed: str) -> tuple[Any, Any]:
    """A configured system whose episode begins with the world, and that world."""
    ecm = gz.EntityComponentManager([f"uav_{i + 1}" for i in range(models)])
    system = module.get_system()
    system.configure(1, plugin(gz, **changed), ecm, object())
    say_begin(gz, "0")
    return system, ecm


def say_begin(gz: Any, text: str) -> None:
    gz.Node().advertise(BEGIN_TOPIC, gz.StringMsg).publish(gz.StringMsg(data=text))


def place(gz: Any, ecm: Any, positions: Any, attitudes: Any) -> None:
    for i, (position, attitude) in enumerate(zip(positions, attitudes, strict=True)):
        ecm.poses[f"uav_{i + 1}"] = gz.Pose3d(*position.tolist(), *attitude.tolist())


def run(gz: Any, system: Any, ecm: Any, trace: Trace, ticks: int, first_step: int = 0) -> None:
    """Step by step as Gazebo does, 4 ms each; the vehicles are where the trace has them."""
    for step in range(first_step, stamp_ns(ticks) // STEP_NS + 1):
        tick = step * STEP_NS // 50_000_000
        if tick:
            place(gz, ecm, trace.positions[tick - 1], trace.attitudes[tick - 1])
        system.post_update(gz.UpdateInfo(sim_time=timedelta(microseconds=step * STEP_NS // 1000)), ecm)


def health(gz: Any) -> dict[str, Any]:
    return dict(json.loads(gz.Air.sent["/sar/csi/health"][-1].data))


def received(gz: Any, drone: int) -> list[tuple[Frames, int]]:
    sent = gz.Air.sent[f"/uav_{drone + 1}/csi"]
    return [decode(m.data, m.header.stamp.sec * 1_000_000_000 + m.header.stamp.nsec) for m in sent]


def test_its_csi_is_that_of_the_embedded_simulator(gz: Any, system_module: ModuleType, trace: Trace) -> None:
    system, ecm = started(gz, system_module)
    run(gz, system, ecm, trace, TICKS)
    for drone in range(SCENARIO.drones):
        got = received(gz, drone)
        assert [tick for _, tick in got] == list(range(1, TICKS + 1))
        for (frames, tick), heard in zip(got, trace.frames, strict=True):
            wanted = heard[drone]
            assert frames.stamp_ns == wanted.stamp_ns == stamp_ns(tick)
            np.testing.assert_array_equal(frames.address, wanted.address)
            np.testing.assert_array_equal(frames.beacon, wanted.beacon)
            np.testing.assert_allclose(frames.rssi_dbm, wanted.rssi_dbm, rtol=0.0, atol=1e-9)
            np.testing.assert_allclose(frames.csi, wanted.csi, rtol=0.0, atol=1e-9)
    assert (system.health.ticks, system.health.errors, system.health.missed) == (TICKS, 0, 0)


def test_another_seed_hears_otherwise(gz: Any, system_module: ModuleType, trace: Trace) -> None:
    episode = prepare(SCENARIO, SEED + 1, INDEX, TIER)
    system, ecm = started(gz, system_module, seed=str(SEED + 1), config_sha256=episode.config_sha256)
    run(gz, system, ecm, trace, 40)
    got = [frames for frames, _ in received(gz, 0)]
    same = [f.csi.tobytes() == h[0].csi.tobytes() for f, h in zip(got, trace.frames, strict=False) if len(f.address)]
    assert same and not any(same)


def test_messages_say_for_whom_they_are(gz: Any, system_module: ModuleType, trace: Trace) -> None:
    system, ecm = started(gz, system_module)
    run(gz, system, ecm, trace, 40)
    message = next(m for m in gz.Air.sent["/uav_2/csi"] if m.header.data[0].value)
    frames, _ = decode(message.data, 0)
    assert (message.src_address, message.dst_address, message.header.data[0].key) == ("air", "uav_2", "rssi")
    assert [float(value) for value in message.header.data[0].value] == frames.rssi_dbm.tolist()


def test_what_a_callback_meets_is_counted_and_the_next_tick_served(
    gz: Any, system_module: ModuleType, trace: Trace
) -> None:
    system, ecm = started(gz, system_module)
    run(gz, system, ecm, trace, 20)
    ecm.poses["uav_2"] = None
    system.post_update(gz.UpdateInfo(sim_time=timedelta(microseconds=1_052_000)), ecm)
    run(gz, system, ecm, trace, 40, first_step=264)
    assert health(gz) == {
        "configured": True,
        "begin_ns": 0,
        "ticks": 39,
        "frames": system.health.frames,
        "missed": 0,
        "errors": 1,
        "resets": 0,
        "last_error": "RunError: a vehicle's link has no pose any more",
    }


def test_a_missing_model_is_named(gz: Any, system_module: ModuleType, trace: Trace) -> None:
    system, ecm = started(gz, system_module, models=2)
    system.post_update(gz.UpdateInfo(sim_time=timedelta(microseconds=52_000)), ecm)
    assert health(gz)["last_error"] == "RunError: the world has no model 'uav_3'; stage it for as many drones as fly"


def test_a_bad_plugin_element_leaves_a_system_that_says_so(gz: Any, system_module: ModuleType) -> None:
    system, ecm = started(gz, system_module, config_sha256="0" * 64)
    for step in range(600):
        system.post_update(gz.UpdateInfo(sim_time=timedelta(milliseconds=4 * step)), ecm)
    told = [json.loads(message.data) for message in gz.Air.sent["/sar/csi/health"]]
    assert len(told) == 4, "once when configured, then once a second"
    assert all(not t["configured"] and "stage it again" in t["last_error"] for t in told)
    assert not any(topic.endswith("/csi") for topic in gz.Air.sent)


def test_paused_nothing_is_heard(gz: Any, system_module: ModuleType, trace: Trace) -> None:
    system, ecm = started(gz, system_module)
    place(gz, ecm, trace.positions[0], trace.attitudes[0])
    system.post_update(gz.UpdateInfo(sim_time=timedelta(milliseconds=52), paused=True), ecm)
    assert not gz.Air.sent["/uav_1/csi"]


def test_a_reset_world_repeats_itself(gz: Any, system_module: ModuleType, trace: Trace) -> None:
    system, ecm = started(gz, system_module)
    run(gz, system, ecm, trace, 60)
    system.reset(gz.UpdateInfo(), ecm)
    say_begin(gz, "0")
    run(gz, system, ecm, trace, 60)
    payloads = [message.data for message in gz.Air.sent["/uav_1/csi"]]
    assert payloads[:60] == payloads[60:] and len(payloads) == 120
    assert system.health.resets == 1 and system.health.errors == 0


def test_it_is_silent_until_the_begin_and_counts_from_there(gz: Any, system_module: ModuleType, trace: Trace) -> None:
    system, ecm = started(gz, system_module)
    system.reset(gz.UpdateInfo(), ecm)
    place(gz, ecm, trace.positions[0], trace.attitudes[0])
    begin_steps = 275
    for step in range(begin_steps - 25):
        system.post_update(gz.UpdateInfo(sim_time=timedelta(milliseconds=4 * step)), ecm)
    assert not gz.Air.sent["/uav_1/csi"] and health(gz)["begin_ns"] is None
    for _ in range(3):
        say_begin(gz, str(begin_steps * STEP_NS))
    for step in range(begin_steps - 25, begin_steps + stamp_ns(40) // STEP_NS + 1):
        tick = (step - begin_steps) * STEP_NS // 50_000_000
        if tick > 0:
            place(gz, ecm, trace.positions[tick - 1], trace.attitudes[tick - 1])
        system.post_update(gz.UpdateInfo(sim_time=timedelta(milliseconds=4 * step)), ecm)
    got = received(gz, 0)
    assert [tick for _, tick in got] == list(range(1, 41))
    assert [frames.stamp_ns for frames, _ in got] == [begin_steps * STEP_NS + stamp_ns(k) for k in range(1, 41)]
    heard = [tick[0] for tick in trace.frames[:40]]
    assert [frames.csi.tobytes() for frames, _ in got] == [frames.csi.tobytes() for frames in heard]
    assert health(gz)["begin_ns"] == begin_steps * STEP_NS and system.health.missed == 0


@pytest.mark.parametrize("text", ["", "soon", "1.5"])
def test_a_begin_that_is_no_number_is_an_error_of_the_system(gz: Any, system_module: ModuleType, text: str) -> None:
    system, ecm = started(gz, system_module)
    say_begin(gz, text)
    system.post_update(gz.UpdateInfo(sim_time=timedelta(milliseconds=4)), ecm)
    assert system.health.errors == 1 and "ValueError" in system.health.last_error


def test_the_shell_is_thin(system_module: ModuleType) -> None:
    assert system_module.__file__ is not None
    assert len(Path(system_module.__file__).read_text().splitlines()) < 120
