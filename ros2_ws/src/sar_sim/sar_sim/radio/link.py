"""The swarm's radio link: which broadcasts reach whom and when, with loss, latency and jitter, and nothing else.

Every drone broadcasts once per tick; each receiver hears or misses each packet by its own draw. What a drone knows
of another is the newest packet delivered, so reordered packets never turn the clock back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.mailboxes import SLOTS, STATE, Delivered, Mailboxes
from sar_core.streams import stream

__all__ = ["SLOTS", "STATE", "Air", "Link"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ROUNDING_S = 1e-6
"""A packet due on a tick arrives on it, though 0.2 + 0.1 is a hair more than 0.3."""


@compiled
def _carry(
    now: float,
    slot: int,
    silence: Bools,
    draws: Floats,
    loss: float,
    latency: float,
    jitter: float,
    arrival: Floats,
    counts: NDArray[np.int64],
    arrived: NDArray[np.int64],
) -> int:
    """Send everyone's packet, let arrive what is due; rows (slot, receiver, sender) of arrived tell which, in order."""
    n = silence.shape[0]
    landed = 0
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            if silence[j]:
                arrival[slot, i, j] = np.inf
                continue
            counts[i, 0] += 1
            if draws[i, j, 0] < loss or silence[i]:
                arrival[slot, i, j] = np.inf
            else:
                counts[i, 1] += 1
                arrival[slot, i, j] = now + latency + jitter * draws[i, j, 1]
    for s in range(SLOTS):
        for i in range(n):
            for j in range(n):
                if arrival[s, i, j] <= now + ROUNDING_S:
                    arrival[s, i, j] = np.inf
                    if silence[i]:
                        continue
                    arrived[landed, 0], arrived[landed, 1], arrived[landed, 2] = s, i, j
                    landed += 1
    return landed


class Air:
    """Decides which packets arrive, and never sees what is in them.

    ``silence[i]`` cuts drone i off, both ways. ``frozen[i]`` lets it send its last packet again and again, stamp and
    all.
    """

    def __init__(self, drones: int, seed: int, episode: int, loss: float, latency_s: float, jitter_s: float) -> None:
        self._rng = stream("link", seed, episode)
        self._drones = drones
        self._loss, self._latency, self._jitter = loss, latency_s, jitter_s
        self._arrival = np.full((SLOTS, drones, drones), np.inf)
        self._ticks = 0
        self.silence: Bools = np.zeros(drones, dtype=np.bool_)
        self.frozen: Bools = np.zeros(drones, dtype=np.bool_)
        self._counts = np.zeros((drones, 2), dtype=np.int64)
        self._arrived = np.zeros((SLOTS * drones * drones, 3), dtype=np.int64)

    def carry(self, now_s: float) -> Delivered:
        """One tick: everyone broadcasts, then whatever is due arrives."""
        slot = self._ticks % SLOTS
        draws = self._rng.random((self._drones, self._drones, 2))
        landed = _carry(
            now_s,
            slot,
            self.silence,
            draws,
            self._loss,
            self._latency,
            self._jitter,
            self._arrival,
            self._counts,
            self._arrived,
        )
        self._ticks += 1
        return Delivered(slot, self._arrived[:landed].copy(), self.frozen.copy())

    def take_delivery(self) -> Floats:
        """Share of packets received per drone since the last call; NaN where none were sent."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share: Floats = self._counts[:, 1] / self._counts[:, 0]
        self._counts[:] = 0
        return share


class Link(Air):
    """The air and the mailboxes at its ends in one: carries each drone's own estimate to the others."""

    def __init__(self, drones: int, seed: int, episode: int, loss: float, latency_s: float, jitter_s: float) -> None:
        super().__init__(drones, seed, episode, loss, latency_s, jitter_s)
        self._boxes = Mailboxes(drones)

    @property
    def known(self) -> Floats:
        return self._boxes.known

    @property
    def heard_s(self) -> Floats:
        return self._boxes.heard_s

    @property
    def inbox(self) -> list[list[Any]]:
        return self._boxes.inbox

    def others(self, index: int) -> Floats:
        return self._boxes.others(index)

    def exchange(
        self,
        now_s: float,
        position: Floats,
        velocity: Floats,
        status: Floats,
        mail: Sequence[Sequence[Any]] | None = None,
    ) -> None:
        """One tick, as :meth:`Mailboxes.exchange` takes it."""
        self._boxes.exchange(now_s, self.carry(now_s), position, velocity, status, mail)
