"""What bodies take from a wave on a straight way: what goes through them, and what bends round their edges.

A solid takes its share per metre of chord, a hollow body what its walls take as slabs at the angle of incidence. Where
both ends lie outside a box, knife edges add what bends over it and past either side. The two belong together: without
edges nothing but the passage is left behind a body, and a slab's loss alone errs more than absorption alone does.
Cylinders are thin (trunks, poles): nothing bends round them, which overstates what a pole of metal takes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from sar_core.compiled import compiled, inlined
from sar_core.geometry import BOX
from sar_core.radio import WAVELENGTH_M
from sar_sim.radio.fresnel import passage, te_share
from sar_sim.world.materials import RADIO_MATERIALS, imaginary_permittivity
from sar_sim.world.world import World

Floats = NDArray[np.float64]

BODY = 16
"""Columns of a body row: kind, centre [3], half extents [3], cos and sin of yaw, bounding radius in the plane, dB per
metre, dB per face, thickness of its walls, relative permittivity of its faces (real, imaginary), 1 for foliage."""

FOLIAGE_LINEAR_M = 14.0
FOLIAGE_POWER = 0.588
"""Weissberger 1982: loss grows in proportion up to 14 m of leaves and with the power 0.588 beyond."""

KNIFE = 10.0**-0.69
"""The 6.9 dB of Rec. ITU-R P.526's approximation of a knife edge."""

ON_FACE = 1e-9
"""Share of a way within which an end lies on a face and not beyond it: a house's floor takes nothing from the echo off
the ground it stands on."""


def make_bodies(world: World) -> Floats:
    """The world's obstacles and volumes as radio meets them [B, BODY]."""
    rows = [*world.obstacles, *world.volumes]
    materials = [*world.materials, *world.volume_materials]
    bodies = np.zeros((len(rows), BODY))
    for body, row, name in zip(bodies, rows, materials, strict=True):
        material = RADIO_MATERIALS[name]
        body[0:7] = row[0:7]
        body[7], body[8] = math.cos(row[7]), math.sin(row[7])
        body[9] = math.hypot(row[4], row[5]) if row[0] == BOX else row[4]
        body[10], body[11], body[12] = material.db_per_m, material.db_per_face, material.wall_m
        body[13], body[14] = material.permittivity, imaginary_permittivity(material.conductivity_spm)
        body[15] = float(name == "foliage")
    return bodies


@inlined
def _clip(
    span: tuple[float, float, int, int], start: float, slope: float, half: float, axis: int
) -> tuple[float, float, int, int]:
    """The part of a way in which start + t slope stays within plus or minus half: from, to, and the axes across which
    it enters and leaves."""
    low, high, enters, leaves = span
    if slope == 0.0:
        return span if abs(start) <= half else (1.0, 0.0, axis, axis)
    a = (-half - start) / slope
    b = (half - start) / slope
    if a > b:
        a, b = b, a
    if a > low:
        low, enters = a, axis
    if b < high:
        high, leaves = b, axis
    return low, high, enters, leaves


@inlined
def knife_share(excess_m: float) -> float:
    """Share of power that a single knife edge leaves a wave that goes a longer way round it (Rec. ITU-R P.526-16,
    section 4.1): 6.9 + 20 log10(sqrt((v - 0.1)^2 + 1) + v - 0.1) dB with v = 2 sqrt(excess / wavelength)."""
    v = 2.0 * math.sqrt(max(excess_m, 0.0) / WAVELENGTH_M) - 0.1
    root = math.sqrt(v * v + 1.0) + v
    return KNIFE / (root * root)


@inlined
def _round(near: float, far: float, start: float, end: float, low: float, high: float) -> float:
    """Length of the shortest way that touches an edge: distances of both ends from its line, their places along it, and
    the edge's ends. Rolled into one plane the way is straight."""
    at = min(max(start + (end - start) * near / (near + far), low), high) if near + far > 0.0 else start
    return math.sqrt(near * near + (at - start) ** 2) + math.sqrt(far * far + (end - at) ** 2)


