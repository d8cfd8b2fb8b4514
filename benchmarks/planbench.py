"""The planner's speed beside OMPL's RRTConnect: same maps, same problems, same run, CPU time of this process.

Every problem's straight line is blocked. In the timed region: on our side the whole Python call that returns the corner
points of the first way found (no refinement, no shortening), on OMPL's side ``solve`` alone; its spaces, problem and
planner are made before. Both sides ask the same exact check with the same sorted map, made before. OMPL 2 takes checks
only as Python callables, so it calls a compiled function bound to the map: once per edge (a motion validator), or once
per 0.5 m of edge (a state validity checker). The fastest variant whose ways hold is the peer, and how much of its time
passed in those callbacks is measured and told.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench import REPEATS, Figure
from sar_core.compiled import compiled
from sar_core.errors import MissingDependencyError
from sar_core.geometry import box, cylinder
from sar_core.streams import stream
from sar_eval.scenario.resources import world_path
from sar_sim.world.world import load_world
from sar_swarm.planning.planmap import PlanMap, clearance_at, edge_free, plan_map
from sar_swarm.planning.rrt_apf import Code, PlanningProblem, find_corners
from sar_swarm.planning.trajectory import MotionLimits, smooth
from sar_swarm.planning.trees import Search

Floats = NDArray[np.float64]
Check = Callable[[float, float, float, float, float, float], bool]

CLEARANCE_M = 3.0
TIME_LIMIT_S = 1.0
STATE_SPACING_M = 0.5
NEEDED = 0.99
TARGET = 4.0
PUBLISHED_US = 43.0
WARM = 2
"""Each side goes through a map twice in a row, so that neither is judged on the other's caches."""
FIRST = Search(refine=0, shortcuts=-1)


