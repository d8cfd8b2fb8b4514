"""How long one decision takes: latency only, on this machine, beside figures others published for theirs.

The published ones come from another machine and other code (an actor, a three-drone fusion formula, a 10 ms control
budget); they are quoted to show the order of magnitude and are nobody's peer here.
"""

from __future__ import annotations

import copy
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench import REPEATS, Figure
from benchmarks.untrained import random_actor
from sar_core.errors import RunError
from sar_eval.backends.embedded import make_receiver
from sar_eval.episode.briefing import briefing_of
from sar_eval.episode.flight import Flight
from sar_eval.episode.kernels import compile_kernels
from sar_eval.episode.sensing import Sensing
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_sim.vehicle.fleet import Fleet, stamp_ns
from sar_swarm.piloting.policy import OBSERVATIONS, forward, load_actor

ACTOR_US = 3.3
FUSION_US = 0.054
BUDGET_US = 10_000.0


def figures(quick: bool, tell: Callable[[str], None]) -> list[Figure]:
    """Actor inference, fusion of three views, and a whole tick of eight drones."""
    tell("actor inference")
    found = [_actor(200 if quick else 5000)]
    tell("fusion of three views")
    found.append(_fusion(10 if quick else 100))
    tell("a tick of eight drones")
    return [*found, *_tick(200 if quick else 2000)]


def _best(once: Callable[[], float]) -> float:
    return min(once() for _ in range(REPEATS))


def _actor(calls: int) -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        actor = load_actor(random_actor(Path(folder) / "actor.npz", 0))
    seen = np.linspace(-1.0, 1.0, OBSERVATIONS)
    forward(actor, seen)

    def once() -> float:
        began = time.process_time()
        for _ in range(calls):
            forward(actor, seen)
        return (time.process_time() - began) / calls

    return Figure("latency: actor inference, 64-128-64-4", 1e6 * _best(once), "µs", "published elsewhere", ACTOR_US)


def _fusion(calls: int) -> Figure:
    """Solving for one transmitter heard by three drones from three sides, covariance and GDOP included."""
    scenario = Scenario(drones=3, victims=1, decoys=0)
    episode = prepare(scenario, 0, 0)
    device = episode.devices[0].position_at(0.0)
    angles = 2.0 * np.pi * np.arange(3) / 3.0
    places = np.array([[device[0] + 30.0 * np.cos(a), device[1] + 30.0 * np.sin(a), 30.0, 0.0] for a in angles])
    state = Fleet(episode.vehicle, places, 0, 0, in_air=True).snapshot()
    told = briefing_of(episode).radio
    assert told is not None
    sensing, receiver = Sensing(scenario.drones, told), make_receiver(episode)
    centre = sensing.centres[0]
    ticks = 200
    for tick in range(1, ticks + 1):
        frames = receiver.listen(stamp_ns(tick), tick, state.position, state.attitude)
        for seen in sensing.hear(stamp_ns(tick), frames, state.est_position, state.est_attitude).observations:
            centre.add(seen)
    if not copy.deepcopy(centre).solve(stamp_ns(ticks) * 1e-9):
        raise RunError("bench: three drones around a transmitter found nothing to fuse")

    def once() -> float:
        waiting = [copy.deepcopy(centre) for _ in range(calls)]
        began = time.process_time()
        for one in waiting:
            one.solve(stamp_ns(ticks) * 1e-9)
        return (time.process_time() - began) / calls

    name = "latency: fusion of one transmitter from three views"
    return Figure(name, 1e6 * _best(once), "µs", "published elsewhere, a weighted mean", FUSION_US)


def _tick(ticks: int) -> list[Figure]:
    """Eight drones over the village: the whole tick with its simulation, and what the swarm itself takes of it."""
    episode = prepare(Scenario(world="village", drones=8), 0, 0)
    compile_kernels(episode)
    flight = Flight(episode, None)
    while flight.score.search_time_s < 20.0:
        flight.advance()
    whole: list[float] = []
    deciding: list[float] = []
    decide = flight.swarm.decide

    def timed(*known: Any) -> None:
        began = time.process_time()
        decide(*known)
        deciding.append(time.process_time() - began)

    flight.swarm.decide = timed  # type: ignore[method-assign,assignment]
    for _ in range(ticks):
        began = time.process_time()
        flight.advance()
        whole.append(time.process_time() - began)
    budget = "control budget"
    worst = float(np.quantile(whole, 0.99))
    return [
        Figure(
            "latency: tick of 8 drones, simulation and sensing included",
            1e6 * float(np.mean(whole)),
            "µs",
            budget,
            BUDGET_US,
        ),
        Figure("latency: the same, 99th percentile", 1e6 * worst, "µs", budget, BUDGET_US),
        Figure("latency: deciding for 8 drones", 1e6 * float(np.mean(deciding)), "µs", budget, BUDGET_US),
    ]
