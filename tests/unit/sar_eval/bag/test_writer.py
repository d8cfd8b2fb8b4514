"""The recorder writes what the plain library would, only faster, and never calls a bag good that is not."""

import errno
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import yaml
from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer
from rosbags.highlevel import AnyReader
from rosbags.interfaces import QosDurability

from sar_core.errors import ContractError, InputError, RunError
from sar_eval.bag.check import check_bag
from sar_eval.bag.messages import MessageLayout, blank, serialise, typestore
from sar_eval.bag.repair import repair_bag
from sar_eval.bag.writer import LIBRARY, BagWriter, make_topic

METADATA = {"configuration": {"yaml": "drones: 2\n", "sha256": "ab"}, "seeds": {"seed": "7", "episode": "0"}}
CLOCK, SETPOINT, INFO = "rosgraph_msgs/msg/Clock", "sar_msgs/msg/Setpoint", "sar_msgs/msg/EpisodeInfo"


def topics():
    store = typestore()
    return [
        make_topic(store, "/uav_1/setpoint", SETPOINT),
        make_topic(store, "/episode/info", INFO, latched=True),
        make_topic(store, "/clock", CLOCK),
        make_topic(store, "/uav_2/setpoint", SETPOINT),
    ]


def second(k):
    """Stamps of one second's ticks [ns]."""
    return k * 10**9 + np.ceil(np.arange(20) * 12.5).astype(np.int64) * 4_000_000


def fill(writer, seconds, rng):
    """Write topic by topic, second by second, with one clock message missing.

    Gives (topic, stamp, sequence, payload) in the order a bag must have.
    """
    store = typestore()
    clock = MessageLayout(store, blank(store, CLOCK))
    setpoint = MessageLayout(store, blank(store, SETPOINT, {"header.frame_id": "world"}))
    counts = dict.fromkeys(("/uav_2/setpoint", "/uav_1/setpoint", "/clock"), 0)
    info = serialise(store, blank(store, INFO, {"world": "village"}))
    expected = [("/episode/info", 0, 0, info)]
    writer.write("/episode/info", 0, info)
    for k in range(seconds):
        for topic in counts:
            stamps = second(k)[1:] if topic == "/clock" and k == 1 else second(k)
            columns = {"header.stamp": stamps, "position": rng.standard_normal((len(stamps), 3))}
            rows = clock.encode({"clock": stamps}) if topic == "/clock" else setpoint.encode(columns)
            writer.write_batch(topic, stamps, rows)
            for stamp, row in zip(stamps.tolist(), rows, strict=True):
                expected.append((topic, stamp, counts[topic], row.tobytes()))
                counts[topic] += 1
        writer.flush()
    return sorted(expected, key=lambda message: (message[1], message[0], message[2]))


def recorded(file):
    """All messages of an MCAP file in file order, read by the mcap library."""
    with open(file, "rb") as stream:
        return [
            (channel.topic, message.log_time, message.sequence, message.data)
            for _, channel, message in make_reader(stream, validate_crcs=True).iter_messages(log_time_order=False)
            if message.publish_time == message.log_time
        ]


def test_messages_come_back_in_order_from_the_mcap_library(tmp_path):
    with BagWriter(tmp_path / "bag", topics(), METADATA) as writer:
        expected = fill(writer, 3, np.random.default_rng(1))
    assert recorded(tmp_path / "bag" / "bag_0.mcap") == expected
    assert not (tmp_path / "bag.partial").exists()


def test_rosbags_reads_it_with_the_definitions_of_the_bag_alone(tmp_path):
    writer = BagWriter(tmp_path / "bag", topics(), METADATA)
    expected = fill(writer, 2, np.random.default_rng(2))
    recording = writer.close()
    assert recording.messages == len(expected)
    assert recording.size_bytes == recording.file.stat().st_size
    with AnyReader([tmp_path / "bag"]) as reader:
        assert reader.message_count == len(expected)
        assert (reader.start_time, reader.end_time) == (recording.start_ns, recording.end_ns + 1)
        latched = {
            c.topic
            for c in reader.connections
            if c.ext.offered_qos_profiles[0].durability is QosDurability.TRANSIENT_LOCAL
        }
        assert latched == {"/episode/info"}
        assert {c.topic: c.msgcount for c in reader.connections} == dict(recording.counts)
        got = [(c.topic, stamp, reader.deserialize(raw, c.msgtype)) for c, stamp, raw in reader.messages()]
    store, types = typestore(), {topic.name: topic.msgtype for topic in topics()}
    assert [(topic, stamp) for topic, stamp, _ in got] == [(topic, stamp) for topic, stamp, _, _ in expected]
    for (topic, _, message), (_, _, _, payload) in zip(got, expected, strict=True):
        assert serialise(store, message) == payload
        assert type(message).__name__ == types[topic].replace("/", "__")


