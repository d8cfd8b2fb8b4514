"""Where vehicles stand: by PX4's environment, in a world, or on a line."""

from __future__ import annotations

import numpy as np
import pytest

from sar_core.errors import InputError
from sar_core.geodesy import to_global
from sar_eval.px4.mavlink import ORIGIN
from sar_eval.scenario.resources import world_path
from sar_eval.sitl.site import choose_site
from sar_sim.world.world import load_world


def test_without_a_wish_they_stand_on_a_line_around_the_origin() -> None:
    site = choose_site(3, 0, None, {})
    assert site.frame == ORIGIN
    assert site.spawns[:, 0].tolist() == [-4.0, 0.0, 4.0]
    assert not site.spawns[:, 1:3].any()
    assert len(site.obstacles) == 0


def test_a_home_is_the_simulators_origin() -> None:
    site = choose_site(1, 2, None, {"PX4_HOME_LAT": "60", "PX4_HOME_LON": "-20.5", "PX4_HOME_ALT": "12"})
    assert site.frame == (60.0, -20.5, 12.0)
    assert site.spawns[0, :3].tolist() == [0.0, 0.0, 0.0]


def test_a_world_gives_spawn_points_and_obstacles() -> None:
    world = load_world(world_path("village"))
    together = choose_site(4, 0, world, {})
    alone = [choose_site(1, k, world, {}) for k in (3,)]
    assert np.array_equal(together.spawns[3], alone[0].spawns[0])
    assert (np.diff(together.spawns[:, 0]) >= 0).all()
    assert np.array_equal(together.obstacles, world.obstacles)


def test_a_home_in_a_world_is_placed_in_its_frame() -> None:
    world = load_world(world_path("village"))
    latitude, longitude = to_global(ORIGIN, 30.0, -12.0)
    site = choose_site(1, 0, world, {"PX4_HOME_LAT": str(latitude), "PX4_HOME_LON": str(longitude)})
    assert site.frame == ORIGIN
    assert site.spawns[0, :2] == pytest.approx([-12.0, 30.0], abs=1e-3)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"PX4_HOME_LAT": "47"}, "only one of them"),
        ({"PX4_HOME_LAT": "north", "PX4_HOME_LON": "8"}, "PX4_HOME_LAT = 'north'"),
        ({"PX4_HOME_LAT": "91", "PX4_HOME_LON": "8"}, "-90 to 90"),
        ({"PX4_HOME_ALT": "nan"}, "PX4_HOME_ALT"),
    ],
)
def test_a_wrong_home_is_refused(environment: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        choose_site(1, 0, None, environment)


def test_more_vehicles_than_spawn_points_are_refused() -> None:
    world = load_world(world_path("village"))
    with pytest.raises(InputError, match="spawn points"):
        choose_site(len(world.spawns), 1, world, {})
