"""How encounters are drawn and counted; flown by real vehicles they are in tests/integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.errors import InputError
from sar_eval.studies.encounters import (
    ALLOWED,
    KINDS,
    SLOW_MPS,
    SPEED_MPS,
    TURN_APART_M,
    Course,
    Encounter,
    _passed,
    draw_courses,
    summarise,
)

seeds = st.integers(0, 10**6)


def at(course: Course, times_s: np.ndarray) -> np.ndarray:
    """Where a drone would be that flies its corners at its speed, [K, 2]."""
    legs = np.linalg.norm(np.diff(course.corners, axis=0), axis=1)
    along = np.concatenate([[0.0], legs.cumsum()])
    return np.stack([np.interp(course.speed_mps * times_s, along, course.corners[:, k]) for k in range(2)], axis=1)


def nearest_m(kind: str, seed: int) -> float:
    """The least distance of any two, if nobody gave way."""
    places = [at(course, np.linspace(0.0, 20.0, 4001)) for course in draw_courses(kind, seed)]
    return min(float(np.linalg.norm(a - b, axis=1).min()) for k, a in enumerate(places) for b in places[k + 1 :])


@given(st.sampled_from([kind for kind in KINDS if kind not in ("turning", "merging")]), seeds)
def test_unless_somebody_gives_way_they_all_but_touch(kind: str, seed: int) -> None:
    assert nearest_m(kind, seed) < 1.5


@given(seeds)
def test_two_that_turn_come_near_at_the_same_time_and_turn_towards_each_other(seed: int) -> None:
    first, second = draw_courses("turning", seed)
    low, high = TURN_APART_M
    assert low <= math.dist(first.corners[1], second.corners[1]) <= high
    for mine, other in ((first, second), (second, first)):
        leg, towards = mine.corners[2] - mine.corners[1], other.corners[1] - mine.corners[1]
        assert leg @ towards > 0.95 * np.linalg.norm(leg) * np.linalg.norm(towards)


@pytest.mark.parametrize(
    ("kind", "speeds"),
    [("head_on", [SPEED_MPS] * 2), ("overtaking", [SPEED_MPS, SLOW_MPS]), ("four_way", [SPEED_MPS] * 4)],
)
def test_each_kind_has_its_drones_and_speeds(kind: str, speeds: list[float]) -> None:
    assert [course.speed_mps for course in draw_courses(kind, 5)] == speeds


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_is_an_encounter(kind: str) -> None:
    first, again, other = ([c.corners.tolist() for c in draw_courses(kind, seed)] for seed in (3, 3, 4))
    assert first == again != other


def test_an_unknown_kind_is_refused_with_those_that_are() -> None:
    with pytest.raises(InputError, match=r"encounter 'sideways' is not known; allowed: head_on, crossing, "):
        draw_courses("sideways", 0)


def test_a_corner_abeam_is_passed_however_far_aside() -> None:
    """Another drone may stand on it."""
    start, end = np.array([0.0, 0.0]), np.array([50.0, 0.0])
    assert not _passed(start, end, np.array([46.9, 0.0, 30.0]))
    assert _passed(start, end, np.array([47.1, 40.0, 30.0]))


def met(collisions: int, separation_m: float, times_s: tuple[float, ...], kind: str = "head_on") -> Encounter:
    return Encounter(kind, 0, True, collisions, 2 * collisions, separation_m, times_s, (10.0, 20.0))


def test_a_row_counts_encounters_and_not_collisions() -> None:
    rows = summarise([met(0, 4.0, (10.0, 20.0)), met(3, 0.1, (16.0, 20.0)), met(0, 2.0, (15.0, 30.0), "crossing")])
    assert [(row.kind, row.flown, row.with_collision, row.near_misses) for row in rows] == [
        ("head_on", 2, 1, 6),
        ("crossing", 1, 0, 0),
    ]
    assert (rows[0].collided.value, rows[0].least_separation_m, rows[0].median_separation_m) == (0.5, 0.1, 2.05)
    assert (rows[0].in_time, rows[0].slowest, rows[1].in_time) == (1, 1.6, 1)


def test_who_never_arrives_is_never_in_time() -> None:
    assert met(0, 4.0, (10.0, math.inf)).slowest == math.inf
    assert not met(0, 4.0, (10.0, math.inf)).in_time
    assert met(0, 4.0, (ALLOWED * 10.0, 20.0)).in_time, "just in time is in time"
