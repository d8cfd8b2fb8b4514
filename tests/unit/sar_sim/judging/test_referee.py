"""The referee against hand-made passes and against a slow, plain one that looks every millisecond."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_core.errors import RunError
from sar_core.geometry import box, cylinder, no_obstacles
from sar_sim.judging.referee import Event, EventKind, EventPhase, Referee, RefereeConfig, RefereeSummary

Floats = NDArray[np.float64]

HULL = 0.386
GEAR = 0.227
SQUARE = np.array([[-200.0, -200.0], [200.0, -200.0], [200.0, 200.0], [-200.0, 200.0]])
OPEN_SKY = RefereeConfig(hull_radius_m=HULL, gear_m=GEAR, fence=SQUARE, ceiling_m=120.0, obstacles=no_obstacles())


def with_obstacles(*rows: Floats) -> RefereeConfig:
    return replace(OPEN_SKY, obstacles=np.array(rows))


def watch(
    config: RefereeConfig, times: Floats, positions: Floats, ticks: int = 1, grounded: bool = False
) -> tuple[list[Event], RefereeSummary]:
    """Every announcement and the final score of a flight cut into `ticks` pieces that share their end samples."""
    referee = Referee(config, positions.shape[1])
    allowed = np.full(positions.shape[1], grounded)
    cuts = np.unique(np.linspace(0, len(times) - 1, ticks + 1).astype(int))
    told: list[Event] = []
    for lo, hi in pairwise(cuts):
        told += referee.observe(times[lo : hi + 1], positions[lo : hi + 1], allowed)
    told += referee.finish(float(times[-1]))
    return told, referee.summary()


def solo(*samples: tuple[float, float, float, float]) -> tuple[Floats, Floats]:
    """One drone's track from (t, x, y, z) corners."""
    rows = np.array(samples)
    return rows[:, 0], rows[:, None, 1:]


def duel(*profile: tuple[float, float]) -> tuple[Floats, Floats]:
    """Two drones whose distance is given at some times, linear in between: one stands, the other moves on a line."""
    times, distances = np.array(profile).T
    positions = np.zeros((len(times), 2, 3))
    positions[:, :, 2] = 30.0
    positions[:, 1, 0] = distances
    return times, positions


def count(summary: RefereeSummary) -> tuple[int, int]:
    return summary.collisions, summary.near_misses


