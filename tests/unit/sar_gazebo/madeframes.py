"""CSI frames drawn at random: any bytes a receiver might send."""

from __future__ import annotations

import numpy as np

from sar_core.radio import ANTENNAS, SUBCARRIERS
from sar_sim.radio.receiver import Frames


def frames_of(count: int, seed: int = 0) -> Frames:
    rng = np.random.default_rng(seed)
    csi = rng.integers(-127, 128, (count, ANTENNAS, len(SUBCARRIERS), 2), dtype=np.int8)
    address = rng.integers(1 << 48, size=count, dtype=np.uint64)
    return Frames(52_000_000, address, rng.random(count) < 0.5, rng.normal(-70.0, 10.0, count), csi)
