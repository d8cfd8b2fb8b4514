"""Stage 1's flights: no teleporting, never through what stands in the way, the same every time, alone or in a batch,
scored by the referee's own coverage.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sar_core.geometry import box, nearest, segment_distance
from sar_core.sweep import sweep
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.stage1.kinematics import FIRST_DRAWS, KinematicTask, KinematicTrack, fly, task_of
from sar_eval.stage1.volumes import NOTHING, Volumes, make_volumes
from sar_sim.judging.coverage import Coverage, CoverageConfig
from sar_swarm.piloting import patternlist
from sar_swarm.piloting.patternlist import STANDARD, Pattern, register
from sar_swarm.piloting.patterns import Place, Walk
from tests.unit.sar_eval.stage1.madeworlds import ALTITUDE_M, CLEARANCE_M, bodies


def task(pattern: str, seed: int = 1, duration_s: float = 240.0) -> KinematicTask:
    episode = prepare(Scenario(episode_set="village-v2", pattern=pattern, duration_s=duration_s), seed, 3)
    return task_of(episode)


@pytest.fixture(scope="module", params=STANDARD)
def flown(request: pytest.FixtureRequest) -> tuple[KinematicTask, KinematicTrack]:
    mission = task(request.param)
    return mission, fly(mission)


def test_nobody_teleports(flown: tuple[KinematicTask, KinematicTrack]) -> None:
    """Speed, acceleration along and across, and rate of turn, all measured from the track alone."""
    mission, track = flown
    a = mission.agility
    legs = np.diff(track.positions, axis=0)
    speed = np.hypot(legs[..., 0], legs[..., 1]) / a.step_s
    assert speed.max() <= a.speed_mps + 1e-9
    assert np.abs(np.diff(speed, axis=0)).max() <= a.acceleration_mps2 * a.step_s + 1e-6
    course = np.arctan2(legs[..., 1], legs[..., 0])
    turned = np.abs((np.diff(course, axis=0) + math.pi) % (2.0 * math.pi) - math.pi)
    moving = (speed[1:] > 0.0) & (speed[:-1] > 0.0)
    assert turned[moving].max() <= a.turn_rate_rps * a.step_s + 1e-6
    assert (turned * speed[1:])[moving].max() <= a.acceleration_mps2 * a.step_s + 1e-6


def test_it_starts_at_the_spawn_points_and_ends_in_time(flown: tuple[KinematicTask, KinematicTrack]) -> None:
    mission, track = flown
    assert np.array_equal(track.positions[0], np.array(mission.starts))
    assert track.times_s[0] == 0.0
    assert track.times_s[-1] <= mission.duration_s
    assert track.path_m > 1000.0


def test_the_same_mission_flies_the_same_way(flown: tuple[KinematicTask, KinematicTrack]) -> None:
    mission, track = flown
    assert np.array_equal(fly(mission).positions, track.positions)


def test_coverage_of_a_track_is_what_the_analysis_finds_on_it(flown: tuple[KinematicTask, KinematicTrack]) -> None:
    """Two implementations, one definition: the referee's, and the one of Stage 1 and of bags."""
    mission, track = flown
    cover = Coverage(CoverageConfig(mission.area), mission.drones)
    cover.observe(track.times_s, np.concatenate([track.positions, np.zeros((*track.positions.shape[:2], 1))], axis=2))
    other = sweep(mission.area, track.times_s, track.positions)
    assert cover.scanned_cells == other.scanned_cells
    assert np.allclose(cover.first_scan_s, other.first_scan_s, atol=1e-6)


def test_seeds_matter_to_random_patterns_only() -> None:
    for pattern in STANDARD:
        same = np.array_equal(fly(task(pattern, 1)).positions, fly(task(pattern, 2)).positions)
        assert same == (pattern not in ("levy_flight", "random_walk")), pattern


def test_a_flight_that_needs_more_draws_gets_them() -> None:
    """Twice as long a walk uses more random steps than are drawn at first; its beginning stays the same."""
    long = dataclasses.replace(task("random_walk"), duration_s=900.0)
    track, short = fly(long), fly(task("random_walk"))
    assert len(track.times_s) == 3601
    assert np.array_equal(track.positions[: len(short.times_s)], short.positions)
    assert track.path_m > 28.0 * FIRST_DRAWS * long.drones


def test_lawnmower_sweeps_its_strips_as_the_full_chain_does() -> None:
    """Full chain in the village: 95 % after 208 s, 99.9 % at 240 s (docs/swarm.md)."""
    mission = task("partitioned_lawnmower")
    track = fly(mission)
    cover = sweep(mission.area, track.times_s, track.positions)
    assert cover.time_to(0.95) == pytest.approx(208.0, abs=10.0)
    assert cover.fraction > 0.97


EMPTY = {
    "partitioned_lawnmower": "3d2178b7cd71",
    "boustrophedon": "fb8a46354a3c",
    "spiral": "f3bd31b4a4e1",
    "pheromone": "67250c99b577",
    "potential_field": "49ea33997bb8",
    "levy_flight": "ee2b40456541",
    "random_walk": "aefc1fe4dc0d",
    "boustrophedon_triangulation": "fb8a46354a3c",
}
"""Hashes of tracks, to the millimetre, as they were flown before anything stood in the plane."""


