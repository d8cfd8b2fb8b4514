"""The parameters a real PX4 is started with: the vehicle's own file, and what an evaluation adds; and that it has them.

PX4 takes them from its environment before its airframe's own defaults, which win over a value that is the firmware's
default. So each is asked for once the vehicle talks, and set where it differs. Versions of PX4 do not all have the same
parameters: one that a vehicle's version lacks is left out, and the record says so.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sar_eval.scenario.model import Episode
from sar_eval.scenario.resources import params_path
from sar_sim.vehicle.parameters import read_parameters

ASK_AGAIN_S = 0.2
AT_ONCE = 25
"""How many are asked for at a time."""
SILENT_AFTER = 25
"""Unanswered requests after which a vehicle that answers others lacks a parameter: up to v1.17 PX4 does not say so."""
DOES_NOT_EXIST = 1
"""MAV_PARAM_ERROR_DOES_NOT_EXIST, which PX4 says since v1.18."""
_INTEGERS = {1: "<B3x", 2: "<b3x", 3: "<H2x", 4: "<h2x", 5: "<I", 6: "<i"}
"""MAV_PARAM_TYPE of integers, which travel byte by byte in a float's place."""


def parameters_of(episode: Episode) -> dict[str, float]:
    """All that a vehicle is to have."""
    given = read_parameters(params_path(episode.vehicle.name))
    if episode.tier == "sitl":
        return given
    return {
        **given,
        "NAV_DLL_ACT": 0.0,  # no ground station is there to be lost
        "SDLOG_PROFILE": 1.0,  # PX4's logger stays on, for its simulator waits for it; it need not write much
        "SIM_BAT_DRAIN": episode.vehicle.airframe.endurance,
        "SIM_BAT_MIN_PCT": 0.0,
    }


def as_text(parameters: Mapping[str, float]) -> dict[str, str]:
    """Name to value, as PX4's ``param set`` takes them."""
    return {name: str(int(v)) if float(v).is_integer() else repr(float(v)) for name, v in parameters.items()}


class Setting(NamedTuple):
    """A PARAM_SET to be sent."""

    name: str
    value: float
    kind: int


class Settling:
    """What a vehicle is to have and has not yet said that it has; ``lacking`` is what its version does not have."""

    def __init__(self, wanted: Mapping[str, float]) -> None:
        self.open = dict(wanted)
        self.lacking: list[str] = []
        self._asked_s = -math.inf
        self._asked: Counter[str] = Counter()
        self._answered: set[str] = set()

    def due(self, now_s: float) -> list[str]:
        """Names to ask for now."""
        if not self.open or now_s - self._asked_s < ASK_AGAIN_S:
            return []
        self._asked_s = now_s
        for name in list(self.open) if self._answered else ():
            if name not in self._answered and self._asked[name] >= SILENT_AFTER:
                self._leave_out(name)
        names = list(self.open)[:AT_ONCE]
        self._asked.update(names)
        return names

    def _leave_out(self, name: str) -> None:
        del self.open[name]
        self.lacking.append(name)

    def refuse(self, message: Any) -> None:
        """Take in a PARAM_ERROR. Only that there is no such parameter ends the asking."""
        if message.error == DOES_NOT_EXIST and message.param_id in self.open:
            self._leave_out(message.param_id)

    def take(self, message: Any) -> Setting | None:
        """Take in a PARAM_VALUE; what is to be set, if it is not as wanted."""
        name, kind = message.param_id, message.param_type
        if name not in self.open:
            return None
        self._answered.add(name)
        wanted = self.open[name]
        if _value(message.param_value, kind) == (round(wanted) if kind in _INTEGERS else np.float32(wanted)):
            del self.open[name]
            return None
        return Setting(name, _carried(wanted, kind), kind)


def _value(carried: float, kind: int) -> float:
    if kind not in _INTEGERS:
        return carried
    number: int = struct.unpack(_INTEGERS[kind], struct.pack("<f", carried))[0]
    return number


def _carried(value: float, kind: int) -> float:
    if kind not in _INTEGERS:
        return value
    carried: float = struct.unpack("<f", struct.pack(_INTEGERS[kind], round(value)))[0]
    return carried
