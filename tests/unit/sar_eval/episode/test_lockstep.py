"""Ticks in lockstep: parts come in any order and are given out whole; a bag gets what was announced, nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_eval.episode.lockstep import Gathering, TickBook, UnwelcomeError, digest, padded, stamp_of

PARTS = ("estimates", "frames", "orders")


def message(stamp_ns: int, content: bytes = b"") -> bytes:
    seconds, rest = divmod(stamp_ns, 1_000_000_000)
    return b"\x00\x01\x00\x00" + seconds.to_bytes(4, "little") + rest.to_bytes(4, "little") + content


@given(st.permutations([(part, tick) for tick in (0, 1) for part in PARTS]))
def test_two_ticks_parts_in_any_order_come_out_whole_and_in_order(order):
    gathering = Gathering(PARTS)
    given_out = []
    for part, tick in order:
        gathering.put(part, tick, (part, tick))
        while (parts := gathering.take()) is not None:
            given_out.append(parts)
    assert given_out == [{part: (part, tick) for part in PARTS} for tick in (0, 1)]


def test_what_has_no_place_is_refused_and_leaves_no_trace():
    gathering = Gathering(PARTS)
    for part in PARTS:
        gathering.put(part, 0, part)
    gathering.take()
    gathering.put("orders", 1, "first")
    for part, tick, why in (
        ("frames", 0, "tick 0 comes back while tick 1 is on"),
        ("frames", 3, "tick 3 comes while tick 1 is on"),
        ("orders", 1, "tick 1 comes twice"),
        ("stranger", 1, "not one of estimates, frames, orders"),
    ):
        with pytest.raises(UnwelcomeError, match=why):
            gathering.put(part, tick, "wrong")
    assert gathering.missing == ["estimates", "frames"]
    gathering.put("estimates", 1, "e")
    gathering.put("frames", 1, "f")
    assert gathering.take() == {"estimates": "e", "frames": "f", "orders": "first"}


def test_a_stamp_is_read_and_padding_makes_words():
    assert stamp_of(message(12_345_678_901)) == 12_345_678_901
    assert [len(padded(bytes(n))) for n in (0, 1, 4, 5)] == [0, 4, 4, 8]
    assert padded(b"abcde") == b"abcde\0\0\0"
    assert digest("/a", b"x") != digest("/b", b"x") != digest("/b", b"y")


def test_a_tick_is_closed_when_all_that_was_announced_is_there():
    book = TickBook()
    one, two = message(0, b"one."), message(0, b"two.")
    book.announce(0, [digest("/a", one), digest("/a", two)])
    book.take("/a", one)
    assert book.close() is None
    book.take("/a", two)
    assert book.close() == (0, [("/a", one), ("/a", two)])
    assert book.close() is None and not book.foreign and not book.late


def test_ticks_are_closed_in_their_order_and_what_comes_early_waits():
    book = TickBook()
    first, second = message(0), message(50_000_000)
    book.take("/a", second)
    book.announce(0, [digest("/a", first)])
    book.announce(50_000_000, [digest("/a", second)])
    assert book.close() is None
    book.take("/a", first)
    assert [book.close(), book.close()] == [(0, [("/a", first)]), (50_000_000, [("/a", second)])]


def test_what_nobody_announced_is_left_out_and_counted():
    """The right stamp and the wrong content, twice the same, a topic of someone else, a time between two ticks."""
    book = TickBook()
    real, forged = message(100, b"real"), message(100, b"fake")
    for topic, payload in (("/a", forged), ("/a", real), ("/a", real), ("/b", real), ("/a", message(50))):
        book.take(topic, payload)
    book.announce(100, [digest("/a", real)])
    assert book.close() == (100, [("/a", real)])
    assert book.foreign == {"/a": 3, "/b": 1}


def test_a_time_that_is_over_is_left_out_and_counted():
    book = TickBook()
    book.announce(100, [])
    assert book.close() == (100, [])
    for payload in (message(0), message(100), b"short"):
        book.take("/clock", payload)
    assert book.late == {"/clock": 3}
    book.announce(150, [])
    assert book.close() == (150, [])
