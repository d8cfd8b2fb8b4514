"""Two launches side by side."""

from launch import LaunchDescription
from scene import described
from tester import SCENES, Flown, Flying

__all__ = ["Flown", "Flying", "generate_test_description"]


def generate_test_description() -> LaunchDescription:
    return described(*SCENES)
