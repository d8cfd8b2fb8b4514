"""Many missions: seeds that belong to evaluations, results in order whoever computed them."""

from __future__ import annotations

import os

import pytest

from sar_core.errors import InputError
from sar_eval.episode.pool import CALIBRATION_SEED, Spec, fly_one, plan_missions, spread
from sar_eval.scenario.model import Scenario


def squared(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    results = list(spread(squared, iter(range(20)), workers))
    assert [number for number, _ in results] == [k * k for k in range(20)]
    assert (os.getpid() in {pid for _, pid in results}) is (workers < 2)


def test_of_nothing_nothing_comes() -> None:
    assert list(spread(squared, [], 2)) == []


def test_every_mission_has_a_layout_of_its_own() -> None:
    specs = plan_missions(Scenario(), 3, 10)
    assert [(spec.seed, spec.index) for spec in specs] == [(10, 10), (11, 11), (12, 12)]


@pytest.mark.parametrize(
    ("missions", "first"), [(0, 0), (-1, 5), (1, -1), (1, CALIBRATION_SEED), (2, CALIBRATION_SEED - 1)]
)
def test_seeds_of_calibration_are_refused(missions: int, first: int) -> None:
    with pytest.raises(
        InputError, match=rf"missions = {missions} from seed {first}: evaluations use seeds 0 to 999999"
    ):
        plan_missions(Scenario(), missions, first)


def test_a_mission_is_flown_for_its_result_alone() -> None:
    scenario = Scenario(drones=1, radio=None, duration_s=1.0, altitude_m=5.0)
    result = fly_one(Spec(scenario, 3, 4))
    assert (result["seed"], result["episode"], result["valid"]) == (3, 4, True)
