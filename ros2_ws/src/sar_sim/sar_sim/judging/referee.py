"""The referee: the only one who knows the truth, and who says what touched what.

It sees true positions as corner points of straight flight legs and finds the closest approach *along* each leg:
in closed form for two drones and for the ground, by convex search for obstacles, and for the fence on pieces of at
most a centimetre (clearance is linear there except round a fence corner).

What is measured, and when a contact begins, how it is held and when it is over:

=============== ============================================== =================== ==========================
kind            distance (ENU metres)                          contact while       over after 1 s of
=============== ============================================== =================== ==========================
drone_drone     between the two centres                        d < 1.5             d > 2.0
drone_obstacle  hull sphere to obstacle, negative inside       d <= 0              d > 0.5
drone_ground    feet above z = 0                               d <= 0              d > 0.5
geofence        centre to fence or ceiling, negative outside   d < 0               d > 0.5
near_miss       between the two centres                        1.5 <= d < 3.0      d > 3.5
=============== ============================================== =================== ==========================

One contact is one event however often the distance crosses the threshold before the contact is over. Its begin is the
first instant in contact, its end the last, its minimum the least distance between the two, with the drone's position
there (for two drones: the middle between them). Time allowed on the ground counts as clear of it.

A near miss is judged on the whole encounter: one that ever falls below the collision distance is a collision and no
near miss. So a near miss is announced only once, when it is over; every other event is announced when it begins
(with the figures known by then) and again when it is over.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import RunError
from sar_sim.world.contact import BEGIN, CLEARANCE, MIN, OPEN, OPEN_COUNT, SEPARATION, Book, ContactRules, Z, judge

Floats = NDArray[np.float64]


class EventKind(StrEnum):
    DRONE_DRONE = "drone_drone"
    DRONE_OBSTACLE = "drone_obstacle"
    DRONE_GROUND = "drone_ground"
    GEOFENCE = "geofence"
    NEAR_MISS = "near_miss"


class EventPhase(StrEnum):
    BEGIN = "begin"
    END = "end"


COLLISIONS = (EventKind.DRONE_DRONE, EventKind.DRONE_OBSTACLE, EventKind.DRONE_GROUND)


@dataclass(frozen=True)
class RefereeConfig:
    """What counts as contact. fence float64[V, 2], ENU corners (V = 0: none); obstacles float64[M, 8] (geometry)."""

    hull_radius_m: float
    gear_m: float
    fence: Floats
    ceiling_m: float
    obstacles: Floats
    collision_m: float = 1.5
    near_miss_m: float = 3.0
    rearm_m: float = 2.0
    rearm_s: float = 1.0


@dataclass(frozen=True)
class Event:
    """One contact. `a` is a drone, `b` the other drone or the obstacle's row, -1 for ground and fence."""

    kind: EventKind
    phase: EventPhase
    a: int
    b: int
    begin_s: float
    end_s: float
    min_distance_m: float
    min_time_s: float
    position: tuple[float, float, float]

    @property
    def duration_s(self) -> float:
        return self.end_s - self.begin_s


@dataclass(frozen=True)
class RefereeSummary:
    """Everything refereed so far; `events` holds one entry per contact, those still open with phase begin."""

    collisions: int
    collisions_by_kind: dict[str, int]
    near_misses: int
    geofence_breaches: int
    min_separation_m: float | None
    min_clearance_m: float | None
    events: tuple[Event, ...]


