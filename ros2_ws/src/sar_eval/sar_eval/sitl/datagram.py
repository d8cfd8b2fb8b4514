"""Datagrams to messages: whole packets only, nothing remembered, garbage passed over."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

MAGIC_1, MAGIC_2 = 0xFE, 0xFD
SIGNED = 0x01
SIGNATURE = 13


def packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Message id and bytes of every packet a datagram seems to hold; between them it is searched for the next start."""
    at = 0
    while at + 8 <= len(data):
        if data[at] == MAGIC_2 and at + 12 <= len(data):
            size = 12 + data[at + 1] + (SIGNATURE if data[at + 2] & SIGNED else 0)
            number = int.from_bytes(data[at + 7 : at + 10], "little")
        elif data[at] == MAGIC_1:
            size = 8 + data[at + 1]
            number = data[at + 5]
        else:
            at += 1
            continue
        if at + size > len(data):
            at += 1
            continue
        yield number, data[at : at + size]
        at += size


def messages(decoder: Any, wanted: Collection[int], data: bytes, error: type[Exception]) -> Iterator[Any]:
    """The wanted messages in a datagram; what fails its checksum is passed over."""
    for number, packet in packets(data):
        if number in wanted:
            try:
                yield decoder.decode(bytearray(packet))
            except error:
                continue