class TestTwoDrones:
    @settings(max_examples=300)
    @given(
        miss=st.sampled_from([1.49, 1.51]),
        speed=st.floats(0.5, 40.0),
        heading=st.floats(0.0, 2 * math.pi),
        climb=st.floats(-1.5, 1.5),
        side=st.floats(0.0, 2 * math.pi),
        drift=st.tuples(st.floats(-15.0, 15.0), st.floats(-15.0, 15.0), st.floats(-1.0, 1.0)),
        period=st.floats(0.004, 0.5),
        phase=st.floats(0.0, 1.0),
    )
    def test_a_crossing_at_149_cm_collides_and_at_151_cm_does_not(
        self,
        miss: float,
        speed: float,
        heading: float,
        climb: float,
        side: float,
        drift: tuple[float, float, float],
        period: float,
        phase: float,
    ) -> None:
        along = np.array([math.cos(climb) * math.cos(heading), math.cos(climb) * math.sin(heading), math.sin(climb)])
        u = np.cross(along, [0.0, 0.0, 1.0] if abs(climb) < 1.0 else [1.0, 0.0, 0.0])
        u /= np.linalg.norm(u)
        across = math.cos(side) * u + math.sin(side) * np.cross(along, u)
        half = 6.0 / speed + period
        times = np.arange(-half - phase * period, half + period, period)
        first = np.array([0.0, 0.0, 60.0]) + times[:, None] * np.array(drift) * min(1.0, 10.0 / half)
        second = first + miss * across + (times * speed)[:, None] * along
        told, summary = watch(OPEN_SKY, times + 100.0, np.stack([first, second], axis=1), ticks=5)

        assert count(summary) == ((1, 0) if miss < 1.5 else (0, 1))
        assert summary.min_separation_m == pytest.approx(miss, abs=1e-9)
        (event,) = (e for e in told if e.phase is EventPhase.END)
        chord = 2 * math.sqrt((1.5 if miss < 1.5 else 3.0) ** 2 - miss**2) / speed
        assert event.min_distance_m == pytest.approx(miss, abs=1e-9)
        assert event.min_time_s == pytest.approx(100.0, abs=1e-6)
        assert event.duration_s == pytest.approx(chord, abs=1e-6)
        assert event.position == pytest.approx(tuple(np.array([0.0, 0.0, 60.0]) + 0.5 * miss * across), abs=1e-5)

    def test_a_fast_pass_between_two_samples_is_caught(self) -> None:
        times = np.array([0.0, 0.05])
        positions = np.array([[[-50.0, 0.0, 30.0], [50.0, 1.0, 30.0]], [[50.0, 0.0, 30.0], [-50.0, 1.0, 30.0]]])
        told, summary = watch(OPEN_SKY, times, positions)
        assert count(summary) == (1, 0)
        assert told[-1].min_distance_m == pytest.approx(1.0)
        assert told[-1].min_time_s == pytest.approx(0.025)
        assert told[-1].begin_s == pytest.approx(0.025 - math.sqrt(1.25) / 4000.0)
        assert told[-1].position == pytest.approx((0.0, 0.5, 30.0))

    def test_a_long_contact_is_one_event_although_it_trembles_across_the_threshold(self) -> None:
        profile = [(0.0, 10.0), (1.0, 1.2)]
        profile += [(1.0 + 0.25 * k, 1.9 if k % 2 else 1.2) for k in range(1, 81)]
        told, summary = watch(OPEN_SKY, *duel(*profile, (22.0, 10.0), (25.0, 10.0)), ticks=50)
        assert count(summary) == (1, 0)
        assert [(e.kind, e.phase, e.a, e.b) for e in told] == [
            (EventKind.DRONE_DRONE, EventPhase.BEGIN, 0, 1),
            (EventKind.DRONE_DRONE, EventPhase.END, 0, 1),
        ]
        assert told[-1].begin_s == pytest.approx(1.0 - 0.3 / 8.8)
        assert told[-1].end_s == pytest.approx(21.0 + 0.3 / 8.8)
        assert told[-1].min_distance_m == pytest.approx(1.2)

    @pytest.mark.parametrize(
        ("apart_m", "apart_s", "collisions"),
        [(1.99, 30.0, 1), (2.01, 0.9, 1), (2.01, 1.1, 2), (50.0, 0.9, 1), (50.0, 1.1, 2)],
    )
    def test_a_collision_rearms_after_two_metres_for_a_second(
        self, apart_m: float, apart_s: float, collisions: int
    ) -> None:
        jump = 1e-6
        profile = [(0.0, 1.0), (1.0, 1.0), (1.0 + jump, apart_m), (1.0 + jump + apart_s, apart_m)]
        profile += [(1.0 + 2 * jump + apart_s, 1.3), (2.0 + apart_s, 1.3)]
        for ticks in (1, 2, 5):
            told, summary = watch(OPEN_SKY, *duel(*profile), ticks=ticks)
            assert count(summary) == (collisions, 0)
            assert summary.events[0].min_distance_m == pytest.approx(1.0)
            assert Counter(e.phase for e in told) == {EventPhase.BEGIN: collisions, EventPhase.END: collisions}

    def test_clearance_must_be_held_in_one_piece(self) -> None:
        blips = [(1.0 + 0.8 * k + d, 1.9 if d == 0.4 else 2.5) for k in range(10) for d in (0.0, 0.4)]
        _, summary = watch(OPEN_SKY, *duel((0.0, 1.0), *blips, (9.5, 1.0), (10.0, 1.0)))
        assert count(summary) == (1, 0)

    @pytest.mark.parametrize(
        ("profile", "expected"),
        [
            ([(0, 9), (1, 2.5), (2, 9), (4, 9)], (0, 1)),
            ([(0, 9), (1, 2.5), (2, 3.4), (9, 3.4), (10, 2.5), (11, 9)], (0, 1)),
            ([(0, 9), (1, 2.5), (2, 3.6), (4, 3.6), (5, 2.5), (6, 9)], (0, 2)),
            ([(0, 9), (1, 2.5), (5, 2.5), (6, 1.2), (7, 2.5), (20, 2.5), (21, 9), (25, 9)], (1, 0)),
            ([(0, 9), (1, 1.2), (2, 9), (5, 9), (6, 2.5), (7, 9)], (1, 1)),
            ([(0, 9), (1, 1.2), (2, 2.5), (5, 2.5), (6, 1.2), (7, 9), (9, 9)], (2, 0)),
            ([(0, 9), (1, 1.5), (5, 1.5), (6, 9)], (0, 1)),
            ([(0, 9), (1, 3.0), (5, 3.0), (6, 9)], (0, 0)),
        ],
        ids=[
            "passing by",
            "not clear of 3.5 m in between",
            "clear of 3.5 m in between",
            "became a collision",
            "collision, then another encounter",
            "two collisions in one encounter",
            "exactly 1.5 m",
            "exactly 3 m",
        ],
    )
    def test_an_encounter_is_a_near_miss_or_a_collision(
        self, profile: list[tuple[float, float]], expected: tuple[int, int]
    ) -> None:
        track = duel(*profile)
        for ticks in (1, len(profile) - 1):
            told, summary = watch(OPEN_SKY, *track, ticks=ticks)
            assert count(summary) == expected
            assert [e.phase for e in told if e.kind is EventKind.NEAR_MISS] == [EventPhase.END] * expected[1]

    def test_many_contacts_beginning_in_one_tick_are_all_told(self) -> None:
        spread = np.linspace(0.0, 0.9, 9)
        start = np.column_stack([100.0 * np.cos(7 * spread), 100.0 * np.sin(7 * spread), 30.0 + 20.0 * spread])
        end = np.column_stack([spread, 0.0 * spread, 30.0 + 0.0 * spread])
        told, summary = watch(OPEN_SKY, np.array([0.0, 1.0]), np.stack([start, end]))
        assert {(e.a, e.b) for e in told if e.phase is EventPhase.BEGIN} == set(combinations(range(9), 2))
        assert summary.collisions == len(told) / 2 == 36


