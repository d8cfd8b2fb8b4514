"""What an evaluator hears of Gazebo, through stand-ins of its transport: no evidence of Gazebo."""

from __future__ import annotations

import importlib
import json
import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from sar_eval.backends.backend import SpoiltError
from sar_gazebo.csi import BEGIN_TOPIC, HEALTH_TOPIC, encode
from sar_gazebo.stage import CONTACT_TOPIC
from sar_sim.vehicle.fleet import stamp_ns
from tests.unit.sar_gazebo.madeframes import frames_of
from tests.unit.sar_gazebo.standins import SECOND, publish, stamped


@pytest.fixture
def listener_module(gz: Any) -> ModuleType:
    return importlib.import_module("sar_gazebo.truthlistener")


@pytest.fixture
def ears_module(gz: Any) -> ModuleType:
    return importlib.import_module("sar_gazebo.csilistener")


def publish_pose(gz: Any, drone: int, time_ns: int, x: float, sign: float = 1.0) -> None:
    name = f"uav_{drone + 1}"
    body = stamped(gz.PoseMsg(name, gz.Vector3d(x, 0.0, 5.0), gz.QuaternionMsg(w=sign)), time_ns)
    hull = stamped(gz.PoseMsg(f"{name}::base_link", gz.Vector3d(z=0.25)), time_ns)
    publish(gz, f"/model/{name}/pose", stamped(gz.Pose_V([body, hull]), time_ns))


def test_truth_is_where_the_poses_are_at_gazebos_own_time(gz: Any, listener_module: ModuleType) -> None:
    truth_listener = listener_module.TruthListener(2, ())
    assert truth_listener.now_s == -math.inf
    for k in range(6):
        for drone in range(2):
            publish_pose(gz, drone, 10 * SECOND + k * 20_000_000, 0.1 * k + drone)
    assert truth_listener.now_s == -math.inf, "what came is taken in by whoever asks"
    truth_listener.look()
    assert truth_listener.now_s == pytest.approx(10.1)
    truth = truth_listener.truth(10.07)
    assert truth.shape == (2, 13)
    np.testing.assert_allclose(truth[:, 0], [0.35, 1.35], atol=1e-9)
    np.testing.assert_allclose(truth[:, 2], 5.25, atol=1e-12)
    np.testing.assert_allclose(truth[:, 3:6], [[5.0, 0.0, 0.0]] * 2, atol=1e-9)
    np.testing.assert_allclose(truth[:, 6:10], [[1.0, 0.0, 0.0, 0.0]] * 2, atol=1e-12)


def test_an_attitude_whose_quaternion_flips_its_sign_stays_the_same(gz: Any, listener_module: ModuleType) -> None:
    truth_listener = listener_module.TruthListener(1, ())
    for k in range(5):
        publish_pose(gz, 0, k * 20_000_000, 0.0, sign=-1.0 if k % 2 else 1.0)
    truth_listener.look()
    assert abs(truth_listener.truth(0.05)[0, 6]) == pytest.approx(1.0), "half way between q and -q there is no attitude"


def test_health_and_begin_cross(gz: Any, listener_module: ModuleType) -> None:
    truth_listener = listener_module.TruthListener(1, ())
    publish(gz, HEALTH_TOPIC, gz.StringMsg(data=json.dumps({"configured": True, "begin_ns": None})))
    truth_listener.look()
    assert truth_listener.health == {"configured": True, "begin_ns": None}
    truth_listener.begin(1_300_000_000)
    assert [message.data for message in gz.Air.sent[BEGIN_TOPIC]] == ["1300000000"]


def test_touches_begin_and_end(gz: Any, listener_module: ModuleType) -> None:
    truth_listener = listener_module.TruthListener(1, ("barn",))
    contact = gz.Contact(
        gz.EntityMsg("uav_1::base_link::hull"), gz.EntityMsg("barn::link::box"), [gz.Vector3d()], [0.02]
    )
    for k in range(3):
        publish(gz, CONTACT_TOPIC, stamped(gz.Contacts([contact]), 5 * SECOND + k * 4_000_000))
    truth_listener.look()
    (touch,) = truth_listener.touches()
    assert (touch.drone, touch.obstacle, touch.begin_ns, touch.end_ns) == (
        0,
        "barn",
        5 * SECOND,
        5 * SECOND + 8_000_000,
    )


