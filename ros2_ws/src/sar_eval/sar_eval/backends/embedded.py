"""The embedded tier: our own vehicles, faults and radios, and the air between the drones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sar_core.mailboxes import Delivered
from sar_eval.backends.backend import Receiving, SimTick, Stop, time_of, times_of
from sar_eval.scenario.model import Episode
from sar_sim.radio.link import Air
from sar_sim.radio.receiver import Receiver
from sar_sim.vehicle.faults import Injector
from sar_sim.vehicle.fleet import Fleet
from sar_swarm.piloting.controller import Command

WARM_UP_S = 10.0


class Simulator:
    """Vehicles, faults and air. ``first`` is the world before anything moves; then ``step`` every tick."""

    def __init__(self, episode: Episode) -> None:
        s, n = episode.scenario, episode.scenario.drones
        self.episode = episode
        self.fleet = Fleet(
            episode.vehicle,
            episode.spawns,
            episode.seed,
            episode.index,
            episode.wind_mps,
            episode.world.obstacles,
            s.thrust_variation,
        )
        self.fleet.warm_up(WARM_UP_S)
        self.air = Air(n, episode.seed, episode.index, s.link.loss, s.link.latency_s, s.link.jitter_s)
        self.injector = Injector(episode.faults, n, episode.seed, episode.index)
        self.tick = 0

    def receiver(self) -> Receiving | None:
        return receiver_for(self.episode)

    def first(self) -> SimTick:
        state = self.fleet.snapshot()
        silence = Delivered(0, np.zeros((0, 3), dtype=np.int64), self.air.frozen.copy())
        return SimTick(0, 0.0, np.zeros(1), state.position[None], state, silence)

    def step(self, commands: Sequence[Command], search_begin_s: float) -> SimTick:
        """Fly the commands for one tick; faults count their times from the begin of the search."""
        for i, command in enumerate(commands):
            self.fleet.armed[i] = command.armed
            self.fleet.command(i, command.position, command.velocity, command.acceleration, command.yaw)
        self.injector.apply(time_of(self.tick) - search_begin_s, self.fleet, self.air)
        self.tick += 1
        times = times_of(self.tick)
        track = self.fleet.tick(len(times) - 1)
        time_s = float(times[-1])
        return SimTick(self.tick, time_s, times, track, self.fleet.snapshot(), self.air.carry(time_s))

    def facts(self) -> dict[str, Any]:
        """Nothing of this host decides anything here."""
        return {}

    def close(self) -> None:
        """Nothing to end."""


def make_receiver(episode: Episode) -> Receiver:
    """The radios of an episode's drones, which know the truth that the swarm does not."""
    assert episode.radio is not None
    s = episode.scenario
    return Receiver(
        episode.radio,
        episode.world,
        episode.devices,
        s.drones,
        episode.seed,
        episode.index,
        s.sigma,
        s.kappa,
    )


def receiver_for(episode: Episode) -> Receiver | None:
    """The embedded radios, where the episode has any."""
    return None if episode.radio is None else make_receiver(episode)


def open_simulator(episode: Episode, speed: float, stop: Stop) -> Simulator:
    """As fast as it goes; there is nothing to wait for."""
    return Simulator(episode)
