"""SIGINT ends the episode as interrupted and leaves a good bag; nobody has to be killed."""

from __future__ import annotations

import os
import signal
import time
import unittest
from typing import Any

import launch_testing
from launch import LaunchDescription
from scene import PATIENCE_S, Scene, described

SCENE = Scene(duration_s="600", speed_factor="1.0")


def generate_test_description() -> LaunchDescription:
    return described(SCENE)


class Flying(unittest.TestCase):
    def test_it_comes_to_an_end(self, proc_info: Any) -> None:
        SCENE.wait_for_start()
        time.sleep(3.0)
        os.kill(SCENE.process.process_details["pid"], signal.SIGINT)
        proc_info.assertWaitForShutdown(process=SCENE.process, timeout=PATIENCE_S)


@launch_testing.post_shutdown_test()
class Interrupted(unittest.TestCase):
    def test_the_episode_says_so(self) -> None:
        assert SCENE.record["result"]["invalid_reason"] == "interrupted"

    def test_the_bag_is_good(self) -> None:
        SCENE.assert_good_bag()

    def test_nobody_had_to_be_killed(self, proc_output: Any) -> None:
        told = SCENE.told(proc_output)
        assert "SIGTERM" not in told and "SIGKILL" not in told, told
