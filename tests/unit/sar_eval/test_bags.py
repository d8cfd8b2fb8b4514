"""Damaged bags: the check names what is wrong, the repair saves exactly what is whole."""

import random
import re
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.records import Channel, Chunk, Schema
from mcap.stream_reader import StreamReader, breakup_chunk
from rosbags.highlevel import AnyReader

from sar_core.errors import InputError, MissingDataError
from sar_eval.bag import repair as bagrepair
from sar_eval.bag.check import check_bag
from sar_eval.bag.files import MAGIC, MESSAGE, McapFile
from sar_eval.bag.messages import MessageLayout, blank, serialise, typestore
from sar_eval.bag.repair import repair_bag
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


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    folder = fly(tmp_path_factory.mktemp("intact") / "bag")
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


def saved_messages(file, target):
    """What a repair saves, and that it says the same itself; nothing for a file beyond repair."""
    try:
        report = repair_bag(file, target)
    except MissingDataError:
        assert not target.exists()
        assert not target.with_name(target.name + ".partial").exists()
        return []
    messages = recorded(target)
    assert report.recording.messages == len(messages)
    shutil.rmtree(target)
    return messages


def test_a_good_bag_has_no_findings(bag):
    for path in (bag.folder, bag.folder / "bag_0.mcap"):
        report = check_bag(path)
        assert report.findings == ()
        assert report.messages == sum(len(messages) for _, _, messages in bag.chunks)
        assert report.chunks == SECONDS
        assert report.metadata["sar_eval"] == METADATA["sar_eval"]
        assert (report.start_ns, report.end_ns) == (0, 3_952_000_000)
        assert not report.repaired


def test_cut_anywhere_the_check_complains_and_the_repair_saves_every_complete_chunk(bag, tmp_path):
    rng = random.Random(11)
    ends = [end for _, end, _ in bag.chunks]
    offsets = {0, 1, 7, 8, 9, len(bag.data) - 1, len(bag.data) - 8, len(bag.data) - 9}
    offsets |= {at + shift for at in ends for shift in (-1, 0, 1)}
    offsets |= set(rng.sample(bag.boundaries, 30))
    offsets |= {rng.randrange(len(bag.data)) for _ in range(70)}
    assert len(offsets) >= 100
    file, target = tmp_path / "cut.mcap", tmp_path / "saved"
    for offset in sorted(offsets):
        file.write_bytes(bag.data[:offset])
        report = check_bag(file)
        assert {"no_summary", "damage"} & {finding.code for finding in report.findings}, offset
        expected = bag.whole(lambda start, end, offset=offset: end <= offset)
        assert report.messages == len(expected), offset
        assert saved_messages(file, target) == expected, offset
    assert file.read_bytes() == bag.data[:offset]


def test_one_flipped_bit_is_always_noticed_and_costs_one_chunk_at_most(bag, tmp_path):
    rng = random.Random(12)
    file, target = tmp_path / "flip.mcap", tmp_path / "saved"
    places = {rng.randrange(len(bag.data)) for _ in range(60)}
    places |= {at + rng.randrange(9) for at in rng.sample(bag.boundaries, 40)}
    for place in sorted(places):
        data = bytearray(bag.data)
        data[place] ^= 1 << rng.randrange(8)
        file.write_bytes(data)
        assert not check_bag(file).ok, place
        saved = saved_messages(file, target)
        hit = bag.whole(lambda start, end, place=place: start <= place < end)
        rest = bag.whole(lambda start, end, place=place: not start <= place < end)
        assert saved in (rest, sorted(rest + hit, key=lambda message: (message[1], message[0], message[2]))), place


def test_a_hole_in_the_middle_costs_the_chunks_it_touches(bag, tmp_path):
    rng = random.Random(13)
    file, target = tmp_path / "hole.mcap", tmp_path / "saved"
    for _ in range(20):
        first = rng.randrange(len(bag.data))
        size = rng.choice([1, 100, 10_000])
        data = bag.data[:first] + rng.randbytes(size) + bag.data[first + size :]
        file.write_bytes(data)
        assert not check_bag(file).ok
        saved = saved_messages(file, target)
        if saved:
            assert saved == bag.whole(lambda start, end, a=first, b=first + size: end <= a or start >= b), first


