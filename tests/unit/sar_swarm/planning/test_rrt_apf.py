"""The planner against referees that share no code with it: dense sampling, finite differences, a grid search."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from sar_core.geometry import box, no_obstacles
from sar_core.streams import stream
from sar_swarm.planning.dice import seed
from sar_swarm.planning.planmap import PlanMap, plan_map
from sar_swarm.planning.rrt_apf import Code, PlanningProblem, find_corners
from sar_swarm.planning.shortcut import cut_corners, length_of
from sar_swarm.planning.trajectory import MotionLimits, smooth
from sar_swarm.planning.trees import Search
from tests.unit.sar_swarm import plancheck
from tests.unit.sar_swarm.plancheck import BOUNDS, HEIGHT_M, SIDE_M

WORLDS = 1000


def _free_point(rows: plancheck.Floats, rng: np.random.Generator, clearance: float) -> plancheck.Floats | None:
    for _ in range(200):
        point = rng.uniform(BOUNDS[:3], BOUNDS[3:])
        if plancheck.distances(rows, point[None])[0] >= clearance:
            return point
    return None


@cache
def _world(index: int) -> tuple[PlanningProblem, MotionLimits]:
    """Random world number ``index``: clutter, forest, walls with windows, a closed room; a random vehicle."""
    rng = stream("planner test world", index)
    clearance = float(rng.uniform(0.8, 2.2))
    while True:
        kind = index % 10
        if kind == 9:
            goal = rng.uniform([12.0, 12.0, 8.0], [SIDE_M - 12.0, SIDE_M - 12.0, HEIGHT_M - 8.0])
            rows = plancheck.closed_room(rng, goal, clearance)
        else:
            rows = (
                plancheck.walls(rng, clearance)
                if kind >= 7
                else plancheck.trunks(rng)
                if kind >= 5
                else plancheck.clutter(rng)
            )
            goal = _free_point(rows, rng, clearance)
        start = _free_point(rows, rng, clearance)
        if start is not None and goal is not None and np.linalg.norm(goal - start) > 15.0:
            break
    limits = MotionLimits(
        rng.uniform(2.0, 10.0), math.radians(rng.uniform(15.0, 60.0)), rng.uniform(0.5, 4.0), rng.uniform(0.5, 3.0)
    )
    return PlanningProblem(start, goal, plan_map(rows, BOUNDS, 5.0), clearance), limits


def test_thousand_worlds_are_flown_clear_and_within_limits_or_rightly_refused() -> None:
    refused = wrong = proven = found = 0
    for index in range(WORLDS):
        problem, limits = _world(index)
        rows = problem.map.obstacles
        way = find_corners(problem, index)
        if way.code == Code.NO_PATH:
            assert len(way.points) == 0
            refused += 1
            verdict = plancheck.oracle(rows, problem.start, problem.goal, problem.clearance_m)
            wrong += verdict is True
            proven += verdict is False
            continue
        assert way.code == Code.FOUND
        found += 1
        points, speeds = smooth(way.points, problem.map, problem.clearance_m, limits)
        assert np.array_equal(points[0], problem.start) and np.array_equal(points[-1], problem.goal)
        assert np.all(points >= BOUNDS[:3]) and np.all(points <= BOUNDS[3:])
        assert np.linalg.norm(np.diff(points, axis=0), axis=1).max() <= 1.0 + 1e-9
        assert plancheck.least_clearance(rows, points) >= problem.clearance_m - 1e-6, f"world {index}"
        assert speeds[0] == speeds[-1] == 0.0 and speeds.max() <= limits.speed_mps
        acceleration, turn_rate, climb = plancheck.motion(points, speeds)
        assert acceleration <= limits.acceleration_mps2 * 1.01, f"world {index}"
        assert turn_rate <= limits.turn_rate_rps * 1.01, f"world {index}"
        assert climb <= limits.climb_mps * 1.001, f"world {index}"
    assert found >= 700 and refused >= 100
    assert proven >= 0.8 * refused, "too few refusals could be judged"
    assert wrong <= 0.01 * refused, f"{wrong} of {refused} refusals had a way"


ROOM = np.array([box(30.0, 30.0, 12.0, 10.0, 10.0, 10.0)])
START, GOAL = np.array([5.0, 30.0, 12.0]), np.array([55.0, 30.0, 12.0])


def _room() -> PlanMap:
    return plan_map(ROOM, BOUNDS, 6.0)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, Code.FOUND),
        ({"start": np.array([30.0, 30.0, 12.0])}, Code.START_BLOCKED),
        ({"start": np.array([22.5, 30.0, 12.0])}, Code.START_BLOCKED),
        ({"goal": np.array([30.0, 30.0, 19.9])}, Code.GOAL_BLOCKED),
        ({"start": np.array([-1.0, 30.0, 12.0])}, Code.START_OUTSIDE),
        ({"goal": np.array([55.0, 30.0, 24.1])}, Code.GOAL_OUTSIDE),
        ({"goal": np.array([55.0, 61.0, 12.0])}, Code.GOAL_OUTSIDE),
        ({"clearance_m": 0.0}, Code.BAD_INPUT),
        ({"clearance_m": -1.0}, Code.BAD_INPUT),
        ({"clearance_m": math.nan}, Code.BAD_INPUT),
        ({"clearance_m": 6.1}, Code.BAD_INPUT),
        ({"start": np.array([5.0, math.nan, 12.0])}, Code.BAD_INPUT),
        ({"goal": np.array([math.inf, 30.0, 12.0])}, Code.BAD_INPUT),
        ({"goal": np.array([55.0, 30.0])}, Code.BAD_INPUT),
        ({"search": Search(budget=0)}, Code.BAD_INPUT),
        ({"search": Search(step_m=math.nan)}, Code.BAD_INPUT),
    ],
)
def test_every_refusal_has_its_code(changes: dict[str, object], code: Code) -> None:
    result = find_corners(PlanningProblem(**({"start": START, "goal": GOAL, "map": _room()} | changes)), 1)
    assert result.code == code
    assert (len(result.points) > 0) == (code == Code.FOUND)


def test_a_free_line_is_flown_straight() -> None:
    result = find_corners(PlanningProblem(START, GOAL, plan_map(no_obstacles(), BOUNDS)), 1)
    assert result.code == Code.FOUND and result.iterations == 0
    assert length_of(result.points) == pytest.approx(50.0, abs=1e-9)


def test_same_key_same_bits_and_another_key_another_way() -> None:
    problem = PlanningProblem(START, GOAL, _room())
    first, again = find_corners(problem, 7), find_corners(problem, 7)
    assert first.points.tobytes() == again.points.tobytes()
    assert any(find_corners(problem, key).points.tobytes() != first.points.tobytes() for key in range(8, 12))


def _blocked_worlds(count: int, **search: float) -> list[tuple[int, PlanningProblem]]:
    """Keys and worlds of clutter and trees whose straight line is blocked and where that key finds a way."""
    chosen: list[tuple[int, PlanningProblem]] = []
    for index in (index for index in range(WORLDS) if index % 10 < 7):
        world, _ = _world(index)
        problem = PlanningProblem(world.start, world.goal, world.map, world.clearance_m, Search(**search))
        result = find_corners(problem, index)
        if result.code == Code.FOUND and result.iterations > 0:
            chosen.append((index, problem))
        if len(chosen) == count:
            break
    return chosen


def test_shortening_keeps_clear_and_never_lengthens() -> None:
    gained = 0.0
    for key, problem in _blocked_worlds(60, refine=0, shortcuts=-1):
        raw = find_corners(problem, key)
        short = cut_corners(problem.map, raw.points, problem.clearance_m, 40, seed(np.uint64(key)))[0]
        assert np.array_equal(short[[0, -1]], raw.points[[0, -1]])
        assert length_of(short) <= length_of(raw.points) + 1e-9
        assert plancheck.least_clearance(problem.map.obstacles, short) >= problem.clearance_m - 1e-6
        gained += 1.0 - length_of(short) / length_of(raw.points)
    assert gained / 60 > 0.05


def test_rewiring_makes_ways_shorter() -> None:
    """Trees alone, no shortening: with RRT*'s wiring the way is shorter on average."""
    wired, plain = [], []
    for key, problem in _blocked_worlds(80, refine=300, shortcuts=-1):
        without = PlanningProblem(
            problem.start, problem.goal, problem.map, problem.clearance_m, problem.search._replace(rewire_m=0.0)
        )
        straight = np.linalg.norm(problem.goal - problem.start)
        wired.append(length_of(find_corners(problem, key).points) / straight)
        plain.append(length_of(find_corners(without, key).points) / straight)
    assert np.mean(wired) < 0.99 * np.mean(plain)


