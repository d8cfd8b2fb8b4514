"""`ros2 launch sar_eval median_seeds.launch.py` does the whole of it, on a cold cache and with the default limits."""

from __future__ import annotations

import unittest
from typing import Any

import launch_testing
from scene import Scene

SCENE = Scene("median_seeds", cache="cold")
PATIENCE_S = 3000.0


class Flying(unittest.TestCase):
    def test_it_comes_to_an_end(self, proc_info: Any) -> None:
        proc_info.assertWaitForShutdown(process=SCENE.process, timeout=PATIENCE_S)


@launch_testing.post_shutdown_test()
class Flown(unittest.TestCase):
    def test_it_says_what_it_does(self, proc_info: Any, proc_output: Any) -> None:
        launch_testing.asserts.assertExitCodes(proc_info, process=SCENE.process)
        told = SCENE.told(proc_output)
        for said in (
            "7 of 7 groups of kernels compiled",
            "4000 Stage-1 episodes",
            "the median seeds are",
            "village-v2: 3 seeds x 2 episodes x 1 pattern; 6 flights to fly, about",
            "read runs/median_seeds/report/RESULTS.md, look at runs/median_seeds/report/report.html",
        ):
            assert said in told, told

    def test_all_missions_count_and_their_bags_are_good(self) -> None:
        assert [r["result"]["valid"] for r in SCENE.records] == [True] * 6
        SCENE.assert_good_bags()

    def test_the_report_is_there(self) -> None:
        report = SCENE.folder / "runs" / "median_seeds" / "report"
        assert "Stage 2 (embedded)" in (report / "RESULTS.md").read_text()
        assert (report / "report.html").is_file()
