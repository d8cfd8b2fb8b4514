"""One mission over a grid of CSI noise, and the report: ros2 launch sar_eval noise_sweep.launch.py."""

from launch import LaunchDescription

from sar_eval.ros.launchgraph import described


def generate_launch_description() -> LaunchDescription:
    return described("noise_sweep")
