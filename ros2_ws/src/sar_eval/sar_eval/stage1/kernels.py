"""Every kernel there is, Stage 1's too, before any clock runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sar_eval.episode.kernels import Tell, flight_groups, touch
from sar_eval.scenario.episodeset import SET_VERSION
from sar_eval.scenario.model import DEFAULT_WORLD, Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.stage1.matrix import compile_flights, default_observations, plan
from sar_swarm.piloting.patternlist import STANDARD
from sar_swarm.piloting.policy import OBSERVATIONS, Actor

HIDDEN = 64
"""Width of the made-up policy by which the kernel of all of them is compiled."""


def compile_everything(tell: Tell | None = None) -> int:
    """All that flights of any kind and Stage 1 call; returns the number of groups there are."""
    actor = Actor(
        (np.zeros((HIDDEN, OBSERVATIONS), np.float32, order="F"), np.zeros((4, HIDDEN), np.float32, order="F")),
        (np.zeros(HIDDEN, np.float32), np.zeros(4, np.float32)),
    )
    scenario = Scenario(world=DEFAULT_WORLD, episode_set=f"{DEFAULT_WORLD}-{SET_VERSION}")
    episode = replace(prepare(scenario, 0, 0), actor=actor)
    matrix = plan(scenario, STANDARD, (0,), (0,), default_observations())
    groups = [*flight_groups(episode), ("Stage 1", lambda: compile_flights(matrix))]
    touch(groups, tell)
    return len(groups)
