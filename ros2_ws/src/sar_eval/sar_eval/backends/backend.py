"""What an episode flies in, whoever provides it: one step per tick, and radios that are asked in every one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import RunError
from sar_core.mailboxes import Delivered
from sar_sim.radio.link import Air
from sar_sim.radio.receiver import Frames
from sar_sim.vehicle.fleet import FleetState, step_of_tick
from sar_swarm.piloting.controller import Command

Floats = NDArray[np.float64]

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


class Receiving(Protocol):
    """Radios that are asked tick by tick, in ascending order; may raise SpoiltError."""

    def listen(self, stamp_ns: int, tick: int, position: Floats, attitude: Floats) -> list[Frames]: ...
    def close(self) -> None: ...


class Backend(Protocol):
    """What an episode flies in: the embedded simulator, or real autopilots. ``step`` may raise SpoiltError."""

    air: Air

    def receiver(self) -> Receiving | None:
        """What hears for its drones, from now on."""

    def first(self) -> SimTick: ...
    def step(self, commands: Sequence[Command], search_begin_s: float) -> SimTick: ...
    def facts(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