class TestObstacles:
    POLE = cylinder(0.0, 0.0, 10.0, 0.5, 20.0)

    @pytest.mark.parametrize(("clearance", "hits"), [(0.01, 0), (-0.01, 1), (-0.5, 1)])
    def test_a_hull_passing_a_pole(self, clearance: float, hits: int) -> None:
        side = 0.5 + HULL + clearance
        config = with_obstacles(cylinder(40.0, 40.0, 10.0, 1.0, 20.0), self.POLE)
        told, summary = watch(config, *solo((0.0, -30.0, side, 8.0), (3.0, 30.0, side, 8.0)))
        assert summary.collisions_by_kind == {"drone_drone": 0, "drone_obstacle": hits, "drone_ground": 0}
        assert summary.min_clearance_m == pytest.approx(clearance, abs=1e-6)
        if hits:
            assert [(e.a, e.b) for e in told] == [(0, 1), (0, 1)]
            chord = 2 * math.sqrt((0.5 + HULL) ** 2 - side**2) / 20.0
            assert told[-1].duration_s == pytest.approx(chord, abs=1e-6)
            assert told[-1].min_distance_m == pytest.approx(clearance, abs=1e-6)
            assert told[-1].min_time_s == pytest.approx(1.5, abs=1e-3)

    def test_a_thin_wall_between_two_samples_is_not_jumped_over(self) -> None:
        wall = box(0.0, 0.0, 5.0, 0.1, 30.0, 10.0, math.pi / 3)
        told, summary = watch(with_obstacles(wall), *solo((0.0, -40.0, 0.0, 5.0), (0.05, 40.0, 0.0, 5.0)))
        assert summary.collisions == 1
        assert told[-1].min_distance_m == pytest.approx(-0.05 - HULL, abs=1e-4)

    def test_over_the_roof_is_free(self) -> None:
        house = box(0.0, 0.0, 3.0, 10.0, 8.0, 6.0)
        _, summary = watch(with_obstacles(house), *solo((0.0, -40.0, 0.0, 6.5), (5.0, 40.0, 0.0, 6.5)))
        assert summary.collisions == 0
        assert summary.min_clearance_m == pytest.approx(0.5 - HULL)

    def test_each_obstacle_touched_is_its_own_contact_and_scraping_along_is_one(self) -> None:
        walls = with_obstacles(box(0.0, 1.0, 5.0, 40.0, 1.0, 10.0), box(0.0, -1.0, 5.0, 40.0, 1.0, 10.0))
        t = np.linspace(0.0, 20.0, 400)
        positions = np.column_stack([-30.0 + 3.0 * t, 0.2 * np.sin(9 * t), 5.0 + 0 * t])[:, None, :]
        _, summary = watch(walls, t, positions, ticks=40)
        assert sorted(e.b for e in summary.events) == [0, 1]

    @pytest.mark.parametrize(("away_m", "collisions"), [(0.49, 1), (0.51, 2)])
    def test_a_touch_rearms_half_a_metre_off(self, away_m: float, collisions: int) -> None:
        near, far = 0.5 + HULL - 0.1, 0.5 + HULL + away_m
        corners = [(0.0, far, 0.0, 5.0), (1.0, near, 0.0, 5.0), (2.0, far, 0.0, 5.0), (4.0, far, 0.0, 5.0)]
        track = solo(*corners, (5.0, near, 0.0, 5.0))
        assert watch(with_obstacles(self.POLE), *track)[1].collisions == collisions


