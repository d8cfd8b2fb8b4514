"""Encounters at full speed, flown by real vehicles on estimates and a lossy link: does the safety layer hold?

The first five kinds are drawn so that, with perfect estimates and nobody giving way, the centres would pass within a
metre of each other. In the last, ``turning``, two drones come to places 8 to 20 m apart at the same time and turn there
towards each other, as patterns that choose their next waypoint underway may do. A drone's free time is the same flight
with the same noise and the layer on, with nobody near.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from sar_analysis.stats.interval import Interval
from sar_analysis.stats.rates import clopper_pearson
from sar_core.errors import InputError
from sar_core.geometry import no_obstacles
from sar_core.streams import stream
from sar_eval.episode.pool import spread
from sar_eval.scenario.prepare import load_named_vehicle
from sar_sim.judging.referee import Referee, RefereeConfig
from sar_sim.radio.link import Link
from sar_sim.vehicle.airframe import Vehicle
from sar_sim.vehicle.fleet import Fleet, step_of_tick
from sar_swarm.piloting.navigation import Chart, Way, pursue
from sar_swarm.piloting.neighbours import SeparationLimits
from sar_swarm.piloting.safety import FRESH, Situation, protect
from sar_swarm.planning.trajectory import MotionLimits

Floats = NDArray[np.float64]

KINDS = ("head_on", "crossing", "overtaking", "four_way", "merging", "turning")
SPEED_MPS = 8.0
SLOW_MPS = 4.0
ALTITUDE_M = 30.0
WIND_MPS = 2.0
LOSS, LATENCY_S = 0.20, 0.10
BOUNDS = (-5000.0, -5000.0, 5.0, 5000.0, 5000.0, 100.0)
APPROACH_M = 60.0
TURN_APART_M = (8.0, 20.0)
ACCEPT_M = 3.0
ALLOWED = 1.5
WARM_UP_S = 5.0
LIMIT_S = 90.0
APART_M = 1000.0

_FREE = np.full(3, np.nan)
_NO_FENCE = np.zeros((0, 2))


@dataclass(frozen=True)
class Course:
    """One drone's way: corners [L + 1, 2] from start to goal, ENU metres, and its speed."""

    corners: Floats
    speed_mps: float


@dataclass(frozen=True)
class Encounter:
    """What came of one encounter, by the referee's truth; times in seconds, infinite where a drone never arrived."""

    kind: str
    seed: int
    layer: bool
    collisions: int
    near_misses: int
    min_separation_m: float
    times_s: tuple[float, ...]
    free_s: tuple[float, ...]

    @property
    def slowest(self) -> float:
        """The worst drone's time over its free time."""
        return max(t / f for t, f in zip(self.times_s, self.free_s, strict=True))

    @property
    def in_time(self) -> bool:
        return self.slowest <= ALLOWED


@dataclass(frozen=True)
class _Flight:
    collisions: int
    near_misses: int
    min_separation_m: float
    times_s: tuple[float, ...]


def draw_courses(kind: str, seed: int) -> list[Course]:
    """The drones' ways, jittered by the seed in bearing, angle, lateral offset and timing."""
    if kind not in KINDS:
        raise InputError(f"encounter {kind!r} is not known; allowed: {', '.join(KINDS)}")
    rng = stream(f"encounter {kind}", seed)
    if kind == "turning":
        return _draw_turning(rng)
    north = rng.uniform(-math.pi, math.pi)
    if kind == "head_on":
        bearings = [0.0, math.pi + rng.uniform(-0.15, 0.15)]
    elif kind == "crossing":
        bearings = [0.0, rng.choice([-1.0, 1.0]) * rng.uniform(math.radians(50), math.radians(130))]
    elif kind == "four_way":
        bearings = [0.5 * math.pi * k + rng.uniform(-0.15, 0.15) for k in range(4)]
    elif kind == "merging":
        half = rng.uniform(math.radians(12), math.radians(35))
        bearings = [-half, half]
    else:
        bearings = [0.0, rng.uniform(-0.05, 0.05)]
    courses = []
    for k, bearing in enumerate(bearings):
        aside, early = rng.uniform(-0.5, 0.5), rng.uniform(-0.5, 0.5)
        ahead = np.array([math.cos(north + bearing), math.sin(north + bearing)])
        left = np.array([-ahead[1], ahead[0]])
        slow = kind == "overtaking" and k == 1
        start = -(APPROACH_M * (0.5 if slow else 1.0) + early) * ahead + aside * left
        goal = (0.5 if slow else 1.0) * APPROACH_M * ahead + aside * left
        if kind == "merging":
            lane = np.array([math.cos(north), math.sin(north)])
            corners = np.array([start, aside * left, (APPROACH_M + 10.0 * k) * lane])
        else:
            corners = np.array([start, goal])
        courses.append(Course(corners, SLOW_MPS if slow else SPEED_MPS))
    return courses


