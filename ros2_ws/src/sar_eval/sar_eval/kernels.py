"""Compile every kernel an episode needs before the clock of the first episode runs."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from sar_core.geometry import box
from sar_eval.config import Episode
from sar_eval.sensing import Sensing, make_receiver
from sar_sim.coverage import Coverage, CoverageConfig
from sar_sim.fleet import Fleet, add_path, stamp_ns
from sar_sim.link import Link
from sar_sim.referee import Referee, RefereeConfig
from sar_swarm.attention import AttentionConfig, Bias, view_weights
from sar_swarm.fusion import COLUMNS, keyframes
from sar_swarm.navigation import Chart, pursue
from sar_swarm.neighbours import Manners
from sar_swarm.patterns import REACTIVE, Place, next_waypoint, remember, start_walk
from sar_swarm.policy import OBSERVATIONS, forward
from sar_swarm.safety import FRESH, protect
from sar_swarm.trajectory import Limits

Floats = NDArray[np.float64]


def compile_kernels(episode: Episode) -> float:
    """Touch each compiled function once with arguments of the episode's types; returns the seconds it took.

    From a warm cache this takes well under a second, on a fresh machine about a minute.
    """
    began = time.perf_counter()
    spawns = np.array([[0.0, 0.0, 0.0, 0.0], [9.0, 0.0, 0.0, 0.0]])
    fleet = Fleet(episode.vehicle, spawns, 0, 0, episode.wind_mps, episode.world.obstacles)
    track = fleet.tick(13)
    fleet.snapshot()
    add_path(track, np.zeros(2))
    times = np.arange(14, dtype=np.float64) * 0.004
    config = RefereeConfig(0.3, 0.2, episode.world.fence, 120.0, episode.world.obstacles)
    Referee(config, 2).observe(times, track, np.array([True, True]))
    Coverage(CoverageConfig((0.0, 0.0, 20.0, 20.0)), 2).observe(times, track)
    link = Link(2, 0, 0, 0.0, 0.0, 0.0)
    link.exchange(0.0, np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 2)))
    _compile_flying(episode, link.others(0))
    if episode.radio is not None:
        _compile_sensing(episode)
    return time.perf_counter() - began


def _compile_flying(episode: Episode, others: Floats) -> None:
    """Plan round a wall with a neighbour standing behind it, keep clear of both, and ask the reactive patterns."""
    here = np.array([0.0, 0.0, 30.0])
    wall = box(10.0, 0.0, 30.0, 2.0, 40.0, 20.0)[None, :]
    chart = Chart(wall, (-60.0, -60.0, 5.0, 60.0, 60.0, 60.0), Limits())
    others = others.copy()
    others[1] = [25.0, 3.0, 30.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    way, _ = pursue(chart, None, (30.0, 0.0, 30.0), 3.0, here, here * 0.0, others, 0.0, 1)
    pursue(chart, way, (30.0, 0.0, 30.0), 3.0, here, here * 0.0, others, 2.0, 1)
    protect(here, here * 0.0, (8.0, 0.0), 30.0, others, 0.0, wall, episode.world.fence, Manners(), 0, FRESH)
    if episode.actor is not None:
        forward(episode.actor, np.zeros(OBSERVATIONS))
    if episode.scenario.pattern in REACTIVE:
        place = Place(0, 2, episode.world.area, 28.0, (0.0, 0.0), others[:, :2].copy(), (0, 0))
        next_waypoint(episode.scenario.pattern, remember(start_walk(2), (0.0, 0.0), place.peers, 28.0), place)


def _compile_sensing(episode: Episode) -> None:
    """Let drones hover over the area's middle until something was heard, fused and weighed."""
    n = episode.scenario.drones
    x_min, y_min, x_max, y_max = episode.world.area
    places = np.array([[0.5 * (x_min + x_max) + 9.0 * i, 0.5 * (y_min + y_max), 50.0, 0.0] for i in range(n)])
    state = Fleet(episode.vehicle, places, 0, 0, in_air=True).snapshot()
    sensing, receiver = Sensing(episode), make_receiver(episode)
    for tick in range(1, 121):
        frames = receiver.listen(stamp_ns(tick), tick, state.position, state.attitude)
        sensing.hear(stamp_ns(tick), frames, state.est_position, state.est_attitude)
        sensing.think(tick, stamp_ns(tick) * 1e-9, [[] for _ in range(n)])
    keyframes(np.ones((3, COLUMNS)), 2)
    view_weights(np.ones((2, 3)), np.zeros(2), np.eye(2), np.full(2, 30.0), AttentionConfig(bias=Bias.SOURCE))
