"""A node that neither answers nor dies is named, and ended with the rest."""

from __future__ import annotations

import os
import signal
import time
import unittest
from typing import Any

import launch_testing
from scene import PATIENCE_S, SHORT, Scene, processes_in

SCENE = Scene("episode", **{**SHORT, "duration_s": "600"}, speed_factor="1.0")


class Stopping(unittest.TestCase):
    def test_it_comes_to_an_end(self, proc_info: Any) -> None:
        SCENE.wait_for_start()
        time.sleep(2.0)
        os.kill(SCENE.node("csi"), signal.SIGSTOP)
        proc_info.assertWaitForShutdown(process=SCENE.process, timeout=PATIENCE_S)


@launch_testing.post_shutdown_test()
class Ended(unittest.TestCase):
    def test_the_node_is_named_and_gone_and_the_bag_good(self, proc_output: Any) -> None:
        assert "is INVALID (lockstep_timeout); silent: csi, bag" in SCENE.told(proc_output)
        assert processes_in(SCENE.folder) == []
        SCENE.assert_good_bags()
