"""Bags as columns: the same numbers as the reference reader gives, and clear words for everything broken."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
from rosbags.highlevel import AnyReader

from sar_analysis.bags import chunks
from sar_analysis.bags import reader as bags
from sar_analysis.bags.reader import SchemaVersionError, UnfinishedError, read_bag
from sar_analysis.metrics.metrics import episode_metrics
from sar_core.errors import ContractError, MissingDataError, SarError
from sar_eval.bag import encoders
from sar_eval.bag.messages import load_typestore
from sar_eval.scenario.resources import share_dir
from tests.unit.sar_analysis import bagmaker
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


def test_dilutions_are_told_apart_and_a_bag_with_one_gdop_means_the_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = share_dir("sar_msgs") / "msg"
    bag = made()
    bag.reports = [report(2.5, 1.0, 2.0, 0.5, address=11, constellation_gdop=2.5, information_dop_m=3.5)]
    told = read_bag(bag.write(tmp_path / "now")).reports
    assert [told.path_gdop.tolist(), told.constellation_gdop.tolist(), told.information_dop.tolist()] == [
        [1.5],
        [2.5],
        [3.5],
    ]
    before = tmp_path / "msg"
    shutil.copytree(own, before)
    text = (own / "VictimReport.msg").read_text()
    kept = [line for line in text.splitlines() if "constellation" not in line and "information" not in line]
    (before / "VictimReport.msg").write_text("\n".join(kept).replace("path_gdop", "gdop"))
    store = load_typestore(before)
    monkeypatch.setattr("tests.unit.sar_analysis.bagmaker.typestore", lambda: store)
    monkeypatch.setattr("sar_eval.bag.encoders.typestore", lambda: store)
    only_path = report(2.5, 1.0, 2.0, 0.5, address=11)
    bag.reports = [{("gdop" if key == "path_gdop" else key): value for key, value in only_path.items()}]
    told = read_bag(bag.write(tmp_path / "before")).reports
    assert told.path_gdop.tolist() == [1.5] and told.views.tolist() == [2]
    assert np.isnan([told.constellation_gdop, told.information_dop]).all()


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


@pytest.mark.parametrize("version", ["3", "0", ""])
def test_foreign_schema_version(tmp_path: Path, version: str) -> None:
    still = straight(2.0, np.zeros((1, 3)), np.zeros((1, 3)))
    target = Made(still, 1.0, 2.0, schema_version=version).write(tmp_path / "b")
    with pytest.raises(SchemaVersionError, match=f"schema_version is {version}; this analysis reads 1 and 2"):
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


def test_what_the_safety_layer_was_asked_and_the_planned_routes(tmp_path: Path) -> None:
    still = straight(2.0, np.zeros((2, 3)), np.zeros((2, 3)))
    flown, asked = RNG.standard_normal(still.shape), RNG.standard_normal(still.shape)
    bands, routes = RNG.integers(0, 5, (5, 2)), [[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0]]]
    made = Made(still, 1.0, 2.0, setpoints=flown, wanted=asked, bands=bands, routes=routes)
    bag = read_bag(made.write(tmp_path / "b"))
    for i, (own, health) in enumerate(zip(bag.setpoints, bag.health, strict=True)):
        assert np.array_equal(own.velocity, flown[:, i]) and own.wanted is not None
        assert np.array_equal(own.wanted, asked[:, i]) and own.limit_excess is not None
        assert health.band is not None and health.band.tolist() == bands[:, i].tolist()
    assert bag.routes is not None and [route.tolist() for route in bag.routes] == routes
    with pytest.raises(ContractError, match=r"a list of \[x, y\] for each of 2 drones, found 1 lists"):
        read_bag(Made(still, 1.0, 2.0, routes=routes[:1]).write(tmp_path / "short"))


def test_an_older_bag_lacks_them_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written with the definitions of its time: no field that came later."""
    late = ("wanted", "limit_excess", "band", "fence")
    folder = tmp_path / "msg"
    folder.mkdir()
    for file in (share_dir("sar_msgs") / "msg").glob("*.msg"):
        lines = [line for line in file.read_text().splitlines() if not line.split("#")[0].strip().endswith(late)]
        (folder / file.name).write_text("\n".join(lines))
    store = load_typestore(folder)
    still = straight(2.0, np.zeros((1, 3)), np.zeros((1, 3)))
    monkeypatch.setattr(bagmaker, "typestore", lambda: store)
    monkeypatch.setattr(encoders, "typestore", lambda: store)
    bag = read_bag(Made(still, 1.0, 2.0, setpoints=still, older=True, schema_version="1").write(tmp_path / "b"))
    assert (bag.setpoints[0].wanted, bag.setpoints[0].limit_excess, bag.routes) == (None, None, None)
    assert (bag.health[0].band, bag.health[0].fence) == (None, None)
    assert any("older bag" in note for note in bag.notes)


def test_a_repaired_bag_says_so(tmp_path: Path) -> None:
    still = straight(2.0, np.zeros((1, 3)), np.zeros((1, 3)))
    bag = read_bag(Made(still, 1.0, 2.0, extra={"repaired": {"lost": "1"}}).write(tmp_path / "b"))
    assert "may lack messages" in bag.notes[0]


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
