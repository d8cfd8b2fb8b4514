"""An episode's logbook: a second of flight at a time becomes messages in the bag."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_eval import __version__
from sar_eval.bag.encoders import Batch, DroneHealth, Encoder, EpisodeProgress, Letter, episode_topics, health_of
from sar_eval.bag.tick import DroneStatuses, Heard, VictimReport
from sar_eval.bag.writer import BagWriter, Recording
from sar_eval.scenario.model import Episode
from sar_sim.judging.referee import Event
from sar_sim.judging.scoring import Judged
from sar_sim.vehicle.fleet import FleetState
from sar_swarm.piloting.controller import Command
from sar_swarm.piloting.patterns import fixed_routes

Floats = NDArray[np.float64]


BAG_SCHEMA_VERSION = "2"
"""1 had neither what the safety layer was asked and did, nor the planned routes."""


def planned_routes(episode: Episode) -> tuple[Floats, ...] | None:
    """Every drone's waypoints [K, 2], ENU metres, as planned before the mission; None where they choose as they go."""
    s = episode.scenario
    return episode.routes or fixed_routes(s.pattern, episode.world.area, s.drones, s.swath_m, s.overlap)


def bag_metadata(episode: Episode) -> dict[str, dict[str, str]]:
    """MCAP metadata records: the resolved configuration and where everything came from."""
    resolved = episode.resolved()
    routes = planned_routes(episode)
    planned = {} if routes is None else {"routes": {"routes": json.dumps([route.tolist() for route in routes])}}
    return {
        **planned,
        "sar_eval": {
            "schema_version": BAG_SCHEMA_VERSION,
            "episode_id": episode.episode_id,
            "tier": episode.tier,
            "configuration": json.dumps(resolved, sort_keys=True),
            "config_sha256": episode.config_sha256,
            "world": episode.world.name,
            "world_sha256": episode.world.sha256,
            "seed": str(episode.seed),
            "episode": str(episode.index),
            "layout": str(episode.layout),
            "episode_set": episode.episode_set,
            "episode_set_sha256": episode.episode_set_sha256 or "",
            "version": __version__,
            "numpy": np.__version__,
        },
        "world": {
            "schema_version": "1",
            "world_sha256": episode.world.sha256,
            "geometry": json.dumps(world_geometry(episode), sort_keys=True),
        },
    }


def world_geometry(episode: Episode) -> dict[str, Any]:
    """What a reader of the bag needs to draw the place and to measure distances in it; ENU metres."""
    w = episode.world
    return {
        "name": w.name,
        "obstacles": w.obstacles.tolist(),
        "obstacle_names": list(w.obstacle_names),
        "area_m": list(w.area),
        "fence": w.fence.tolist(),
        "ceiling_m": w.ceiling_m,
        "spawns": w.spawns.tolist(),
        "hull_radius_m": episode.vehicle.airframe.hull_radius,
    }


def make_writer(episode: Episode, directory: Path, csi: bool) -> BagWriter:
    """A bag for an episode, with all its topics and where everything came from; with ``csi`` for raw frames too."""
    radio = episode.radio is not None
    topics = episode_topics(episode.scenario.drones, radio, csi and radio)
    return BagWriter(directory, topics, bag_metadata(episode))


class Logbook:
    """Collects one second of ticks as columns and writes them in one go: messages are made K at a time."""

    def __init__(self, episode: Episode, directory: Path, csi: bool = False) -> None:
        self._csi = csi and episode.radio is not None
        self._encoder = Encoder(episode)
        self._writer = make_writer(episode, directory, csi)
        self._clear()

    @property
    def partial(self) -> Path:
        return self._writer.partial

    def _clear(self) -> None:
        self._stamps: list[int] = []
        self._states: list[FleetState] = []
        self._commands: list[Sequence[Command]] = []
        self._health: list[DroneHealth] = []

    def tick(self, stamp_ns: int, state: FleetState, commands: Sequence[Command]) -> None:
        """Keep one tick until the next flush."""
        self._stamps.append(stamp_ns)
        self._states.append(state)
        self._commands.append(commands)

    def flush(self) -> None:
        """Write what has been kept; from here on it survives the end of this process."""
        if self._stamps:
            stamps = np.array(self._stamps)
            self._batches(stamps, [self._encoder.clock(stamps)])
            self._batches(stamps, self._encoder.world(stamps, self._states))
            self._batches(stamps, self._encoder.setpoints(stamps, self._commands))
        if self._health:
            self._batches(np.array([row.stamp_ns for row in self._health]), self._encoder.health(self._health))
        self._clear()
        self._writer.flush()

    def _batches(self, stamps: NDArray[np.int64], batches: Iterable[Batch]) -> None:
        for topic, rows in batches:
            self._writer.write_batch(topic, stamps, rows)

    def _letters(self, stamp_ns: int, letters: Iterable[Letter]) -> None:
        for topic, payload in letters:
            self._writer.write(topic, stamp_ns, payload)

    def uav_status(
        self,
        stamp_ns: int,
        statuses: DroneStatuses,
        commands: Sequence[Command],
        charge: Floats,
        delivery: Floats,
        link_age_s: Floats,
        worst: Sequence[tuple[int, int]],
    ) -> None:
        """Twice a second: each drone's health, kept until the next flush."""
        self._health.append(health_of(stamp_ns, statuses, commands, charge, delivery, link_age_s, worst))

    def info(self, stamp_ns: int) -> None:
        """The one latched message that names the episode."""
        self._letters(stamp_ns, [self._encoder.info(stamp_ns)])

    def status(self, stamp_ns: int, status: EpisodeProgress) -> None:
        """Once a second: how far the episode is."""
        self._letters(stamp_ns, [self._encoder.status(stamp_ns, status)])

    def coverage(self, stamp_ns: int, scanned: NDArray[np.bool_], cell_m: float) -> None:
        """Once a second: the scanned cells."""
        self._letters(stamp_ns, [self._encoder.coverage(stamp_ns, scanned, cell_m)])

    def event(self, stamp_ns: int, event: Event) -> None:
        """A referee's announcement."""
        self._letters(stamp_ns, [self._encoder.event(stamp_ns, event)])

    def verdict(self, stamp_ns: int, judged: Judged) -> None:
        """The referee's word on an issue or an update."""
        self._letters(stamp_ns, [self._encoder.report_event(stamp_ns, judged)])

    def sensing(self, stamp_ns: int, heard: Heard, reports: Sequence[VictimReport]) -> None:
        """What the drones observed, how their gates changed, what they claimed; raw frames if wanted."""
        self._letters(stamp_ns, self._encoder.observations(stamp_ns, heard))
        self._letters(stamp_ns, (self._encoder.victim_report(stamp_ns, found) for found in reports))
        if self._csi:
            self._letters(stamp_ns, self._encoder.frames(stamp_ns, heard.frames))

    def devices(self, stamp_ns: int, time_s: float) -> None:
        """Once a second: where every transmitter truly is."""
        self._letters(stamp_ns, [self._encoder.devices(stamp_ns, time_s)])

    def close(self) -> Recording:
        """Finish and verify the bag."""
        self.flush()
        return self._writer.close()

    def abandon(self) -> None:
        self._writer.abandon()

    def discard(self) -> None:
        self._writer.discard()
