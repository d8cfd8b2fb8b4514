"""A launch on a machine without compiled kernels, interrupted while it compiles."""

from launch import LaunchDescription
from scene import described
from tester import SCENE, Compiling, Interrupted

__all__ = ["Compiling", "Interrupted", "generate_test_description"]


def generate_test_description() -> LaunchDescription:
    return described(SCENE)
