"""Messages as bytes: the type store, and a serialiser for whole columns of messages at once.

At a hundred times real time an episode writes tens of thousands of messages per second. Most of them have the same
size every time, because their strings and sequence lengths never change on a topic. A ``Layout`` finds once where each
number of such a message lies in its CDR bytes; from then on K messages are a few array copies.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from sar_core.errors import ContractError, MissingDataError
from sar_eval.scenario.resources import share_dir

PACKAGE = "sar_msgs"
TIME = "builtin_interfaces/msg/Time"
ENCAPSULATION_BYTES = 4
NANOSECONDS = 1_000_000_000

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


def load_typestore(folder: Path) -> Typestore:
    """The types of ROS 2 Jazzy plus every ``.msg`` file in ``folder`` (package ``sar_msgs``)."""
    files = sorted(folder.glob("*.msg"))
    if not files:
        raise MissingDataError(f"{folder}: no .msg files; expected the message definitions of {PACKAGE}")
    store = get_typestore(Stores.ROS2_JAZZY)
    types = {}
    for file in files:
        types.update(get_types_from_msg(file.read_text(encoding="utf-8"), f"{PACKAGE}/msg/{file.stem}"))
    store.register(types)
    return store


@functools.cache
def typestore() -> Typestore:
    """The type store with this installation's own message definitions, read once per process."""
    return load_typestore(share_dir("sar_msgs") / "msg")


def serialise(store: Typestore, message: Any) -> bytes:
    """One message as little-endian CDR: for topics that are rare or whose size varies."""
    return bytes(store.serialize_cdr(message, message.__msgtype__, little_endian=True))


def definition(store: Typestore, msgtype: str) -> str:
    """The full text of a type and of all types it contains, as it is embedded in a bag."""
    text, _ = store.generate_msgdef(msgtype, ros_version=2)
    return str(text)


def type_hash(store: Typestore, msgtype: str) -> str:
    """The type description hash (RIHS01) by which ROS 2 tells versions of a type apart."""
    return str(store.hash_rihs01(msgtype))


def blank(store: Typestore, msgtype: str, values: Mapping[str, Any] | None = None) -> Any:
    """A message with every number zero, every string empty and every sequence empty, except for ``values``.

    ``values`` maps dotted paths to what belongs there: ``{"header.frame_id": "world"}``. For a sequence of messages
    an integer gives its length: ``{"position": 4}`` makes four zero points.
    """
    given = dict(values or {})
    message = _blank(store, msgtype, "", given)
    if given:
        raise ContractError(f"{msgtype} has no field {', '.join(sorted(given))}")
    return message


def _blank(store: Typestore, msgtype: str, prefix: str, given: dict[str, Any]) -> Any:
    def element(desc: Any, path: str) -> Any:
        kind, detail = desc
        if kind == Nodetype.NAME:
            return _blank(store, detail, path, given)
        return "" if detail[0] == "string" else _PRIMITIVES[detail[0]].type(0).item()

    fields = {}
    for name, (kind, detail) in _fields(store, msgtype):
        path = f"{prefix}.{name}" if prefix else name
        if kind in (Nodetype.ARRAY, Nodetype.SEQUENCE):
            inner, length = detail
            value = given.pop(path, length if kind == Nodetype.ARRAY else 0)
            if isinstance(value, int):
                value = [element(inner, path) for _ in range(value)]
            numeric = inner[0] == Nodetype.BASE and inner[1][0] != "string"
            fields[name] = np.asarray(value, _PRIMITIVES[inner[1][0]]) if numeric else value
        elif path in given:
            fields[name] = given.pop(path)
        else:
            fields[name] = element((kind, detail), path)
    return store.types[msgtype](**fields)


def _fields(store: Typestore, msgtype: str) -> Sequence[tuple[str, Any]]:
    return store.get_msgdef(msgtype).fields


