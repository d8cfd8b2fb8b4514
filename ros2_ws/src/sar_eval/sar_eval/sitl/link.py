"""One MAVLink channel of one vehicle: who listens, what is due, and datagrams out of messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sar_eval.sitl.schedule import Schedule
from sar_eval.sitl.telemetry import number_of

Address = tuple[str, int]
Transmit = Callable[[bytes, Address], None]

DATAGRAM = 1400
"""Bytes: what passes every network in one piece."""


class MavlinkLink:
    """Streams go to the usual remote and to whoever else spoke last; replies to whoever asked."""

    def __init__(self, m: Any, system: int, remote: Address, rates_hz: Mapping[str, float], transmit: Transmit) -> None:
        self.schedule = Schedule({number_of(m, name): rate for name, rate in rates_hz.items()})
        self.remote = remote
        self.guest: Address | None = None
        self.loses: Callable[[], bool] = lambda: False
        self._mavlink = m.MAVLink(self, system, 1)
        self._transmit = transmit
        self._pending: list[bytes] = []
        self._known: set[Address] = set()

    @property
    def heard(self) -> bool:
        """Whether anyone ever spoke to us here."""
        return bool(self._known)

    def meet(self, peer: Address) -> bool:
        """Remember who speaks; True if it is the first time."""
        if peer != self.remote:
            self.guest = peer
        new = peer not in self._known
        self._known.add(peer)
        return new

    def write(self, packet: bytes) -> None:
        """What pymavlink calls with a packed message."""
        self._pending.append(bytes(packet))

    def queue(self, message: Any) -> None:
        """A message for all who listen; it leaves with the next flush."""
        self._mavlink.send(message)

    def flush(self) -> None:
        """Send what is queued."""
        pending, self._pending = self._pending, []
        peers = [self.remote] if self.guest is None else [self.remote, self.guest]
        self._send(pending, peers)

    def reply(self, messages: list[Any], peer: Address) -> None:
        """Messages for one peer, at once."""
        waiting, self._pending = self._pending, []
        for message in messages:
            self._mavlink.send(message)
        answers, self._pending = self._pending, waiting
        self._send(answers, [peer])

    def _send(self, packets: list[bytes], peers: list[Address]) -> None:
        datagram = b""
        for packet in [*packets, None]:
            if datagram and (packet is None or len(datagram) + len(packet) > DATAGRAM):
                for peer in peers:
                    if not self.loses():
                        self._transmit(datagram, peer)
                datagram = b""
            datagram += packet or b""
