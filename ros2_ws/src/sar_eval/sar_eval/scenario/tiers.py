"""The tiers an episode can be flown on: one registry, and what each of them can and cannot do.

A tier of another package is registered by an entry point of the group ``sar_eval.tiers`` that names its :class:`Tier`;
for one process, :func:`register` does. What a tier needs may be missing on this machine, so its doors are named and
opened when it flies.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sar_core.errors import InputError
from sar_sim.vehicle.faults import FaultKind

if TYPE_CHECKING:
    from sar_eval.scenario.model import Scenario, Source

ENTRY_POINTS = "sar_eval.tiers"
MOST_VEHICLES = 10
"""PX4's ports are one per vehicle up to this many; all beyond share one."""
LINK_FAULTS = (FaultKind.LINK_LOSS, FaultKind.FROZEN_NEIGHBOUR)
"""Faults that need nothing of the vehicle."""


@dataclass(frozen=True)
class Tier:
    """One way to fly an episode. Doors are written ``module:function``."""

    name: str
    about: str
    """What it is, for help texts."""
    backend: str
    """Door: (episode, speed, stop) to an open backend."""
    receiver: str
    """Door: (episode) to what hears for its drones apart from its backend, or None."""
    needs: str = ""
    """Door: (name) refuses with MissingDependencyError where something is missing on this machine."""
    autopilots: bool = True
    """Whether its vehicles are processes behind MAVLink, in a time of their own: no two flights are the same."""
    flies: Mapping[str, Any] = field(default_factory=dict)
    """What it flies, whatever it is asked for."""
    always_senses: bool = False
    """Whether it cannot fly without radio."""
    patience: Mapping[str, float] = field(default_factory=dict)
    """Least limits of a graph's settings at real time, by their names."""

    @property
    def file(self) -> Path:
        """The source file of what it flies in, for who must know whether it has changed."""
        return Path(inspect.getfile(self.open("backend")))

    def open(self, door: str) -> Any:
        """What stands behind one of its doors."""
        module, _, name = getattr(self, door).partition(":")
        return getattr(importlib.import_module(module), name)


_SIH: dict[str, Any] = {"vehicle": "sihsim_quadx", "wind_mps": 0.0, "thrust_variation": 0.0}
"""PX4's own simulator has one quadrotor, still air and equal motors."""
_PILOTED: dict[str, Any] = {
    "backend": "sar_eval.px4.world:open_vehicles",
    "receiver": "sar_eval.backends.embedded:receiver_for",
    "needs": "sar_eval.px4.world:require",
    "flies": _SIH,
    "patience": {"lockstep_timeout_s": 5.0, "ready_timeout_s": 120.0},
}
OWN = (
    Tier(
        "embedded",
        "our own simulator",
        backend="sar_eval.backends.embedded:open_simulator",
        receiver="sar_eval.backends.embedded:receiver_for",
        autopilots=False,
    ),
    Tier("sitl", "our own vehicle behind MAVLink", **_PILOTED),
    Tier("sih", "real PX4 with its own simulator (px4 on PATH or PX4_BIN)", **_PILOTED),
)


_KNOWN = {tier.name: tier for tier in OWN}


@cache
def registry() -> dict[str, Tier]:
    """Every tier by name, lowest first: ours, then those of other packages."""
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        _KNOWN.setdefault(point.name, point.load())
    return _KNOWN


def register(tier: Tier) -> Tier:
    """Add a tier, from here on known by its name in this process."""
    if not tier.name.isidentifier() or tier.name in registry():
        raise InputError(f"tier {tier.name!r}: registered already, or no name for a part of an episode's id")
    _KNOWN[tier.name] = tier
    return tier


def tier_named(name: str) -> Tier:
    """A tier by name; other packages are only asked for what is not known yet."""
    if name in _KNOWN:
        return _KNOWN[name]
    if name not in registry():
        raise InputError(f"backend {name!r} is not known; allowed: {', '.join(registry())}, auto")
    return registry()[name]


def piloted(name: str) -> bool:
    """Whether a tier's vehicles are autopilots in processes of their own."""
    return tier_named(name).autopilots


def repeats(name: str) -> bool:
    """Whether the same seed gives the same flight to the last digit; on real autopilots it does not."""
    return not piloted(name)


def fit(scenario: Scenario, name: str, source: Source) -> Scenario:
    """The scenario as the tier flies it; what the tier cannot do is refused where it was asked for."""
    tier = tier_named(name)
    if not tier.autopilots:
        return scenario
    for key, value in tier.flies.items():
        given = getattr(scenario, key)
        if key in scenario.model_fields_set and given not in (value, None):
            raise InputError(f"{source.of(key)}: {key} = {given}: tier {name} flies {value} only; leave {key} out")
    if scenario.drones > MOST_VEHICLES:
        raise InputError(
            f"{source.of('drones')}: drones = {scenario.drones}: tier {name} flies {MOST_VEHICLES} at most, "
            "for PX4 gives all beyond them one port"
        )
    for fault in scenario.faults:
        if fault.kind not in LINK_FAULTS:
            raise InputError(
                f"{source.of('faults')}: fault {fault.kind}: tier {name} has no way to cause it; "
                f"allowed: {', '.join(LINK_FAULTS)}"
            )
    if tier.always_senses and scenario.radio is None:
        raise InputError(
            f"{source.of('radio')}: radio = null: tier {name} flies with its CSI system only; name a radio"
        )
    return scenario.model_copy(update=dict(tier.flies))