class TestFence:
    def test_out_and_in_again(self) -> None:
        track = solo((0.0, 190.0, 0.0, 30.0), (2.0, 210.0, 0.0, 30.0), (3.0, 190.0, 0.0, 30.0), (9.0, 0.0, 0.0, 30.0))
        told, summary = watch(OPEN_SKY, *track, ticks=3)
        assert (summary.geofence_breaches, summary.collisions) == (1, 0)
        assert [e.phase for e in told] == [EventPhase.BEGIN, EventPhase.END]
        assert told[-1].begin_s == pytest.approx(1.0)
        assert told[-1].end_s == pytest.approx(2.5)
        assert told[-1].min_distance_m == pytest.approx(-10.0)
        assert told[-1].min_time_s == pytest.approx(2.0)
        assert (told[-1].a, told[-1].b) == (0, -1)

    def test_through_the_ceiling(self) -> None:
        track = solo((0.0, 0.0, 0.0, 115.0), (1.0, 0.0, 0.0, 121.0), (2.0, 0.0, 0.0, 110.0))
        told, summary = watch(OPEN_SKY, *track)
        assert summary.geofence_breaches == 1
        assert told[-1].min_distance_m == pytest.approx(-1.0)

    def test_an_inward_corner_cut_between_two_samples(self) -> None:
        notch = replace(
            OPEN_SKY, fence=np.array([[-50, -50], [50, -50], [50, 50], [0, 0], [-50, 50]], dtype=np.float64)
        )
        told, summary = watch(notch, *solo((0.0, -10.0, -0.3, 9.0), (1.0, 10.0, -0.3, 9.0)))
        assert summary.geofence_breaches == 0
        told, summary = watch(notch, *solo((0.0, -10.0, 0.3, 9.0), (1.0, 10.0, 0.3, 9.0)))
        assert summary.geofence_breaches == 1
        assert told[-1].duration_s == pytest.approx(0.03, abs=1e-4)
        assert told[-1].min_distance_m == pytest.approx(-0.3 / math.sqrt(2), abs=0.005)

    def test_inside_is_no_event_and_no_fence_is_no_limit(self) -> None:
        track = solo((0.0, 199.9, 0.0, 9.0), (1.0, -199.9, 0.0, 9.0))
        assert watch(OPEN_SKY, *track)[1].events == ()
        unfenced = replace(OPEN_SKY, fence=np.zeros((0, 2)), ceiling_m=math.inf)
        assert watch(unfenced, *solo((0.0, 0.0, 0.0, 9.0), (1.0, 9e3, 0.0, 9e3)))[1].events == ()


