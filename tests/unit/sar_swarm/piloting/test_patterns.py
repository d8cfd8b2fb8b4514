"""Patterns by their definitions: names, random steps, pressures and forces against brute force, and what they cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import stats

from sar_core.errors import InputError
from sar_sim.judging.coverage import Coverage, CoverageConfig
from sar_swarm.piloting.patternlist import STANDARD, canonical, find, names
from sar_swarm.piloting.patterns import (
    Place,
    Walk,
    draw_step,
    field,
    fixed_route,
    headings,
    known_visits,
    next_waypoint,
    pressure,
    remember,
    samples,
    start_walk,
)

Floats = NDArray[np.float64]
Area = tuple[float, float, float, float]

FIELD: Area = (-200.0, -200.0, 200.0, 200.0)
NOBODY = np.full((4, 2), np.nan)
REACTIVE = [name for name in STANDARD if find(name).kind == "reactive"]

areas = st.builds(
    lambda x, y, w, h: (x, y, x + w, y + h),
    st.floats(-500, 500),
    st.floats(-500, 500),
    st.floats(20, 1000),
    st.floats(20, 1000),
)
visits = arrays(np.float64, st.tuples(st.integers(0, 30), st.just(2)), elements=st.floats(-250, 250))


def place_at(x: float, y: float, index: int = 0, peers: Floats = NOBODY, seed: int = 3, area: Area = FIELD) -> Place:
    return Place(index, 4, area, 28.0, (x, y), peers, (seed, 7))


def walk_with(places: Floats) -> Walk:
    walk = start_walk(4)
    walk.visited[: len(places)] = places
    return walk._replace(entered=len(places))


def test_every_name_and_alias_is_known_and_nothing_else() -> None:
    assert STANDARD[0] == "partitioned_lawnmower"
    assert names() == (*STANDARD, "policy")
    assert [canonical(name) for name in names()] == list(names())
    assert canonical(" Levy ") == "levy_flight"
    assert all(canonical(alias) == name for name in names() for alias in find(name).aliases)
    with pytest.raises(
        InputError, match=r"pattern 'zigzag' is not known; allowed: partitioned_lawnmower, bous.*policy"
    ):
        canonical("zigzag")
    with pytest.raises(InputError, match="pattern 'spiral' does not choose waypoints as it goes; those that do: phero"):
        next_waypoint("spiral", start_walk(4), place_at(0, 0))


@pytest.mark.parametrize("name", [*STANDARD, "policy"])
def test_a_pattern_has_a_fixed_route_or_decides_as_it_goes(name: str) -> None:
    route = fixed_route(name, FIELD, 4, 1, 28.0, 0.1)
    assert (route is not None) == (find(name).kind == "fixed")
    assert np.array_equal(
        fixed_route("boustrophedon_triangulation", FIELD, 4, 1, 28.0, 0.1),
        fixed_route("lawnmower", FIELD, 4, 1, 28.0, 0.1),
    )


@given(areas, st.integers(1, 12), st.floats(5, 60), st.sampled_from(REACTIVE), st.data())
@settings(max_examples=150)
def test_waypoints_stay_inside_and_the_drone_never_stops(
    area: Area, drones: int, swath: float, name: str, data: st.DataObject
) -> None:
    """From anywhere, even outside or unknown, with any peers: ten waypoints on, all inside, none a standstill."""
    index = data.draw(st.integers(0, drones - 1))
    peers = data.draw(arrays(np.float64, (drones, 2), elements=st.floats(-700, 1600) | st.just(math.nan)))
    at = data.draw(st.tuples(st.floats(-700, 1600), st.floats(-700, 1600)) | st.just((math.nan, 0.0)))
    walk, moved = start_walk(drones), 0.0
    for _ in range(10):
        walk = remember(walk, at, peers, swath)
        walk, goal = next_waypoint(name, walk, Place(index, drones, area, swath, at, peers, (1, 2)))
        assert area[0] <= goal[0] <= area[2] and area[1] <= goal[1] <= area[3]
        moved += math.dist(goal, at) if math.isfinite(at[0]) else 0.0
        at = goal
    assert moved > min(swath, area[2] - area[0], area[3] - area[1]) / 4


@pytest.mark.parametrize("name", REACTIVE)
def test_draws_depend_on_the_key_and_not_on_who_asked_before(name: str) -> None:
    def tour(seed: int, index: int, disturb: bool) -> list[tuple[float, float]]:
        walk, at, out = start_walk(4), (0.0, 0.0), []
        for _ in range(6):
            if disturb:
                next_waypoint(name, start_walk(4), place_at(9, 9, 3, seed=11))
            walk = remember(walk, at, NOBODY, 28.0)
            walk, at = next_waypoint(name, walk, place_at(*at, index, seed=seed))
            out.append(at)
        return out

    assert tour(3, 1, False) == tour(3, 1, True)
    assert tour(3, 1, False) != tour(3, 2, False)
    if name in ("levy_flight", "random_walk"):
        assert tour(3, 1, False) != tour(4, 1, False)


def test_levy_steps_follow_the_pareto_law_up_to_the_diagonal() -> None:
    place = place_at(0, 0)
    draws = np.array([draw_step("levy_flight", place, k) for k in range(4000)])
    diagonal = math.hypot(400, 400)
    assert draws[:, 1].max() == diagonal
    short = draws[draws[:, 1] < diagonal, 1]
    top = stats.pareto(1.5, scale=28.0).cdf(diagonal)
    law = stats.kstest(short, lambda x: stats.pareto(1.5, scale=28.0).cdf(x) / top)
    assert law.pvalue > 0.01
    assert stats.binomtest(int((draws[:, 1] == diagonal).sum()), 4000, 1.0 - top).pvalue > 0.01
    assert stats.kstest(draws[:, 0] / (2 * math.pi), "uniform").pvalue > 0.01
    assert abs(stats.spearmanr(draws[:, 0], draws[:, 1]).statistic) < 0.06


def test_random_walk_steps_are_one_swath_in_any_direction() -> None:
    draws = np.array([draw_step("random_walk", place_at(0, 0, 2), k) for k in range(3000)])
    assert np.all(draws[:, 1] == 28.0)
    assert stats.kstest(draws[:, 0] / (2 * math.pi), "uniform").pvalue > 0.01


@pytest.mark.parametrize("name", ["levy_flight", "random_walk"])
def test_a_reflected_step_keeps_its_length_and_its_angles(name: str) -> None:
    """Unfolding the reflections gives back the straight step that was drawn."""
    bounced = 0
    for seed in range(60):
        walk, at = start_walk(4), (180.0, -170.0)
        heading, length = draw_step(name, place_at(*at, seed=seed), 0)
        legs = []
        while not legs or walk.left_m > 0.0:
            walk, goal = next_waypoint(name, walk, place_at(*at, seed=seed))
            legs.append((goal[0] - at[0], goal[1] - at[1]))
            at = goal
        flown = np.array(legs)
        assert np.hypot(*flown.T).sum() == pytest.approx(length)
        assert np.abs(flown).sum(axis=0) == pytest.approx(length * np.abs([math.cos(heading), math.sin(heading)]))
        assert walk.step == 1
        bounced += len(legs) > 1
    assert bounced > 5


@pytest.mark.parametrize("axis", [0, 1])
def test_a_drone_that_stops_short_of_the_edge_is_sent_back_inwards(axis: int) -> None:
    """Vehicles count a waypoint as reached some metres before it; the rest of the step still leads away."""
    bounced = 0
    for seed in range(60):
        at = (185.0, 0.0) if axis == 0 else (0.0, 185.0)
        walk, goal = next_waypoint("random_walk", start_walk(4), place_at(*at, seed=seed))
        if walk.left_m > 6.0 and goal[axis] == 193.0:
            short = (191.0, goal[1]) if axis == 0 else (goal[0], 191.0)
            _, then = next_waypoint("random_walk", walk, place_at(*short, seed=seed))
            assert then[axis] < 191.0
            bounced += 1
    assert bounced > 5


def test_at_the_edge_a_step_outwards_turns_inwards() -> None:
    for seed in range(40):
        walk, goal = next_waypoint("random_walk", start_walk(4), place_at(193.0, 193.0, seed=seed))
        assert math.dist(goal, (193.0, 193.0)) == pytest.approx(28.0)
        assert walk.left_m == 0.0


@given(visits, st.floats(-190, 190), st.floats(-190, 190), st.integers(0, 11))
def test_pheromone_takes_the_least_visited_of_eight_headings(places: Floats, x: float, y: float, index: int) -> None:
    """Brute force over the eight candidates, where none of them touches the edge."""
    x, y = 0.8 * x, 0.8 * y
    _, goal = next_waypoint("pheromone", walk_with(places), place_at(x, y, index))
    angles = index * math.pi / 3 + np.arange(8) * math.pi / 4
    ring = np.stack([x + 28.0 * np.cos(angles), y + 28.0 * np.sin(angles)], axis=1)
    load = (1.0 / (1.0 + np.linalg.norm(ring[:, None] - places[None], axis=2))).sum(axis=1)
    mine = int(np.argmin(np.linalg.norm(ring - goal, axis=1)))
    assert np.linalg.norm(ring[mine] - goal) < 1e-6
    assert load[mine] <= load.min() + 1e-9


def test_pheromone_drones_set_out_in_different_directions() -> None:
    goals = [next_waypoint("pheromone", start_walk(4), place_at(0, 0, i))[1] for i in range(4)]
    bearings = [math.atan2(y, x) for x, y in goals]
    assert np.allclose(np.exp(1j * np.array(bearings)), np.exp(1j * np.arange(4) * math.pi / 3))


def test_pheromone_turns_away_from_where_others_were_heard() -> None:
    behind = np.stack([np.linspace(10, 150, 11), np.zeros(11)], axis=1)
    walk = start_walk(4)
    for place in behind:
        peers = NOBODY.copy()
        peers[2] = place
        walk = remember(walk, (math.nan, math.nan), peers, 20.0)
    assert len(known_visits(walk)) == 11
    _, goal = next_waypoint("pheromone", walk, place_at(0, 0))
    assert goal[0] < -19.0


def test_at_a_corner_only_real_steps_are_candidates() -> None:
    goals = headings(place_at(199.0, 199.0))
    assert 2 <= len(goals) < 8
    assert all(math.dist(goal, (193.0, 193.0)) >= 7.0 for goal in goals)


@given(visits, arrays(np.float64, (4, 2), elements=st.floats(-200, 200) | st.just(math.nan)), st.integers(0, 3))
def test_potential_field_has_the_defined_gains(places: Floats, peers: Floats, index: int) -> None:
    place = place_at(20.0, -35.0, index, peers)
    here = np.array([20.0, -35.0])
    force, goal = field(places, place)
    points = samples(place)
    gaps = np.linalg.norm(points[:, None] - (places if len(places) else here[None])[None], axis=2).min(axis=1)
    far = np.linalg.norm(points - goal, axis=1) < 1e-9
    assert gaps[far][0] == pytest.approx(gaps.max())
    want = 1.5 * (np.array(goal) - here) / np.linalg.norm(np.array(goal) - here)
    for gain, others in ((1.0, places), (2.0, peers[np.isfinite(peers).all(axis=1)])):
        away = here - others
        d = np.sqrt((away**2).sum(axis=1) + 1.0)
        want = want + (gain / d**2 * (away / d[:, None]).T).T.sum(axis=0)
    assert np.allclose(force, want)


@given(visits, st.integers(0, 3))
def test_potential_field_steps_one_swath_along_the_force(places: Floats, index: int) -> None:
    place = place_at(10.0, 5.0, index)
    force, _ = field(places, place)
    _, goal = next_waypoint("potential_field", walk_with(places), place)
    if math.hypot(*force) > 1e-6:
        unit = np.array(force) / math.hypot(*force)
        assert np.allclose(np.array(goal) - (10.0, 5.0), 28.0 * unit, atol=1e-6)


def test_potential_field_drones_look_at_different_points_in_every_tile() -> None:
    seen = [samples(place_at(0, 0, i)) for i in range(4)]
    for points in seen:
        tiles = np.floor((points + 200.0) / (400.0 / 6.0))
        assert len(np.unique(tiles, axis=0)) == 36
    for a in range(4):
        for b in range(a):
            assert np.linalg.norm(seen[a] - seen[b], axis=1).min() > 8.0


def test_memory_keeps_places_half_a_swath_apart_and_forgets_the_oldest() -> None:
    walk = start_walk(4, memory=5)
    for x in range(0, 2000):
        walk = remember(walk, (float(x), 0.0), NOBODY, 28.0)
    kept = np.sort(known_visits(walk)[:, 0])
    assert len(kept) == 20
    assert np.all(np.diff(kept) == 15.0)
    assert kept[-1] > 1980.0


def test_memory_ignores_what_is_not_finite_and_never_changes_in_place() -> None:
    before = start_walk(4)
    after = remember(before, (1.0, 2.0), NOBODY, 28.0)
    assert len(known_visits(before)) == 0
    assert known_visits(after).tolist() == [[1.0, 2.0]]
    peers = NOBODY.copy()
    peers[1] = (math.inf, 0.0)
    assert remember(after, (math.nan, 3.0), peers, 28.0) is after


def test_pressure_of_one_visit_is_one_over_one_plus_distance() -> None:
    assert pressure(np.array([[3.0, 4.0]]), 0.0, 0.0) == pytest.approx(1.0 / 6.0)


def swarm_of(name: str, drones: int, seed: int, duration_s: float = 240.0) -> tuple[Coverage, list[float]]:
    """Points at 8 m/s from a line-up south of the area, link perfect, no safety layer; each tick's least distance."""
    tick = 0.25
    at = np.array([[-3.0 * (drones - 1) + 6.0 * i, -210.0] for i in range(drones)])
    coverage = Coverage(CoverageConfig(FIELD), drones)
    routes = [fixed_route(name, FIELD, drones, i, 28.0, 0.1) for i in range(drones)]
    ways = [None if route is None else [tuple(p) for p in route] for route in routes]
    walks = [start_walk(drones) for _ in range(drones)]
    goals: list[tuple[float, float] | None] = [None] * drones
    least = []
    for k in range(int(duration_s / tick)):
        then = at.copy()
        for i in range(drones):
            peers = at.copy()
            peers[i] = np.nan
            walks[i] = remember(walks[i], (at[i, 0], at[i, 1]), peers, 28.0)
            left = 8.0 * tick
            while left > 0.0:
                if goals[i] is None and ways[i] is None:
                    place = Place(i, drones, FIELD, 28.0, (then[i, 0], then[i, 1]), peers, (seed, 0))
                    walks[i], goals[i] = next_waypoint(name, walks[i], place)
                elif goals[i] is None:
                    if not ways[i]:
                        break
                    goals[i] = ways[i].pop(0)
                gap = math.dist(goals[i], then[i])
                then[i] += (np.array(goals[i]) - then[i]) * min(left / max(gap, 1e-9), 1.0)
                if gap <= left:
                    goals[i] = None
                left -= max(gap, 1e-3)
        high = np.full((drones, 1), 30.0)
        coverage.observe(np.array([k, k + 1]) * tick, np.stack([np.hstack([at, high]), np.hstack([then, high])]))
        at = then
        gaps = np.linalg.norm(at[:, None] - at[None], axis=2)[np.triu_indices(drones, 1)]
        least.append(float(gaps.min()))
    return coverage, least


BANDS = {
    "partitioned_lawnmower": (0.95, 1.0),
    "boustrophedon": (0.25, 0.45),
    "spiral": (0.25, 0.45),
    "pheromone": (0.6, 0.95),
    "potential_field": (0.6, 0.95),
    "levy_flight": (0.45, 0.8),
    "random_walk": (0.2, 0.5),
}


@pytest.mark.parametrize("name", list(BANDS))
def test_what_four_points_cover_in_four_minutes(name: str) -> None:
    """Kinematics alone: the order one expects, the partition first, patterns that share a path at one drone's worth."""
    runs = [swarm_of(name, 4, seed) for seed in range(3 if name in ("levy_flight", "random_walk") else 1)]
    share = float(np.mean([coverage.coverage_at(240.0) for coverage, _ in runs]))
    print(f"{name}: {share:.3f} of the area in 240 s, least distance {min(min(least) for _, least in runs):.1f} m")
    low, high = BANDS[name]
    assert low <= share <= high


@pytest.mark.parametrize("name", ["partitioned_lawnmower", "boustrophedon", "spiral"])
def test_fixed_routes_flown_in_step_keep_four_drones_apart(name: str) -> None:
    _, least = swarm_of(name, 4, 0)
    assert min(least) > 3.0