def _draw_turning(rng: np.random.Generator) -> list[Course]:
    """Two ways with one corner each, every goal beyond the other's corner."""
    north = rng.uniform(-math.pi, math.pi)
    along = np.array([math.cos(north), math.sin(north)])
    apart = rng.uniform(*TURN_APART_M)
    courses = []
    for sign in (-1.0, 1.0):
        corner = 0.5 * sign * apart * along
        bearing = north + (math.pi if sign < 0.0 else 0.0) + rng.uniform(-0.5, 0.5) * math.pi
        come = APPROACH_M + rng.uniform(-3.0, 3.0)
        start = corner + come * np.array([math.cos(bearing), math.sin(bearing)])
        turn = north + (0.0 if sign < 0.0 else math.pi) + rng.uniform(-0.15, 0.15)
        goal = corner + (APPROACH_M + apart) * np.array([math.cos(turn), math.sin(turn)])
        courses.append(Course(np.array([start, corner, goal]), SPEED_MPS))
    return courses


@cache
def _vehicle() -> Vehicle:
    return load_named_vehicle("x500")


class _Drone:
    """One drone's memory of an encounter: which leg it flies, its way, and what the layer wants to be handed again."""

    def __init__(self, index: int, course: Course) -> None:
        self.index, self.course = index, course
        self.separation = SeparationLimits(speed_mps=course.speed_mps)
        self.chart = Chart(no_obstacles(), BOUNDS, MotionLimits(speed_mps=course.speed_mps, acceleration_mps2=3.0))
        self.leg = 0
        self.way: Way | None = None
        self.memory = FRESH

    def command(self, time_s: float, pos: Floats, vel: Floats, others: Floats, layer: bool) -> tuple[Floats, Floats]:
        """Position and velocity setpoints from what this drone knows, by the code that flies missions."""
        corners = self.course.corners
        last = len(corners) - 2
        if self.leg < last and _passed(corners[self.leg], corners[self.leg + 1], pos):
            self.leg += 1
        goal = (float(corners[self.leg + 1, 0]), float(corners[self.leg + 1, 1]), ALTITUDE_M)
        end_speed = 0.0 if self.leg == last else self.course.speed_mps
        known = others if layer else others[:0]
        self.way, wish = pursue(self.chart, self.way, goal, end_speed, pos, vel, known, time_s, self.index)
        if not layer:
            return np.array([math.nan, math.nan, wish.z]), np.array([wish.vx, wish.vy, math.nan])
        told = protect(
            Situation(
                position=pos,
                velocity=vel,
                wanted=(wish.vx, wish.vy),
                altitude_m=wish.z,
                others=others,
                time_s=time_s,
                obstacles=no_obstacles(),
                fence=_NO_FENCE,
                keep=self.separation,
                row=self.index,
                memory=self.memory,
            )
        )
        self.memory = told.memory
        return np.array([math.nan, math.nan, told.altitude_m]), np.array([told.vx, told.vy, math.nan])


def _passed(start: Floats, end: Floats, pos: Floats) -> bool:
    """Whether a corner is reached or abeam: another drone may stand between it and us."""
    leg = end - start
    left = float((end - pos[:2]) @ leg) / math.hypot(*leg)
    return left < ACCEPT_M


