"""Leaving the pattern for a hypothesis: who goes, where to, for how long, and that nobody dithers."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_swarm.piloting.pursuit import Hypothesis, Pursuit, PursuitConfig, PursuitMode, Stage, Station, decide

Floats = NDArray[np.float64]

CONFIG = PursuitConfig()
VICTIM = Hypothesis(7, 20.0, 10.0, 0.95, 3.0)
points = st.tuples(st.floats(-70, 70), st.floats(-70, 70))


def rows(places: Floats, time_s: float, me: int, speeds: Floats | None = None) -> Floats:
    """What drone ``me`` has heard of the drones at places [N, 2]: all of it, just now."""
    out = np.full((len(places), 9), np.nan)
    out[:, :2] = places
    out[:, 2] = 30.0
    out[:, 3:6] = 0.0
    if speeds is not None:
        out[:, 3] = speeds
    out[:, 6] = time_s
    out[:, 7:] = 0.0
    out[me] = np.nan
    return out


def verdicts(
    places: Floats, hypotheses: list[Hypothesis], config: PursuitConfig = CONFIG, time_s: float = 100.0
) -> list[Station | None]:
    """Every drone's first decision when all know the same."""
    stations = []
    for me in range(len(places)):
        at = np.array([*places[me], 30.0])
        stations.append(decide(Pursuit(), time_s, at, me, rows(places, time_s, me), hypotheses, config)[1])
    return stations


class Swarm:
    """Points at 8 m/s that fly to their stations, each with its own memory and its own noisy view of the others."""

    def __init__(self, places: Floats, config: PursuitConfig = CONFIG, noise_m: float = 0.0, seed: int = 0) -> None:
        self.at = np.array(places, dtype=np.float64)
        self.home = self.at.copy()
        self.config, self.noise = config, noise_m
        self.random = np.random.default_rng(seed)
        self.memory = [Pursuit() for _ in self.at]
        self.time = 0.0
        self.speed = np.zeros(len(self.at))
        self.log: list[list[Station | None]] = []
        self.mute: set[int] = set()
        self.frozen: set[int] = set()

    def tick(self, hypotheses: list[Hypothesis], dt: float = 0.1) -> None:
        self.time += dt
        before = self.at.copy()
        stations = []
        for me in range(len(self.at)):
            heard = before + self.random.normal(0.0, self.noise, before.shape)
            others = rows(heard, self.time, me, self.speed)
            others[list(self.mute - {me}), 6] = np.nan
            seen = [
                h._replace(x=h.x + e, y=h.y + f) for h in hypotheses for e, f in [self.random.normal(0, self.noise, 2)]
            ]
            at = np.array([*heard[me], 30.0])
            self.memory[me], station = decide(self.memory[me], self.time, at, me, others, seen, self.config)
            stations.append(station)
            goal = self.home[me] if station is None else np.array(station[:2])
            gap = goal - self.at[me]
            if me not in self.frozen:
                self.at[me] += gap * min(1.0, 8.0 * dt / max(np.hypot(*gap), 1e-9))
        self.speed = np.hypot(*(self.at - before).T) / dt
        self.log.append(stations)

    def fly(self, hypotheses: list[Hypothesis], seconds: float) -> None:
        for _ in range(round(seconds / 0.1)):
            self.tick(hypotheses)

    def away(self, me: int) -> list[bool]:
        return [stations[me] is not None for stations in self.log]


@given(st.lists(points, min_size=3, max_size=8, unique=True))
def test_the_three_nearest_take_three_places_120_degrees_apart(places: list[tuple[float, float]]) -> None:
    at = np.array(places)
    stations = verdicts(at, [VICTIM])
    gaps = [math.dist(p, (20.0, 10.0)) for p in places]
    chosen = [i for i, station in enumerate(stations) if station is not None]
    assert len(chosen) == 3
    assert max(gaps[i] for i in chosen) <= min((gaps[i] for i in range(len(at)) if i not in chosen), default=math.inf)
    spots = np.array([stations[i][:2] for i in chosen]) - (20.0, 10.0)
    assert np.hypot(*spots.T) == pytest.approx(12.0)
    bearings = np.sort(np.arctan2(spots[:, 1], spots[:, 0]))
    assert np.diff(bearings) == pytest.approx(2 * math.pi / 3)
    assert all(stations[i].stage is Stage.CONVERGENCE and stations[i].track == 7 for i in chosen)


