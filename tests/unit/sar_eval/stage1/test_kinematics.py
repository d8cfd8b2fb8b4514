"""Stage 1's flights: no teleporting, the same every time, alone or in a batch, scored by the referee's own coverage."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from sar_core.sweep import sweep
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.stage1.kinematics import FIRST_DRAWS, KinematicTask, KinematicTrack, fly, task_of
from sar_sim.judging.coverage import Coverage, CoverageConfig
from sar_swarm.piloting.patternlist import STANDARD


def task(pattern: str, seed: int = 1, duration_s: float = 240.0) -> KinematicTask:
    episode = prepare(Scenario(episode_set="village-v1", pattern=pattern, duration_s=duration_s), seed, 3)
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
