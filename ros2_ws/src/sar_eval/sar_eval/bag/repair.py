"""What can be saved of a damaged bag: every chunk whose checksum holds, exactly as recorded, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml
from mcap.records import Channel, Schema

from sar_core.errors import MissingDataError, RunError
from sar_eval.bag.check import REPAIRED_RECORD
from sar_eval.bag.files import McapFile
from sar_eval.bag.scan import ChunkFacts, RawMessage, Survey, locate, survey_file
from sar_eval.bag.writer import LIBRARY, ROSBAG2_RECORD, BagFolder, BagTopic, Recording


@dataclass(frozen=True)
class RepairReport:
    """What a repair saved and what it could not. Stamps are simulation nanoseconds."""

    source: Path
    recording: Recording
    chunks: int
    lost_bytes: int
    lost_messages: int
    damage: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether the source turned out to have lost nothing at all."""
        return not self.damage and not self.lost_messages


def repair_bag(source: Path, target: Path) -> RepairReport:
    """Write a new, proper bag to ``target`` from every intact chunk of ``source``, and read it back before returning.

    A message is kept byte for byte, with its times and its sequence number. Messages of a topic whose description was
    lost cannot be read by anyone and count as lost. The source is not touched; on failure no target is left.
    """
    file = locate(source)
    try:
        found = survey_file(file)
    except OSError as error:
        raise RunError(f"{file}: cannot be read: {error.strerror or error}") from error
    channels = _trusted(found)
    saved = sum(count for channel, count in found.counts.items() if channel in channels)
    if not saved:
        raise MissingDataError(
            f"{file}: no intact chunk with messages in its {found.size} bytes; nothing can be recovered"
        )
    facts = {
        "source": file.name,
        "source_bytes": str(found.size),
        "lost_bytes": str(found.lost_bytes),
        "lost_messages": str(sum(found.counts.values()) - saved),
        "recovered_chunks": str(len(found.chunks)),
        "recovered_messages": str(saved),
        "last_stamp_ns": str(max(chunk.end_time for chunk in found.chunks if chunk.messages)),
        "metadata_verified": str(found.data_verified).lower(),
    }
    folder = BagFolder(target)
    try:
        recording = _write(folder, file, found, channels, facts)
        if recording.messages != saved:
            raise RunError(f"{file}: changed while it was being repaired")
    except BaseException:
        folder.discard()
        raise
    return RepairReport(
        source,
        recording,
        chunks=len(found.chunks),
        lost_bytes=found.lost_bytes,
        lost_messages=sum(found.counts.values()) - saved,
        damage=tuple(f"byte {d.offset}: {d.reason}" for d in found.damage),
    )


def _trusted(found: Survey) -> dict[int, Channel]:
    """Channels that a checksum vouches for, together with their schemas."""

    def vouched(kind: type[Schema] | type[Channel], key: int) -> bool:
        return found.finished or (kind.__name__, key) in found.sealed

    return {
        key: channel
        for key, channel in sorted(found.channels.items())
        if vouched(Channel, key) and channel.schema_id in found.schemas and vouched(Schema, channel.schema_id)
    }


def _write(
    folder: BagFolder, file: Path, found: Survey, channels: Mapping[int, Channel], facts: Mapping[str, str]
) -> Recording:
    with folder.writing():
        out = McapFile(folder.put, LIBRARY)
        for record in found.metadata:
            if record.name != ROSBAG2_RECORD:
                out.add_metadata(record.name, record.metadata)
        out.add_metadata(REPAIRED_RECORD, facts)
        for key in sorted({channel.schema_id for channel in channels.values()}):
            out.add_schema(found.schemas[key])
        for channel in channels.values():
            out.add_channel(channel)

        def copy(_: ChunkFacts, data: bytes, messages: list[RawMessage]) -> None:
            kept = [message for message in messages if message.channel in channels]
            if kept:
                out.write_chunk(
                    [data[message.start : message.end] for message in kept],
                    np.array([message.channel for message in kept], np.uint16),
                    np.array([message.log_time for message in kept], np.uint64),
                )

        survey_file(file, copy)
    return folder.seal(
        out, {key: _topic(channel, found.schemas[channel.schema_id]) for key, channel in channels.items()}
    )


def _topic(channel: Channel, schema: Schema) -> BagTopic:
    qos = channel.metadata.get("offered_qos_profiles", "")
    try:
        yaml.safe_load(qos)
    except yaml.YAMLError:
        qos = ""
    return BagTopic(
        channel.topic,
        schema.name,
        schema.data.decode(errors="replace"),
        channel.metadata.get("topic_type_hash", ""),
        qos,
    )