class TestGround:
    DIP = solo((0.0, 0.0, 0.0, 2.0), (1.0, 0.0, 0.0, 0.1), (2.0, 0.0, 0.0, 2.0), (4.0, 0.0, 0.0, 2.0))

    def test_touching_it_in_flight_is_a_collision(self) -> None:
        told, summary = watch(OPEN_SKY, *self.DIP)
        assert summary.collisions_by_kind["drone_ground"] == summary.collisions == 1
        assert told[-1].min_distance_m == pytest.approx(0.1 - GEAR)
        assert told[-1].begin_s == pytest.approx(1.0 - (GEAR - 0.1) / 1.9)

    def test_landing_is_not(self) -> None:
        assert watch(OPEN_SKY, *self.DIP, grounded=True)[1].collisions == 0

    def test_permission_ends_a_contact_and_its_loss_begins_one(self) -> None:
        down = np.array([[[0.0, 0.0, 0.1]], [[0.0, 0.0, 0.1]]])
        referee = Referee(OPEN_SKY, 1)
        (begin,) = referee.observe(np.array([0.0, 1.0]), down, np.array([False]))
        assert begin.phase is EventPhase.BEGIN
        (end,) = referee.observe(np.array([1.0, 2.5]), down, np.array([True]))
        assert (end.phase, end.begin_s, end.end_s) == (EventPhase.END, 0.0, 1.0)
        (again,) = referee.observe(np.array([2.5, 3.0]), down, np.array([False]))
        assert again.begin_s == 2.5
        assert referee.summary().collisions == 2


class TestScore:
    def test_one_drone_alone_has_no_separation(self) -> None:
        told, summary = watch(OPEN_SKY, *solo((0.0, 0.0, 0.0, 9.0), (1.0, 5.0, 0.0, 9.0)))
        assert told == []
        assert summary == RefereeSummary(
            collisions=0,
            collisions_by_kind={"drone_drone": 0, "drone_obstacle": 0, "drone_ground": 0},
            near_misses=0,
            geofence_breaches=0,
            min_separation_m=None,
            min_clearance_m=None,
            events=(),
        )

    def test_open_contacts_count_before_and_after_the_finish(self) -> None:
        referee = Referee(OPEN_SKY, 2)
        (begin,) = referee.observe(*duel((0.0, 5.0), (1.0, 1.0)), np.array([False, False]))
        assert begin.phase is EventPhase.BEGIN
        before = referee.summary()
        (end,) = referee.finish(1.25)
        after = referee.summary()
        assert count(before) == count(after) == (1, 0)
        assert (before.events[0].phase, after.events) == (EventPhase.BEGIN, (end,))
        assert (end.phase, end.end_s) == (EventPhase.END, 1.25)
        assert end.begin_s == pytest.approx(0.875)
        assert referee.finish(2.0) == []

    def test_a_contact_left_before_the_finish_ends_when_it_was_left(self) -> None:
        told, _ = watch(OPEN_SKY, *duel((0.0, 1.0), (1.0, 1.0), (1.5, 2.0)))
        assert told[-1].end_s == pytest.approx(1.25)

    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    def test_truth_that_is_no_number_is_refused_by_drone_and_time(self, bad: float) -> None:
        times, positions = duel((0.0, 9.0), (0.5, 9.0), (1.25, 9.0))
        positions[2, 1, 2] = bad
        with pytest.raises(RunError, match=r"drone 1 at 1\.250 s"):
            watch(OPEN_SKY, times, positions)

    def test_time_must_not_run_backwards(self) -> None:
        times, positions = duel((0.0, 9.0), (1.0, 9.0), (0.9, 9.0))
        with pytest.raises(RunError, match="ascending"):
            watch(OPEN_SKY, times, positions)
        referee = Referee(OPEN_SKY, 2)
        referee.observe(times[:2], positions[:2], np.array([False, False]))
        with pytest.raises(RunError, match="backwards"):
            referee.observe(times[2:], positions[2:], np.array([False, False]))


