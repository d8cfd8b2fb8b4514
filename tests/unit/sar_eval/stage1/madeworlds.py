"""Made-up obstacles for flights at 30 m: houses and poles, some of them too low to matter, turned, or touching."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.geometry import box, cylinder

ALTITUDE_M, CLEARANCE_M = 30.0, 4.0


def bodies(rng: np.random.Generator, count: int, half_m: float = 100.0) -> NDArray[np.float64]:
    """Rows [count, 8] of sar_core.geometry, all over a square of this half side."""
    rows = []
    for _ in range(count):
        x, y = rng.uniform(-half_m, half_m, 2)
        top = float(rng.choice([20.0, 26.5, 28.0, 35.0, 60.0]))
        if rng.random() < 0.5:
            rows.append(box(x, y, 0.5 * top, *rng.uniform(1.0, 25.0, 2), top, rng.uniform(-math.pi, math.pi)))
        else:
            rows.append(cylinder(x, y, 0.5 * top, rng.uniform(0.2, 8.0), top))
    return np.array(rows)
