"""What the swarm made of a tick, as it crosses from the episode into its bag."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_sim.judging.scoring import Hearing, Report
from sar_sim.radio.receiver import Frames
from sar_swarm.piloting.controller import Phase
from sar_swarm.piloting.failsafe import Failsafe
from sar_swarm.sensing.fusion import Estimate
from sar_swarm.sensing.observation import GateChange, Observation

Floats = NDArray[np.float64]

STATUS_TICKS = 10
"""Drones tell of their health every so many ticks."""


@dataclass(frozen=True)
class VictimReport:
    """A report as it goes to the operator, by the message of this name: what is judged, and what it rests on."""

    report: Report
    estimate: Estimate


def dilutions(report: Report) -> tuple[float, float, float]:
    """Path GDOP, constellation GDOP and information DOP (m) as a message says them: NaN where undefined."""
    path, constellation, information = (
        math.nan if value is None else value
        for value in (report.path_gdop, report.constellation_gdop, report.information_dop_m)
    )
    return path, constellation, information


@dataclass
class Heard:
    """What one tick brought, per drone."""

    frames: list[Frames] = field(default_factory=list)
    observations: list[list[Observation]] = field(default_factory=list)
    changes: list[GateChange] = field(default_factory=list)

    @property
    def hearings(self) -> list[Hearing]:
        """Who made an observation of whom."""
        return [Hearing(seen.drone, seen.address, seen.usable) for drone in self.observations for seen in drone]


class Beliefs(NamedTuple):
    """What drones take to be so, which the truth is held against."""

    position: Floats
    """[N, 3] where each takes itself to be."""
    heard_s: Floats
    """[N, N] when the state that one (row) holds of another (column) was sent; NaN where it holds none."""


class DroneStatuses(NamedTuple):
    """How the drones stand after a tick, as they report it."""

    phase: tuple[Phase, ...]
    failsafe: tuple[Failsafe, ...]
    finished: tuple[bool, ...]
