"""A world as a scene of Sionna RT, and the links that are traced in it.

Sionna RT knows surfaces, each a slab of a thickness, and no volumes. A hollow body maps exactly. A solid gets half of
its mean chord (4 V / S for a convex body) on each face, a garden wall half of its 0.3 m. Cylinders become hexagonal
prisms that absorb and do not mirror: a flat facet would mirror far too much. Faces that touch are drawn INSET_M apart,
since rays leave a surface with an offset of centimetres in float32. Foliage has no counterpart.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.geometry import BOX, box, distance_to
from sar_sim.world.materials import RADIO_MATERIALS
from sar_sim.world.world import World, load_world

Floats = NDArray[np.float64]

WORLDS = Path(__file__).resolve().parents[2] / "worlds"
INSET_M = 0.05
GROUND_HALF_M = 1500.0
SHELLS = ("brick_shell", "concrete_shell")
ENTERABLE = (*SHELLS, "rubble")
DRONES = 20
HEIGHT_M = (0.3, 1.0)
ONE_WALL = "one_wall"


class Links(NamedTuple):
    """T devices [T, 3] and for each of them R drones [T, R, 3]; class of a device's place: in the open or within."""

    devices: Floats
    drones: Floats
    indoors: NDArray[np.bool_]


def world_named(name: str) -> World:
    """A world of the folder, or the open field with one thick wall of concrete at x = 8 m."""
    if name != ONE_WALL:
        return load_world(WORLDS / f"{name}.sdf")
    wall = box(10.0, 0.0, 100.0, 4.0, 800.0, 200.0)[None]
    field = load_world(WORLDS / "open_field.sdf")
    return replace(field, obstacles=wall, obstacle_names=("wall",), materials=("concrete",))


def within(world: World, place: Floats, names: tuple[str, ...] | None = None, margin: float = 0.0) -> bool:
    """Whether a place lies within a body of these materials, or of any."""
    rows = zip(world.obstacles, world.materials, strict=True)
    return any((names is None or m in names) and distance_to(row, *map(float, place)) <= margin for row, m in rows)


def make_links(name: str, world: World) -> Links:
    """Devices anywhere a person may lie, in houses, and 0.5 to 4 m from a wall; drones evenly by the logarithm of
    distance, 5 to 300 m, so that near and far weigh alike. Everything to the centimetre."""
    rng = np.random.default_rng(20)
    if name == ONE_WALL:
        return _before_a_wall()
    x0, y0, x1, y1 = world.area
    houses = [
        row
        for row, material in zip(world.obstacles, world.materials, strict=True)
        if material in SHELLS and row[3] - row[6] < 0.1 and row[6] > 1.5 and x0 < row[1] < x1 and y0 < row[2] < y1
    ]
    solid = tuple(set(RADIO_MATERIALS) - set(ENTERABLE))
    devices: list[Floats] = []
    while len(devices) < 16:
        place = rng.uniform((x0, y0, HEIGHT_M[0]), (x1, y1, HEIGHT_M[1])).round(2)
        if not within(world, place, solid, 0.2):
            devices.append(place)
    while houses and len(devices) < 40:
        row = houses[int(rng.integers(len(houses)))]
        u, v = rng.uniform(-1.0, 1.0, 2) * (row[4:6] - 0.5)
        outside = len(devices) >= 24
        if outside:
            u = math.copysign(row[4] + rng.uniform(0.5, 4.0), u)
        c, s = math.cos(row[7]), math.sin(row[7])
        place = np.array([row[1] + c * u - s * v, row[2] + s * u + c * v, rng.uniform(*HEIGHT_M)]).round(2)
        if not (outside and within(world, place, margin=0.3)):
            devices.append(place)
    drones = np.zeros((len(devices), DRONES, 3))
    for device, row in zip(devices, drones, strict=True):
        for k in range(DRONES):
            while True:
                r, a = math.exp(rng.uniform(math.log(5.0), math.log(300.0))), rng.uniform(0.0, 2.0 * math.pi)
                place = np.array([device[0] + r * math.cos(a), device[1] + r * math.sin(a), world.altitude_m]).round(2)
                if x0 < place[0] < x1 and y0 < place[1] < y1 and not within(world, place, margin=1.0):
                    break
            row[k] = place
    return Links(np.array(devices), drones, np.array([within(world, place) for place in devices]))


