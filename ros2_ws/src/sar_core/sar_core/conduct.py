"""How a swarm flew its search: the terms of every index, from true tracks and from what the drones were asked.

One pure function for records and bags: the referee calls it on what it saw, the analysis on what a bag holds, with
other constants if it likes. Arrays run over K ticks and N drones. Times are weighted: a tick stands for half the time
to its neighbours. A drone on the ground does not count, and what cannot be known is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_core.indices import FlightRules, Indices, Quality, SafetyLimits
from sar_core.tracks import beside, near_obstacles, to_fence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SEARCHING = 2
"""The phase in which a drone flies its route; with the codes below, as in UavStatus."""
HOLDING, RETURNING = 1, 3
"""Failsafe states: waiting where it is, on its way home."""
SPLIT, DIVERGE, UNJUDGED = 3, 4, 255
"""Bands of the safety layer in which its fallback acts, and the code for not having been asked."""


@dataclass(frozen=True, eq=False)
class FlightGround:
    """Where it was flown: obstacles [M, 8], fence [V, 2], homes [N, 2 or more], routes [S, 2] per drone if planned."""

    area_m: tuple[float, float, float, float]
    obstacles: Floats
    hull_radius_m: float
    fence: Floats
    homes: Floats
    routes: tuple[Floats, ...] | None


@dataclass(frozen=True, eq=False)
class Guarded:
    """The safety layer's part per tick.

    Level velocity asked of it and commanded [K, N, 2] (NaN: none), what its answer lacks of the limits [K, N], and its
    band [K, N].
    """

    wanted: Floats
    commanded: Floats
    limit_excess: Floats
    band: Ints


@dataclass(frozen=True, eq=False)
class SearchFlight:
    """A search as it was flown: times [K], true position and velocity [K, N, 3], attitude [K, N, 4] as x y z w.

    phase and failsafe [K, N] are codes of UavStatus; believed [K, N, 3]: where each drone took itself to be; heard_s
    [K, N, N]: when the state that one held of another was sent, NaN without one. ``recovered_m`` is path of all drones
    that re-covered what was scanned.
    """

    times_s: Floats
    position: Floats
    velocity: Floats
    attitude: Floats
    phase: Ints
    failsafe: Ints
    path_m: float
    recovered_m: float
    around: FlightGround | None
    guarded: Guarded | None
    believed: Floats | None
    heard_s: Floats | None


@dataclass(frozen=True)
class Comfort:
    """How gently and how far from everything: ``exposure`` is the share of seconds in the air."""

    jerk_rms_mps3: float | None
    jerk_mean_mps3: float | None
    airborne_s: float
    exposed_s: float | None
    exposure: float | None
    force_entries: int


@dataclass(frozen=True)
class Interventions:
    """What the safety layer changed. Ticks are summed over drones; entries are edges between ticks."""

    asked_ticks: int
    changed_ticks: int
    changed_entries: int
    change_mean_mps: float | None
    change_variance_m2ps2: float | None
    excess_largest_mps: float | None
    excess_rms_mps: float | None
    split_entries: int
    """Into brake and split or worse: the fallback fired."""
    diverge_entries: int


@dataclass(frozen=True)
class RuleTerms:
    """What each rule of flight comes to before any weight."""

    separation_m2s: float | None
    lane_m2s: float | None
    """Integral of d^2 between lane_safe_m and lane_max_m; None without planned routes, as what follows."""
    lane_far_s: float | None
    lane_s: float | None
    """Drone-seconds in which a lane was judged."""
    direction_rad2: float | None
    """Mean of theta^2."""
    direction_valid: float | None
    direction_s: float | None
    stop_visits: int | None
    stop_broken: int | None
    fence_crossings: int | None
    return_broken: int | None
    hold_broken: int
    productive_m: float | None
    empty_m: float | None


@dataclass(frozen=True)
class Assumption:
    """Ticks of drones in which one was broken, of those in which it was looked at."""

    violations: int
    steps: int


@dataclass(frozen=True)
class Assumptions:
    """A1 to A3; None where the source does not tell."""

    neighbours_fresh: Assumption | None
    estimate_near: Assumption | None
    commands_tracked: Assumption | None


@dataclass(frozen=True)
class Conduct:
    """All terms of one search, and the hashes of the constants they were computed with."""

    comfort: Comfort
    interventions: Interventions | None
    rules: RuleTerms
    assumptions: Assumptions
    indices: dict[str, str]

    def plain(self) -> dict[str, Any]:
        """As it stands in a record; :func:`read_conduct` takes it back."""
        return asdict(self)


def read_conduct(plain: Mapping[str, Any]) -> Conduct:
    """What a record holds."""
    interventions, assumed = plain["interventions"], plain["assumptions"]
    return Conduct(
        comfort=Comfort(**plain["comfort"]),
        interventions=None if interventions is None else Interventions(**interventions),
        rules=RuleTerms(**plain["rules"]),
        assumptions=Assumptions(**{key: v and Assumption(**v) for key, v in assumed.items()}),
        indices=dict(plain["indices"]),
    )


def conduct_of(flown: SearchFlight, indices: Indices) -> Conduct:
    """All terms of a search that lasted at least one tick."""
    return Conduct(
        comfort=_comfort(flown, indices.quality),
        interventions=None if flown.guarded is None else _interventions(flown.guarded, indices.safety),
        rules=_rules(flown, indices.rules),
        assumptions=_assumptions(flown, indices.safety),
        indices=dict(indices.sha256),
    )


def jerks(times_s: Floats, velocity: Floats) -> Floats:
    """Magnitude of jerk [m/s^3] at inner ticks, [K - 2, N]: second divided difference of velocity [K, N, 3].

    Ticks are 48 or 52 ms apart, so the divided difference on unequal steps is used; it is exact for constant jerk.
    """
    dt = np.diff(times_s)[:, None, None]
    acceleration = np.diff(velocity, axis=0) / dt
    middle = 0.5 * (dt[1:] + dt[:-1])
    magnitude: Floats = np.linalg.norm(np.diff(acceleration, axis=0) / middle, axis=2)
    return magnitude


def rms(values: Floats) -> float | None:
    """Root of the mean square; None of nothing."""
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else None


def seconds(times_s: Floats) -> Floats:
    """The time each tick stands for, [K]: half of that to its neighbours."""
    half = 0.5 * np.diff(times_s)
    return np.concatenate((half, [0.0])) + np.concatenate(([0.0], half))


def count_entries(flags: Bools, times_s: Floats, rearm_s: float) -> int:
    """How often flags [K, N] come on after having been off, per drone, for longer than the time to re-arm."""
    total = 0
    for own in flags.T:
        on = times_s[own]
        total += int(len(on) > 0) + int(np.sum(np.diff(on) > rearm_s + _EXACT_S))
    return total


_EXACT_S = 1e-9


def _edges(flags: Bools) -> int:
    """How often flags [K, N] come on between two ticks; one that is on from the start has come on too."""
    return int(flags[0].sum() + np.sum(flags[1:] & ~flags[:-1]))


def _airborne(flown: SearchFlight, lowest_m: float) -> Bools:
    return np.asarray(flown.position[..., 2] > lowest_m)


def nearest_others(position: Floats, counted: Bools) -> Floats:
    """Distance to the nearest other drone that counts [K, N], itself counting; infinite without one."""
    n = position.shape[1]
    least = np.full(position.shape[:2], np.inf)
    for i in range(n):
        for j in range(i):
            distance = np.linalg.norm(position[:, i] - position[:, j], axis=1)
            distance[~(counted[:, i] & counted[:, j])] = np.inf
            np.minimum(least[:, i], distance, out=least[:, i])
            np.minimum(least[:, j], distance, out=least[:, j])
    return least


def _comfort(flown: SearchFlight, limits: Quality) -> Comfort:
    up, each_s = _airborne(flown, limits.airborne_m), seconds(flown.times_s)[:, None]
    airborne_s = float((each_s * up).sum())
    exposed_s = None
    if flown.around is not None:
        close = nearest_others(flown.position, up) < limits.neighbour_m
        reach = limits.clearance_m + flown.around.hull_radius_m
        for i in range(close.shape[1]):
            track = np.ascontiguousarray(flown.position[:, i])
            close[:, i] |= near_obstacles(flown.around.obstacles, track, reach)
        exposed_s = float((each_s * (close & up)).sum())
    jerk = jerks(flown.times_s, flown.velocity)
    return Comfort(
        jerk_rms_mps3=rms(jerk),
        jerk_mean_mps3=float(jerk.mean()) if jerk.size else None,
        airborne_s=airborne_s,
        exposed_s=exposed_s,
        exposure=None if exposed_s is None or airborne_s <= 0.0 else exposed_s / airborne_s,
        force_entries=count_entries(_hard(flown, limits) & up, flown.times_s, limits.debounce_s),
    )


def _hard(flown: SearchFlight, limits: Quality) -> Bools:
    """Whether a drone leans far over [K, N], or changed its velocity fast since the tick before."""
    x, y = flown.attitude[..., 0], flown.attitude[..., 1]
    leaning = 1.0 - 2.0 * (x * x + y * y) < math.cos(math.radians(limits.tilt_deg))
    change = np.linalg.norm(np.diff(flown.velocity, axis=0), axis=2) / np.diff(flown.times_s)[:, None]
    leaning[1:] |= change > limits.acceleration_mps2
    return np.asarray(leaning)


def _interventions(guarded: Guarded, limits: SafetyLimits) -> Interventions:
    change = np.linalg.norm(guarded.commanded - guarded.wanted, axis=2)
    asked = np.isfinite(change)
    changed = asked & (np.nan_to_num(change) > limits.changed_mps)
    sizes, excess = change[asked], guarded.limit_excess[np.isfinite(guarded.limit_excess)]
    acting = np.where(guarded.band == UNJUDGED, 0, guarded.band)
    return Interventions(
        asked_ticks=int(asked.sum()),
        changed_ticks=int(changed.sum()),
        changed_entries=_edges(changed),
        change_mean_mps=float(sizes.mean()) if sizes.size else None,
        change_variance_m2ps2=float(sizes.var()) if sizes.size else None,
        excess_largest_mps=float(excess.max()) if excess.size else None,
        excess_rms_mps=rms(excess),
        split_entries=_edges(acting >= SPLIT),
        diverge_entries=_edges(acting >= DIVERGE),
    )


def _rules(flown: SearchFlight, rules: FlightRules) -> RuleTerms:
    up, each_s, around = _airborne(flown, rules.airborne_m), seconds(flown.times_s)[:, None], flown.around
    near = nearest_others(flown.position, up)
    lack = np.maximum(0.0, rules.separation_safe_m - near)
    outside_m = None if around is None else _outside_m(flown.position, around.area_m)
    empty_m = None if outside_m is None else flown.recovered_m + outside_m
    return RuleTerms(
        separation_m2s=float((each_s * lack * lack).sum()) if flown.position.shape[1] > 1 else None,
        **_lane_terms(flown, rules, up),
        **_fence_terms(flown, rules, up),
        return_broken=None if around is None else _return_broken(flown, rules, up, around.homes),
        hold_broken=_hold_broken(flown, rules, up),
        productive_m=None if empty_m is None else flown.path_m - empty_m,
        empty_m=empty_m,
    )


def _outside_m(position: Floats, area_m: tuple[float, float, float, float]) -> float:
    """Level path of all drones outside the area, by the middle of each leg."""
    west, south, east, north = area_m
    middle = 0.5 * (position[1:, :, :2] + position[:-1, :, :2])
    x, y = middle[..., 0], middle[..., 1]
    outside = (x < west) | (x > east) | (y < south) | (y > north)
    return float(np.linalg.norm(np.diff(position[..., :2], axis=0), axis=2)[outside].sum())


def _lane_terms(flown: SearchFlight, rules: FlightRules, up: Bools) -> dict[str, Any]:
    """Stay in lane and direction, over the time from a drone's first being on its route until it leaves the search.

    Where it comes to be on purpose counts too: a closer look at something heard, the route of a lost drone.
    """
    names = ("lane_m2s", "lane_far_s", "lane_s", "direction_rad2", "direction_valid", "direction_s")
    routes = None if flown.around is None else flown.around.routes
    if routes is None:
        return dict.fromkeys(names)
    each_s, speed = seconds(flown.times_s), np.linalg.norm(flown.velocity[..., :2], axis=2)
    lane_m2s = far_s = lane_s = directed_s = turned = valid_s = 0.0
    for i, route in enumerate(routes):
        found = beside(np.ascontiguousarray(route), np.ascontiguousarray(flown.position[:, i]))
        d, leg = found[:, 0], found[:, 1:]
        judged = up[:, i] & (flown.phase[:, i] == SEARCHING) & np.logical_or.accumulate(d <= rules.lane_safe_m)
        within = judged & (d >= rules.lane_safe_m) & (d <= rules.lane_max_m)
        lane_m2s += float((each_s * d * d)[within].sum())
        far_s += float(each_s[judged & (d > rules.lane_max_m)].sum())
        lane_s += float(each_s[judged].sum())
        moving = judged & (speed[:, i] > rules.moving_mps) & np.isfinite(leg[:, 0])
        v, e = flown.velocity[moving, i], leg[moving]
        theta = np.arctan2(e[:, 0] * v[:, 1] - e[:, 1] * v[:, 0], e[:, 0] * v[:, 0] + e[:, 1] * v[:, 1])
        directed_s += float(each_s[moving].sum())
        turned += float((each_s[moving] * theta * theta).sum())
        valid_s += float(each_s[moving][np.abs(theta) < math.radians(rules.valid_direction_deg)].sum())
    mean, valid = (turned / directed_s, valid_s / directed_s) if directed_s > 0.0 else (None, None)
    return dict(zip(names, (lane_m2s, far_s, lane_s, mean, valid, directed_s), strict=True))


def _fence_terms(flown: SearchFlight, rules: FlightRules, up: Bools) -> dict[str, Any]:
    """The stop line inside the fence and the fence itself.

    A visit begins where a drone comes into the margin from inside and is judged when it leaves; one that ends with the
    search is not. It breaks the rule if it goes out through the fence without ever having stopped going outwards.
    """
    names = ("stop_visits", "stop_broken", "fence_crossings")
    if flown.around is None or not len(flown.around.fence):
        return dict.fromkeys(names)
    visits = broken = 0
    out = np.zeros_like(up)
    for i in range(up.shape[1]):
        found = to_fence(flown.around.fence, np.ascontiguousarray(flown.position[:, i]))
        left, away = found[:, 0], found[:, 1:]
        out[:, i] = up[:, i] & (left <= 0.0)
        zone = up[:, i] & (left > 0.0) & (left < rules.stop_margin_m)
        changes = np.flatnonzero(np.diff(zone.astype(np.int8))) + 1
        for begin, end in zip(changes[:-1].tolist(), changes[1:].tolist(), strict=True):
            if not zone[begin] or left[begin - 1] < rules.stop_margin_m:
                continue
            outward = np.einsum("kd,kd->k", flown.velocity[begin:end, i, :2], away[begin:end])
            visits += 1
            broken += bool(left[end] <= 0.0 and outward.min() > rules.stop_mps)
    return dict(zip(names, (visits, broken, count_entries(out, flown.times_s, rules.rearm_s)), strict=True))


def _spells(state: Bools) -> list[tuple[int, int]]:
    """Where flags [K] are on: first tick of each spell, and the first after it."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], state.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _return_broken(flown: SearchFlight, rules: FlightRules, up: Bools, homes: Floats) -> int:
    """Times a drone told to come home was no nearer to it, some seconds on, than when it was told."""
    broken = 0
    for i in range(up.shape[1]):
        away = np.linalg.norm(flown.position[:, i, :2] - homes[i, :2], axis=1)
        for begin, end in _spells(flown.failsafe[:, i] == RETURNING):
            then = int(np.searchsorted(flown.times_s, flown.times_s[begin] + rules.return_s))
            if then < end and up[then, i]:
                broken += bool(away[then] >= away[begin] and away[then] > rules.home_m)
    return broken