def test_a_length_that_skips_a_chunk_does_not_hide_it(bag, tmp_path):
    """The record before a chunk claims to reach to the record after it: each record alone looks possible."""
    start, end, _ = bag.chunks[2]
    before = max(at for at in bag.boundaries if at < start)
    file = tmp_path / "skip.mcap"
    file.write_bytes(bag.data[: before + 1] + struct.pack("<Q", end - before - 9) + bag.data[before + 9 :])
    assert "damage" in codes(file)
    assert saved_messages(file, tmp_path / "saved") == bag.whole(lambda start, end: True)


def test_definitions_without_a_valid_checksum_are_not_believed(bag, tmp_path):
    data = bytearray(bag.data)
    start, end, _ = bag.chunks[0]
    data[(start + end) // 2] ^= 1
    file = tmp_path / "first.mcap"
    file.write_bytes(data)
    rest = bag.whole(lambda first, _: first != start)
    assert saved_messages(file, tmp_path / "saved") == rest
    data[data.rindex(b"float64 yaw_rate")] ^= 1
    file.write_bytes(data)
    assert saved_messages(file, tmp_path / "saved") == []


def test_a_repaired_bag_is_a_good_bag_that_says_what_it_lost(bag, tmp_path):
    file = tmp_path / "cut.mcap"
    _, end, _ = bag.chunks[2]
    file.write_bytes(bag.data[: end + 5])
    report = repair_bag(file, tmp_path / "saved")
    assert (report.chunks, report.lost_bytes, report.lost_messages, report.complete) == (3, 5, 0, False)
    checked = check_bag(tmp_path / "saved")
    assert checked.findings == ()
    assert checked.repaired
    assert checked.metadata["repaired"] == {
        "source": "cut.mcap",
        "source_bytes": str(end + 5),
        "lost_bytes": "5",
        "lost_messages": "0",
        "recovered_chunks": "3",
        "recovered_messages": str(report.recording.messages),
        "last_stamp_ns": "2952000000",
        "metadata_verified": "false",
    }
    for name, values in METADATA.items():
        assert checked.metadata[name] == values
    with AnyReader([tmp_path / "saved"]) as reader:
        assert sum(1 for c, _, raw in reader.messages() if reader.deserialize(raw, c.msgtype)) == checked.messages


def test_repairing_a_good_bag_copies_it(bag, tmp_path):
    report = repair_bag(bag.folder, tmp_path / "copy")
    assert report.complete
    assert recorded(tmp_path / "copy") == bag.whole(lambda start, end: True)


def test_a_repair_overwrites_nothing(bag, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="exists already"):
        repair_bag(bag.folder, tmp_path / "there")
    with pytest.raises(InputError, match="exists already"):
        repair_bag(bag.folder, bag.folder)
    assert not any((tmp_path / "there").iterdir())


def test_a_repair_that_fails_leaves_nothing(bag, tmp_path, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(bagrepair, "_topic", fail)
    with pytest.raises(KeyboardInterrupt):
        repair_bag(bag.folder, tmp_path / "saved")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"x", MAGIC, MAGIC * 2, b"PK\x03\x04" * 100, bytes(5000)])
def test_what_is_no_bag_is_called_so(tmp_path, content):
    file = tmp_path / "thing.mcap"
    file.write_bytes(content)
    assert "no_summary" in codes(file)
    with pytest.raises(MissingDataError, match="nothing can be recovered") as caught:
        repair_bag(file, tmp_path / "saved")
    assert caught.value.exit_code == 4
    assert [path.name for path in tmp_path.iterdir()] == ["thing.mcap"]


def test_missing_and_ambiguous_paths_are_named(tmp_path):
    assert codes(tmp_path / "nowhere") == {"not_a_bag"}
    assert codes(tmp_path) == {"not_a_bag"}
    with pytest.raises(MissingDataError, match="no such bag"):
        repair_bag(tmp_path / "nowhere", tmp_path / "saved")
    for name in ("a.mcap", "b.mcap"):
        (tmp_path / name).write_bytes(b"")
    assert "2 .mcap files" in check_bag(tmp_path).findings[0].text
    with pytest.raises(InputError, match=re.escape("2 .mcap files")):
        repair_bag(tmp_path, tmp_path / "saved")


