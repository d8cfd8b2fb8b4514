"""Datagrams to messages: whole packets only, nothing remembered, garbage passed over."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from sar_eval.px4.wire import frames


def messages(decoder: Any, wanted: Collection[int], data: bytes, error: type[Exception]) -> Iterator[Any]:
    """The wanted messages in a datagram; what fails its checksum is passed over."""
    for number, frame in frames(data):
        if number in wanted:
            try:
                yield decoder.decode(bytearray(frame))
            except error:
                continue