class MessageLayout:
    """Where every number of a constant-size message lies, and a writer of K such messages at once.

    The prototype fixes what never changes: strings, sequence lengths, and the value of every field that a call to
    ``encode`` does not name.
    """

    def __init__(self, store: Typestore, prototype: Any) -> None:
        self.msgtype: str = prototype.__msgtype__
        self.offsets: dict[str, tuple[int, np.dtype[Any]]] = {}
        self._times: set[str] = set()
        end = ENCAPSULATION_BYTES + self._walk(store, self.msgtype, prototype, "", 0)
        template = serialise(store, prototype)
        if end != len(template):
            raise ContractError(f"{self.msgtype}: computed size {end} B differs from the serialised {len(template)} B")
        self._template: NDArray[np.uint8] = np.frombuffer(template, np.uint8)
        self._blocks: dict[str, _Block] = {}

    @property
    def size(self) -> int:
        """Bytes of one message, encapsulation header included."""
        return len(self._template)

    @property
    def template(self) -> NDArray[np.uint8]:
        """The prototype's bytes."""
        return self._template

    def encode(self, columns: Mapping[str, ArrayLike]) -> NDArray[np.uint8]:
        """K messages as rows of bytes, uint8[K, size].

        Every column has K rows. A path may name one number (``pose.pose.position.x``, shape [K]), a whole message or
        array of equal numbers (``pose.pose.position`` [K, 3], ``pose.covariance`` [K, 36]), a sequence of messages
        (``position`` [K, N, 3]) or a time (``header.stamp``, integer nanoseconds [K]).
        """
        arrays = {path: np.asarray(column) for path, column in columns.items()}
        rows = {len(array) for array in arrays.values()}
        if len(rows) != 1:
            raise ContractError(f"{self.msgtype}: columns need one common number of rows, got {sorted(rows)}")
        out = np.empty((rows.pop(), self.size), np.uint8)
        out[:] = self._template
        for path, array in arrays.items():
            if path in self._times:
                seconds, nanoseconds = np.divmod(array, NANOSECONDS)
                self._block(f"{path}.sec").put(out, seconds)
                self._block(f"{path}.nanosec").put(out, nanoseconds)
            else:
                self._block(path).put(out, array)
        return out

    def _block(self, path: str) -> _Block:
        block = self._blocks.get(path)
        if block is None:
            block = self._blocks[path] = self._find(path)
        return block

    def _find(self, path: str) -> _Block:
        leaves = [leaf for name, leaf in self.offsets.items() if name == path or name.startswith(path + ".")]
        if not leaves:
            raise ContractError(f"{self.msgtype} has no numbers under {path!r}; it has {', '.join(self.offsets)}")
        kinds = {kind for _, kind in leaves}
        if len(kinds) != 1:
            raise ContractError(f"{self.msgtype}: {path!r} mixes {sorted(map(str, kinds))}; name its fields singly")
        return _Block(path, [offset for offset, _ in leaves], kinds.pop())

    def _walk(self, store: Typestore, msgtype: str, message: Any, prefix: str, at: int) -> int:
        """Record where every number lies; ``at`` counts, as alignment does, from the end of the encapsulation."""
        if msgtype == TIME:
            self._times.add(prefix)
        for name, (kind, detail) in _fields(store, msgtype):
            path = f"{prefix}.{name}" if prefix else name
            value = getattr(message, name)
            if kind in (Nodetype.ARRAY, Nodetype.SEQUENCE):
                if kind == Nodetype.SEQUENCE:
                    at = _align(at, 4) + 4
                for i, item in enumerate(value):
                    at = self._element(store, detail[0], item, f"{path}.{i}", at)
            else:
                at = self._element(store, (kind, detail), value, path, at)
        return at

    def _element(self, store: Typestore, desc: Any, value: Any, path: str, at: int) -> int:
        kind, detail = desc
        if kind == Nodetype.NAME:
            return self._walk(store, detail, value, path, at)
        if detail[0] == "string":
            return _align(at, 4) + 4 + len(value.encode()) + 1
        dtype = _PRIMITIVES[detail[0]]
        at = _align(at, dtype.itemsize)
        self.offsets[path] = (ENCAPSULATION_BYTES + at, dtype)
        return at + dtype.itemsize


class _Block:
    """Equal numbers of one message, copied in as few runs of adjacent bytes as their offsets allow."""

    def __init__(self, path: str, offsets: Sequence[int], dtype: np.dtype[Any]) -> None:
        self._path = path
        self._count = len(offsets)
        self._dtype = dtype
        self._runs = list(_runs(offsets, dtype.itemsize))

    def put(self, out: NDArray[np.uint8], array: NDArray[Any]) -> None:
        rows = len(out)
        if array.size != rows * self._count:
            raise ContractError(f"{self._path}: shape {array.shape} does not hold {self._count} numbers per row")
        if self._dtype.kind in "iu" and rows and array.dtype != self._dtype:
            limits = np.iinfo(self._dtype)
            if array.dtype.kind not in "iub" or array.min() < limits.min or array.max() > limits.max:
                raise ContractError(f"{self._path}: values do not fit {self._dtype}: {array.min()} .. {array.max()}")
        raw = np.ascontiguousarray(array, self._dtype).reshape(rows, self._count).view(np.uint8)
        for at, first, size in self._runs:
            out[:, at : at + size] = raw[:, first : first + size]


def _runs(offsets: Sequence[int], itemsize: int) -> Iterator[tuple[int, int, int]]:
    """Runs of adjacent numbers as (offset in the message, offset in the packed column, bytes)."""
    start = 0
    for i in range(1, len(offsets) + 1):
        if i == len(offsets) or offsets[i] != offsets[i - 1] + itemsize:
            yield offsets[start], start * itemsize, (i - start) * itemsize
            start = i


def _align(at: int, size: int) -> int:
    return -(-at // size) * size
