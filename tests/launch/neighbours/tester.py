"""Two launches on one host do not hear each other."""

from __future__ import annotations

import unittest
from typing import Any

import launch_testing
from scene import PATIENCE_S, SHORT, Scene

SCENES = tuple(Scene("episode", **SHORT, seed=seed) for seed in ("1", "2"))


class Flying(unittest.TestCase):
    def test_both_come_to_an_end(self, proc_info: Any) -> None:
        for scene in SCENES:
            proc_info.assertWaitForShutdown(process=scene.process, timeout=PATIENCE_S)


@launch_testing.post_shutdown_test()
class Flown(unittest.TestCase):
    def test_each_is_valid_and_met_no_stranger(self) -> None:
        for scene, seed in zip(SCENES, (1, 2), strict=True):
            record = scene.record
            assert record["result"]["valid"] and record["result"]["seed"] == seed
            assert record["run"]["diagnostics"] == {}
            scene.assert_good_bags()
