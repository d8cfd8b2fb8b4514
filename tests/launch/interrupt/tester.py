"""SIGINT to launch alone ends the episode within seconds as interrupted and leaves a good bag; nobody is killed."""

from __future__ import annotations

import time
import unittest
from typing import Any

import launch_testing
from scene import PROMPT_S, SHORT, Scene

SCENE = Scene("episode", **{**SHORT, "duration_s": "600"}, speed_factor="1.0")


class Flying(unittest.TestCase):
    def test_it_ends_within_seconds(self, proc_info: Any) -> None:
        SCENE.wait_for_start()
        time.sleep(3.0)
        assert SCENE.interrupt(proc_info) < PROMPT_S


@launch_testing.post_shutdown_test()
class Interrupted(unittest.TestCase):
    def test_the_episode_says_so_and_its_bag_is_good(self) -> None:
        assert SCENE.record["result"]["invalid_reason"] == "interrupted"
        SCENE.assert_good_bags()

    def test_it_was_said_and_nothing_is_left(self, proc_output: Any) -> None:
        SCENE.assert_gone(SCENE.told(proc_output))