@compiled
def _bent_share(body: Floats, ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> float:
    """Share of power that bends round a box from a to b, both in its frame: by the best of its upper edges and by the
    best of its corners on either side, their powers summed as those of a finite-width screen (Rec. ITU-R P.526-16,
    section 5.1)."""
    hx, hy, hz = body[4], body[5], body[6]
    foot = max(-hz, -body[3])
    left = right = over = np.inf
    for k in range(4):
        u = hx if k % 2 == 0 else -hx
        v = hy if k < 2 else -hy
        way = _round(math.hypot(u - ax, v - ay), math.hypot(bx - u, by - v), az, bz, foot, hz)
        if (bx - ax) * (v - ay) > (by - ay) * (u - ax):
            left = min(left, way)
        else:
            right = min(right, way)
    for half in (-hx, hx):
        way = _round(math.hypot(half - ax, hz - az), math.hypot(bx - half, bz - hz), ay, by, -hy, hy)
        over = min(over, way)
    for half in (-hy, hy):
        way = _round(math.hypot(half - ay, hz - az), math.hypot(by - half, bz - hz), ax, bx, -hx, hx)
        over = min(over, way)
    straight = math.sqrt((bx - ax) ** 2 + (by - ay) ** 2 + (bz - az) ** 2)
    return knife_share(left - straight) + knife_share(right - straight) + knife_share(over - straight)


@compiled
def loss_db(bodies: Floats, ax: float, ay: float, az: float, bx: float, by: float, bz: float, skip: int) -> float:
    """What the bodies take from a wave on the straight way from a to b, without body number `skip`; edges included.

    A wave from inside a hollow body passes one wall, and one that crosses it two.
    """
    dx, dy, dz = bx - ax, by - ay, bz - az
    plane = dx * dx + dy * dy
    length = math.sqrt(plane + dz * dz)
    loss = 0.0
    leaves = 0.0
    leaf_db = 0.0
    for m in range(bodies.shape[0]):
        if m == skip:
            continue
        rx = ax - bodies[m, 1]
        ry = ay - bodies[m, 2]
        radius = bodies[m, 9]
        aside = rx * dy - ry * dx
        if aside * aside > radius * radius * plane:
            continue
        along = -(rx * dx + ry * dy)
        near = min(max(along / plane, 0.0), 1.0) if plane > 0.0 else 0.0
        ex = rx + near * dx
        ey = ry + near * dy
        if ex * ex + ey * ey > radius * radius:
            continue
        rz = az - bodies[m, 3]
        span = _clip((-1e9, 1e9, 2, 2), rz, dz, bodies[m, 6], 2)
        c, s = bodies[m, 7], bodies[m, 8]
        ux, uy = c * rx + s * ry, c * ry - s * rx
        vx, vy = c * dx + s * dy, c * dy - s * dx
        if bodies[m, 0] == BOX:
            span = _clip(span, ux, vx, bodies[m, 4], 0)
            span = _clip(span, uy, vy, bodies[m, 5], 1)
        elif plane > 0.0:
            root = along * along - plane * (rx * rx + ry * ry - radius * radius)
            if root <= 0.0:
                continue
            root = math.sqrt(root)
            span = (max(span[0], (along - root) / plane), min(span[1], (along + root) / plane), 0, 0)
        low, high, enters, quits = span
        if low >= high or high <= 0.0 or low >= 1.0:
            continue
        chord = (min(high, 1.0) - max(low, 0.0)) * length
        if bodies[m, 15] > 0.0:
            leaves += chord
            leaf_db = bodies[m, 10]
            continue
        through_db = bodies[m, 10] * chord
        for crosses, axis in ((low > ON_FACE, enters), (high < 1.0 - ON_FACE, quits)):
            if not crosses:
                continue
            through_db += bodies[m, 11]
            if bodies[m, 12] > 0.0:
                normal = abs(vx if axis == 0 else vy if axis == 1 else dz) / length
                share = te_share(normal, dz / length) if axis < 2 else 0.0
                through_db -= 10.0 * math.log10(passage(normal, share, bodies[m, 13], bodies[m, 14], bodies[m, 12]))
        if bodies[m, 0] == BOX and low > ON_FACE and high < 1.0 - ON_FACE:
            bent = _bent_share(bodies[m], ux, uy, rz, ux + vx, uy + vy, rz + dz)
            through_db = max(-10.0 * math.log10(10.0 ** (-0.1 * through_db) + bent), 0.0)
        loss += through_db
    if leaves > FOLIAGE_LINEAR_M:
        leaves = FOLIAGE_LINEAR_M * (leaves / FOLIAGE_LINEAR_M) ** FOLIAGE_POWER
    return loss + leaf_db * leaves


def direct_loss_db(bodies: Floats, start: Floats, end: Floats, skip: int = -1) -> float:
    """The same loss written out body by body and edge by edge: what `loss_db` is held to."""
    total, leaves, leaf_db = 0.0, 0.0, 0.0
    length = float(np.linalg.norm(end - start))
    for m, body in enumerate(bodies):
        c, s = body[7], body[8]
        turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
        a, b = turn @ (start - body[1:4]), turn @ (end - body[1:4])
        found = _crossing(body, a, b)
        if m == skip or found is None:
            continue
        (low, high), faces = found
        chord = (min(high, 1.0) - max(low, 0.0)) * length
        if body[15] > 0.0:
            leaves, leaf_db = leaves + chord, body[10]
            continue
        through_db = body[10] * chord + body[11] * len(faces)
        arrow = (b - a) / length
        for axis in faces:
            share = te_share(abs(arrow[axis]), arrow[2]) if axis < 2 else 0.0
            if body[12] > 0.0:
                through_db -= 10.0 * math.log10(passage(abs(arrow[axis]), share, body[13], body[14], body[12]))
        if body[0] == BOX and len(faces) == 2:
            sides_db = [min(_knife_db(edge, a, b) for edge in side) for side in _sides(body, a, b)]
            powers = [10.0 ** (-way_db / 10.0) for way_db in (through_db, *sides_db)]
            through_db = max(-10.0 * math.log10(sum(powers)), 0.0)
        total += through_db
    if leaves > FOLIAGE_LINEAR_M:
        leaves = FOLIAGE_LINEAR_M * (leaves / FOLIAGE_LINEAR_M) ** FOLIAGE_POWER
    return total + leaf_db * leaves


def _crossing(body: Floats, a: Floats, b: Floats) -> tuple[tuple[float, float], list[int]] | None:
    """Where the way from a to b (the body's frame) is inside, as shares of it, and the axes of the faces it crosses."""
    spans = []
    for axis in range(3) if body[0] == BOX else (2,):
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.array([-body[4 + axis] - a[axis], body[4 + axis] - a[axis]]) / (b[axis] - a[axis])
        if b[axis] == a[axis]:
            ends = np.array([-np.inf, np.inf]) if abs(a[axis]) <= body[4 + axis] else np.array([1.0, 0.0])
        spans.append((*sorted(ends), axis))
    if body[0] != BOX:
        d = (b - a)[:2]
        roots = np.roots([d @ d, 2.0 * (a[:2] @ d), a[:2] @ a[:2] - body[4] ** 2])
        if d @ d == 0.0:
            roots = np.array([-np.inf, np.inf]) if np.linalg.norm(a[:2]) < body[4] else np.array([1.0, 0.0])
        if np.iscomplexobj(roots):
            return None
        spans.append((*sorted(roots), 0))
    low, enters = max((span[0], span[2]) for span in spans)
    high, leaves = min((span[1], span[2]) for span in spans)
    if low >= high or high <= 0.0 or low >= 1.0:
        return None
    faces = [axis for at, axis in ((low, enters), (high, leaves)) if ON_FACE < at < 1.0 - ON_FACE]
    return (float(low), float(high)), faces


def _sides(body: Floats, a: Floats, b: Floats) -> list[list[Floats]]:
    """The edges of a box in its frame, each by its ends [2, 3]: upright ones left and right of the way, upper ones."""
    x, y, top = body[4:7]
    foot = max(-top, -body[3])
    plan = [(x, y), (-x, y), (-x, -y), (x, -y)]
    sides: list[list[Floats]] = [[], [], [np.array([(*plan[k - 1], top), (*plan[k], top)]) for k in range(4)]]
    for corner in plan:
        on_left = (b[0] - a[0]) * (corner[1] - a[1]) > (b[1] - a[1]) * (corner[0] - a[0])
        sides[0 if on_left else 1].append(np.array([(*corner, foot), (*corner, top)]))
    return [side for side in sides if side]


def _knife_db(edge: Floats, a: Floats, b: Floats) -> float:
    """Rec. ITU-R P.526-16, section 4.1, at the point of the edge that makes the way round it shortest."""

    def way(share: float) -> float:
        point = edge[0] + share * (edge[1] - edge[0])
        return float(np.linalg.norm(point - a) + np.linalg.norm(b - point))

    best = min(way(0.0), way(1.0), minimize_scalar(way, bounds=(0.0, 1.0), method="bounded").fun)
    v = 2.0 * math.sqrt(max(best - np.linalg.norm(b - a), 0.0) / WAVELENGTH_M)
    return 6.9 + 20.0 * math.log10(math.sqrt((v - 0.1) ** 2 + 1.0) + v - 0.1)