@dataclass
class Plain:
    """A contact as the plain referee writes it down."""

    kind: EventKind
    a: int
    b: int
    begin: float
    end: float
    least: float


def plain_debounce(times: Floats, distances: Floats, enter: float, release: float) -> list[tuple[float, float, float]]:
    """(begin, end, least) of each contact, one sample after the other."""
    contacts: list[tuple[float, float, float]] = []
    begin = end = least = clear_since = math.nan
    touching = False
    for t, d in zip(times.tolist(), distances.tolist(), strict=True):
        if touching:
            if d <= release:
                clear_since = math.nan
            elif math.isnan(clear_since):
                clear_since = t
            elif t - clear_since >= 1.0:
                contacts.append((begin, end, least))
                touching = False
        if d < enter:
            if not touching:
                touching, begin, least, clear_since = True, t, math.inf, math.nan
            end, least = t, min(least, d)
    return [*contacts, (begin, end, least)] if touching else contacts


def plain_obstacle(row: Floats, points: Floats) -> Floats:
    """Signed distance by the closest point of the body, for points[K, 3]."""
    local = points - row[1:4]
    if row[0] == 0.0:
        c, s = math.cos(-row[7]), math.sin(-row[7])
        local = np.column_stack([c * local[:, 0] - s * local[:, 1], s * local[:, 0] + c * local[:, 1], local[:, 2]])
        outward = np.abs(local) - row[4:7]
    else:
        outward = np.column_stack([np.hypot(local[:, 0], local[:, 1]) - row[4], np.abs(local[:, 2]) - row[6]])
    outside = np.linalg.norm(np.clip(outward, 0.0, None), axis=1)
    signed: Floats = np.where((outward <= 0.0).all(axis=1), outward.max(axis=1), outside)
    return signed


def plain_fence(fence: Floats, ceiling: float, points: Floats) -> Floats:
    """Signed clearance for points[K, 3]; inside is where the fence winds round the point."""
    turned = np.zeros(len(points))
    nearest = np.full(len(points), np.inf)
    for a, b in zip(fence, np.roll(fence, -1, axis=0), strict=True):
        va, vb = a - points[:, :2], b - points[:, :2]
        turned += np.arctan2(va[:, 0] * vb[:, 1] - va[:, 1] * vb[:, 0], (va * vb).sum(axis=1))
        s = np.clip(-(va @ (b - a)) / ((b - a) @ (b - a)), 0.0, 1.0)
        nearest = np.minimum(nearest, np.linalg.norm(va + s[:, None] * (b - a), axis=1))
    return np.minimum(np.where(np.abs(turned) > math.pi, nearest, -nearest), ceiling - points[:, 2])


