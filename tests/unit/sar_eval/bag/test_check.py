"""Bags of all kinds of wrong: the check names each, and no bytes upset it."""

import shutil

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.records import Channel, Schema

from sar_eval.bag.check import check_bag
from sar_eval.bag.files import MAGIC, MESSAGE, McapFile
from sar_eval.bag.messages import blank, serialise, typestore
from sar_eval.bag.repair import repair_bag
from sar_eval.bag.writer import make_topic
from tests.unit.sar_eval.bag.madebag import METADATA, SECONDS, TOPICS, codes, fly


def test_a_good_bag_has_no_findings(bag):
    for path in (bag.folder, bag.folder / "bag_0.mcap"):
        report = check_bag(path)
        assert report.findings == ()
        assert report.messages == sum(len(messages) for _, _, messages in bag.chunks)
        assert report.chunks == SECONDS
        assert report.metadata["sar_eval"] == METADATA["sar_eval"]
        assert (report.start_ns, report.end_ns) == (0, 3_952_000_000)
        assert not report.repaired


@settings(max_examples=150)
@given(content=st.binary(max_size=400), magic=st.booleans())
def test_no_bytes_upset_the_check(tmp_path_factory, content, magic):
    file = tmp_path_factory.getbasetemp() / "any.mcap"
    file.write_bytes(MAGIC * magic + content)
    assert not check_bag(file).ok


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
