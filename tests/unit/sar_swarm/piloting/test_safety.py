"""The safety layer's bands, silent neighbours, map, fence, and that nonsense fails closed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_core.geometry import box, no_obstacles
from sar_swarm.piloting.conflict import LIMIT, choose, violation
from sar_swarm.piloting.geofence import HARD, SAFE, SOFT
from sar_swarm.piloting.neighbours import HEARD, SILENT, UNKNOWN, SeparationLimits, neighbour
from sar_swarm.piloting.safety import (
    CLEAR,
    DIVERGE,
    FIELD,
    FRESH,
    PREDICTED,
    SPLIT,
    Memory,
    Ruling,
    Situation,
    protect,
    repel,
)
from sar_swarm.planning.clearance import close_obstacles, way_blocked

Floats = NDArray[np.float64]

NO_FENCE = np.zeros((0, 2))
SQUARE = np.array([[-220.0, -220.0], [220.0, -220.0], [220.0, 220.0], [-220.0, 220.0]])
HERE = np.array([0.0, 0.0, 30.0])
STILL = np.zeros(3)
KEEP = SeparationLimits(ceiling_m=120.0)
vectors = st.tuples(st.floats(-6, 6), st.floats(-6, 6), st.floats(-6, 6)).map(np.array)


def row(position: Floats | tuple[float, float, float], velocity: Floats = STILL, stamp: float = 0.0) -> Floats:
    return np.array([*position, *velocity, stamp, 0.0, 0.0])


ALONE = Situation(HERE, STILL, (0.0, 0.0), 30.0, np.full((1, 9), np.nan), 0.0, no_obstacles(), NO_FENCE, KEEP, 0, FRESH)


def among(others: Floats, index: int = 0, wanted: tuple[float, float] = (0.0, 0.0), pos: Floats = HERE) -> Ruling:
    return protect(ALONE._replace(position=pos, wanted=wanted, others=others, row=index))


def with_one(where: tuple[float, float, float], index: int = 0) -> Floats:
    """Two drones; the other one (of row 1 - index) hovers at the place given."""
    others = np.full((2, 9), np.nan)
    others[1 - index] = row(where)
    return others


@pytest.mark.parametrize(
    ("distance", "band"), [(20.0, CLEAR), (4.9, FIELD), (2.6, FIELD), (2.4, SPLIT), (1.6, SPLIT), (1.4, DIVERGE)]
)
def test_bands_by_distance(distance: float, band: int) -> None:
    told = among(with_one((distance, 0.0, 30.0)))
    assert told.band == band
    assert told.vy == pytest.approx(0.0, abs=0.5)
    if band >= FIELD:
        assert told.vx < -0.05


def test_inside_the_collision_distance_the_drone_flees_at_full_speed() -> None:
    told = among(with_one((1.0, 0.0, 30.0)), wanted=(8.0, 0.0))
    assert (told.vx, told.vy) == (pytest.approx(-8.0), pytest.approx(0.0))


@pytest.mark.parametrize("height", [29.2, 30.0, 30.8])
def test_split_sends_one_up_and_one_down(height: float) -> None:
    """By who is higher, by the lower index when level; both come to the same answer."""
    low, high = (0, 1) if height > 30.5 else (1, 0)
    heights = {0: 30.0, 1: height}
    sent = {}
    for i in (0, 1):
        me = np.array([2.0 * i, 0.0, heights[i]])
        other = (2.0 * (1 - i), 0.0, heights[1 - i])
        sent[i] = among(with_one(other, i), i, pos=me).altitude_m - heights[i]
    assert sent[high] > 1.0 and sent[low] < -1.0


@given(st.floats(-math.pi, math.pi), st.floats(0.2, 2.0), st.floats(-1.4, 1.4), st.sampled_from([0, 1]))
def test_braking_never_flies_towards_the_other(bearing: float, flat: float, height: float, index: int) -> None:
    gap = np.array([flat * math.cos(bearing), flat * math.sin(bearing), height])
    others = with_one(tuple(HERE - gap), index)
    for heading in (0.0, 1.5, 3.0, 4.5):
        wanted = (8.0 * math.cos(heading), 8.0 * math.sin(heading))
        told = among(others, index, wanted)
        assert told.band >= SPLIT
        assert told.vx * gap[0] + told.vy * gap[1] > 0.0


@given(vectors, vectors)
def test_two_drones_push_each_other_equally(a: Floats, b: Floats) -> None:
    on_a = np.array(repel(a, row(b)[None, :], 0.0, KEEP)[:3])
    on_b = np.array(repel(b, row(a)[None, :], 0.0, KEEP)[:3])
    assert on_a == pytest.approx(-on_b, abs=1e-9)
    gap = a - b
    if 1e-3 < np.linalg.norm(gap) < 4.999:
        assert on_a @ gap > 0.0
    if np.linalg.norm(gap) > 5.0:
        assert not on_a.any()


def test_push_grows_as_they_come_nearer() -> None:
    pushes = [repel(np.array([d, 0.0, 0.0]), row((0, 0, 0))[None, :], 0.0, KEEP)[0] for d in (4.9, 4, 3, 2, 1)]
    assert pushes == sorted(pushes) and pushes[0] > 0.0


def test_news_is_carried_forward_then_stands_then_is_forgotten() -> None:
    """Heard at 5 s flying 6 m/s east: 1 s later 6 m on; gone silent it has braked (6 m at 3 m/s2) and stands there."""
    news = row((10.0, 0.0, 30.0), np.array([6.0, 0.0, 0.0]), 5.0)
    assert neighbour(news, 6.0, KEEP) == (HEARD, 16.0, 0.0, 30.0, 6.0, 0.0, 0.0)
    assert neighbour(news, 7.5, KEEP) == (SILENT, 16.0, 0.0, 30.0, 0.0, 0.0, 0.0)
    assert neighbour(news, 66.0, KEEP)[0] == SILENT
    assert neighbour(news, 67.5, KEEP)[0] == UNKNOWN


def test_a_silent_drone_is_given_a_berth_until_it_is_forgotten() -> None:
    """Flying towards where it was last heard, the drone goes round; a minute later straight on."""
    others = with_one((30.0, 0.0, 30.0))

    def least_distance(now: float) -> float:
        pos, vel, least = HERE.copy(), np.array([8.0, 0.0, 0.0]), math.inf
        for k in range(200):
            left = 60.0 - pos[0]
            wanted = (8.0, -pos[1]) if left > 0.0 else (0.0, 0.0)
            seen = ALONE._replace(position=pos, velocity=vel, wanted=wanted, others=others, time_s=now + 0.05 * k)
            told = protect(seen)
            vel[:2] += (np.array([told.vx, told.vy]) - vel[:2]) * 0.1
            pos += vel * 0.05
            least = min(least, math.hypot(pos[0] - 30.0, pos[1]))
        assert pos[0] > 45.0
        return least

    assert least_distance(10.0) > 4.5
    assert least_distance(70.0) < 0.5


def test_among_neighbours_a_way_free_of_the_map_is_preferred() -> None:
    """Head-on the best way out is to the right; with a wall there another one that also obeys the limit is taken."""
    limit = np.zeros((1, LIMIT))
    limit[0, :3], limit[0, 8] = (-0.6, -0.8, -3.0), 1.0
    wall = box(20.0, -7.0, 30.0, 60.0, 2.0, 60.0)[None, :]
    for obstacles, turns_right in ((no_obstacles(), True), (wall, False)):
        close = close_obstacles(HERE, 20.0, obstacles, 3.0)[0]
        vx, vy = choose(limit, 1, 8.0, 0.0, 8.0, close, 2.5)
        assert (vy < -1.0) == turns_right
        assert not way_blocked(close, 2.5 * vx, 2.5 * vy)
        assert violation(limit, 1, vx, vy) < 1e-5


def test_the_split_does_not_go_into_the_map() -> None:
    """Sent down with a roof 4 m below, the drone stays level instead."""
    roof = box(0.0, 0.0, 12.0, 100.0, 100.0, 28.0)[None, :]
    down = with_one((2.0, 0.0, 30.6))
    assert among(down).altitude_m == pytest.approx(27.0)
    assert protect(ALONE._replace(others=down, obstacles=roof)).altitude_m == 30.0


def test_the_fence_has_the_last_word() -> None:
    at = np.array([216.0, 0.0, 30.0])
    told = protect(ALONE._replace(position=at, wanted=(8.0, 0.0), altitude_m=140.0, fence=SQUARE))
    assert (told.vx, told.vy, told.altitude_m, told.band, told.fence) == (
        pytest.approx(0.0),
        pytest.approx(0.0),
        115.0,
        CLEAR,
        SOFT,
    )


def test_excess_is_what_the_velocity_still_lacks_of_the_limit() -> None:
    """Nobody near: none. Seen in time: the layer finds a way. Among drones closing in all round: too late."""
    assert protect(ALONE._replace(wanted=(8.0, 0.0))).limit_excess_mps == 0.0
    coming = np.full((2, 9), np.nan)
    coming[1] = row((50.0, 0.0, 30.0), np.array([-8.0, 0.0, 0.0]))
    seen = ALONE._replace(velocity=np.array([8.0, 0.0, 0.0]), wanted=(8.0, 0.0), others=coming)
    met = protect(seen)
    assert met.band == PREDICTED and (met.vx, met.vy) != (8.0, 0.0) and met.limit_excess_mps == 0.0
    ring = np.full((7, 9), np.nan)
    for k in range(6):
        out = np.array([math.cos(k * math.pi / 3), math.sin(k * math.pi / 3), 0.0])
        ring[k + 1] = row(HERE + 9.0 * out, -8.0 * out)
    trapped = protect(ALONE._replace(others=ring))
    assert 0.5 < trapped.limit_excess_mps < 16.0


numbers = st.floats(allow_nan=True, allow_infinity=True, width=64)
triples = st.tuples(numbers, numbers, numbers).map(np.array)


@given(triples, triples, st.tuples(numbers, numbers), numbers, numbers)
@example(HERE, np.array([math.nan, 0.0, 0.0]), (1.0, 0.0), 30.0, 0.0)
@example(HERE, STILL, (math.inf, 0.0), 30.0, 0.0)
@example(np.array([math.nan] * 3), STILL, (1.0, 0.0), math.nan, 0.0)
def test_nonsense_of_ones_own_fails_closed(
    pos: Floats, vel: Floats, wanted: tuple[float, float], altitude: float, now: float
) -> None:
    memory = Memory(1.0, 33.0, math.inf, FRESH.past)
    seen = ALONE._replace(position=pos, velocity=vel, wanted=wanted, altitude_m=altitude, time_s=now, memory=memory)
    told = protect(seen._replace(fence=SQUARE))
    assert math.hypot(told.vx, told.vy) <= KEEP.speed_mps + 1e-9
    assert math.isfinite(told.altitude_m)
    if not np.isfinite([*pos, *vel, *wanted, altitude, now]).all():
        assert told[:3] == (0.0, 0.0, 33.0)
        assert (told.band, told.fence) == (DIVERGE, HARD) and math.isnan(told.limit_excess_mps)


@given(st.lists(st.lists(numbers, min_size=9, max_size=9), min_size=3, max_size=3))
@example([[math.nan] * 6 + [0.0, 0.0, 0.0]] * 3)
@example([[math.inf, 0.0, 30.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]] * 3)
@example([[5.0, 0.0, 30.0, 0.0, 0.0, 0.0, math.inf, 0.0, 0.0]] * 3)
def test_nonsense_about_others_stays_with_them(rows: list[list[float]]) -> None:
    others = np.array(rows)
    told = protect(ALONE._replace(wanted=(5.0, 0.0), others=others, time_s=0.5, fence=SQUARE))
    assert math.hypot(told.vx, told.vy) <= KEEP.speed_mps + 1e-9
    assert math.isfinite(told.altitude_m) and math.isfinite(told.memory.altitude_m) and told.fence == SAFE
    for one in others:
        if not np.isfinite(one[:7]).all():
            assert neighbour(one, 0.5, KEEP)[0] == UNKNOWN
    if not (np.isfinite(others[:, :6]).all(axis=1) & np.isfinite(others[:, 6])).any():
        assert told[:3] == (5.0, 0.0, 30.0)
