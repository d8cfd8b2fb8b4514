"""The radio channel held to the ray tracer's answers that are kept: what each of its parts gets right, and how far off
the whole is where bodies lie in the way. Sionna RT itself is not needed."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from sar_core.geometry import BOX
from sar_sim.world.materials import RADIO_MATERIALS
from tests.oracles.raytracer import (
    ANSWERS,
    BEFORE_DB,
    ONE_WALL,
    WORLDS,
    Answers,
    classes,
    compare,
    difference_db,
    our_table,
    read_answers,
)
from tests.oracles.raytracerscene import slab_of, world_named

Floats = NDArray[np.float64]

MOST_DB = {
    ("open_field", "line of sight"): 0.01,
    ("village", "line of sight"): 0.15,
    ("village", "blocked outdoors"): 2.8,
    ("village", "indoors"): 1.2,
    ("collapsed_block", "line of sight"): 0.2,
    ("collapsed_block", "blocked outdoors"): 6.7,
    ("collapsed_block", "indoors"): 3.5,
}
"""Mean absolute error allowed, dB: what is reached, rounded up."""


@cache
def both(name: str) -> tuple[Answers, Floats]:
    answers = read_answers(name)
    return answers, our_table(name, answers.links)


@pytest.mark.parametrize("name", WORLDS)
def test_line_of_sight_is_met_in_the_median(name: str) -> None:
    answers, ours = both(name)
    error = difference_db(ours, answers)[classes(answers)["line of sight"]]
    assert len(error) > 250 and abs(np.median(error)) < 0.1
    assert np.max(np.abs(error)) < (0.02 if name == "open_field" else 12.0)


@pytest.mark.parametrize(("name", "label"), MOST_DB)
def test_mean_error_stays_where_the_repairs_brought_it(name: str, label: str) -> None:
    answers, ours = both(name)
    error = difference_db(ours, answers)[classes(answers)[label]]
    assert len(error) > 100
    assert np.nanmean(np.abs(error)) < MOST_DB[name, label] <= max(BEFORE_DB[name, label], 0.01)


def test_a_walls_echo_follows_the_tilt() -> None:
    """One wall, elevations of 9 to 81 degrees: what echoes alike at every tilt is up to 17 dB too strong."""
    answers, ours = both(ONE_WALL)
    error = difference_db(ours, answers, "echo_db")
    assert error.size == 52 and np.max(np.abs(error)) < 0.15


@pytest.mark.parametrize("name", ["village", "collapsed_block"])
def test_what_goes_through_one_wall_is_its_slabs(name: str) -> None:
    """From within a house the straight way out is all that is left of most links; around nothing bends for them."""
    answers, ours = both(name)
    error = difference_db(ours, answers, "straight_db")[classes(answers)["indoors"]]
    assert np.mean(np.abs(error) < 0.05) > 0.5


def test_the_strongest_path_points_where_the_ray_tracer_says_in_sight() -> None:
    for name in WORLDS:
        answers, ours = both(name)
        sight = classes(answers)["line of sight"]
        assert np.mean(np.abs(ours[sight, -1] - answers.table[sight, -1]) < 0.5) > 0.99


def test_the_table_has_a_row_for_every_class() -> None:
    rows = [line.split("|") for line in compare().splitlines()[2:]]
    assert len(rows) == len(BEFORE_DB)
    for row, before in zip(rows, BEFORE_DB.values(), strict=True):
        assert row[5].startswith(f" {before:.2f} → ")


def test_answers_are_small() -> None:
    assert sorted(path.stem for path in ANSWERS.glob("*.npz")) == sorted([*WORLDS, ONE_WALL])
    assert all(path.stat().st_size < 400_000 for path in ANSWERS.glob("*"))


def test_a_scene_has_the_walls_of_the_table() -> None:
    table = {"brick": (3.9, 0.03), "concrete": (5.2, 0.09), "ground": (13.7, 0.15)}
    world = world_named("collapsed_block")
    seen = set()
    for row, material in zip(world.obstacles, world.materials, strict=True):
        eps, sigma, thickness = slab_of(row, material, table)
        seen.add(material)
        if material == "concrete_shell":
            assert (eps, sigma, thickness) == (5.2, 0.09, RADIO_MATERIALS[material].wall_m)
        if material == "rubble":
            assert row[0] == BOX and 1636.0 * sigma == pytest.approx(RADIO_MATERIALS[material].db_per_m)
    assert seen == {"concrete", "concrete_shell", "rubble", "metal"}
