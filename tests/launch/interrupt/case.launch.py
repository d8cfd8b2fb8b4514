"""A flight in real time, whose launch is interrupted."""

from launch import LaunchDescription
from scene import described
from tester import SCENE, Flying, Interrupted

__all__ = ["Flying", "Interrupted", "generate_test_description"]


def generate_test_description() -> LaunchDescription:
    return described(SCENE)
