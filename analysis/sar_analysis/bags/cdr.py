"""Messages as columns: K serialised messages of one topic become a few arrays, without an object per message.

Where a number lies in a message depends only on the message's definition and on its length words (of strings and
sequences). Messages with the same length words therefore have the same layout, and a column is a strided copy.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from sar_analysis.bags.chunks import Content, RecordedTopic
from sar_core.errors import ContractError

LITTLE_ENDIAN = b"\x00\x01"
ENCAPSULATION_BYTES = 4
MAX_LENGTH = 1 << 24

_PRIMITIVES: dict[str, np.dtype[Any]] = {
    "bool": np.dtype("?"),
    "byte": np.dtype("u1"),
    "char": np.dtype("u1"),
    "int8": np.dtype("i1"),
    "uint8": np.dtype("u1"),
    "int16": np.dtype("<i2"),
    "uint16": np.dtype("<u2"),
    "int32": np.dtype("<i4"),
    "uint32": np.dtype("<u4"),
    "int64": np.dtype("<i8"),
    "uint64": np.dtype("<u8"),
    "float32": np.dtype("<f4"),
    "float64": np.dtype("<f8"),
}


@functools.lru_cache(maxsize=64)
def types_of(definition: bytes, msgtype: str) -> Typestore:
    """The types of one embedded definition: nothing of this installation enters."""
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(definition.decode(), msgtype))
    return store


@dataclass
class FieldLayout:
    """Where everything lies in messages with the same length words; offsets count from the payload's first byte."""

    numbers: dict[str, tuple[int, np.dtype[Any], int]] = field(default_factory=dict)
    strings: dict[str, tuple[int, int]] = field(default_factory=dict)
    words: list[int] = field(default_factory=list)
    empty: set[str] = field(default_factory=set)
    end: int = ENCAPSULATION_BYTES

    def length(self, payload: bytes) -> int:
        """Take in the length word that comes next."""
        at = self._align(4)
        self.words.append(at)
        self.end = at + 4
        value = int.from_bytes(payload[at : at + 4], "little")
        if value > min(MAX_LENGTH, len(payload)):
            raise ContractError(f"a length of {value} does not fit a message of {len(payload)} bytes")
        return value

    def add_numbers(self, path: str, kind: str, count: int) -> None:
        if count:
            dtype = _PRIMITIVES[kind]
            at = self._align(dtype.itemsize)
            self.end = at + count * dtype.itemsize
            self.numbers[path] = (at, dtype, count)

    def add_string(self, path: str, size: int) -> None:
        self.strings[path] = (self.end, size)
        self.end += size

    def _align(self, size: int) -> int:
        return ENCAPSULATION_BYTES + -(-(self.end - ENCAPSULATION_BYTES) // size) * size


def layout_of(store: Typestore, msgtype: str, payload: bytes) -> FieldLayout:
    """The layout of one message and of all that have the same length words."""
    layout = FieldLayout()
    _walk(store, msgtype, payload, "", layout)
    if not layout.end <= len(payload) < layout.end + 4:
        raise ContractError(f"a message of {len(payload)} bytes, but its definition asks for {layout.end}")
    return layout


def _walk(store: Typestore, msgtype: str, payload: bytes, prefix: str, layout: FieldLayout) -> None:
    fields: Any = store.get_msgdef(msgtype).fields
    for name, (kind, detail) in fields:
        path = f"{prefix}{name}"
        if kind == Nodetype.NAME:
            _walk(store, detail, payload, f"{path}.", layout)
        elif kind == Nodetype.BASE:
            _base(detail[0], payload, path, layout)
        else:
            inner, fixed = detail
            count = fixed if kind == Nodetype.ARRAY else layout.length(payload)
            if count == 0:
                layout.empty.add(path)
            if inner[0] == Nodetype.BASE and inner[1][0] != "string":
                layout.add_numbers(path, inner[1][0], count)
                continue
            for i in range(count):
                if inner[0] == Nodetype.NAME:
                    _walk(store, inner[1], payload, f"{path}.{i}.", layout)
                else:
                    _base(inner[1][0], payload, f"{path}.{i}", layout)


def _base(kind: str, payload: bytes, path: str, layout: FieldLayout) -> None:
    if kind == "string":
        layout.add_string(path, layout.length(payload))
    else:
        layout.add_numbers(path, kind, 1)


@dataclass(frozen=True)
class Columns:
    """The wanted fields of K messages: numbers by path as [K, count], strings as lists."""

    topic: str
    rows: int
    numbers: dict[str, NDArray[Any]]
    strings: dict[str, list[str]]

    def scalar(self, path: str) -> NDArray[Any]:
        """One number per message, [K]."""
        return self.numbers[path][:, 0]

    def stamps(self, path: str) -> NDArray[np.int64]:
        """A time in integer nanoseconds, int64[K]."""
        seconds = self.scalar(f"{path}.sec").astype(np.int64)
        return np.asarray(seconds * 1_000_000_000 + self.scalar(f"{path}.nanosec"), np.int64)

    def vectors(self, path: str, width: int) -> NDArray[Any]:
        """A sequence of messages of `width` equal numbers each, [K, N, width]."""
        return self.numbers[path].reshape(self.rows, -1, width)


def has_field(topic: RecordedTopic, name: str) -> bool:
    """Whether a topic's definition in the file has a field of this name; one that is no definition has none."""
    try:
        fields: Any = types_of(topic.definition, topic.msgtype).get_msgdef(topic.msgtype).fields
    except (TypesysError, LookupError, ValueError, TypeError):
        return False
    return name in dict(fields)


def decode(content: Content, topic: RecordedTopic, paths: Sequence[str]) -> Columns:
    """The named fields of every message of a topic; a path may name a number, a string or a whole sub-message."""
    if topic.encoding != ("cdr", "ros2msg"):
        raise ContractError(f"{content.file}: {topic.name} is encoded as {topic.encoding}, expected ('cdr', 'ros2msg')")
    try:
        store = types_of(topic.definition, topic.msgtype)
        return _decode(content.buffer, topic, store, paths)
    except (ContractError, TypesysError, LookupError, ValueError, TypeError) as error:
        raise ContractError(f"{content.file}: {topic.name}: {error}") from error


def _decode(buffer: bytes, topic: RecordedTopic, store: Typestore, paths: Sequence[str]) -> Columns:
    total = len(topic.starts)
    out = Columns(topic.name, total, {}, {})
    sizes = topic.ends - topic.starts
    pending = np.arange(total)
    while pending.size:
        first = pending[0]
        payload = buffer[topic.starts[first] : topic.ends[first]]
        layout = layout_of(store, topic.msgtype, payload)
        alike = pending[sizes[pending] == sizes[first]]
        rows = gather(buffer, topic.starts[alike], len(payload))
        same = _same_words(rows, layout.words)
        chosen, rows = alike[same], rows[same]
        if not (rows[:, :2] == np.frombuffer(LITTLE_ENDIAN, np.uint8)).all():
            raise ContractError("messages must be little-endian CDR")
        for path in paths:
            _take(out, path, layout, rows, chosen)
        pending = np.setdiff1d(pending, chosen, assume_unique=True)
    return out


def gather(buffer: bytes, starts: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
    """Equal-sized stretches of a buffer as rows, uint8[K, size]."""
    if int(starts.max(initial=0)) + size > len(buffer):
        raise ContractError("a message reaches beyond the end of its chunk")
    windows = np.ndarray((len(buffer) - size + 1,), f"V{size}", buffer, strides=(1,))
    return windows[starts].view(np.uint8).reshape(len(starts), size)


def _same_words(rows: NDArray[np.uint8], words: Sequence[int]) -> NDArray[np.bool_]:
    """Which rows have the first row's length words, and so its layout."""
    same = np.ones(len(rows), np.bool_)
    for at in words:
        same &= (rows[:, at : at + 4] == rows[0, at : at + 4]).all(axis=1)
    return same


def _take(out: Columns, path: str, layout: FieldLayout, rows: NDArray[np.uint8], chosen: NDArray[np.intp]) -> None:
    if path in layout.strings:
        at, size = layout.strings[path]
        texts = out.strings.setdefault(path, [""] * out.rows)
        for row, raw in zip(chosen.tolist(), rows[:, at : at + size], strict=True):
            texts[row] = raw.tobytes().rstrip(b"\0").decode(errors="replace")
        return
    if path in layout.empty:
        out.numbers.setdefault(path, np.empty((out.rows, 0)))
        return
    parts = [leaf for name, leaf in layout.numbers.items() if name == path or name.startswith(path + ".")]
    if not parts:
        raise ContractError(f"has no field {path!r}; it has {', '.join([*layout.numbers, *layout.strings])}")
    kinds = {dtype for _, dtype, _ in parts}
    if len(kinds) != 1:
        raise ContractError(f"field {path!r} mixes {', '.join(sorted(map(str, kinds)))}")
    dtype = kinds.pop()
    values = np.concatenate([_cut(rows, *part) for part in _runs(parts)], axis=1)
    column = out.numbers.get(path)
    if column is None:
        column = out.numbers[path] = np.empty((out.rows, values.shape[1]), dtype)
    if column.shape[1] != values.shape[1] or column.dtype != dtype:
        raise ContractError(f"field {path!r} changes its length from {column.shape[1]} to {values.shape[1]}")
    column[chosen] = values


def _cut(rows: NDArray[np.uint8], at: int, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    return np.ascontiguousarray(rows[:, at : at + count * dtype.itemsize]).view(dtype)


def _runs(parts: Sequence[tuple[int, np.dtype[Any], int]]) -> list[tuple[int, np.dtype[Any], int]]:
    """Neighbouring numbers joined, so that a sub-message is one copy."""
    runs: list[tuple[int, np.dtype[Any], int]] = []
    for at, dtype, count in parts:
        if runs and runs[-1][0] + runs[-1][2] * dtype.itemsize == at:
            runs[-1] = (runs[-1][0], dtype, runs[-1][2] + count)
        else:
            runs.append((at, dtype, count))
    return runs
