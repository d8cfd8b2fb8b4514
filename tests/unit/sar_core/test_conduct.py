"""Terms of hand-made searches whose every figure one can work out: conduct by conduct, and what cannot be known."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_core.conduct import (
    DIVERGE,
    HOLDING,
    RETURNING,
    SPLIT,
    UNJUDGED,
    Conduct,
    FlightGround,
    Guarded,
    SearchFlight,
    conduct_of,
    count_entries,
    jerks,
    read_conduct,
    seconds,
)
from sar_core.geometry import box, distance_to, no_obstacles
from sar_core.indices import load_indices
from sar_core.tracks import beside, near_obstacles

Floats = NDArray[np.float64]

INDICES = load_indices(Path(__file__).resolve().parents[3] / "configs" / "indices")
SQUARE = np.array([[-100.0, -100.0], [100.0, -100.0], [100.0, 100.0], [-100.0, 100.0]])
FIELD = (-90.0, -90.0, 90.0, 90.0)


def ticks(length_s: float) -> Floats:
    """Ticks as flights have them: 52 and 48 ms in turn."""
    return np.asarray(-(-25 * np.arange(round(20 * length_s) + 1) // 2) * 0.004)


def search(position: Floats, times: Floats, **changes: object) -> SearchFlight:
    """A search along positions [K, N, 3], everything else calm unless said."""
    k, n = position.shape[:2]
    level = np.zeros((k, n, 4))
    level[..., 3] = 1.0
    around = FlightGround(FIELD, no_obstacles(), 0.3, SQUARE, position[0], None)
    calm = SearchFlight(
        times_s=times,
        position=position,
        velocity=np.gradient(position, times, axis=0),
        attitude=level,
        phase=np.full((k, n), 2),
        failsafe=np.zeros((k, n), np.int64),
        path_m=float(np.linalg.norm(np.diff(position[..., :2], axis=0), axis=2).sum()),
        recovered_m=0.0,
        around=around,
        guarded=None,
        believed=None,
        heard_s=None,
    )
    return dataclasses.replace(calm, **changes)  # type: ignore[arg-type]


def around(**changes: object) -> FlightGround:
    return dataclasses.replace(FlightGround(FIELD, no_obstacles(), 0.3, SQUARE, np.zeros((3, 3)), None), **changes)  # type: ignore[arg-type]


def straight(times: Floats, *drones: tuple[tuple[float, float, float], tuple[float, float, float]]) -> Floats:
    """Positions [K, N, 3] of drones given by start and velocity."""
    return np.stack([np.array(p) + times[:, None] * np.array(v) for p, v in drones], axis=1)


def at(flown: SearchFlight) -> Conduct:
    return conduct_of(flown, INDICES)


def test_a_circle_has_the_jerk_of_a_circle() -> None:
    """Speed v on radius r: jerk v^3 / r^2 all along, so mean and root mean square are both that."""
    times, v, r = ticks(20.0), 6.0, 20.0
    turn = v / r * times
    velocity = np.stack([-v * np.sin(turn), v * np.cos(turn), 0.0 * turn], axis=1)[:, None]
    position = np.stack([r * np.cos(turn), r * np.sin(turn), 30.0 + 0.0 * turn], axis=1)[:, None]
    comfort = at(search(position, times, velocity=velocity)).comfort
    assert comfort.jerk_mean_mps3 == pytest.approx(v**3 / r**2, rel=1e-3)
    assert comfort.jerk_rms_mps3 == pytest.approx(v**3 / r**2, rel=1e-3)
    assert at(search(position[:2], times[:2], velocity=velocity[:2])).comfort.jerk_mean_mps3 is None
    cubed = (times**2)[:, None, None] * np.array([1.5, 0.0, 0.0])
    assert jerks(times, cubed) == pytest.approx(np.full((len(times) - 2, 1), 3.0))


def test_exposure_is_the_share_of_seconds_near_something() -> None:
    """One passes a hovering one at 4 m with 5 m/s: both are exposed 2 * sqrt(5^2 - 4^2) / 5 s of 20."""
    times = ticks(20.0)
    comfort = at(search(straight(times, ((-50.0, 4.0, 30.0), (5.0, 0.0, 0.0)), ((0.0, 0.0, 30.0), (0, 0, 0))), times))
    assert comfort.comfort.exposed_s == pytest.approx(2 * 1.2, abs=0.15)
    assert comfort.comfort.airborne_s == pytest.approx(2 * times[-1])
    assert comfort.comfort.exposure == pytest.approx(2.4 / 40.0, abs=0.004)
    alone = search(straight(times, ((-50.0, 4.0, 30.0), (5.0, 0.0, 0.0))), times)
    assert at(alone).comfort.exposed_s == 0.0
    wall = around(obstacles=box(0.0, 0.0, 30.0, 4.0, 4.0, 60.0)[None])
    # The hull passes 4 - 2 - 0.3 = 1.7 m from the wall, and is nearer than 2 m while the centre is within 2.3 m.
    near_s = (4.0 + 2 * math.sqrt(2.3**2 - 2.0**2)) / 5.0
    assert at(dataclasses.replace(alone, around=wall)).comfort.exposed_s == pytest.approx(near_s, abs=0.1)
    assert at(dataclasses.replace(alone, around=None)).comfort.exposure is None


def test_drones_on_the_ground_do_not_count() -> None:
    times = ticks(10.0)
    parked = straight(times, ((0.0, 0.0, 0.2), (0, 0, 0)), ((1.0, 0.0, 0.2), (0, 0, 0)), ((2.0, 0.0, 30.0), (0, 0, 0)))
    found = at(search(parked, times))
    assert found.comfort.exposed_s == 0.0 and found.rules.separation_m2s == 0.0
    assert found.comfort.airborne_s == pytest.approx(times[-1])


def test_hard_flight_counts_once_until_it_was_calm_for_a_second() -> None:
    """Leaning over at 1 s, again 0.5 s later (the same), again 2 s later; and a jolt of 8 m/s^2 at 6 s."""
    times = ticks(10.0)
    k = len(times)
    attitude = np.zeros((k, 1, 4))
    attitude[..., 3] = 1.0
    tilted = np.array([math.sin(math.radians(20.0)), 0.0, 0.0, math.cos(math.radians(20.0))])
    for second in (1.0, 1.5, 3.6):
        attitude[(times >= second) & (times < second + 0.1), 0] = tilted
    velocity = np.zeros((k, 1, 3))
    velocity[times > 6.0, 0, 0] = 0.4
    hover = straight(times, ((0.0, 0.0, 30.0), (0, 0, 0)))
    flown = search(hover, times, attitude=attitude, velocity=velocity)
    assert at(flown).comfort.force_entries == 3
    assert at(dataclasses.replace(flown, velocity=0.5 * velocity)).comfort.force_entries == 2
    gentle = INDICES.quality.model_copy(update={"tilt_deg": 41.0})
    assert conduct_of(flown, dataclasses.replace(INDICES, quality=gentle)).comfort.force_entries == 1


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.floats(0.0, 1.0))
def test_entries_against_a_plain_walk(flags: list[bool], rearm: float) -> None:
    times, entries, last = 0.05 * np.arange(len(flags)), 0, -math.inf
    for when, on in zip(times.tolist(), flags, strict=True):
        if on:
            entries += when - last > rearm + 1e-9 if math.isfinite(last) else 1
            last = when
    assert count_entries(np.array(flags)[:, None], times, rearm) == entries


def test_interventions_bands_and_excess() -> None:
    """Asked in 8 of 10 ticks; changed by 3 in three of them, in two goes; split twice, once on to diverge."""
    times = ticks(0.45)
    wanted = np.full((10, 1, 2), (4.0, 0.0))
    wanted[8:] = math.nan
    commanded = wanted.copy()
    commanded[[1, 2, 5], 0, 1] = 3.0
    excess = np.full((10, 1), 0.0)
    excess[[2, 5], 0], excess[8:] = (2.0, 1.0), math.nan
    band = np.array([UNJUDGED, 1, SPLIT, SPLIT, 0, SPLIT, DIVERGE, DIVERGE, UNJUDGED, UNJUDGED])[:, None]
    hover = straight(times, ((0.0, 0.0, 30.0), (0, 0, 0)))
    told = at(search(hover, times, guarded=Guarded(wanted, commanded, excess, band))).interventions
    assert told is not None
    assert (told.asked_ticks, told.changed_ticks, told.changed_entries) == (8, 3, 2)
    assert told.change_mean_mps == pytest.approx(9.0 / 8.0)
    assert told.change_variance_m2ps2 == pytest.approx(27.0 / 8.0 - (9.0 / 8.0) ** 2)
    assert told.excess_largest_mps == 2.0 and told.excess_rms_mps == pytest.approx(math.sqrt(5.0 / 8.0))
    assert (told.split_entries, told.diverge_entries) == (2, 1)
    nothing = Guarded(*(np.full_like(a, math.nan) for a in (wanted, commanded, excess)), np.full_like(band, UNJUDGED))
    told = at(search(hover, times, guarded=nothing)).interventions
    assert told is not None and told.asked_ticks == 0
    assert told.change_mean_mps is told.excess_largest_mps is told.excess_rms_mps is None


def test_safety_distance_is_the_squared_lack_of_it() -> None:
    """Two hover 3 m apart for 10 s: each lacks 2 m of 5, so 2 * 4 * 10 m^2 s; a lone drone has no such term."""
    times = ticks(10.0)
    pair = straight(times, ((0.0, 0.0, 30.0), (0, 0, 0)), ((3.0, 0.0, 30.0), (0, 0, 0)))
    assert at(search(pair, times)).rules.separation_m2s == pytest.approx(8.0 * times[-1])
    assert at(search(pair[:, :1], times)).rules.separation_m2s is None


def test_lane_and_direction() -> None:
    """From 30 m off the lane on to it, 5 m beside it at an angle, then 20 m beside: none before it began."""
    times = ticks(40.0)
    lane = np.array([[-80.0, 0.0], [80.0, 0.0]])
    y = np.select([times < 10.0, times < 20.0, times < 30.0], [30.0 - 3.0 * times, 0.0, 5.0], 20.0)
    position = np.stack([-80.0 + 4.0 * times, y, np.full_like(times, 30.0)], axis=1)[:, None]
    velocity = np.zeros_like(position)
    velocity[..., 0] = 4.0
    velocity[(times >= 20.0) & (times < 30.0), 0, 1] = 4.0
    velocity[times >= 30.0] = 0.0
    flown = search(position, times, velocity=velocity, around=around(routes=(lane,)))
    rules = at(flown).rules
    assert rules.lane_m2s == pytest.approx(25.0 * 10.0 + 4.0 * 0.05, rel=0.02)
    assert rules.lane_far_s == pytest.approx(10.0, abs=0.1)
    assert rules.lane_s == pytest.approx(30.0 + 2.0 / 3.0, abs=0.1)
    assert rules.direction_s == pytest.approx(20.0 + 2.0 / 3.0, abs=0.1)
    assert rules.direction_valid == pytest.approx(10.7 / 20.7, abs=0.01)
    assert rules.direction_rad2 == pytest.approx((math.pi / 4) ** 2 * 10.0 / 20.67, rel=0.02)
    resting = np.where(times < 25.0, 2, 6)[:, None]
    assert at(dataclasses.replace(flown, phase=resting)).rules.lane_far_s == 0.0
    free = at(dataclasses.replace(flown, around=around(routes=None))).rules
    assert free.lane_m2s is free.lane_far_s is free.lane_s is free.direction_rad2 is free.direction_valid is None


@given(
    st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=1, max_size=6),
    st.tuples(st.floats(-9, 9), st.floats(-9, 9)),
)
def test_the_way_to_a_lane_against_many_points_on_it(
    route: list[tuple[float, float]], place: tuple[float, float]
) -> None:
    corners = np.array(route)
    points = [corners] + [a + np.linspace(0, 1, 400)[:, None] * (b - a) for a, b in itertools.pairwise(corners)]
    brute = min(float(np.linalg.norm(part - np.array(place), axis=1).min()) for part in points)
    found = beside(corners, np.array([place]))[0]
    assert found[0] == pytest.approx(brute, abs=0.1) and found[0] <= brute + 1e-9
    assert math.isnan(found[1]) or math.hypot(found[1], found[2]) == pytest.approx(1.0)


def test_the_stop_line_and_the_fence() -> None:
    """One stops in the margin and goes back, one flies out at 5 m/s and comes back, one is in the margin at the end."""
    times = ticks(30.0)
    stops = np.where(times < 15.0, np.minimum(80.0 + 2.0 * times, 97.0), 97.0 - 2.0 * (times - 15.0))
    leaves = np.where(times < 10.0, 80.0 + 5.0 * times, 130.0 - 5.0 * (times - 10.0))
    stays = np.minimum(70.0 + times, 97.0)
    position = np.stack(
        [np.stack([x, 0.0 * x + 10.0 * i, 0.0 * x + 30.0], axis=1) for i, x in enumerate((stops, leaves, stays))],
        axis=1,
    )
    velocity = np.gradient(position, times, axis=0)
    rules = at(search(position, times, velocity=velocity)).rules
    assert (rules.stop_visits, rules.stop_broken, rules.fence_crossings) == (2, 1, 1)
    bare = at(search(position, times, around=around(fence=np.zeros((0, 2))))).rules
    assert bare.stop_visits is bare.stop_broken is bare.fence_crossings is None


def test_a_drone_told_to_return_comes_nearer_and_one_on_hold_stands() -> None:
    """Told at 5 s, 30 m from home, one turns round, the other flies on. On hold one drifts, one stands."""
    times = ticks(20.0)
    back = np.where(times < 6.0, 20.0 + 6.0 * times, 56.0 - 6.0 * (times - 6.0))
    on = 20.0 + 6.0 * times
    position = np.stack([np.stack([x, 0.0 * x, 0.0 * x + 30.0], axis=1) for x in (back, on)], axis=1)
    told = np.where(times >= 5.0, RETURNING, 0)[:, None].repeat(2, axis=1)
    rules = at(search(position, times, failsafe=told)).rules
    assert (rules.return_broken, rules.hold_broken) == (1, 0)
    there = around(homes=position[int(np.searchsorted(times, 10.0))])
    assert at(search(position, times, failsafe=told, around=there)).rules.return_broken == 0
    hold = straight(times, ((0.0, 0.0, 30.0), (1.0, 0.0, 0.0)), ((0.0, 40.0, 30.0), (0.2, 0.0, 0.0)))
    assert at(search(hold, times, failsafe=np.full((len(times), 2), HOLDING))).rules.hold_broken == 1
    brief = np.where((times > 3.0) & (times < 7.0), HOLDING, 0)[:, None].repeat(2, axis=1)
    assert at(search(hold, times, failsafe=brief)).rules.hold_broken == 0


def test_empty_metres_are_those_flown_again_and_those_outside() -> None:
    """100 m in, 30 m beyond the area's edge, 12 m of all re-covered."""
    times = ticks(10.0)
    flown = search(straight(times, ((-10.0, 0.0, 30.0), (13.0, 0.0, 0.0))), times, recovered_m=12.0)
    rules = at(flown).rules
    assert rules.empty_m == pytest.approx(12.0 + 30.0, abs=0.7)
    assert rules.productive_m == pytest.approx(130.0 - 42.0, abs=0.7)


