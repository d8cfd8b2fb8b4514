"""When a drone leaves its pattern for a hypothesis: Systematic, ProbabilisticPursuit, Convergence (ADR-148).

From a probability of 0.75 the nearest drone flies up to look from the side; from 0.9 the three nearest stand around the
hypothesis, 120 degrees apart. Nobody assigns anybody: each drone decides by what it knows, and drones that know the
same decide the same. Knowledge differs a little, so every drone keeps what it decided when a case was opened: who is in
the team and who stands where do not follow the noise. What goes wrong by that is mended by looking: a team mate that
does not come is passed over, a place that somebody holds already is left to him.

As a baseline, ``Mode.TRIANGULATE`` sends one drone past three places around anything of 0.5 and more, like an operator
who takes bearings by hand. ENU, SI.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Point = tuple[float, float]

SLOTS = 3
FIRST_SLOT_RAD = 0.5 * math.pi
"""Slot 0 lies north of the hypothesis, so that the constellation does not hang on anybody's position."""
PLACED_MPS = 2.0  # slower than this in its place, a drone holds it
HISTORY = 64


class PursuitMode(StrEnum):
    """CONSTELLATION is the swarm's way, TRIANGULATE the operator's."""

    CONSTELLATION = "constellation"
    TRIANGULATE = "triangulate"


class Stage(IntEnum):
    """What the swarm does about a hypothesis."""

    SYSTEMATIC = 0
    PURSUIT = 1
    CONVERGENCE = 2


class Hypothesis(NamedTuple):
    """Where a transmitter may be and how sure that is; ``track`` is the same number in every drone."""

    track: int
    x: float
    y: float
    confidence: float
    std_m: float


class Station(NamedTuple):
    """Where to fly instead of the pattern, at which stage, for which track."""

    x: float
    y: float
    stage: Stage
    track: int


@dataclass(frozen=True)
class PursuitConfig:
    """Thresholds are probabilities; ``bounds`` (west, south, east, north) keeps stations inside where given."""

    mode: PursuitMode = PursuitMode.CONSTELLATION
    pursue_at: float = 0.75
    converge_at: float = 0.9
    triangulate_at: float = 0.5
    let_go_below: float = 0.15
    """How far the probability may fall under its threshold before a case is dropped."""
    radius_m: float = 12.0
    standoff_m: float = 15.0
    arrive_m: float = 4.0
    dwell_s: float = 8.0
    bearing_dwell_s: float = 2.0
    patience_s: float = 30.0
    news_s: float = 2.0
    moved_m: float = 15.0
    """A hypothesis this far from where it was settled is a new one."""
    follow_m: float = 3.0
    watch_s: float = 5.0
    approach_m: float = 5.0
    """A team mate that has not come this much nearer within watch_s is passed over."""
    sort_out_s: float = 3.0
    """Until then drones set out and nobody stands; after it, whoever finds his place held looks for another."""
    vanish_s: float = 5.0
    most_cases: int = 4
    """A track settled this often is left alone: it walks, or nobody can say where it is."""
    speed_mps: float = 8.0
    """How fast drones come: who could not be there for the dwell before patience ends does not set out."""
    bounds: tuple[float, float, float, float] | None = None

    def stage_of(self, confidence: float) -> Stage:
        """The stage a probability calls for."""
        if self.mode is PursuitMode.TRIANGULATE:
            return Stage.PURSUIT if confidence >= self.triangulate_at else Stage.SYSTEMATIC
        if not confidence >= self.pursue_at:
            return Stage.SYSTEMATIC
        return Stage.CONVERGENCE if confidence >= self.converge_at else Stage.PURSUIT

    @property
    def floor(self) -> float:
        lowest = self.triangulate_at if self.mode is PursuitMode.TRIANGULATE else self.pursue_at
        return lowest - self.let_go_below

    @property
    def stops(self) -> int:
        """How many places one drone visits, each with its own dwell and patience."""
        return SLOTS if self.mode is PursuitMode.TRIANGULATE else 1


class Member(NamedTuple):
    """A drone in a case's team: its place, and how far it was when it joined."""

    drone: int
    slot: int
    distance_m: float
    joined_s: float
    trusted: bool


