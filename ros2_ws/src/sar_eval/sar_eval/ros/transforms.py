"""The drones' frames on /tf, where ROS 2 has tf2_msgs; its wheels have not."""

from __future__ import annotations

import importlib.util
from typing import Any

from geometry_msgs.msg import TransformStamped

from sar_eval.bag.encoders import FRAME, NS
from sar_sim.vehicle.fleet import FleetState, stamp_ns

TOPIC = "/tf"
DEPTH = 100
"""As ROS 2's own broadcasters have it."""


def transforms_of(tick: int, state: FleetState) -> list[TransformStamped]:
    """From the map to every drone as it believes to be: the pose of its odometry."""
    transforms = []
    for i, (place, (w, x, y, z)) in enumerate(
        zip(state.est_position.tolist(), state.est_attitude.tolist(), strict=True), start=1
    ):
        found = TransformStamped(child_frame_id=f"uav_{i}/base_link")
        found.header.frame_id = FRAME
        found.header.stamp.sec, found.header.stamp.nanosec = divmod(stamp_ns(tick), NS)
        found.transform.translation.x, found.transform.translation.y, found.transform.translation.z = place
        turn = found.transform.rotation
        turn.w, turn.x, turn.y, turn.z = w, x, y, z
        transforms.append(found)
    return transforms


class Transforms:
    """Publishes every tick's frames; nothing at all without tf2_msgs."""

    def __init__(self, node: Any) -> None:
        self._publisher = None
        if importlib.util.find_spec("tf2_msgs") is not None:
            from tf2_msgs.msg import TFMessage

            self._message = TFMessage
            self._publisher = node.create_publisher(TFMessage, TOPIC, DEPTH)

    def send(self, tick: int, state: FleetState) -> None:
        if self._publisher is not None:
            self._publisher.publish(self._message(transforms=transforms_of(tick, state)))
