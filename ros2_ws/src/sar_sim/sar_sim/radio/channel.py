"""Radio paths between a device and a drone, and the complex channel they add up to.

A path is a mirror: the device is seen at its image behind the ground or a wall, and the wave travels from there in a
straight line. Finding paths and what weakens them is slow and done now and then; a path set holds the mirrors, so that
distances, delays and phases follow both ends exactly at every tick.

Counted are the line of sight, the ground's echo and single reflections off the vertical faces of boxes, between upright
antennas. Cylinders (trunks, poles) weaken what passes through but reflect nothing: their echo spreads in all
directions. What bends round a box's edges is counted as part of the straight way (`obstruction.py`): it comes from the
straight way's direction and with its delay. Echoes of echoes are left out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.geometry import BOX
from sar_core.radio import ANTENNA_SPACING_M, ANTENNAS, CARRIER_HZ, LIGHT_MPS, SPACING_HZ, SUBCARRIERS, WAVELENGTH_M
from sar_sim.radio.fresnel import echo, te_share
from sar_sim.radio.obstruction import loss_db, make_bodies
from sar_sim.radio.radioconfig import RadioConfig
from sar_sim.world.materials import RADIO_MATERIALS, imaginary_permittivity
from sar_sim.world.world import World

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

PATH = 8
"""Columns of a path row: the mirror's unit normal [3] and offset (zeros: line of sight), amplitude factor of what lies
in the way, mirror's permittivity (real, imaginary), kind."""
DIRECT, GROUND, WALL = 0.0, 1.0, 2.0

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
    """The world as radio meets it; the ground is what its material says."""
    ground = RADIO_MATERIALS["ground"]
    return RadioScene(
        make_bodies(world),
        ground.permittivity,
        imaginary_permittivity(ground.conductivity_spm),
        config.reflection_reach_m,
        config.max_reflections,
    )


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
        if bodies[m, 0] != BOX or bodies[m, 13] <= 1.0 or last == first:
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
            normal = (sp + sq) / distance
            re, im = echo(normal, te_share(normal, (qz - pz) / distance), bodies[m, 13], bodies[m, 14])
            strength = math.sqrt(re * re + im * im) / distance
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
            paths[place, 4], paths[place, 7] = factor, WALL
            paths[place, 5], paths[place, 6] = bodies[m, 13], bodies[m, 14]
            count = min(count + 1, last)
    return count


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
    normal = min(abs(path[0] * dx + path[1] * dy + path[2] * dz), 1.0)
    if path[7] == WALL:
        re, im = echo(normal, te_share(normal, dz), path[5], path[6])
    else:
        # In level ground an upright field is seen upside down.
        re, im = echo(normal, 0.0, path[5], path[6])
        size = -size
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
            gain *= direct_echo(-towards, normal, complex(row[5], row[6]))
        for m in range(ANTENNAS):
            delay = np.exp(-2j * np.pi * frequency * length / LIGHT_MPS)
            lead = np.exp(2j * np.pi * frequency / LIGHT_MPS * (towards @ places[m]))
            total[m] += gain * delay * lead
    offset = np.exp(1j * (phase - 2.0 * np.pi * SUBCARRIERS * SPACING_HZ * sto_s))
    result: Complexes = amplitude * total * offset
    return result


def direct_echo(leaving: Floats, normal: Floats, eps: complex) -> complex:
    """A mirror's coefficient between upright antennas for the direction [3] in which the wave leaves it, by vectors:
    the field is taken apart across and within the plane of incidence, mirrored by Fresnel's coefficients, and put
    together again."""
    coming = leaving - 2.0 * (normal @ leaving) * normal
    cosine = abs(normal @ leaving)
    across = np.cross(coming, normal)
    if np.linalg.norm(across) < 1e-9:
        across = np.cross(coming, _upright(coming))
    across /= np.linalg.norm(across)
    if np.isinf(eps.real):
        te, tm = -1.0 + 0j, 1.0 + 0j
    else:
        root = np.sqrt(eps - (1.0 - cosine**2))
        te, tm = (cosine - root) / (cosine + root), (eps * cosine - root) / (eps * cosine + root)
    field = _upright(coming)
    mirrored = te * (field @ across) * across + tm * (field @ np.cross(across, coming)) * np.cross(across, leaving)
    return complex(mirrored @ _upright(leaving))


def _upright(direction: Floats) -> Floats:
    """Where the field of an upright antenna points in a wave that travels in this direction."""
    field = np.array([0.0, 0.0, 1.0]) - direction[2] * direction
    return np.asarray(field / np.linalg.norm(field))
