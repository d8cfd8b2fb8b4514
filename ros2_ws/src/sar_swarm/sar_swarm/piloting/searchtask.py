"""Where a searching drone goes next: its pattern, a hypothesis worth a look, or what a lost drone left undone.

All of it follows from the mission everyone was told and from what this drone knows; drones that know the same choose
the same, so nothing has to be negotiated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.mailboxes import FAILSAFE, LEG, STAMP
from sar_swarm.piloting.failsafe import Failsafe
from sar_swarm.piloting.patternlist import find
from sar_swarm.piloting.patterns import Place, Walk, next_waypoint, remember, start_walk
from sar_swarm.piloting.pursuit import Hypothesis, Pursuit, PursuitConfig, Station, decide
from sar_swarm.planning.routes import take_over

Floats = NDArray[np.float64]
Area = tuple[float, float, float, float]
Spot = tuple[float, float]

ROUTE_ACCEPT_M = 3.0
DIRECTION_ACCEPT = 0.3  # of a swath
LOST_AFTER_S = 5.0
OUT_OF_THE_SEARCH = (Failsafe.RETURN_TO_HOME, Failsafe.EMERGENCY_LAND, Failsafe.CONTROLLED_DESCENT)


@dataclass(frozen=True)
class Mission:
    """What the swarm was told: the pattern, the area, and every drone's route where the pattern has routes."""

    index: int
    drones: int
    pattern: str
    area: Area
    swath_m: float
    key: tuple[int, int]
    routes: tuple[Floats, ...] = ()
    pursuit: PursuitConfig | None = None

    @property
    def accept_m(self) -> float:
        """How near a waypoint counts as reached; patterns that only choose a direction turn earlier."""
        return ROUTE_ACCEPT_M if self.routes else max(ROUTE_ACCEPT_M, DIRECTION_ACCEPT * self.swath_m)


class Loss(NamedTuple):
    """A drone that no longer searches, the ways it left undone, and who was left to share them."""

    drone: int
    ways: tuple[Floats, ...]
    alive: tuple[int, ...]


class SearchTask(NamedTuple):
    """A searching drone's memory: how far it has come, and what it has taken on besides."""

    leg: int = 0
    inherited: Floats = np.empty((0, 2))
    losses: tuple[Loss, ...] = ()
    walk: Walk | None = None
    waypoint: Spot | None = None
    pursuit: Pursuit = Pursuit()
    station: Station | None = None
    resume: Spot | None = None
    checked_s: int = -1


class Knowledge(NamedTuple):
    """What a task is chosen from; others [K, 9] as heard on the link."""

    time_s: float
    position: Floats
    others: Floats
    hypotheses: tuple[Hypothesis, ...]
    trusts_link: bool


def choose(mission: Mission, task: SearchTask, known: Knowledge) -> tuple[SearchTask, Spot | None]:
    """The place to fly to now; None when everything is done."""
    second = int(known.time_s)
    if second != task.checked_s:
        task = task._replace(checked_s=second)
        if known.trusts_link and find(mission.pattern).partitioned:
            task = inherit(mission, task, known)
    if not mission.routes:
        peers = _heard(known.others, known.time_s)
        walk = task.walk if task.walk is not None else start_walk(mission.drones)
        task = task._replace(walk=remember(walk, _flat(known.position), peers, mission.swath_m))
    if mission.pursuit is not None:
        task = _look_closer(mission.pursuit, mission, task, known)
        if task.station is not None:
            return task, (task.station.x, task.station.y)
    if task.resume is not None:
        return task, task.resume
    if mission.routes:
        return task, _on_route(mission, task, task.leg)
    if task.waypoint is None and task.walk is not None:
        task = _wander(mission, task, task.walk, known)
    return task, task.waypoint


def arrive(task: SearchTask) -> SearchTask:
    """The place chosen was reached, or given up: on to the next. A station is left when the pursuit says so."""
    if task.station is not None:
        return task
    if task.resume is not None:
        return task._replace(resume=None)
    return task._replace(leg=task.leg + 1, waypoint=None)


def upcoming(mission: Mission, task: SearchTask) -> Spot | None:
    """The place after the one chosen, where that is already known."""
    bound = task.station is not None or task.resume is not None or not mission.routes
    return None if bound else _on_route(mission, task, task.leg + 1)


def _on_route(mission: Mission, task: SearchTask, leg: int) -> Spot | None:
    route = mission.routes[mission.index]
    ahead = leg - len(route)
    if ahead < 0:
        return float(route[leg, 0]), float(route[leg, 1])
    if ahead < len(task.inherited):
        return float(task.inherited[ahead, 0]), float(task.inherited[ahead, 1])
    return None


def _wander(mission: Mission, task: SearchTask, walk: Walk, known: Knowledge) -> SearchTask:
    place = Place(
        index=mission.index,
        drones=mission.drones,
        area=mission.area,
        swath_m=mission.swath_m,
        position=_flat(known.position),
        peers=_heard(known.others, known.time_s),
        key=mission.key,
    )
    walk, waypoint = next_waypoint(mission.pattern, walk, place)
    return task._replace(walk=walk, waypoint=waypoint)


def _look_closer(config: PursuitConfig, mission: Mission, task: SearchTask, known: Knowledge) -> SearchTask:
    """Leave the pattern for a station, or come back to where it was left."""
    pursuit, station = decide(
        task.pursuit, known.time_s, known.position, mission.index, known.others, known.hypotheses, config
    )
    resume = task.resume
    if station is not None and task.station is None and resume is None:
        resume = _flat(known.position) if mission.routes else None
    return task._replace(pursuit=pursuit, station=station, resume=resume)


def inherit(mission: Mission, task: SearchTask, known: Knowledge) -> SearchTask:
    """Take this drone's share of what newly lost drones left undone, what those had themselves inherited included."""
    gone = {loss.drone for loss in task.losses}
    newly = [j for j in lost(known.others, mission.index, known.time_s) if j not in gone]
    for j in newly:
        gone.add(j)
        alive = tuple(i for i in range(mission.drones) if i not in gone)
        loss = Loss(j, _left_by(mission, task.losses, j, known.others[j, LEG]), alive)
        share = take_over(loss.ways, alive, mission.index)
        task = task._replace(
            losses=(*task.losses, loss), inherited=np.concatenate([task.inherited, share.reshape(-1, 2)])
        )
    return task


def _left_by(mission: Mission, earlier: tuple[Loss, ...], drone: int, leg: float) -> tuple[Floats, ...]:
    """What a drone leaves undone: its route from the lane it was on, begun or not, and all it had inherited."""
    begun = max(int(leg) - 1, 0) if math.isfinite(leg) else 0
    heir = [take_over(loss.ways, loss.alive, drone) for loss in earlier if drone in loss.alive]
    return (mission.routes[drone][begun:], *heir)


def lost(others: Floats, me: int, time_s: float) -> list[int]:
    """Drones this one counts as out of the search: silent for long, or saying so themselves."""
    silent = ~(time_s - others[:, STAMP] <= LOST_AFTER_S)
    out = np.isin(others[:, FAILSAFE], OUT_OF_THE_SEARCH)
    return [int(j) for j in np.flatnonzero(silent | out) if j != me]


def _heard(others: Floats, time_s: float) -> Floats:
    """Places [K, 2] of those heard of lately, one row per drone; NaN for the rest."""
    peers = others[:, :2].copy()
    peers[~(time_s - others[:, STAMP] <= LOST_AFTER_S)] = math.nan
    return peers


def _flat(position: Floats) -> Spot:
    return float(position[0]), float(position[1])