@pytest.mark.parametrize("gap_ns", [120_000_000, 2 * SECOND])
def test_a_gap_in_the_poses_spoils_once_it_is_watched_for(gz: Any, listener_module: ModuleType, gap_ns: int) -> None:
    """Nobody knows where the drones were meanwhile."""
    truth_listener = listener_module.TruthListener(1, ())
    for time_ns in (0, 20_000_000, 20_000_000 + gap_ns):
        publish_pose(gz, 0, time_ns, 0.0)
    truth_listener.look()
    truth_listener.watching = True
    publish_pose(gz, 0, 40_000_000 + gap_ns, 0.0)
    truth_listener.look()
    publish_pose(gz, 0, 40_000_000 + 2 * gap_ns, 0.0)
    with pytest.raises(SpoiltError, match=r"^sensor_gap: Gazebo sent no poses of all drones for") as spoilt:
        truth_listener.look()
    assert spoilt.value.reason == "sensor_gap"


@pytest.mark.parametrize("made", [lambda gz: gz.Pose_V(), lambda gz: gz.Pose_V([stamped(gz.PoseMsg("uav_1"), 1)])])
def test_poses_that_cannot_be_read_spoil(gz: Any, listener_module: ModuleType, made: Any) -> None:
    truth_listener = listener_module.TruthListener(1, ())
    publish(gz, "/model/uav_1/pose", made(gz))
    with pytest.raises(SpoiltError, match="a message of Gazebo cannot be read"):
        truth_listener.look()


def test_who_is_closed_listens_no_more(gz: Any, listener_module: ModuleType, ears_module: ModuleType) -> None:
    """A campaign's process makes one of each for every mission."""
    truth_listener, ears = listener_module.TruthListener(2, ()), ears_module.CsiListener(2)
    assert any(gz.Air.listeners.values())
    for each in (truth_listener, ears, truth_listener, ears):
        each.close()
    assert not any(gz.Air.listeners.values())


@pytest.mark.parametrize("now_s", [0.0, 12.0, 12.001, 12.0999, 12.1])
def test_a_begin_is_a_whole_tick_ahead(now_s: float, listener_module: ModuleType) -> None:
    begin_ns = listener_module.next_begin_ns(now_s, 1.0)
    assert begin_ns % 100_000_000 == 0
    assert 1.0 - 1e-9 <= begin_ns / SECOND - now_s < 1.1 + 1e-9


def publish_frames(gz: Any, drone: int, tick: int) -> Any:
    frames = frames_of(tick % 3, tick)
    message = gz.Dataframe(data=encode(frames, tick))
    publish(gz, f"/uav_{drone + 1}/csi", stamped(message, 7 * SECOND + stamp_ns(tick)))
    return frames


def listen(ears: Any, tick: int) -> Any:
    return ears.listen(stamp_ns(tick), tick, np.zeros((2, 3)), np.zeros((2, 4)))


def test_ears_hand_over_a_ticks_frames_with_the_episodes_stamps(gz: Any, ears_module: ModuleType) -> None:
    ears = ears_module.CsiListener(2)
    sent = {(drone, tick): publish_frames(gz, drone, tick) for tick in (1, 2, 3) for drone in (0, 1)}
    for tick in (1, 3):
        heard = listen(ears, tick)
        assert [frames.stamp_ns for frames in heard] == [stamp_ns(tick)] * 2
        for drone, frames in enumerate(heard):
            np.testing.assert_array_equal(frames.address, sent[drone, tick].address)
            np.testing.assert_array_equal(frames.csi, sent[drone, tick].csi)


def test_frames_that_cannot_be_read_spoil(gz: Any, ears_module: ModuleType) -> None:
    ears = ears_module.CsiListener(1)
    publish(gz, "/uav_1/csi", gz.Dataframe(data=b"noise"))
    with pytest.raises(SpoiltError, match="CSI payload has 5 bytes") as spoilt:
        listen(ears, 1)
    assert spoilt.value.reason == "csi_lost"


def test_a_tick_without_frames_spoils_and_says_for_whom(
    gz: Any, ears_module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ears_module, "SILENCE_S", 0.05)
    ears = ears_module.CsiListener(2)
    publish_frames(gz, 0, 1)
    with pytest.raises(SpoiltError, match="no frames of tick 1 came for uav_2") as spoilt:
        listen(ears, 1)
    assert spoilt.value.reason == "csi_lost"
