"""A node that dies ends the episode as INVALID, by name; nothing hangs, and what was recorded is good."""

from __future__ import annotations

import os
import signal
import time
import unittest
from typing import Any

import launch_testing
from launch import LaunchDescription
from scene import PATIENCE_S, Scene, described

SCENE = Scene(duration_s="600", speed_factor="1.0", lockstep_timeout_s="5.0")


def generate_test_description() -> LaunchDescription:
    return described(SCENE)


class Crashing(unittest.TestCase):
    def test_it_comes_to_an_end(self, proc_info: Any) -> None:
        SCENE.wait_for_start()
        time.sleep(2.0)
        os.kill(SCENE.node("csi"), signal.SIGKILL)
        proc_info.assertWaitForShutdown(process=SCENE.process, timeout=PATIENCE_S)


@launch_testing.post_shutdown_test()
class Crashed(unittest.TestCase):
    def test_the_episode_is_invalid_and_names_the_node(self) -> None:
        record = SCENE.record
        assert record["result"]["invalid_reason"] == "lockstep_timeout"
        assert not record["result"]["valid"]
        assert record["run"]["silent"] == ["csi"]

    def test_launch_fails_and_says_why(self, proc_info: Any, proc_output: Any) -> None:
        assert proc_info[SCENE.process].returncode == 1
        assert "is INVALID (lockstep_timeout)" in SCENE.told(proc_output)

    def test_what_was_recorded_is_good(self) -> None:
        SCENE.assert_good_bag()