def test_the_file_is_byte_for_byte_the_plain_librarys(tmp_path):
    writer = BagWriter(tmp_path / "bag", topics(), METADATA)
    expected = fill(writer, 3, np.random.default_rng(3))
    recording = writer.close()
    about = yaml.safe_load((tmp_path / "bag" / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    with open(recording.file, "rb") as stream:
        records = {record.name: record.metadata for record in make_reader(stream).iter_metadata()}
    assert yaml.safe_load(records["rosbag2"]["serialized_metadata"]) == about

    with open(tmp_path / "plain.mcap", "wb") as stream:
        plain = Writer(stream, chunk_size=1 << 30, compression=CompressionType.ZSTD, enable_data_crcs=True)
        plain.start("ros2", LIBRARY)
        for name, values in METADATA.items():
            plain.add_metadata(name, values)
        schemas, channels = {}, {}
        for topic in sorted(topics(), key=lambda topic: topic.name):
            if topic.msgtype not in schemas:
                schemas[topic.msgtype] = plain.register_schema(topic.msgtype, "ros2msg", topic.definition.encode())
            labels = {"offered_qos_profiles": topic.qos, "topic_type_hash": topic.type_hash}
            channels[topic.name] = plain.register_channel(topic.name, "cdr", schemas[topic.msgtype], labels)
        flushed = 0
        for topic, stamp, sequence, payload in expected:
            if stamp // 10**9 > flushed:
                plain.flush()
                flushed += 1
            plain.add_message(channels[topic], stamp, payload, stamp, sequence)
        plain.flush()
        plain.add_metadata("rosbag2", records["rosbag2"])
        plain.finish()
    assert recording.file.read_bytes() == (tmp_path / "plain.mcap").read_bytes()


def test_the_description_is_rosbag2s(tmp_path):
    writer = BagWriter(tmp_path / "bag", topics(), METADATA)
    fill(writer, 1, np.random.default_rng(4))
    writer.close()
    about = yaml.safe_load((tmp_path / "bag" / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert (about["version"], about["storage_identifier"], about["ros_distro"]) == (9, "mcap", "jazzy")
    assert about["relative_file_paths"] == ["bag_0.mcap"]
    assert about["duration"]["nanoseconds"] == 952_000_000
    assert about["message_count"] == 61
    info = about["topics_with_message_count"][1]
    assert info["topic_metadata"]["name"] == "/episode/info"
    assert info["topic_metadata"]["type_description_hash"].startswith("RIHS01_")
    assert info["topic_metadata"]["offered_qos_profiles"][0]["durability"] == "transient_local"
    assert info["message_count"] == 1


@pytest.mark.parametrize("taken", ["bag", "bag.partial"])
def test_an_existing_bag_is_never_overwritten(tmp_path, taken):
    (tmp_path / taken).mkdir()
    with pytest.raises(InputError, match=f"{taken}: exists already"):
        BagWriter(tmp_path / "bag", topics(), METADATA)
    assert [path.name for path in tmp_path.iterdir()] == [taken]
    assert not any((tmp_path / taken).iterdir())


def test_a_bag_that_appears_meanwhile_is_not_overwritten_either(tmp_path):
    writer = BagWriter(tmp_path / "bag", topics(), METADATA)
    fill(writer, 1, np.random.default_rng(5))
    (tmp_path / "bag").mkdir()
    with pytest.raises(RunError, match="appeared while the bag was written"):
        writer.close()
    assert not any((tmp_path / "bag").iterdir())
    assert writer.partial.is_dir()


def test_a_bag_without_messages_is_a_readable_bag(tmp_path):
    recording = BagWriter(tmp_path / "bag", topics(), METADATA).close()
    assert recording.messages == 0
    with open(recording.file, "rb") as stream:
        assert {channel.topic for channel in make_reader(stream).get_summary().channels.values()} == {
            topic.name for topic in topics()
        }


def test_time_never_runs_backwards(tmp_path):
    writer = BagWriter(tmp_path / "bag", topics(), METADATA)
    clock = bytes(12)
    writer.write("/clock", 100, clock)
    with pytest.raises(ContractError, match="stamp 99 ns lies before 100 ns"):
        writer.write("/clock", 99, clock)
    with pytest.raises(ContractError, match="decrease"):
        writer.write_batch("/clock", [200, 199], np.zeros((2, 12), np.uint8))
    with pytest.raises(ContractError, match="2 stamps for 3 messages"):
        writer.write_batch("/clock", [200, 201], np.zeros((3, 12), np.uint8))
    with pytest.raises(ContractError, match="/rosout: not among the bag's topics"):
        writer.write("/rosout", 100, clock)
    writer.flush()
    writer.write("/episode/info", 99, clock)
    with pytest.raises(ContractError, match="/episode/info: a message at 99 ns comes after 100 ns was written"):
        writer.flush()
    writer.abandon()


def test_a_topic_is_recorded_once_and_has_a_known_type(tmp_path):
    with pytest.raises(ContractError, match="only once"):
        BagWriter(tmp_path / "bag", [*topics(), topics()[0]], METADATA)
    with pytest.raises(ContractError, match="'sar_msgs/msg/Nothing' is not known"):
        make_topic(typestore(), "/x", "sar_msgs/msg/Nothing")
    assert not any(tmp_path.iterdir())


def test_a_byte_that_changes_on_disk_is_noticed_before_the_bag_gets_its_name(tmp_path):
    writer = BagWriter(tmp_path / "bag", topics(), METADATA)
    fill(writer, 3, np.random.default_rng(6))
    file = writer.partial / "bag_0.mcap"
    with open(file, "r+b") as stream:
        stream.seek(file.stat().st_size // 2)
        byte = stream.read(1)[0]
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte ^ 1]))
    with pytest.raises(RunError, match="reading back found"):
        writer.close()
    assert not (tmp_path / "bag").exists()
    assert writer.partial.is_dir()


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_did_not_end_keeps_the_bag_partial(tmp_path, monkeypatch, failure):
    writer = BagWriter(tmp_path / "bag", topics(), METADATA)
    fill(writer, 2, np.random.default_rng(7))
    writer.write("/clock", 5 * 10**9, bytes(12))
    put = writer._folder.put

    def fail(data):
        put(data[: len(data) // 2])
        raise failure

    monkeypatch.setattr(writer._file, "_put", fail)
    expected = RunError if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        writer.flush()
    if expected is RunError:
        assert caught.value.exit_code == 3
        assert str(writer.partial) in str(caught.value)
        assert "No space left on device" in str(caught.value)
        assert "bytes free" in str(caught.value)
    monkeypatch.setattr(writer._file, "_put", put)
    with pytest.raises(RunError, match="an earlier write did not complete"):
        writer.close()
    writer.abandon()
    assert not (tmp_path / "bag").exists()
    assert repair_bag(writer.partial, tmp_path / "saved").recording.messages == 120


def test_leaving_by_an_exception_abandons_the_bag(tmp_path):
    with pytest.raises(ZeroDivisionError), BagWriter(tmp_path / "bag", topics(), METADATA) as writer:
        fill(writer, 1, np.random.default_rng(8))
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["bag.partial"]
    report = check_bag(tmp_path / "bag.partial")
    assert {"partial", "no_summary", "no_metadata_yaml"} <= {finding.code for finding in report.findings}
    assert report.messages == 61


CHILD = """
import resource, signal, sys
from pathlib import Path
from sar_core.errors import RunError
from sar_eval.bag.messages import MessageLayout, blank, typestore
from sar_eval.bag.writer import BagWriter, make_topic
import numpy as np

store = typestore()
layout = MessageLayout(store, blank(store, "sar_msgs/msg/Setpoint"))
rng = np.random.default_rng(0)
if sys.argv[2] != "unlimited":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    writer = BagWriter(Path(sys.argv[1]), [make_topic(store, "/uav_1/setpoint", "sar_msgs/msg/Setpoint")], {})
    for k in range(100_000):
        stamps = k * 10**9 + np.arange(20) * 50_000_000
        writer.write_batch("/uav_1/setpoint", stamps, layout.encode({"position": rng.standard_normal((20, 3))}))
        writer.flush()
        print(k, flush=True)
    writer.close()
except RunError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""


def child(target, limit):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", textwrap.dedent(CHILD), str(target), limit]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("limit", [200, 5_000, 50_000])
def test_a_file_that_cannot_grow_ends_the_run_with_code_3(tmp_path, limit):
    process = child(tmp_path / "bag", str(limit))
    out, error = process.communicate(timeout=60)
    assert process.returncode == 3, error
    assert error.count("\n") == 1
    assert str(tmp_path / "bag.partial" / "bag_0.mcap") in error
    assert "File too large" in error
    assert not (tmp_path / "bag").exists()
    flushed = len(out.splitlines())
    if flushed:
        saved = repair_bag(tmp_path / "bag.partial", tmp_path / "saved")
        assert saved.recording.messages in (20 * flushed, 20 * (flushed + 1))


def test_a_kill_loses_nothing_that_was_flushed(tmp_path):
    process = child(tmp_path / "bag", "unlimited")
    flushed = 0
    for line in process.stdout:
        flushed = int(line) + 1
        if flushed == 25:
            process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert flushed >= 25
    assert not (tmp_path / "bag").exists()
    saved = repair_bag(tmp_path / "bag.partial", tmp_path / "saved")
    assert 20 * flushed <= saved.recording.messages <= 20 * (flushed + 1)
    stamps = [stamp for _, stamp, _, _ in recorded(saved.recording.file)]
    assert stamps == [k * 50_000_000 for k in range(len(stamps))]
