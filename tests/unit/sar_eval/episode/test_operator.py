"""Orders follow the clock and the drones; each boundary by hand."""

from __future__ import annotations

import math

import pytest

from sar_eval.bag.tick import DroneStatuses
from sar_eval.episode.operator import (
    AT_ALTITUDE_M,
    RETURN_LIMIT_S,
    STANDING_S,
    TAKEOFF_LIMIT_S,
    Orders,
    direct,
)
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_swarm.piloting.controller import Order, Phase
from sar_swarm.piloting.failsafe import Failsafe

SEARCHING = Orders(Order.SEARCH, 20.0)


@pytest.fixture(scope="module")
def episode() -> Episode:
    return prepare(Scenario(drones=2, radio=None, altitude_m=30.0, duration_s=100.0), 0, 0)


def drones(finished: tuple[bool, bool] = (False, False), *failsafe: Failsafe) -> DroneStatuses:
    return DroneStatuses((Phase.SEARCH,) * 2, failsafe or (Failsafe.NOMINAL,) * 2, finished)


def test_all_stand_a_second_before_they_take_off(episode: Episode) -> None:
    assert direct(Orders(), episode, STANDING_S - 0.01, 0.0, drones()) == Orders()
    assert direct(Orders(), episode, STANDING_S, 0.0, drones()).order is Order.TAKE_OFF


def test_the_search_begins_when_the_lowest_is_up(episode: Episode) -> None:
    taking_off = Orders(Order.TAKE_OFF)
    assert direct(taking_off, episode, 9.0, 30.0 - AT_ALTITUDE_M, drones()) == taking_off
    assert direct(taking_off, episode, 9.0, 30.0 - AT_ALTITUDE_M + 1e-6, drones()) == Orders(Order.SEARCH, 9.0)


def test_who_never_gets_up_spoils_the_episode_and_not_before(episode: Episode) -> None:
    taking_off = Orders(Order.TAKE_OFF)
    assert direct(taking_off, episode, TAKEOFF_LIMIT_S, 0.0, drones()) == taking_off
    late = direct(taking_off, episode, TAKEOFF_LIMIT_S + 0.05, 0.0, drones())
    assert (late.order, late.invalid_reason) == (Order.TAKE_OFF, "takeoff_timeout")
    assert not direct(taking_off, episode, TAKEOFF_LIMIT_S + 0.05, 30.0, drones()).invalid_reason


def test_the_search_ends_with_its_time(episode: Episode) -> None:
    assert direct(SEARCHING, episode, 119.95, 30.0, drones()) == SEARCHING
    assert direct(SEARCHING, episode, 120.0, 30.0, drones()) == Orders(Order.RETURN, 20.0, 120.0)


@pytest.mark.parametrize(
    ("statuses", "over"),
    [
        (drones((True, True)), True),
        (drones((True, False)), False),
        (drones((True, False), Failsafe.NOMINAL, Failsafe.RETURN_TO_HOME), True),
        (drones((False, False), Failsafe.EMERGENCY_LAND, Failsafe.CONTROLLED_DESCENT), True),
        (drones((True, False), Failsafe.NOMINAL, Failsafe.AUTONOMOUS_HOLD), False),
        (drones((True, False), Failsafe.NOMINAL, Failsafe.LOW_BATTERY_WARN), False),
    ],
)
def test_it_ends_before_when_nobody_searches_any_more(statuses: DroneStatuses, over: bool, episode: Episode) -> None:
    """Who holds or warns may go on."""
    assert (direct(SEARCHING, episode, 50.0, 30.0, statuses).order is Order.RETURN) is over


def test_the_way_home_is_the_last_order(episode: Episode) -> None:
    home = Orders(Order.RETURN, 20.0, 120.0)
    assert direct(home, episode, 500.0, 0.0, drones((True, True))) == home
    assert not home.overdue(120.0 + RETURN_LIMIT_S) and home.overdue(120.01 + RETURN_LIMIT_S)
    assert not SEARCHING.overdue(math.inf)


def test_search_time_stands_still_before_and_after_the_search() -> None:
    home = Orders(Order.RETURN, 20.0, 120.0)
    assert [Orders().search_time_s(9.0), SEARCHING.search_time_s(25.0), home.search_time_s(500.0)] == [0.0, 5.0, 100.0]
