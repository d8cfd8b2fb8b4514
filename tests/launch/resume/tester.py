"""A campaign that was interrupted goes on: what was flown is not flown again; in the end there is a report."""

from __future__ import annotations

import unittest
from typing import Any

import launch_testing
from scene import PROMPT_S, SHORT, Scene, wait_for

SCENE = Scene("noise_sweep", **SHORT, sigma="0.1", kappa="4,1")


class Flying(unittest.TestCase):
    def test_it_is_interrupted_in_its_second_flight(self, proc_info: Any, proc_output: Any) -> None:
        SCENE.wait_for_words("2 of 2", proc_output)
        wait_for("the second bag", lambda: any(SCENE.folder.rglob("*kappa_1/*.partial")))
        assert SCENE.interrupt(proc_info) < PROMPT_S


@launch_testing.post_shutdown_test()
class Resumed(unittest.TestCase):
    def test_1_it_was_said_and_nothing_is_left(self, proc_output: Any) -> None:
        SCENE.assert_gone(SCENE.told(proc_output))

    def test_2_given_again_it_flies_the_other(self) -> None:
        first = next(r for r in SCENE.records if r["result"]["valid"])
        done = SCENE.again()
        assert done.returncode == 0, done.stdout
        assert "1 of 2 flown already; 1 flight to fly" in done.stdout
        assert [r["result"]["valid"] for r in SCENE.records] == [True, True]
        assert first in SCENE.records, "what was flown stays as it was"
        SCENE.assert_good_bags()

    def test_3_given_a_third_time_it_only_reports(self) -> None:
        report = SCENE.folder / "runs" / "noise_sweep" / "report" / "RESULTS.md"
        report.unlink()
        done = SCENE.again()
        assert done.returncode == 0, done.stdout
        assert "2 of 2 flown already; nothing left to fly" in done.stdout
        assert report.is_file() and f"read {report.relative_to(SCENE.folder)}" in done.stdout
