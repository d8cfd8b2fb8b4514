"""The swarm on its own: commands for every drone, nothing heard that the air did not deliver."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from sar_core.mailboxes import STAMP, Delivered
from sar_eval.backends.embedded import Simulator
from sar_eval.episode.briefing import briefing_of
from sar_eval.episode.swarm import Swarm
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_swarm.piloting.controller import Order, Phase
from sar_swarm.piloting.failsafe import Failsafe

EPISODE = prepare(Scenario(world="open_field", drones=3, radio=None), 0, 0)
STATE = Simulator(EPISODE).first().state
NOTHING = np.zeros((0, 3), dtype=np.int64)


def air(tick: int, *rows: tuple[int, int]) -> Delivered:
    """Of this tick's packets those to receiver by sender."""
    return Delivered(tick, np.array([(tick, *row) for row in rows], dtype=np.int64).reshape(-1, 3), np.zeros(3, bool))


def begun() -> Swarm:
    swarm = Swarm(briefing_of(EPISODE))
    swarm.begin(STATE)
    return swarm


def test_on_the_ground_every_drone_waits_unarmed() -> None:
    swarm = Swarm(briefing_of(EPISODE))
    made = swarm.begin(STATE)
    assert len(made.commands) == 3 and not any(command.armed for command in made.commands)
    assert made.statuses == ((Phase.IDLE,) * 3, (Failsafe.NOMINAL,) * 3, (False,) * 3)
    assert made.reports == [] and made.heard.frames == []


def test_told_to_take_off_all_arm() -> None:
    made = begun().step(1, 0.052, STATE, [], air(1), Order.TAKE_OFF)
    assert all(command.armed for command in made.commands)
    assert made.statuses.phase == (Phase.TAKEOFF,) * 3


def test_a_drone_knows_of_another_what_was_delivered_to_it() -> None:
    swarm = begun()
    swarm.step(1, 0.052, STATE, [], air(1, (0, 2)), Order.WAIT)
    known = swarm.boxes.known[:, :, STAMP]
    assert known[0, 2] == 0.052 and np.isfinite(known).sum() == 1
    assert swarm.boxes.known[0, 2, :3] == pytest.approx(STATE.est_position[2])


def test_who_hears_nobody_has_heard_nothing_since_the_start_and_who_is_alone_never_misses_it() -> None:
    swarm = begun()
    swarm.step(1, 0.052, STATE, [], air(1, (0, 2)), Order.WAIT)
    assert swarm._heard_age(5.0) == pytest.approx([4.948, 5.0, 5.0])
    alone = Swarm(replace(briefing_of(EPISODE), drones=1))
    assert math.isnan(alone._heard_age(5.0)[0])


def test_the_same_orders_and_estimates_give_the_same_commands() -> None:
    made = [begun().step(1, 0.052, STATE, [], air(1), Order.TAKE_OFF) for _ in range(2)]
    for one, other in zip(made[0].commands, made[1].commands, strict=True):
        assert repr(one) == repr(other)
