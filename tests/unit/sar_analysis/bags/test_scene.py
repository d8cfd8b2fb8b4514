"""The world inside a bag: what binds it to the episode, and distances to it that one can work out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_analysis.bags.reader import read_bag
from sar_analysis.bags.scene import Scene, least_clearance
from sar_analysis.metrics.metrics import episode_metrics
from sar_core.errors import ContractError
from sar_core.geometry import box, cylinder, distance_to
from sar_eval.bag.check import check_bag
from sar_eval.episode.flight import fly_episode
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.scenario.resources import share_dir
from sar_sim.world.world import load_world
from tests.unit.sar_analysis.bagmaker import Made, event, straight

HOUSE = box(50.0, 50.0, 5.0, 10.0, 20.0, 10.0).tolist()
GEOMETRY: dict[str, Any] = {
    "name": "field",
    "obstacles": [HOUSE],
    "obstacle_names": ["house"],
    "area_m": [0.0, 0.0, 100.0, 100.0],
    "fence": [[-5.0, -5.0], [105.0, -5.0], [105.0, 105.0], [-5.0, 105.0]],
    "ceiling_m": 120.0,
    "spawns": [[2.5, 52.5, 4.0, 0.0]],
    "hull_radius_m": 0.4,
}


def made(tmp_path: Path, sha256: str = "w0", events: list[dict[str, Any]] | None = None, **changes: Any) -> Path:
    path = straight(4.0, np.array([[2.5, 52.5, 4.0]]), np.array([[8.0, 0.0, 0.0]]))
    record = {"schema_version": "1", "world_sha256": sha256, "geometry": json.dumps(GEOMETRY | changes)}
    bag = Made(path, 1.0, 3.0, info={"world_sha256": "w0"}, extra={"world": record}, events=events or [])
    return bag.write(tmp_path / "bag")


def test_clearance_is_hull_to_wall(tmp_path: Path) -> None:
    """Flown from x = 2.5 to 34.5 towards a wall at 45."""
    assert episode_metrics(made(tmp_path)).min_clearance_m == pytest.approx(45.0 - 34.5 - 0.4)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"sha256": "w1"}, "of world w1, /episode/info says w0"),
        ({"area_m": [0.0, 0.0, 100.0, 90.0]}, "search area"),
        ({"spawns": [[90.0, 90.0, 0.0, 0.0]]}, "from every spawn point"),
        ({"events": [event(2.0, 1, 2, 1, obstacle="tree")]}, "touched: tree"),
        ({"obstacle_names": []}, "0 for 1 obstacles"),
        ({"obstacles": [[7.0, *HOUSE[1:]]]}, "a kind other than"),
        ({"obstacles": [[0.0, float("nan"), *HOUSE[2:]]]}, "not finite"),
        ({"obstacles": [HOUSE[:5]]}, "world"),
        ({"ceiling_m": None}, "world"),
    ],
)
def test_a_geometry_of_another_world_is_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    bag = made(tmp_path, **changes)
    with pytest.raises(ContractError, match=told):
        read_bag(bag)


def test_a_bag_without_the_record_has_no_map_and_no_clearance(tmp_path: Path) -> None:
    path = straight(4.0, np.array([[2.5, 52.5, 4.0]]), np.array([[8.0, 0.0, 0.0]]))
    bag = Made(path, 1.0, 3.0).write(tmp_path / "bag")
    assert read_bag(bag).world is None
    assert episode_metrics(bag).min_clearance_m is None


def test_a_flown_bag_holds_the_geometry_of_its_sdf_file(tmp_path: Path) -> None:
    episode = prepare(Scenario(world="village", drones=2, duration_s=3.0, radio=None), 3, 1)
    fly_episode(episode, tmp_path / "bag")
    found, world = read_bag(tmp_path / "bag").world, load_world(share_dir("worlds") / "village.sdf")
    assert found is not None
    assert (found.sha256, found.names, found.area_m) == (world.sha256, world.obstacle_names, world.area)
    for name in ("obstacles", "fence", "spawns"):
        assert np.array_equal(getattr(found, name), getattr(world, name)), name
    assert check_bag(tmp_path / "bag").findings == ()


places = st.floats(-60.0, 60.0)


@given(st.lists(st.tuples(places, places, st.floats(0.0, 30.0)), min_size=2, max_size=12))
def test_no_leg_that_matters_is_skipped(corners: list[tuple[float, float, float]]) -> None:
    """Against looking at many points of every leg; what is looked at can only be farther."""
    rows = np.array([box(10.0, 5.0, 6.0, 8.0, 14.0, 12.0, 0.4), cylinder(-20.0, -10.0, 4.0, 3.0, 8.0)])
    path = np.array(corners)[:, None, :]
    scene = Scene("w", "", rows, ("a", "b"), (0, 0, 1, 1), np.empty((0, 2)), 120.0, np.empty((0, 4)), 0.0)
    found = least_clearance(scene, path)
    looks = np.concatenate([np.linspace(a, b, 200) for a, b in zip(path[:-1, 0], path[1:, 0], strict=True)])
    slow = min(distance_to(row, *point) for row in rows for point in looks)
    longest = float(np.linalg.norm(np.diff(path[:, 0], axis=0), axis=1).max())
    assert found is not None and slow - longest / 199 - 1e-9 <= found <= slow + 1e-5
