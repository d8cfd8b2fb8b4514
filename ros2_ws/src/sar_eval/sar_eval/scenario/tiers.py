"""The tiers an episode can be flown on, and what each of them can and cannot do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sar_core.errors import InputError
from sar_eval.px4.mavlink import MOST_VEHICLES
from sar_sim.vehicle.faults import FaultKind

if TYPE_CHECKING:
    from sar_eval.scenario.model import Scenario, Source

TIERS = ("embedded", "sitl", "sih", "gazebo")
"""Tiers this version flies. sitl is our own vehicle behind MAVLink: the way of the bridge where there is no PX4."""
AUTOPILOTS = ("sitl", "sih", "gazebo")
"""Tiers whose vehicles are processes behind MAVLink."""
_SIH: dict[str, Any] = {"vehicle": "sihsim_quadx", "wind_mps": 0.0, "thrust_variation": 0.0}
FLOWN: dict[str, dict[str, Any]] = {
    "sitl": _SIH,
    "sih": _SIH,
    "gazebo": {"vehicle": "x500", "thrust_variation": 0.0},
}
"""What a tier flies, whatever it is asked for: PX4's own simulator has one quadrotor, still air and equal motors;
Gazebo has PX4's x500, equal motors too, and wind without gusts."""
LINK_FAULTS = (FaultKind.LINK_LOSS, FaultKind.FROZEN_NEIGHBOUR)
"""Faults that need nothing of the vehicle."""


def repeats(tier: str) -> bool:
    """Whether the same seed gives the same flight to the last digit; on real autopilots it does not."""
    return tier not in AUTOPILOTS


def check_tier(tier: str) -> None:
    if tier not in TIERS:
        raise InputError(f"backend {tier!r} is not known; allowed: {', '.join(TIERS)}, auto")


def fit(scenario: Scenario, tier: str, source: Source) -> Scenario:
    """The scenario as the tier flies it; what the tier cannot do is refused where it was asked for."""
    if tier not in AUTOPILOTS:
        return scenario
    flown = FLOWN[tier]
    for key, value in flown.items():
        given = getattr(scenario, key)
        if key in scenario.model_fields_set and given not in (value, None):
            raise InputError(f"{source.of(key)}: {key} = {given}: tier {tier} flies {value} only; leave {key} out")
    if scenario.drones > MOST_VEHICLES:
        raise InputError(
            f"{source.of('drones')}: drones = {scenario.drones}: tier {tier} flies {MOST_VEHICLES} at most, "
            "for PX4 gives all beyond them one port"
        )
    for fault in scenario.faults:
        if fault.kind not in LINK_FAULTS:
            raise InputError(
                f"{source.of('faults')}: fault {fault.kind}: tier {tier} has no way to cause it; "
                f"allowed: {', '.join(LINK_FAULTS)}"
            )
    if tier == "gazebo" and scenario.radio is None:
        raise InputError(
            f"{source.of('radio')}: radio = null: tier gazebo flies with its CSI system only; name a radio"
        )
    return scenario.model_copy(update=flown)
