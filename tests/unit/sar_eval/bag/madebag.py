"""A small good bag to damage, and what the mcap library alone reads of it."""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from mcap.reader import make_reader
from mcap.records import Channel, Chunk, Schema
from mcap.stream_reader import StreamReader, breakup_chunk

from sar_eval.bag.check import check_bag
from sar_eval.bag.files import MAGIC
from sar_eval.bag.messages import MessageLayout, blank, serialise, typestore
from sar_eval.bag.writer import BagWriter, make_topic

METADATA = {
    "sar_eval": {
        "configuration": '{"drones": 2}',
        "config_sha256": "ab" * 32,
        "seed": "3",
        "episode": "1",
        "version": "0.1.0",
        "world": "village",
        "world_sha256": "cd" * 32,
    },
    "host": {"name": "testbed"},
}


SECONDS = 4


TOPICS = {
    "/clock": "rosgraph_msgs/msg/Clock",
    "/episode/info": "sar_msgs/msg/EpisodeInfo",
    "/episode/status": "sar_msgs/msg/EpisodeStatus",
    "/events/collision": "sar_msgs/msg/CollisionEvent",
    "/swarm/coverage": "nav_msgs/msg/OccupancyGrid",
    "/truth/state": "sar_msgs/msg/TruthState",
    "/uav_1/odometry": "nav_msgs/msg/Odometry",
    "/uav_1/setpoint": "sar_msgs/msg/Setpoint",
    "/uav_1/status": "sar_msgs/msg/UavStatus",
    "/uav_2/odometry": "nav_msgs/msg/Odometry",
    "/uav_2/setpoint": "sar_msgs/msg/Setpoint",
    "/uav_2/status": "sar_msgs/msg/UavStatus",
}


def fly(target, skip=(), metadata=METADATA, ticks=lambda k: k):
    """A small two-drone episode; ``ticks`` may shift the clock's tick numbers."""
    store, rng = typestore(), np.random.default_rng(0)
    prototypes = {"/truth/state": {"position": 2, "velocity": 2, "orientation": 2, "angular_velocity": 2}}
    layouts = {name: MessageLayout(store, blank(store, kind, prototypes.get(name))) for name, kind in TOPICS.items()}
    topics = [
        make_topic(store, name, kind, name == "/episode/info") for name, kind in TOPICS.items() if name not in skip
    ]
    with BagWriter(target, topics, metadata) as writer:
        for k in range(SECONDS):
            stamps = np.array([-(-25 * ticks(20 * k + i) // 2) * 4_000_000 for i in range(20)])
            for name in TOPICS.keys() - set(skip):
                rare = slice(None, None, 20 if name in ("/swarm/coverage", "/episode/status") else 1)
                if name == "/clock":
                    writer.write_batch(name, stamps, layouts[name].encode({"clock": stamps}))
                elif name == "/episode/info":
                    if k == 0:
                        writer.write(name, 0, serialise(store, blank(store, TOPICS[name])))
                elif name == "/events/collision":
                    if k == 2:
                        event = blank(store, TOPICS[name], {"obstacle": "house_1", "min_distance_m": -0.1})
                        writer.write(name, int(stamps[4]), serialise(store, event))
                else:
                    columns = {"header.stamp": stamps[rare]}
                    if name.endswith("odometry"):
                        columns["pose.pose.position"] = rng.standard_normal((20, 3))
                    writer.write_batch(name, stamps[rare], layouts[name].encode(columns))
            writer.flush()
    return target


@dataclass(frozen=True)
class Intact:
    """A good bag and, read by the mcap library alone, its chunks as (start, end, messages)."""

    folder: Path
    data: bytes
    chunks: list
    boundaries: list

    def whole(self, intact):
        """Messages of the chunks for which ``intact(start, end)`` holds."""
        return [message for start, end, messages in self.chunks if intact(start, end) for message in messages]


def intact(folder):
    """The good bag flown into a folder."""
    fly(folder)
    file = folder / "bag_0.mcap"
    with open(file, "rb") as stream:
        indexes = make_reader(stream).get_summary().chunk_indexes
    with open(file, "rb") as stream:
        found = [record for record in StreamReader(stream, emit_chunks=True).records if isinstance(record, Chunk)]
    names, chunks = {}, []
    for index, chunk in zip(indexes, found, strict=True):
        messages = []
        for record in breakup_chunk(chunk, validate_crc=True):
            if isinstance(record, Channel):
                names[record.id] = record.topic
            elif not isinstance(record, Schema):
                messages.append((names[record.channel_id], record.log_time, record.sequence, record.data))
        chunks.append((index.chunk_start_offset, index.chunk_start_offset + index.chunk_length, messages))
    data, boundaries, at = file.read_bytes(), [], len(MAGIC)
    while at < len(data) - len(MAGIC):
        boundaries.append(at)
        at += 9 + struct.unpack_from("<Q", data, at + 1)[0]
    return Intact(folder, data, chunks, [*boundaries, at])


def recorded(folder):
    (file,) = folder.glob("*.mcap")
    with open(file, "rb") as stream:
        return [
            (channel.topic, message.log_time, message.sequence, message.data)
            for _, channel, message in make_reader(stream, validate_crcs=True).iter_messages(log_time_order=False)
        ]


def codes(path):
    return {finding.code for finding in check_bag(path).findings}