def test_assumptions_count_ticks_of_flying_drones() -> None:
    """Stale news in 3 ticks, none at all in one; lost by 2 m in 4; 3 m/s off what was asked in one."""
    times = ticks(1.0)
    k = len(times)
    pair = straight(times, ((0.0, 0.0, 30.0), (0, 0, 0)), ((9.0, 0.0, 30.0), (0, 0, 0)))
    believed, heard = pair.copy(), np.full((k, 2, 2), math.nan)
    heard[:, 0, 1] = heard[:, 1, 0] = times - 0.1
    heard[:3, 0, 1] -= 2.5
    heard[5, 1, 0] = math.nan
    believed[4:8, 1, 0] += 2.0
    commanded = np.zeros((k, 2, 2))
    commanded[4, 0], commanded[6, 1] = (3.0, 0.0), math.nan
    guarded = Guarded(commanded, commanded, np.zeros((k, 2)), np.zeros((k, 2), np.int64))
    told = at(search(pair, times, believed=believed, heard_s=heard, guarded=guarded)).assumptions
    assert told.neighbours_fresh is not None and told.estimate_near is not None and told.commands_tracked is not None
    assert (told.neighbours_fresh.violations, told.neighbours_fresh.steps) == (4, 2 * k)
    assert (told.estimate_near.violations, told.estimate_near.steps) == (4, 2 * k)
    assert (told.commands_tracked.violations, told.commands_tracked.steps) == (1, 2 * (k - 1) - 1)
    alone = at(search(pair[:, :1], times, heard_s=heard[:, :1, :1])).assumptions
    assert alone.neighbours_fresh is None and alone.commands_tracked is None


def test_a_record_gives_back_what_was_put_in() -> None:
    times = ticks(5.0)
    flown = search(straight(times, ((0.0, 0.0, 30.0), (4.0, 0.0, 0.0)), ((4.0, 0.0, 30.0), (4.0, 0.0, 0.0))), times)
    for one in (flown, dataclasses.replace(flown, around=None)):
        conduct = at(one)
        assert read_conduct(json.loads(json.dumps(conduct.plain()))) == conduct
    assert set(conduct.indices) == {"flight_rules.yaml", "quality.yaml", "safety.yaml"}


@given(st.integers(2, 50), st.integers(0, 1000))
def test_seconds_add_up_and_obstacles_are_found_wherever_one_flies(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.01, 0.1, count))
    assert seconds(times).sum() == pytest.approx(times[-1] - times[0])
    rows = np.stack([box(*rng.uniform(-9, 9, 3), *rng.uniform(1, 4, 3), rng.uniform(0, 3)) for _ in range(3)])
    track = np.cumsum(rng.normal(0.0, 1.5, (count, 3)), axis=0)
    brute = [min(distance_to(row, *place) for row in rows) < 2.0 for place in track]
    assert near_obstacles(rows, track, 2.0).tolist() == brute
