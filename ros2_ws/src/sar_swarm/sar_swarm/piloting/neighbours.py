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


class SeparationLimits(NamedTuple):
    """How fast a drone flies, and how it keeps its distance to others, obstacles and the fence."""

    speed_mps: float = 8.0
    separation_m: float = 5.0
    repulsion_m2ps: float = 6.0
    timeout_s: float = 2.0
    foresight_s: float = 5.0
    clearance_m: float = 3.0
    look_ahead_s: float = 2.5
    brake_m: float = 2.5
    diverge_m: float = 1.5
    berth_m: float = 5.0
    silent_keep_s: float = 60.0
    soft_margin_m: float = 5.0
    ceiling_m: float = math.inf
    floor_m: float = -math.inf


@inlined
def sane(v: Floats, limit: float) -> bool:
    """Whether a vector [3] is finite and within the limit."""
    return bool(abs(v[0]) < limit and abs(v[1]) < limit and abs(v[2]) < limit)


@compiled
def neighbour(
    row: Floats, time_s: float, keep: SeparationLimits
) -> tuple[int, float, float, float, float, float, float]:
    """Where another drone should be by now and how it moves: (UNKNOWN, HEARD or SILENT, position, velocity).

    row: position 3, velocity 3, stamp_s as last heard. Fresh news is carried forward; after the time-out the drone is
    taken to have braked and to stand there, until that too is too long ago. What is no number is not known.
    """
    age = time_s - row[STAMP]
    kept = math.isfinite(age) and age < keep.timeout_s + keep.silent_keep_s
    if not (kept and sane(row[0:3], SANE_M) and sane(row[3:6], SANE_MPS)):
        return UNKNOWN, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    age = max(age, 0.0)
    if age < keep.timeout_s:
        x, y, z = row[0] + row[3] * age, row[1] + row[4] * age, row[2] + row[5] * age
        return HEARD, x, y, z, row[3], row[4], row[5]
    coast = math.sqrt(row[3] * row[3] + row[4] * row[4] + row[5] * row[5]) / (2.0 * BRAKING_MPS2)
    return SILENT, row[0] + coast * row[3], row[1] + coast * row[4], row[2] + coast * row[5], 0.0, 0.0, 0.0
