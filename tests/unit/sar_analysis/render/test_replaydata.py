"""A replay holds what the bag holds: places to a decimetre, times to a tenth of a second, the metrics' verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_analysis.metrics.metrics import episode_metrics
from sar_analysis.render.replaydata import make_replay, make_replays, pack, unpack
from tests.unit.sar_analysis.bagmaker import Made, event, report, straight

VICTIM, DECOY = (7, 0, (20.0, 60.0, 0.5)), (9, 2, (80.0, 20.0, 0.5))
REPORTS = [
    report(3.0, 25.0, 60.0, 0.5),
    report(4.0, 25.0, 60.0, 0.9),
    report(5.0, 24.0, 60.0, 0.95),
    report(6.0, 70.0, 70.0, 0.9, address=9),
    report(7.0, 71.0, 70.0, 0.99, address=9),
    report(8.0, 1.0, 1.0, 0.2, address=1234),
]
EVENTS = [
    event(5.0, 1, 2, 1, obstacle="house", **{"begin.sec": 5, "position.x": 30.25, "min_distance_m": -0.1}),
    event(6.0, 1, 2, 2, obstacle="house", **{"begin.sec": 5, "end.sec": 5, "end.nanosec": 500_000_000}),
    event(7.0, 2, 5, 2, other_uav=2, **{"begin.sec": 6, "end.sec": 7}),
]


def made(**more: Any) -> Made:
    path = straight(
        10.0, np.array([[2.5, 52.5, 30.0], [2.5, 12.5, 30.0]]), np.array([[8.0, 0.5, 0.0], [8.0, 0.0, 0.1]])
    )
    return Made(path, 1.0, 9.0, devices=[VICTIM, DECOY], **more)


def test_tracks_are_the_truth_to_a_decimetre(tmp_path: Path) -> None:
    data = make_replay(made().write(tmp_path / "bag")).data
    for n, track in enumerate(data["tracks"]):
        t = 0.5 * np.arange(len(track["x"]))
        assert len(t) == 21 and data["end"] == 100
        expected = made().positions[0, n] + t[:, None] * (made().positions[-1, n] - made().positions[0, n]) / 10.0
        found = np.stack([np.cumsum(track[name]) for name in "xyz"], axis=1) / 10.0
        assert np.abs(found - expected).max() <= 0.051
        assert set(np.cumsum(track["heading"])) == {0}
    assert data["search"] == [10, 90]


def test_verdicts_are_those_of_the_metrics(tmp_path: Path) -> None:
    bag = made(reports=REPORTS).write(tmp_path / "bag")
    data, metrics = make_replay(bag).data, episode_metrics(bag)
    reports = data["reports"]
    assert reports["issues"] == {"right": [1], "displaced": [], "decoy": [3]}
    assert (metrics.detections, metrics.displaced, metrics.false_alarms) == (1, 0, 1)
    assert reports["right"] == [1, 1, 1, 0, 0, 0]
    assert reports["confident"] == [0, 1, 1, 1, 1, 0]
    assert reports["device"] == [0, 0, 0, 1, 1, -1]
    assert np.cumsum(reports["t"]).tolist() == [30, 40, 50, 60, 70, 80]
    assert [d["kind"] for d in data["devices"]] == ["victim", "access_point"]


def test_a_report_is_judged_by_its_own_transmitter_and_inside_the_search_only(tmp_path: Path) -> None:
    """At the victim, but of another device; the victim's device far off; right, but on the way home."""
    off = report(4.0, 60.0, 60.0, 0.9)
    said = [report(0.5, 20.0, 60.0, 0.9), report(3.0, 20.0, 60.0, 0.9, address=9), off, report(9.8, 20.0, 60.0, 0.9)]
    reports = make_replay(made(reports=said[1:]).write(tmp_path / "bag")).data["reports"]
    assert reports["issues"] == {"right": [], "displaced": [1], "decoy": [0]}
    assert (reports["right"], reports["confident"]) == ([0, 0, 0], [1, 1, 0])
    before = make_replay(made(reports=said).write(tmp_path / "before")).data["reports"]
    assert before["issues"] == {"right": [0], "displaced": [], "decoy": [1]}


def test_begin_and_end_of_a_contact_are_one_event(tmp_path: Path) -> None:
    contact, miss = make_replay(made(events=EVENTS).write(tmp_path / "bag")).data["events"]
    assert (contact["kind"], contact["begin"], contact["end"], contact["obstacle"]) == (
        "drone_obstacle",
        50,
        55,
        "house",
    )
    assert (miss["kind"], miss["uav"], miss["other"], miss["begin"], miss["end"]) == ("near_miss", 1, 2, 60, 70)


def test_states_are_given_where_they_change(tmp_path: Path) -> None:
    failsafe = np.zeros((21, 2), np.int64)
    failsafe[8:, 1] = 3
    data = make_replay(made(failsafe=failsafe).write(tmp_path / "bag")).data
    assert data["failsafes"] == [[[0, "nominal"]], [[0, "nominal"], [40, "return_to_home"]]]


def test_scanned_cells_are_the_coverage(tmp_path: Path) -> None:
    bag = made().write(tmp_path / "bag")
    cells = make_replay(bag).data["cells"]
    seconds = np.array(cells["seconds"])
    assert cells["columns"] == 20 and seconds.size == 400
    assert (seconds >= 0).mean() == pytest.approx(episode_metrics(bag).coverage)
    assert seconds.max() <= 8


def test_packed_data_comes_back_and_a_lost_bag_is_a_reason(tmp_path: Path) -> None:
    bag = made(reports=REPORTS, events=EVENTS).write(tmp_path / "bag")
    replay = make_replay(bag)
    assert unpack(pack(replay.data)) == unpack(pack(unpack(pack(replay.data))))
    assert len(pack(replay.data)) < 4000
    found = make_replays({"here": bag, "gone": tmp_path / "none"})
    assert found["here"] == replay
    assert found["gone"] == "none: no such bag; expected a rosbag2 folder"


def test_without_radio_or_search_there_is_less_to_show(tmp_path: Path) -> None:
    path = straight(3.0, np.array([[2.5, 52.5, 30.0]]), np.array([[8.0, 0.0, 0.0]]))
    data = make_replay(Made(path, 9.0, 9.0).write(tmp_path / "bag")).data
    assert (data["search"], data["cells"], data["devices"], data["radio"]) == (None, None, [], False)
