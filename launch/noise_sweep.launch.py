"""One mission over a grid of CSI noise, and the report of its bags.

ros2 launch sar_eval noise_sweep.launch.py sigma:=0.0,0.1,0.4 kappa:=32,4,1 bag_dir:=runs/sweep
"""

from launch import LaunchDescription

from sar_eval.launchargs import NOISE_SWEEP
from sar_eval.launchgraph import described, report


def generate_launch_description() -> LaunchDescription:
    return described(NOISE_SWEEP, ending=report)
