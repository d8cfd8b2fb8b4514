"""A tier: the embedded simulator with receivers that know where they are, to see what the estimate costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sar_eval.backends.backend import SimTick, Stop
from sar_eval.backends.embedded import Simulator
from sar_eval.scenario.model import Episode
from sar_eval.scenario.tiers import Tier
from sar_swarm.piloting.controller import Command


class Surveyed(Simulator):
    """Vehicles fly on their estimates as ever; what they tell the swarm is the truth."""

    def first(self) -> SimTick:
        return surveyed(super().first())

    def step(self, commands: Sequence[Command], search_begin_s: float) -> SimTick:
        return surveyed(super().step(commands, search_begin_s))


def surveyed(tick: SimTick) -> SimTick:
    s = tick.state
    return tick._replace(state=replace(s, est_position=s.position, est_velocity=s.velocity, est_attitude=s.attitude))


def open_surveyed(episode: Episode, speed: float, stop: Stop) -> Surveyed:
    """Where real autopilots are slow to start, this is where to wait for them, and to ask ``stop`` meanwhile."""
    return Surveyed(episode)


SURVEYED = Tier(
    "surveyed",
    "the embedded simulator with perfect positioning",
    backend="surveyed:open_surveyed",
    receiver="sar_eval.backends.embedded:receiver_for",
    autopilots=False,
)
