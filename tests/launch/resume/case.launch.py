"""A small noise sweep, interrupted in its second flight."""

from launch import LaunchDescription
from scene import described
from tester import SCENE, Flying, Resumed

__all__ = ["Flying", "Resumed", "generate_test_description"]


def generate_test_description() -> LaunchDescription:
    return described(SCENE)
