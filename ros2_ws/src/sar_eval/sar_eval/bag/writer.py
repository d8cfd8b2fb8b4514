"""The recorder: one episode's messages into one rosbag2 folder that is either good or visibly unfinished.

While an episode flies, its bag lies in ``<name>.partial``. It gets its own name only after the finished file was read
back from disk and found to hold what was written; so whatever ends a run, a folder without ``.partial`` is whole.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import yaml
from mcap.opcode import Opcode
from mcap.records import Channel, Schema
from numpy.typing import ArrayLike, NDArray
from rosbags.typesys.store import Typestore

from sar_core.errors import ContractError, InputError, RunError
from sar_eval import __version__
from sar_eval.bag.files import MESSAGE, RECORD, McapFile
from sar_eval.bag.messages import definition, type_hash
from sar_eval.bag.scan import survey_file

METADATA_VERSION = 9
ROS_DISTRO = "jazzy"
LIBRARY = f"sar_eval {__version__}"
PARTIAL = ".partial"
ROSBAG2_RECORD = "rosbag2"

_MESSAGE_HEADER = np.dtype(
    [("opcode", "u1"), ("length", "<u8"), ("channel", "<u2"), ("sequence", "<u4"), ("log", "<u8"), ("publish", "<u8")]
)
_FOREVER = {"sec": 9223372036, "nsec": 854775807}


@dataclass(frozen=True)
class BagTopic:
    """A topic as a bag describes it: its type with full definition and hash, and the publisher's QoS as YAML."""

    name: str
    msgtype: str
    definition: str
    type_hash: str
    qos: str


@dataclass(frozen=True)
class Recording:
    """A finished bag: its folder, its size and what it holds. Times are simulation nanoseconds."""

    path: Path
    file: Path
    size_bytes: int
    messages: int
    counts: Mapping[str, int]
    start_ns: int
    end_ns: int


def make_topic(store: Typestore, name: str, msgtype: str, latched: bool = False) -> BagTopic:
    """A reliable topic; a latched one keeps its last message for those who subscribe later."""
    if msgtype not in store.fielddefs:
        raise ContractError(f"topic {name}: message type {msgtype!r} is not known")
    return BagTopic(name, msgtype, definition(store, msgtype), type_hash(store, msgtype), qos_profile(latched))


def qos_profile(latched: bool) -> str:
    """The offered QoS of one publisher, in the words of rosbag2's metadata version 9."""
    profile = {
        "history": "keep_last",
        "depth": 1 if latched else 10,
        "reliability": "reliable",
        "durability": "transient_local" if latched else "volatile",
        "deadline": dict(_FOREVER),
        "lifespan": dict(_FOREVER),
        "liveliness": "automatic",
        "liveliness_lease_duration": dict(_FOREVER),
        "avoid_ros_namespace_conventions": False,
    }
    return str(yaml.safe_dump([profile], sort_keys=False))


_NOTHING = (0, 0, -1)
"""Before every message: stamp, channel, sequence."""


