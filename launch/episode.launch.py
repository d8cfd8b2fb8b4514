"""One episode as a ROS 2 graph, and its picture: ros2 launch sar_eval episode.launch.py world:=village seed:=3."""

from launch import LaunchDescription

from sar_eval.ros.launchgraph import described


def generate_launch_description() -> LaunchDescription:
    return described("episode")
