"""Effective metres, reach and constellations: plain distance in the open, more behind a house, GDOP by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.stage1.kinematics import KinematicTrack, fly, task_of
from sar_eval.stage1.sight import (
    Scenery,
    SwarmPlaces,
    constellation,
    effective_m,
    looks_of,
    nearest_m,
    reach_m,
    scenery_of,
)
from sar_sim.radio.obstruction import BODY, loss_db
from sar_swarm.sensing.gdop import gdop

OPEN = Scenery(np.zeros((0, BODY)), 300.0)


@pytest.fixture(scope="module")
def episode() -> Episode:
    return prepare(Scenario(episode_set="village-v2", pattern="pheromone"), 1, 3)


def test_in_the_open_effective_metres_are_metres() -> None:
    places = np.array([[3.0, 4.0, 12.0], [0.0, 0.0, 30.0]])
    assert effective_m(OPEN.bodies, places, np.zeros(3)).tolist() == pytest.approx([13.0, 30.0])
    assert nearest_m(OPEN.bodies, places[None], np.zeros(3)).tolist() == pytest.approx([13.0])


def test_behind_a_house_they_are_more_by_its_loss(episode: Episode) -> None:
    """The church: beside it and behind it, equally far; the way through is longer by ten to the loss over twenty."""
    scenery = scenery_of(episode)
    church = max(episode.world.obstacles, key=lambda row: row[6])
    x, y = church[1:3]
    victim = np.array([x + 15.0, y, 1.0])
    drones = np.array([[x + 55.0, y, 30.0], [x - 25.0, y, 30.0]])
    beside, behind = effective_m(scenery.bodies, drones, victim)
    assert behind > 1.3 * beside
    for place, found in zip(drones, (beside, behind), strict=True):
        loss = loss_db(scenery.bodies, *victim, *place, -1)
        assert found == pytest.approx(math.dist(place, victim) * 10.0 ** (loss / 20.0))
    assert nearest_m(scenery.bodies, drones[None], victim)[0] == min(beside, behind)


def test_the_nearest_is_the_least_over_all_drones(episode: Episode) -> None:
    """Asking only drones that may still be nearer must not miss the one that is, be it the farthest in the open."""
    scenery = scenery_of(episode)
    rng = np.random.default_rng(5)
    places = np.concatenate([rng.uniform(-200.0, 200.0, (200, 4, 2)), np.full((200, 4, 1), 30.0)], axis=2)
    others = 0
    for victim in np.column_stack([rng.uniform(-150.0, 150.0, (5, 2)), np.full(5, 0.5)]):
        plain = np.linalg.norm(places - victim, axis=2)
        every = np.array([effective_m(scenery.bodies, row, victim) for row in places])
        assert np.array_equal(nearest_m(scenery.bodies, places, victim), every.min(axis=1))
        others += int(np.sum(plain.argmin(axis=1) != every.argmin(axis=1)))
    assert others > 20, "the nearest in the open is not always the one that hears best"


def test_looks_are_the_track_once_a_second(episode: Episode) -> None:
    track = fly(task_of(episode))
    looks = looks_of(track, 30.0)
    assert looks.places.shape == (240, 4, 3) and looks.search_s == 240.0
    assert np.array_equal(looks.places[:, :, :2], track.positions[:-1:4])
    assert (looks.places[..., 2] == 30.0).all()
    cut = looks_of(KinematicTrack(track.times_s[:10], track.positions[:10]), 30.0)
    assert (len(cut.places), cut.search_s) == (3, 2.25), "the last second has begun"


def test_the_reach_is_where_half_of_the_frames_arrive(episode: Episode) -> None:
    """Friis with the budget's own figures, told the other way round."""
    assert episode.radio is not None
    r = episode.radio
    far = reach_m(r)
    received_dbm = r.victim_dbm - 20.0 * math.log10(4.0 * math.pi * far * 2.437e9 / 299_792_458.0)
    assert received_dbm - r.noise_dbm == pytest.approx(r.detection_midpoint_db, abs=0.01)


def test_the_constellation_is_who_is_in_reach_then() -> None:
    """Two drones at right angles: sqrt(2). A third beyond reach does not count; later only one is left."""
    then = [[0.0, 100.0, 30.0], [100.0, 0.0, 30.0], [400.0, 0.0, 30.0]]
    later = [[0.0, 100.0, 30.0], [500.0, 0.0, 30.0], [400.0, 0.0, 30.0]]
    looks = SwarmPlaces(np.array([then, later]), 2.0)
    assert constellation(OPEN, looks, np.zeros(3), 0.7) == pytest.approx(math.sqrt(2.0))
    assert constellation(OPEN, looks, np.zeros(3), 1.0) is None
    assert constellation(OPEN, looks, np.zeros(3), 2.0) is None, "the end of the search is its last look"
    far = Scenery(OPEN.bodies, 1000.0)
    assert constellation(far, looks, np.zeros(3), 0.0) == gdop(np.array(then), np.zeros(2))
