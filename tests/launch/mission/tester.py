"""A mission completes, its launch ends with 0 and a picture, its bag passes the check; given again it flies again."""

from __future__ import annotations

import unittest
from typing import Any

import launch_testing
from scene import PATIENCE_S, SHORT, Scene

SCENE = Scene("episode", **SHORT, seed="3")


class Flying(unittest.TestCase):
    def test_it_comes_to_an_end(self, proc_info: Any) -> None:
        proc_info.assertWaitForShutdown(process=SCENE.process, timeout=PATIENCE_S)


@launch_testing.post_shutdown_test()
class Flown(unittest.TestCase):
    def test_1_launch_and_every_process_end_well(self, proc_info: Any, proc_output: Any) -> None:
        launch_testing.asserts.assertExitCodes(proc_info, process=SCENE.process)
        told = SCENE.told(proc_output)
        assert told.count("process has finished cleanly") == 8, told
        assert "backend auto: embedded" in told
        assert "1 flight to fly, about" in told
        assert "watch it: ros2 bag play" in told

    def test_2_the_episode_is_valid_and_its_bag_good(self) -> None:
        assert SCENE.record["result"]["valid"]
        assert SCENE.record["result"]["seed"] == 3
        SCENE.assert_good_bags()
        assert (
            SCENE.folder / "runs" / "episode" / f"{SCENE.record['result']['episode_id']}.png"
        ).stat().st_size > 10_000

    def test_3_given_again_in_one_process_with_raw_frames_it_has_a_folder_of_its_own(self) -> None:
        done = SCENE.again("composed:=true", "record_csi:=true")
        assert done.returncode == 0, done.stdout
        assert "holds this episode already: this flight goes to runs/episode-2" in done.stdout
        first, second = SCENE.records
        assert first["result"] == second["result"]
        assert second["run"]["bag_messages"] > first["run"]["bag_messages"]
        SCENE.assert_good_bags()