class Case(NamedTuple):
    """One hypothesis being looked at. ``bearing_rad`` is the side from which I look, ``stop`` how many places I did."""

    track: int
    stage: Stage
    x: float
    y: float
    opened_s: float
    seen_s: float
    bearing_rad: float
    team: tuple[Member, ...] = ()
    passed: tuple[int, ...] = ()
    stop: int = 0
    stop_s: float = 0.0
    arrived_s: float = math.nan


class Settled(NamedTuple):
    """A case that is closed: not opened again at this stage or below unless the hypothesis moves."""

    track: int
    x: float
    y: float
    stage: Stage


class Pursuit(NamedTuple):
    """One drone's memory of what it looks at and has looked at."""

    cases: tuple[Case, ...] = ()
    settled: tuple[Settled, ...] = ()


class _Scene(NamedTuple):
    """What a drone knows now: who can fly where, itself included, how fast, and the usable hypotheses by track."""

    time_s: float
    me: int
    places: dict[int, Point]
    speeds: dict[int, float]
    seen: dict[int, Hypothesis]


def decide(
    pursuit: Pursuit,
    time_s: float,
    me_position: Floats,
    me_index: int,
    others: Floats,
    hypotheses: Iterable[Hypothesis],
    config: PursuitConfig,
) -> tuple[Pursuit, Station | None]:
    """One tick of one drone: its memory, and where to fly instead of the pattern (None: fly on where it was left).

    others float64[K, 9] as the link delivered them: position, velocity, stamp, failsafe code, leg; row j is drone j.
    """
    usable = [h for h in hypotheses if _usable(h, config)]
    wanted = pursuit.cases or any(_calls_for(h, (), pursuit.settled, config) for h in usable)
    if not wanted or not math.isfinite(time_s + me_position[0] + me_position[1]):
        return pursuit, None
    scene = _look(time_s, me_position, me_index, others, usable, config)
    cases, settled = _review(pursuit, scene, config)
    cases = _open(cases, settled, scene, config)
    cases = _staff(cases, scene, config)
    return _serve(Pursuit(tuple(cases), tuple(settled[-HISTORY:])), scene, config)


def _usable(h: Hypothesis, config: PursuitConfig) -> bool:
    if not (
        math.isfinite(h.x) and math.isfinite(h.y) and math.isfinite(h.std_m) and config.floor <= h.confidence <= 1.0
    ):
        return False
    if config.bounds is None:
        return True
    west, south, east, north = config.bounds
    reach = config.radius_m
    return west - reach <= h.x <= east + reach and south - reach <= h.y <= north + reach


def _look(
    time_s: float, position: Floats, me: int, others: Floats, usable: list[Hypothesis], config: PursuitConfig
) -> _Scene:
    """Only drones of which there is recent news and which report no failsafe count."""
    places, speeds = {}, {}
    for k, (x, y, _, vx, vy, _, stamp, code, *_) in enumerate(others.tolist()):
        fresh = abs(time_s - stamp) <= config.news_s and code == 0.0
        if k != me and fresh and math.isfinite(x + y + vx + vy):
            places[k] = (x, y)
            speeds[k] = math.hypot(vx, vy)
    places[me] = (float(position[0]), float(position[1]))
    speeds[me] = 0.0
    return _Scene(time_s, me, places, speeds, {h.track: h for h in usable})


def _review(pursuit: Pursuit, scene: _Scene, config: PursuitConfig) -> tuple[list[Case], list[Settled]]:
    """Follow every open case's hypothesis; close what has vanished, moved away or taken too long."""
    cases, settled = [], list(pursuit.settled)
    for case in pursuit.cases:
        if scene.time_s - case.opened_s > config.patience_s * config.stops:
            settled.append(Settled(case.track, case.x, case.y, case.stage))
            continue
        h = scene.seen.get(case.track)
        if h is not None:
            gap = math.dist((h.x, h.y), (case.x, case.y))
            if gap > config.moved_m:
                settled.append(Settled(case.track, case.x, case.y, case.stage))
                continue
            if gap > config.follow_m:
                case = case._replace(x=h.x, y=h.y)
            case = case._replace(seen_s=scene.time_s)
        if scene.time_s - case.seen_s <= config.vanish_s:
            cases.append(case)
    return cases, settled


