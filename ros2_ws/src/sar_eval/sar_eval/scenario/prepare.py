"""From a scenario, a seed and an index to an episode that can be flown; what cannot be is refused with the figure."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from sar_core.errors import ContractError, InputError
from sar_core.streams import stream
from sar_eval.scenario.episodeset import EpisodeSet, load_set
from sar_eval.scenario.model import (
    EPISODE_SET,
    FENCE_MARGIN_M,
    INDEX_LIMIT,
    SEED_LIMIT,
    SET_DECIDES,
    Episode,
    Floats,
    Scenario,
    Source,
    make_fault,
)
from sar_eval.scenario.resources import params_path, share_dir, vehicle_path, world_path
from sar_eval.scenario.tiers import fit
from sar_sim.radio.devices import Device, layout_key, make_devices
from sar_sim.radio.radioconfig import RadioConfig, config_sha256, load_radio
from sar_sim.vehicle.airframe import Vehicle, load_vehicle
from sar_sim.world.world import World, load_world
from sar_swarm.piloting.patternlist import LEARNED
from sar_swarm.piloting.policy import Actor, load_actor
from sar_swarm.sensing.confidence import Calibration, load_calibration


def load_named_vehicle(name: str, params: str | None = None) -> Vehicle:
    return load_vehicle(vehicle_path(name), params_path(params or name))


def episode_wind(speed_mps: float, world_name: str, index: int, drawn_from: EpisodeSet | None = None) -> Floats:
    """Mean wind of an episode, ENU: given speed, direction by episode, the same for every seed and condition."""
    if drawn_from is not None:
        angle = drawn_from.layout(index).wind_rad
    else:
        angle = stream("wind", *layout_key(world_name, EPISODE_SET, index)).uniform(-math.pi, math.pi)
    return np.array([speed_mps * math.cos(angle), speed_mps * math.sin(angle), 0.0])


RENAMED_RADIOS = {"default": "open_ground", "short_range": "rubble"}
"""Link budgets that no measurement supported, and what flies in their place; the numbers are others."""


def radio_path(name: str) -> Path:
    """The file of a link budget given by name."""
    folder = share_dir("configs") / "radio"
    if name in RENAMED_RADIOS:
        raise InputError(
            f"radio {name!r} is no more: no measurement supported it; give {RENAMED_RADIOS[name]!r}, whose numbers are "
            "measured ones (docs/sensing.md#link-budgets)"
        )
    path = folder / f"{name}.yaml"
    if not path.is_file():
        raise InputError(
            f"radio {name!r} is not known; allowed: {', '.join(sorted(p.stem for p in folder.glob('*.yaml')))}"
        )
    return path


def calibration_path(name: str) -> Path:
    """Where the calibration for a link budget lies."""
    return share_dir("configs") / "calibration" / f"{name}.json"


def prepare(
    scenario: Scenario,
    seed: int,
    index: int,
    tier: str = "embedded",
    source: Source | None = None,
    calibrated: bool = True,
) -> Episode:
    """Load what the scenario names and refuse what cannot be flown, with the figure that forbids it.

    Without ``calibrated`` the swarm gathers estimates but cannot put a probability on them, so it reports nothing.
    """
    source = source or Source()
    for name, value, limit in (("seed", seed, SEED_LIMIT), ("episode", index, INDEX_LIMIT)):
        if not 0 <= value < limit:
            raise InputError(f"{name} = {value}: must be 0 or more and below {limit}")
    scenario = fit(scenario, tier, source)
    drawn_from = None
    if scenario.episode_set is not None:
        scenario, drawn_from = _from_set(scenario, scenario.episode_set, index, source)
    for key, find, name in (("world", world_path, scenario.world), ("vehicle", vehicle_path, scenario.vehicle)):
        try:
            find(name)
        except InputError as error:
            raise InputError(f"{source.of(key)}: {error}") from error
    world = load_world(world_path(scenario.world))
    if not re.fullmatch(r"[A-Za-z0-9_-]+", world.name):
        raise InputError(
            f"{world.path}: world name = {world.name!r}: it becomes part of file names; "
            "allowed are letters, digits, _ and -"
        )
    if drawn_from is not None and world.sha256 != drawn_from.world_sha256:
        raise InputError(
            f"{source.of('world', 'episode_set')}: world = {scenario.world}: {drawn_from.name} is of "
            f"{drawn_from.world}, sha256 {drawn_from.world_sha256[:12]}..., and this world has {world.sha256[:12]}...; "
            "leave world out"
        )
    vehicle = load_named_vehicle(scenario.vehicle)
    wind = scenario.wind_mps if scenario.wind_mps is not None else float(np.linalg.norm(world.wind_mps))
    reach = vehicle.air_speed_max_mps
    if scenario.speed_mps + wind > reach:
        raise InputError(
            f"{source.of('speed_mps', 'wind_mps')}: speed_mps = {scenario.speed_mps:g} with wind_mps = {wind:g} needs "
            f"{scenario.speed_mps + wind:g} m/s of air speed; {vehicle.name} reaches {reach:g} m/s: "
            "lower speed_mps or wind_mps"
        )
    altitude = scenario.altitude_m if scenario.altitude_m is not None else world.altitude_m
    if altitude + 10.0 > world.ceiling_m:
        raise InputError(
            f"{source.of('altitude_m')}: altitude_m = {altitude:g} must stay 10 m below "
            f"the ceiling of {world.name}, {world.ceiling_m:g} m"
        )
    if scenario.drones > len(world.spawns):
        raise InputError(
            f"{source.of('drones')}: drones = {scenario.drones}: {world.name} has {len(world.spawns)} spawn points"
        )
    _check_faults(scenario, source)
    actor = _actor(scenario, source)
    chosen = world.spawns[: scenario.drones]
    spawns = chosen[np.argsort(chosen[:, 0], kind="stable")]
    _check_room(world, spawns)
    radio: RadioConfig | None = None
    calibration: Calibration | None = None
    devices: tuple[Device, ...] = ()
    if scenario.radio is not None:
        try:
            radio = load_radio(radio_path(scenario.radio))
        except InputError as error:
            raise InputError(f"{source.of('radio')}: {error}") from error
        if calibrated:
            try:
                calibration = load_calibration(calibration_path(scenario.radio), config_sha256(radio))
            except ContractError as error:
                raise ContractError(f"radio {radio_path(scenario.radio)}: {error}") from error
        if drawn_from is not None:
            devices = drawn_from.devices(index, scenario.victim_absent)
        else:
            devices = make_devices(world, EPISODE_SET, index, scenario.victims, scenario.decoys, scenario.victim_absent)
    return Episode(
        scenario,
        seed,
        index,
        tier,
        world,
        vehicle,
        altitude,
        episode_wind(wind, world.name, index, drawn_from),
        spawns,
        radio,
        calibration,
        devices,
        actor,
        drawn_from,
    )


def _from_set(scenario: Scenario, name: str, index: int, source: Source) -> tuple[Scenario, EpisodeSet]:
    """The scenario with what the set decides for this episode; another value given besides is refused."""
    try:
        drawn_from = load_set(name)
        layout, level = drawn_from.layout(index), drawn_from.level(index)
    except InputError as error:
        raise InputError(f"{source.of('episode_set')}: {error}") from error
    numbers = (level.sigma, level.kappa, layout.count(victims=True), layout.count(victims=False))
    decided: dict[str, Any] = dict(zip(SET_DECIDES, numbers, strict=True))
    for key, value in decided.items():
        given = getattr(scenario, key)
        if key in scenario.model_fields_set and given != value:
            raise InputError(
                f"{source.of(key)}: {key} = {given:g} is given besides episode_set = {drawn_from.name}, whose episode "
                f"{index} has {key} = {value:g}; leave {key} out, or the set"
            )
    if "world" not in scenario.model_fields_set:
        decided["world"] = drawn_from.world
    return scenario.model_copy(update=decided), drawn_from


def _check_room(world: World, spawns: Floats) -> None:
    """The planner flies in a box: the fence must be one, and every drone must find its landing place inside."""
    low, high = world.fence.min(axis=0), world.fence.max(axis=0)
    x, y = world.fence.T
    enclosed = 0.5 * abs(float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))))
    if enclosed < 0.999 * float(np.prod(high - low)):
        raise InputError(
            f"{world.path}: the fence encloses {enclosed:.0f} of its box's {np.prod(high - low):.0f} m2; "
            "drones plan in an upright rectangle only: give the fence four corners along x and y"
        )
    inside = (spawns[:, :2] > low + FENCE_MARGIN_M).all() and (spawns[:, :2] < high - FENCE_MARGIN_M).all()
    if not inside:
        raise InputError(
            f"{world.path}: a spawn point lies within {FENCE_MARGIN_M:g} m of the fence, where no drone plans its way"
        )


def _check_faults(scenario: Scenario, source: Source) -> None:
    for number, fault in enumerate(scenario.faults, start=1):
        where = f"{source.of('faults')}: faults, number {number} ({fault.kind})"
        if fault.drone > scenario.drones:
            raise InputError(f"{where}: drone = {fault.drone}: the mission has {scenario.drones} drones")
        try:
            make_fault(fault)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error


def _actor(scenario: Scenario, source: Source) -> Actor | None:
    """The learned policy's weights, where the pattern is one."""
    if scenario.pattern != LEARNED:
        if scenario.policy is not None:
            raise InputError(
                f"{source.of('policy')}: policy = {scenario.policy!r} is given, but the pattern is "
                f"{scenario.pattern}; a policy flies with pattern policy"
            )
        return None
    if scenario.policy is None:
        raise InputError(
            f"{source.of('pattern')}: pattern policy needs a weights file: give policy = FILE.npz "
            "(on the command line --policy FILE.npz); without one there is nothing to fly"
        )
    return load_actor(Path(scenario.policy))