class BagWriter:
    """Records one episode. Messages may arrive topic by topic; ``flush`` puts what has arrived in order and on disk."""

    def __init__(self, directory: Path, topics: Iterable[BagTopic], metadata: Mapping[str, Mapping[str, str]]) -> None:
        ordered = sorted(topics, key=lambda topic: topic.name)
        self._ids = {topic.name: i for i, topic in enumerate(ordered, start=1)}
        if len(self._ids) != len(ordered):
            raise ContractError("each topic can be recorded only once")
        self._folder = BagFolder(directory)
        with self._folder.writing():
            self._file = McapFile(self._folder.put, LIBRARY)
            for name, values in metadata.items():
                self._file.add_metadata(name, values)
        describe(self._file, {self._ids[topic.name]: topic for topic in ordered})
        self._topics = ordered
        self._next = dict.fromkeys(self._ids.values(), 0)
        self._latest = dict.fromkeys(self._ids.values(), 0)
        self._written = _NOTHING
        self._clear()

    @property
    def partial(self) -> Path:
        """The folder the bag lies in until it is closed."""
        return self._folder.partial

    def write(self, topic: str, stamp_ns: int, payload: bytes) -> None:
        """Take one serialised message."""
        channel, sequence = self._admit(topic, stamp_ns, stamp_ns, 1)
        length = MESSAGE.size - RECORD.size + len(payload)
        self._records.append(MESSAGE.pack(Opcode.MESSAGE, length, channel, sequence, stamp_ns, stamp_ns) + payload)
        self._stamps.append(stamp_ns)
        self._channels.append(channel)
        self._sequences.append(sequence)

    def write_batch(self, topic: str, stamps_ns: ArrayLike, payloads: NDArray[np.uint8]) -> None:
        """Take K messages of one size: stamps int64[K], not decreasing, and bytes uint8[K, size]."""
        stamps = np.asarray(stamps_ns, np.int64)
        if stamps.shape != payloads.shape[:1]:
            raise ContractError(f"{topic}: {len(stamps)} stamps for {len(payloads)} messages")
        if not len(stamps):
            return
        if (stamps[1:] < stamps[:-1]).any():
            raise ContractError(f"{topic}: the stamps of a batch decrease")
        channel, sequence = self._admit(topic, int(stamps[0]), int(stamps[-1]), len(stamps))
        header = np.empty(len(stamps), _MESSAGE_HEADER)
        header["opcode"] = Opcode.MESSAGE
        header["length"] = MESSAGE.size - RECORD.size + payloads.shape[1]
        header["channel"] = channel
        header["sequence"] = np.arange(sequence, sequence + len(stamps))
        header["log"] = header["publish"] = stamps
        rows = np.concatenate((header.view(np.uint8).reshape(len(stamps), -1), payloads), axis=1)
        packed, size = rows.tobytes(), rows.shape[1]
        self._records += [packed[at : at + size] for at in range(0, len(packed), size)]
        self._stamps += stamps.tolist()
        self._channels += [channel] * len(stamps)
        self._sequences += range(sequence, sequence + len(stamps))

    def flush(self) -> None:
        """Put all messages taken so far into one chunk, ordered by (stamp, topic, sequence), and hand it to the system.

        From then on they survive the end of this process. Whatever comes later has to come later in that order too.
        """
        if not self._records:
            return
        stamps = np.array(self._stamps, np.uint64)
        channels = np.array(self._channels, np.uint16)
        sequences = np.array(self._sequences)
        order = np.lexsort((sequences, channels, stamps))
        first, last = ((int(stamps[i]), int(channels[i]), int(sequences[i])) for i in (order[0], order[-1]))
        if first <= self._written:
            topic = self._topics[first[1] - 1].name
            raise ContractError(f"{topic}: a message at {first[0]} ns comes after {self._written[0]} ns was written")
        with self._folder.writing():
            self._file.write_chunk([self._records[i] for i in order.tolist()], channels[order], stamps[order])
        self._written = last
        self._clear()

    def close(self) -> Recording:
        """Finish the file, read it back, and only then give the folder its name."""
        self.flush()
        return self._folder.seal(self._file, {self._ids[topic.name]: topic for topic in self._topics})

    def abandon(self) -> None:
        """Stop here: what was flushed stays in the partial folder; where nothing was, there is nothing to keep."""
        self._clear()
        if self._written == _NOTHING:
            self._folder.discard()
        else:
            self._folder.release()

    def discard(self) -> None:
        """Stop here and leave nothing: for a bag that got no message."""
        self._clear()
        self._folder.discard()

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abandon()
        elif not self._folder.closed:
            self.close()

    def _clear(self) -> None:
        self._records: list[bytes] = []
        self._stamps: list[int] = []
        self._channels: list[int] = []
        self._sequences: list[int] = []

    def _admit(self, topic: str, first_ns: int, last_ns: int, count: int) -> tuple[int, int]:
        """Channel id and first sequence number for ``count`` messages of a topic."""
        channel = self._ids.get(topic)
        if channel is None:
            raise ContractError(f"{topic}: not among the bag's topics {', '.join(self._ids)}")
        if first_ns < self._latest[channel]:
            raise ContractError(f"{topic}: stamp {first_ns} ns lies before {self._latest[channel]} ns")
        sequence = self._next[channel]
        self._next[channel] += count
        self._latest[channel] = last_ns
        return channel, sequence


def refuse_existing(directory: Path) -> None:
    """A bag, or the beginning of one, is never overwritten."""
    for path in (directory, partial_of(directory)):
        if os.path.lexists(path):
            raise InputError(f"{path}: exists already and bags are never overwritten; give another --out, or delete it")


def partial_of(directory: Path) -> Path:
    """Where a bag is written until it is whole."""
    return directory.with_name(directory.name + PARTIAL)


