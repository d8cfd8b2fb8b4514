"""Gusts against the standard's own formulas: intensities, scale lengths, variances and spectra."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import signal

from sar_sim.vehicle.wind import AIR, GUST, GUST_LAW, dryden, gust_coefficients, gust_step, moving_air

Floats = NDArray[np.float64]

DT = 0.02
FEET = 0.3048
WIND = np.array([8.0, 6.0, 0.0])
HEIGHT = 30.0
AIRSPEED = 40.0


def law_at(height: float, wind: Floats, airspeed: float) -> Floats:
    """The filters of a vehicle at a height, flying against the wind's x axis so fast as to meet the given air speed."""
    body = np.zeros(17)
    body[2] = -height
    body[3:6] = wind + np.array([airspeed, 0.0, 0.0])
    law = np.zeros(GUST_LAW)
    gust_coefficients(body, wind, DT, law)
    return law


@cache
def long_record() -> Floats:
    """Four hours of gusts [T, 3] along, across, down, at 50 Hz."""
    law, gust = law_at(HEIGHT, WIND, AIRSPEED), np.zeros(GUST)
    draws = np.random.default_rng(8).standard_normal((720_000, 3))
    return np.array([gust_step(gust, law, nu, nv, nw) for nu, nv, nw in draws.tolist()])


def test_intensities_and_lengths_at_100_feet_by_hand() -> None:
    """W20 = 10 m/s, h = 100 ft: 0.177 + 0.0823 = 0.2593; sigma_w = 1; sigma_u = 0.2593^-0.4; L_u = 100 / 0.2593^1.2."""
    sigma_h, sigma_w, length_h, length_w = dryden(100 * FEET, 10.0)
    assert sigma_w == pytest.approx(1.0)
    assert sigma_h == pytest.approx(1.7159, abs=2e-4)
    assert length_h == pytest.approx(505.1 * FEET, rel=1e-3)
    assert length_w == pytest.approx(100 * FEET)


def test_turbulence_is_isotropic_at_1000_feet() -> None:
    sigma_h, sigma_w, length_h, length_w = dryden(1000 * FEET, 10.0)
    assert (sigma_h, length_h) == pytest.approx((sigma_w, length_w))
    assert length_w == pytest.approx(1000 * FEET)


def test_heights_outside_the_standard_use_its_ends() -> None:
    assert dryden(0.0, 5.0) == dryden(10 * FEET, 5.0)
    assert dryden(900.0, 5.0) == pytest.approx(dryden(1000 * FEET, 5.0))


def test_variances_are_those_of_the_standard() -> None:
    sigma_h, sigma_w, _, _ = dryden(HEIGHT, 10.0)
    assert long_record().std(axis=0) == pytest.approx([sigma_h, sigma_h, sigma_w], rel=0.05)
    assert np.abs(long_record().mean(axis=0)).max() < 0.15


@pytest.mark.parametrize("axis", [0, 1, 2], ids=["along", "across", "down"])
def test_spectra_are_those_of_the_standard(axis: int) -> None:
    """MIL-F-8785C's one-sided forms in rad/m, turned to Hz by the air speed, in bands from 0.01 to 3 Hz."""
    frequency, seen = signal.welch(long_record()[:, axis], fs=1.0 / DT, nperseg=16384)
    sigma_h, sigma_w, length_h, length_w = dryden(HEIGHT, 10.0)
    sigma, length = (sigma_w, length_w) if axis == 2 else (sigma_h, length_h)
    omega = 2.0 * math.pi * frequency / AIRSPEED
    x = (length * omega) ** 2
    if axis == 0:
        wanted = sigma**2 * 2.0 * length / math.pi / (1.0 + x)
    else:
        wanted = sigma**2 * length / math.pi * (1.0 + 3.0 * x) / (1.0 + x) ** 2
    wanted = wanted * 2.0 * math.pi / AIRSPEED
    for low, high in ((0.01, 0.03), (0.03, 0.1), (0.1, 0.3), (0.3, 1.0), (1.0, 3.0)):
        band = (frequency >= low) & (frequency < high)
        assert seen[band].mean() == pytest.approx(wanted[band].mean(), rel=0.12)


def test_components_are_uncorrelated() -> None:
    assert np.corrcoef(long_record().T) == pytest.approx(np.eye(3), abs=0.06)


def test_no_wind_no_gust() -> None:
    law, gust, air = law_at(HEIGHT, np.zeros(3), 8.0), np.zeros(GUST), np.zeros(3)
    for nu, nv, nw in np.random.default_rng(1).standard_normal((500, 3)):
        moving_air(gust, law, np.zeros(3), nu, nv, nw, air)
        assert not air.any()


def test_gust_axes_follow_the_mean_wind() -> None:
    """North-east wind (8, 6): one draw along shifts the air along it, one across shifts it to the wind's right."""
    law = law_at(HEIGHT, WIND, AIRSPEED)
    for draw, direction in (
        ((1.0, 0.0, 0.0), (0.8, 0.6, 0.0)),
        ((0.0, 1.0, 0.0), (-0.6, 0.8, 0.0)),
        ((0.0, 0.0, 1.0), (0.0, 0.0, 1.0)),
    ):
        gust = np.zeros(GUST)
        moving_air(gust, law, WIND, *draw, gust[AIR:])
        shift = gust[AIR : AIR + 3] - WIND
        assert shift / np.linalg.norm(shift) == pytest.approx(np.array(direction))


def test_standing_still_the_gust_still_changes() -> None:
    """Even at no air speed at all the filters move on, as if at 1 m/s."""
    assert law_at(HEIGHT, WIND, 0.0)[0] == law_at(HEIGHT, WIND, 1.0)[0] < 1.0
