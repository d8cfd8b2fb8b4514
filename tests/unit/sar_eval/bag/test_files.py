"""A writer of prepared chunks; that its file is the library's byte for byte is tested with the bag writer."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.records import Channel, Schema

from sar_eval.bag.files import MESSAGE, RECORD, McapFile, message_indexes

rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**60), st.binary(max_size=20)), min_size=1, max_size=20)


def begun() -> tuple[McapFile, io.BytesIO]:
    stream = io.BytesIO()
    file = McapFile(stream.write, "test")
    file.add_schema(Schema(id=1, data=b"", encoding="ros2msg", name="a/msg/B"))
    for number in range(4):
        file.add_channel(Channel(id=number, topic=f"/{number}", message_encoding="cdr", metadata={}, schema_id=1))
    return file, stream


def write(file: McapFile, chunk: list[tuple[int, int, bytes]]) -> None:
    records = [MESSAGE.pack(5, 22 + len(body), channel, 0, time, time) + body for channel, time, body in chunk]
    file.write_chunk(
        records, np.array([c for c, _, _ in chunk], np.uint16), np.array([t for _, t, _ in chunk], np.uint64)
    )


@given(st.lists(rows, max_size=4))
def test_the_library_reads_back_every_message_with_its_counts(chunks: list[list[tuple[int, int, bytes]]]) -> None:
    file, stream = begun()
    file.add_metadata("made", {"a": "b"})
    for chunk in chunks:
        write(file, chunk)
    file.finish()
    assert file.offset == len(stream.getvalue())
    flat = [row for chunk in chunks for row in chunk]
    stream.seek(0)
    reader = make_reader(stream, validate_crcs=True)
    found = [
        (int(channel.topic[1:]), message.log_time, message.data)
        for _, channel, message in reader.iter_messages(log_time_order=False)
    ]
    assert found == flat
    summary = reader.get_summary()
    assert summary is not None and summary.statistics is not None
    assert summary.statistics.message_count == len(flat) == sum(file.counts.values())
    times = [time for _, time, _ in flat]
    assert file.span == ((min(times), max(times)) if times else (0, 0))
    assert [(m.name, m.metadata) for m in reader.iter_metadata()] == [("made", {"a": "b"})]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_an_index_leads_to_each_message_of_its_channel_in_order(channels: list[int]) -> None:
    places = np.arange(len(channels)) * 100
    indexes = message_indexes(np.array(channels, np.uint16), places.astype(np.uint64) + 7, places)
    assert list(indexes) == list(dict.fromkeys(channels)), "in the order in which they first occur"
    for channel, index in indexes.items():
        mine = [k for k, c in enumerate(channels) if c == channel]
        table = np.frombuffer(index[RECORD.size + 6 :], "<u8").reshape(-1, 2)
        assert table.tolist() == [[100 * k + 7, 100 * k] for k in mine]


def test_a_file_that_cannot_take_more_says_so_at_once() -> None:
    def full(_: bytes) -> None:
        raise OSError("No space left")

    with pytest.raises(OSError, match="No space left"):
        McapFile(full, "test")