@given(st.lists(points, min_size=3, max_size=3, unique=True))
def test_ways_to_the_constellation_do_not_cross(places: list[tuple[float, float]]) -> None:
    """The places are dealt out with the least way in all, and least ways never cross."""
    stations = verdicts(np.array(places), [VICTIM])
    spots = [station[:2] for station in stations if station is not None]
    total = sum(math.dist(a, b) for a, b in zip(places, spots, strict=True))
    for order in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        assert total <= sum(math.dist(places[k], spots[j]) for k, j in enumerate(order)) + 1e-9


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_drones_take_fewer_places(count: int) -> None:
    stations = verdicts(np.array([[0.0, 0.0], [5.0, 40.0]])[:count], [VICTIM])
    assert all(station is not None for station in stations)
    assert len({station[:2] for station in stations}) == count


def test_pursuit_sends_the_nearest_alone_to_look_from_the_side() -> None:
    places = np.array([[60.0, 10.0], [-60.0, 10.0], [20.0, 90.0]])
    stations = verdicts(places, [VICTIM._replace(confidence=0.8)])
    assert [station is not None for station in stations] == [True, False, False]
    assert stations[0].stage is Stage.PURSUIT
    look = np.array(stations[0][:2]) - (20.0, 10.0)
    assert np.hypot(*look) == pytest.approx(15.0)
    assert look @ (places[0] - (20.0, 10.0)) == pytest.approx(0.0, abs=1e-9)
    assert look[1] < 0.0, "the side where drone 2 is not"


@pytest.mark.parametrize("confidence", [0.0, 0.5, 0.749, math.nan])
def test_what_is_not_sure_enough_moves_nobody(confidence: float) -> None:
    assert (
        verdicts(np.array([[0.0, 0.0], [9.0, 9.0], [20.0, 10.0]]), [VICTIM._replace(confidence=confidence)])
        == [None] * 3
    )


def test_after_its_time_on_station_a_drone_resumes_and_stays_away_from_it() -> None:
    swarm = Swarm(np.array([[0.0, 0.0], [40.0, 0.0], [20.0, 50.0], [80.0, 80.0]]))
    swarm.fly([VICTIM], 60.0)
    for me in range(3):
        away = swarm.away(me)
        assert sum(a != b for a, b in pairwise(away)) == 1, "left once, came back once"
        assert 8.0 <= 0.1 * sum(away) <= 8.0 + 60.0 / 8.0
    assert not any(swarm.away(3)), "and nobody takes over what is settled"


def test_a_settled_hypothesis_counts_again_once_it_has_moved() -> None:
    swarm = Swarm(np.array([[0.0, 0.0]]))
    swarm.fly([VICTIM], 30.0)
    swarm.log.clear()
    swarm.fly([VICTIM._replace(x=34.0)], 5.0)
    assert not any(swarm.away(0))
    swarm.fly([VICTIM._replace(x=36.0)], 5.0)
    assert swarm.away(0)[-1]


def test_one_that_keeps_moving_is_left_alone_in_the_end() -> None:
    swarm = Swarm(np.array([[0.0, 0.0]]))
    for k in range(12):
        swarm.fly([VICTIM._replace(x=20.0 * (k % 2), y=20.0 * k)], 3.0)
    assert not swarm.away(0)[-1]


def test_a_pursued_hypothesis_that_grows_sure_is_converged_on() -> None:
    swarm = Swarm(np.array([[0.0, 0.0], [40.0, 0.0], [20.0, 50.0]]))
    swarm.fly([VICTIM._replace(confidence=0.8)], 20.0)
    assert sum(any(swarm.away(me)) for me in range(3)) == 1
    swarm.fly([VICTIM], 2.0)
    assert all(station.stage is Stage.CONVERGENCE for station in swarm.log[-1])


def test_patience_ends_what_cannot_be_reached() -> None:
    swarm = Swarm(np.array([[0.0, 0.0]]))
    swarm.frozen.add(0)
    swarm.fly([VICTIM], 40.0)
    assert 29.0 < 0.1 * sum(swarm.away(0)) < 31.0
    assert not swarm.away(0)[-1]


