"""The swarm's radio link: state broadcasts between drones, with loss, latency and jitter, and nothing else.

Every drone broadcasts once per tick; each receiver hears or misses each packet by its own draw. What a drone knows
of another is the newest packet delivered, so reordered packets never turn the clock back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.streams import stream

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STATE = 9
"""Columns of one heard state: position 3, velocity 3, stamp in seconds (NaN: never heard), failsafe code, leg."""

SLOTS = 64
ROUNDING_S = 1e-6
"""A packet due on a tick arrives on it, though 0.2 + 0.1 is a hair more than 0.3."""


@compiled
def _exchange(
    now: float,
    slot: int,
    outgoing: Floats,
    silence: Bools,
    draws: Floats,
    loss: float,
    latency: float,
    jitter: float,
    sent: Floats,
    arrival: Floats,
    known: Floats,
    heard_s: Floats,
    counts: NDArray[np.int64],
    arrived: NDArray[np.int64],
) -> int:
    """Send everyone's packet, let arrive what is due; rows (slot, receiver, sender) of arrived tell which, in order."""
    n = outgoing.shape[0]
    sent[slot] = outgoing
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
                    heard_s[i] = now
                    arrived[landed, 0], arrived[landed, 1], arrived[landed, 2] = s, i, j
                    landed += 1
                    if not (known[i, j, 6] >= sent[s, j, 6]):
                        known[i, j] = sent[s, j]
    return landed


class Link:
    """Carries each drone's own estimate to the others; ``known[i, j]`` is what drone i last heard of drone j.

    A packet may carry mail: whatever its sender wants the others to have. It arrives with the packet or not at all.

    ``silence[i]`` cuts drone i off, both ways. ``frozen[i]`` lets it send its last packet again and again, stamp and
    all; the mail of a repeated packet was there before and is not handed out again. ``heard_s[i]`` is when drone i last
    received anything, NaN before.
    """

    def __init__(self, drones: int, seed: int, episode: int, loss: float, latency_s: float, jitter_s: float) -> None:
        self._rng = stream("link", seed, episode)
        self._loss, self._latency, self._jitter = loss, latency_s, jitter_s
        self._sent = np.full((SLOTS, drones, STATE), np.nan)
        self._arrival = np.full((SLOTS, drones, drones), np.inf)
        self._ticks = 0
        self.known = np.full((drones, drones, STATE), np.nan)
        self.silence: Bools = np.zeros(drones, dtype=np.bool_)
        self.frozen: Bools = np.zeros(drones, dtype=np.bool_)
        self.heard_s = np.full(drones, np.nan)
        self._last = np.full((drones, STATE), np.nan)
        self._counts = np.zeros((drones, 2), dtype=np.int64)
        self._arrived = np.zeros((SLOTS * drones * drones, 3), dtype=np.int64)
        self._mail: list[Sequence[Sequence[Any]] | None] = [None] * SLOTS
        self.inbox: list[list[Any]] = [[] for _ in range(drones)]

    def exchange(
        self,
        now_s: float,
        position: Floats,
        velocity: Floats,
        status: Floats,
        mail: Sequence[Sequence[Any]] | None = None,
    ) -> None:
        """One tick: everyone broadcasts, then whatever is due arrives.

        Shapes [N, 3], status [N, 2] = failsafe code and leg; mail is one sequence per drone. ``inbox[i]`` then holds
        the mail that reached drone i in this tick.
        """
        n = len(position)
        slot = self._ticks % SLOTS
        outgoing = np.empty((n, STATE))
        outgoing[:, 0:3], outgoing[:, 3:6], outgoing[:, 6], outgoing[:, 7:9] = position, velocity, now_s, status
        if self.frozen.any():
            repeated = self.frozen & np.isfinite(self._last[:, 6])
            outgoing[repeated] = self._last[repeated]
            if mail is not None:
                mail = [() if again else letters for again, letters in zip(repeated, mail, strict=True)]
        self._last = outgoing
        self._mail[slot] = mail
        draws = self._rng.random((n, n, 2))
        landed = _exchange(
            now_s,
            slot,
            outgoing,
            self.silence,
            draws,
            self._loss,
            self._latency,
            self._jitter,
            self._sent,
            self._arrival,
            self.known,
            self.heard_s,
            self._counts,
            self._arrived,
        )
        self._ticks += 1
        self.inbox = [[] for _ in range(n)]
        for slot, receiver, sender in self._arrived[:landed].tolist():
            sent = self._mail[slot]
            if sent is not None:
                self.inbox[receiver] += sent[sender]

    def others(self, index: int) -> Floats:
        """What one drone has heard, rows [N, STATE]; rows of those never heard, itself included, are NaN."""
        rows: Floats = self.known[index].copy()
        return rows

    def take_delivery(self) -> Floats:
        """Share of packets received per drone since the last call; NaN where none were sent."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share: Floats = self._counts[:, 1] / self._counts[:, 0]
        self._counts[:] = 0
        return share

    def oldest_news_s(self, now_s: float) -> Floats:
        """Per drone, the age of the oldest state it holds of another; NaN where it has heard of nobody."""
        ages = np.where(np.isfinite(self.known[:, :, 6]), now_s - self.known[:, :, 6], -np.inf)
        oldest: Floats = ages.max(axis=1)
        return np.where(np.isfinite(oldest), oldest, np.nan)
