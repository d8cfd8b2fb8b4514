"""The bridge's shell through stand-ins of gz.transport and rclpy: no evidence of Gazebo."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from sar_core.errors import ContractError
from sar_core.radio import ANTENNAS, SUBCARRIERS
from sar_gazebo.csi import encode
from sar_gazebo.stage import CONTACT_TOPIC, Cast
from sar_sim.radio.receiver import Frames

CAST = Cast(("uav_1", "uav_2"), ("tree_07",), CONTACT_TOPIC)


@pytest.fixture
def ros(gz: Any, bridge_module: ModuleType) -> Any:
    node = gz.RosNode()
    node.bridge = bridge_module.Bridge(node, CAST)
    return node


def stamp(message: Any, stamp_ns: int) -> Any:
    message.header.stamp.sec, message.header.stamp.nsec = divmod(stamp_ns, 1_000_000_000)
    return message


def send(gz: Any, topic: str, message: Any) -> None:
    gz.Node().advertise(topic, type(message)).publish(message)


def test_frames_become_a_batch(gz: Any, ros: Any) -> None:
    rng = np.random.default_rng(1)
    csi = rng.integers(-127, 128, (2, ANTENNAS, len(SUBCARRIERS), 2), dtype=np.int8)
    frames = Frames(0, np.array([7, 1 << 47], np.uint64), np.array([True, False]), np.array([-60.0, -71.0]), csi)
    send(gz, "/uav_2/csi", stamp(gz.Dataframe(data=encode(frames, 21)), 1_052_000_000))
    (batch,) = ros.sent["/uav_2/csi"]
    assert (batch.uav, batch.header.stamp.sec, batch.header.stamp.nanosec) == (2, 1, 52_000_000)
    assert list(batch.address) == [7, 1 << 47] and batch.beacon == [True, False]
    assert list(batch.rssi_dbm) == [-60.0, -71.0] and list(batch.csi) == csi.ravel().tolist()


def test_a_spoilt_frame_is_not_published(gz: Any, ros: Any) -> None:
    with pytest.raises(ContractError):
        send(gz, "/uav_1/csi", gz.Dataframe(data=b"rubbish"))
    assert not ros.sent["/uav_1/csi"]


def test_a_touch_becomes_an_event_with_begin_and_end(gz: Any, ros: Any) -> None:
    touch = gz.Contact(
        gz.EntityMsg("tree_07::link::trunk"),
        gz.EntityMsg("uav_2::base_link::hull"),
        [gz.Vector3d(1.0, 2.0, 3.0)],
        [0.2],
    )
    send(gz, CONTACT_TOPIC, stamp(gz.Contacts([touch]), 2_500_000_000))
    ros.bridge.close()
    begin, end = ros.sent["/truth/contact"]
    assert (begin.event_id, begin.phase, begin.kind, begin.uav, begin.other_uav) == (1, 1, 2, 2, 0)
    assert (end.event_id, end.phase) == (1, 2)
    assert (begin.obstacle, begin.min_distance_m, begin.position.z) == ("tree_07", -0.2, 3.0)
    assert (begin.begin.sec, begin.begin.nanosec) == (2, 500_000_000)


def test_poses_become_the_truth_of_all_drones(gz: Any, ros: Any) -> None:
    for stamp_ns in (20_000_000, 40_000_000):
        for i in (1, 2):
            poses = [gz.PoseMsg(f"uav_{i}", gz.Vector3d(stamp_ns * 1e-7, i, 30.0))]
            poses.append(gz.PoseMsg(f"uav_{i}::base_link", gz.Vector3d(0.0, 0.0, 0.24)))
            for pose in poses:
                stamp(pose, stamp_ns)
            send(gz, f"/model/uav_{i}/pose", gz.Pose_V(poses))
    (truth,) = ros.sent["/truth/state"]
    assert [p.y for p in truth.position] == [1.0, 2.0]
    assert [p.z for p in truth.position] == pytest.approx([30.24, 30.24])
    assert [v.x for v in truth.velocity] == pytest.approx([100.0, 100.0])
    assert truth.header.stamp.nanosec == 40_000_000
