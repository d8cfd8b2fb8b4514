"""What goes wrong in an episode, when, and to whom: faults as conditions, set on vehicles and link from outside.

A fault touches the physics or the radio only; that anything is wrong the swarm must find out by its own senses.

| kind | effect | size | ends |
|---|---|---|---|
| motor_loss | one motor, drawn by the seed, loses a share of its thrust | share lost | yes |
| gps_loss | no fixes | | yes |
| gps_drift | fixes wander off in a direction drawn by the seed | m/s | yes, back at once |
| link_loss | hears nothing and is not heard | | yes |
| compass_bias | heading reads off by an angle, counter-clockwise positive | rad | yes |
| frozen_neighbour | sends its last packet again and again; flies and hears on | | yes |
| drone_lost | motors stop, radio silent | | no |
| low_battery | charge drops to the size | share left | no |

Several faults on one drone add up: motor shares multiply, drifts and biases add.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import InputError
from sar_core.streams import stream
from sar_sim.radio.link import Air
from sar_sim.vehicle.fleet import Fleet

Floats = NDArray[np.float64]


class FaultKind(StrEnum):
    """What may go wrong."""

    MOTOR_LOSS = "motor_loss"
    GPS_LOSS = "gps_loss"
    GPS_DRIFT = "gps_drift"
    LINK_LOSS = "link_loss"
    COMPASS_BIAS = "compass_bias"
    FROZEN_NEIGHBOUR = "frozen_neighbour"
    DRONE_LOST = "drone_lost"
    LOW_BATTERY = "low_battery"


class Size(NamedTuple):
    """A kind's usual size and the range it may have."""

    usual: float
    low: float
    high: float
    unit: str


SIZES = {
    FaultKind.MOTOR_LOSS: Size(1.0, 0.0, 1.0, "share of one motor's thrust"),
    FaultKind.GPS_DRIFT: Size(1.0, 0.0, 20.0, "m/s"),
    FaultKind.COMPASS_BIAS: Size(0.5, -2.5, 2.5, "rad"),
    FaultKind.LOW_BATTERY: Size(0.14, 0.0, 1.0, "share of charge left"),
}
"""The kinds that have a size; the others are or are not."""

LASTING = (FaultKind.DRONE_LOST, FaultKind.LOW_BATTERY)
"""Kinds that no end undoes."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong with one drone (index from 0) from begin_s to end_s on the mission's clock.

    A size of None is the kind's usual one.
    """

    kind: FaultKind
    drone: int
    begin_s: float
    end_s: float = math.inf
    size: float | None = None

    def __post_init__(self) -> None:
        kinds = ", ".join(FaultKind)
        if self.kind not in list(FaultKind):
            raise InputError(f"fault kind = {self.kind!r}: not known; allowed: {kinds}")
        object.__setattr__(self, "kind", FaultKind(self.kind))
        if self.drone < 0:
            raise InputError(f"fault {self.kind}: drone = {self.drone}: indices begin at 0")
        if not (math.isfinite(self.begin_s) and self.begin_s >= 0.0):
            raise InputError(f"fault {self.kind}: begin_s = {self.begin_s:g}: allowed are finite times from 0 on")
        if not self.end_s > self.begin_s:
            raise InputError(f"fault {self.kind}: end_s = {self.end_s:g}: allowed are times after begin_s")
        if self.kind in LASTING and math.isfinite(self.end_s):
            raise InputError(f"fault {self.kind}: end_s = {self.end_s:g}: it does not end; leave end_s out")
        self._check_size()

    def _check_size(self) -> None:
        allowed = SIZES.get(self.kind)
        if allowed is None:
            if self.size is not None:
                raise InputError(f"fault {self.kind}: size = {self.size:g}: it has none; leave size out")
        elif self.size is None:
            object.__setattr__(self, "size", allowed.usual)
        elif not allowed.low <= self.size <= allowed.high:
            between = f"{allowed.low:g} to {allowed.high:g} ({allowed.unit})"
            raise InputError(f"fault {self.kind}: size = {self.size:g}: allowed are {between}")

    def active(self, time_s: float) -> bool:
        return self.begin_s <= time_s < self.end_s


class Injector:
    """Puts an episode's faults on its fleet and link as their times come; without faults it touches nothing."""

    def __init__(self, faults: Sequence[Fault], drones: int, seed: int, episode: int) -> None:
        for fault in faults:
            if fault.drone >= drones:
                raise InputError(f"fault {fault.kind}: drone = {fault.drone}: allowed are 0 to {drones - 1}")
        self.faults = tuple(faults)
        draws = [stream("fault", seed, episode, k).random(2) for k in range(len(self.faults))]
        self._motor = [int(4.0 * draw[0]) for draw in draws]
        self._course = [2.0 * math.pi * float(draw[1]) for draw in draws]
        self._active = [False] * len(self.faults)

    def apply(self, time_s: float, fleet: Fleet, link: Air) -> None:
        """Bring fleet and link up to date; to be called once per tick, before the fleet moves."""
        now = [fault.active(time_s) for fault in self.faults]
        if now == self._active:
            return
        changed = [k for k, (new, old) in enumerate(zip(now, self._active, strict=True)) if new != old]
        self._active = now
        for drone in sorted({self.faults[k].drone for k in changed}):
            self._set(drone, fleet, link)
        for k in changed:
            fault = self.faults[k]
            if fault.kind is FaultKind.LOW_BATTERY:
                fleet.set_charge(fault.drone, _size(fault))

    def _set(self, drone: int, fleet: Fleet, link: Air) -> None:
        """One drone's conditions, from all faults it has at present."""
        mine = [k for k, f in enumerate(self.faults) if self._active[k] and f.drone == drone]
        kinds = {self.faults[k].kind for k in mine}
        left = np.ones(4)
        east = north = bias = 0.0
        for k in mine:
            fault = self.faults[k]
            if fault.kind is FaultKind.MOTOR_LOSS:
                left[self._motor[k]] *= 1.0 - _size(fault)
            elif fault.kind is FaultKind.GPS_DRIFT:
                east += _size(fault) * math.cos(self._course[k])
                north += _size(fault) * math.sin(self._course[k])
            elif fault.kind is FaultKind.COMPASS_BIAS:
                bias += _size(fault)
        fleet.weaken_motors(drone, left)
        fleet.lose_gps(drone, FaultKind.GPS_LOSS in kinds)
        fleet.drift_gps(drone, east, north)
        fleet.bias_compass(drone, bias)
        fleet.switch_power(drone, FaultKind.DRONE_LOST not in kinds)
        link.silence[drone] = bool(kinds & {FaultKind.LINK_LOSS, FaultKind.DRONE_LOST})
        link.frozen[drone] = FaultKind.FROZEN_NEIGHBOUR in kinds


def _size(fault: Fault) -> float:
    assert fault.size is not None
    return fault.size
