"""Radio paths between a device and a drone, and the complex channel they add up to.

A path is a mirror: the device is seen at its image behind the ground or a wall, and the wave travels from there in a
straight line. Finding paths and what weakens them is slow and done now and then; a path set holds the mirrors, so that
distances, delays and phases follow both ends exactly at every tick.

Counted are the line of sight, the ground's echo and single reflections off the vertical faces of boxes. Cylinders
(trunks, poles) weaken what passes through but reflect nothing: their echo spreads in all directions. There is no
diffraction: behind a body remains what goes through it and what comes off other walls.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.geometry import BOX
from sar_core.radio import ANTENNA_SPACING_M, ANTENNAS, CARRIER_HZ, LIGHT_MPS, SPACING_HZ, SUBCARRIERS, WAVELENGTH_M
from sar_sim.radio.radioconfig import RadioConfig
from sar_sim.world.world import RADIO_MATERIALS, World

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

PATH = 8
"""Columns of a path row: the mirror's unit normal [3] and offset (zeros: line of sight), amplitude factor of what lies
in the way, mirror's permittivity (real, imaginary), kind."""
DIRECT, GROUND, WALL = 0.0, 1.0, 2.0

BODY = 14
"""Columns of a body row: kind, centre [3], half extents [3], cos and sin of yaw, bounding radius in the plane,
dB per metre, dB per surface, permittivity of its faces, 1 for foliage."""

FOLIAGE_LINEAR_M = 14.0
FOLIAGE_POWER = 0.588
"""Weissberger 1982: loss grows in proportion up to 14 m of leaves and with the power 0.588 beyond."""

NEAREST_M = 1.0
"""Free-space loss stops growing less here: nearer, antennas are not points."""

HALF = len(SUBCARRIERS) // 2
_WAVE = 2.0 * math.pi * CARRIER_HZ / LIGHT_MPS
_STEP = 2.0 * math.pi * SPACING_HZ / LIGHT_MPS


class RadioScene(NamedTuple):
    """What radio meets in a world: bodies [B, BODY], the ground's complex permittivity, how reflections are chosen."""

    bodies: Floats
    ground_re: float
    ground_im: float
    reach_m: float
    max_reflections: int


def make_scene(world: World, config: RadioConfig) -> RadioScene:
    """The world's obstacles and volumes as radio sees them."""
    rows = [*world.obstacles, *world.volumes]
    materials = [*world.materials, *world.volume_materials]
    bodies = np.zeros((len(rows), BODY))
    for body, row, name in zip(bodies, rows, materials, strict=True):
        material = RADIO_MATERIALS[name]
        body[0:7] = row[0:7]
        body[7], body[8] = math.cos(row[7]), math.sin(row[7])
        body[9] = math.hypot(row[4], row[5]) if row[0] == BOX else row[4]
        body[10], body[11] = material.db_per_m, material.db_per_wall
        body[12] = config.wall_permittivity[name]
        body[13] = float(name == "foliage")
    # 17.98 sigma / f in GHz is the imaginary part of the relative permittivity (ITU-R P.2040-1).
    imaginary = -17.98 * config.ground_conductivity_spm / (CARRIER_HZ * 1e-9)
    return RadioScene(bodies, config.ground_permittivity, imaginary, config.reflection_reach_m, config.max_reflections)


@inlined
def _clip(low: float, high: float, start: float, slope: float, half: float) -> tuple[float, float]:
    """The part of [low, high] in which start + t slope stays within plus or minus half."""
    if slope == 0.0:
        return (low, high) if abs(start) <= half else (1.0, 0.0)
    a = (-half - start) / slope
    b = (half - start) / slope
    return max(low, min(a, b)), min(high, max(a, b))


