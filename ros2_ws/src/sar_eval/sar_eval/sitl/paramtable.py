"""The parameters of one vehicle: PX4's names, types and byte-wise encoding.

Three kinds: what commander and navigator obey and anyone may change at any time; what the control law was built from,
which can be given at the start but not changed in flight; and a few that clients of PX4 set as a matter of course and
that mean nothing here. Names beginning with SAR_ are ours and exist for tests.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from sar_core.errors import InputError
from sar_eval.sitl.commander import CommanderRules
from sar_eval.sitl.navigator import Return, Speeds
from sar_sim.vehicle.parameters import read_parameters

ENVIRONMENT = "PX4_PARAM_"
INT32, REAL32 = 6, 9
"""MAV_PARAM_TYPE."""


class ParameterKind(Enum):
    """What setting a parameter does."""

    LIVE = "obeyed at once"
    FIXED = "read at the start"
    IDLE = "kept, without effect"


@dataclass(frozen=True)
class VehicleParameter:
    """One value and what it may be."""

    value: float
    low: float
    high: float
    integer: bool = False
    kind: ParameterKind = ParameterKind.LIVE

    @property
    def mavlink_type(self) -> int:
        return INT32 if self.integer else REAL32


def _whole(value: int, low: int, high: int, kind: ParameterKind = ParameterKind.LIVE) -> VehicleParameter:
    return VehicleParameter(value, low, high, True, kind)


BATTERY_THRESHOLDS = ("BAT_LOW_THR", "BAT_CRIT_THR", "BAT_EMERGEN_THR")
HOOKS = {
    "SAR_REFUSE_ARM": VehicleParameter(0.0, 0.0, 1.0),
    "SAR_MUTE": VehicleParameter(0.0, 0.0, 1.0),
    "SAR_CLOCK_JUMP": VehicleParameter(0.0, -3600.0, 3600.0),
    "SAR_DROP": VehicleParameter(0.0, 0.0, 1.0),
    "SAR_AFTER": VehicleParameter(0.0, 0.0, 3600.0),
}
"""For tests: refuse to arm; send heartbeats only; s added to the reported clock; share of datagrams lost each way; and
how long after arming mute, jump and drop begin (0: at once)."""
DEFAULTS = {
    "BAT_LOW_THR": VehicleParameter(0.15, 0.0, 1.0),
    "BAT_CRIT_THR": VehicleParameter(0.07, 0.0, 1.0),
    "BAT_EMERGEN_THR": VehicleParameter(0.05, 0.0, 1.0),
    "COM_DISARM_LAND": VehicleParameter(2.0, -1.0, 20.0),
    "COM_DISARM_PRFLT": VehicleParameter(10.0, -1.0, 300.0),
    "COM_LOW_BAT_ACT": _whole(3, 0, 3),
    "COM_OBL_RC_ACT": _whole(0, 0, 7),
    "COM_OF_LOSS_T": VehicleParameter(1.0, 0.0, 60.0),
    "COM_RC_IN_MODE": _whole(1, 0, 8, ParameterKind.IDLE),
    "MAV_COMP_ID": _whole(1, 1, 250, ParameterKind.FIXED),
    "MAV_TYPE": _whole(2, 0, 22, ParameterKind.FIXED),
    "MIS_TAKEOFF_ALT": VehicleParameter(2.5, 0.0, 1000.0),
    "MPC_LAND_ALT1": VehicleParameter(10.0, 0.0, 122.0),
    "MPC_LAND_ALT2": VehicleParameter(5.0, 0.0, 122.0),
    "MPC_LAND_SPEED": VehicleParameter(0.7, 0.6, 12.0),
    "MPC_TKO_SPEED": VehicleParameter(1.5, 0.5, 12.0),
    "MPC_XY_CRUISE": VehicleParameter(5.0, 0.5, 20.0),
    "MPC_Z_V_AUTO_DN": VehicleParameter(1.5, 0.5, 4.0),
    "MPC_Z_V_AUTO_UP": VehicleParameter(3.0, 0.5, 8.0),
    "NAV_ACC_RAD": VehicleParameter(2.0, 0.05, 200.0),
    "NAV_DLL_ACT": _whole(0, 0, 6, ParameterKind.IDLE),
    "NAV_RCL_ACT": _whole(2, 0, 6),
    "RTL_CONE_ANG": _whole(45, 0, 90),
    "RTL_MIN_DIST": VehicleParameter(10.0, 0.5, 100.0),
    "RTL_RETURN_ALT": VehicleParameter(30.0, 0.0, 1000.0),
    "SIM_BAT_DRAIN": VehicleParameter(60.0, 1.0, 86400.0, kind=ParameterKind.IDLE),
    "SIM_BAT_MIN_PCT": VehicleParameter(50.0, 0.0, 100.0, kind=ParameterKind.IDLE),
    "SYS_FAILURE_EN": _whole(1, 0, 1),
    **HOOKS,
}
"""What PX4 v1.17's simulated multicopter starts with, where PX4 has it."""