def plain_referee(config: RefereeConfig, times: Floats, positions: Floats) -> tuple[list[Plain], float, float]:
    """Contacts, least separation and least clearance, from one look every millisecond."""
    dense = np.arange(times[0], times[-1], 1e-3)
    drones = [
        np.column_stack([np.interp(dense, times, positions[:, n, axis]) for axis in range(3)])
        for n in range(positions.shape[1])
    ]
    found: list[Plain] = []
    separation = clearance = math.inf
    for a, b in combinations(range(len(drones)), 2):
        d = np.linalg.norm(drones[a] - drones[b], axis=1)
        separation = min(separation, float(d.min()))
        found += [Plain(EventKind.DRONE_DRONE, a, b, *c) for c in plain_debounce(dense, d, 1.5, 2.0)]
        found += [Plain(EventKind.NEAR_MISS, a, b, *c) for c in plain_debounce(dense, d, 3.0, 3.5) if c[2] >= 1.5]
    for a, track in enumerate(drones):
        for b, row in enumerate(config.obstacles):
            d = plain_obstacle(row, track) - HULL
            clearance = min(clearance, float(d.min()))
            found += [Plain(EventKind.DRONE_OBSTACLE, a, b, *c) for c in plain_debounce(dense, d, 0.0, 0.5)]
        found += [Plain(EventKind.DRONE_GROUND, a, -1, *c) for c in plain_debounce(dense, track[:, 2] - GEAR, 0.0, 0.5)]
        d = plain_fence(config.fence, config.ceiling_m, track)
        found += [Plain(EventKind.GEOFENCE, a, -1, *c) for c in plain_debounce(dense, d, 0.0, 0.5)]
    return found, separation, clearance


def wandering(
    rng: np.random.Generator, times: Floats, number: int, half_m: tuple[float, float, float], height_m: float
) -> Floats:
    """Smooth random flights about (0, 0, height_m), positions[K, N, 3]."""
    positions = np.zeros((len(times), number, 3))
    for n in range(number):
        for axis in range(3):
            rates, phases = rng.uniform(0.1, 0.9, 5), rng.uniform(0.0, 2 * math.pi, 5)
            positions[:, n, axis] = half_m[axis] * np.sin(np.outer(times, rates) + phases).mean(axis=1) * 1.6
    positions[:, :, 2] += height_m
    return positions


def agree(config: RefereeConfig, times: Floats, positions: Floats, ticks: int) -> Counter[EventKind]:
    """Assert that referee and plain referee see the same; returns what they saw."""
    _, summary = watch(config, times, positions, ticks)
    plain, separation, clearance = plain_referee(config, times, positions)
    step = 1e-3 * float(np.max(np.linalg.norm(np.diff(positions, axis=0), axis=2) / np.diff(times)[:, None]))
    assert summary.min_separation_m == pytest.approx(separation, abs=2 * step)
    assert summary.min_clearance_m == pytest.approx(clearance, abs=step)
    ours = sorted(summary.events, key=lambda e: (e.kind, e.a, e.b, e.begin_s))
    theirs = sorted(plain, key=lambda p: (p.kind, p.a, p.b, p.begin))
    assert [(e.kind, e.a, e.b) for e in ours] == [(p.kind, p.a, p.b) for p in theirs]
    for e, p in zip(ours, theirs, strict=True):
        assert e.begin_s == pytest.approx(p.begin, abs=2e-3)
        assert e.end_s == pytest.approx(p.end, abs=2e-3)
        assert (
            p.least - 2 * step <= e.min_distance_m <= p.least + 1e-9 + (0.005 if e.kind is EventKind.GEOFENCE else 0.0)
        )
    return Counter(e.kind for e in ours)


TIGHT = RefereeConfig(
    hull_radius_m=HULL,
    gear_m=GEAR,
    fence=np.array([[-9.0, -8.0], [0.0, -5.0], [9.0, -8.0], [8.0, 9.0], [-8.0, 9.0]]),
    ceiling_m=9.0,
    obstacles=np.array([box(2.0, 1.0, 2.0, 2.0, 1.0, 4.0, 0.6), cylinder(-3.0, -1.0, 3.0, 0.4, 6.0)]),
)


