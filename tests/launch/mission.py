"""A mission completes, its launch ends with 0, and its bag passes the check."""

from __future__ import annotations

import unittest
from typing import Any

import launch_testing
from launch import LaunchDescription
from scene import PATIENCE_S, Scene, described

SCENE = Scene(seed="3")


def generate_test_description() -> LaunchDescription:
    return described(SCENE)


class Flying(unittest.TestCase):
    def test_it_comes_to_an_end(self, proc_info: Any) -> None:
        proc_info.assertWaitForShutdown(process=SCENE.process, timeout=PATIENCE_S)


@launch_testing.post_shutdown_test()
class Flown(unittest.TestCase):
    def test_launch_and_every_node_end_well(self, proc_info: Any, proc_output: Any) -> None:
        launch_testing.asserts.assertExitCodes(proc_info, process=SCENE.process)
        told = SCENE.told(proc_output)
        assert told.count("process has finished cleanly") == 6, told
        assert "backend auto: embedded" in told

    def test_the_episode_is_valid_and_its_bag_good(self) -> None:
        assert SCENE.record["result"]["valid"]
        assert SCENE.record["result"]["seed"] == 3
        SCENE.assert_good_bag()
