"""What travels in the swarm's packets, and what each drone holds of the others.

Which packets arrive is decided elsewhere, by the air. Here they are only packed, kept until they are due, and handed
out: to a drone comes what was delivered to it and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

STATE = 9
"""Columns of one heard state: position 3, velocity 3, then those named here."""
STAMP, FAILSAFE, LEG = 6, 7, 8
"""When it was sent, in seconds (NaN: never heard); the sender's failsafe code; the leg of its route it is on."""

SLOTS = 64
"""Ticks a packet may be under way."""


class Delivered(NamedTuple):
    """One tick of the air: the slot in which this tick's packets wait, and which packets arrive now, in order.

    ``rows`` int64[K, 3] are (slot, receiver, sender). A drone that is ``frozen`` [N] sends its last packet again.
    """

    slot: int
    rows: Ints
    frozen: Bools


@compiled
def _hand_out(now: float, rows: Ints, sent: Floats, known: Floats, heard_s: Floats) -> None:
    for k in range(rows.shape[0]):
        s, i, j = rows[k, 0], rows[k, 1], rows[k, 2]
        heard_s[i] = now
        if not (known[i, j, STAMP] >= sent[s, j, STAMP]):
            known[i, j] = sent[s, j]


class Mailboxes:
    """Every drone's packets; ``known[i, j]`` is what drone i last heard of drone j.

    A packet may carry mail: whatever its sender wants the others to have. It arrives with the packet or not at all; the
    mail of a packet sent again was there before and is not handed out again. ``heard_s[i]`` is when drone i last
    received anything, NaN before; ``inbox[i]`` is the mail that reached it in the last tick.
    """

    def __init__(self, drones: int) -> None:
        self._sent = np.full((SLOTS, drones, STATE), np.nan)
        self._last = np.full((drones, STATE), np.nan)
        self._mail: list[Sequence[Sequence[Any]] | None] = [None] * SLOTS
        self.known = np.full((drones, drones, STATE), np.nan)
        self.heard_s = np.full(drones, np.nan)
        self.inbox: list[list[Any]] = [[] for _ in range(drones)]

    def exchange(
        self,
        now_s: float,
        delivered: Delivered,
        position: Floats,
        velocity: Floats,
        status: Floats,
        mail: Sequence[Sequence[Any]] | None = None,
    ) -> None:
        """One tick: everyone's packet is packed, then what the air lets through is handed out.

        Shapes [N, 3], status [N, 2] = failsafe code and leg; mail is one sequence per drone.
        """
        n = len(position)
        outgoing = np.empty((n, STATE))
        outgoing[:, 0:3], outgoing[:, 3:6] = position, velocity
        outgoing[:, STAMP], outgoing[:, FAILSAFE : LEG + 1] = now_s, status
        if delivered.frozen.any():
            repeated = delivered.frozen & np.isfinite(self._last[:, STAMP])
            outgoing[repeated] = self._last[repeated]
            if mail is not None:
                mail = [() if again else letters for again, letters in zip(repeated, mail, strict=True)]
        self._last = outgoing
        self._mail[delivered.slot] = mail
        self._sent[delivered.slot] = outgoing
        _hand_out(now_s, delivered.rows, self._sent, self.known, self.heard_s)
        self.inbox = [[] for _ in range(n)]
        for slot, receiver, sender in delivered.rows.tolist():
            sent = self._mail[slot]
            if sent is not None:
                self.inbox[receiver] += sent[sender]

    def others(self, index: int) -> Floats:
        """What one drone has heard, rows [N, STATE]; rows of those never heard, itself included, are NaN."""
        rows: Floats = self.known[index].copy()
        return rows

    def oldest_news_s(self, now_s: float) -> Floats:
        """Per drone, the age of the oldest state it holds of another; NaN where it has heard of nobody."""
        stamps = self.known[:, :, STAMP]
        ages = np.where(np.isfinite(stamps), now_s - stamps, -np.inf)
        oldest: Floats = ages.max(axis=1)
        return np.where(np.isfinite(oldest), oldest, np.nan)