def test_who_could_not_be_there_in_time_does_not_set_out() -> None:
    stations = verdicts(np.array([[0.0, 0.0], [250.0, 10.0]]), [VICTIM])
    assert stations[0] is not None and stations[1] is None


def test_a_team_mate_that_does_not_come_is_replaced() -> None:
    swarm = Swarm(np.array([[0.0, 0.0], [50.0, 0.0], [20.0, 50.0], [75.0, 60.0]]))
    swarm.frozen.add(1)
    swarm.fly([VICTIM], 4.0)
    assert not any(swarm.away(3))
    swarm.fly([VICTIM], 3.0)
    assert swarm.away(3)[-1]


@pytest.mark.parametrize("spoil", ["stale", "failsafe", "nan", "silent"])
def test_only_drones_with_recent_news_and_no_failsafe_count(spoil: str) -> None:
    others = rows(np.array([[0.0, 0.0], [21.0, 11.0]]), 100.0, 0)
    column, value = {"stale": (6, 97.9), "failsafe": (7, 3.0), "nan": (0, math.nan), "silent": (6, math.nan)}[spoil]
    weak = VICTIM._replace(confidence=0.8)
    here = np.array([60.0, 10.0, 30.0])
    assert decide(Pursuit(), 100.0, here, 0, others, [weak], CONFIG)[1] is None
    others[1, column] = value
    assert decide(Pursuit(), 100.0, here, 0, others, [weak], CONFIG)[1] is not None


@pytest.mark.parametrize("broken", [{"x": math.nan}, {"y": math.inf}, {"std_m": math.nan}, {"confidence": math.inf}])
def test_hypotheses_that_are_not_finite_are_ignored(broken: dict[str, float]) -> None:
    assert verdicts(np.array([[0.0, 0.0]]), [VICTIM._replace(**broken)]) == [None]
    assert verdicts(np.array([[0.0, 0.0]]), [VICTIM._replace(**broken), VICTIM._replace(track=8)])[0].track == 8


def test_a_drone_that_does_not_know_where_it_is_decides_nothing() -> None:
    memory, station = decide(Pursuit(), 100.0, np.array([math.nan, 0.0, 30.0]), 0, np.zeros((0, 9)), [VICTIM], CONFIG)
    assert (memory, station) == (Pursuit(), None)
    assert decide(Pursuit(), math.nan, np.zeros(3), 0, np.zeros((0, 9)), [VICTIM], CONFIG)[1] is None


def test_stations_stay_inside_the_bounds_and_far_hypotheses_do_not_count() -> None:
    config = replace(CONFIG, bounds=(-50.0, -50.0, 50.0, 50.0))
    places = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    for station in verdicts(places, [VICTIM._replace(x=49.0, y=-49.0)], config):
        assert abs(station.x) <= 50.0 and abs(station.y) <= 50.0
    assert verdicts(places, [VICTIM._replace(x=63.0)], config) == [None] * 3


def test_two_hypotheses_share_the_swarm() -> None:
    places = np.array([[0.0, 0.0], [10.0, 0.0], [90.0, 0.0], [100.0, 0.0]])
    pair = [Hypothesis(1, 5.0, 20.0, 0.8, 3.0), Hypothesis(2, 95.0, 20.0, 0.85, 3.0)]
    tracks = [None if station is None else station.track for station in verdicts(places, pair)]
    assert sorted(t for t in tracks if t is not None) == [1, 2]
    assert tracks.index(1) < 2 <= tracks.index(2)


