"""What the bodies of a world are made of, as a 2.4 GHz wave meets them: one table, one revision of its constants.

Rec. ITU-R P.2040-4 gives a material's relative permittivity as a f^b and its conductivity as c f^d, f in GHz. Brick,
concrete, wood and ground follow from that; foliage, rubble and metal are measured, derived or assumed, as their source
says.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass
from types import MappingProxyType

from sar_core.radio import CARRIER_HZ, WAVELENGTH_M

P2040 = {
    "brick": (3.91, 0.0, 0.0238, 0.16),
    "concrete": (5.24, 0.0, 0.0462, 0.7822),
    "wood": (1.99, 0.0, 0.0047, 1.0718),
    "ground": (15.0, -0.1, 0.035, 1.63),
}
"""a, b, c, d of Rec. ITU-R P.2040-4, table 3, at 1 to 10 GHz; ground is medium dry. Read in the table Sionna RT 2.2
ships, not in the Recommendation itself."""


@dataclass(frozen=True)
class RadioMaterial:
    """A solid takes its share per metre of chord; a hollow body has walls of a thickness, and each takes its own."""

    permittivity: float  # relative, of its faces; 1 reflects nothing, inf is a mirror
    conductivity_spm: float
    wall_m: float  # of a hollow body
    db_per_m: float  # of a solid
    db_per_face: float  # of what is opaque
    source: str


def imaginary_permittivity(conductivity_spm: float) -> float:
    """Imaginary part of the relative permittivity at the carrier, 17.98 sigma / f in GHz (Rec. ITU-R P.2040-4)."""
    return -17.98 * conductivity_spm / (CARRIER_HZ * 1e-9)


def absorption_db_per_m(permittivity: float, conductivity_spm: float) -> float:
    """What a plane wave loses per metre inside: the exact form of 1636 sigma / sqrt(eps) (Rec. ITU-R P.2040-4)."""
    root = cmath.sqrt(complex(permittivity, imaginary_permittivity(conductivity_spm)))
    return -20.0 * math.log10(math.e) * 2.0 * math.pi / WAVELENGTH_M * root.imag


def _itu(name: str, wall_m: float = 0.0, note: str = "") -> RadioMaterial:
    a, b, c, d = P2040[name]
    f_ghz = CARRIER_HZ * 1e-9
    permittivity, conductivity = a * f_ghz**b, c * f_ghz**d
    inside = absorption_db_per_m(permittivity, conductivity) if wall_m == 0.0 else 0.0
    return RadioMaterial(permittivity, conductivity, wall_m, inside, 0.0, f"ITU-R P.2040-4 table 3, {name}{note}")


def _soft(db_per_m: float, source: str) -> RadioMaterial:
    """Weakens what passes and mirrors nothing."""
    return RadioMaterial(1.0, 0.0, 0.0, db_per_m, 0.0, source)


RADIO_MATERIALS = MappingProxyType(
    {
        "concrete": _itu("concrete"),
        "brick": _itu("brick"),
        "wood": _itu("wood", note="; dry, a living trunk loses more"),
        "ground": _itu("ground", note=", medium dry"),
        "concrete_shell": _itu("concrete", 0.20, "; walls of 0.20 m (assumed)"),
        "brick_shell": _itu("brick", 0.24, "; walls of 0.24 m (assumed)"),
        "rubble": _soft(
            23.5,
            "half of P.2040-1's concrete (assumed); Oestges 2013 (EMTS) models 10 to 100 dB/m. Rough against a "
            "wavelength of 0.12 m: it scatters and mirrors nothing (assumed)",
        ),
        "foliage": _soft(0.577, "Weissberger 1982, 0.45 f^0.284 dB/m for up to 14 m of leaves"),
        "metal": RadioMaterial(
            math.inf, 0.0, 0.0, 0.0, 100.0, "opaque: skin depth of micrometres; the figure is a cap, not a measurement"
        ),
    }
)
