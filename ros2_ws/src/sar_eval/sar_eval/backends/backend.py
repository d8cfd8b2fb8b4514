"""The world an episode flies in: vehicles, faults and the air between the drones, one step per tick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import RunError
from sar_core.mailboxes import Delivered
from sar_eval.backends.receiver import Receiving, receiver_for
from sar_eval.scenario.model import Episode
from sar_sim.radio.link import Air
from sar_sim.vehicle.faults import Injector
from sar_sim.vehicle.fleet import Fleet, FleetState, step_of_tick
from sar_swarm.piloting.controller import Command

Floats = NDArray[np.float64]

WARM_UP_S = 10.0
STEP_S = 0.004


def time_of(tick: int) -> float:
    """Simulation time of a tick in seconds, as everything that decides counts it."""
    return step_of_tick(tick) * STEP_S


def times_of(tick: int) -> Floats:
    """The instants of every step from the tick before to this one, in seconds."""
    last = step_of_tick(tick)
    first = step_of_tick(tick - 1) if tick > 0 else last
    return np.arange(first, last + 1, dtype=np.float64) * STEP_S


class SimTick(NamedTuple):
    """One tick of the world: truth and estimates at its end, the true way there, what the air delivered.

    ``times_s`` [K] and ``track`` [K, N, 3] begin with the last sample of the tick before.
    """

    tick: int
    time_s: float
    times_s: Floats
    track: Floats
    state: FleetState
    delivered: Delivered


class SpoiltError(RunError):
    """The host or a vehicle's simulator failed: ``reason`` is the code in the record.

    ``final``: no other attempt would do better, for what is wrong is how things are set up.
    """

    def __init__(self, reason: str, detail: str, final: bool = False) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.final = final


Stop = Callable[[], str | None]
"""Asked now and then: a reason to end, or None."""


def never() -> None:
    """Nobody asks to stop."""


def heed(stop: Stop) -> None:
    """Give up waiting if someone asks to stop."""
    reason = stop()
    if reason:
        raise SpoiltError(reason, "stopped before the first tick")


class World(Protocol):
    """What an episode flies in: the embedded simulator, or real autopilots. ``step`` may raise SpoiltError."""

    air: Air

    def receiver(self) -> Receiving | None:
        """What hears for its drones, from now on."""

    def first(self) -> SimTick: ...
    def step(self, commands: Sequence[Command], search_begin_s: float) -> SimTick: ...
    def facts(self) -> dict[str, Any]: ...
    def close(self) -> None: ...


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
