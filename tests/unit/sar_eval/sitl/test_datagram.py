"""Whatever comes in a datagram, the messages in it are found and nothing breaks."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sar_eval.px4.mavlink import dialect
from sar_eval.sitl.datagram import messages

M = dialect()
WANTED = frozenset({M.MAVLINK_MSG_ID_PING, M.MAVLINK_MSG_ID_HEARTBEAT})


def found(data: bytes) -> list[Any]:
    return list(messages(M.MAVLink(None), WANTED, data, M.MAVError))


def ping(sequence: int, force_mavlink1: bool = False) -> bytes:
    return bytes(M.MAVLink_ping_message(1, sequence, 1, 1).pack(M.MAVLink(None, 7, 8), force_mavlink1=force_mavlink1))


@given(st.binary(max_size=600))
def test_garbage_is_passed_over(data: bytes) -> None:
    assert all(message.get_type() in ("PING", "HEARTBEAT") for message in found(data))


@given(st.binary(max_size=40).filter(lambda junk: 0xFD not in junk and 0xFE not in junk))
def test_messages_are_found_between_garbage(junk: bytes) -> None:
    data = junk + ping(1) + junk + ping(2) + ping(3, force_mavlink1=True) + junk
    assert [message.seq for message in found(data)] == [1, 2, 3]


def test_a_broken_checksum_and_a_cut_packet_are_passed_over() -> None:
    broken = bytearray(ping(1))
    broken[-1] ^= 1
    assert [message.seq for message in found(bytes(broken) + ping(2) + ping(3)[:-4])] == [2]


def test_what_nobody_wants_is_not_decoded() -> None:
    other = bytes(M.MAVLink_statustext_message(6, b"hello").pack(M.MAVLink(None)))
    assert [message.seq for message in found(other + ping(4))] == [4]