def test_the_field_finds_a_way_in_fewer_iterations() -> None:
    """Points that would lie too near an obstacle are pushed off it instead of being thrown away."""

    def mean_iterations(strength: float) -> float:
        how = Search(refine=0, shortcuts=-1, around=0.0, strength=strength)
        return float(np.mean([find_corners(p._replace(search=how), key).iterations for key, p in worlds]))

    worlds = _blocked_worlds(300)
    assert mean_iterations(0.3) < 0.85 * mean_iterations(0.0)


def test_work_is_bounded_by_the_budget() -> None:
    problem, _ = _world(9)
    result = find_corners(
        PlanningProblem(problem.start, problem.goal, problem.map, problem.clearance_m, Search(budget=50)), 3
    )
    assert result.code == Code.NO_PATH and result.iterations == 50


def test_a_window_that_trees_miss_is_found_by_the_flood() -> None:
    """A window with 2 m to spare in a wall across everything: five rounds of trees miss it, the lattice does not."""
    rows = np.array(plancheck.wall(30.0, 41.0, 8.0, 4.0))
    plan = plan_map(rows, BOUNDS, 5.0)
    start, goal = np.array([2.0, 2.0, 2.0]), np.array([58.0, 58.0, 22.0])
    alone = find_corners(PlanningProblem(start, goal, plan, 1.0, Search(budget=5, lattice=0)), 1)
    both = find_corners(PlanningProblem(start, goal, plan, 1.0, Search(budget=5)), 1)
    assert alone.code == Code.NO_PATH and both.code == Code.FOUND
    assert plancheck.least_clearance(rows, both.points) >= 1.0 - 1e-6
