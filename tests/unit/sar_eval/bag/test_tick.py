"""What a tick hands to the referee and to a message."""

from __future__ import annotations

import math
from types import SimpleNamespace

from sar_eval.bag.tick import Heard, dilutions
from sar_sim.judging.scoring import Hearing, Report


def seen(drone: int, address: int, usable: bool) -> SimpleNamespace:
    return SimpleNamespace(drone=drone, address=address, usable=usable)


def test_hearings_are_who_heard_whom_drone_by_drone() -> None:
    heard = Heard(observations=[[seen(0, 7, True), seen(0, 9, False)], [], [seen(2, 7, True)]])  # type: ignore[list-item]
    assert heard.hearings == [Hearing(0, 7, True), Hearing(0, 9, False), Hearing(2, 7, True)]
    assert Heard().hearings == []


def test_a_dilution_that_is_not_defined_is_no_number_in_a_message() -> None:
    told = dilutions(Report(1.0, 0, 7, 0.0, 0.0, 0.9, path_gdop=1.5, information_dop_m=4.0))
    assert told[0] == 1.5 and math.isnan(told[1]) and told[2] == 4.0
