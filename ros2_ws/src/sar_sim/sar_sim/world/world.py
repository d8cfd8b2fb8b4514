"""The world as its SDF file describes it, read once into arrays.

One file serves Gazebo and the embedded simulator. Solid things are standard SDF (static models, boxes and upright
cylinders); what SDF has no word for (radio materials, spawn points, geofence, search area) sits in elements of the
``sar:`` namespace, which libsdformat carries along untouched. Everything is ENU metres and radians.

Reading never guesses: whatever would make the two simulators see different worlds is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import InputError
from sar_core.geometry import ROW, box, cylinder, nearest
from sar_sim.world.materials import RADIO_MATERIALS
from sar_sim.world.sdf import (
    Node,
    Report,
    attribute_of,
    child_of,
    compose,
    numbers,
    parse_sdf,
    read_pose,
    read_shape,
    values_of,
)

Floats = NDArray[np.float64]

SDF_VERSION = "1.9"
# Half the width of an x500 with its propellers, rounded up: nearer than this a parked drone touches.
SPAWN_CLEARANCE_M = 0.5
SPAWN_SPACING_M = 3.0
SPAWN_CENTRE_M = 0.227


@dataclass(frozen=True, eq=False)
class World:
    """A world's static facts. Obstacle and volume rows are those of sar_core.geometry."""

    name: str
    path: Path
    sha256: str
    obstacles: Floats  # [M, 8]
    obstacle_names: tuple[str, ...]
    materials: tuple[str, ...]  # one per obstacle
    volumes: Floats  # [K, 8] bodies that weaken radio but stop no drone: tree crowns
    volume_materials: tuple[str, ...]
    spawns: Floats  # [S, 4] x, y, z of the feet, yaw
    fence: Floats  # [V, 2]
    ceiling_m: float
    area: tuple[float, float, float, float]  # x_min, y_min, x_max, y_max
    altitude_m: float
    wind_mps: Floats  # [3]
    origin: tuple[float, float, float]  # lat_deg, lon_deg, alt_m
    step_s: float


def load_world(path: Path) -> World:
    """Read a world; the first thing wrong with it is an InputError naming file, line, element and what is allowed."""

    def refuse(node: Node, message: str) -> None:
        raise InputError(f"{path}:{node.line}: {node.where}: {message}")

    root, digest = parse_sdf(path)
    world = interpret(root, path, digest, refuse)
    if world is None:
        raise InputError(f"{path}: not a readable world")
    return world


def interpret(root: Node, path: Path, digest: str, report: Report) -> World | None:
    """The world in an element tree. Problems go to `report`; where it returns, reading goes on with what is left."""
    worlds = root.all("world")
    if root.tag != "sdf" or len(worlds) != 1:
        report(root, f"<{root.tag}> with {len(worlds)} <world> elements; allowed is <sdf> with exactly one")
        return None
    if root.attributes.get("version") != SDF_VERSION:
        report(root, f"version is {root.attributes.get('version')!r}, allowed is {SDF_VERSION!r}")
    world = worlds[0]
    for tag in ("include", "frame", "joint", "population"):
        for node in world.all(tag):
            report(node, f"<{tag}> is not supported: the embedded simulator would not see it")

    rows: list[Floats] = []
    names: list[str] = []
    materials: list[str] = []
    grounds = 0
    for model in world.all("model"):
        bodies, planes = _read_model(model, report)
        grounds += planes
        for name, material, row in bodies:
            rows.append(row)
            names.append(name)
            materials.append(material)
    if grounds != 1:
        report(world, f"{grounds} ground planes, allowed is exactly one")

    volumes = [v for v in (_read_volume(n, report) for n in world.all("sar:volume")) if v is not None]
    spawns = [(n, s) for n in world.all("sar:spawn") if (s := numbers(n.text, 4, n, "spawn", report)) is not None]
    fence, ceiling = _read_fence(world, report)
    area, altitude = _read_mission(world, report)
    step = values_of(child_of(world, "physics", report), "max_step_size", 1, report)
    wind = values_of(child_of(world, "wind", report), "linear_velocity", 3, report)
    origin = _read_origin(world, report)
    if step is not None and step[0] <= 0.0:
        report(world.all("physics")[0], f"max_step_size {step[0]:g} is not positive")
    if fence is None or area is None or step is None or wind is None or origin is None:
        return None
    out = World(
        name=world.attributes.get("name", ""),
        path=path,
        sha256=digest,
        obstacles=np.array(rows).reshape(-1, ROW),
        obstacle_names=tuple(names),
        materials=tuple(materials),
        volumes=np.array([row for _, row in volumes]).reshape(-1, ROW),
        volume_materials=tuple(material for material, _ in volumes),
        spawns=np.array([s for _, s in spawns]).reshape(-1, 4),
        fence=fence,
        ceiling_m=ceiling,
        area=area,
        altitude_m=altitude,
        wind_mps=np.array(wind),
        origin=origin,
        step_s=step[0],
    )
    _check_layout(out, world, [n for n, _ in spawns], report)
    return out


