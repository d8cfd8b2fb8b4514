"""The median seeds of Stage-1 results, each on every episode, and the report of their bags.

ros2 launch sar_eval median_seeds.launch.py seeds_file:=stage1.jsonl bag_dir:=runs/median
"""

from launch import LaunchDescription

from sar_eval.launchargs import MEDIAN_SEEDS
from sar_eval.launchgraph import described, report


def generate_launch_description() -> LaunchDescription:
    return described(MEDIAN_SEEDS, ending=report)
