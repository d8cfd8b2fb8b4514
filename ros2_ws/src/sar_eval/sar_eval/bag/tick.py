"""What the swarm made of a tick, as it crosses from the episode into its bag."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from sar_sim.judging.scoring import Report
from sar_sim.radio.receiver import Frames
from sar_swarm.piloting.controller import Phase
from sar_swarm.piloting.failsafe import Failsafe
from sar_swarm.sensing.fusion import Estimate
from sar_swarm.sensing.observation import GateChange, Observation


@dataclass(frozen=True)
class VictimReport:
    """A report as it goes to the operator, by the message of this name: what is judged, and what it rests on."""

    report: Report
    estimate: Estimate


@dataclass
class Heard:
    """What one tick brought, per drone."""

    frames: list[Frames] = field(default_factory=list)
    observations: list[list[Observation]] = field(default_factory=list)
    changes: list[GateChange] = field(default_factory=list)


class DroneStatuses(NamedTuple):
    """How the drones stand after a tick, as they report it."""

    phase: tuple[Phase, ...]
    failsafe: tuple[Failsafe, ...]
    finished: tuple[bool, ...]
