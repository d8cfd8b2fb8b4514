"""MCAP files in the making: a writer of prepared chunks.

The ``mcap`` library defines and serialises every record. It adds messages one at a time, though, which at a hundred
times real time costs more than the simulation; so a chunk's messages are laid out here in one pass. The file is byte
for byte what the library's own writer makes of the same messages, and a test holds that to be so.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import zstandard
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
    SummaryOffset,
)
from numpy.typing import NDArray

MAGIC = b"\x89MCAP0\r\n"
RECORD = struct.Struct("<BQ")
MESSAGE = struct.Struct("<BQHIQQ")


class McapFile:
    """An MCAP file in the making: schemas and channels first, then chunks, then ``finish``."""

    def __init__(self, put: Callable[[bytes], None], library: str) -> None:
        self._put = put
        self._data_crc = 0
        self._schemas: dict[int, Schema] = {}
        self._channels: dict[int, Channel] = {}
        self._definitions = b""
        self._metadata: list[MetadataIndex] = []
        self._counts: Counter[int] = Counter()
        self._times: tuple[int, int] | None = None
        self.offset = 0
        self.chunks: list[ChunkIndex] = []
        self.crcs: list[int] = []
        self._append(MAGIC)
        self._append(_serialise(Header(profile="ros2", library=library)))

    @property
    def counts(self) -> Mapping[int, int]:
        """Messages written so far per channel id."""
        return self._counts

    @property
    def span(self) -> tuple[int, int]:
        """First and last log time written so far [ns]; zeros for an empty file."""
        return self._times or (0, 0)

    def add_schema(self, schema: Schema) -> None:
        """Announce a message type; it goes into the next chunk."""
        self._schemas[schema.id] = schema
        self._definitions += _serialise(schema)

    def add_channel(self, channel: Channel) -> None:
        """Announce a topic; it goes into the next chunk."""
        self._channels[channel.id] = channel
        self._definitions += _serialise(channel)

    def add_metadata(self, name: str, values: Mapping[str, str]) -> None:
        """Write a metadata record here and now, between chunks."""
        record = _serialise(Metadata(name=name, metadata=dict(values)))
        self._metadata.append(MetadataIndex(offset=self.offset, length=len(record), name=name))
        self._append(record)

    def write_chunk(
        self, records: Sequence[bytes], channels: NDArray[np.uint16], log_times: NDArray[np.uint64]
    ) -> None:
        """Write messages (whole records in file order, with their channel ids and log times) as one chunk."""
        data = b"".join([self._definitions, *records])
        offsets = np.cumsum([len(self._definitions), *map(len, records[:-1])])
        self._definitions = b""
        start, end = int(log_times.min()), int(log_times.max())
        packed = zstandard.compress(data)
        crc = zlib.crc32(data)
        chunk = _serialise(
            Chunk(
                compression="zstd",
                data=packed,
                message_start_time=start,
                message_end_time=end,
                uncompressed_crc=crc,
                uncompressed_size=len(data),
            )
        )
        indexes = message_indexes(channels, log_times, offsets)
        at = self.offset + len(chunk)
        places = {}
        for channel, index in indexes.items():
            places[channel] = at
            at += len(index)
            self._counts[channel] += (len(index) - RECORD.size - 6) // 16
        self.chunks.append(
            ChunkIndex(
                chunk_length=len(chunk),
                chunk_start_offset=self.offset,
                compression="zstd",
                compressed_size=len(packed),
                message_end_time=end,
                message_index_length=at - self.offset - len(chunk),
                message_index_offsets=places,
                message_start_time=start,
                uncompressed_size=len(data),
            )
        )
        self.crcs.append(crc)
        self._times = (min(start, self._times[0]), max(end, self._times[1])) if self._times else (start, end)
        self._append(b"".join([chunk, *indexes.values()]))

    def finish(self) -> None:
        """Write the end of the data section, the summary and the footer."""
        self._append(_serialise(DataEnd(self._data_crc)))
        start = self.offset
        first, last = self.span
        statistics = Statistics(
            attachment_count=0,
            channel_count=len(self._channels),
            channel_message_counts=dict(self._counts),
            chunk_count=len(self.chunks),
            message_count=sum(self._counts.values()),
            metadata_count=len(self._metadata),
            message_start_time=first,
            message_end_time=last,
            schema_count=len(self._schemas),
        )
        groups: list[tuple[Opcode, Sequence[Any]]] = [
            (Opcode.SCHEMA, list(self._schemas.values())),
            (Opcode.CHANNEL, list(self._channels.values())),
            (Opcode.STATISTICS, [statistics]),
            (Opcode.CHUNK_INDEX, self.chunks),
            (Opcode.ATTACHMENT_INDEX, []),
            (Opcode.METADATA_INDEX, self._metadata),
        ]
        summary, offsets = b"", b""
        for opcode, records in groups:
            group = _serialise(*records)
            place = SummaryOffset(group_opcode=opcode, group_start=start + len(summary), group_length=len(group))
            offsets += _serialise(place)
            summary += group
        footer = Footer(summary_start=start, summary_offset_start=start + len(summary), summary_crc=0)
        summary += offsets
        footer.summary_crc = zlib.crc32(summary + _serialise(footer)[:-4])
        self._append(summary + _serialise(footer) + MAGIC)

    def _append(self, data: bytes) -> None:
        self._put(data)
        self._data_crc = zlib.crc32(data, self._data_crc)
        self.offset += len(data)


def message_indexes(
    channels: NDArray[np.uint16], log_times: NDArray[np.uint64], offsets: NDArray[Any]
) -> dict[int, bytes]:
    """Message index records per channel, in the order in which the channels first occur in the chunk."""
    order = np.argsort(channels, kind="stable")
    table = np.empty((len(order), 2), "<u8")
    table[:, 0] = log_times[order]
    table[:, 1] = offsets[order]
    packed = table.tobytes()
    ids, starts = np.unique(channels[order], return_index=True)
    ends = [*starts[1:].tolist(), len(order)]
    rows = sorted(zip(order[starts].tolist(), ids.tolist(), starts.tolist(), ends, strict=True))
    out = {}
    for _, channel, start, end in rows:
        size = 16 * (end - start)
        head = struct.pack("<BQHI", Opcode.MESSAGE_INDEX, size + 6, channel, size)
        out[channel] = head + packed[16 * start : 16 * end]
    return out


def _serialise(*records: Any) -> bytes:
    builder: Any = RecordBuilder()
    for record in records:
        record.write(builder)
    return bytes(builder.end())
