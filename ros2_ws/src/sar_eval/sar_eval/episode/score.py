"""The referee's part of an episode: from the truth and from what the drones report to events, figures and the end."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import RunError
from sar_eval.backends.backend import SimTick
from sar_eval.bag.encoders import EpisodeProgress
from sar_eval.bag.tick import STATUS_TICKS, Beliefs, DroneStatuses
from sar_eval.episode.conduct import ConductLog
from sar_eval.episode.operator import Orders
from sar_eval.scenario.model import Episode
from sar_sim.judging.coverage import Coverage, CoverageConfig
from sar_sim.judging.referee import Event, Referee, RefereeConfig
from sar_sim.judging.scoring import Hearing, Judged, Owner, Report, ReportScorer, ReportVerdict
from sar_sim.radio.devices import DeviceKind, known_addresses
from sar_sim.vehicle.fleet import FleetState, add_path, stamp_ns
from sar_swarm.piloting.controller import Command, Order, Phase
from sar_swarm.piloting.failsafe import Failsafe

Floats = NDArray[np.float64]

LANDING_MPS = 3.0
"""A drone that comes down faster than this is not landing; where it touches the ground is a collision."""
AT_REST_MPS = 0.1
GROUNDED = (Phase.IDLE, Phase.TAKEOFF, Phase.LAND, Phase.LANDED)

_STATUS_PHASE = {Order.WAIT: 1, Order.TAKE_OFF: 1, Order.SEARCH: 2, Order.RETURN: 3}


class Score:
    """Keeps what an episode comes to. Every tick ``observe`` the world, then ``note`` what the swarm made of it."""

    def __init__(self, episode: Episode, first: SimTick, statuses: DroneStatuses) -> None:
        w, n = episode.world, episode.scenario.drones
        frame = episode.vehicle.airframe
        self.episode = episode
        self.referee = Referee(
            RefereeConfig(frame.hull_radius, frame.gear_height, w.fence, w.ceiling_m, w.obstacles), n
        )
        self.coverage = Coverage(CoverageConfig(w.area), n)
        self.victims = [device for device in episode.devices if device.kind is DeviceKind.VICTIM]
        places = ((victim, device.position_at(0.0)) for victim, device in enumerate(self.victims))
        self.scorer = ReportScorer({self.victims[v].address: Owner(v, float(at[0]), float(at[1])) for v, at in places})
        self.listed = frozenset(known_addresses(episode.devices))
        self.tick = 0
        self.time_s = 0.0
        self.state: FleetState = first.state
        self.orders = Orders()
        self.statuses = statuses
        self.flown_m = np.zeros(n)
        self.failsafes: list[tuple[float, int, Failsafe]] = []
        self.search_track: list[tuple[int, Floats]] = []
        self.readings: list[tuple[Floats, list[int], list[int]]] = []
        self.conduct = ConductLog()
        self._sample()

    @property
    def search_time_s(self) -> float:
        return self.orders.search_time_s(self.time_s)

    @property
    def done(self) -> bool:
        if self.orders.invalid_reason:
            return True
        return self.orders.overdue(self.time_s) or all(self._down(i) for i in range(len(self.flown_m)))

    def _down(self, index: int) -> bool:
        """Landed, or lying where it fell."""
        if self.statuses.phase[index] is Phase.LANDED:
            return True
        crippled = self.statuses.failsafe[index] is Failsafe.CONTROLLED_DESCENT
        speed = np.linalg.norm(self.state.velocity[index])
        return crippled and bool(self.state.landed[index] or speed < AT_REST_MPS)

    def spoil(self, reason: str) -> None:
        """Make the episode INVALID; the first reason stays."""
        self.orders = self.orders._replace(invalid_reason=self.orders.invalid_reason or reason)

    def observe(self, now: SimTick) -> list[Event]:
        """Judge one tick of truth by the orders and phases of the tick before; a truth that is none spoils it."""
        self.tick, self.time_s = now.tick, now.time_s
        grounded = np.array([phase in GROUNDED for phase in self.statuses.phase])
        try:
            events = self.referee.observe(now.times_s, now.track, grounded & (self.state.velocity[:, 2] > -LANDING_MPS))
        except RunError:
            self.spoil("truth_not_finite")
            return []
        if self.orders.order is Order.SEARCH:
            self.coverage.observe(now.times_s - self.orders.search_begin_s, now.track)
        add_path(now.track, self.flown_m)
        self.state = now.state
        return events

    def note(
        self, orders: Orders, statuses: DroneStatuses, reports: Sequence[Report], heard: Collection[Hearing] = ()
    ) -> list[Judged]:
        """Take in the orders of this tick, how the drones stand after it, what they report, and which transmitters they
        observed; returns the verdict on each issue and update."""
        self.orders = orders._replace(invalid_reason=self.orders.invalid_reason or orders.invalid_reason)
        span = orders.search_begin_s, orders.search_end_s
        self.scorer.listen(self.time_s, heard, *span)
        verdicts = self.scorer.judge(reports, *span)
        for i, (before, after) in enumerate(zip(self.statuses.failsafe, statuses.failsafe, strict=True)):
            if after is not before:
                self.failsafes.append((self.time_s, i, after))
        self.statuses = statuses
        if orders.order is Order.TAKE_OFF and all(phase is Phase.LANDED for phase in statuses.phase):
            self.spoil("never_searched")
        self._sample()
        return verdicts

    def follow(self, commands: Sequence[Command], beliefs: Beliefs) -> None:
        """Keep what the drones were asked and believed in a tick that was noted."""
        if self.searching:
            self.conduct.keep(self.time_s, self.state, self.statuses, commands, beliefs)

    @property
    def searching(self) -> bool:
        """Whether this tick is one of the search's, its first and last included."""
        return self.orders.search_begin_s <= self.time_s <= self.orders.search_end_s

    def _sample(self) -> None:
        """Keep what the return is counted from: of the search every tick, of batteries what the status tells."""
        if self.searching:
            self.search_track.append((stamp_ns(self.tick), self.state.position))
        if self.tick % STATUS_TICKS == 0:
            failsafes, phases = map(int, self.statuses.failsafe), map(int, self.statuses.phase)
            self.readings.append((self.state.charge, list(failsafes), list(phases)))

    def status(self, phase: int | None = None) -> EpisodeProgress:
        """How far the episode is."""
        summary = self.referee.summary()
        return EpisodeProgress(
            _STATUS_PHASE[self.orders.order] if phase is None else phase,
            self.search_time_s,
            self.coverage.fraction,
            summary.collisions,
            summary.near_misses,
            sum(not landed for landed in self.state.landed),
            not self.orders.invalid_reason,
            self.orders.invalid_reason,
            len(self.scorer.issues),
            self.scorer.count(ReportVerdict.RIGHT),
            self.scorer.count(ReportVerdict.DISPLACED),
            self.scorer.count(ReportVerdict.DECOY),
        )

    @property
    def scanned(self) -> NDArray[np.bool_]:
        """Which cells were scanned so far, [ny, nx] from the south-west corner."""
        return np.isfinite(self.coverage.first_scan_s)
