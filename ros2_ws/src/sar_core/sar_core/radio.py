"""What transmitter, receiver and swarm agree on about the radio: carrier, subcarriers and the antenna array.

HT20 in the 2.4 GHz band, channel 6: 56 subcarriers 312.5 kHz apart without the centre one (IEEE 802.11-2020, clause
19). Each drone carries two coherent antennas half a wavelength apart along its body's y axis (FLU: antenna 1 is left).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import inlined

Floats = NDArray[np.float64]

LIGHT_MPS = 299_792_458.0
CARRIER_HZ = 2.437e9
SPACING_HZ = 312_500.0
WAVELENGTH_M = LIGHT_MPS / CARRIER_HZ
ANTENNAS = 2
ANTENNA_SPACING_M = 0.5 * WAVELENGTH_M
SUBCARRIERS = np.array([k for k in range(-28, 29) if k != 0])
BASELINE = 2.0 * math.pi * ANTENNA_SPACING_M / WAVELENGTH_M
"""Inter-antenna phase (rad) of a wave that arrives along the array's axis: pi for half a wavelength."""


@inlined
def array_axis(w: float, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Unit vector of the body's y axis in the world, for a body-to-world quaternion; from antenna 0 to antenna 1."""
    return 2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x)
