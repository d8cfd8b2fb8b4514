"""Bags as columns: the same numbers as the reference reader gives, and clear words for everything broken."""

import dataclasses
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.highlevel import AnyReader

from sar_analysis.bags import chunks
from sar_analysis.bags import reader as bags
from sar_analysis.bags.reader import SchemaVersionError, UnfinishedError, read_bag
from sar_analysis.metrics.metrics import episode_metrics
from sar_core.errors import ContractError, MissingDataError, SarError
from tests.unit.sar_analysis.bagmaker import Made, event, report, stamps, straight

RNG = np.random.default_rng(7)
SECONDS = 6.0


def made() -> Made:
    shape = (len(stamps(SECONDS)), 3)
    turned = RNG.standard_normal((*shape, 4))
    return Made(
        positions=RNG.standard_normal((*shape, 3)),
        velocity=RNG.standard_normal((*shape, 3)),
        orientation=turned / np.linalg.norm(turned, axis=2, keepdims=True),
        rates=RNG.standard_normal((*shape, 3)),
        begin_s=2.0,
        end_s=5.0,
        battery=RNG.random((13, 3)),
        devices=[(11, 0, (1.0, 2.0, 0.5)), (12, 3, (4.0, 5.0, 0.5))],
        reports=[report(2.5 + k / 4, *RNG.random(2), 0.5, address=11 + k % 2) for k in range(5)],
        # Strings of several lengths, two of them in messages of equal size, so that layouts change from row to row.
        events=[
            event(3.0 + 0.1 * k, k, 2, 1, obstacle=name) for k, name in enumerate(["", "ab", "abc", "a" * 9, "xyz"])
        ],
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made().write(tmp_path_factory.mktemp("bags") / "good")


def reference(folder: Path) -> dict[str, list]:
    found: dict[str, list] = {}
    with AnyReader([folder]) as reader:
        for connection, _, raw in reader.messages():
            found.setdefault(connection.topic, []).append(reader.deserialize(raw, connection.msgtype))
    return found


def test_columns_equal_the_reference_decoder(folder: Path) -> None:
    bag, wanted = read_bag(folder), reference(folder)
    truth = wanted["/truth/state"]
    assert bag.truth.stamps_ns.tolist() == [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in truth]
    for ours, theirs in (("position", "position"), ("velocity", "velocity"), ("angular_velocity", "angular_velocity")):
        expected = [[(p.x, p.y, p.z) for p in getattr(m, theirs)] for m in truth]
        assert np.array_equal(getattr(bag.truth, ours), expected)
    assert np.array_equal(bag.truth.attitude, [[(q.x, q.y, q.z, q.w) for q in m.orientation] for m in truth])
    assert bag.reports.position.tolist() == [
        [m.position.x, m.position.y, m.position.z] for m in wanted["/swarm/reports"]
    ]
    assert bag.reports.address.tolist() == [m.address for m in wanted["/swarm/reports"]]
    assert bag.events.obstacle == tuple(m.obstacle for m in wanted["/events/collision"])
    assert bag.events.event_id.tolist() == [m.event_id for m in wanted["/events/collision"]]
    assert bag.status.search_time_s.tolist() == [m.search_time_s for m in wanted["/episode/status"]]
    for i, health in enumerate(bag.health):
        assert health.battery_fraction.tolist() == [m.battery_fraction for m in wanted[f"/uav_{i + 1}/status"]]
    assert bag.devices is not None
    assert bag.devices.position[0].tolist() == [[1.0, 2.0, 0.5], [4.0, 5.0, 0.5]]
    assert (bag.info.pattern, bag.info.seed, bag.info.area_m) == ("spiral", 3, (0.0, 0.0, 100.0, 100.0))


def test_episode_without_radio_and_events(tmp_path: Path) -> None:
    bag = read_bag(Made(straight(3.0, np.zeros((1, 3)), np.zeros((1, 3))), 1.0, 2.0).write(tmp_path / "bare"))
    assert bag.devices is None
    assert len(bag.reports.confidence) == len(bag.events.kind) == len(bag.gates.state) == 0


def test_no_transmitters_at_all(tmp_path: Path) -> None:
    bag = read_bag(Made(straight(3.0, np.zeros((1, 3)), np.zeros((1, 3))), 1.0, 2.0, devices=[]).write(tmp_path / "b"))
    assert bag.devices is not None
    assert bag.devices.position.shape == (4, 0, 3)


def copy(folder: Path, target: Path) -> Path:
    shutil.copytree(folder, target)
    return next(target.glob("*.mcap"))


def test_partial_folder(folder: Path, tmp_path: Path) -> None:
    copy(folder, tmp_path / "x.partial")
    with pytest.raises(UnfinishedError, match="not finished"):
        read_bag(tmp_path / "x.partial")


@pytest.mark.parametrize("version", ["2", "0", ""])
def test_foreign_schema_version(tmp_path: Path, version: str) -> None:
    still = straight(2.0, np.zeros((1, 3)), np.zeros((1, 3)))
    target = Made(still, 1.0, 2.0, schema_version=version).write(tmp_path / "b")
    with pytest.raises(SchemaVersionError, match=f"schema_version is {version}; this analysis reads 1"):
        read_bag(target)


def test_missing_pieces(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="no such bag"):
        read_bag(tmp_path / "nowhere")
    copy(folder, tmp_path / "a").unlink()
    with pytest.raises(MissingDataError, match=r"no \.mcap file"):
        read_bag(tmp_path / "a")
    file = copy(folder, tmp_path / "b")
    (tmp_path / "b" / "metadata.yaml").unlink()
    with pytest.raises(ContractError, match=r"metadata\.yaml is missing"):
        read_bag(tmp_path / "b")
    file = copy(folder, tmp_path / "c")
    file.write_bytes(b"")
    with pytest.raises(ContractError, match="the file is empty"):
        read_bag(tmp_path / "c")


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e300])
def test_truth_that_cannot_be_is_refused(tmp_path: Path, value: float) -> None:
    path = straight(2.0, np.zeros((2, 3)), np.zeros((2, 3)))
    path[20, 1, 2] = value
    with pytest.raises(ContractError, match=r"/truth/state: position is .* at 1\.000 s; allowed is -100000 to 100000"):
        read_bag(Made(path, 1.0, 2.0).write(tmp_path / "b"))


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"info": {"area_max.x": 1e300}}, "area_max"),
        ({"info": {"area_max.x": np.nan}}, "area_max"),
        ({"info": {"area_max.y": -5.0}}, "search area"),
        ({"info": {"area_max.x": 9e4, "area_max.y": 9e4}}, "search area"),
        ({"info": {"area_max.x": 1e-9}}, "search area"),
        ({"status": {"coverage": np.nan}}, "coverage is"),
        ({"battery": np.full((5, 1), np.nan)}, "battery_fraction is"),
        ({"devices": [], "reports": [report(1.0, 0.0, 0.0, np.nan)]}, "confidence is"),
        ({"devices": [(1, 0, (np.nan, 0.0, 0.0))]}, "/truth/devices: position is"),
        ({"status": {"search_time_s": np.inf}}, "search_time_s is"),
        ({"status": {"search_time_s": -1.0}}, "search_time_s is"),
        ({"status": {"search_time_s": 1e12}}, "search_time_s is"),
        ({"info": {"drones": 3}}, "holds 1 drones, /episode/info says 3"),
    ],
)
def test_figures_that_cannot_be_are_refused(tmp_path: Path, broken: dict, words: str) -> None:
    made = Made(straight(2.0, np.zeros((1, 3)), np.zeros((1, 3))), 1.0, 2.0, **broken)
    with pytest.raises(ContractError, match=words):
        read_bag(made.write(tmp_path / "b"))