class TestAgainstEveryMillisecond:
    def test_random_flights_in_a_tight_place(self) -> None:
        seen: Counter[EventKind] = Counter()
        for seed in range(12):
            rng = np.random.default_rng(seed)
            times = np.append(np.arange(0.0, 20.0, 0.004 if seed % 2 else 0.1), 20.0)
            positions = wandering(rng, times, 3, (12.0, 12.0, 6.0), 4.0)
            seen += agree(TIGHT, times, positions, ticks=400)
        assert min(seen[kind] for kind in EventKind) >= 10

    def test_random_flights_over_a_wide_place(self) -> None:
        rng = np.random.default_rng(77)
        rows = [box(*rng.uniform((-90, -90, 4, 2, 2, 8, -3), (90, 90, 4, 9, 9, 8, 3))) for _ in range(15)]
        rows += [cylinder(*rng.uniform((-90, -90, 5, 0.2, 10), (90, 90, 5, 0.4, 10))) for _ in range(15)]
        times = np.arange(0.0, 40.0, 0.02)
        for _ in range(2):
            positions = wandering(rng, times, 4, (90.0, 90.0, 4.0), 6.0)
            seen = agree(with_obstacles(*rows), times, positions, ticks=700)
            assert seen[EventKind.DRONE_OBSTACLE] > 0

    @given(seed=st.integers(0, 2**32 - 1), ticks=st.integers(2, 300))
    def test_how_a_flight_is_cut_into_ticks_changes_nothing(self, seed: int, ticks: int) -> None:
        times = np.arange(0.0, 12.0, 0.04)
        positions = wandering(np.random.default_rng(seed), times, 3, (12.0, 12.0, 6.0), 4.0)
        whole, cut = watch(TIGHT, times, positions)[1], watch(TIGHT, times, positions, ticks)[1]
        assert cut.events == whole.events
        assert cut.min_separation_m == whole.min_separation_m
        assert cut.min_clearance_m == pytest.approx(whole.min_clearance_m, abs=1e-8)

    @given(seed=st.integers(0, 2**32 - 1))
    def test_every_begin_has_its_end(self, seed: int) -> None:
        times = np.arange(0.0, 12.0, 0.04)
        positions = wandering(np.random.default_rng(seed), times, 3, (12.0, 12.0, 6.0), 4.0)
        told, summary = watch(TIGHT, times, positions, ticks=200)
        graver = [e for e in told if e.kind is not EventKind.NEAR_MISS]
        assume(graver)
        begins, ends = (
            sorted((e.kind, e.a, e.b, e.begin_s) for e in graver if e.phase is phase) for phase in EventPhase
        )
        assert begins == ends
        assert Counter(e.kind for e in told if e.phase is EventPhase.END) == Counter(e.kind for e in summary.events)
        for e in summary.events:
            assert e.begin_s <= e.min_time_s <= e.end_s


@pytest.mark.parametrize(("gap_m", "contacts"), [(1e-12, 1), (0.0, 1), (-1e-12, 1), (1e-3, 0)])
@pytest.mark.parametrize("body", [box(10.0, 0.0, 30.0, 2.0, 4.0, 10.0), cylinder(10.0, 0.0, 30.0, 1.0, 10.0)])
def test_a_hull_put_back_onto_the_surface_has_touched_it(body: Floats, gap_m: float, contacts: int) -> None:
    """The simulator lets nothing reach into an obstacle, so a contact has no depth but that of rounding."""
    there = 9.0 - HULL - gap_m
    _, summary = watch(
        with_obstacles(body), *solo((0.0, 0.0, 0.0, 30.0), (1.0, there, 0.0, 30.0), (2.0, 0.0, 0.0, 30.0))
    )
    assert summary.collisions_by_kind["drone_obstacle"] == contacts