def _calls_for(h: Hypothesis, cases: Sequence[Case], settled: Sequence[Settled], config: PursuitConfig) -> Stage | None:
    """The stage at which a hypothesis wants a case of its own, None if it has had all it can get."""
    stage = config.stage_of(h.confidence)
    if stage is Stage.SYSTEMATIC or any(c.track == h.track and c.stage >= stage for c in cases):
        return None
    before = [s for s in settled if s.track == h.track]
    here = any(s.stage >= stage and math.dist((s.x, s.y), (h.x, h.y)) <= config.moved_m for s in before)
    return None if here or len(before) >= config.most_cases else stage


def _open(cases: list[Case], settled: list[Settled], scene: _Scene, config: PursuitConfig) -> list[Case]:
    """Open a case for what calls for one, surest first; a higher stage takes the place of a lower one."""
    for h in sorted(scene.seen.values(), key=lambda h: (-h.confidence, h.track)):
        stage = _calls_for(h, cases, settled, config)
        if stage is not None:
            now = scene.time_s
            fresh = Case(h.track, stage, h.x, h.y, now, now, _side(h, scene, config), stop_s=now)
            cases = [c for c in cases if c.track != h.track] + [fresh]
    return cases


def _side(h: Hypothesis, scene: _Scene, config: PursuitConfig) -> float:
    """From which bearing (rad, seen from the hypothesis) I should look.

    Phase and range of one drone that keeps its bearing leave one direction unsure; a look at right angles adds most.
    Of the two sides I take the one with fewer others. By hand, one begins at the near side.
    """
    here = scene.places[scene.me]
    mine = math.atan2(here[1] - h.y, here[0] - h.x)
    if config.mode is PursuitMode.TRIANGULATE:
        return mine
    crowd = 0.0
    for drone, (x, y) in scene.places.items():
        if drone != scene.me:
            crowd += math.sin(math.atan2(y - h.y, x - h.x) - mine)
    return mine + (-0.5 if crowd > 0.0 else 0.5) * math.pi


def _staff(cases: list[Case], scene: _Scene, config: PursuitConfig) -> list[Case]:
    """Give each case its team, oldest first: whoever joined stays, whoever does not come is replaced."""
    out: list[Case] = []
    for case in sorted(cases, key=lambda c: (c.opened_s, c.track)):
        case = _watch(case, scene, config)
        busy = {m.drone for c in cases if c.track != case.track for m in c.team} | {
            m.drone for c in out for m in c.team
        }
        taken = {m.drone for m in case.team}
        wanted = (SLOTS if case.stage is Stage.CONVERGENCE else 1) - len(case.team)
        reach = config.speed_mps * (config.patience_s - config.dwell_s - (scene.time_s - case.opened_s))
        ranked = sorted((math.dist(place, (case.x, case.y)), drone) for drone, place in scene.places.items())
        free = [d for gap, d in ranked if gap <= reach and d not in busy | taken | set(case.passed)]
        out.append(_join(case, sorted(free[: max(wanted, 0)]), scene, config))
    return out


def _watch(case: Case, scene: _Scene, config: PursuitConfig) -> Case:
    """After a while every team mate must have come nearer, or be there; the others are passed over for good."""
    team, passed = [], list(case.passed)
    for m in case.team:
        if not m.trusted and scene.time_s - m.joined_s >= config.watch_s:
            place = scene.places.get(m.drone)
            left = math.inf if place is None else math.dist(place, (case.x, case.y))
            there = max(config.radius_m, config.standoff_m) + config.arrive_m
            if m.drone != scene.me and left > max(m.distance_m - config.approach_m, there):
                passed.append(m.drone)
                continue
            m = m._replace(trusted=True)
        team.append(m)
    return case._replace(team=tuple(team), passed=tuple(passed))


def _join(case: Case, drones: list[int], scene: _Scene, config: PursuitConfig) -> Case:
    """Put drones into the team, at the free slots with the least way in all: then no two ways cross."""
    if not drones:
        return case
    used = {m.slot for m in case.team}
    free = [s for s in range(SLOTS) if s not in used] or list(range(SLOTS))

    def way(slots: tuple[int, ...]) -> float:
        return sum(math.dist(scene.places[d], slot_place(case, s, config)) for d, s in zip(drones, slots, strict=True))

    best = min(permutations(free, len(drones)), key=lambda slots: (way(slots), slots))
    team = [
        Member(d, s, math.dist(scene.places[d], (case.x, case.y)), scene.time_s, False)
        for d, s in zip(drones, best, strict=True)
    ]
    return case._replace(team=tuple(sorted((*case.team, *team))))


