"""Columns of messages against the reference decoder, and clear words for what cannot be one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from sar_analysis.bags.cdr import decode, gather
from sar_analysis.bags.chunks import Content, RecordedTopic
from sar_core.errors import ContractError

DEFINITION = """bool armed
string name
float64 x
int16[3] fixed
float32[] tail
made_msgs/Inner inner
uint8 last
================================================================================
MSG: made_msgs/Inner
float64 a
float64 b
"""
KIND = "made_msgs/msg/Made"
STORE = get_typestore(Stores.EMPTY)
STORE.register(get_types_from_msg(DEFINITION, KIND))
Inner, Made = STORE.types["made_msgs/msg/Inner"], STORE.types[KIND]
finite = st.floats(allow_nan=False, width=32)
rows = st.tuples(
    st.booleans(), st.text(st.characters(max_codepoint=0x2FF, blacklist_characters="\0"), max_size=9), finite, finite
)


def message(armed: bool = True, name: str = "", x: float = 0.0, a: float = 0.0, tail: int = 2) -> bytes:
    made = Made(armed, name, x, np.arange(3, dtype=np.int16), np.arange(tail, dtype=np.float32), Inner(a, -a), 7)
    return bytes(STORE.serialize_cdr(made, KIND))


def columns(payloads: Sequence[bytes], *paths: str, encoding: tuple[str, str] = ("cdr", "ros2msg")) -> Any:
    ends = np.cumsum([len(payload) for payload in payloads], dtype=np.int64)
    starts = ends - [len(payload) for payload in payloads]
    topic = RecordedTopic("/made", KIND, DEFINITION.encode(), encoding, starts, ends)
    return decode(Content(Path("made.mcap"), b"".join(payloads), {}, {}), topic, paths)


@given(st.lists(rows, min_size=1, max_size=12))
def test_messages_of_any_lengths_come_back_in_order(given: list[tuple[bool, str, float, float]]) -> None:
    found = columns([message(*row) for row in given], "armed", "name", "x", "inner", "fixed", "tail", "last")
    assert found.scalar("armed").tolist() == [armed for armed, *_ in given]
    assert found.strings["name"] == [name for _, name, *_ in given]
    assert found.scalar("x").tolist() == [x for _, _, x, _ in given]
    assert found.numbers["inner"].tolist() == [[a, -a] for *_, a in given]
    assert (found.numbers["fixed"] == [0, 1, 2]).all() and (found.numbers["tail"] == [0.0, 1.0]).all()
    assert (found.scalar("last") == 7).all()


def test_an_empty_sequence_is_no_column_rather_than_an_error() -> None:
    assert columns([message(tail=0)] * 3, "tail").numbers["tail"].shape == (3, 0)


def test_no_messages_are_no_rows() -> None:
    assert columns([], "x").rows == 0


@pytest.mark.parametrize(
    ("payloads", "paths", "said"),
    [
        ([message()], ["z"], "has no field 'z'; it has armed, x,"),
        ([message(tail=1), message(tail=2)], ["tail"], "field 'tail' changes its length from 1 to 2"),
        ([message()[:-8]], ["x"], "but its definition asks for"),
        ([message() + bytes(8)], ["x"], "but its definition asks for"),
        ([b"\0\0" + message()[2:]], ["x"], "messages must be little-endian CDR"),
        ([message()[:8] + b"\xff\xff\xff\xff" + message()[12:]], ["x"], "a length of 4294967295 does not fit"),
    ],
)
def test_what_does_not_fit_is_named_with_file_and_topic(payloads: list[bytes], paths: list[str], said: str) -> None:
    with pytest.raises(ContractError) as caught:
        columns(payloads, *paths)
    assert str(caught.value).startswith("made.mcap: /made: ") and said in str(caught.value)


def test_another_encoding_is_refused() -> None:
    with pytest.raises(ContractError, match=r"/made is encoded as \('json', ''\)"):
        columns([message()], "x", encoding=("json", ""))


@given(st.binary(max_size=80))
def test_no_bytes_give_anything_but_columns_or_a_refusal(payload: bytes) -> None:
    try:
        columns([payload], "x", "name", "tail")
    except ContractError as error:
        assert str(error).startswith("made.mcap: /made: ")


def test_a_message_beyond_the_end_is_noticed() -> None:
    with pytest.raises(ContractError, match="beyond the end of its chunk"):
        gather(bytes(10), np.array([0, 5]), 6)
