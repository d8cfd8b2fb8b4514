"""On a cold cache a launch says that it compiles, and SIGINT ends it within seconds."""

from __future__ import annotations

import unittest
from typing import Any

import launch_testing
from scene import PROMPT_S, Scene

SCENE = Scene("median_seeds", cache="cold")


class Compiling(unittest.TestCase):
    def test_it_says_what_it_does_and_ends_within_seconds(self, proc_info: Any, proc_output: Any) -> None:
        SCENE.wait_for_words("compiling 1 of 7", proc_output)
        assert SCENE.interrupt(proc_info) < PROMPT_S


@launch_testing.post_shutdown_test()
class Interrupted(unittest.TestCase):
    def test_it_was_said_and_nothing_is_left(self, proc_output: Any) -> None:
        SCENE.assert_gone(SCENE.told(proc_output))
        assert not SCENE.records
