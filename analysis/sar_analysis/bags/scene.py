"""The place an episode was flown in, as its bag carries it: obstacles, fence, area, and how near a drone came to them.

A bag names its world by the hash of the SDF file and holds the geometry that was read from it. The hash cannot be
computed from the geometry, so this is what binds the two: the record states the hash and the area it belongs to, both
must be those of /episode/info; every obstacle the referee names must be in the list; every drone must stand on a spawn
point at the first tick. The file's checksum covers the record itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_analysis.bags.arrays import Events, Info, TruthSeries
from sar_core.compiled import compiled
from sar_core.errors import ContractError
from sar_core.geometry import BOX, CYLINDER, ROW, distance_to, segment_distance

Floats = NDArray[np.float64]

RECORD = "world"
SCHEMA_VERSION = "1"
SPAWN_M = 1.0
"""How far from its spawn point a drone may stand at the first tick: it is set down on its feet, not on its centre."""


@dataclass(frozen=True, eq=False)
class Scene:
    """obstacles float64[M, 8] (rows of sar_core.geometry), fence [V, 2], spawns [S, 4] x y z yaw; ENU metres."""

    name: str
    sha256: str
    obstacles: Floats
    names: tuple[str, ...]
    area_m: tuple[float, float, float, float]
    fence: Floats
    ceiling_m: float
    spawns: Floats
    hull_radius_m: float


def read_scene(record: Mapping[str, str] | None, where: str) -> Scene | None:
    """The scene of a bag's metadata record; None for bags from before there was one."""
    if record is None:
        return None
    version = record.get("schema_version", "none")
    if version != SCHEMA_VERSION:
        raise ContractError(f"{where}: metadata record {RECORD!r}: schema_version is {version}, not {SCHEMA_VERSION}")
    try:
        return _scene(record["world_sha256"], json.loads(record["geometry"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ContractError(f"{where}: metadata record {RECORD!r} lacks or mistypes {error}") from error


def _scene(sha256: str, plain: Mapping[str, Any]) -> Scene:
    west, south, east, north = (float(v) for v in plain["area_m"])
    scene = Scene(
        name=str(plain["name"]),
        sha256=sha256,
        obstacles=np.asarray(plain["obstacles"], np.float64).reshape(-1, ROW),
        names=tuple(str(name) for name in plain["obstacle_names"]),
        area_m=(west, south, east, north),
        fence=np.asarray(plain["fence"], np.float64).reshape(-1, 2),
        ceiling_m=float(plain["ceiling_m"]),
        spawns=np.asarray(plain["spawns"], np.float64).reshape(-1, 4),
        hull_radius_m=float(plain["hull_radius_m"]),
    )
    if len(scene.names) != len(scene.obstacles):
        raise ValueError(f"names: {len(scene.names)} for {len(scene.obstacles)} obstacles")
    if not np.isin(scene.obstacles[:, 0], (BOX, CYLINDER)).all():
        raise ValueError(f"obstacles: a kind other than {BOX:g} (box) and {CYLINDER:g} (cylinder)")
    if not all(np.isfinite(a).all() for a in (scene.obstacles, scene.fence, scene.spawns)):
        raise ValueError("obstacles, fence or spawns: a number is not finite")
    return scene


def demand_same_world(scene: Scene, info: Info, truth: TruthSeries, events: Events, where: str) -> None:
    """Refuse a geometry that is not that of the world the episode says it flew in."""
    told = f"{where}: metadata record {RECORD!r}"
    if scene.sha256 != info.world_sha256:
        raise ContractError(f"{told} is of world {scene.sha256[:12]}, /episode/info says {info.world_sha256[:12]}")
    if scene.area_m != info.area_m:
        raise ContractError(f"{told} has the search area {scene.area_m}, /episode/info says {info.area_m}")
    if strange := {name for name in events.obstacle if name} - set(scene.names):
        raise ContractError(f"{told} lacks obstacles that were touched: {', '.join(sorted(strange))}")
    if len(scene.spawns) and len(truth.position):
        away = np.linalg.norm(truth.position[0, :, None] - scene.spawns[None, :, :3], axis=-1).min(axis=1)
        if away.max() > SPAWN_M:
            drone = int(np.argmax(away)) + 1
            raise ContractError(f"{told}: drone {drone} starts {away.max():.1f} m from every spawn point")


def least_clearance(scene: Scene, positions: Floats) -> float | None:
    """Least distance from a hull to an obstacle over the whole flight, negative inside; None without obstacles.

    positions [K, N, 3], straight between ticks. As the referee has it: take-off and landing count, the ground does not.
    """
    if not len(scene.obstacles) or not len(positions):
        return None
    return float(_least_distance(scene.obstacles, np.ascontiguousarray(positions))) - scene.hull_radius_m


@compiled
def _least_distance(obstacles: Floats, positions: Floats) -> float:
    """Centre to obstacle over all legs; what is d away cannot be met before d has been flown, so most are skipped."""
    best = np.inf
    ticks, drones, _ = positions.shape
    for n in range(drones):
        path = positions[:, n]
        for m in range(obstacles.shape[0]):
            row = obstacles[m]
            d = distance_to(row, path[0, 0], path[0, 1], path[0, 2])
            best = min(best, d)
            spare = d - best
            for k in range(1, ticks):
                step = 0.0
                for i in range(3):
                    step += (path[k, i] - path[k - 1, i]) ** 2
                spare -= math.sqrt(step)
                if spare <= 0.0:
                    near, _ = segment_distance(row, path[k - 1], path[k])
                    best = min(best, near)
                    spare = distance_to(row, path[k, 0], path[k, 1], path[k, 2]) - best
    return best
