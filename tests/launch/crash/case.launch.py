"""A flight in real time, of which a node is killed."""

from launch import LaunchDescription
from scene import described
from tester import SCENE, Crashed, Crashing

__all__ = ["Crashed", "Crashing", "generate_test_description"]


def generate_test_description() -> LaunchDescription:
    return described(SCENE)
