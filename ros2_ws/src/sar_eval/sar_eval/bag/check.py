"""Whether a bag is what it claims to be, in plain words. Any bytes at all get an answer, never an exception."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from sar_core.errors import SarError
from sar_eval.bag.messages import NANOSECONDS
from sar_eval.bag.scan import ChunkFacts, RawMessage, Survey, locate, survey_file
from sar_eval.bag.writer import METADATA_VERSION, PARTIAL

CLOCK = "/clock"
CLOCK_GAP_NS = 75_000_000
MAX_SEQUENCE_LENGTH = 1 << 24

REPAIRED_RECORD = "repaired"
REQUIRED_METADATA: Mapping[str, tuple[str, ...]] = {
    "sar_eval": ("configuration", "config_sha256", "seed", "episode", "version", "world", "world_sha256"),
}
REQUIRED_TOPICS = (CLOCK, "/episode/info", "/episode/status", "/swarm/coverage", "/truth/state")
EVENT_TOPICS = ("/events/collision",)
UAV_TOPICS = ("odometry", "setpoint", "status")
_UAV = re.compile(r"/uav_([1-9][0-9]{0,3})/")


@dataclass(frozen=True)
class BagFinding:
    """One thing that is wrong: a short code for machines and a sentence for people."""

    code: str
    text: str


@dataclass(frozen=True)
class BagReport:
    """What a bag holds and what is wrong with it. Times are simulation nanoseconds."""

    path: Path
    findings: tuple[BagFinding, ...]
    messages: int = 0
    chunks: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    start_ns: int = 0
    end_ns: int = 0
    metadata: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    @property
    def repaired(self) -> bool:
        """Whether this is what a repair could save of another bag."""
        return REPAIRED_RECORD in self.metadata


def check_bag(path: Path) -> BagReport:
    """Examine a bag folder or an MCAP file from the first byte to the last."""
    try:
        file = locate(path)
        found = survey_file(file)
        contents = _Contents(found)
        survey_file(file, contents.visit)
    except SarError as error:
        return BagReport(path, (BagFinding("not_a_bag", str(error)),))
    except OSError as error:
        return BagReport(path, (BagFinding("unreadable", f"{path}: cannot be read: {error.strerror or error}"),))
    findings = [
        *_partial(path, file),
        *(BagFinding("damage", f"byte {d.offset}: {d.reason} ({d.end - d.offset} bytes)") for d in found.damage),
        *(BagFinding("inconsistent", note) for note in found.notes),
        *_summary(found),
        *contents.findings(),
        *_required(found, contents.counts),
    ]
    if path.is_dir():
        findings += _folder(path, file, found, contents)
    times = [(chunk.start_time, chunk.end_time) for chunk in found.chunks if chunk.messages]
    return BagReport(
        path,
        tuple(findings),
        messages=sum(found.counts.values()),
        chunks=len(found.chunks),
        counts=contents.counts,
        start_ns=min((start for start, _ in times), default=0),
        end_ns=max((end for _, end in times), default=0),
        metadata={record.name: record.metadata for record in found.metadata},
    )


class _Contents:
    """Looks at every message of the intact chunks: does it decode, is it in order, does the clock run on."""

    def __init__(self, found: Survey) -> None:
        self._topics = {channel.id: channel.topic for channel in found.channels.values()}
        self._decoders = {channel: _Decoder(found, channel) for channel in found.channels}
        self._problems: dict[tuple[str, str], tuple[int, str]] = {}
        self._previous: tuple[int, str, int] | None = None
        self._last: dict[int, RawMessage] = {}
        self._clock: int | None = None
        self.counts = {self._topics[i]: found.counts.get(i, 0) for i in sorted(found.channels)}
        self.types = {channel.topic: self._decoders[channel.id].msgtype for channel in found.channels.values()}

    def visit(self, chunk: ChunkFacts, data: bytes, messages: list[RawMessage]) -> None:
        for message in messages:
            topic = self._topics.get(message.channel)
            if topic is None:
                self._note(
                    "unknown_channel", f"channel {message.channel}", f"at {message.log_time} ns is not described"
                )
                continue
            self._order(topic, message)
            try:
                decoded = self._decoders[message.channel].decode(message.payload(data))
            except Exception as error:  # the definitions come from the file: anything can go wrong in them
                self._note("undecodable", topic, f"at {message.log_time} ns does not decode: {_brief(error)}")
                continue
            if topic == CLOCK:
                self._tick(message.log_time, decoded)

    def findings(self) -> list[BagFinding]:
        return [
            BagFinding(code, f"{subject}: a message {first}" + (f", and {count - 1} more" if count > 1 else ""))
            for (code, subject), (count, first) in self._problems.items()
        ]

    def _order(self, topic: str, message: RawMessage) -> None:
        if message.publish_time != message.log_time:
            self._note("two_times", topic, f"at {message.log_time} ns was published at {message.publish_time} ns")
        last = self._last.get(message.channel)
        if last is not None and message.log_time < last.log_time:
            self._note("stamps", topic, f"at {message.log_time} ns follows one at {last.log_time} ns")
        if message.sequence != (0 if last is None else last.sequence + 1):
            self._note(
                "sequence", topic, f"at {message.log_time} ns has sequence number {message.sequence}, not the next"
            )
        self._last[message.channel] = message
        key = (message.log_time, topic, message.sequence)
        if self._previous is not None and key < self._previous:
            self._note("order", topic, f"at {message.log_time} ns is out of order (stamp, topic, sequence)")
        self._previous = key

    def _tick(self, stamp: int, decoded: Any) -> None:
        time = getattr(decoded, "clock", None)
        told = getattr(time, "sec", 0) * NANOSECONDS + getattr(time, "nanosec", 0)
        if told != stamp:
            self._note("clock", CLOCK, f"at {stamp} ns tells {told} ns")
        if self._clock is not None and stamp - self._clock > CLOCK_GAP_NS:
            self._note("clock_gap", CLOCK, f"at {stamp} ns comes {stamp - self._clock} ns after the one before")
        self._clock = stamp

    def _note(self, code: str, subject: str, text: str) -> None:
        count, first = self._problems.get((code, subject), (0, text))
        self._problems[code, subject] = (count + 1, first)


class _Decoder:
    """Decodes one channel's messages with nothing but the definition in the bag."""

    def __init__(self, found: Survey, channel_id: int) -> None:
        channel = found.channels[channel_id]
        schema = found.schemas.get(channel.schema_id)
        self.msgtype = schema.name if schema else ""
        self._definition = schema.data if schema else b""
        self._encodings = (channel.message_encoding, schema.encoding if schema else "")

    def decode(self, payload: bytes) -> Any:
        if self._encodings != ("cdr", "ros2msg"):
            raise ValueError(f"encoded as {self._encodings}, expected ('cdr', 'ros2msg')")
        return _types(self._definition, self.msgtype).deserialize_cdr(payload, self.msgtype)


