"""How a drone keeps its distance, and where the others should be by now, from what the link last delivered. ENU, SI."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.mailboxes import STAMP

Floats = NDArray[np.float64]

UNKNOWN, HEARD, SILENT = 0, 1, 2
"""What we know of another drone: nothing to fly by, where it is, where it must have come to stand."""

BRAKING_MPS2 = 3.0
"""What a loaded multirotor is sure to reach when it changes its level velocity."""
SANE_M, SANE_MPS = 1e6, 1e3
"""Beyond these a position or velocity is no number to fly by."""


class Manners(NamedTuple):
    """How a drone flies and keeps its distance: speeds (m/s), distances (m), times (s)."""

    speed: float = 8.0
    separation: float = 5.0
    repulsion: float = 6.0
    timeout: float = 2.0
    foresight: float = 5.0
    clearance: float = 3.0
    look_ahead: float = 2.5
    brake: float = 2.5
    diverge: float = 1.5
    berth: float = 5.0
    silent_keep: float = 60.0
    soft_margin: float = 5.0
    ceiling: float = math.inf
    floor: float = -math.inf


@inlined
def sane(v: Floats, limit: float) -> bool:
    """Whether a vector [3] is finite and within the limit."""
    return bool(abs(v[0]) < limit and abs(v[1]) < limit and abs(v[2]) < limit)


@compiled
def neighbour(row: Floats, time_s: float, manners: Manners) -> tuple[int, float, float, float, float, float, float]:
    """Where another drone should be by now and how it moves: (UNKNOWN, HEARD or SILENT, position, velocity).

    row: position 3, velocity 3, stamp_s as last heard. Fresh news is carried forward; after the time-out the drone is
    taken to have braked and to stand there, until that too is too long ago. What is no number is not known.
    """
    age = time_s - row[STAMP]
    kept = math.isfinite(age) and age < manners.timeout + manners.silent_keep
    if not (kept and sane(row[0:3], SANE_M) and sane(row[3:6], SANE_MPS)):
        return UNKNOWN, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    age = max(age, 0.0)
    if age < manners.timeout:
        x, y, z = row[0] + row[3] * age, row[1] + row[4] * age, row[2] + row[5] * age
        return HEARD, x, y, z, row[3], row[4], row[5]
    coast = math.sqrt(row[3] * row[3] + row[4] * row[4] + row[5] * row[5]) / (2.0 * BRAKING_MPS2)
    return SILENT, row[0] + coast * row[3], row[1] + coast * row[4], row[2] + coast * row[5], 0.0, 0.0, 0.0