@settings(max_examples=150)
@given(content=st.binary(max_size=400), magic=st.booleans())
def test_no_bytes_upset_the_check(tmp_path_factory, content, magic):
    file = tmp_path_factory.getbasetemp() / "any.mcap"
    file.write_bytes(MAGIC * magic + content)
    assert not check_bag(file).ok


@settings(max_examples=100)
@given(edits=st.lists(st.tuples(st.integers(0, 2**31), st.binary(min_size=1, max_size=12)), min_size=1, max_size=6))
def test_no_edit_upsets_check_or_repair_nor_invents_a_message(bag, tmp_path_factory, edits):
    folder = tmp_path_factory.getbasetemp()
    data = bytearray(bag.data)
    for place, patch in edits:
        place %= len(data)
        data[place : place + len(patch)] = patch
    file = folder / "edited.mcap"
    file.write_bytes(data)
    assert check_bag(file).ok == (bytes(data) == bag.data)
    real = set(bag.whole(lambda start, end: True))
    assert set(saved_messages(file, folder / "edited_saved")) <= real


@settings(max_examples=60)
@given(
    definition=st.one_of(
        st.binary(max_size=60),
        st.sampled_from([b"int32 x\n", b"sar_msgs/Loop loop\n", b"string[] s\n", b"uint8[<=3] a\nnone b", b"float64 "]),
    ),
    payload=st.binary(max_size=40),
    msgtype=st.sampled_from(["a/msg/B", "sar_msgs/msg/Loop", "", "a", "a/b/c/d"]),
    encoding=st.sampled_from(["ros2msg", "ros2idl", ""]),
)
def test_no_definition_upsets_the_check(tmp_path_factory, definition, payload, msgtype, encoding):
    """Checksums hold here, but what they protect is nonsense."""
    file = tmp_path_factory.getbasetemp() / "nonsense.mcap"
    with open(file, "wb") as stream:
        out = McapFile(stream.write, "test")
        out.add_schema(Schema(id=1, data=definition, encoding=encoding, name=msgtype))
        out.add_channel(Channel(id=1, topic="/clock", message_encoding="cdr", metadata={}, schema_id=1))
        record = MESSAGE.pack(5, 22 + len(payload), 1, 0, 0, 0) + payload
        out.write_chunk([record], np.array([1], np.uint16), np.array([0], np.uint64))
        out.finish()
    report = check_bag(file)
    assert report.messages == 1
    assert not report.ok
    assert not {"damage", "inconsistent", "no_summary"} & {finding.code for finding in report.findings}


@pytest.mark.parametrize("topic", ["/clock", "/truth/state", "/events/collision", "/uav_2/setpoint"])
def test_a_missing_topic_is_named(tmp_path, topic):
    report = check_bag(fly(tmp_path / "bag", skip=(topic,)))
    assert [finding.code for finding in report.findings] == ["missing_topic"]
    assert topic in report.findings[0].text


def test_missing_metadata_and_drones_are_named(tmp_path):
    skip = [name for name in TOPICS if name.startswith("/uav_1")]
    kept = {key: value for key, value in METADATA["sar_eval"].items() if key not in ("seed", "world")}
    report = check_bag(fly(tmp_path / "bag", skip=skip, metadata={"sar_eval": kept}))
    assert {finding.code for finding in report.findings} == {"missing_metadata", "drones"}
    assert "metadata record 'sar_eval' lacks seed, world" in {finding.text for finding in report.findings}


def test_a_gap_in_the_clock_is_named(tmp_path):
    report = check_bag(fly(tmp_path / "bag", ticks=lambda k: k + (k >= 50)))
    assert [finding.code for finding in report.findings] == ["clock_gap"]
    assert "/clock: a message at 2552000000 ns comes 100000000 ns after" in report.findings[0].text


