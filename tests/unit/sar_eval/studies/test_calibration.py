"""What calibration flies: every world and noise level in turn, on seeds that no evaluation may use."""

from __future__ import annotations

from collections import Counter

import pytest

from sar_eval.episode.pool import CALIBRATION_SEED, plan_missions
from sar_eval.scenario.model import Scenario
from sar_eval.studies.calibration import NOISE, WORLDS, plan_calibration
from sar_swarm.piloting.patternlist import STANDARD

WHOLE = 3 * len(WORLDS) * len(NOISE)
ROUND = len(WORLDS) * len(NOISE) * len(STANDARD)


def test_evaluations_and_calibration_share_no_seed() -> None:
    calibration = {spec.seed for spec in plan_calibration("open_ground", 50)}
    assert min(calibration) == CALIBRATION_SEED and len(calibration) == 50
    assert not calibration & {spec.seed for spec in plan_missions(Scenario(), 50, CALIBRATION_SEED - 50)}


def test_a_whole_round_flies_each_world_at_each_level_with_and_without_victims_alike() -> None:
    specs = plan_calibration("open_ground", WHOLE)
    cases = Counter((s.scenario.world, s.scenario.sigma, s.scenario.kappa, s.scenario.victim_absent) for s in specs)
    assert len(cases) == 2 * len(WORLDS) * len(NOISE)
    assert {absent: {n for case, n in cases.items() if case[3] is absent} for absent in (True, False)} == {
        True: {1},
        False: {2},
    }


@pytest.mark.parametrize("missions", [1, 7, WHOLE - 1])
def test_fewer_missions_are_the_first_of_more(missions: int) -> None:
    assert plan_calibration("near", missions) == plan_calibration("near", WHOLE)[:missions]


def test_the_radio_is_the_one_calibrated() -> None:
    assert {spec.scenario.radio for spec in plan_calibration("near", 5)} == {"near"}


def test_every_pattern_is_flown_in_each_world_at_each_level() -> None:
    """Fitted on one pattern's geometry, a confidence would be that pattern's alone."""
    flown = Counter((s.scenario.world, s.scenario.sigma, s.scenario.pattern) for s in plan_calibration("near", ROUND))
    assert len(flown) == ROUND and set(flown.values()) == {1}