def _before_a_wall() -> Links:
    """One device and drones 40 m from it, by elevation (9 to 81 degrees) and by azimuth off the wall's normal."""
    device = np.array([0.0, 0.0, 1.0])
    elevation, azimuth = np.meshgrid(np.radians(np.arange(9, 82, 6)), np.radians([100.0, 120.0, 150.0, 180.0]))
    arrow = [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
    drones = (device + 40.0 * np.stack(arrow, axis=-1).reshape(-1, 3)).round(2)
    return Links(device[None], drones[None], np.array([False]))


def in_the_way(row: Floats, start: Floats, end: Floats) -> bool:
    """Whether a straight way crosses a body's inside."""
    c, s = math.cos(row[7]), math.sin(row[7])
    turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    a, d = turn @ (start - row[1:4]), turn @ (end - start)
    share = (np.arange(4000) + 0.5)[:, None] / 4000
    points = a + share * d
    upright = np.abs(points[:, 2]) < row[6]
    if row[0] == BOX:
        return bool(np.any(upright & np.all(np.abs(points[:, :2]) < row[4:6], axis=1)))
    return bool(np.any(upright & (np.hypot(points[:, 0], points[:, 1]) < row[4])))


def blocked(world: World, links: Links) -> NDArray[np.bool_]:
    """Links [T, R] with a body in the straight way, to the 4000th part of its length."""
    ends = [(device, drone) for device, row in zip(links.devices, links.drones, strict=True) for drone in row]
    found = [any(in_the_way(row, *way) for row in world.obstacles) for way in ends]
    return np.array(found).reshape(links.drones.shape[:2])


def slab_of(row: Floats, material: str, table: dict[str, tuple[float, float]]) -> tuple[float, float, float]:
    """Permittivity, conductivity and thickness of a body's faces; table: permittivity and conductivity by material."""
    known = RADIO_MATERIALS[material]
    if material in SHELLS:
        return *table[material.removesuffix("_shell")], known.wall_m
    # 1636 sigma / sqrt(eps) dB per metre (Rec. ITU-R P.2040): a medium that mirrors next to nothing.
    if row[0] != BOX:
        loss_db_per_m = 600.0 if material == "metal" else known.db_per_m
        return 1.0, loss_db_per_m / 1636.0, round(0.25 * math.pi * row[4], 2)
    if material == "metal":
        return 1.0, 1e7, 0.01
    a, b, c = 2.0 * row[4:7]
    thickness = max(round(a * b * c / (a * b + b * c + a * c), 1), 0.1)
    if material == "rubble":
        return 1.0, known.db_per_m / 1636.0, thickness
    return *table[material], 0.15 if material == "brick" else thickness


def _prism(row: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Corners and outward triangles of a body; without a floor where it stands on the ground."""
    x, y, z, hx, hy, hz, yaw = row[1:8]
    if row[0] == BOX:
        hx, hy = max(hx - INSET_M, 0.02), max(hy - INSET_M, 0.02)
        plan = np.array([(hx, hy), (-hx, hy), (-hx, -hy), (hx, -hy)])
    else:
        angle = np.arange(6) * math.pi / 3.0
        plan = hx * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    c, s = math.cos(yaw), math.sin(yaw)
    plan = plan @ np.array([[c, s], [-s, c]]) + (x, y)
    n = len(plan)
    grounded = z - hz <= 1e-6
    low, high = (-0.2 if grounded else z - hz + INSET_M), z + hz - INSET_M
    points = np.vstack([np.c_[plan, np.full(n, low)], np.c_[plan, np.full(n, high)]])
    faces = [t for i in range(n) for j in [(i + 1) % n] for t in ((i, j, n + j), (i, n + j, n + i))]
    faces += [(n, n + i, n + i + 1) for i in range(1, n - 1)]
    if not grounded:
        faces += [(0, i + 1, i) for i in range(1, n - 1)]
    return points, np.array(faces)


def _write_ply(path: Path, points: Floats, faces: NDArray[np.int64]) -> None:
    head = f"ply\nformat binary_little_endian 1.0\nelement vertex {len(points)}\n"
    head += "property float x\nproperty float y\nproperty float z\n"
    head += f"element face {len(faces)}\nproperty list uchar int vertex_index\nend_header\n"
    rows = np.zeros(len(faces), dtype=[("n", "u1"), ("v", "<i4", 3)])
    rows["n"], rows["v"] = 3, faces
    path.write_bytes(head.encode() + points.astype("<f4").tobytes() + rows.tobytes())


def write_scene(world: World, folder: Path, table: dict[str, tuple[float, float]]) -> Path:
    """One mesh per kind of slab and the Mitsuba file that names them; returns the latter."""
    if len(world.volumes):
        raise SystemExit(f"{world.name}: foliage has no counterpart in Sionna RT")
    groups: dict[tuple[float, float, float], list[tuple[Floats, NDArray[np.int64]]]] = defaultdict(list)
    for row, material in zip(world.obstacles, world.materials, strict=True):
        groups[slab_of(row, material, table)].append(_prism(row))
    h = GROUND_HALF_M
    ground = np.array([(-h, -h, 0.0), (h, -h, 0.0), (h, h, 0.0), (-h, h, 0.0)]), np.array([(0, 1, 2), (0, 2, 3)])
    groups[(*table["ground"], 2.0)].append(ground)
    xml = ['<scene version="2.1.0">']
    for k, ((eps, sigma, thick), bodies) in enumerate(sorted(groups.items(), key=lambda g: g[0])):
        starts = np.cumsum([0] + [len(points) for points, _ in bodies[:-1]])
        faces = np.vstack([faces + start for (_, faces), start in zip(bodies, starts, strict=True)])
        _write_ply(folder / f"m{k}.ply", np.vstack([points for points, _ in bodies]), faces)
        xml += [
            f'<bsdf type="radio-material" id="mat{k}"><float name="relative_permittivity" value="{eps:.6g}"/>',
            f'<float name="conductivity" value="{sigma:.6g}"/><float name="thickness" value="{thick:g}"/></bsdf>',
            f'<shape type="ply" id="mesh{k}"><string name="filename" value="m{k}.ply"/>',
            f'<boolean name="face_normals" value="true"/><ref id="mat{k}" name="bsdf"/></shape>',
        ]
    path = folder / "scene.xml"
    path.write_text("\n".join([*xml, "</scene>", ""]))
    return path