@dataclass(frozen=True)
class Course:
    """A map with problems [N, 2, 3] (start, goal) whose straight lines are blocked."""

    name: str
    plan: PlanMap
    problems: Floats

    @cached_property
    def check(self) -> Check:
        """The exact edge check with this map compiled in: the leanest thing Python can call."""
        floats, ints, cell_m, reach_m, nx, ny, nz, count = self.plan

        def free(ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> bool:
            plan = PlanMap(floats, ints, cell_m, reach_m, nx, ny, nz, count)
            return edge_free(plan, ax, ay, az, bx, by, bz, CLEARANCE_M)

        fast = compiled(free)
        fast(*self.problems[0].reshape(6))
        return fast


@dataclass(frozen=True)
class Tally:
    """What one side did with all problems: seconds [N], whether a way that holds came [N], checks asked for."""

    seconds: Floats
    found: NDArray[np.bool_]
    checks: int
    in_callback: float = 0.0

    @property
    def total_s(self) -> float:
        return float(self.seconds.sum())


def courses(per_map: int) -> list[Course]:
    """The collapsed block and the forest under a ceiling too low to fly over them, and floating clutter."""
    block, forest = load_world(world_path("collapsed_block")), load_world(world_path("forest"))
    rng = stream("planner bench clutter")
    clutter = [_body(rng, k) for k in range(120)]
    return [
        _course("collapsed block", block.obstacles, (-150.0, -150.0, 2.0, 150.0, 150.0, 25.0), per_map),
        _course("forest", forest.obstacles, (-200.0, -200.0, 2.0, 200.0, 200.0, 12.0), per_map),
        _course("clutter", np.array(clutter), (0.0, 0.0, 0.0, 120.0, 120.0, 60.0), per_map),
    ]


def _body(rng: np.random.Generator, k: int) -> Floats:
    """A box or a cylinder somewhere in 120 x 120 x 60 m."""
    x, y, z = rng.uniform([0.0, 0.0, 0.0], [120.0, 120.0, 60.0])
    if k % 2:
        sx, sy, sz = rng.uniform(2.0, 20.0, 3)
        return box(x, y, z, sx, sy, sz, rng.uniform(-3.0, 3.0))
    return cylinder(x, y, z, rng.uniform(0.5, 8.0), rng.uniform(4.0, 40.0))


def _course(name: str, obstacles: Floats, bounds: tuple[float, ...], count: int) -> Course:
    box_ = np.array(bounds)
    plan = plan_map(obstacles, box_)
    rng = stream(f"planner bench {name}")
    least = 0.4 * float(np.hypot(*(box_[3:5] - box_[:2])))
    problems: list[Floats] = []
    while len(problems) < count:
        ends = rng.uniform(box_[:3], box_[3:], (2, 3))
        near = [clearance_at(plan, *end) < CLEARANCE_M for end in ends]
        if any(near) or np.linalg.norm(ends[1] - ends[0]) < least:
            continue
        ax, ay, az, bx, by, bz = ends.reshape(6)
        if not edge_free(plan, ax, ay, az, bx, by, bz, CLEARANCE_M):
            problems.append(ends)
    return Course(name, plan, np.array(problems))


def solve_ours(course: Course, key: int, search: Search = FIRST) -> Tally:
    seconds, found, checks = np.empty(len(course.problems)), np.empty(len(course.problems), bool), 0
    for k, (start, goal) in enumerate(course.problems):
        problem = PlanningProblem(start, goal, course.plan, CLEARANCE_M, search)
        began = time.process_time_ns()
        result = find_corners(problem, key + k)
        seconds[k] = 1e-9 * (time.process_time_ns() - began)
        found[k] = result.code == Code.FOUND and _holds(course, result.points)
        checks += result.checks
    return Tally(seconds, found, checks)


def _holds(course: Course, points: Floats) -> bool:
    return all(course.check(*a, *b) for a, b in pairwise(points))


def load_ompl() -> tuple[Any, Any]:
    """OMPL's base and geometric modules, silenced and seeded."""
    try:
        base, geometric, util = (importlib.import_module(f"ompl.{name}") for name in ("base", "geometric", "util"))
    except ImportError:
        raise MissingDependencyError("ompl is not installed; get it with: pip install 'sar-eval[bench]'") from None
    util.setLogLevel(util.LogLevel.LOG_NONE)
    util.RNG.setSeed(1)
    return base, geometric


@dataclass(frozen=True)
class Variant:
    """One way to set OMPL up: edges checked whole or state by state; its own range or ours."""

    name: str
    whole_edges: bool
    range_m: float | None


VARIANTS = (
    Variant("edge callback", True, None),
    Variant("edge callback, our step", True, Search().step_m),
    Variant("state callback", False, None),
)


def solve_ompl(course: Course, variant: Variant, watch: bool = False) -> Tally:
    """All problems by RRTConnect; with ``watch`` the callbacks are timed and counted, which slows them down."""
    base, geometric = load_ompl()
    seconds, found = np.empty(len(course.problems)), np.empty(len(course.problems), bool)
    meter = _Meter()
    for k, (start, goal) in enumerate(course.problems):
        planner, problem, kept = _prepare(base, geometric, course, variant, meter if watch else None, start, goal)
        began = time.process_time_ns()
        planner.solve(TIME_LIMIT_S)
        seconds[k] = 1e-9 * (time.process_time_ns() - began)
        found[k] = problem.hasExactSolution() and _holds(course, _corners(problem.getSolutionPath()))
        del kept
    return Tally(seconds, found, meter.calls, meter.seconds)


@dataclass
class _Meter:
    """Counts and times callbacks."""

    calls: int = 0
    seconds: float = 0.0

    def around(self, call: Callable[..., bool]) -> Callable[..., bool]:
        def timed(*states: Any) -> bool:
            began = time.perf_counter()
            answer = call(*states)
            self.seconds += time.perf_counter() - began
            self.calls += 1
            return answer

        return timed


def _prepare(
    base: Any, geometric: Any, course: Course, variant: Variant, meter: _Meter | None, start: Floats, goal: Floats
) -> tuple[Any, Any, Any]:
    """A planner set up for one problem, the problem, and what must stay alive while it runs."""
    space = base.RealVectorStateSpace(3)
    limits = base.RealVectorBounds(3)
    for axis in range(3):
        limits.setLow(axis, float(course.plan.bounds[axis]))
        limits.setHigh(axis, float(course.plan.bounds[3 + axis]))
    space.setBounds(limits)
    info = base.SpaceInformation(space)
    check = course.check

    def edge(a: Any, b: Any) -> bool:
        return check(a[0], a[1], a[2], b[0], b[1], b[2])

    def state(a: Any) -> bool:
        x, y, z = a[0], a[1], a[2]
        return check(x, y, z, x, y, z)

    if meter is not None:
        edge, state = meter.around(edge), meter.around(state)
    kept: Any = None
    if variant.whole_edges:

        class Edges(base.MotionValidator):  # type: ignore[misc]
            def checkMotion(self, a: Any, b: Any) -> bool:  # noqa: N802
                return edge(a, b)

        kept = Edges(info)
        info.setStateValidityChecker(base.AllValidStateValidityChecker(info))
        info.setMotionValidator(kept)
    else:
        info.setStateValidityChecker(state)
        info.setStateValidityCheckingResolution(STATE_SPACING_M / space.getMaximumExtent())
    info.setup()
    ends = [space.allocState(), space.allocState()]
    for allocated, place in zip(ends, (start, goal), strict=True):
        for axis in range(3):
            allocated[axis] = float(place[axis])
    problem = base.ProblemDefinition(info)
    problem.setStartAndGoalStates(ends[0], ends[1])
    planner = geometric.RRTConnect(info)
    if variant.range_m is not None:
        planner.setRange(variant.range_m)
    planner.setProblemDefinition(problem)
    planner.setup()
    return planner, problem, (kept, ends, info, space)


def _corners(path: Any) -> Floats:
    states = path.getStates()
    return np.array([[s[0], s[1], s[2]] for s in states])


def figures(quick: bool, tell: Callable[[str], None]) -> list[Figure]:
    """First way found, ours beside OMPL's; then latencies of the planner's parts, which claim nothing about a peer."""
    load_ompl()
    tell("first way found beside OMPL's RRTConnect")
    maps = courses(70 if not quick else 10)
    for course in maps:
        solve_ours(course, 0)
    runs: dict[Variant | None, list[list[Tally]]] = {side: [[] for _ in maps] for side in (None, *VARIANTS)}
    for repeat in range(REPEATS):
        for n, course in enumerate(maps):
            runs[None][n] += [solve_ours(course, 1000 * repeat) for _ in range(WARM)]
            for variant in VARIANTS:
                runs[variant][n] += [solve_ompl(course, variant) for _ in range(WARM)]
    ours = [_least(tallies) for tallies in runs[None]]
    theirs = {variant: [_least(tallies) for tallies in runs[variant]] for variant in VARIANTS}
    holding = [v for v in VARIANTS if _success(theirs[v]) >= NEEDED] or list(VARIANTS)
    peer = min(holding, key=lambda v: sum(t.total_s for t in theirs[v]))
    return [
        *_comparison(maps, ours, theirs[peer], peer),
        *_others(ours, {variant: theirs[variant] for variant in VARIANTS if variant != peer}),
        *_checks(maps, ours, theirs[peer], peer),
        *latencies(maps[0], quick, tell),
    ]


def _least(tallies: list[Tally]) -> Tally:
    return min(tallies, key=lambda tally: tally.total_s)


def _success(tallies: list[Tally]) -> float:
    return float(np.mean(np.concatenate([tally.found for tally in tallies])))


def _comparison(maps: list[Course], ours: list[Tally], theirs: list[Tally], peer: Variant) -> list[Figure]:
    name = f"OMPL RRTConnect, {peer.name}"
    count = sum(len(course.problems) for course in maps)
    totals = sum(t.total_s for t in ours), sum(t.total_s for t in theirs)
    medians = tuple(float(np.median(np.concatenate([t.seconds for t in side]))) for side in (ours, theirs))
    found = []
    for label, a, b in (("mean", totals[0] / count, totals[1] / count), ("median", medians[0], medians[1])):
        found.append(Figure(f"first way, {count} problems, {label}", 1e6 * a, "µs", name, 1e6 * b, b / a, TARGET))
    for course, mine, peers in zip(maps, ours, theirs, strict=True):
        ratio = peers.total_s / mine.total_s
        each = 1e6 / len(course.problems)
        title = f"first way, {course.name}, mean"
        found.append(Figure(title, each * mine.total_s, "µs", name, each * peers.total_s, ratio))
    found.append(Figure("problems solved", 100.0 * _success(ours), "%", name, 100.0 * _success(theirs)))
    return found


def _others(ours: list[Tally], theirs: dict[Variant, list[Tally]]) -> list[Figure]:
    """The same beside the slower ways to set OMPL up, for completeness."""
    count = sum(len(tally.seconds) for tally in ours)
    mine = sum(tally.total_s for tally in ours) / count
    found = []
    for variant, tallies in theirs.items():
        other = sum(tally.total_s for tally in tallies) / count
        name = f"OMPL RRTConnect, {variant.name}"
        found.append(Figure("first way, mean, slower peer", 1e6 * mine, "µs", name, 1e6 * other, other / mine))
    return found


def _checks(maps: list[Course], ours: list[Tally], theirs: list[Tally], peer: Variant) -> list[Figure]:
    """What the peer's time is made of: its callbacks, timed in a run of their own, and how often each side asks.

    The last figure is what is left of the peer without Python: its time less the callbacks' share, and for every
    check the cost of the same check called from compiled code.
    """
    watched = [solve_ompl(course, peer, watch=True) for course in maps]
    share = sum(t.in_callback for t in watched) / sum(t.total_s for t in watched)
    count = sum(len(course.problems) for course in maps)
    calls = sum(t.checks for t in watched)
    native_s = calls * float(np.mean([_check_cost(course) for course in maps]))
    theirs_s = (1.0 - share) * sum(t.total_s for t in theirs) + native_s
    ours_s = sum(t.total_s for t in ours)
    name = f"OMPL RRTConnect, {peer.name}"
    return [
        Figure("checks per first way", sum(t.checks for t in ours) / count, "checks", name, calls / count),
        Figure("share of the peer's time in Python callbacks", 100.0 * share, "%"),
        Figure(
            "first way, mean, if the peer's checks were compiled (estimate)",
            1e6 * ours_s / count,
            "µs",
            name,
            1e6 * theirs_s / count,
            theirs_s / ours_s,
        ),
    ]


def _check_cost(course: Course) -> float:
    """Seconds per edge check from compiled code, over edges of 25 m in random directions."""
    rng = stream("planner bench edges")
    low, high = course.plan.bounds[:3], course.plan.bounds[3:]
    starts = rng.uniform(low, high, (20000, 3))
    ways = rng.normal(size=starts.shape)
    ends = np.clip(starts + 25.0 * ways / np.linalg.norm(ways, axis=1)[:, None], low, high)
    _ask_all(course.plan, starts[:1], ends[:1])
    began = time.process_time()
    _ask_all(course.plan, starts, ends)
    return (time.process_time() - began) / len(starts)


@compiled
def _ask_all(plan: PlanMap, starts: Floats, ends: Floats) -> int:
    free = 0
    for i in range(starts.shape[0]):
        a, b = starts[i], ends[i]
        free += edge_free(plan, a[0], a[1], a[2], b[0], b[1], b[2], CLEARANCE_M)
    return free


def latencies(course: Course, quick: bool, tell: Callable[[str], None]) -> list[Figure]:
    """Latency only: 100 iterations, the whole plan, smoothing, and preparing the map."""
    tell("planner latencies")
    times = 200 if quick else 2000
    sealed = _sealed(course)
    found = [
        Figure(
            "100 RRT-APF iterations with exact checks, latency only",
            1e6 * _each(lambda k: find_corners(sealed, k), times),
            "µs",
            "published upstream, other machine, no checks",
            PUBLISHED_US,
        )
    ]
    problems = [PlanningProblem(start, goal, course.plan, CLEARANCE_M) for start, goal in course.problems]

    def plan_whole(k: int) -> object:
        return smooth(find_corners(problems[k % n], k).points, course.plan, CLEARANCE_M, MotionLimits())

    corners = [find_corners(problem, 0).points for problem in problems]
    n = len(problems)
    found.append(Figure("path planned, refined, smoothed, timed", 1e6 * _each(plan_whole, n), "µs"))
    found.append(
        Figure(
            "of which smoothing",
            1e6 * _each(lambda k: smooth(corners[k % n], course.plan, CLEARANCE_M, MotionLimits()), n),
            "µs",
        )
    )
    plan = course.plan
    cost = _each(lambda _: plan_map(plan.obstacles, plan.bounds), 20)
    found.append(Figure(f"map of {len(plan.obstacles)} obstacles prepared", 1e6 * cost, "µs"))
    return found


def _sealed(course: Course) -> PlanningProblem:
    """A goal walled in on all sides, so that exactly 100 iterations are done."""
    start, goal = course.problems[0]
    x, y, z = goal
    shell = [
        box(x + sx * 5.0, y + sy * 5.0, z + sz * 5.0, *(0.5 if s else 10.0 for s in (sx, sy, sz)))
        for sx, sy, sz in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))
    ]
    clear = [row for row in course.plan.obstacles if np.linalg.norm(row[1:4] - goal) > 25.0]
    plan = plan_map(np.array([*clear, *shell]), course.plan.bounds)
    return PlanningProblem(start, goal, plan, CLEARANCE_M, Search(budget=100, lattice=0))


def _each(call: Callable[[int], object], times: int) -> float:
    """Seconds of CPU time per call, best of a few rounds."""
    call(0)
    best = np.inf
    for _ in range(REPEATS):
        began = time.process_time()
        for k in range(times):
            call(k)
        best = min(best, (time.process_time() - began) / times)
    return float(best)