class BagFolder:
    """A rosbag2 folder from its partial beginning to its final name. Every failure of the disk becomes a RunError."""

    def __init__(self, directory: Path) -> None:
        self.target = directory
        self.partial = partial_of(directory)
        self.file = self.partial / f"{directory.name}_0.mcap"
        self._intact = True
        refuse_existing(directory)
        with self.writing():
            self.partial.mkdir(parents=True)
            self._stream = open(self.file, "xb", buffering=0)  # noqa: SIM115

    @property
    def closed(self) -> bool:
        """Whether the file has been let go of."""
        return self._stream.closed

    def put(self, data: bytes) -> None:
        """Append bytes, all of them, without a buffer in between."""
        view = memoryview(data)
        while view:
            view = view[self._stream.write(view) :]

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Turn a failed write into a RunError. A write that did not end leaves the file unfit to be continued."""
        if not self._intact:
            raise RunError(f"{self.file}: an earlier write did not complete; the bag stays partial")
        self._intact = False
        try:
            yield
        except OSError as error:
            raise RunError(f"{self.file}: cannot write: {error.strerror or error}; {_free(self.partial)}") from error
        self._intact = True

    def seal(self, file: McapFile, topics: Mapping[int, BagTopic]) -> Recording:
        """Finish the file, verify it from disk, describe it, and rename the folder to its target."""
        with self.writing():
            document = describe_folder(file, topics, self.file.name)
            file.add_metadata(ROSBAG2_RECORD, {"serialized_metadata": document})
            file.finish()
            os.fsync(self._stream.fileno())
            self._stream.close()
            self._verify(file)
            with open(self.partial / "metadata.yaml", "x", encoding="utf-8") as stream:
                indented = "".join(f"  {line}\n" for line in document.splitlines())
                stream.write("rosbag2_bagfile_information:\n" + indented)
                stream.flush()
                os.fsync(stream.fileno())
            _sync(self.partial)
            if os.path.lexists(self.target):
                raise RunError(f"{self.target}: appeared while the bag was written; the bag stays in {self.partial}")
            self.partial.rename(self.target)
            _sync(self.target.parent)
        start, end = file.span
        counts = {topic.name: file.counts.get(channel, 0) for channel, topic in topics.items()}
        path = self.target / self.file.name
        return Recording(self.target, path, file.offset, sum(counts.values()), counts, start, end)

    def release(self) -> None:
        """Let go of the file and leave everything as it is."""
        self._intact = False
        with contextlib.suppress(OSError):
            self._stream.close()

    def discard(self) -> None:
        """Remove the partial folder."""
        self.release()
        shutil.rmtree(self.partial, ignore_errors=True)

    def _verify(self, file: McapFile) -> None:
        """Read the closed file back and compare it with what was written."""
        found = survey_file(self.file)
        problems = [damage.reason for damage in found.damage] + found.notes
        if found.size != file.offset:
            problems.append(f"{found.size} bytes instead of {file.offset}")
        if [chunk.crc for chunk in found.chunks] != file.crcs:
            problems.append("the chunks' checksums differ")
        if found.counts != file.counts:
            problems.append("the numbers of messages differ")
        if not found.finished:
            problems.append("the summary is missing")
        if problems:
            raise RunError(f"{self.file}: reading back found: {'; '.join(problems)}; the bag stays partial")


def describe(file: McapFile, topics: Mapping[int, BagTopic]) -> None:
    """Announce topics to a file under the given channel ids, each message type once."""
    schemas: dict[tuple[str, str], int] = {}
    for channel, topic in topics.items():
        key = (topic.msgtype, topic.definition)
        if key not in schemas:
            schemas[key] = len(schemas) + 1
            data = topic.definition.encode()
            file.add_schema(Schema(id=schemas[key], data=data, encoding="ros2msg", name=topic.msgtype))
        labels = {"offered_qos_profiles": topic.qos, "topic_type_hash": topic.type_hash}
        file.add_channel(
            Channel(id=channel, topic=topic.name, message_encoding="cdr", metadata=labels, schema_id=schemas[key])
        )


def describe_folder(file: McapFile, topics: Mapping[int, BagTopic], name: str) -> str:
    """The contents of metadata.yaml below its top key, as rosbag2 of ROS 2 Jazzy writes them."""
    start, end = file.span
    total = sum(file.counts.values())
    times: dict[str, Any] = {
        "duration": {"nanoseconds": end - start},
        "starting_time": {"nanoseconds_since_epoch": start},
        "message_count": total,
    }
    entries = [
        {
            "topic_metadata": {
                "name": topic.name,
                "type": topic.msgtype,
                "serialization_format": "cdr",
                "offered_qos_profiles": yaml.safe_load(topic.qos) or [],
                "type_description_hash": topic.type_hash,
            },
            "message_count": file.counts.get(channel, 0),
        }
        for channel, topic in topics.items()
    ]
    document = {
        "version": METADATA_VERSION,
        "storage_identifier": "mcap",
        **times,
        "topics_with_message_count": entries,
        "compression_format": "",
        "compression_mode": "",
        "relative_file_paths": [name],
        "files": [{"path": name, **times}],
        "custom_data": None,
        "ros_distro": ROS_DISTRO,
    }
    return str(yaml.dump(document, Dumper=_Plain, sort_keys=False))


class _Plain(yaml.SafeDumper):
    """YAML without anchors, which rosbag2's reader need not know."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _free(path: Path) -> str:
    for place in (path, *path.parents):
        with contextlib.suppress(OSError):
            return f"{shutil.disk_usage(place).free} bytes free"
    return "free space unknown"
