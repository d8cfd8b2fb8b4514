"""The way to a goal: a planned path, made anew when it is lost, blocked or leads nowhere.

Every leg is planned, the free ones in a straight line, so there is one way of flying only. Plans are made in the map
given a priori; where a drone does not get on, the neighbours standing in its way are added to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.geometry import cylinder, nearest
from sar_core.mailboxes import STAMP
from sar_swarm.planning.planmap import PlanMap, clearance_at, edge_free, plan_map
from sar_swarm.planning.rrt_apf import Code, PlanningProblem, find_corners
from sar_swarm.planning.trajectory import MotionLimits, blocked, follow, smooth

Floats = NDArray[np.float64]
Point = tuple[float, float, float]
Spot = tuple[float, float]

LIFT_STEP_M = 3.0
LOST_M = 8.0
STALLED_S = 5.0
RETRY_S = 1.0
MAX_FAILURES = 4
STANDING_MPS = 1.5
FORGET_S = 62.0
"""As long as the safety layer keeps clear of a neighbour gone silent."""
BERTH_M = 4.0
PASSING_M = 1.5
PROGRESS_M = 0.5
"""Nearer to the goal than ever by this is progress."""
SILENT_S, SEEN_M, BESIDE_M = 2.0, 40.0, 1.0
"""A stalled drone goes round who stands or was last heard so long ago, within this distance; who is nearer than this
beyond the berth is beside it, and in nobody's way."""
STANDING_RADIUS_M, STANDING_HEIGHT_M = BERTH_M - PASSING_M, 6.0
"""Of the cylinder that stands in a plan for such a neighbour."""
SHARP_RAD = 1.5
"""Half of a turn beyond this is a turn back; it keeps the tangent finite."""
INSIDE_M = 0.1
"""How far inside its box a plan starts."""
LINE_STEP_M = 4.0
CLEARANCE_SHARES = (1.0, 0.75, 0.5, 0.35)
"""Of the clearance wished for: where 4 m is too much to ask, 3 m and less are tried."""
APPROACH = 4
"""Line steps before and after a blocked stretch in which the way may already bend."""


@dataclass(frozen=True)
class Chart:
    """Where and how plans are made: the map, the box one may fly in, the clearance kept and the vehicle's limits."""

    obstacles: Floats
    bounds: tuple[float, float, float, float, float, float]
    limits: MotionLimits
    clearance_m: float = 4.0
    corner_speed_mps: float = 3.0

    @cached_property
    def map(self) -> PlanMap:
        return self.map_with(None)

    def map_with(self, extra: Floats | None) -> PlanMap:
        """The map, with some more obstacles in it."""
        rows = self.obstacles if extra is None else np.vstack([self.obstacles, extra])
        return plan_map(rows, np.array(self.bounds))

    def corner_speed(self, a: Spot, b: Spot, c: Spot | None, within_m: float) -> float:
        """How fast to arrive at b coming from a and bound for c: gentle turns are flown through, sharp ones slowly.

        The arc that turns within ``within_m`` of b has radius within / tan(angle / 2); where c is not known yet, a
        right angle is expected.
        """
        half = 0.25 * math.pi
        if c is not None:
            turn = math.atan2(c[1] - b[1], c[0] - b[0]) - math.atan2(b[1] - a[1], b[0] - a[0])
            half = 0.5 * abs(math.remainder(turn, 2.0 * math.pi))
        radius = within_m / max(math.tan(min(half, SHARP_RAD)), 1e-3)
        fast = min(math.sqrt(self.limits.acceleration_mps2 * radius), self.limits.turn_rate_rps * radius)
        return max(self.corner_speed_mps, min(fast, self.limits.speed_mps))

    def free_altitude(self, x: float, y: float, z: float) -> float | None:
        """The lowest altitude from z upwards, in steps, at which this place keeps the clearance; None if none does."""
        while z <= self.bounds[5]:
            if nearest(self.obstacles, x, y, z)[0] > self.clearance_m:
                return z
            z += LIFT_STEP_M
        return None


class Way(NamedTuple):
    """A path under way: goal, samples and their speeds, the sample reached, and how it goes."""

    goal: Point
    points: Floats
    speeds: Floats
    end_speed: float = 0.0
    at: float = 0.0
    made_s: float = 0.0
    checked_s: float = 0.0
    best_left_m: float = math.inf
    progress_s: float = 0.0
    plans: int = 0
    failures: int = 0
    held_m: float = 0.0
    """Altitude when the way was asked for: kept while there is none."""

    @property
    def hopeless(self) -> bool:
        return self.failures >= MAX_FAILURES


class Heading(NamedTuple):
    """What following a way asks for: horizontal velocity, altitude, and the distance left to the goal."""

    vx: float
    vy: float
    z: float
    left_m: float


_NOWHERE = np.empty((0, 3))
_NO_SPEEDS = np.empty(0)


