"""A ROS 2 node between Gazebo's messages and ours: CSI, contacts and the true state.

ros_gz_bridge knows only the types it was compiled with; this node imports both sides. /clock is ros_gz_bridge's. What a
callback raises, gz.transport prints, and goes on.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import rclpy
from geometry_msgs.msg import Point, Quaternion, Vector3
from gz.msgs10.contacts_pb2 import Contacts
from gz.msgs10.dataframe_pb2 import Dataframe
from gz.msgs10.pose_v_pb2 import Pose_V
from gz.transport13 import Node
from rclpy.executors import ExternalShutdownException
from sar_msgs.msg import CollisionEvent, CsiBatch, TruthState

from sar_gazebo.csi import decode
from sar_gazebo.stage import Cast
from sar_gazebo.touch import Touch, Touches
from sar_gazebo.truth import Assembly, PosedTruth, hull_pose
from sar_sim.judging.referee import EventPhase

SECOND = 1_000_000_000
PHASES = {EventPhase.BEGIN: CollisionEvent.PHASE_BEGIN, EventPhase.END: CollisionEvent.PHASE_END}


class Bridge:
    """Subscribes in Gazebo, publishes in ROS. Gazebo calls back from a thread of its own."""

    def __init__(self, node: Any, cast: Cast) -> None:
        self._gz = Node()
        self._stamp_ns = 0
        self._touches = Touches(cast.obstacles)
        self._assembly = Assembly(len(cast.models))
        self._contact = node.create_publisher(CollisionEvent, "/truth/contact", 100)
        self._truth = node.create_publisher(TruthState, "/truth/state", 100)
        self._csi = [node.create_publisher(CsiBatch, f"/{model}/csi", 100) for model in cast.models]
        self._gz.subscribe(Contacts, cast.contact_topic, self._on_contacts)
        for drone, model in enumerate(cast.models):
            self._gz.subscribe(Dataframe, f"/{model}/csi", lambda m, i=drone: self._on_csi(i, m))
            self._gz.subscribe(Pose_V, f"/model/{model}/pose", lambda m, i=drone, n=model: self._on_pose(i, n, m))

    def _on_csi(self, drone: int, message: Any) -> None:
        frames, _ = decode(message.data, _stamp(message))
        batch = CsiBatch(uav=drone + 1)
        _stamp_into(batch.header.stamp, frames.stamp_ns)
        batch.address = array("Q", frames.address.tobytes())
        batch.beacon = frames.beacon.tolist()
        batch.rssi_dbm = array("f", frames.rssi_dbm.tolist())
        batch.csi = array("b", frames.csi.tobytes())
        self._csi[drone].publish(batch)

    def _on_contacts(self, message: Any) -> None:
        self._tell(self._touches.observe(_stamp(message), message.contact), _stamp(message))

    def _on_pose(self, drone: int, model: str, message: Any) -> None:
        stamp = self._stamp_ns = _stamp(message.pose[0])
        truth = self._assembly.add(stamp, drone, hull_pose(model, message.pose))
        if truth is not None:
            self._truth.publish(truth_message(truth))
            self._tell(self._touches.settle(stamp), stamp)

    def close(self) -> None:
        """Say the end of what still touches."""
        self._tell(self._touches.finish(), self._stamp_ns)

    def _tell(self, touches: list[Touch], stamp_ns: int) -> None:
        for touch in touches:
            self._contact.publish(event_message(touch, stamp_ns))


def event_message(touch: Touch, stamp_ns: int) -> Any:
    drones = touch.other >= 0
    event = CollisionEvent(event_id=touch.number, phase=PHASES[touch.phase], uav=touch.drone + 1)
    event.kind = CollisionEvent.DRONE_DRONE if drones else CollisionEvent.DRONE_OBSTACLE
    event.other_uav = touch.other + 1
    event.obstacle = touch.obstacle
    event.min_distance_m = -touch.depth_m
    event.position = _xyz(Point, touch.position)
    for field, value in ((event.header.stamp, stamp_ns), (event.begin, touch.begin_ns), (event.end, touch.end_ns)):
        _stamp_into(field, value)
    return event


def truth_message(truth: PosedTruth) -> Any:
    message = TruthState()
    _stamp_into(message.header.stamp, truth.stamp_ns)
    message.header.frame_id = "world"
    message.position = [_xyz(Point, row) for row in truth.position.tolist()]
    message.velocity = [_xyz(Vector3, row) for row in truth.velocity.tolist()]
    message.orientation = [Quaternion(w=w, x=x, y=y, z=z) for w, x, y, z in truth.attitude.tolist()]
    message.angular_velocity = [_xyz(Vector3, row) for row in truth.rates.tolist()]
    return message


def _xyz(make: Any, row: Sequence[float]) -> Any:
    return make(x=row[0], y=row[1], z=row[2])


def _stamp(message: Any) -> int:
    return int(message.header.stamp.sec) * SECOND + int(message.header.stamp.nsec)


def _stamp_into(field: Any, stamp_ns: int) -> None:
    field.sec, field.nanosec = divmod(stamp_ns, SECOND)


def carry(cast: Cast) -> None:
    """Run the node until it is stopped."""
    rclpy.init()
    node = rclpy.create_node("gazebo_bridge")
    bridge = Bridge(node, cast)
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        bridge.close()
        node.destroy_node()
        rclpy.try_shutdown()