def test_order_times_and_sequence_are_checked(tmp_path):
    store = typestore()
    topic = make_topic(store, "/clock", "rosgraph_msgs/msg/Clock")
    clock = serialise(store, blank(store, "rosgraph_msgs/msg/Clock"))
    file = tmp_path / "wild.mcap"
    rows = [(0, 0, 0), (1, 50, 50), (3, 20, 20), (4, 60, 61)]
    with open(file, "wb") as stream:
        out = McapFile(stream.write, "test")
        out.add_schema(Schema(id=1, data=topic.definition.encode(), encoding="ros2msg", name=topic.msgtype))
        out.add_channel(Channel(id=7, topic="/clock", message_encoding="cdr", metadata={}, schema_id=1))
        records = [
            MESSAGE.pack(5, 22 + len(clock), channel, *row) + clock
            for channel, row in zip((7, 7, 7, 7), rows, strict=True)
        ]
        records.append(MESSAGE.pack(5, 22 + len(clock), 9, 0, 70, 70) + clock)
        out.write_chunk(records, np.array([7, 7, 7, 7, 9], np.uint16), np.array([0, 50, 20, 60, 70], np.uint64))
        out.finish()
    assert {"stamps", "order", "two_times", "sequence", "clock", "unknown_channel"} <= codes(file)
    report = repair_bag(file, tmp_path / "saved")
    assert (report.recording.messages, report.lost_messages, report.complete) == (4, 1, False)


def lie_about_a_chunk(out):
    out.chunks[0].message_end_time += 1


def lie_about_counts(out):
    out._counts[7] += 1


def lie_about_metadata(out):
    out._metadata[0].name = "other"


@pytest.mark.parametrize("lie", [lie_about_a_chunk, lie_about_counts, lie_about_metadata])
def test_a_summary_has_to_tell_the_truth(tmp_path, lie):
    file = tmp_path / "lie.mcap"
    with open(file, "wb") as stream:
        out = McapFile(stream.write, "test")
        out.add_metadata("configuration", {})
        out.add_channel(Channel(id=7, topic="/x", message_encoding="cdr", metadata={}, schema_id=0))
        out.write_chunk([MESSAGE.pack(5, 22, 7, 0, 0, 0)], np.array([7], np.uint16), np.array([0], np.uint64))
        lie(out)
        out.finish()
    report = check_bag(file)
    assert "summary" in {finding.code for finding in report.findings}
    assert not {"damage", "inconsistent", "no_summary"} & {finding.code for finding in report.findings}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda about: about.update(message_count=1), "message_count is 1"),
        (lambda about: about.update(version=[[9]]), "version is a list"),
        (lambda about: about["topics_with_message_count"][0].update(message_count=3), "topic /clock differs"),
        (lambda about: about["topics_with_message_count"].pop(), "topic /uav_2/status differs"),
        (lambda about: about.update(relative_file_paths=["other.mcap"]), "does not name bag_0.mcap"),
        (lambda about: about["duration"].update(nanoseconds=0), "start and duration"),
    ],
)
def test_metadata_yaml_has_to_agree(bag, tmp_path, change, words):
    shutil.copytree(bag.folder, tmp_path / "bag")
    file = tmp_path / "bag" / "metadata.yaml"
    document = yaml.safe_load(file.read_text())
    change(document["rosbag2_bagfile_information"])
    file.write_text(yaml.safe_dump(document))
    report = check_bag(tmp_path / "bag")
    assert [finding.code for finding in report.findings] == ["metadata_yaml"]
    assert words in report.findings[0].text


@settings(max_examples=30)
@given(
    text=st.one_of(st.binary(max_size=80), st.sampled_from([b"", b"[" * 3000, b"a: &a [*a]", b"- 1", b"!!python/none"]))
)
def test_no_metadata_yaml_upsets_the_check(bag, tmp_path_factory, text):
    folder = tmp_path_factory.getbasetemp() / "odd_yaml"
    shutil.copytree(bag.folder, folder, dirs_exist_ok=True)
    (folder / "metadata.yaml").write_bytes(text)
    assert "metadata_yaml" in codes(folder)


def test_a_folder_without_its_description_is_repaired(bag, tmp_path):
    shutil.copytree(bag.folder, tmp_path / "bag")
    (tmp_path / "bag" / "metadata.yaml").unlink()
    assert codes(tmp_path / "bag") == {"no_metadata_yaml"}
    assert repair_bag(tmp_path / "bag", tmp_path / "saved").recording.messages == check_bag(bag.folder).messages
    assert check_bag(tmp_path / "saved").ok
