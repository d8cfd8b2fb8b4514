"""The embedded tier tick by tick: still at first, flown by commands, and the same every time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sar_eval.backends.backend import SimTick
from sar_eval.backends.embedded import Simulator, open_simulator, receiver_for
from sar_eval.scenario.model import Episode, FaultConfig, Scenario
from sar_eval.scenario.prepare import prepare
from sar_swarm.piloting.controller import Command

FREE = np.full(3, math.nan)
CLIMB = Command(True, FREE, np.array([0.0, 0.0, 2.0]), 0.0)
STAY = Command(False, FREE, FREE, math.nan)


def episode(seed: int = 0, **given: object) -> Episode:
    return prepare(Scenario(**({"drones": 2, "radio": None} | given)), seed, 0)


def flown(simulator: Simulator, seconds: float, search_begin_s: float = math.inf) -> SimTick:
    for _ in range(round(20 * seconds)):
        now = simulator.step([CLIMB, STAY], search_begin_s)
    return now


def test_before_anything_moves_all_stand_on_their_spawns() -> None:
    made = episode()
    first = Simulator(made).first()
    assert (first.tick, first.time_s, first.track.shape) == (0, 0.0, (1, 2, 3))
    assert np.allclose(first.state.position[:, :2], made.spawns[:, :2], atol=1e-6)
    assert first.state.landed.all() and len(first.delivered.rows) == 0


def test_a_tick_begins_where_the_last_one_ended() -> None:
    simulator = Simulator(episode())
    before = simulator.first()
    for _ in range(60):
        now = simulator.step([CLIMB, STAY], math.inf)
        assert now.times_s[0] == before.times_s[-1] and now.time_s == now.times_s[-1]
        assert np.array_equal(now.track[0], before.track[-1])
        assert np.array_equal(now.track[-1], now.state.position)
        before = now


def test_who_is_told_to_climb_does_and_who_is_not_armed_stays() -> None:
    now = flown(Simulator(episode()), 8.0)
    assert now.state.position[0, 2] > 3.0
    assert now.state.position[1, 2] < 0.5 and now.state.landed[1]


def test_the_same_episode_is_the_same_to_the_last_bit_and_another_seed_is_not() -> None:
    states = [flown(Simulator(episode(seed)), 1.0).state.est_position for seed in (0, 0, 1)]
    assert np.array_equal(states[0], states[1]) and not np.array_equal(states[0], states[2])


@pytest.mark.parametrize(("begin_s", "down"), [(0.0, True), (math.inf, False)])
def test_faults_wait_for_the_search(begin_s: float, down: bool) -> None:
    fault = FaultConfig(kind="motor_loss", drone=1, begin_s=0.5)
    now = flown(Simulator(episode(faults=(fault,))), 1.0, begin_s)
    assert bool(now.state.motors_ok[0]) is not down


def test_a_deaf_episode_has_no_receivers_and_nothing_is_this_hosts() -> None:
    simulator = open_simulator(episode(), 1.0, lambda: None)
    assert simulator.receiver() is None and simulator.facts() == {}
    assert receiver_for(episode(radio="open_ground")) is not None
    simulator.close()