def pursue(
    chart: Chart,
    way: Way | None,
    goal: Point,
    end_speed: float,
    position: Floats,
    velocity: Floats,
    others: Floats,
    time_s: float,
    key: int,
) -> tuple[Way, Heading]:
    """One tick towards a goal: keep to the way, or plan a new one where that is due."""
    left = math.sqrt((goal[0] - position[0]) ** 2 + (goal[1] - position[1]) ** 2)
    if way is None or way.goal != goal:
        fresh = Way(goal, _NOWHERE, _NO_SPEEDS, end_speed, progress_s=time_s, held_m=float(position[2]))
        way = _plan(chart, fresh, position, velocity, time_s, key)
    if left < way.best_left_m - PROGRESS_M:
        way = way._replace(best_left_m=left, progress_s=time_s)
    if time_s - way.checked_s >= RETRY_S and not way.hopeless:
        way = way._replace(checked_s=time_s)
        in_the_way = standing(others, position, time_s)
        if _renew(chart, way, position, time_s, in_the_way):
            way = _plan(chart, way, position, velocity, time_s, key, in_the_way)
    if len(way.points) == 0:
        return way, Heading(0.0, 0.0, way.held_m, left)
    vx, vy, z, at = follow(way.points, way.speeds, way.at, position)
    return way._replace(at=at), Heading(vx, vy, z, left)


def _renew(chart: Chart, way: Way, position: Floats, time_s: float, in_the_way: Floats) -> bool:
    """Whether another plan is due: there is none, the drone was pushed off it, it stalls, or it is blocked."""
    if len(way.points) == 0:
        return True
    here = way.points[min(int(way.at), len(way.points) - 1)]
    lost = (here[0] - position[0]) ** 2 + (here[1] - position[1]) ** 2 > LOST_M * LOST_M
    stalled = time_s - max(way.progress_s, way.made_s) > STALLED_S
    if lost or stalled:
        return True
    if len(in_the_way) == 0:
        return False
    return blocked(way.points, way.at, plan_map(in_the_way, np.array(chart.bounds)), PASSING_M)


def standing(others: Floats, position: Floats, time_s: float) -> Floats:
    """Rows for neighbours in sight that stand still or have gone silent: what a stalled drone must go round."""
    rows = []
    for row in others:
        if not np.isfinite(row[: STAMP + 1]).all():
            continue
        age = time_s - row[STAMP]
        if age > FORGET_S:
            continue
        still = np.hypot(row[3], row[4]) < STANDING_MPS or age > SILENT_S
        away = math.sqrt(float(np.sum((row[:3] - position) ** 2)))
        if still and BERTH_M + BESIDE_M < away < SEEN_M:
            rows.append(cylinder(row[0], row[1], row[2], STANDING_RADIUS_M, STANDING_HEIGHT_M))
    return np.array(rows).reshape(len(rows), 8)


def _plan(
    chart: Chart,
    way: Way,
    position: Floats,
    velocity: Floats,
    time_s: float,
    key: int,
    extra: Floats | None = None,
) -> Way:
    """A new path to the way's goal. A drone that stands nearer to something than the clearance plans with less."""
    atlas = chart.map if extra is None or len(extra) == 0 else chart.map_with(extra)
    way = way._replace(made_s=time_s, checked_s=time_s, plans=way.plans + 1, at=0.0)
    start = np.clip(position, np.array(chart.bounds[:3]) + INSIDE_M, np.array(chart.bounds[3:]) - INSIDE_M)
    speed = math.sqrt(float(velocity[0]) ** 2 + float(velocity[1]) ** 2)
    for share in CLEARANCE_SHARES:
        clearance = share * chart.clearance_m
        code, corners = along_line(atlas, start, np.array(way.goal), clearance, key + way.plans)
        if code is Code.FOUND:
            points, speeds = smooth(corners, atlas, clearance, chart.limits, speed, way.end_speed)
            return way._replace(points=points, speeds=speeds)
        if code not in (Code.START_BLOCKED, Code.GOAL_BLOCKED):
            break
    return way._replace(points=_NOWHERE, speeds=_NO_SPEEDS, failures=way.failures + 1)


def _ease(free: list[bool], at: int, step: int, end: int) -> int:
    """From a sample on, step by step towards the end for as long as the line is free."""
    while at != end and free[at + step]:
        at += step
    return at


def along_line(atlas: PlanMap, start: Floats, goal: Floats, clearance: float, key: int) -> tuple[Code, Floats]:
    """Corners [K, 3] of a way that keeps to the straight line and leaves it only where it is blocked.

    A search lane is worth flying where it lies; the shortest way round a block of houses would leave most of it out.
    """
    gap = float(np.linalg.norm(goal - start))
    count = max(math.ceil(gap / LINE_STEP_M), 1)
    line = start + (goal - start) * np.linspace(0.0, 1.0, count + 1)[:, None]
    free = [clearance_at(atlas, *p) > clearance for p in line]
    corners, i, past = [line[0]], 0, 0
    while i < count:
        (ax, ay, az), (bx, by, bz) = line[i], line[i + 1]
        if free[i + 1] and edge_free(atlas, ax, ay, az, bx, by, bz, clearance):
            i += 1
            continue
        j = next((k for k in range(i + 1, count + 1) if free[k]), count)
        i, j = _ease(free, i, -1, max(past, i - APPROACH)), _ease(free, j, 1, min(count, j + APPROACH))
        found = find_corners(PlanningProblem(line[i], line[j], atlas, clearance), key)
        if found.code is not Code.FOUND:
            whole = find_corners(PlanningProblem(start, goal, atlas, clearance), key)
            return whole.code, whole.points
        corners += [line[i], *found.points[1:]]
        i = past = j
    return Code.FOUND, np.array([*corners, goal])
