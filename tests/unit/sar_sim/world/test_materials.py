"""Radio materials against Rec. ITU-R P.2040-4 and the sources of those it does not have."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sar_core.radio import CARRIER_HZ
from sar_sim.world.materials import RADIO_MATERIALS, absorption_db_per_m, imaginary_permittivity

VACUUM = 8.8541878128e-12
AT_CARRIER = {
    "brick": (3.91, 0.02745),
    "concrete": (5.24, 0.09273),
    "wood": (1.99, 0.01221),
    "ground": (13.72, 0.1495),
}
"""Relative permittivity and S/m: Rec. ITU-R P.2040-4, table 3, at 2.437 GHz, by hand."""


@pytest.mark.parametrize("name", AT_CARRIER)
def test_the_constants_are_those_of_the_revision(name: str) -> None:
    material = RADIO_MATERIALS[name]
    assert (material.permittivity, material.conductivity_spm) == pytest.approx(AT_CARRIER[name], rel=5e-4)
    assert "P.2040-4" in material.source


@pytest.mark.parametrize("name", AT_CARRIER)
def test_a_solid_absorbs_as_the_plane_wave_does(name: str) -> None:
    """From the exact propagation constant, with the vacuum's permittivity in place of 17.98."""
    eps, sigma = AT_CARRIER[name]
    permittivity = eps - 1j * sigma / (2 * math.pi * CARRIER_HZ * VACUUM)
    wavenumber = 2 * math.pi * CARRIER_HZ / 299792458.0 * np.sqrt(permittivity)
    assert RADIO_MATERIALS[name].db_per_m == pytest.approx(-20.0 * math.log10(math.e) * wavenumber.imag, rel=1e-3)
    assert imaginary_permittivity(sigma) == pytest.approx(permittivity.imag, rel=1e-3)


def test_low_loss_is_1636_sigma_over_root_eps() -> None:
    """Rec. ITU-R P.2040's own approximation."""
    assert absorption_db_per_m(4.0, 0.001) == pytest.approx(1636 * 0.001 / 2.0, rel=1e-3)


def test_a_shell_is_its_solid_with_walls() -> None:
    for name, wall_m in (("concrete", 0.20), ("brick", 0.24)):
        solid, shell = RADIO_MATERIALS[name], RADIO_MATERIALS[f"{name}_shell"]
        assert (shell.permittivity, shell.conductivity_spm) == (solid.permittivity, solid.conductivity_spm)
        assert (solid.wall_m, shell.wall_m, shell.db_per_m) == (0.0, wall_m, 0.0)


def test_each_takes_in_one_way_and_says_where_from() -> None:
    for name, material in RADIO_MATERIALS.items():
        ways = (material.db_per_m > 0.0, material.db_per_face > 0.0, material.wall_m > 0.0)
        assert sum(ways) == 1, name
        assert material.source, name


def test_what_p2040_does_not_have() -> None:
    assert RADIO_MATERIALS["rubble"].db_per_m == 23.5 and RADIO_MATERIALS["rubble"].permittivity == 1.0
    assert RADIO_MATERIALS["foliage"].db_per_m == pytest.approx(0.45 * 2.4**0.284, abs=0.001)
    assert RADIO_MATERIALS["metal"].db_per_face == 100.0 and math.isinf(RADIO_MATERIALS["metal"].permittivity)
