"""A launch with a value that no node would take."""

from launch import LaunchDescription
from scene import described
from tester import SCENE, Refused, Refusing

__all__ = ["Refused", "Refusing", "generate_test_description"]


def generate_test_description() -> LaunchDescription:
    return described(SCENE)
