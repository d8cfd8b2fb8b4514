"""Ticks in lockstep, without ROS: what a node waits for before its step, and what a tick left for the bag."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sar_core.errors import ContractError

NS = 1_000_000_000
STAMP_END = 12
"""Bytes of a message up to the end of its leading stamp, the encapsulation header included."""


class UnwelcomeError(ContractError):
    """A message that has no place in the lockstep: of a tick that is over, or there twice."""


class Gathering:
    """Collects the parts that one tick after another needs; each is given out whole and in order.

    Parts of the next tick may come early: a fast partner is at most one tick ahead.
    """

    def __init__(self, parts: Iterable[str]) -> None:
        self.parts = frozenset(parts)
        self.tick = 0
        self._waiting: dict[int, dict[str, Any]] = {0: {}}

    def put(self, part: str, tick: int, content: Any = None) -> None:
        """Take a part in; raises UnwelcomeError for one that belongs nowhere."""
        if part not in self.parts:
            raise UnwelcomeError(f"{part}: not one of {', '.join(sorted(self.parts))}")
        if tick < self.tick:
            raise UnwelcomeError(f"{part}: tick {tick} comes back while tick {self.tick} is on")
        if tick > self.tick + 1:
            raise UnwelcomeError(f"{part}: tick {tick} comes while tick {self.tick} is on")
        there = self._waiting.setdefault(tick, {})
        if part in there:
            raise UnwelcomeError(f"{part}: tick {tick} comes twice")
        there[part] = content

    def take(self) -> dict[str, Any] | None:
        """The parts of the tick that is on, once all are there; the next one is on from then."""
        if len(self._waiting.get(self.tick, ())) < len(self.parts):
            return None
        parts = self._waiting.pop(self.tick)
        self.tick += 1
        return parts

    @property
    def missing(self) -> list[str]:
        """Who has not yet come to the tick that is on."""
        return sorted(self.parts - self._waiting.get(self.tick, {}).keys())


def digest(topic: str, payload: bytes) -> int:
    """What tells one message for the bag from every other: CRC-32 of its topic's name and its bytes."""
    return zlib.crc32(payload, zlib.crc32(topic.encode()))


def padded(payload: bytes) -> bytes:
    """Bytes as they survive the wire, which moves words of four."""
    return payload + bytes(-len(payload) % 4)


def stamp_of(payload: bytes) -> int:
    """The leading stamp of a message in nanoseconds."""
    seconds = int.from_bytes(payload[4:8], "little", signed=True)
    return seconds * NS + int.from_bytes(payload[8:STAMP_END], "little")


class Kept(NamedTuple):
    """A message for the bag, its stamp aside."""

    topic: str
    payload: bytes


@dataclass
class TickBook:
    """Puts together what each tick left for the bag, from messages and from the digests their senders announced.

    A message counts only if its sender announced it; so nothing foreign gets into a bag, and nothing is missing when a
    tick is closed. ``foreign`` counts, by topic, what was announced by nobody; ``late`` what came for a closed tick.
    """

    foreign: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    closed_ns: int = -1
    _there: dict[int, list[tuple[int, Kept]]] = field(default_factory=dict)
    _announced: dict[int, Counter[int]] = field(default_factory=dict)

    def take(self, topic: str, payload: bytes) -> None:
        """A message has come."""
        stamp = stamp_of(payload) if len(payload) >= STAMP_END else -1
        if stamp <= self.closed_ns:
            self.late[topic] += 1
            return
        self._there.setdefault(stamp, []).append((digest(topic, payload), Kept(topic, payload)))

    def announce(self, stamp_ns: int, digests: Iterable[int]) -> None:
        """What a tick left for the bag, as those say who sent it."""
        self._announced[stamp_ns] = Counter(digests)

    def close(self) -> tuple[int, list[Kept]] | None:
        """The earliest tick announced, once all of it is there: its stamp and its messages in the order they came."""
        if not self._announced:
            return None
        stamp = min(self._announced)
        wanted = self._announced[stamp]
        there = self._there.get(stamp, [])
        if len(there) < wanted.total() or Counter(key for key, _ in there) & wanted != wanted:
            return None
        self.closed_ns = stamp
        del self._announced[stamp]
        left = wanted.copy()
        kept = []
        for key, message in there:
            if left[key] > 0:
                left[key] -= 1
                kept.append(message)
            else:
                self.foreign[message.topic] += 1
        for past in [early for early in self._there if early <= stamp]:
            if past < stamp:
                self.foreign.update(message.topic for _, message in self._there[past])
            del self._there[past]
        return stamp, kept