class Referee:
    """Feed it every tick of truth in turn; it announces contacts and keeps the score."""

    def __init__(self, config: RefereeConfig, num_drones: int) -> None:
        bodies = config.obstacles.shape[0]
        pairs = list(combinations(range(num_drones), 2))
        self._rules = ContactRules(
            hull=float(config.hull_radius_m),
            gear=float(config.gear_m),
            ceiling=float(config.ceiling_m),
            collision=float(config.collision_m),
            near_miss=float(config.near_miss_m),
            margin=float(config.rearm_m - config.collision_m),
            rearm_s=float(config.rearm_s),
            obstacles=np.ascontiguousarray(config.obstacles, dtype=np.float64),
            fence=np.ascontiguousarray(config.fence, dtype=np.float64),
        )
        self._who = [
            *((EventKind.DRONE_DRONE, a, b) for a, b in pairs),
            *((EventKind.NEAR_MISS, a, b) for a, b in pairs),
            *((EventKind.DRONE_OBSTACLE, n, m) for n in range(num_drones) for m in range(bodies)),
            *((EventKind.DRONE_GROUND, n, -1) for n in range(num_drones)),
            *((EventKind.GEOFENCE, n, -1) for n in range(num_drones)),
        ]
        self._book = Book(
            contacts=np.zeros((len(self._who), Z + 1)),
            flown=np.zeros(num_drones),
            last=np.zeros((num_drones, 3)),
            to_pair=np.zeros(len(pairs)),
            to_obstacle=np.zeros((num_drones, bodies)),
            to_any_obstacle=np.zeros(num_drones),
            to_fence=np.zeros(num_drones),
            figures=np.array([np.inf, np.inf, 0.0]),
        )
        self._time_s = -math.inf
        self._ended: list[Event] = []

    def observe(self, times_s: Floats, positions: Floats, ground_allowed: NDArray[np.bool_]) -> list[Event]:
        """Judge one tick and return its announcements in the order of their begin.

        times_s float64[K]; positions float64[K, N, 3], ENU truth, straight between samples; the first sample repeats
        the last one of the tick before. ground_allowed bool[N]: the drone takes off, lands or idles.
        """
        if times_s[0] < self._time_s:
            raise RunError(f"truth runs backwards: a tick from {times_s[0]:.3f} s follows {self._time_s:.3f} s")
        rows, count = judge(
            self._rules,
            self._book,
            np.ascontiguousarray(times_s),
            np.ascontiguousarray(positions),
            np.ascontiguousarray(ground_allowed),
        )
        if count < 0:
            sample, drone = divmod(-1 - count, positions.shape[1])
            what = f"drone {drone} at {times_s[sample]:.3f} s is {positions[sample, drone].tolist()}"
            raise RunError(f"truth must be finite and its times ascending: {what}")
        self._time_s = float(times_s[-1])
        if count == 0:
            return []
        events = [
            self._event(int(row[0]), EventPhase.END if row[1] else EventPhase.BEGIN, row[2:]) for row in rows[:count]
        ]
        self._ended += [event for event in events if event.phase is EventPhase.END]
        return sorted(events, key=lambda event: (event.begin_s, event.phase))

    def finish(self, time_s: float) -> list[Event]:
        """End the contacts still open, those still touching at `time_s`; near misses that never got graver count."""
        ended = [
            self._event(row, EventPhase.END, self._book.contacts[row, BEGIN:], time_s) for row in self._open_rows()
        ]
        self._book.contacts[:, OPEN] = 0.0
        self._book.figures[OPEN_COUNT] = 0.0
        self._ended += ended
        return sorted(ended, key=lambda event: event.begin_s)

    def summary(self) -> RefereeSummary:
        still_open = [self._event(row, EventPhase.BEGIN, self._book.contacts[row, BEGIN:]) for row in self._open_rows()]
        events = tuple(
            sorted([*self._ended, *still_open], key=lambda event: (event.begin_s, event.kind, event.a, event.b))
        )
        counts = Counter(event.kind for event in events)
        separation, clearance = self._book.figures[SEPARATION], self._book.figures[CLEARANCE]
        return RefereeSummary(
            collisions=sum(counts[kind] for kind in COLLISIONS),
            collisions_by_kind={kind.value: counts[kind] for kind in COLLISIONS},
            near_misses=counts[EventKind.NEAR_MISS],
            geofence_breaches=counts[EventKind.GEOFENCE],
            min_separation_m=float(separation) if math.isfinite(separation) else None,
            min_clearance_m=float(clearance) if math.isfinite(clearance) else None,
            events=events,
        )

    def _open_rows(self) -> list[int]:
        """Open contacts, without encounters of two drones that are collisions already."""
        rows = np.flatnonzero(self._book.contacts[:, OPEN]).tolist()
        graver = self._rules.collision
        return [r for r in rows if self._who[r][0] is not EventKind.NEAR_MISS or self._book.contacts[r, MIN] >= graver]

    def _event(self, row: int, phase: EventPhase, contact: Floats, closed_s: float | None = None) -> Event:
        """contact: the columns from BEGIN on. A contact that touched at the last sample lasts until `closed_s`."""
        kind, a, b = self._who[row]
        begin_s, end_s, _, least_m, least_s, x, y, z = (float(value) for value in contact)
        if closed_s is not None and end_s > self._time_s - 1e-9:
            end_s = max(end_s, closed_s)
        return Event(kind, phase, a, b, begin_s, end_s, least_m, least_s, (x, y, z))
