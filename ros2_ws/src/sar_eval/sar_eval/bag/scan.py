"""MCAP files as found: a walk through a bag's bytes that no bytes can upset.

A bag cut off by a kill or bitten by a bad disk is still mostly good. The walk tells which chunks are whole, by their
checksums, and describes everything else in plain words.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
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
)

from sar_core.errors import InputError, MissingDataError
from sar_eval.bag.files import MAGIC, MESSAGE, RECORD, message_indexes

MESSAGE_BODY_BYTES = MESSAGE.size - RECORD.size
MAX_CHUNK_BYTES = 1 << 28

# Each record body as a row of fields: a number is a fixed size, "4" and "8" a block with a length of that many bytes.
_SHAPES: dict[int, tuple[int | str, ...]] = {
    Opcode.HEADER: ("4", "4"),
    Opcode.FOOTER: (20,),
    Opcode.SCHEMA: (2, "4", "4", "4"),
    Opcode.CHANNEL: (4, "4", "4", "4"),
    Opcode.CHUNK: (28, "4", "8"),
    Opcode.MESSAGE_INDEX: (2, "4"),
    Opcode.CHUNK_INDEX: (32, "4", 8, "4", 16),
    Opcode.ATTACHMENT: (16, "4", "4", "8", 4),
    Opcode.ATTACHMENT_INDEX: (40, "4", "4"),
    Opcode.STATISTICS: (42, "4"),
    Opcode.METADATA: ("4", "4"),
    Opcode.METADATA_INDEX: (16, "4"),
    Opcode.SUMMARY_OFFSET: (17,),
    Opcode.DATA_END: (4,),
}
_LENGTHS = {"4": struct.Struct("<I"), "8": struct.Struct("<Q")}
_CHUNK_START = b"\x04\x00\x00\x00zstd"
_CHUNK_START_AT = RECORD.size + 28


class DamageError(ValueError):
    """Bytes that are not what they should be; the text says in which way."""


class RawMessage(NamedTuple):
    """One message inside a chunk's uncompressed data, whose record spans ``start:end``."""

    channel: int
    sequence: int
    log_time: int
    publish_time: int
    start: int
    end: int

    def payload(self, data: bytes) -> bytes:
        """The serialised message."""
        return data[self.start + MESSAGE.size : self.end]


class McapRecord(NamedTuple):
    """One whole record of a file."""

    offset: int
    opcode: int
    body: bytes

    @property
    def end(self) -> int:
        """Offset of the first byte after the record."""
        return self.offset + RECORD.size + len(self.body)

    def parse(self, kind: Any) -> Any:
        """The record as the library's class for it."""
        try:
            return kind.read(ReadDataStream(BytesIO(self.body)))
        except (McapError, struct.error, ValueError) as error:
            raise DamageError(f"{kind.__name__} record does not parse: {error}") from error


class Damage(NamedTuple):
    """A stretch of bytes that is no valid record, and why."""

    offset: int
    end: int
    reason: str


@dataclass(slots=True)
class ChunkFacts:
    """What one intact chunk of a file holds, apart from its bytes."""

    offset: int
    end: int
    crc: int
    start_time: int
    end_time: int
    size: int
    compression: str
    messages: int


