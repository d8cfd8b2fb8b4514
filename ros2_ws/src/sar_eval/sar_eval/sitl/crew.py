"""What is to be put on MAVLink: the checked wish of a user and of PX4's environment variables."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sar_core.errors import InputError
from sar_eval.scenario.resources import params_path, vehicle_path, world_path
from sar_eval.scenario.tiers import MOST_VEHICLES
from sar_eval.sitl.paramtable import ParameterKind, ParamTable, VehicleParameter, all_parameters, read_environment
from sar_eval.sitl.site import FASTEST, SPEED, Site, choose_site, number_in
from sar_sim.vehicle.airframe import Vehicle, load_vehicle
from sar_sim.world.world import load_world


@dataclass(frozen=True)
class Crew:
    """N vehicles of one kind, their places, parameters and pace."""

    vehicle: Vehicle
    site: Site
    parameters: Mapping[str, VehicleParameter]
    instance: int
    seed: int
    speed: float
    ignored: tuple[str, ...]
    """Parameters of the environment that mean nothing here."""

    @property
    def systems(self) -> range:
        """MAV_SYS_ID of each vehicle."""
        return range(self.instance + 1, self.instance + 1 + len(self.site.spawns))

    def table(self, system: int) -> ParamTable:
        own = VehicleParameter(system, 1, 250, True, ParameterKind.FIXED)
        return ParamTable(dict(sorted({**self.parameters, "MAV_SYS_ID": own}.items())))


def muster(
    vehicles: int,
    instance: int,
    vehicle: str,
    world: str | None,
    speed: float | None,
    seed: int,
    environment: Mapping[str, str],
) -> Crew:
    """Check everything that can be wrong before a port is opened."""
    if vehicles < 1 or instance < 0 or instance + vehicles > MOST_VEHICLES:
        raise InputError(
            f"--vehicles {vehicles} from --instance {instance}: allowed are 1 or more vehicles "
            f"on instances 0 to {MOST_VEHICLES - 1}"
        )
    if seed < 0:
        raise InputError(f"--seed {seed}: must be 0 or more")
    pace = speed if speed is not None else number_in(environment, SPEED, 0.0, FASTEST)
    pace = 1.0 if pace is None else pace
    if not 0.0 < pace <= FASTEST:
        raise InputError(f"--speed {pace:g}: allowed is more than 0 and up to {FASTEST:g}")
    body = vehicle_path(vehicle)
    known = all_parameters(params_path(vehicle))
    given, ignored = read_environment(environment, known)
    parameters = {name: replace(known[name], value=given.get(name, known[name].value)) for name in known}
    site = choose_site(vehicles, instance, load_world(world_path(world)) if world else None, environment)
    return Crew(
        vehicle=_build(body, params_path(vehicle), parameters, given),
        site=site,
        parameters=parameters,
        instance=instance,
        seed=seed,
        speed=pace,
        ignored=tuple(ignored),
    )


def _build(body: Path, params: Path, parameters: Mapping[str, VehicleParameter], given: Mapping[str, float]) -> Vehicle:
    """The vehicle with the control law's parameters as the environment gives them, read and checked as any file is."""
    if not any(parameters[name].kind is ParameterKind.FIXED for name in given):
        return load_vehicle(body, params)
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder) / "environment.params"
        changed.write_text("\n".join(_line(name, one) for name, one in parameters.items()), encoding="utf-8")
        return load_vehicle(body, changed)


def _line(name: str, one: VehicleParameter) -> str:
    value = int(one.value) if one.integer else one.value
    return f"1\t1\t{name}\t{value}\t{one.mavlink_type}"
