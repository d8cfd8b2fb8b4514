"""Mean wind plus Dryden gusts at low altitude (MIL-F-8785C, section 3.7.2), one gust per vehicle.

Gust axes are along the mean wind, across it to the right, and down. Along: a first-order filter of white noise;
across and vertical: the standard's second-order form, as two states.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GUST = 5
"""Columns of one gust row: u, then (first-order state, output) for v and for w."""

_FEET = 3.280839895


@njit(cache=True)
def dryden(height_m: float, wind_at_6m_mps: float) -> tuple[float, float, float, float]:
    """Intensities (horizontal, vertical, m/s) and scale lengths (horizontal, vertical, m) below 1000 ft."""
    h = min(max(height_m * _FEET, 10.0), 1000.0)
    shape = 0.177 + 0.000823 * h
    sigma_w = 0.1 * wind_at_6m_mps
    return sigma_w / shape**0.4, sigma_w, h / shape**1.2 / _FEET, h / _FEET


@njit(cache=True)
def gust_step(
    gust: Floats, height_m: float, wind_mps: float, airspeed_mps: float, noise: Floats, dt: float
) -> tuple[float, float, float]:
    """Advance one gust row with three unit normals; returns (along, across, down) in m/s."""
    if wind_mps <= 0.0:
        return 0.0, 0.0, 0.0
    sigma_h, sigma_w, length_h, length_w = dryden(height_m, wind_mps)
    speed = max(airspeed_mps, 1.0)
    tau_h = length_h / speed
    tau_w = length_w / speed
    # A first-order process of unit variance, exact over the step.
    a = math.exp(-dt / tau_h)
    gust[0] = a * gust[0] + math.sqrt(1.0 - a * a) * noise[0]
    across = _second_order(gust, 1, tau_h, noise[1], dt)
    down = _second_order(gust, 3, tau_w, noise[2], dt)
    return sigma_h * gust[0], sigma_h * across, sigma_w * down


@njit(cache=True)
def _second_order(gust: Floats, k: int, tau: float, noise: float, dt: float) -> float:
    """Unit-variance Dryden cross component sqrt(tau) (1 + sqrt(3) tau s) / (1 + tau s)^2 driven by white noise.

    Written as y = sqrt(3) x + (1 - sqrt(3)) z with x a first-order process and z the same once more filtered.
    """
    a = math.exp(-dt / tau)
    z_old = gust[k + 1]
    x_old = gust[k]
    gust[k] = a * x_old + math.sqrt(1.0 - a * a) * noise
    gust[k + 1] = a * z_old + (1.0 - a) * 0.5 * (x_old + gust[k])
    return (math.sqrt(3.0) * gust[k] + (1.0 - math.sqrt(3.0)) * gust[k + 1]) / math.sqrt(2.0)