def _hold_broken(flown: SearchFlight, rules: FlightRules, up: Bools) -> int:
    """Spells of hold in which a drone still moved after the time it has to brake."""
    broken, speed = 0, np.linalg.norm(flown.velocity[..., :2], axis=2)
    for i in range(up.shape[1]):
        for begin, end in _spells(flown.failsafe[:, i] == HOLDING):
            then = int(np.searchsorted(flown.times_s, flown.times_s[begin] + rules.hold_s))
            broken += bool((up[then:end, i] & (speed[then:end, i] > rules.hold_mps)).any())
    return broken


def _assumptions(flown: SearchFlight, limits: SafetyLimits) -> Assumptions:
    up, guarded = _airborne(flown, limits.airborne_m), flown.guarded
    fresh = near = tracked = None
    if flown.believed is not None:
        off = np.linalg.norm(flown.believed - flown.position, axis=2)
        near = _assumption(~(off <= limits.estimate_error_m), up)
    if flown.heard_s is not None and up.shape[1] > 1:
        oldest_s = flown.times_s[:, None] - np.fmin.reduce(flown.heard_s, axis=2)
        fresh = _assumption(~(oldest_s <= limits.neighbour_age_s), up)
    if guarded is not None:
        error = np.linalg.norm(flown.velocity[1:, :, :2] - guarded.commanded[:-1], axis=2)
        tracked = _assumption(error > limits.tracking_mps, up[1:] & np.isfinite(error))
    return Assumptions(fresh, near, tracked)


def _assumption(broken: Bools, looked_at: Bools) -> Assumption:
    return Assumption(int((broken & looked_at).sum()), int(looked_at.sum()))
