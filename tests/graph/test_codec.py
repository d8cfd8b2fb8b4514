"""What crosses processes comes back as it went in, undefined numbers as undefined."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from sar_eval.bag.tick import Beliefs, DroneStatuses, Heard, VictimReport
from sar_eval.episode.swarm import SwarmTick
from sar_sim.judging.scoring import Hearing, Report


@pytest.mark.parametrize(
    "report",
    [
        Report(3.05, 1, 2**48 - 1, 4.1, -5.2, 0.9, 1.5, 1.25, 2.5, 3),
        Report(3.05, 0, 7, 4.1, -5.2, 0.1, None, None, 2.5, 1),
        Report(3.05, 0, 7, 4.1, -5.2, 0.1, None, 1.25),
    ],
    ids=["all defined", "no geometry", "defaults"],
)
def test_what_was_reported_and_heard_comes_back_bit_for_bit(report: Report) -> None:
    from sar_eval.ros.codec import read_heard, read_reports, swarm_message

    found = VictimReport(report, cast(Any, SimpleNamespace(track=5)))
    seen = [SimpleNamespace(drone=1, address=2**48 - 1, usable=True), SimpleNamespace(drone=1, address=9, usable=False)]
    heard = Heard(observations=cast(Any, [[], seen]))
    beliefs = Beliefs(np.zeros((0, 3)), np.zeros((0, 0)))
    message = swarm_message(1, 61, SwarmTick([], DroneStatuses((), (), ()), heard, [found, found], beliefs), None)
    assert read_reports(message) == [report, report]
    assert read_heard(message) == [Hearing(1, 2**48 - 1, True), Hearing(1, 9, False)]