def _known_material(name: str, node: Node, report: Report) -> str:
    if name not in RADIO_MATERIALS:
        report(node, f"radio material {name!r} is unknown, allowed are {', '.join(sorted(RADIO_MATERIALS))}")
    return name


def _read_model(model: Node, report: Report) -> tuple[list[tuple[str, str, Floats]], int]:
    """A model's bodies as (name, material, row), and how many ground planes it holds."""
    for tag in ("model", "joint", "frame", "include"):
        for node in model.all(tag):
            report(node, f"<{tag}> inside a model is not supported")
    if [n.text.strip() for n in model.all("static")] not in (["true"], ["1"]):
        report(model, "<static> must be true: everything in a world file stands still")
    name = model.attributes.get("name", "")
    bodies: list[tuple[str, str, Floats]] = []
    planes = 0
    outer = read_pose(model, report)
    for link in model.all("link"):
        middle = read_pose(link, report)
        for collision in link.all("collision"):
            inner = read_pose(collision, report)
            shape = read_shape(collision, report)
            tagged = child_of(collision, "sar:material", report)
            material = "" if tagged is None else _known_material(tagged.text.strip(), tagged, report)
            if outer is None or middle is None or inner is None or shape is None:
                continue
            x, y, z, yaw = compose(compose(outer, middle), inner)
            kind, sizes = shape
            label = f"{name}/{link.attributes.get('name', '')}/{collision.attributes.get('name', '')}"
            if kind == "plane":
                planes += 1
                if z != 0.0:
                    report(collision, f"the ground plane lies at z = {z:g}, allowed is 0")
            elif kind == "box":
                bodies.append((label, material, box(x, y, z, sizes[0], sizes[1], sizes[2], yaw)))
            else:
                bodies.append((label, material, cylinder(x, y, z, sizes[0], sizes[1])))
    if len(bodies) == 1:
        bodies = [(name, *bodies[0][1:])]
    return bodies, planes


def _read_volume(node: Node, report: Report) -> tuple[str, Floats] | None:
    """A radio-only box: material, pose (x, y, z, yaw) and size as attributes."""
    pose = attribute_of(node, "pose", 4, report)
    size = attribute_of(node, "size", 3, report)
    material = _known_material(node.attributes.get("material", ""), node, report)
    if pose is None or size is None:
        return None
    if min(size) <= 0.0:
        report(node, f"size {min(size):g} is not positive")
        return None
    return material, box(pose[0], pose[1], pose[2], size[0], size[1], size[2], pose[3])


def _read_fence(world: Node, report: Report) -> tuple[Floats | None, float]:
    node = child_of(world, "sar:fence", report)
    if node is None:
        return None, 0.0
    ceiling = attribute_of(node, "ceiling_m", 1, report)
    corners = numbers(node.text, None, node, "fence", report)
    if corners is None or ceiling is None:
        return None, 0.0
    if len(corners) < 6 or len(corners) % 2:
        report(node, f"fence has {len(corners)} values, allowed is x y for three corners or more")
        return None, 0.0
    return np.array(corners).reshape(-1, 2), ceiling[0]


def _read_mission(world: Node, report: Report) -> tuple[tuple[float, float, float, float] | None, float]:
    node = child_of(world, "sar:mission", report)
    if node is None:
        return None, 0.0
    area = attribute_of(node, "area", 4, report)
    altitude = attribute_of(node, "altitude_m", 1, report)
    if area is None or altitude is None:
        return None, 0.0
    x_min, y_min, x_max, y_max = area
    if x_min >= x_max or y_min >= y_max:
        report(node, f"area {x_min:g} {y_min:g} {x_max:g} {y_max:g} is empty; write x_min y_min x_max y_max")
        return None, 0.0
    return (x_min, y_min, x_max, y_max), altitude[0]


def _read_origin(world: Node, report: Report) -> tuple[float, float, float] | None:
    node = child_of(world, "spherical_coordinates", report)
    parts = [values_of(node, tag, 1, report) for tag in ("latitude_deg", "longitude_deg", "elevation")]
    orientation = child_of(node, "world_frame_orientation", report)
    if orientation is not None and orientation.text.strip() != "ENU":
        report(orientation, f"orientation {orientation.text.strip()!r}, allowed is 'ENU'")
    heading = values_of(node, "heading_deg", 1, report)
    if node is not None and heading is not None and heading[0] != 0.0:
        report(node, f"heading_deg {heading[0]:g}, allowed is 0: x is east")
    if parts[0] is None or parts[1] is None or parts[2] is None:
        return None
    return parts[0][0], parts[1][0], parts[2][0]