@pytest.mark.parametrize("pattern", STANDARD)
def test_an_empty_plane_is_flown_as_ever(pattern: str) -> None:
    """Over open ground, and in the village so high that nothing reaches up there."""
    open_field = prepare(Scenario(episode_set="open_field-v2", pattern=pattern), 1, 3)
    track = fly(task_of(open_field))
    assert hashlib.sha256(np.round(track.positions, 3).tobytes()).hexdigest()[:12] == EMPTY[pattern]
    above = fly(task_of(prepare(Scenario(episode_set="village-v2", pattern=pattern, altitude_m=60.0), 1, 3)))
    assert np.array_equal(above.positions, track.positions)


def clear_of(obstacles: np.ndarray, track: KinematicTrack, altitude_m: float = ALTITUDE_M) -> float:
    """The least distance in space from any body to any leg of a track, straight between samples."""
    least = math.inf
    for own in track.positions.transpose(1, 0, 2):
        path = np.column_stack([own, np.full(len(own), altitude_m)])
        for a, b in itertools.pairwise(path):
            if nearest(obstacles, *a)[0] < 10.0:
                least = min(least, *(segment_distance(row, a, b)[0] for row in obstacles))
    return least


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 30), st.sampled_from(STANDARD))
def test_no_track_comes_nearer_to_a_body_than_the_clearance(seed: int, count: int, pattern: str) -> None:
    """Made-up worlds and every pattern, held to the bodies themselves; whoever flies on gets somewhere."""
    rng = np.random.default_rng(seed)
    obstacles = bodies(rng, count, 180.0)
    mission = dataclasses.replace(task(pattern, seed), volumes=made(obstacles))
    track = fly(mission)
    assert clear_of(obstacles, track) >= CLEARANCE_M - 1e-6
    assert track.path_m > 0.5 * fly(dataclasses.replace(mission, volumes=NOTHING)).path_m


def made(obstacles: np.ndarray) -> Volumes:
    return make_volumes(obstacles, ALTITUDE_M, CLEARANCE_M, (-214.0, -214.0, 214.0, 214.0))


@pytest.mark.parametrize("world", ["village", "forest", "collapsed_block"])
def test_no_track_comes_nearer_in_the_worlds_we_ship(world: str) -> None:
    through = []
    for pattern in ("partitioned_lawnmower", "pheromone", "random_walk"):
        episode = prepare(Scenario(episode_set=f"{world}-v2", pattern=pattern), 1, 3)
        mission, obstacles = task_of(episode), episode.world.obstacles
        assert clear_of(obstacles, fly(mission), episode.altitude_m) >= CLEARANCE_M - 1e-6, pattern
        through.append(clear_of(obstacles, fly(dataclasses.replace(mission, volumes=NOTHING)), episode.altitude_m))
    assert min(through) < 0.0, "without volumes they would be flown through"


def test_a_users_own_pattern_leads_round_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern asked in Python that wants to fly through a tower, and then into it."""
    obstacles = np.array([box(0.0, 0.0, 30.0, 20.0, 20.0, 60.0)])

    def decide(walk: Walk, place: Place) -> tuple[Walk, tuple[float, float]]:
        goals = ((-100.0, 5.0 * place.index), (100.0, 5.0 * place.index), (1.0, 1.0))
        return walk._replace(step=walk.step + 1), goals[walk.step % 3]

    monkeypatch.setattr(patternlist, "_PATTERNS", dict(patternlist._PATTERNS))
    register(Pattern("to_and_fro", "there, back and into it", decide=decide))
    track = fly(dataclasses.replace(task("to_and_fro"), volumes=made(obstacles)))
    assert clear_of(obstacles, track) >= CLEARANCE_M - 1e-6
    assert track.path_m > 5000.0


def test_a_lane_whose_end_lies_in_a_tower_is_flown_to_its_rim() -> None:
    """The first lane's northern end: without the tower it is reached within the acceptance, with it the rim is."""
    mission = task("partitioned_lawnmower")
    free = fly(mission)
    end = free.positions[np.argmax(free.positions[:, 0, 1]), 0]
    tower = np.array([box(*end, 30.0, 12.0, 12.0, 60.0)])
    track = fly(dataclasses.replace(mission, volumes=made(tower)))
    assert clear_of(tower, track) >= CLEARANCE_M - 1e-6
    near = np.hypot(*(track.positions[:, 0] - end).T).min()
    assert 10.0 <= near < 20.0


def test_a_goal_that_cannot_be_reached_is_given_up_and_the_search_goes_on() -> None:
    """Walls all round a part of the area: nobody gets in, everybody flies to the end of the search."""
    walls = np.array(
        [box(60, y, 30, 124, 4, 60) for y in (-60.0, 60.0)] + [box(x, 0, 30, 4, 124, 60) for x in (0.0, 120.0)]
    )
    for pattern in STANDARD:
        track = fly(dataclasses.replace(task(pattern), volumes=made(walls)))
        inside = (np.abs(track.positions[..., 0] - 60.0) < 60.0) & (np.abs(track.positions[..., 1]) < 60.0)
        assert not inside.any()
        assert track.path_m > 2000.0
        assert track.times_s[-1] > 150.0
