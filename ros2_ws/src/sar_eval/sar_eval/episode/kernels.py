"""Compile every kernel an episode needs before the clock of the first episode runs."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numba.core import event
from numpy.typing import NDArray

from sar_core.geometry import box, distance_to
from sar_core.sweep import sweep
from sar_core.tracks import beside, near_obstacles, to_fence
from sar_eval.backends.embedded import make_receiver
from sar_eval.episode.briefing import briefing_of
from sar_eval.episode.sensing import Sensing
from sar_eval.scenario.model import Episode
from sar_sim.judging.coverage import Coverage, CoverageConfig
from sar_sim.judging.referee import Referee, RefereeConfig
from sar_sim.radio.devices import Device, DeviceKind
from sar_sim.radio.link import Link
from sar_sim.vehicle.fleet import Fleet, add_path, stamp_ns
from sar_swarm.piloting.navigation import Chart, pursue
from sar_swarm.piloting.neighbours import SeparationLimits
from sar_swarm.piloting.patternlist import STANDARD, find
from sar_swarm.piloting.patterns import Place, next_waypoint, remember, start_walk
from sar_swarm.piloting.policy import OBSERVATIONS, forward
from sar_swarm.piloting.safety import FRESH, Situation, protect
from sar_swarm.planning.trajectory import MotionLimits
from sar_swarm.sensing.attention import AttentionConfig, Bias, view_weights
from sar_swarm.sensing.fusion import COLUMNS, keyframes

Floats = NDArray[np.float64]
Tell = Callable[[int, int, str], None]
"""Hears of a group of kernels of which some must be compiled: which it is, of how many, and what it is for."""


def compile_kernels(episode: Episode, tell: Tell | None = None) -> float:
    """Touch each compiled function once with arguments of the episode's types; returns the seconds it took.

    From a warm cache this takes some seconds, on a fresh machine minutes; ``tell`` hears only of what is compiled.
    """
    began = time.perf_counter()
    touch(flight_groups(episode), tell)
    return time.perf_counter() - began


def flight_groups(episode: Episode) -> list[tuple[str, Callable[[], None]]]:
    touching = {
        "vehicles and wind": _compile_vehicles,
        "referee and coverage": _compile_judging,
        "lanes, fence and obstacles of tracks": _compile_conduct,
        "planner": _compile_planner,
        "safety layer": _compile_safety,
        "patterns and policies": _compile_patterns,
        **({} if episode.radio is None else {"receivers, gate and fusion": _compile_sensing}),
    }
    return [(what, functools.partial(touch, episode)) for what, touch in touching.items()]


class _Notice(event.Listener):
    """Tells of a group at the first of its kernels that is not in the cache."""

    def __init__(self, say: Callable[[], None]) -> None:
        self.say, self.said = say, False

    def on_start(self, _: Any) -> None:
        if not self.said:
            self.said = True
            self.say()

    def on_end(self, _: Any) -> None:
        pass


def touch(groups: Sequence[tuple[str, Callable[[], None]]], tell: Tell | None) -> None:
    for number, (what, touch) in enumerate(groups, start=1):
        say = functools.partial(tell or (lambda *_: None), number, len(groups), what)
        with event.install_listener("numba:compile", _Notice(say)):
            touch()


def _compile_vehicles(episode: Episode) -> None:
    """One alone too: its track lies in memory without gaps, which is another type to numba."""
    for count in (1, 2):
        fleet, track = _flown(episode, count)
        fleet.snapshot()
        add_path(track, np.zeros(count))
    link = Link(2, 0, 0, 0.0, 0.0, 0.0)
    link.exchange(0.0, np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 2)))


def _compile_judging(episode: Episode) -> None:
    """What the referee calls in every tick, and at the end of an episode."""
    times = np.arange(14, dtype=np.float64) * 0.004
    config = RefereeConfig(0.3, 0.2, episode.world.fence, 120.0, episode.world.obstacles)
    for count in (1, 2):
        _, track = _flown(episode, count)
        Referee(config, count).observe(times, track, np.ones(count, bool))
        Coverage(CoverageConfig((0.0, 0.0, 20.0, 20.0)), count).observe(times, track)
    sweep(episode.world.area, np.array([0.0, 1.0]), np.array([[[0.0, 0.0, 30.0]], [[8.0, 0.0, 30.0]]]))


def _compile_conduct(episode: Episode) -> None:
    """What looks at the tracks of a whole search, once it is over."""
    track = np.array([[0.0, 0.0, 30.0], [8.0, 0.0, 30.0]])
    beside(np.zeros((2, 2)), track)
    to_fence(episode.world.fence, track)
    near_obstacles(episode.world.obstacles, track, 2.0)


def _flown(episode: Episode, count: int) -> tuple[Fleet, Floats]:
    """So many vehicles and their first tick."""
    spawns = np.array([[9.0 * i, 0.0, 0.0, 0.0] for i in range(count)])
    fleet = Fleet(episode.vehicle, spawns, 0, 0, episode.wind_mps, episode.world.obstacles)
    return fleet, fleet.tick(13)


def _others() -> Floats:
    """What a drone knows of the other, which stands behind the wall."""
    others = Link(2, 0, 0, 0.0, 0.0, 0.0).others(0).copy()
    others[1] = [25.0, 3.0, 30.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    return others


HERE = np.array([0.0, 0.0, 30.0])
WALL = box(10.0, 0.0, 30.0, 2.0, 40.0, 20.0)[None, :]


def _compile_planner(episode: Episode) -> None:
    """Plan round a wall with a neighbour standing behind it, and go on along the way; layouts ask how far walls are."""
    distance_to(WALL[0], 0.0, 0.0, 0.0)
    chart = Chart(WALL, (-60.0, -60.0, 5.0, 60.0, 60.0, 60.0), MotionLimits())
    others = _others()
    way, _ = pursue(chart, None, (30.0, 0.0, 30.0), 3.0, HERE, HERE * 0.0, others, 0.0, 1)
    pursue(chart, way, (30.0, 0.0, 30.0), 3.0, HERE, HERE * 0.0, others, 2.0, 1)


def _compile_safety(episode: Episode) -> None:
    """Keep clear of wall and neighbour."""
    fence = episode.world.fence
    keep = SeparationLimits()
    protect(Situation(HERE, HERE * 0.0, (8.0, 0.0), 30.0, _others(), 0.0, WALL, fence, keep, 0, FRESH))


def _compile_patterns(episode: Episode) -> None:
    """Ask each that chooses as it goes, and the policy, if there is one."""
    place = Place(0, 2, episode.world.area, 28.0, (0.0, 0.0), _others()[:, :2].copy(), (0, 0))
    walk = remember(start_walk(2), (0.0, 0.0), place.peers, 28.0)
    for pattern in STANDARD:
        if find(pattern).kind == "reactive":
            next_waypoint(pattern, walk, place)
    if episode.actor is not None:
        forward(episode.actor, np.zeros(OBSERVATIONS))


def _compile_sensing(episode: Episode) -> None:
    """Let two drones hover beside a transmitter that is easy to hear until it was heard, fused and weighed."""
    x_min, y_min, x_max, y_max = episode.world.area
    x, y = 0.5 * (x_min + x_max), 0.5 * (y_min + y_max)
    calm = episode.scenario.model_copy(update={"drones": 2, "sigma": 0.02, "kappa": 16.0})
    device = Device(2, DeviceKind.VICTIM, np.array([[0.0, x + 5.0, y, 0.5]]), beacon=True)
    episode = replace(episode, scenario=calm, devices=(device,))
    places = np.array([[x + 9.0 * i, y, 50.0, 0.0] for i in range(2)])
    state = Fleet(episode.vehicle, places, 0, 0, in_air=True).snapshot()
    told = briefing_of(episode).radio
    assert told is not None
    sensing, receiver = Sensing(2, told), make_receiver(episode)
    for tick in range(1, 121):
        frames = receiver.listen(stamp_ns(tick), tick, state.position, state.attitude)
        sensing.hear(stamp_ns(tick), frames, state.est_position, state.est_attitude)
        sensing.think(tick, stamp_ns(tick) * 1e-9, [[], []])
    keyframes(np.ones((3, COLUMNS)), 2)
    view_weights(np.ones((2, 3)), np.zeros(2), np.eye(2), np.full(2, 30.0), AttentionConfig(bias=Bias.SOURCE))
