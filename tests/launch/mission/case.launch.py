"""Two drones in the village for 20 s."""

from launch import LaunchDescription
from scene import described
from tester import SCENE, Flown, Flying

__all__ = ["Flown", "Flying", "generate_test_description"]


def generate_test_description() -> LaunchDescription:
    return described(SCENE)
