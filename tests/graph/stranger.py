"""A process that does not belong to the graph and does everything wrong that a stranger can do on its topics."""

from __future__ import annotations

import sys

import rclpy
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sar_msgs.msg import EpisodeEnd, SwarmTick, TickDone

OTHER_RUN = 12345


def main() -> None:
    rclpy.init()
    node = Node("stranger")
    odometry = node.create_publisher(Odometry, "/uav_1/odometry", 10)
    clock = node.create_publisher(Clock, "/clock", 10)
    swarm = node.create_publisher(SwarmTick, "/swarm/tick", 10)
    done = node.create_publisher(TickDone, "/episode/tick_done", 10)
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL, reliability=ReliabilityPolicy.RELIABLE)
    node.create_publisher(EpisodeEnd, "/episode/end", latched).publish(
        EpisodeEnd(run=OTHER_RUN, reason="by a stranger")
    )
    node.create_subscription(Clock, "/clock", lambda _: None, latched)

    def repeat(heard: Odometry) -> None:
        """The right stamp and the wrong place, and a time that is long over."""
        if heard.pose.pose.position.x == 999.0:
            return
        heard.pose.pose.position.x = 999.0
        odometry.publish(heard)
        clock.publish(Clock())
        swarm.publish(SwarmTick(run=OTHER_RUN, tick=0))
        done.publish(TickDone(run=OTHER_RUN, tick=0, node="referee", verdict="done"))

    node.create_subscription(Odometry, "/uav_1/odometry", repeat, 10)
    print("here", flush=True)
    rclpy.spin(node)


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        sys.exit(0)