def _check_layout(world: World, node: Node, spawn_nodes: list[Node], report: Report) -> None:
    """Can drones stand on the spawns, and does the fence enclose what they must reach?"""
    fence_node = node.all("sar:fence")[0]
    x_min, y_min, x_max, y_max = world.area
    simple = is_simple(world.fence)
    if not simple:
        report(fence_node, "fence crosses or touches itself; allowed is a simple polygon")
    elif not encloses(world.fence, np.array([[x_min, y_min], [x_max, y_min], [x_max, y_max], [x_min, y_max]])):
        report(fence_node, "fence does not contain the whole search area")
    if not 0.0 < world.altitude_m < world.ceiling_m:
        report(fence_node, f"altitude_m {world.altitude_m:g} must lie between 0 and ceiling_m {world.ceiling_m:g}")
    if not spawn_nodes:
        report(node, "no <sar:spawn>; a world needs at least one")
    for i, (spawn, (x, y, z, _)) in enumerate(zip(spawn_nodes, world.spawns, strict=True)):
        if z != 0.0:
            report(spawn, f"spawn {i} stands at z = {z:g}, allowed is 0 (the ground)")
        if simple and not contains(world.fence, x, y):
            report(spawn, f"spawn {i} at ({x:g}, {y:g}) is outside the fence")
        gap, index = nearest(world.obstacles, x, y, z + SPAWN_CENTRE_M)
        if gap < SPAWN_CLEARANCE_M:
            report(spawn, f"spawn {i} at ({x:g}, {y:g}) overlaps obstacle {world.obstacle_names[index]!r}")
        if i:
            gaps = np.hypot(world.spawns[:i, 0] - x, world.spawns[:i, 1] - y)
            j = int(np.argmin(gaps))
            if gaps[j] < SPAWN_SPACING_M:
                report(spawn, f"spawn {i} is {gaps[j]:.2f} m from spawn {j}, allowed is {SPAWN_SPACING_M:g} m or more")


def contains(polygon: Floats, x: float, y: float) -> bool:
    """Is the point inside the polygon [V, 2] or on its edge?"""
    inside = False
    corners: list[tuple[float, float]] = [(float(px), float(py)) for px, py in polygon]
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1], strict=True):
        cross = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
        if cross == 0.0 and min(ax, bx) <= x <= max(ax, bx) and min(ay, by) <= y <= max(ay, by):
            return True
        if (ay > y) != (by > y) and x < ax + (y - ay) * (bx - ax) / (by - ay):
            inside = not inside
    return inside


def is_simple(polygon: Floats) -> bool:
    """Does the closed polygon [V, 2] have area and no edges that meet other than at shared corners?"""
    n = len(polygon)
    edges = [(polygon[i], polygon[(i + 1) % n]) for i in range(n)]
    for i in range(n):
        a, b = edges[i]
        c = edges[(i + 1) % n][1]
        if bool(np.all(a == b)) or (_turn(a, b, c) == 0.0 and float(np.dot(b - a, c - b)) < 0.0):
            return False
        for j in range(i + 2, n):
            if (j + 1) % n != i and _meet(*edges[i], *edges[j]):
                return False
    return True


def encloses(polygon: Floats, inner: Floats) -> bool:
    """Does a simple polygon [V, 2] contain another one [W, 2] whole?"""
    if not all(contains(polygon, float(x), float(y)) for x, y in inner):
        return False
    outer_edges = zip(polygon, np.roll(polygon, -1, axis=0), strict=True)
    inner_edges = list(zip(inner, np.roll(inner, -1, axis=0), strict=True))
    return not any(_cross(a, b, c, d) for a, b in outer_edges for c, d in inner_edges)


def _turn(a: Floats, b: Floats, c: Floats) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _cross(a: Floats, b: Floats, c: Floats, d: Floats) -> bool:
    """Do segments a-b and c-d cross, each strictly through the other's inside?"""
    return _turn(a, b, c) * _turn(a, b, d) < 0.0 and _turn(c, d, a) * _turn(c, d, b) < 0.0


def _meet(a: Floats, b: Floats, c: Floats, d: Floats) -> bool:
    """Do segments a-b and c-d share any point?"""
    if _cross(a, b, c, d):
        return True
    for p, q, r in ((a, b, c), (a, b, d), (c, d, a), (c, d, b)):
        if _turn(p, q, r) == 0.0 and bool(np.all(np.minimum(p, q) <= r) and np.all(r <= np.maximum(p, q))):
            return True
    return False
