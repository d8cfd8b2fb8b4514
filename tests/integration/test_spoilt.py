"""A flight that its world spoils: INVALID with the reason, and a bag that is whole up to that moment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from sar_eval.bagcheck import check_bag
from sar_eval.config import Scenario, prepare
from sar_eval.episode import fly_episode
from sar_eval.scribe import REPORT_TICKS
from sar_eval.simulator import SimTick, Simulator, SpoiltError
from sar_swarm.controller import Command


class Frail(Simulator):
    """The embedded simulator, which breaks in one tick."""

    breaks_in = 0

    def step(self, commands: Sequence[Command], search_begin_s: float) -> SimTick:
        if self.tick + 1 == self.breaks_in:
            raise SpoiltError("vehicle_lost", "vehicle 1 ended")
        return super().step(commands, search_begin_s)


@pytest.mark.parametrize("tick", [1, REPORT_TICKS, REPORT_TICKS + 1, 5 * REPORT_TICKS + 1, 5 * REPORT_TICKS + 7])
def test_the_bag_is_whole_in_whichever_tick_it_happens(tick: int, tmp_path: Path) -> None:
    """Right after a report too, when the second it ended was written already."""
    episode = prepare(Scenario(world="open_field", drones=2, duration_s=20.0), 0, 0)
    world = Frail(episode)
    world.breaks_in = tick
    record = fly_episode(episode, tmp_path / "bag", world=world)
    assert (record.result["valid"], record.result["invalid_reason"]) == (False, "vehicle_lost")
    assert record.run["invalid_detail"] == "vehicle 1 ended"
    report = check_bag(tmp_path / "bag")
    assert report.ok, report.findings
