"""The bytes of an MCAP file: verified by checksum, unpacked whole, and every message's place in them.

A bag is read in one piece because analysis wants columns over all of an episode, not messages one by one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Metadata, MetadataIndex, Schema
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.errors import ContractError, MissingDataError

Offsets = NDArray[np.int64]

MAGIC = b"\x89MCAP0\r\n"
MAX_CHUNK_BYTES = 1 << 28
REPAIR = "`sar-eval bag repair` saves what is whole"

_RECORD = struct.Struct("<BQ")
_FOOTER = struct.Struct("<BQQQI")
_CHUNK = struct.Struct("<QQQI")
_CHUNK_INDEX = struct.Struct("<QQQ")
_DATA_END_BYTES = 13
MESSAGE = int(Opcode.MESSAGE)
RECORD_BYTES = 9
MESSAGE_BYTES = 31
"""Of a message record, before the payload: record header, channel, sequence, two times."""


@dataclass(frozen=True)
class RecordedTopic:
    """One channel: its type with the embedded definition, and where its payloads lie (start and end, int64[K])."""

    name: str
    msgtype: str
    definition: bytes
    encoding: tuple[str, str]
    starts: Offsets
    ends: Offsets


@dataclass(frozen=True)
class Content:
    """All of a file: one buffer of unpacked chunks, the topics that lie in it, and the metadata records."""

    file: Path
    buffer: bytes
    topics: Mapping[str, RecordedTopic]
    metadata: Mapping[str, Mapping[str, str]]


def read_content(file: Path) -> Content:
    """Read and verify a file; whatever is wrong with it is a ContractError that says where."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise MissingDataError(f"{file}: cannot be read: {error.strerror}") from error
    if not data:
        raise ContractError(f"{file}: the file is empty; expected an MCAP file")
    try:
        return _content(file, data)
    except (McapError, zstandard.ZstdError, struct.error, ValueError, EOFError, KeyError) as error:
        raise ContractError(f"{file}: does not read as MCAP: {error}; {REPAIR}") from error


def _content(file: Path, data: bytes) -> Content:
    summary_at, trusted = _verify(file, data)
    schemas: dict[int, Schema] = {}
    channels: dict[int, Channel] = {}
    chunks: list[int] = []
    metadata: dict[str, Mapping[str, str]] = {}
    for opcode, body in _records(data, summary_at, len(data) - len(MAGIC) - _FOOTER.size):
        if opcode == Opcode.SCHEMA:
            schema = _parse(Schema, body)
            schemas[schema.id] = schema
        elif opcode == Opcode.CHANNEL:
            channel = _parse(Channel, body)
            channels[channel.id] = channel
        elif opcode == Opcode.CHUNK_INDEX:
            chunks.append(_CHUNK_INDEX.unpack_from(body)[2])
        elif opcode == Opcode.METADATA_INDEX:
            index = _parse(MetadataIndex, body)
            record = _parse(Metadata, data[index.offset + _RECORD.size : index.offset + index.length])
            metadata[record.name] = record.metadata
    if not chunks:
        raise MissingDataError(f"{file}: the bag holds no messages; expected a flown episode")
    zstd = zstandard.ZstdDecompressor()
    buffer = b"".join([_unpack(file, data, at, trusted, zstd) for at in chunks])
    places = _places(file, buffer)
    topics = {}
    nowhere = np.empty((0, 2), np.int64)
    for number, channel in channels.items():
        schema = schemas[channel.schema_id]
        rows = places.get(number, nowhere)
        encoding = (channel.message_encoding, schema.encoding)
        topics[channel.topic] = RecordedTopic(channel.topic, schema.name, schema.data, encoding, rows[:, 0], rows[:, 1])
    return Content(file, buffer, topics, metadata)


