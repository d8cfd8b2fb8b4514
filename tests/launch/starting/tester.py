"""SIGINT while nodes import ends them without a traceback, and the episode is interrupted, not timed out."""

from __future__ import annotations

import unittest
from typing import Any

import launch_testing
from scene import PROMPT_S, SHORT, Scene, processes_in, wait_for

SCENE = Scene("episode", **SHORT)


class Starting(unittest.TestCase):
    def test_it_ends_within_seconds(self, proc_info: Any) -> None:
        wait_for("nodes", lambda: any("manager_node" in words for _, words in processes_in(SCENE.folder)))
        assert SCENE.interrupt(proc_info) < PROMPT_S


@launch_testing.post_shutdown_test()
class Interrupted(unittest.TestCase):
    def test_it_was_said_and_nothing_is_left(self, proc_output: Any) -> None:
        SCENE.assert_gone(SCENE.told(proc_output))
        assert SCENE.record["result"]["invalid_reason"] == "interrupted"
        assert not list(SCENE.folder.rglob("*.partial"))
