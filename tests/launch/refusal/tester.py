"""What is wrong is named before any process starts."""

from __future__ import annotations

import unittest
from typing import Any

import launch_testing
from scene import PATIENCE_S, Scene

SCENE = Scene("episode", speed_factor="-1")


class Refusing(unittest.TestCase):
    def test_it_comes_to_an_end(self, proc_info: Any) -> None:
        proc_info.assertWaitForShutdown(process=SCENE.process, timeout=PATIENCE_S)


@launch_testing.post_shutdown_test()
class Refused(unittest.TestCase):
    def test_it_names_argument_value_and_range(self, proc_info: Any, proc_output: Any) -> None:
        told = SCENE.told(proc_output)
        assert proc_info[SCENE.process].returncode == 1
        assert "speed_factor = -1: allowed are 0 to 1000" in told
        assert "process started" not in told

    def test_others_are_named_too(self) -> None:
        for word, told in {
            "domain_id:=500": "domain_id = 500: allowed are 0 to 232",
            "sedd:=3": "there is no argument sedd; did you mean seed?",
            "num_drones:=x": "num_drones = 'x': give a whole number",
            "world:=atlantis": "atlantis",
        }.items():
            scene = Scene("episode", **dict([word.split(":=")]))
            done = scene.again()
            assert done.returncode == 1 and told in done.stdout, done.stdout
            assert "process started" not in done.stdout