def _verify(file: Path, data: bytes) -> tuple[int, bool]:
    """Where the summary begins, and whether a checksum over the whole data section vouches for every chunk."""
    if not data.startswith(MAGIC):
        raise ContractError(f"{file}: does not begin as an MCAP file does")
    footer_at = len(data) - len(MAGIC) - _FOOTER.size
    if footer_at < len(MAGIC) or not data.endswith(MAGIC) or data[footer_at] != Opcode.FOOTER:
        raise ContractError(f"{file}: ends without a footer: cut off or never finished; {REPAIR}")
    _, _, summary_at, _, summary_crc = _FOOTER.unpack_from(data, footer_at)
    if not len(MAGIC) + _DATA_END_BYTES <= summary_at <= footer_at:
        raise ContractError(f"{file}: has no summary where its footer points, byte {summary_at}; {REPAIR}")
    if summary_crc and summary_crc != zlib.crc32(memoryview(data)[summary_at : -len(MAGIC) - 4]):
        raise ContractError(f"{file}: the summary's checksum is wrong; {REPAIR}")
    data_end = summary_at - _DATA_END_BYTES
    (data_crc,) = struct.unpack_from("<I", data, data_end + _RECORD.size)
    if data[data_end] != Opcode.DATA_END:
        raise ContractError(f"{file}: the data section does not end where the summary begins, byte {summary_at}")
    if data_crc and data_crc != zlib.crc32(memoryview(data)[:data_end]):
        raise ContractError(f"{file}: the data section's checksum is wrong, some byte has changed; {REPAIR}")
    return summary_at, bool(data_crc)


def _records(data: bytes, at: int, end: int) -> Iterable[tuple[int, bytes]]:
    while at < end:
        opcode, length = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        yield opcode, data[at : at + length]
        at += length


def _parse(kind: Any, body: bytes) -> Any:
    return kind.read(ReadDataStream(BytesIO(body)))


def _unpack(file: Path, data: bytes, at: int, trusted: bool, zstd: zstandard.ZstdDecompressor) -> bytes:
    """One chunk's messages; its own checksum is looked at where none over the whole file has been."""
    if data[at] != Opcode.CHUNK:
        raise ContractError(f"{file}: no chunk at byte {at}, where the summary says there is one")
    at += _RECORD.size
    _, _, size, crc = _CHUNK.unpack_from(data, at)
    at += _CHUNK.size
    (name_size,) = struct.unpack_from("<I", data, at)
    name = data[at + 4 : at + 4 + name_size].decode()
    at += 4 + name_size
    (packed_size,) = struct.unpack_from("<Q", data, at)
    packed = memoryview(data)[at + 8 : at + 8 + packed_size]
    if size > MAX_CHUNK_BYTES:
        raise ContractError(f"{file}: a chunk of {size} bytes exceeds the limit of {MAX_CHUNK_BYTES}")
    if name not in ("zstd", ""):
        raise ContractError(f"{file}: a chunk is compressed with {name!r}; supported are 'zstd' and none")
    raw = zstd.decompress(packed, max_output_size=size) if name else bytes(packed)
    if len(raw) != size or (crc and not trusted and zlib.crc32(raw) != crc):
        raise ContractError(f"{file}: the chunk before byte {at} has a wrong size or checksum; {REPAIR}")
    return raw


@compiled
def _walk(buffer: NDArray[np.uint8], found: Offsets) -> int:
    """Channel, start and end of every message into found int64[M, 3]; returns how many there are, -1 if bytes run out.

    Called with an empty array first, to count.
    """
    at, count, size = 0, 0, buffer.shape[0]
    while at < size:
        if size - at < RECORD_BYTES:
            return -1
        length = np.int64(0)
        for k in range(8):
            length |= np.int64(buffer[at + 1 + k]) << (8 * k)
        if length < 0 or length > size - at - RECORD_BYTES:
            return -1
        end = at + RECORD_BYTES + int(length)
        if buffer[at] == MESSAGE:
            if length < MESSAGE_BYTES - RECORD_BYTES:
                return -1
            if count < found.shape[0]:
                found[count, 0] = np.int64(buffer[at + 9]) | np.int64(buffer[at + 10]) << 8
                found[count, 1] = at + MESSAGE_BYTES
                found[count, 2] = end
            count += 1
        at = end
    return count


def _places(file: Path, buffer: bytes) -> dict[int, Offsets]:
    """Start and end of every payload per channel id, int64[K, 2], in the order of the file."""
    view = np.frombuffer(buffer, np.uint8)
    count = _walk(view, np.empty((0, 3), np.int64))
    if count < 0:
        raise ContractError(f"{file}: a chunk ends inside a record; {REPAIR}")
    found = np.empty((count, 3), np.int64)
    _walk(view, found)
    found = found[np.argsort(found[:, 0], kind="stable")]
    channels, firsts = np.unique(found[:, 0], return_index=True)
    ends = [*firsts.tolist()[1:], count][: len(firsts)]
    return {c: found[i:j, 1:] for c, i, j in zip(channels.tolist(), firsts.tolist(), ends, strict=True)}
