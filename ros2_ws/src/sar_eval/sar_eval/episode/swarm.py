"""The swarm of an episode: one controller, listener and fusion centre per drone, one step per tick.

It sees estimates, its own frames and what the air delivered; what it was told beforehand
(``briefing``) has no room for the truth.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sar_core.mailboxes import STAMP, Delivered, Mailboxes
from sar_eval.bag.tick import STATUS_TICKS, Beliefs, DroneStatuses, Heard, VictimReport
from sar_eval.episode.briefing import Briefing, make_plans
from sar_eval.episode.sensing import Sensing
from sar_sim.radio.receiver import Frames
from sar_sim.vehicle.fleet import stamp_ns
from sar_swarm.piloting.controller import Command, Order, Pilot, Sense, start_pilot, step
from sar_swarm.piloting.safety import worst

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Estimates(Protocol):
    """What the drones' autopilots tell them of themselves, arrays over N drones, ENU."""

    @property
    def est_position(self) -> Floats: ...
    @property
    def est_velocity(self) -> Floats: ...
    @property
    def est_attitude(self) -> Floats: ...
    @property
    def charge(self) -> Floats: ...
    @property
    def landed(self) -> Bools: ...
    @property
    def gps_age_s(self) -> Floats: ...
    @property
    def motors_ok(self) -> Bools: ...
    @property
    def tilt_rad(self) -> Floats: ...


class SwarmTick(NamedTuple):
    """What the swarm made of one tick."""

    commands: Sequence[Command]
    statuses: DroneStatuses
    heard: Heard
    reports: Sequence[VictimReport]
    beliefs: Beliefs


class Swarm:
    """All drones' controllers. ``begin`` once on the ground, then ``step`` every tick."""

    def __init__(self, told: Briefing) -> None:
        self.plans = make_plans(told)
        self.pilots: list[Pilot] = [start_pilot(float(yaw)) for yaw in told.spawns[:, 3]]
        self.commands: list[Command] = []
        self._recent: deque[list[Command]] = deque(maxlen=STATUS_TICKS)
        self.boxes = Mailboxes(len(self.plans))
        self.sensing = Sensing(told.drones, told.radio) if told.radio is not None else None

    @property
    def statuses(self) -> DroneStatuses:
        return DroneStatuses(
            tuple(pilot.phase for pilot in self.pilots),
            tuple(pilot.failsafe.state for pilot in self.pilots),
            tuple(pilot.finished for pilot in self.pilots),
        )

    def begin(self, estimates: Estimates) -> SwarmTick:
        """The first tick: nothing was sent or heard before it."""
        self.decide(0.0, estimates, Order.WAIT)
        return SwarmTick(self.commands, self.statuses, Heard(), [], self._beliefs(estimates))

    def step(
        self,
        tick: int,
        time_s: float,
        estimates: Estimates,
        frames: list[Frames],
        delivered: Delivered,
        order: Order,
    ) -> SwarmTick:
        """Hear, talk, think, decide."""
        status = np.array([(p.failsafe.state, p.task.leg) for p in self.pilots], dtype=np.float64)
        position, velocity, sensing = estimates.est_position, estimates.est_velocity, self.sensing
        heard, reports = Heard(), list[VictimReport]()
        if sensing is None:
            self.boxes.exchange(time_s, delivered, position, velocity, status)
        else:
            heard = sensing.hear(stamp_ns(tick), frames, position, estimates.est_attitude)
            self.boxes.exchange(time_s, delivered, position, velocity, status, heard.observations)
            reports = sensing.think(tick, time_s, self.boxes.inbox, order >= Order.SEARCH)
        self.decide(time_s, estimates, order)
        return SwarmTick(self.commands, self.statuses, heard, reports, self._beliefs(estimates))

    def worst(self) -> list[tuple[int, int]]:
        """Every drone's worst band and fence state since its last status."""
        guards = [[command.guard for command in own] for own in zip(*self._recent, strict=True)]
        return [(worst(guard.band for guard in own), worst(guard.fence for guard in own)) for own in guards]

    def _beliefs(self, estimates: Estimates) -> Beliefs:
        return Beliefs(estimates.est_position, self.boxes.known[:, :, STAMP].copy())

    def decide(self, time_s: float, estimates: Estimates, order: Order) -> None:
        """Every controller takes its step on what its own drone knows."""
        outcomes = [
            step(plan, pilot, sense, order)
            for plan, pilot, sense in zip(self.plans, self.pilots, self._senses(time_s, estimates), strict=True)
        ]
        self.pilots = [pilot for pilot, _ in outcomes]
        self.commands = [command for _, command in outcomes]
        self._recent.append(self.commands)

    def _heard_age(self, time_s: float) -> list[float]:
        """Seconds since each drone heard anything, from the start on; NaN where there is nobody to hear."""
        if len(self.plans) == 1:
            return [math.nan]
        return [time_s - (0.0 if math.isnan(at) else at) for at in self.boxes.heard_s.tolist()]

    def _senses(self, time_s: float, own: Estimates) -> list[Sense]:
        heard_age = self._heard_age(time_s)
        return [
            Sense(
                time_s,
                own.est_position[i],
                own.est_velocity[i],
                float(own.charge[i]),
                bool(own.landed[i]),
                float(own.gps_age_s[i]),
                bool(own.motors_ok[i]),
                float(own.tilt_rad[i]),
                heard_age[i],
                self.boxes.others(i),
                self.sensing.hypotheses(i) if self.sensing is not None else (),
            )
            for i in range(len(self.plans))
        ]
