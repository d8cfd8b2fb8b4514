"""The same seed gives the same episode to the last bit: in another process, in a batch, whatever flew before."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_eval.episode.flight import fly_episode
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import load_named_vehicle, prepare
from sar_sim.vehicle.fleet import Fleet

SECONDS = 6.0
OPTIONS = ("--world", "village", "--drones", "3", "--duration-s", str(SECONDS), "--seed", "7", "--episode", "2")


def planned(seed: int = 7, index: int = 2, **changes: Any) -> Episode:
    """The episode of OPTIONS, or one beside it."""
    return prepare(Scenario(**{"world": "village", "drones": 3, "duration_s": SECONDS, **changes}), seed, index)


@pytest.fixture(scope="module")
def twins(warm, sar_eval, tmp_path_factory) -> list[tuple[str, Path]]:
    """The same command in two processes whose hash seeds and folders differ: JSON line and bag of each."""
    flown = []
    for hash_seed in ("1", "2"):
        out = tmp_path_factory.mktemp("twin")
        done = sar_eval("run", *OPTIONS, "--out", out, "--json", env={"PYTHONHASHSEED": hash_seed})
        assert done.returncode == 0, done.stderr
        (bag,) = out.iterdir()
        flown.append((done.stdout, bag))
    return flown


@pytest.fixture(scope="module")
def twin_bag(twins, read_bag):
    return read_bag(twins[0][1])


def result_text(line: str) -> str:
    """The bytes of the result object as they were printed."""
    match = re.search(r'"result": (\{.*\}), "run": \{', line)
    assert match is not None
    return match[1]


def test_two_processes_print_the_same_result_byte_for_byte(twins):
    (first, _), (second, _) = twins
    assert result_text(first) == result_text(second)
    assert json.loads(first)["run"]["bag"] != json.loads(second)["run"]["bag"]


def test_two_processes_record_equal_bags(twins, twin_bag, read_bag):
    other = read_bag(twins[1][1])
    assert len(twin_bag.messages) > 5000
    assert twin_bag.difference(other) is None
    assert twin_bag.metadata["sar_eval"] == other.metadata["sar_eval"]


def test_a_comparison_of_bits_sees_nan_and_sign(twin_bag):
    """The comparison the other tests rest on: NaN equals NaN, and a changed last bit or sign of zero is seen."""
    message = twin_bag.topic("/uav_1/setpoint")[0]
    twin = copy.deepcopy(message)
    assert np.isnan(message.decoded.acceleration.x)
    assert twin.bits == message.bits
    for changed in (np.nextafter(message.decoded.yaw, 10.0), -message.decoded.yaw):
        twin.decoded.yaw = float(changed)
        assert twin.bits != message.bits


def test_every_message_lies_at_its_stamp_and_in_order(twin_bag):
    keys = [(m.log_time, m.topic, m.sequence) for m in twin_bag.messages]
    assert keys == sorted(keys)
    for message in twin_bag.messages:
        assert message.publish_time == message.log_time
        stamp = message.decoded.clock if message.topic == "/clock" else message.decoded.header.stamp
        assert stamp.sec * 1_000_000_000 + stamp.nanosec == message.log_time, message.topic
    ticks = [m.log_time for m in twin_bag.topic("/clock")]
    assert ticks == [-(-k * 25 // 2) * 4_000_000 for k in range(len(ticks))]


def test_episode_in_a_batch_equals_the_episode_alone(twins, twin_bag, read_bag, tmp_path):
    """Other worlds, seeds and numbers of drones fly before it in the same process; nothing of them remains."""
    batch = [planned(seed=1, index=0, world="forest", drones=2, duration_s=2.0), planned()]
    records = [fly_episode(episode, tmp_path / episode.episode_id) for episode in batch]
    assert json.dumps(records[1].result) == json.dumps(json.loads(twins[0][0])["result"])
    assert twin_bag.difference(read_bag(tmp_path / batch[1].episode_id)) is None


def test_recording_does_not_change_the_flight(twins):
    assert json.dumps(fly_episode(planned(), None).result) == json.dumps(json.loads(twins[0][0])["result"])


def test_another_seed_flies_differently_in_the_same_wind(twin_bag, read_bag, tmp_path):
    other = planned(seed=8)
    fly_episode(other, tmp_path / "other")
    bag = read_bag(tmp_path / "other")
    here, there = (b.topic("/truth/state")[-1].decoded.position[0] for b in (twin_bag, bag))
    assert (here.x, here.y) != (there.x, there.y)
    assert bag.configuration["wind_mps"] == twin_bag.configuration["wind_mps"]
    noise = [b.topic("/uav_1/odometry")[0].decoded.pose.pose.position.x for b in (twin_bag, bag)]
    assert noise[0] != noise[1]


def test_wind_belongs_to_the_episode_alone():
    reference = planned(wind_mps=2.0)
    for changes in ({"drones": 1}, {"pattern": "spiral"}, {"speed_mps": 4.0, "duration_s": 99.0}):
        assert planned(wind_mps=2.0, **changes).wind_mps.tobytes() == reference.wind_mps.tobytes()
    assert planned(wind_mps=2.0, world="forest").wind_mps.tobytes() != reference.wind_mps.tobytes()
    assert planned(seed=8, wind_mps=2.0).wind_mps.tobytes() == reference.wind_mps.tobytes()
    others = [planned(index=k, wind_mps=2.0).wind_mps for k in range(2, 12)]
    assert len({wind.tobytes() for wind in others}) == 10
    assert np.allclose(np.linalg.norm(others, axis=1), 2.0)


@pytest.mark.parametrize("grouping", [13, 250])
def test_a_vehicle_s_noise_does_not_depend_on_the_others(grouping):
    """Motors, gusts, sensors and estimate of vehicle 0, bit for bit, alone and among four."""
    vehicle = load_named_vehicle("x500")
    spawns = np.array([[10.0 * i, 0.0, 0.0, 0.3] for i in range(4)])

    def fly(count: int) -> list[bytes]:
        fleet = Fleet(vehicle, spawns[:count], 5, 3, np.array([3.0, 1.0, 0.0]), thrust_variation=0.05)
        fleet.armed[:] = True
        for i in range(count):
            fleet.command(i, spawns[i, :3] + (0.0, 0.0, 5.0), np.full(3, np.nan), np.full(3, np.nan), 0.3)
        seen = []
        for _ in range(1000 // grouping):
            fleet.tick(grouping)
            state = fleet.snapshot()
            seen.append(b"".join(part[0].tobytes() for part in vars(state).values()))
        return seen

    alone, among = fly(1), fly(4)
    assert len(set(alone)) == len(alone)
    assert alone == among


def test_a_drone_that_waits_is_not_touched_by_how_many_wait_beside_it(read_bag, tmp_path):
    """As recorded: the estimate's error of drone 1 while all stand, with two drones and with four."""
    errors = []
    for drones in (2, 4):
        fly_episode(planned(drones=drones, duration_s=1.0), tmp_path / str(drones))
        bag = read_bag(tmp_path / str(drones))
        pairs = zip(bag.topic("/truth/state")[:20], bag.topic("/uav_1/odometry")[:20], strict=True)
        errors.append([estimate.decoded.pose.pose.position.z - true.decoded.position[0].z for true, estimate in pairs])
    assert np.ptp(errors[0]) > 0.0
    assert errors[0] == pytest.approx(errors[1], abs=1e-12)
