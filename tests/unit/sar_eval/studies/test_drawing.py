"""A picture of a mission: from its bag alone, replaced whole, and refused where there is nothing to draw."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sar_core.errors import InputError
from sar_eval.studies.drawing import draw_bag, read_mission
from tests.unit.sar_analysis.bagmaker import Made, event, report, straight

CONFIG = {
    "world": "open_field",
    "altitude_m": 30.0,
    "tier": "embedded",
    "pattern": "spiral",
    "drones": 2,
    "seed": 3,
    "episode": 1,
}


def made(seconds: float = 3.0, **changes: object) -> Made:
    starts = np.array([[0.0, 0.0, 30.0], [50.0, 0.0, 30.0]])
    path = straight(seconds, starts, np.array([[8.0, 0.0, 0.0], [0.0, 8.0, 0.0]]))
    more = {
        "config": CONFIG,
        "devices": [(7, 0, (5.0, 6.0, 0.0)), (8, 1, (9.0, 9.0, 0.0))],
        "reports": [report(2.0, 5.5, 6.5, 0.4), report(2.5, 5.0, 6.0, 0.9)],
        "events": [event(1.0, 1, 5, 1), event(1.5, 1, 5, 2, **{"position.x": 3.0}), event(2.0, 2, 1, 2)],
    }
    return Made(path, begin_s=1.0, end_s=seconds, **(more | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made().write(tmp_path_factory.mktemp("drawing") / "bag")


def test_tracks_events_and_the_last_word_on_each_device_are_read(bag: Path) -> None:
    mission = read_mission(bag)
    assert mission.tracks.shape == (61, 2, 3) and mission.tracks[-1, 1].tolist() == pytest.approx([50.0, 24.0, 30.0])
    assert mission.times_s[[0, -1]].tolist() == [0.0, 3.0]
    assert mission.devices == [(0, 5.0, 6.0), (1, 9.0, 9.0)]
    assert mission.reports == {7: (pytest.approx(0.9), 5.0, 6.0)}
    assert [(kind, x) for kind, x, _ in mission.events] == [("near miss", 3.0), ("collision", 0.0)], (
        "once each, as over"
    )
    assert read_mission(next(bag.glob("*.mcap"))).configuration == mission.configuration


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_picture_replaces_an_earlier_one_and_leaves_nothing_beside_it(suffix: str, bag: Path, tmp_path: Path) -> None:
    picture = tmp_path / "new" / f"mission{suffix}"
    for _ in range(2):
        draw_bag(bag, picture)
        assert picture.stat().st_size > 5000 and [item.name for item in picture.parent.iterdir()] == [picture.name]


def test_a_picture_that_cannot_be_written_is_named_and_leaves_nothing(bag: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"mission\.gif2: cannot write the picture"):
        draw_bag(bag, tmp_path / "mission.gif2")
    assert list(tmp_path.iterdir()) == []


def test_what_holds_no_flight_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a recorded episode"):
        read_mission(tmp_path)
    (tmp_path / "x.partial").mkdir()
    with pytest.raises(InputError, match="sar-eval bag repair saves what it holds"):
        read_mission(tmp_path / "x.partial")


def test_without_victims_reports_or_search_there_is_still_a_map(tmp_path: Path) -> None:
    quiet = made(devices=None, reports=[], events=[]).write(tmp_path / "quiet")
    draw_bag(quiet, tmp_path / "quiet.png")
    assert (tmp_path / "quiet.png").stat().st_size > 5000
