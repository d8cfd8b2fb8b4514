"""Conflicts foreseen: both sides see the same miss, pass compatibly, and nobody waits for ever."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_core.geometry import no_obstacles
from sar_swarm.piloting.conflict import LIMIT, PASSING_M, limits, passing_side, way_out
from sar_swarm.piloting.neighbours import SeparationLimits
from sar_swarm.piloting.safety import CLEAR, FRESH, PREDICTED, Memory, Situation, protect

Floats = NDArray[np.float64]

NO_FENCE = np.zeros((0, 2))
RADIUS, HORIZON = 5.5, 5.0
TICK = 0.05
plane = st.tuples(st.floats(-60, 60), st.floats(-60, 60))
paces = st.tuples(st.floats(-16, 16), st.floats(-16, 16))


def heard(*rows: tuple[Floats, Floats], stamp: float = 0.0, code: float = 0.0) -> Floats:
    """Row 0 is the drone itself."""
    others = np.full((len(rows) + 1, 9), np.nan)
    for k, (position, velocity) in enumerate(rows, start=1):
        others[k] = [*position, *velocity, stamp, code, 0.0]
    return others


def answer(pos: Floats, vel: Floats, wanted: tuple[float, float], others: Floats) -> tuple[float, ...]:
    told = protect(situation(pos, vel, wanted, others))
    return told.vx, told.vy, told.altitude_m, told.band


def situation(
    pos: Floats,
    vel: Floats,
    wanted: tuple[float, float],
    others: Floats,
    now: float = 0.0,
    index: int = 0,
    memory: Memory = FRESH,
) -> Situation:
    return Situation(pos, vel, wanted, 30.0, others, now, no_obstacles(), NO_FENCE, SeparationLimits(), index, memory)


def out_of(p: tuple[float, float], w: tuple[float, float]) -> tuple[float, float, float, float]:
    """The way out on the side the two would take."""
    return way_out(*p, *w, RADIUS, HORIZON, passing_side(*p, *w, RADIUS))


def least_gap(p: tuple[float, float], w: tuple[float, float]) -> float:
    times = np.linspace(0.0, HORIZON, 2001)
    return float(np.hypot(p[0] - w[0] * times, p[1] - w[1] * times).min())


@given(plane, paces)
def test_the_way_out_is_out_and_no_further(p: tuple[float, float], w: tuple[float, float]) -> None:
    """Beyond the way out the pass is clear for the horizon; a conflict has one, and a clear pass needs none."""
    assume(math.hypot(*p) > RADIUS + 0.1)
    nx, ny, change, _ = out_of(p, w)
    assert math.hypot(nx, ny) == pytest.approx(1.0, abs=1e-6)
    gap = least_gap(p, w)
    if gap < RADIUS - 0.1:
        assert change > 0.0
    if change > 0.0:
        assert gap < RADIUS + 0.05
        assert least_gap(p, (w[0] + 1.001 * change * nx, w[1] + 1.001 * change * ny)) > RADIUS - 0.05


@given(plane, paces)
def test_both_sides_find_the_same_way_out(p: tuple[float, float], w: tuple[float, float]) -> None:
    mine = out_of(p, w)
    theirs = out_of((-p[0], -p[1]), (-w[0], -w[1]))
    assume(math.hypot(*p) > 1e-3)
    assert mine[2:] == pytest.approx(theirs[2:], abs=1e-6)
    assert mine[:2] == pytest.approx((-theirs[0], -theirs[1]), abs=1e-6)


@pytest.mark.parametrize("aside", [-0.6 * PASSING_M, 0.0, 3.0], ids=["a little wrong", "dead ahead", "right already"])
def test_near_head_on_the_way_out_is_to_the_right(aside: float) -> None:
    """The other stands to the left by ``aside``: passing right keeps it on the left."""
    _, ny, change, _ = out_of((20.0, aside), (16.0, 0.0))
    assert change > 0.0 and ny < 0.0


def test_clearly_on_the_other_side_stays_there() -> None:
    _, ny, _, _ = out_of((20.0, -3.0), (16.0, 0.0))
    assert ny > 0.0


@pytest.mark.parametrize("closing", [2.6, 5.0, 8.0, 16.0])
def test_nobody_gets_out_of_the_radius_through_the_other(closing: float) -> None:
    """At 5 m and 16 m/s the nearest place outside the radius, a second from now, is behind the other drone."""
    nx, ny, change, side = out_of((5.0, 0.0), (closing, 0.5))
    assert (nx, ny, side) == (-1.0, 0.0, 0.0)
    assert change > closing


def test_two_that_turn_agree_on_the_side_by_what_both_know() -> None:
    """By its own present velocity and the other's of a tenth ago, each would see the miss on the other side."""
    place = (np.array([0.0, 0.0, 30.0]), np.array([12.0, 0.0, 30.0]))
    then = (np.array([4.0, 0.6, 0.0]), np.array([-4.0, 0.0, 0.0]))
    now = (np.array([4.0, 1.6, 0.0]), np.array([-4.0, 1.0, 0.0]))
    naive, agreed = [], []
    for i, j in ((0, 1), (1, 0)):
        others = np.full((2, 9), np.nan)
        others[j] = [*(place[j] - 0.1 * then[j]), *then[j], 0.9, 0.0, 0.0]
        past = FRESH.past.copy()
        for sides in (naive, agreed):
            lines = np.empty((2, LIMIT))
            assert limits(place[i], now[i], others, 1.0, SeparationLimits(), past, lines) == 1
            sides.append(lines[0, 9])
            past[3] = [0.9, *(place[i] - 0.1 * then[i])[:2], *then[i][:2]]
    assert naive[0] != naive[1]
    assert agreed[0] == agreed[1] != 0.0


