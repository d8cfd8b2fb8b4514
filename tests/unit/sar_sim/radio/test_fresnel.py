"""Echo and passage of flat faces against vectors, a matrix method and textbook angles."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.radio import WAVELENGTH_M
from sar_sim.radio.channel import direct_echo
from sar_sim.radio.fresnel import echo, passage, te_share
from sar_sim.world.materials import RADIO_MATERIALS, imaginary_permittivity

CONCRETE, BRICK = RADIO_MATERIALS["concrete_shell"], RADIO_MATERIALS["brick_shell"]
EPS_CONCRETE = complex(CONCRETE.permittivity, imaginary_permittivity(CONCRETE.conductivity_spm))
EPS_BRICK = complex(BRICK.permittivity, imaginary_permittivity(BRICK.conductivity_spm))

angles = st.floats(0.0, 1.55)


def direction(elevation: float, azimuth: float) -> tuple[float, float, float]:
    """Along the normal (x), along the wall (y), up."""
    return (
        math.cos(elevation) * math.cos(azimuth),
        math.cos(elevation) * math.sin(azimuth),
        math.sin(elevation),
    )


@given(elevation=angles, azimuth=angles)
def test_echo_of_a_wall_by_vectors(elevation: float, azimuth: float) -> None:
    """Fields taken apart and put together again give the mix of both cases by the share of the tilt."""
    x, y, z = direction(elevation, azimuth)
    got = complex(*echo(x, te_share(x, z), EPS_CONCRETE.real, EPS_CONCRETE.imag))
    leaving = np.array([-x, y, z])
    assert got == pytest.approx(direct_echo(leaving, np.array([-1.0, 0.0, 0.0]), EPS_CONCRETE), abs=1e-6)


def test_level_ground_is_the_case_within_the_plane_of_incidence() -> None:
    for elevation in (0.05, 0.5, 1.2):
        leaving = np.array([math.cos(elevation), 0.0, math.sin(elevation)])
        upside_down = complex(*echo(math.sin(elevation), 0.0, EPS_BRICK.real, EPS_BRICK.imag))
        assert -upside_down == pytest.approx(direct_echo(leaving, np.array([0.0, 0.0, 1.0]), EPS_BRICK))


def test_tilt_is_none_on_level_ways_and_full_straight_before_a_wall() -> None:
    assert te_share(0.6, 0.0) == pytest.approx(1.0)
    assert te_share(math.cos(0.7), math.sin(0.7)) == pytest.approx(0.0, abs=1e-12)
    assert te_share(1.0, 0.0) == 1.0
    shares = [te_share(x, z) for x, _, z in (direction(elevation, 0.5) for elevation in (0.0, 0.1, 0.3, 0.9))]
    assert shares == sorted(shares, reverse=True) and shares[3] < 0.5 * shares[0]


def test_a_steep_echo_all_but_vanishes_at_brewsters_angle() -> None:
    """Straight before a wall the field lies within the plane of incidence: the angle's tangent is sqrt(eps)."""
    eps = 5.24
    brewster = math.atan(math.sqrt(eps))
    normal = math.cos(brewster)
    assert abs(complex(*echo(normal, te_share(normal, math.sin(brewster)), eps, 0.0))) < 1e-9
    assert abs(complex(*echo(normal, 1.0, eps, 0.0))) > 0.6


def test_metal_is_a_mirror_at_every_tilt() -> None:
    for share in (0.0, 0.4, 1.0):
        assert echo(0.3, share, math.inf, 0.0) == (-1.0, 0.0)


def slab(normal: float, eps: complex, thick_m: float) -> tuple[complex, complex]:
    """Transmission across and within the plane of incidence by the slab's characteristic matrix (Born and Wolf 1.6)."""
    inner = cmath.sqrt(eps - 1.0 + normal * normal)
    beta = 2.0 * math.pi * thick_m / WAVELENGTH_M * inner
    found = []
    for outside, inside in ((normal, inner), (1.0 / normal, eps / inner)):
        matrix = np.array(
            [[cmath.cos(beta), 1j * cmath.sin(beta) / inside], [1j * inside * cmath.sin(beta), cmath.cos(beta)]]
        )
        b, c = matrix @ np.array([1.0, outside])
        found.append(2.0 * outside / (outside * b + c))
    return found[0], found[1]


@given(elevation=angles, azimuth=angles, brick=st.booleans())
def test_a_slab_by_its_characteristic_matrix(elevation: float, azimuth: float, brick: bool) -> None:
    eps, thick_m = (EPS_BRICK, BRICK.wall_m) if brick else (EPS_CONCRETE, CONCRETE.wall_m)
    x, _, z = direction(elevation, azimuth)
    share = te_share(x, z)
    te, tm = slab(x, eps, thick_m)
    expected = abs(share * te + (1.0 - share) * tm) ** 2
    assert passage(x, share, eps.real, eps.imag, thick_m) == pytest.approx(expected, rel=1e-9)


def test_a_wall_takes_at_normal_incidence_what_the_ray_tracer_has() -> None:
    """6.5 dB by 0.24 m of brick, 14.8 dB by 0.20 m of concrete; by absorption alone it would be 5.4 and 13.2."""
    for eps, wall, loss in ((EPS_BRICK, BRICK, 6.5), (EPS_CONCRETE, CONCRETE, 14.8)):
        assert -10 * math.log10(passage(1.0, 1.0, eps.real, eps.imag, wall.wall_m)) == pytest.approx(loss, abs=0.05)
        assert passage(1.0, 0.0, eps.real, eps.imag, wall.wall_m) == pytest.approx(
            passage(1.0, 1.0, eps.real, eps.imag, wall.wall_m)
        )
    assert passage(0.7, 0.3, 1.0, 0.0, 0.24) == pytest.approx(1.0)