@dataclass(slots=True)
class Survey:
    """Everything a walk through a file found, whatever state the file is in.

    ``sealed`` names the schemas and channels that a chunk's checksum vouches for; ``finished`` says that the summary is
    there and its checksum holds, which vouches for its own; ``data_verified`` that the whole data section's does.
    """

    size: int
    profile: str | None = None
    damage: list[Damage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    chunks: list[ChunkFacts] = field(default_factory=list)
    schemas: dict[int, Schema] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    metadata: list[Metadata] = field(default_factory=list)
    counts: Counter[int] = field(default_factory=Counter)
    statistics: Statistics | None = None
    chunk_indexes: list[ChunkIndex] = field(default_factory=list)
    metadata_indexes: list[MetadataIndex] = field(default_factory=list)
    sealed: set[tuple[str, int]] = field(default_factory=set)
    data_verified: bool = False
    finished: bool = False

    @property
    def lost_bytes(self) -> int:
        """Bytes that belong to no valid record."""
        return sum(damage.end - damage.offset for damage in self.damage)


Visitor = Callable[[ChunkFacts, bytes, list[RawMessage]], None]


def locate(path: Path) -> Path:
    """The one MCAP file of a bag, given its folder or the file itself."""
    if path.is_file():
        return path
    if not path.exists():
        raise MissingDataError(f"{path}: no such bag; expected a rosbag2 folder or an .mcap file")
    if not path.is_dir():
        raise InputError(f"{path}: neither a folder nor a file; expected a rosbag2 folder or an .mcap file")
    files = sorted(path.glob("*.mcap"))
    if not files:
        raise MissingDataError(f"{path}: no .mcap file inside; expected a rosbag2 folder with one")
    if len(files) > 1:
        raise InputError(f"{path}: {len(files)} .mcap files inside; name the one that is meant")
    return files[0]


def survey_file(file: Path, visit: Visitor | None = None) -> Survey:
    """The survey of a file on disk."""
    with open(file, "rb") as stream:
        return survey(stream, os.fstat(stream.fileno()).st_size, visit)


def survey(stream: BinaryIO, size: int, visit: Visitor | None = None) -> Survey:
    """Walk through ``size`` bytes of a file and report; ``visit`` sees every intact chunk uncompressed."""
    found = Survey(size)
    crc, crc_at = 0, 0
    expected: dict[int, bytes] | None = {}
    summary_at: int | None = None
    for item in scan(stream, size):
        if isinstance(item, Damage):
            found.damage.append(item)
            expected = None
            continue
        if expected and item.opcode != Opcode.MESSAGE_INDEX:
            found.notes.append(f"message indexes are missing before byte {item.offset}")
            expected = {}
        try:
            if item.opcode == Opcode.CHUNK:
                expected = None
                expected = _read_chunk(item, found, visit)
            elif item.opcode == Opcode.MESSAGE_INDEX:
                (channel,) = struct.unpack_from("<H", item.body)
                if (
                    expected is not None
                    and expected.pop(channel, None) != RECORD.pack(item.opcode, len(item.body)) + item.body
                ):
                    found.notes.append(f"message index at byte {item.offset} does not fit its chunk")
            elif item.opcode == Opcode.DATA_END:
                summary_at = item.end
                stated = item.parse(DataEnd).data_section_crc
                while crc_at < item.offset:
                    stream.seek(crc_at)
                    block = stream.read(min(1 << 20, item.offset - crc_at))
                    crc, crc_at = zlib.crc32(block, crc), crc_at + len(block)
                found.data_verified = stated == crc
                if stated and not found.data_verified:
                    found.notes.append("the data section's checksum is wrong: some byte before the summary has changed")
            elif item.opcode == Opcode.FOOTER:
                _read_footer(item, found, stream, summary_at)
            else:
                _read_definition(item, found)
        except DamageError as error:
            found.damage.append(Damage(item.offset, item.end, str(error)))
    return found


def _read_chunk(record: McapRecord, found: Survey, visit: Visitor | None) -> dict[int, bytes]:
    """Check one chunk and take in what it defines; gives the message indexes that have to follow it."""
    chunk: Chunk = record.parse(Chunk)
    data = unpack(chunk)
    inner, messages = split(data)
    for item in inner:
        kind = Schema if item.opcode == Opcode.SCHEMA else Channel
        parsed = item.parse(kind)
        table: dict[int, Any] = found.schemas if kind is Schema else found.channels
        table[parsed.id] = parsed
        found.sealed.add((kind.__name__, parsed.id))
    facts = ChunkFacts(
        record.offset,
        record.end,
        chunk.uncompressed_crc,
        chunk.message_start_time,
        chunk.message_end_time,
        len(data),
        chunk.compression,
        len(messages),
    )
    found.chunks.append(facts)
    if not messages:
        return {}
    rows = np.array([(m.channel, m.log_time, m.start) for m in messages], np.uint64)
    times = rows[:, 1]
    if (int(times.min()), int(times.max())) != (facts.start_time, facts.end_time):
        found.notes.append(f"chunk at byte {record.offset} states a time range that its messages do not have")
    channels = rows[:, 0].astype(np.uint16)
    ids, counts = np.unique(channels, return_counts=True)
    found.counts.update(dict(zip(ids.tolist(), counts.tolist(), strict=True)))
    if visit is not None:
        visit(facts, data, messages)
    return message_indexes(channels, times, rows[:, 2])


def _read_footer(record: McapRecord, found: Survey, stream: BinaryIO, summary_at: int | None) -> None:
    footer: Footer = record.parse(Footer)
    if summary_at is None or footer.summary_start != summary_at:
        found.notes.append("the footer does not point at the summary")
        return
    stream.seek(summary_at)
    summary = stream.read(record.end - 4 - summary_at)
    if footer.summary_crc != zlib.crc32(summary):
        found.notes.append("the summary's checksum is wrong or missing")
        return
    found.finished = True


def _read_definition(record: McapRecord, found: Survey) -> None:
    """Take in a record outside chunks. A definition from inside a chunk, under its checksum, has precedence."""
    if record.opcode == Opcode.HEADER:
        found.profile = record.parse(Header).profile
    elif record.opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
        kind = Schema if record.opcode == Opcode.SCHEMA else Channel
        parsed = record.parse(kind)
        table: dict[int, Any] = found.schemas if kind is Schema else found.channels
        if (kind.__name__, parsed.id) not in found.sealed:
            table[parsed.id] = parsed
        elif table[parsed.id] != parsed:
            found.notes.append(f"{kind.__name__.lower()} {parsed.id} is repeated with another content")
    elif record.opcode == Opcode.METADATA:
        found.metadata.append(record.parse(Metadata))
    elif record.opcode == Opcode.STATISTICS:
        found.statistics = record.parse(Statistics)
    elif record.opcode == Opcode.CHUNK_INDEX:
        found.chunk_indexes.append(record.parse(ChunkIndex))
    elif record.opcode == Opcode.METADATA_INDEX:
        found.metadata_indexes.append(record.parse(MetadataIndex))


def scan(stream: BinaryIO, size: int) -> Iterator[McapRecord | Damage]:
    """Every well-formed record of a file in order. After damage the search goes on at the next intact-looking chunk."""
    stream.seek(0)
    if stream.read(len(MAGIC)) != MAGIC:
        at = _next_chunk(stream, 0, size)
        yield Damage(0, at, "the file does not begin as an MCAP file does")
    else:
        at = len(MAGIC)
    footer = False
    while at < size and not footer:
        try:
            record = _read_record(stream, at, size)
        except DamageError as error:
            following = _next_chunk(stream, at + 1, size)
            yield Damage(at, following, str(error))
            at = following
            continue
        yield record
        at = record.end
        footer = record.opcode == Opcode.FOOTER
    if not footer:
        yield Damage(at, at, "the file ends without a footer: it was cut off or never finished")
        return
    stream.seek(at)
    if stream.read() != MAGIC:
        yield Damage(at, size, "the file does not end as an MCAP file does")


def _read_record(stream: BinaryIO, at: int, size: int) -> McapRecord:
    stream.seek(at)
    if size - at < RECORD.size:
        raise DamageError("a record's header is cut off")
    opcode, length = RECORD.unpack(stream.read(RECORD.size))
    shape = _SHAPES.get(opcode)
    if shape is None:
        kind = "a message outside any chunk, without checksum" if opcode == Opcode.MESSAGE else f"type {opcode:#04x}"
        raise DamageError(f"unexpected record: {kind}")
    if length > size - at - RECORD.size:
        raise DamageError(f"a record of {length} bytes reaches beyond the end of the file")
    body = stream.read(length)
    if not _fits(body, shape):
        raise DamageError(f"a record of type {Opcode(opcode).name} has inconsistent lengths")
    return McapRecord(at, opcode, body)


def _fits(body: bytes, shape: tuple[int | str, ...]) -> bool:
    at = 0
    for part in shape:
        if isinstance(part, int):
            at += part
        else:
            length = _LENGTHS[part]
            if at + length.size > len(body):
                return False
            at += length.size + int(length.unpack_from(body, at)[0])
    return at == len(body)


def _next_chunk(stream: BinaryIO, start: int, size: int) -> int:
    """Offset at or after ``start`` of the next bytes that are framed as a zstd chunk, or ``size``."""
    block = 1 << 20
    at = start
    while at < size:
        stream.seek(at)
        window = stream.read(block + _CHUNK_START_AT + len(_CHUNK_START))
        hit = window.find(_CHUNK_START)
        while hit >= 0:
            candidate = at + hit - _CHUNK_START_AT
            if candidate >= start:
                try:
                    if _read_record(stream, candidate, size).opcode == Opcode.CHUNK:
                        return candidate
                except DamageError:
                    pass
            hit = window.find(_CHUNK_START, hit + 1)
        at += block
    return size


def unpack(chunk: Chunk) -> bytes:
    """A chunk's uncompressed data, its checksum verified."""
    if chunk.uncompressed_size > MAX_CHUNK_BYTES:
        raise DamageError(f"a chunk of {chunk.uncompressed_size} bytes exceeds the limit of {MAX_CHUNK_BYTES}")
    if chunk.compression == "zstd":
        try:
            if zstandard.frame_content_size(chunk.data) != chunk.uncompressed_size:
                raise DamageError("a chunk's compressed data has another size than stated")
            data = zstandard.ZstdDecompressor().decompress(chunk.data)
        except zstandard.ZstdError as error:
            raise DamageError(f"a chunk does not decompress: {error}") from error
    elif chunk.compression == "":
        data = bytes(chunk.data)
    else:
        raise DamageError(f"a chunk is compressed with {chunk.compression!r}; supported are 'zstd' and none")
    if len(data) != chunk.uncompressed_size or zlib.crc32(data) != chunk.uncompressed_crc:
        raise DamageError("a chunk's checksum is wrong or missing")
    return data


def split(data: bytes) -> tuple[list[McapRecord], list[RawMessage]]:
    """The definitions and the messages inside a chunk's uncompressed data."""
    definitions: list[McapRecord] = []
    messages: list[RawMessage] = []
    at, size = 0, len(data)
    while at < size:
        if size - at < RECORD.size:
            raise DamageError("a chunk ends inside a record")
        opcode, length = RECORD.unpack_from(data, at)
        end = at + RECORD.size + length
        if end > size:
            raise DamageError("a chunk ends inside a record")
        if opcode == Opcode.MESSAGE and length >= MESSAGE_BODY_BYTES:
            _, _, channel, sequence, log_time, publish_time = MESSAGE.unpack_from(data, at)
            messages.append(RawMessage(channel, sequence, log_time, publish_time, at, end))
        elif opcode in (Opcode.SCHEMA, Opcode.CHANNEL) and _fits(data[at + RECORD.size : end], _SHAPES[opcode]):
            definitions.append(McapRecord(at, opcode, data[at + RECORD.size : end]))
        else:
            raise DamageError(f"a chunk holds an unexpected record of type {opcode:#04x}")
        at = end
    return definitions, messages
