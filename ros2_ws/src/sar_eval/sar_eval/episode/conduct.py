"""The swarm's conduct in an episode: what the referee saw and the drones were asked, as the terms of every index."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sar_core.conduct import Conduct, FlightGround, Guarded, SearchFlight, conduct_of
from sar_core.indices import Indices, load_indices
from sar_eval.bag.logbook import planned_routes
from sar_eval.bag.tick import Beliefs, DroneStatuses
from sar_eval.scenario.model import Episode
from sar_eval.scenario.resources import share_dir
from sar_sim.judging.coverage import Coverage
from sar_sim.vehicle.fleet import FleetState
from sar_swarm.piloting.controller import Command

Floats = NDArray[np.float64]


def index_file(name: str) -> Path:
    """The file of a system's constants, such as "safety"."""
    return share_dir("configs") / "indices" / f"{name}.yaml"


def indices() -> Indices:
    """The constants this installation carries; read again where a file has changed since the last call."""
    folder = share_dir("configs") / "indices"
    return _loaded(folder, tuple((f, f.stat().st_mtime_ns, f.stat().st_size) for f in sorted(folder.glob("*.yaml"))))


@functools.lru_cache(maxsize=1)
def _loaded(folder: Path, stamps: tuple[tuple[Path, int, int], ...]) -> Indices:
    return load_indices(folder)


class ConductLog:
    """Keeps the search's ticks as plain numbers; what they come to is worked out once, at the end.

    Thousands of ticks of kept objects would be walked over by every collection of garbage: a twelfth of an episode.
    """

    def __init__(self) -> None:
        self._times = array("d")
        self._truth: list[Floats] = []
        self._beliefs: list[Floats] = []
        self._velocity: list[Floats] = []
        self._guards = array("d")
        self._codes = array("B")

    def keep(
        self,
        time_s: float,
        state: FleetState,
        statuses: DroneStatuses,
        commands: Sequence[Command],
        beliefs: Beliefs,
    ) -> None:
        """Take in one tick: the truth, how the drones stood after it, and what they were asked and believed."""
        self._times.append(time_s)
        self._truth += (state.position, state.velocity, state.attitude)
        self._beliefs += beliefs
        self._codes.extend(statuses.phase)
        self._codes.extend(statuses.failsafe)
        for command in commands:
            (x, y), excess_mps, band, _ = command.guard
            self._velocity.append(command.velocity)
            self._guards.extend((x, y, excess_mps, band))

    def conduct(self, episode: Episode, cover: Coverage) -> Conduct | None:
        """The terms of the search; None where there was none to speak of."""
        ticks, overlap = len(self._times), cover.overlap_ratio
        if ticks < 2:
            return None
        codes = np.frombuffer(self._codes, np.uint8).astype(np.int64).reshape(ticks, 2, -1)
        told = np.frombuffer(self._guards).reshape(ticks, -1, 4)
        flown = SearchFlight(
            times_s=np.array(self._times),
            position=_joined(self._truth[0::3]),
            velocity=_joined(self._truth[1::3]),
            attitude=np.roll(_joined(self._truth[2::3]), -1, axis=-1),
            phase=codes[:, 0],
            failsafe=codes[:, 1],
            path_m=cover.path_m,
            recovered_m=0.0 if overlap is None else overlap * cover.path_m,
            around=surroundings(episode),
            guarded=Guarded(
                wanted=told[..., :2],
                commanded=_joined(self._velocity).reshape(ticks, -1, 3)[..., :2],
                limit_excess=told[..., 2],
                band=told[..., 3].astype(np.int64),
            ),
            believed=_joined(self._beliefs[0::2]),
            heard_s=_joined(self._beliefs[1::2]),
        )
        return conduct_of(flown, indices())


def surroundings(episode: Episode) -> FlightGround:
    """Where the episode is flown."""
    world = episode.world
    return FlightGround(
        area_m=world.area,
        obstacles=world.obstacles,
        hull_radius_m=episode.vehicle.airframe.hull_radius,
        fence=world.fence,
        homes=episode.spawns,
        routes=planned_routes(episode),
    )


def _joined(parts: Sequence[Floats]) -> Floats:
    """Arrays of one shape as rows of one array; for thousands of small ones much faster than numpy's own way."""
    return np.concatenate(parts).reshape(len(parts), *parts[0].shape)
