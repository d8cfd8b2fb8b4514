"""A score that is told what happens: drones moved by hand over an open field, in straight lines, tick by tick."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sar_core.mailboxes import Delivered
from sar_eval.backends.backend import SimTick, time_of, times_of
from sar_eval.bag.tick import DroneStatuses
from sar_eval.episode.operator import Orders
from sar_eval.episode.score import Score
from sar_eval.scenario.model import Episode
from sar_sim.judging.referee import Event
from sar_sim.judging.scoring import Hearing, Judged, Report
from sar_sim.vehicle.fleet import FleetState
from sar_swarm.piloting.controller import Order, Phase
from sar_swarm.piloting.failsafe import Failsafe

Floats = NDArray[np.float64]

TICK_S = 0.05
_NOTHING = Delivered(0, np.zeros((0, 3), np.int64), np.zeros(0, np.bool_))


class Told:
    """An episode's score, and where its drones are."""

    def __init__(self, episode: Episode, places: Sequence[Sequence[float]]) -> None:
        self.count = len(places)
        self.place = np.array(places, np.float64)
        self.charge = np.ones(self.count)
        self.landed = np.zeros(self.count, np.bool_)
        self.tick = 0
        self.score = Score(episode, self._now(np.zeros_like(self.place)), self.stand(Phase.IDLE))

    @property
    def time_s(self) -> float:
        return time_of(self.tick)

    def stand(self, *phases: Phase, failsafe: Sequence[Failsafe] = ()) -> DroneStatuses:
        """How the drones stand: each in its phase, or all in one."""
        each = phases * self.count if len(phases) == 1 else phases
        return DroneStatuses(each, tuple(failsafe) or (Failsafe.NOMINAL,) * self.count, (False,) * self.count)

    def move(self, velocity: Sequence[Sequence[float]]) -> list[Event]:
        """One tick of flight, m/s."""
        self.tick += 1
        return self.score.observe(self._now(np.array(velocity, np.float64)))

    def note(
        self,
        orders: Orders,
        statuses: DroneStatuses,
        reports: Sequence[Report] = (),
        heard: Sequence[Hearing] = (),
    ) -> list[Judged]:
        return self.score.note(orders, statuses, reports, heard)

    def search(self, seconds: float, velocity: Sequence[Sequence[float]], begin_s: float) -> list[Event]:
        """Search on, every drone at its velocity."""
        events = []
        for _ in range(round(seconds / TICK_S)):
            events += self.move(velocity)
            self.note(Orders(Order.SEARCH, begin_s), self.stand(Phase.SEARCH))
        return events

    def _now(self, velocity: Floats) -> SimTick:
        times = times_of(self.tick)
        track = self.place + (times - times[0])[:, None, None] * velocity
        self.place = track[-1].copy()
        n, level = self.count, np.tile([1.0, 0.0, 0.0, 0.0], (self.count, 1))
        state = FleetState(
            position=self.place,
            velocity=velocity,
            attitude=level,
            rates=np.zeros((n, 3)),
            est_position=self.place,
            est_velocity=velocity,
            est_attitude=level,
            charge=self.charge.copy(),
            landed=self.landed.copy(),
            gps_age_s=np.zeros(n),
            motors_ok=np.ones(n, np.bool_),
            tilt_rad=np.zeros(n),
        )
        return SimTick(self.tick, self.time_s, times, track, state, _NOTHING)