def slot_place(case: Case, slot: int, config: PursuitConfig) -> Point:
    """A slot of the constellation: 120 degrees apart on a circle around the hypothesis."""
    angle = FIRST_SLOT_RAD + slot * 2.0 * math.pi / SLOTS
    return case.x + config.radius_m * math.cos(angle), case.y + config.radius_m * math.sin(angle)


def _serve(pursuit: Pursuit, scene: _Scene, config: PursuitConfig) -> tuple[Pursuit, Station | None]:
    """My part in the first case that has me in its team; once it is done, the case is settled for me."""
    for number, case in enumerate(pursuit.cases):
        if not any(m.drone == scene.me for m in case.team):
            continue
        if case.stage is Stage.CONVERGENCE and scene.time_s - case.opened_s >= config.sort_out_s:
            case = _yield_slot(case, scene, config)
        if case.stop < config.stops:
            case = _clock(case, scene, config)
        if case.stop >= config.stops:
            rest = pursuit.cases[:number] + pursuit.cases[number + 1 :]
            done = Settled(case.track, case.x, case.y, case.stage)
            return Pursuit(rest, (*pursuit.settled, done)[-HISTORY:]), None
        x, y = _station(case, scene.me, config)
        cases = (*pursuit.cases[:number], case, *pursuit.cases[number + 1 :])
        return pursuit._replace(cases=cases), Station(x, y, case.stage, case.track)
    return pursuit, None


def _station(case: Case, me: int, config: PursuitConfig) -> Point:
    """Where I stand for a case, inside the bounds."""
    if case.stage is Stage.CONVERGENCE:
        x, y = slot_place(case, next(m.slot for m in case.team if m.drone == me), config)
    else:
        angle = case.bearing_rad + case.stop * 2.0 * math.pi / SLOTS
        x, y = case.x + config.standoff_m * math.cos(angle), case.y + config.standoff_m * math.sin(angle)
    if config.bounds is not None:
        west, south, east, north = config.bounds
        x, y = min(max(x, west), east), min(max(y, south), north)
    return x, y


def _clock(case: Case, scene: _Scene, config: PursuitConfig) -> Case:
    """Count the time on station; a stop ends after its dwell, or when patience with it does."""
    gap = math.dist(scene.places[scene.me], _station(case, scene.me, config))
    if math.isnan(case.arrived_s) and gap <= config.arrive_m:
        case = case._replace(arrived_s=scene.time_s)
    elif gap > 2.0 * config.arrive_m:
        case = case._replace(arrived_s=math.nan)
    dwell = config.bearing_dwell_s if config.mode is PursuitMode.TRIANGULATE else config.dwell_s
    if scene.time_s - case.arrived_s >= dwell or scene.time_s - case.stop_s > config.patience_s:
        case = case._replace(stop=case.stop + 1, stop_s=scene.time_s, arrived_s=math.nan)
    return case


def _yield_slot(case: Case, scene: _Scene, config: PursuitConfig) -> Case:
    """Where somebody stands in my place, take the nearest free one, or go if all are held; of two, the lower stays.

    Two drones that saw each other's places a little differently may have chosen the same slot, or four may have come.
    """
    here = scene.places[scene.me]
    near = 0.5 * config.radius_m

    def held(slot: int) -> bool:
        spot = slot_place(case, slot, config)
        there = [
            d for d, place in scene.places.items() if math.dist(place, spot) < near and scene.speeds[d] < PLACED_MPS
        ]
        return any(d < scene.me or (d != scene.me and math.dist(here, spot) >= near) for d in there)

    mine = next(m.slot for m in case.team if m.drone == scene.me)
    free = [s for s in range(SLOTS) if not held(s)]
    if mine in free:
        return case
    if not free:
        return case._replace(stop=config.stops)
    slot = min(free, key=lambda s: (math.dist(here, slot_place(case, s, config)), s))
    team = tuple(m._replace(slot=slot) if m.drone == scene.me else m for m in case.team)
    return case._replace(team=team, arrived_s=math.nan)
