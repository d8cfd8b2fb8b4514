"""One episode as a ROS 2 graph: ros2 launch sar_eval episode.launch.py world:=village seed:=3."""

from launch import LaunchDescription

from sar_eval.launchargs import EPISODE
from sar_eval.launchgraph import described, refuse_invalid


def generate_launch_description() -> LaunchDescription:
    return described(EPISODE, ending=refuse_invalid)