@functools.lru_cache(maxsize=64)
def _types(definition: bytes, msgtype: str) -> Typestore:
    store = get_typestore(Stores.EMPTY)
    store.max_sequence_length = MAX_SEQUENCE_LENGTH
    store.register(get_types_from_msg(definition.decode(), msgtype))
    return store


def _partial(path: Path, file: Path) -> Iterable[BagFinding]:
    for folder in {path, file.parent}:
        if folder.name.endswith(PARTIAL):
            yield BagFinding(
                "partial", f"{folder}: the recording was not finished; `sar-eval bag repair` saves what is there"
            )


def _summary(found: Survey) -> Iterable[BagFinding]:
    """Whether the summary tells what the file really holds."""
    if found.profile != "ros2":
        yield BagFinding("profile", f"the file's profile is {found.profile!r}, expected 'ros2'")
    if not found.finished:
        yield BagFinding("no_summary", "there is no valid summary: other tools will not open the file")
        return
    statistics = found.statistics
    if statistics is None:
        yield BagFinding("summary", "the summary has no statistics")
    elif {i: n for i, n in statistics.channel_message_counts.items() if n} != dict(found.counts):
        total = sum(found.counts.values())
        yield BagFinding("summary", f"the summary counts {statistics.message_count} messages, the chunks hold {total}")
    indexed = [
        (c.chunk_start_offset, c.chunk_length, c.message_start_time, c.message_end_time) for c in found.chunk_indexes
    ]
    if indexed != [(c.offset, c.end - c.offset, c.start_time, c.end_time) for c in found.chunks]:
        yield BagFinding(
            "summary", f"the summary lists {len(indexed)} chunks that are not the {len(found.chunks)} found"
        )
    if [index.name for index in found.metadata_indexes] != [record.name for record in found.metadata]:
        yield BagFinding("summary", "the summary's list of metadata is not what the file holds")


