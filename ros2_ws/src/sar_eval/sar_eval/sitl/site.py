"""Where the vehicles stand: PX4's environment, a world's spawn points, or a line around the origin."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import InputError
from sar_core.geodesy import Origin, to_local
from sar_core.geometry import no_obstacles
from sar_eval.px4.mavlink import ORIGIN
from sar_sim.world.world import World

Floats = NDArray[np.float64]

SPACING_M = 4.0
NORTH = math.pi / 2.0
"""Yaw, ENU."""
HOME = {"PX4_HOME_LAT": (-90.0, 90.0), "PX4_HOME_LON": (-180.0, 180.0), "PX4_HOME_ALT": (-500.0, 9000.0)}
SPEED = "PX4_SIM_SPEED_FACTOR"
FASTEST = 100.0


@dataclass(frozen=True)
class Site:
    """The simulator's ENU frame on the Earth and who stands where in it: spawns [N, 4] x, y, z, yaw."""

    frame: Origin
    spawns: Floats
    obstacles: Floats


def number_in(environment: Mapping[str, str], name: str, low: float, high: float) -> float | None:
    """A variable as a number; None if it is not set."""
    text = environment.get(name, "")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise InputError(f"{name} = {text!r}: allowed are numbers from {low:g} to {high:g}")
    return value


def choose_site(vehicles: int, instance: int, world: World | None, environment: Mapping[str, str]) -> Site:
    """The simulator's frame is the world's; without a world it begins where the vehicles stand."""
    latitude, longitude, altitude = (number_in(environment, name, *limits) for name, limits in HOME.items())
    if (latitude is None) != (longitude is None):
        raise InputError("PX4_HOME_LAT and PX4_HOME_LON: only one of them is set; set both or none")
    ground = ORIGIN.altitude_m if altitude is None else altitude
    obstacles = no_obstacles() if world is None else world.obstacles
    if latitude is None or longitude is None:
        spawns = _line(vehicles) if world is None else _spawn_points(world, vehicles, instance)
        return Site(ORIGIN._replace(altitude_m=ground), spawns, obstacles)
    spawns = _line(vehicles)
    if world is None:
        return Site(Origin(latitude, longitude, ground), spawns, obstacles)
    north, east = to_local(ORIGIN, latitude, longitude)
    spawns[:, 0] += east
    spawns[:, 1] += north
    return Site(ORIGIN._replace(altitude_m=ground), spawns, obstacles)


def _line(vehicles: int) -> Floats:
    """From west to east, the middle at zero, looking north."""
    spawns = np.zeros((vehicles, 4))
    spawns[:, 0] = SPACING_M * (np.arange(vehicles) - 0.5 * (vehicles - 1))
    spawns[:, 3] = NORTH
    return spawns


def _spawn_points(world: World, vehicles: int, instance: int) -> Floats:
    """By x, as an episode with so many drones numbers them."""
    last = instance + vehicles
    if last > len(world.spawns):
        raise InputError(
            f"--vehicles {vehicles} from --instance {instance}: {world.name} has {len(world.spawns)} spawn points"
        )
    chosen = world.spawns[:last]
    return np.asarray(chosen[np.argsort(chosen[:, 0], kind="stable")][instance:], dtype=np.float64)
