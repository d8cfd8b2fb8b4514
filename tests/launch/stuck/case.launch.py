"""A flight in real time, of which a node stops for good without dying."""

from launch import LaunchDescription
from scene import described
from tester import SCENE, Ended, Stopping

__all__ = ["Ended", "Stopping", "generate_test_description"]


def generate_test_description() -> LaunchDescription:
    return described(SCENE)
