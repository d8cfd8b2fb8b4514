"""What a drone's antenna array does wrong: a persistent phase error that depends on where a wave comes from.

Calibration left over, coupling of the antennas with each other and with the airframe: the same for the same direction
as seen from the body, so it turns with the drone and does not average out. Each drone has its own, drawn per mission.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.streams import stream

Floats = NDArray[np.float64]

HARMONICS = 3
"""Waves of the error around the body: features of some 30 degrees (assumed)."""
ARRAY_TERMS = 2 * HARMONICS + 1


def draw_arrays(drones: int, spread_rad: float, seed: int, episode: int) -> Floats:
    """Coefficients [N, ARRAY_TERMS] of each drone's error, whose standard deviation over arrays is ``spread_rad``
    for a wave from the horizon or from below alike."""
    drawn = np.array([stream("array error", seed, episode, i).standard_normal(ARRAY_TERMS) for i in range(drones)])
    return spread_rad * drawn


@compiled
def array_error(terms: Floats, w: float, x: float, y: float, z: float, ux: float, uy: float, uz: float) -> float:
    """The phase error (rad) for a wave from direction u (world, any length), at body-to-world attitude (w, x, y, z).

    sqrt(1/H) of H harmonics in azimuth, weighted by the sine of the polar angle, and one term along the body's z axis,
    weighted by its cosine: the variance is the same in all directions.
    """
    size = math.sqrt(ux * ux + uy * uy + uz * uz)
    if size == 0.0:
        return 0.0
    bx = ((1.0 - 2.0 * (y * y + z * z)) * ux + 2.0 * (x * y + w * z) * uy + 2.0 * (x * z - w * y) * uz) / size
    by = (2.0 * (x * y - w * z) * ux + (1.0 - 2.0 * (x * x + z * z)) * uy + 2.0 * (y * z + w * x) * uz) / size
    bz = (2.0 * (x * z + w * y) * ux + 2.0 * (y * z - w * x) * uy + (1.0 - 2.0 * (x * x + y * y)) * uz) / size
    plane = math.sqrt(bx * bx + by * by)
    c, s = (bx / plane, by / plane) if plane > 0.0 else (1.0, 0.0)
    ch, sh, total = 1.0, 0.0, 0.0
    for h in range(HARMONICS):
        ch, sh = ch * c - sh * s, ch * s + sh * c
        total += terms[2 * h] * ch + terms[2 * h + 1] * sh
    return float(total * plane / math.sqrt(HARMONICS) + terms[2 * HARMONICS] * bz)
