"""Stage 1, its median seeds in flight, and the report: ros2 launch sar_eval median_seeds.launch.py.

Given again it goes on; seeds_file:=stage1.jsonl takes Stage-1 results as they are.
"""

from launch import LaunchDescription

from sar_eval.ros.launchgraph import described


def generate_launch_description() -> LaunchDescription:
    return described("median_seeds")