def parameter_types(path: Path) -> dict[str, bool]:
    """Which parameters of a file are integers; the file was read before, so its lines are known to be right."""
    lines = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return {fields[2].strip(): int(fields[4]) == INT32 for fields in lines if len(fields) == 5}


def read_environment(
    environment: Mapping[str, str], known: Mapping[str, VehicleParameter]
) -> tuple[dict[str, float], list[str]]:
    """Values from PX4_PARAM_<NAME>=<value>, and the names that mean something to PX4 perhaps but nothing here."""
    values: dict[str, float] = {}
    strangers: list[str] = []
    for variable in sorted(key for key in environment if key.startswith(ENVIRONMENT)):
        name, text = variable.removeprefix(ENVIRONMENT), environment[variable]
        if name not in known:
            if name.startswith("SAR_"):
                raise InputError(f"{variable}: no such test hook; allowed: {', '.join(HOOKS)}")
            strangers.append(name)
            continue
        try:
            value = float(text)
        except ValueError:
            raise InputError(f"{variable} = {text!r}: not a number") from None
        if problem := refusal(known[name], value):
            raise InputError(f"{variable} = {text}: {problem}")
        values[name] = value
    return values, strangers


def refusal(parameter: VehicleParameter, value: float) -> str | None:
    """Why a parameter cannot have a value; None if it can."""
    if not math.isfinite(value) or (parameter.integer and value != int(value)):
        return f"must be {'a whole number' if parameter.integer else 'finite'}"
    if not parameter.low <= value <= parameter.high:
        return f"allowed: {parameter.low:g} to {parameter.high:g}"
    return None


def all_parameters(path: Path) -> dict[str, VehicleParameter]:
    """A vehicle's file laid over the defaults. What only the control law reads has no range here: its reader checks."""
    table = dict(DEFAULTS)
    integer = parameter_types(path)
    for name, value in read_parameters(path).items():
        if name in table:
            table[name] = replace(table[name], value=value)
        else:
            table[name] = VehicleParameter(value, -math.inf, math.inf, integer[name], ParameterKind.FIXED)
    return dict(sorted(table.items()))


class ParamTable:
    """Named values in a fixed order."""

    def __init__(self, parameters: Mapping[str, VehicleParameter]) -> None:
        self._parameters = dict(parameters)
        self.names = tuple(self._parameters)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._parameters

    def __getitem__(self, name: str) -> float:
        return self._parameters[name].value

    def parameter(self, name: str) -> VehicleParameter:
        return self._parameters[name]

    def set(self, name: str, value: float) -> str | None:
        """Change a value; returns why it was not changed or has no effect, None if all is well."""
        parameter = self._parameters[name]
        if parameter.kind is ParameterKind.FIXED:
            return None if value == parameter.value else f"{name} is fixed since the start"
        if problem := refusal(parameter, value):
            return f"{name} refused: {problem}"
        self._parameters[name] = replace(parameter, value=value)
        return f"{name} has no effect here" if parameter.kind is ParameterKind.IDLE else None

    def rules(self) -> CommanderRules:
        return CommanderRules(
            stream_loss_s=self["COM_OF_LOSS_T"],
            stream_loss_action=int(self["COM_OBL_RC_ACT"]),
            manual_loss_action=int(self["NAV_RCL_ACT"]),
            disarm_landed_s=self["COM_DISARM_LAND"],
            disarm_preflight_s=self["COM_DISARM_PRFLT"],
            spoolup_s=self["COM_SPOOLUP_TIME"],
            low_battery_action=int(self["COM_LOW_BAT_ACT"]),
            refuse_arming=bool(self["SAR_REFUSE_ARM"]),
        )

    def speeds(self) -> Speeds:
        return Speeds(
            cruise=self["MPC_XY_CRUISE"],
            up=self["MPC_Z_V_AUTO_UP"],
            down=self["MPC_Z_V_AUTO_DN"],
            takeoff=self["MPC_TKO_SPEED"],
            land=self["MPC_LAND_SPEED"],
            slow_from_m=max(self["MPC_LAND_ALT1"], self["MPC_LAND_ALT2"]),
            slow_to_m=self["MPC_LAND_ALT2"],
            gain_xy=self["MPC_XY_P"],
            gain_z=self["MPC_Z_P"],
        )

    def way_home(self) -> Return:
        return Return(
            height_m=self["RTL_RETURN_ALT"],
            near_m=self["RTL_MIN_DIST"],
            cone_deg=self["RTL_CONE_ANG"],
            reached_m=self["NAV_ACC_RAD"],
        )


def to_wire(parameter: VehicleParameter) -> float:
    """A value as PARAM_VALUE carries it: an integer's four bytes read as a float (PARAM_ENCODE_BYTEWISE)."""
    if not parameter.integer:
        return parameter.value
    return float(struct.unpack("<f", struct.pack("<i", int(parameter.value)))[0])


def from_wire(value: float, mavlink_type: int) -> float:
    """The value a PARAM_SET carries."""
    return float(struct.unpack("<i", struct.pack("<f", value))[0]) if mavlink_type == INT32 else value
