"""Mean wind plus Dryden gusts at low altitude (MIL-F-8785C, section 3.7.2), one gust per vehicle.

Gust axes are along the mean wind, across it to the right, and down. Along: a first-order filter of white noise;
across and vertical: the standard's second-order form, as two states.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled

Floats = NDArray[np.float64]

GUST_LAW = 8
AIR, LAW, GUST = 5, 8, 8 + GUST_LAW
"""Columns of one gust row: u, then (first-order state, the same filtered again) for v and for w; the air [3]; the law
of the filters."""

_FEET = 3.280839895
_LOWEST_FT, _HIGHEST_FT = 10.0, 1000.0  # where the low-altitude model holds
_SLOWEST_MPS = 1.0  # air speed below which the gusts change no more slowly


@compiled
def dryden(height_m: float, wind_at_6m_mps: float) -> tuple[float, float, float, float]:
    """Intensities (horizontal, vertical, m/s) and scale lengths (horizontal, vertical, m) below 1000 ft."""
    h = min(max(height_m * _FEET, _LOWEST_FT), _HIGHEST_FT)
    shape = 0.177 + 0.000823 * h
    sigma_w = 0.1 * wind_at_6m_mps
    return sigma_w / shape**0.4, sigma_w, h / shape**1.2 / _FEET, h / _FEET


@compiled
def gust_coefficients(body: Floats, wind: Floats, dt: float, law: Floats) -> None:
    """The gust filters of one vehicle, held from tick to tick: law [GUST_LAW] = decays, innovations,
    intensities and the mean wind's direction.

    They depend on height and air speed, which change little within a swarm tick.
    """
    mean = math.sqrt(wind[0] * wind[0] + wind[1] * wind[1])
    sigma_h, sigma_w, length_h, length_w = dryden(-body[2], mean)
    airspeed = math.sqrt((body[3] - wind[0]) ** 2 + (body[4] - wind[1]) ** 2 + body[5] ** 2)
    speed = max(airspeed, _SLOWEST_MPS)
    law[0] = math.exp(-dt * speed / length_h)
    law[1] = math.exp(-dt * speed / length_w)
    law[2] = math.sqrt(1.0 - law[0] * law[0])
    law[3] = math.sqrt(1.0 - law[1] * law[1])
    law[4] = sigma_h
    law[5] = sigma_w
    law[6] = wind[0] / mean if mean > 0.0 else 1.0
    law[7] = wind[1] / mean if mean > 0.0 else 0.0


@compiled
def gust_step(gust: Floats, law: Floats, nu: float, nv: float, nw: float) -> tuple[float, float, float]:
    """Advance one gust row with three unit normals; returns (along, across, down) in m/s."""
    gust[0] = law[0] * gust[0] + law[2] * nu
    across = _second_order(gust, 1, law[0], law[2], nv)
    down = _second_order(gust, 3, law[1], law[3], nw)
    return law[4] * gust[0], law[4] * across, law[5] * down


@compiled
def moving_air(gust: Floats, law: Floats, wind: Floats, nu: float, nv: float, nw: float, air: Floats) -> None:
    """Advance one gust row and add it to the mean wind [3] (NED): air [3] receives the air's velocity."""
    along, across, down = gust_step(gust, law, nu, nv, nw)
    air[0] = wind[0] + along * law[6] - across * law[7]
    air[1] = wind[1] + along * law[7] + across * law[6]
    air[2] = wind[2] + down


@compiled
def _second_order(gust: Floats, k: int, decay: float, innovation: float, noise: float) -> float:
    """Unit-variance Dryden cross component sqrt(tau) (1 + sqrt(3) tau s) / (1 + tau s)^2 driven by white noise.

    Written as y = sqrt(3) x + (1 - sqrt(3)) z with x a first-order process and z the same once more filtered.
    """
    before = gust[k]
    gust[k] = decay * before + innovation * noise
    gust[k + 1] = decay * gust[k + 1] + (1.0 - decay) * 0.5 * (before + gust[k])
    return float((math.sqrt(3.0) * gust[k] + (1.0 - math.sqrt(3.0)) * gust[k + 1]) / math.sqrt(2.0))