def test_the_layer_remembers_its_own_flight_newest_first() -> None:
    memory = FRESH
    for tick in range(30):
        pos, vel = np.array([float(tick), 2.0, 30.0]), np.array([8.0, -1.0, 0.0])
        memory = protect(situation(pos, vel, (8.0, 0.0), heard(), 0.05 * tick, memory=memory)).memory
    assert memory.past[:2].tolist() == [[0.05 * 29, 29.0, 2.0, 8.0, -1.0], [0.05 * 28, 28.0, 2.0, 8.0, -1.0]]
    assert np.isnan(FRESH.past).all()


@pytest.mark.parametrize("heading", [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
def test_head_on_both_turn_right_more_than_four_seconds_ahead(heading: float) -> None:
    ahead = np.array([math.cos(heading), math.sin(heading), 0.0])
    right = np.array([math.sin(heading), -math.cos(heading)])
    here = np.array([0.0, 0.0, 30.0])
    others = heard((here + 70.0 * ahead, -8.0 * ahead))
    vx, vy, z, band = answer(here, 8.0 * ahead, (8.0 * ahead[0], 8.0 * ahead[1]), others)
    assert band == PREDICTED and z == 30.0
    others = heard((here + 60.0 * ahead, -8.0 * ahead))
    vx, vy, _, _ = answer(here, 8.0 * ahead, (8.0 * ahead[0], 8.0 * ahead[1]), others)
    assert np.array([vx, vy]) @ right > 0.2


@pytest.mark.parametrize(
    ("where", "motion"),
    [
        ((40.0, 0.0, 30.0), (8.0, 0.0, 0.0)),
        ((0.0, 10.0, 30.0), (8.0, 0.0, 0.0)),
        ((150.0, 0.0, 30.0), (-8.0, 0.0, 0.0)),
        ((40.0, 0.0, 37.0), (-8.0, 0.0, 0.0)),
    ],
    ids=["same way", "abeam", "beyond the horizon", "well above"],
)
def test_no_conflict_no_change(where: tuple[float, float, float], motion: tuple[float, float, float]) -> None:
    here = np.array([0.0, 0.0, 30.0])
    result = answer(here, np.array([8.0, 0.0, 0.0]), (8.0, 0.0), heard((np.array(where), np.array(motion))))
    assert result == (8.0, 0.0, 30.0, CLEAR)


def test_one_that_does_not_steer_is_given_all_the_room() -> None:
    """A drone in emergency descent makes no room, so we take the whole of it, not our share."""
    here, vel = np.array([0.0, 0.0, 30.0]), np.array([8.0, 0.0, 0.0])
    rows = (np.array([35.0, 0.0, 30.0]), np.array([-3.0, 0.0, 0.0]))
    steering = answer(here, vel, (8.0, 0.0), heard(rows))
    helpless = answer(here, vel, (8.0, 0.0), heard(rows, code=4.0))
    assert helpless[1] < steering[1] - 0.3 < -0.3


def fly(starts: list[Floats], goals: list[Floats], seconds: float) -> tuple[float, list[float]]:
    """Drones with a lag of half a second and the news of a tenth ago; least separation and arrival times."""
    n = len(starts)
    pos = [np.array([*s, 30.0]) for s in starts]
    vel = [np.zeros(3) for _ in starts]
    news: list[list[tuple[Floats, Floats, float]]] = []
    arrived = [math.inf] * n
    least = math.inf
    for tick in range(int(seconds / TICK)):
        now = tick * TICK
        news.append([(p.copy(), v.copy(), now) for p, v in zip(pos, vel, strict=True)])
        delivered = news[max(0, len(news) - 3)]
        for i in range(n):
            others = np.full((n, 9), np.nan)
            for j in range(n):
                if j != i:
                    p, v, stamp = delivered[j]
                    others[j] = [*p, *v, stamp, 0.0, 0.0]
            gap = goals[i] - pos[i][:2]
            left = float(np.hypot(*gap))
            pace = min(8.0, left)
            wanted = (float(gap[0]) / max(left, 1e-9) * pace, float(gap[1]) / max(left, 1e-9) * pace)
            told = protect(situation(pos[i], vel[i], wanted, others, now, i))
            vel[i][:2] += (np.array([told.vx, told.vy]) - vel[i][:2]) * TICK / 0.5
            if left < 3.0:
                arrived[i] = min(arrived[i], now)
        for i in range(n):
            pos[i] += vel[i] * TICK
            least = min([least, *(float(np.linalg.norm(pos[i] - pos[j])) for j in range(i))])
    return least, arrived


def test_a_perfectly_symmetric_crossroads_is_no_deadlock() -> None:
    starts = [60.0 * np.array([math.cos(k * math.pi / 2), math.sin(k * math.pi / 2)]) for k in range(4)]
    least, arrived = fly(starts, [-s for s in starts], 25.0)
    assert least > 3.0
    assert max(arrived) < 1.5 * 16.0


def test_one_that_stands_in_the_way_is_gone_round() -> None:
    """The hovering drone wants to stay; the other still reaches its goal behind it."""
    least, arrived = fly(
        [np.array([-40.0, 0.0]), np.array([0.0, 0.0])], [np.array([40.0, 0.0]), np.array([0.0, 0.0])], 25.0
    )
    assert least > 3.0
    assert arrived[0] < 1.5 * 11.0