def _fly(courses: list[Course], seed: int, layer: bool, alone: bool) -> _Flight:
    """All courses at once; alone, each far from the others and deaf."""
    n = len(courses)
    shift = np.array([[APART_M * k if alone else 0.0, 0.0] for k in range(n)])
    courses = [Course(c.corners + shift[k], c.speed_mps) for k, c in enumerate(courses)]
    angle = stream("encounter wind", seed).uniform(-math.pi, math.pi)
    wind = WIND_MPS * np.array([math.cos(angle), math.sin(angle), 0.0])
    headings = [math.atan2(*(c.corners[1] - c.corners[0])[::-1]) for c in courses]
    spawns = np.array([[*c.corners[0], ALTITUDE_M, yaw] for c, yaw in zip(courses, headings, strict=True)])
    fleet = Fleet(_vehicle(), spawns, seed, 0, wind, in_air=True)
    for k in range(n):
        fleet.command(k, spawns[k, :3], _FREE, _FREE, headings[k])
    fleet.warm_up(WARM_UP_S)
    link = Link(n, seed, 0, LOSS, LATENCY_S, 0.0)
    frame = _vehicle().airframe
    referee = Referee(RefereeConfig(frame.hull_radius, frame.gear_height, _NO_FENCE, math.inf, no_obstacles()), n)
    drones = [_Drone(k, c) for k, c in enumerate(courses)]
    deaf = np.full((n, 9), np.nan)
    arrived = np.full(n, np.inf)
    tick, time_s = 0, 0.0
    grounded = np.zeros(n, dtype=np.bool_)
    while time_s < LIMIT_S and not np.isfinite(arrived).all():
        state = fleet.snapshot()
        link.exchange(time_s, state.est_position, state.est_velocity, np.zeros((n, 2)))
        for k, drone in enumerate(drones):
            others = deaf if alone else link.others(k)
            where, velocity = drone.command(time_s, state.est_position[k], state.est_velocity[k], others, layer)
            fleet.command(k, where, velocity, _FREE, headings[k])
        first = fleet.step
        tick += 1
        track = fleet.tick(step_of_tick(tick) - first)
        times = np.arange(first, fleet.step + 1, dtype=np.float64) * 0.004
        time_s = float(times[-1])
        referee.observe(times, track, grounded)
        for k, course in enumerate(courses):
            last = drones[k].leg == len(course.corners) - 2
            if last and math.isinf(arrived[k]) and math.dist(track[-1, k, :2], course.corners[-1]) < ACCEPT_M:
                arrived[k] = time_s
    referee.finish(time_s)
    summary = referee.summary()
    least = summary.min_separation_m
    return _Flight(
        summary.collisions, summary.near_misses, math.inf if least is None else least, tuple(map(float, arrived))
    )


def fly_encounter(kind: str, seed: int, layer: bool = True) -> Encounter:
    """One encounter, and each of its drones alone."""
    courses = draw_courses(kind, seed)
    free = _fly(courses, seed, True, True)
    met = _fly(courses, seed, layer, False)
    return Encounter(
        kind, seed, layer, met.collisions, met.near_misses, met.min_separation_m, met.times_s, free.times_s
    )


def _fly_item(layer: bool, item: tuple[str, int]) -> Encounter:
    return fly_encounter(item[0], item[1], layer)


def study(
    kinds: Iterable[str],
    seeds: Iterable[int],
    layer: bool = True,
    workers: int = 1,
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> list[Encounter]:
    """Every kind with every seed; ``tell`` hears how many of how many are flown."""
    items = [(kind, seed) for kind in kinds for seed in seeds]
    results: list[Encounter] = []
    for result in spread(partial(_fly_item, layer), items, workers):
        results.append(result)
        tell(len(results), len(items))
    return results


@dataclass(frozen=True)
class EncounterRow:
    """What the encounters of one kind and layer setting came to; ``collided`` is the share with a collision."""

    kind: str
    layer: bool
    flown: int
    with_collision: int
    collided: Interval
    near_misses: int
    least_separation_m: float
    median_separation_m: float
    in_time: int
    slowest: float


def summarise(results: list[Encounter]) -> list[EncounterRow]:
    """One row per kind and layer setting, in the order flown."""
    rows = []
    for kind, layer in dict.fromkeys((r.kind, r.layer) for r in results):
        group = [r for r in results if (r.kind, r.layer) == (kind, layer)]
        hit = sum(r.collisions > 0 for r in group)
        separations = [r.min_separation_m for r in group]
        rows.append(
            EncounterRow(
                kind,
                layer,
                len(group),
                hit,
                clopper_pearson(hit, len(group), unit="encounters"),
                sum(r.near_misses for r in group),
                min(separations),
                float(np.median(separations)),
                sum(r.in_time for r in group),
                max(r.slowest for r in group),
            )
        )
    return rows
