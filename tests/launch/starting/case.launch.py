"""A launch interrupted while its nodes still import."""

from launch import LaunchDescription
from scene import described
from tester import SCENE, Interrupted, Starting

__all__ = ["Interrupted", "Starting", "generate_test_description"]


def generate_test_description() -> LaunchDescription:
    return described(SCENE)