def test_a_repaired_bag_says_so(tmp_path: Path) -> None:
    still = straight(2.0, np.zeros((1, 3)), np.zeros((1, 3)))
    bag = read_bag(Made(still, 1.0, 2.0, extra={"repaired": {"lost": "1"}}).write(tmp_path / "b"))
    assert "may lack messages" in bag.notes[0]


def test_every_changed_byte_is_noticed(folder: Path, tmp_path: Path) -> None:
    """Flip one byte anywhere: the bag is refused, whatever the byte was for."""
    file = copy(folder, tmp_path / "b")
    data = file.read_bytes()
    for at in np.linspace(0, len(data) - 1, 60).astype(int).tolist():
        broken = bytearray(data)
        broken[at] ^= 0x55
        file.write_bytes(broken)
        with pytest.raises(SarError):
            read_bag(tmp_path / "b")


def test_any_numbers_give_a_row_or_a_reason(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes changed behind the checksums' back: whatever comes out is a row or an error of ours, in finite time."""
    content = chunks.read_content(next(folder.glob("*.mcap")))
    used = [t for t in content.topics.values() if len(t.starts)]
    rng, refused = np.random.default_rng(1), 0
    for _ in range(300):
        buffer = bytearray(content.buffer)
        for _ in range(rng.integers(1, 4)):
            topic = used[rng.integers(len(used))]
            k = rng.integers(len(topic.starts))
            buffer[rng.integers(topic.starts[k], topic.ends[k])] = rng.integers(256)
        broken = dataclasses.replace(content, buffer=bytes(buffer))
        monkeypatch.setattr(bags, "read_content", lambda _, broken=broken: broken)
        try:
            episode_metrics(folder)
        except SarError:
            refused += 1
    assert 0 < refused < 300


def test_every_cut_is_noticed(folder: Path, tmp_path: Path) -> None:
    file = copy(folder, tmp_path / "b")
    data = file.read_bytes()
    for size in np.linspace(1, len(data) - 1, 25).astype(int).tolist():
        file.write_bytes(data[:size])
        with pytest.raises(ContractError):
            read_bag(tmp_path / "b")


@given(st.lists(st.tuples(st.sampled_from([3, 4, 5]), st.binary(max_size=60)), max_size=8), st.integers(0, 200))
def test_messages_are_found_in_any_row_of_records(records: list[tuple[int, bytes]], cut: int) -> None:
    """Against a plain walk; a row cut short, or with a message too short to be one, is refused."""
    data = b"".join(struct.pack("<BQ", opcode, len(body)) + body for opcode, body in records)[: max(1, cut)]
    expected: dict[int, list[list[int]]] = {}
    at, whole = 0, True
    while at < len(data) and whole:
        whole = len(data) - at >= 9
        if whole:
            opcode, length = struct.unpack_from("<BQ", data, at)
            whole = at + 9 + length <= len(data) and not (opcode == 5 and length < 22)
            if whole and opcode == 5:
                (channel,) = struct.unpack_from("<H", data, at + 9)
                expected.setdefault(channel, []).append([at + 31, at + 9 + length])
            at += 9 + length
    if whole:
        found = chunks._places(Path("x"), data)
        assert {channel: spans.tolist() for channel, spans in found.items()} == expected
    else:
        with pytest.raises(ContractError, match="inside a record"):
            chunks._places(Path("x"), data)


@pytest.mark.parametrize("length", [2**63 - 1, 2**64 - 1, 2**63, 50])
def test_a_length_beyond_all_bounds(length: int) -> None:
    with pytest.raises(ContractError, match="inside a record"):
        chunks._places(Path("x"), struct.pack("<BQ", 5, length) + bytes(40))


def test_chunk_checksums_count_where_the_file_has_none_of_its_own(folder: Path, tmp_path: Path) -> None:
    """Other recorders leave the checksum over all data out; then each chunk's own is looked at."""
    file = copy(folder, tmp_path / "b")
    data = bytearray(file.read_bytes())
    (summary_at,) = struct.unpack_from("<Q", data, len(data) - 8 - 20)
    data[summary_at - 4 : summary_at] = bytes(4)
    file.write_bytes(data)
    read_bag(tmp_path / "b")
    crc_at = data.index(b"\x04\x00\x00\x00zstd") - 4
    data[crc_at] ^= 1
    file.write_bytes(data)
    with pytest.raises(ContractError, match="wrong size or checksum"):
        read_bag(tmp_path / "b")
