"""The command as it was promised: nothing is given, nothing is compiled."""

from launch import LaunchDescription
from scene import described
from tester import SCENE, Flown, Flying

__all__ = ["Flown", "Flying", "generate_test_description"]


def generate_test_description() -> LaunchDescription:
    return described(SCENE)
