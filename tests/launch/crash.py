"""A node that dies ends the episode as INVALID, by name; nothing hangs, and what was recorded is good."""

from __future__ import annotations

import os
import signal
import time
import unittest

import launch_testing
from launch import LaunchDescription
from scene import Scene, described, node_process

LOCKSTEP_TIMEOUT_S = 5.0
SCENE = Scene(duration_s="600", speed_factor="1.0", lockstep_timeout_s=str(LOCKSTEP_TIMEOUT_S))


def generate_test_description() -> LaunchDescription:
    return described(SCENE)


class Crashing(unittest.TestCase):
    def test_it_comes_to_an_end(self) -> None:
        SCENE.wait_for_start()
        time.sleep(2.0)
        os.kill(node_process("csi"), signal.SIGKILL)
        SCENE.wait_for_end()


@launch_testing.post_shutdown_test()
class Crashed(unittest.TestCase):
    def test_the_episode_is_invalid_and_names_the_node(self) -> None:
        record = SCENE.record
        assert not record["result"]["valid"]
        assert record["result"]["invalid_reason"] == "lockstep_timeout"
        assert record["run"]["silent"] == ["csi"]

    def test_what_was_recorded_is_good(self) -> None:
        SCENE.assert_good_bag()