@compiled
def loss_db(bodies: Floats, ax: float, ay: float, az: float, bx: float, by: float, bz: float, skip: int) -> float:
    """What the bodies take from a wave on the straight way from a to b, without body number `skip`.

    Solid bodies take their share per metre of chord; hollow ones per surface crossed, so that a wave from inside pays
    for one wall and a wave that passes through pays for two.
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
        along = -(rx * dx + ry * dy)
        near = min(max(along / plane, 0.0), 1.0) if plane > 0.0 else 0.0
        ex = rx + near * dx
        ey = ry + near * dy
        if ex * ex + ey * ey > radius * radius:
            continue
        low, high = _clip(-1e9, 1e9, az - bodies[m, 3], dz, bodies[m, 6])
        if bodies[m, 0] == BOX:
            c, s = bodies[m, 7], bodies[m, 8]
            low, high = _clip(low, high, c * rx + s * ry, c * dx + s * dy, bodies[m, 4])
            low, high = _clip(low, high, c * ry - s * rx, c * dy - s * dx, bodies[m, 5])
        elif plane > 0.0:
            root = along * along - plane * (rx * rx + ry * ry - radius * radius)
            if root <= 0.0:
                continue
            root = math.sqrt(root)
            low = max(low, (along - root) / plane)
            high = min(high, (along + root) / plane)
        if low >= high or high <= 0.0 or low >= 1.0:
            continue
        chord = (min(high, 1.0) - max(low, 0.0)) * length
        if bodies[m, 13] > 0.0:
            leaves += chord
            leaf_db = bodies[m, 10]
            continue
        loss += bodies[m, 10] * chord
        if bodies[m, 11] > 0.0:
            loss += bodies[m, 11] * ((1.0 if low > 0.0 else 0.0) + (1.0 if high < 1.0 else 0.0))
    if leaves > FOLIAGE_LINEAR_M:
        leaves = FOLIAGE_LINEAR_M * (leaves / FOLIAGE_LINEAR_M) ** FOLIAGE_POWER
    return loss + leaf_db * leaves


@compiled
def find_paths(
    scene: RadioScene, px: float, py: float, pz: float, qx: float, qy: float, qz: float, paths: Floats
) -> int:
    """Fill paths [2 + max_reflections, PATH] between a device p and a drone q; returns how many there are."""
    bodies = scene.bodies
    paths[:, :] = 0.0
    paths[0, 4] = 10.0 ** (-loss_db(bodies, px, py, pz, qx, qy, qz, -1) / 20.0)
    count = 1
    if pz + qz > 0.0:
        t = pz / (pz + qz)
        gx, gy = px + t * (qx - px), py + t * (qy - py)
        loss = loss_db(bodies, px, py, pz, gx, gy, 0.0, -1) + loss_db(bodies, gx, gy, 0.0, qx, qy, qz, -1)
        paths[1, 2] = 1.0
        paths[1, 4] = 10.0 ** (-loss / 20.0)
        paths[1, 5], paths[1, 6], paths[1, 7] = scene.ground_re, scene.ground_im, GROUND
        count = 2
    last = count + scene.max_reflections
    strengths = np.zeros(last)
    first = count
    for m in range(bodies.shape[0]):
        if bodies[m, 0] != BOX or bodies[m, 12] <= 1.0 or last == first:
            continue
        reach = scene.reach_m + bodies[m, 9]
        from_p = (px - bodies[m, 1]) ** 2 + (py - bodies[m, 2]) ** 2
        from_q = (qx - bodies[m, 1]) ** 2 + (qy - bodies[m, 2]) ** 2
        if min(from_p, from_q) > reach * reach:
            continue
        for face in range(4):
            sign = 1.0 if face < 2 else -1.0
            c, s = bodies[m, 7] * sign, bodies[m, 8] * sign
            nx, ny = (c, s) if face % 2 == 0 else (-s, c)
            depth, width = (bodies[m, 4], bodies[m, 5]) if face % 2 == 0 else (bodies[m, 5], bodies[m, 4])
            offset = nx * bodies[m, 1] + ny * bodies[m, 2] + depth
            sp = nx * px + ny * py - offset
            sq = nx * qx + ny * qy - offset
            if sp <= 0.0 or sq <= 0.0:
                continue
            t = sp / (sp + sq)
            ix, iy = px - 2.0 * sp * nx, py - 2.0 * sp * ny
            x, y, z = ix + t * (qx - ix), iy + t * (qy - iy), pz + t * (qz - pz)
            aside = nx * (y - bodies[m, 2]) - ny * (x - bodies[m, 1])
            if abs(aside) > width or abs(z - bodies[m, 3]) > bodies[m, 6] or z < 0.0:
                continue
            distance = math.sqrt((qx - ix) ** 2 + (qy - iy) ** 2 + (qz - pz) ** 2)
            re, _ = reflection((sp + sq) / distance, bodies[m, 12], 0.0, WALL)
            strength = abs(re) / distance
            if count == last and strength <= strengths[last - 1]:
                continue
            loss = loss_db(bodies, px, py, pz, x, y, z, m) + loss_db(bodies, x, y, z, qx, qy, qz, m)
            factor = 10.0 ** (-loss / 20.0)
            strength *= factor
            if count == last and strength <= strengths[last - 1]:
                continue
            place = count if count < last else last - 1
            while place > first and strengths[place - 1] < strength:
                strengths[place] = strengths[place - 1]
                paths[place] = paths[place - 1]
                place -= 1
            strengths[place] = strength
            paths[place] = 0.0
            paths[place, 0], paths[place, 1], paths[place, 3] = nx, ny, offset
            paths[place, 4], paths[place, 5], paths[place, 7] = factor, bodies[m, 12], WALL
            count = min(count + 1, last)
    return count


@inlined
def reflection(cosine: float, eps_re: float, eps_im: float, kind: float) -> tuple[float, float]:
    """Fresnel's coefficient for a vertically polarised antenna: parallel on the ground, perpendicular on a wall.

    Exact for grazing and horizontal incidence; the tilt of the field on steep paths is left out.
    """
    if math.isinf(eps_re):
        return -1.0, 0.0
    eps = complex(eps_re, eps_im)
    root = np.sqrt(eps - (1.0 - cosine * cosine))
    front = eps * cosine if kind == GROUND else complex(cosine, 0.0)
    value = (front - root) / (front + root)
    return value.real, value.imag


@inlined
def ray(
    path: Floats, px: float, py: float, pz: float, qx: float, qy: float, qz: float
) -> tuple[float, float, float, float, float, float]:
    """A path as the drone q sees it: length, direction towards the image [3], complex amplitude (free space = lambda
    over 4 pi times length, what lies in the way, reflection)."""
    side = path[0] * px + path[1] * py + path[2] * pz - path[3]
    dx = px - 2.0 * side * path[0] - qx
    dy = py - 2.0 * side * path[1] - qy
    dz = pz - 2.0 * side * path[2] - qz
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    if length > 0.0:
        dx, dy, dz = dx / length, dy / length, dz / length
    size = WAVELENGTH_M / (4.0 * math.pi * max(length, NEAREST_M)) * path[4]
    if path[7] == DIRECT:
        return length, dx, dy, dz, size, 0.0
    cosine = min(abs(path[0] * dx + path[1] * dy + path[2] * dz), 1.0)
    re, im = reflection(cosine, path[5], path[6], path[7])
    return length, dx, dy, dz, size * re, size * im


@compiled
def add_channel(
    paths: Floats,
    count: int,
    device: Floats,
    drone: Floats,
    axis: tuple[float, float, float],
    amplitude: float,
    phase: float,
    sto_m: float,
    out: Floats,
) -> None:
    """Write the channel of one link into out [ANTENNAS, subcarriers, 2] (real, imaginary).

    Each path is one phasor per antenna, turned from subcarrier to subcarrier by a constant factor, so that trigonometry
    is done four times per path and not once per subcarrier. `phase` (rad) is common to both antennas; `sto_m` is the
    sampling time offset as a length.
    """
    out[:, :, :] = 0.0
    px, py, pz = device[0], device[1], device[2]
    qx, qy, qz = drone[0], drone[1], drone[2]
    for p in range(count):
        length, ux, uy, uz, re, im = ray(paths[p], px, py, pz, qx, qy, qz)
        re, im = re * amplitude, im * amplitude
        lead = 0.5 * ANTENNA_SPACING_M * (ux * axis[0] + uy * axis[1] + uz * axis[2])
        for m in range(ANTENNAS):
            way = length + lead if m == 0 else length - lead
            angle = phase - _WAVE * way
            turn = -_STEP * (way + sto_m)
            c, s = math.cos(angle), math.sin(angle)
            sr, si = math.cos(turn), math.sin(turn)
            ar = br = re * c - im * s
            ai = bi = re * s + im * c
            for k in range(HALF):
                ar, ai = ar * sr - ai * si, ar * si + ai * sr
                br, bi = br * sr + bi * si, bi * sr - br * si
                out[m, HALF + k, 0] += ar
                out[m, HALF + k, 1] += ai
                out[m, HALF - 1 - k, 0] += br
                out[m, HALF - 1 - k, 1] += bi


def direct_channel(
    paths: Floats,
    count: int,
    device: Floats,
    drone: Floats,
    axis: tuple[float, float, float],
    amplitude: float = 1.0,
    phase: float = 0.0,
    sto_s: float = 0.0,
) -> Complexes:
    """The same channel, complex [ANTENNAS, subcarriers], written out as its sum: what `add_channel` is held to."""
    frequency = CARRIER_HZ + SUBCARRIERS * SPACING_HZ
    places = np.outer([-0.5 * ANTENNA_SPACING_M, 0.5 * ANTENNA_SPACING_M], axis)
    total = np.zeros((ANTENNAS, len(SUBCARRIERS)), dtype=np.complex128)
    for row in paths[:count]:
        normal = row[:3]
        arrow = device - 2.0 * (normal @ device - row[3]) * normal - drone
        length = float(np.linalg.norm(arrow))
        towards = arrow / length
        gain = complex(WAVELENGTH_M / (4.0 * np.pi * max(length, NEAREST_M)) * row[4])
        if row[7] != DIRECT:
            cosine = abs(normal @ towards)
            eps = complex(row[5], row[6])
            root = np.sqrt(eps - (1.0 - cosine**2)) if np.isfinite(row[5]) else 1.0
            if not np.isfinite(row[5]):
                gain *= -1.0
            elif row[7] == GROUND:
                gain *= (eps * cosine - root) / (eps * cosine + root)
            else:
                gain *= (cosine - root) / (cosine + root)
        for m in range(ANTENNAS):
            delay = np.exp(-2j * np.pi * frequency * length / LIGHT_MPS)
            lead = np.exp(2j * np.pi * frequency / LIGHT_MPS * (towards @ places[m]))
            total[m] += gain * delay * lead
    offset = np.exp(1j * (phase - 2.0 * np.pi * SUBCARRIERS * SPACING_HZ * sto_s))
    result: Complexes = amplitude * total * offset
    return result
