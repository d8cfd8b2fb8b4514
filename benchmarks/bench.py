"""Every speed figure we quote, measured side by side with its peer in one run: ratios travel, seconds do not.

Kernels are timed by the CPU time of this process, whole episodes by the clock on the wall.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.linkframe import link_frame_s
from benchmarks.peer import MujocoFleet
from sar_core.geometry import cylinder
from sar_core.streams import stream
from sar_eval.backends.embedded import make_receiver
from sar_eval.episode.briefing import briefing_of
from sar_eval.episode.flight import fly_episode
from sar_eval.episode.kernels import compile_kernels
from sar_eval.episode.sensing import Sensing
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import load_named_vehicle, prepare, radio_path
from sar_eval.scenario.resources import world_path
from sar_sim.radio.radioconfig import load_radio
from sar_sim.vehicle.airframe import Vehicle
from sar_sim.vehicle.fleet import Fleet, stamp_ns, step_of_tick
from sar_sim.world.world import load_world

Floats = NDArray[np.float64]

REPEATS = 3
WIND_ENU = np.array([2.0, 0.0, 0.0])
WIND_NED = np.array([0.0, 2.0, 0.0])


@dataclass(frozen=True)
class Figure:
    """One measured speed; ``ratio`` compares it with the peer of the same run, ``target`` is what we promise."""

    name: str
    value: float
    unit: str
    peer: str | None = None
    peer_value: float | None = None
    ratio: float | None = None
    target: float | None = None


def measure(quick: bool, tell: Callable[[str], None]) -> list[Figure]:
    """All figures. ``tell`` hears what is being measured."""
    from benchmarks import latency, planbench

    vehicle = load_named_vehicle("x500")
    seconds = 60 if quick else 900
    tell("vehicle kernel against MuJoCo")
    figures = [_kernel_against_mujoco(vehicle, seconds)]
    tell("a whole recorded episode")
    figures.append(_episode(quick, sensing=False))
    tell("a whole recorded episode with sensing")
    figures.append(_episode(quick, sensing=True))
    tell("CSI synthesis against plain numpy")
    figures.append(_link_frame(quick))
    for drones, devices in ((4, 4), (16, 4), (4, 16)):
        tell(f"sensing with {drones} drones and {devices} transmitters")
        figures.append(_sensing_tick(drones, devices, 100 if quick else 1000))
    for drones in (4, 16, 64):
        tell(f"kernel with {drones} drones")
        figures += _scaling(vehicle, drones, max(seconds // drones, 10))
    return [*figures, *planbench.figures(quick, tell), *latency.figures(quick, tell)]


def _best(once: Callable[[], float]) -> float:
    return max(once() for _ in range(REPEATS))


def _kernel_rate(vehicle: Vehicle, drones: int, obstacles: Floats, seconds: int, speed_mps: float = 0.0) -> float:
    """Simulated seconds per second, called once per swarm tick as an episode does.

    The drones hover, or with a speed fly 10 s east and 10 s west in turn.
    """
    spawns = _grid(drones)
    fleet = Fleet(vehicle, spawns, 0, 0, WIND_ENU, obstacles, in_air=True)
    free = np.full(3, np.nan)
    for i, spawn in enumerate(spawns):
        fleet.command(i, spawn[:3], free, free, 0.0)
    fleet.tick(step_of_tick(20))
    ticks = seconds * 20
    began = time.process_time()
    for tick in range(ticks):
        if speed_mps > 0.0 and tick % 200 == 0:
            velocity = np.array([speed_mps if tick % 400 == 0 else -speed_mps, 0.0, 0.0])
            for i in range(drones):
                fleet.command(i, free, velocity, free, 0.0)
        fleet.tick(step_of_tick(tick + 1) - step_of_tick(tick))
    return seconds / (time.process_time() - began)


def _mujoco_rate(vehicle: Vehicle, drones: int, obstacles: Floats, seconds: int) -> float:
    peer = MujocoFleet(vehicle, _grid(drones), obstacles, WIND_NED)
    peer.run(1)
    began = time.process_time()
    peer.run(seconds)
    return seconds / (time.process_time() - began)


def _grid(drones: int) -> Floats:
    """Hover points 10 m apart at 30 m, clear of the obstacles."""
    side = int(np.ceil(np.sqrt(drones)))
    return np.array([[10.0 * (k % side), 10.0 * (k // side), 30.0, 0.0] for k in range(drones)])


def _trunks(count: int) -> Floats:
    """Trunks of 20 m scattered over 400 x 400 m."""
    places = stream("bench trunks").uniform(-200.0, 200.0, (count, 2))
    return np.array([cylinder(x, y, 10.0, 0.5, 20.0) for x, y in places]).reshape(count, 8)


def _kernel_against_mujoco(vehicle: Vehicle, seconds: int) -> Figure:
    obstacles = _trunks(60)
    ours, theirs = [], []
    for _ in range(REPEATS):
        ours.append(_kernel_rate(vehicle, 5, obstacles, seconds))
        theirs.append(_mujoco_rate(vehicle, 5, obstacles, seconds // 3))
    return Figure(
        "vehicle kernel, 5 drones, 60 obstacles, 4 ms",
        max(ours),
        "simulated s per s",
        "MuJoCo with the same control law compiled",
        max(theirs),
        max(ours) / max(theirs),
        3.0,
    )


def _link_frame(quick: bool) -> Figure:
    """One heard frame of CSI: paths, channel, impairments, quantisation; the peer is the same in plain numpy."""
    world, radio = load_world(world_path("village")), load_radio(radio_path("open_ground"))
    runs = [link_frame_s(world, radio, 200 if quick else 1000) for _ in range(REPEATS)]
    ours, numpys = min(run[0] for run in runs), min(run[1] for run in runs)
    name = "CSI per link-frame, village"
    return Figure(name, 1e6 * ours, "µs", "plain numpy", 1e6 * numpys, numpys / ours, 3.0)


def _sensing_tick(drones: int, devices: int, ticks: int) -> Figure:
    """One tick of the whole sensing chain, frames to fusion, for drones hovering over the open field."""
    scenario = Scenario(drones=drones, victims=1, decoys=devices - 1)
    episode = prepare(scenario, 0, 0)
    state = Fleet(episode.vehicle, _grid(drones), 0, 0, in_air=True).snapshot()
    told = briefing_of(episode).radio
    assert told is not None
    sensing, receiver = Sensing(drones, told), make_receiver(episode)
    nothing: list[list[object]] = [[] for _ in range(drones)]

    def sense(tick: int) -> None:
        frames = receiver.listen(stamp_ns(tick), tick, state.position, state.attitude)
        sensing.hear(stamp_ns(tick), frames, state.est_position, state.est_attitude)
        sensing.think(tick, stamp_ns(tick) * 1e-9, nothing)

    for tick in range(1, 61):
        sense(tick)
    began = time.process_time()
    for tick in range(61, 61 + ticks):
        sense(tick)
    cost = (time.process_time() - began) / ticks
    name = f"sensing per link and tick, {drones} drones, {devices} transmitters"
    return Figure(name, 1e6 * cost / (drones * devices), "µs")


def _episode(quick: bool, sensing: bool) -> Figure:
    scenario = Scenario(
        world="village", drones=4, duration_s=20.0 if quick else 240.0, radio="open_ground" if sensing else None
    )
    episode = prepare(scenario, 0, 0)
    compile_kernels(episode)

    def once() -> float:
        with tempfile.TemporaryDirectory() as folder:
            return float(fly_episode(episode, Path(folder) / "bag").run["rtf"])

    rate = _best(once)
    name = f"whole recorded {scenario.duration_s:.0f} s episode, village, 4 drones"
    if sensing:
        name += ", sensing 1 victim and 3 decoys"
    return Figure(name, rate, "simulated s per s", "real time", 1.0, rate, 60.0 if sensing else 100.0)


def _scaling(vehicle: Vehicle, drones: int, seconds: int) -> list[Figure]:
    """What one more drone and one more obstacle cost while flying over 240 trunks at 8 m/s."""
    empty = _best(lambda: _kernel_rate(vehicle, drones, _trunks(0), seconds, 8.0))
    dense = _best(lambda: _kernel_rate(vehicle, drones, _trunks(240), seconds, 8.0))
    per_drone = 1e6 / empty / drones
    per_obstacle = max(1e6 / dense - 1e6 / empty, 0.0) / 240
    return [
        Figure(f"cost per drone at {drones} drones", per_drone, "µs per simulated s"),
        Figure(f"cost per obstacle at {drones} drones", per_obstacle, "µs per simulated s"),
    ]


def as_table(figures: list[Figure]) -> Table:
    """For people."""
    table = Table(title=f"Speed, best of {REPEATS} (ratios within this run)")
    for name in ("figure", "value", "unit", "peer", "peer's value", "ratio", "target"):
        table.add_column(name, justify="left" if name in ("figure", "unit", "peer") else "right")
    for f in figures:
        number = [
            f"{v:.3g}" if v is not None and v < 100 else f"{v:.0f}" if v is not None else ""
            for v in (f.value, f.peer_value, f.ratio)
        ]
        target = f"≥ {f.target:g} x" if f.target is not None else ""
        ratio = f"{number[2]} x" if number[2] else ""
        table.add_row(f.name, number[0], f.unit, f.peer or "", number[1], ratio, target)
    return table
