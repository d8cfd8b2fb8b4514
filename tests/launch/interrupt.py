"""SIGINT, which is how launch ends its nodes, ends the episode as interrupted and leaves a good bag."""

from __future__ import annotations

import time
import unittest
from typing import Any

import launch_testing
from launch import LaunchDescription
from scene import Scene, described

SCENE = Scene(duration_s="600", speed_factor="1.0")


def generate_test_description() -> LaunchDescription:
    return described(SCENE)


class Flying(unittest.TestCase):
    def test_it_is_under_way(self) -> None:
        SCENE.wait_for_start()
        time.sleep(3.0)


@launch_testing.post_shutdown_test()
class Interrupted(unittest.TestCase):
    def test_the_episode_says_so(self) -> None:
        assert SCENE.record["result"]["invalid_reason"] == "interrupted"

    def test_the_bag_is_good(self) -> None:
        SCENE.assert_good_bag()

    def test_nobody_had_to_be_killed(self, proc_info: Any) -> None:
        codes = {name: proc_info[name].returncode for name in proc_info.process_names()}
        assert set(codes.values()) <= {0, 3}, codes
