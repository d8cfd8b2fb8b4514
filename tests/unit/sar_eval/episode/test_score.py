"""What the referee's part makes of flights told by hand: coverage, path, endings, and what spoils an episode."""

from __future__ import annotations

import math

import pytest

from sar_eval.episode.operator import RETURN_LIMIT_S, Orders
from sar_eval.episode.score import LANDING_MPS
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_sim.judging.referee import Event
from sar_swarm.piloting.controller import Order, Phase
from sar_swarm.piloting.failsafe import Failsafe
from tests.unit.sar_eval.episode.madescore import TICK_S, Told

PLACES = ([0.0, 0.0, 10.0], [40.0, 0.0, 10.0])
STILL, EAST = ([0.0, 0.0, 0.0],) * 2, ([5.0, 0.0, 0.0],) * 2
SEARCHING = Orders(Order.SEARCH, 0.0)


@pytest.fixture(scope="module")
def episode() -> Episode:
    return prepare(Scenario(world="open_field", drones=2, radio=None, duration_s=60.0), 0, 0)


@pytest.fixture
def told(episode: Episode) -> Told:
    return Told(episode, PLACES)


def test_path_counts_always_and_coverage_only_inside_the_search(told: Told) -> None:
    for _ in range(40):
        told.move(EAST)
        told.note(Orders(Order.TAKE_OFF), told.stand(Phase.TAKEOFF))
    assert told.score.coverage.fraction == 0.0 and told.score.search_time_s == 0.0
    assert told.score.flown_m == pytest.approx([10.0, 10.0])
    told.search(2.0, EAST, told.time_s)
    searched = told.score.coverage.fraction
    assert searched > 0.0 and told.score.scanned.sum() == told.score.coverage.scanned_cells
    for _ in range(40):
        told.move(EAST)
        told.note(Orders(Order.RETURN, 2.0, 4.0), told.stand(Phase.RETURN))
    assert told.score.coverage.fraction == pytest.approx(searched, abs=0.002)
    assert told.score.search_time_s == 2.0 and told.score.flown_m == pytest.approx([30.0, 30.0])


@pytest.mark.parametrize(("sink_mps", "kinds"), [(LANDING_MPS - 0.5, set()), (LANDING_MPS + 0.5, {"drone_ground"})])
def test_who_comes_down_too_fast_crashes_and_does_not_land(episode: Episode, sink_mps: float, kinds: set[str]) -> None:
    told = Told(episode, ([0.0, 0.0, 1.0], [40.0, 0.0, 10.0]))
    found: list[Event] = []
    for _ in range(40):
        found += told.move(([0.0, 0.0, -sink_mps if told.place[0, 2] > 0.0 else 0.0], [0.0, 0.0, 0.0]))
        told.note(Orders(Order.RETURN, 0.0, 0.0), told.stand(Phase.LAND, Phase.RETURN))
    assert {event.kind.value for event in found} == kinds


def test_it_is_over_when_all_are_down_wherever_they_lie(told: Told) -> None:
    returning = Orders(Order.RETURN, 0.0, 1.0)
    told.move(STILL)
    told.note(returning, told.stand(Phase.LANDED, Phase.RETURN))
    assert not told.score.done
    fallen = (Failsafe.NOMINAL, Failsafe.CONTROLLED_DESCENT)
    told.move(([0.0, 0.0, 0.0], [0.0, 0.0, -1.0]))
    told.note(returning, told.stand(Phase.LANDED, Phase.RETURN, failsafe=fallen))
    assert not told.score.done, "it still falls"
    told.move(STILL)
    told.note(returning, told.stand(Phase.LANDED, Phase.RETURN, failsafe=fallen))
    assert told.score.done and told.score.orders.invalid_reason == ""
    assert told.score.failsafes == [(pytest.approx(2 * TICK_S, abs=0.01), 1, Failsafe.CONTROLLED_DESCENT)]


def test_nobody_waits_for_ever_for_a_return(told: Told) -> None:
    told.move(STILL)
    told.note(Orders(Order.RETURN, -RETURN_LIMIT_S - 1.0, -RETURN_LIMIT_S), told.stand(Phase.RETURN))
    assert told.score.done


def test_the_first_thing_that_spoils_it_stays(told: Told) -> None:
    assert told.move(([math.nan, 0.0, 0.0], [0.0, 0.0, 0.0])) == []
    assert told.score.done and told.score.orders.invalid_reason == "truth_not_finite"
    told.score.spoil("interrupted")
    told.note(Orders(Order.SEARCH, 0.0, invalid_reason="takeoff_timeout"), told.stand(Phase.SEARCH))
    assert told.score.orders.invalid_reason == "truth_not_finite" and not told.score.status().valid


def test_a_swarm_that_lands_before_it_searched_is_invalid(told: Told) -> None:
    told.move(STILL)
    told.note(Orders(Order.TAKE_OFF), told.stand(Phase.LANDED))
    assert told.score.orders.invalid_reason == "never_searched"


def test_progress_is_told_as_it_stands(told: Told) -> None:
    told.search(1.0, EAST, 0.0)
    told.landed[1] = True
    told.move(STILL)
    status = told.score.status()
    assert status.search_time_s == pytest.approx(told.time_s) and status.coverage == told.score.coverage.fraction
    assert (status.valid, status.collisions, told.score.searching) == (True, 0, True)