def _required(found: Survey, counts: Mapping[str, int]) -> Iterable[BagFinding]:
    """Whether everything is there that a reader of episodes relies on."""
    drones = {int(match[1]) for topic in counts if (match := _UAV.match(topic))}
    if drones != set(range(1, len(drones) + 1)) or not drones:
        yield BagFinding("drones", f"drones are numbered {sorted(drones)}, expected 1, 2, 3 ... without a gap")
    for topic in (*REQUIRED_TOPICS, *(f"/uav_{i}/{leaf}" for i in sorted(drones) for leaf in UAV_TOPICS)):
        if not counts.get(topic):
            yield BagFinding("missing_topic", f"{topic}: no message")
    for topic in EVENT_TOPICS:
        if topic not in counts:
            yield BagFinding("missing_topic", f"{topic}: not described")
    records = {record.name: record.metadata for record in found.metadata}
    for name, keys in REQUIRED_METADATA.items():
        missing = [key for key in keys if key not in records.get(name, {})]
        if missing:
            yield BagFinding("missing_metadata", f"metadata record {name!r} lacks {', '.join(missing)}")


def _folder(path: Path, file: Path, found: Survey, contents: _Contents) -> Iterable[BagFinding]:
    """Whether metadata.yaml, which other tools read first, agrees with the file."""
    try:
        document = yaml.safe_load((path / "metadata.yaml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        yield BagFinding("no_metadata_yaml", f"{path}: metadata.yaml is missing")
        return
    except Exception as error:  # YAML from anywhere can fail in many ways
        yield BagFinding("metadata_yaml", f"{path}: metadata.yaml cannot be read: {_brief(error)}")
        return
    about = _get(document, "rosbag2_bagfile_information")
    times = [(chunk.start_time, chunk.end_time) for chunk in found.chunks if chunk.messages]
    start = min((first for first, _ in times), default=0)
    expected = {
        "version": METADATA_VERSION,
        "storage_identifier": "mcap",
        "message_count": sum(found.counts.values()),
        "compression_mode": "",
    }
    for key, value in expected.items():
        if _get(about, key) != value:
            yield BagFinding("metadata_yaml", f"metadata.yaml: {key} is {_brief(_get(about, key))}, expected {value!r}")
    if _items(about, "relative_file_paths") != [file.name]:
        yield BagFinding("metadata_yaml", f"metadata.yaml does not name {file.name} as the bag's only file")
    stated = (
        _get(_get(about, "starting_time"), "nanoseconds_since_epoch"),
        _get(_get(about, "duration"), "nanoseconds"),
    )
    real = (start, max((last for _, last in times), default=0) - start)
    if stated != real:
        yield BagFinding("metadata_yaml", f"metadata.yaml: start and duration differ from the content's {real} ns")
    hashes = {channel.topic: channel.metadata.get("topic_type_hash", "") for channel in found.channels.values()}
    described = {}
    for entry in _items(about, "topics_with_message_count"):
        topic = _get(entry, "topic_metadata")
        name = _get(topic, "name")
        if isinstance(name, str):
            described[name] = (_get(topic, "type"), _get(topic, "type_description_hash"), _get(entry, "message_count"))
    for name in sorted(described.keys() | contents.counts.keys()):
        if described.get(name) != (contents.types.get(name), hashes.get(name), contents.counts.get(name)):
            yield BagFinding("metadata_yaml", f"metadata.yaml: topic {name} differs from the content")


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _items(value: Any, key: str) -> list[Any]:
    items = _get(value, key)
    return items if isinstance(items, list) else []


def _brief(value: Any) -> str:
    """A short form of anything, on one line."""
    if isinstance(value, (dict, list)):
        return f"a {type(value).__name__}"
    text = str(value) if isinstance(value, Exception) else repr(value)
    return " ".join(text.split())[:120] or type(value).__name__