@given(st.integers(0, 10_000), st.lists(points, min_size=3, max_size=6, unique=True))
@settings(max_examples=25, deadline=None)
def test_noisy_and_unequal_knowledge_makes_nobody_dither(seed: int, places: list[tuple[float, float]]) -> None:
    """Everyone's view of everyone is off by a metre each tick: nobody leaves twice, nobody shares a place for long."""
    swarm = Swarm(np.array(places), noise_m=1.0, seed=seed)
    swarm.fly([VICTIM], 45.0)
    together = [[station for station in stations if station is not None] for stations in swarm.log]
    for me in range(len(places)):
        assert sum(a != b for a, b in pairwise([False, *swarm.away(me)])) in (0, 2)
    assert sum(any(swarm.away(me)) for me in range(len(places))) >= 3
    late = [spots for spots in together if len(spots) == 3][70:]
    bearings = [sorted(math.atan2(s.y - 10.0, s.x - 20.0) for s in spots) for spots in late]
    shared = sum(any(b - a <= math.radians(60) for a, b in pairwise(own)) for own in bearings)
    assert shared <= 40, "two who come from one place may aim at one slot, but part again"


def test_whoever_finds_his_place_held_takes_a_free_one() -> None:
    """A drone that does not know of the case hovers on the slot I was going to."""
    here = np.array([20.0, 60.0, 30.0])
    guest = np.array([[20.0, 60.0], [20.0, 22.0]])
    memory, station = decide(
        Pursuit(), 0.0, here, 0, rows(np.array([[20.0, 60.0], [220.0, 22.0]]), 0.0, 0), [VICTIM], CONFIG
    )
    assert station[:2] == pytest.approx((20.0, 22.0))
    for tick in range(1, 60):
        memory, station = decide(memory, 0.1 * tick, here, 0, rows(guest, 0.1 * tick, 0), [VICTIM], CONFIG)
    assert math.dist(station[:2], (20.0, 22.0)) > 12.0


def test_whoever_finds_all_places_held_goes_back_to_his_pattern() -> None:
    here = np.array([20.0, 40.0, 30.0])
    far = np.array([[0.0, 0.0], [220.0, 10.0], [220.0, 20.0], [20.0, 40.0]])
    angles = math.pi / 2 + np.arange(3) * 2 * math.pi / 3
    ring = np.stack([20.0 + 12.0 * np.cos(angles), 10.0 + 12.0 * np.sin(angles)], axis=1)
    memory, station = decide(Pursuit(), 0.0, here, 3, rows(far, 0.0, 3), [VICTIM], CONFIG)
    assert station is not None
    for tick in range(1, 60):
        others = rows(np.vstack([ring, here[:2]]), 0.1 * tick, 3)
        memory, station = decide(memory, 0.1 * tick, here, 3, others, [VICTIM], CONFIG)
    assert station is None


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_equally_near_drones_do_not_leave_it_to_each_other(seed: int) -> None:
    """Two at the same distance, views noisy: each may think the other nearer, but in the end somebody looks."""
    swarm = Swarm(np.array([[-20.0, 10.0], [60.0, 10.0]]), noise_m=1.0, seed=seed)
    swarm.fly([VICTIM._replace(confidence=0.8)], 30.0)
    assert sum(any(swarm.away(me)) for me in range(2)) >= 1


def test_triangulation_visits_three_bearings_one_after_another_alone() -> None:
    config = PursuitConfig(mode=PursuitMode.TRIANGULATE)
    swarm = Swarm(np.array([[0.0, -20.0], [70.0, 70.0]]), config)
    swarm.fly([VICTIM._replace(confidence=0.55)], 60.0)
    assert not any(swarm.away(1))
    visited = list(dict.fromkeys(station[:2] for stations in swarm.log if (station := stations[0])))
    assert len(visited) == 3
    bearings = np.array([math.atan2(y - 10.0, x - 20.0) for x, y in visited])
    assert bearings[0] == pytest.approx(math.atan2(-30.0, -20.0))
    assert np.exp(1j * np.diff(bearings)) == pytest.approx(np.exp(2j * math.pi / 3))
    away = swarm.away(0)
    assert sum(a != b for a, b in pairwise(away)) == 1 and not away[-1]
    assert 0.1 * sum(away) > 6.0


def test_memory_stays_bounded() -> None:
    memory = Pursuit()
    for track in range(300):
        h = Hypothesis(track, 0.0, 0.0, 0.95, 1.0)
        for k in range(3):
            at, now = np.array([0.0, 12.0, 30.0]), 100.0 * track + 10.0 * k
            memory, _ = decide(memory, now, at, 0, np.zeros((0, 9)), [h], CONFIG)
    assert len(memory.settled) <= 64
    assert len(memory.cases) <= 2
