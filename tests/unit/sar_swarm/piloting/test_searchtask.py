"""Where a searching drone goes next: routes, what a lost drone left, and looks at hypotheses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from sar_swarm.piloting.failsafe import Failsafe
from sar_swarm.piloting.patterns import fixed_route
from sar_swarm.piloting.pursuit import Hypothesis, PursuitConfig
from sar_swarm.piloting.searchtask import Knowledge, Mission, SearchTask, arrive, choose, inherit, lost

Floats = NDArray[np.float64]

AREA = (-200.0, -200.0, 200.0, 200.0)


def mission(index: int, drones: int = 4, pattern: str = "partitioned_lawnmower", **more: PursuitConfig) -> Mission:
    routes = [fixed_route(pattern, AREA, drones, i, 28.0, 0.1) for i in range(drones)]
    known = tuple(route for route in routes if route is not None)
    return Mission(index, drones, pattern, AREA, 28.0, (0, 0), known, **more)


def heard(drones: int, me: int, time_s: float, legs: int = 0) -> Floats:
    """Everyone heard just now, healthy, in the middle of nowhere near."""
    rows = np.zeros((drones, 9))
    rows[:, 0] = 60.0 * np.arange(drones) - 100.0
    rows[:, 6] = time_s
    rows[:, 8] = legs
    rows[me] = math.nan
    return rows


def know(
    time_s: float, others: Floats, position: tuple[float, float] = (0.0, 0.0), trusts: bool = True, *ideas: Hypothesis
) -> Knowledge:
    return Knowledge(time_s, np.array([*position, 30.0]), others, ideas, trusts)


def test_a_route_is_flown_point_by_point_and_then_done() -> None:
    told, task = mission(1), SearchTask()
    for k, point in enumerate(told.routes[1]):
        task, spot = choose(told, task, know(float(k), heard(4, 1, float(k))))
        assert spot == pytest.approx(tuple(point))
        task = arrive(task)
    assert choose(told, task, know(99.0, heard(4, 1, 99.0)))[1] is None


@pytest.mark.parametrize("how", ["silent", "never heard", "returns", "falls"])
def test_what_a_lost_drone_had_left_is_shared_by_the_others_without_a_hole(how: str) -> None:
    """Drone 2 drops out after 3 of its points: every point it still had is flown by one of the others."""
    left = mission(0).routes[2][3:] if how != "never heard" else mission(0).routes[2]
    taken: list[tuple[float, float]] = []
    for me in (0, 1, 3):
        others = heard(4, me, 50.0)
        others[2, 8] = 3.0
        if how == "silent":
            others[2, 6] = 44.0
        elif how == "never heard":
            others[2] = math.nan
        else:
            others[2, 7] = Failsafe.RETURN_TO_HOME if how == "returns" else Failsafe.CONTROLLED_DESCENT
        task = inherit(mission(me), SearchTask(), know(50.0, others))
        assert [loss.drone for loss in task.losses] == [2]
        taken += [tuple(point) for point in task.inherited]
    assert {tuple(point) for point in left} <= set(taken)
    assert len(taken) < len(left) + 2 * 3


def test_the_heir_of_a_lost_drone_is_inherited_in_turn() -> None:
    """Drone 2 is lost, then drone 1 before it flew its share: the last two cover both."""
    taken = set()
    for me in (0, 3):
        others = heard(4, me, 50.0)
        others[2, 6] = 40.0
        task = inherit(mission(me), SearchTask(), know(50.0, others))
        others = heard(4, me, 90.0)
        others[2, 6] = 40.0
        others[1, 6] = 80.0
        task = inherit(mission(me), task, know(90.0, others))
        assert [loss.drone for loss in task.losses] == [2, 1]
        taken |= {tuple(point) for point in task.inherited}
    needed = np.vstack([mission(0).routes[1], mission(0).routes[2]])
    assert {tuple(point) for point in needed} <= taken


def test_a_drone_that_hears_nobody_does_not_fly_everyone_elses_strip() -> None:
    others = heard(4, 0, 10.0)
    task, _ = choose(mission(0), SearchTask(), know(60.0, others, trusts=False))
    assert len(task.inherited) == 0


def test_news_of_a_few_seconds_ago_is_no_loss() -> None:
    others = heard(4, 0, 60.0)
    others[2, 6] = 56.0
    assert lost(others, 0, 60.0) == []


def test_after_a_look_the_drone_comes_back_to_where_it_left() -> None:
    """A confident hypothesis pulls the nearest drone off its lane; done with it, it first returns to the same place."""
    told = mission(0, drones=1, pursuit=PursuitConfig())
    idea = Hypothesis(7, 30.0, 40.0, 0.95, 2.0)
    alone = np.full((1, 9), np.nan)
    task, first = choose(told, SearchTask(), know(0.0, alone, (5.0, 5.0)))
    task, station = choose(told, task, know(1.0, alone, (5.0, 5.0), True, idea))
    assert station is not None and station != first
    assert math.dist(station, (30.0, 40.0)) < 25.0
    time_s, back = 1.0, station
    while back == station and time_s < 120.0:
        time_s += 1.0
        task, spot = choose(told, task, know(time_s, alone, station, True, idea))
        assert spot is not None
        back = spot
    assert back == pytest.approx((5.0, 5.0))
    task, onward = choose(told, arrive(task), know(time_s + 1.0, alone, (5.0, 5.0), True, idea))
    assert onward == pytest.approx(first)


@pytest.mark.parametrize("pattern", ["pheromone", "potential_field", "levy_flight", "random_walk"])
def test_reactive_patterns_never_run_out_of_places(pattern: str) -> None:
    told, task, here = mission(1, pattern=pattern), SearchTask(), (0.0, -150.0)
    for k in range(40):
        task, spot = choose(told, task, know(float(k), heard(4, 1, float(k)), here))
        assert spot is not None
        assert -200.0 <= spot[0] <= 200.0 and -200.0 <= spot[1] <= 200.0
        task, here = arrive(task), spot
