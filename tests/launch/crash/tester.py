"""A node that dies ends the episode as INVALID, by name; nothing hangs, and what was recorded is good."""

from __future__ import annotations

import os
import signal
import time
import unittest
from typing import Any

import launch_testing
from scene import PATIENCE_S, SHORT, Scene

SCENE = Scene("episode", **{**SHORT, "duration_s": "600"}, speed_factor="1.0")


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

    def test_launch_fails_and_says_why_who_and_where_the_bag_is(self, proc_info: Any, proc_output: Any) -> None:
        assert proc_info[SCENE.process].returncode == 1
        told = SCENE.told(proc_output)
        assert f"is INVALID (lockstep_timeout); silent: csi, bag {SCENE.record['run']['bag']}" in told

    def test_what_was_recorded_is_good(self) -> None:
        SCENE.assert_good_bags()
