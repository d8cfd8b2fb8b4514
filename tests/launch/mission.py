"""A mission completes, every node ends with 0, and the bag passes its check."""

from __future__ import annotations

import unittest
from typing import Any

import launch_testing
from launch import LaunchDescription
from scene import Scene, described

SCENE = Scene(seed="3")


def generate_test_description() -> LaunchDescription:
    return described(SCENE)


class Flying(unittest.TestCase):
    def test_it_comes_to_an_end(self) -> None:
        SCENE.wait_for_end()


@launch_testing.post_shutdown_test()
class Flown(unittest.TestCase):
    def test_every_node_ends_well(self, proc_info: Any) -> None:
        assert len(proc_info.processes()) == 6
        launch_testing.asserts.assertExitCodes(proc_info)

    def test_the_episode_is_valid_and_its_bag_good(self) -> None:
        assert SCENE.record["result"]["valid"]
        assert SCENE.record["result"]["seed"] == 3
        SCENE.assert_good_bag()
