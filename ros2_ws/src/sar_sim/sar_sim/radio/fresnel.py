"""What a flat face does to the wave of an upright antenna: echo and passage, by how the field is tilted against it.

The field of an upright antenna lies in the upright plane of its ray. Against a face it is a mix of the two cases that
Fresnel's formulas know: across the plane of incidence (TE) and within it (TM).
"""

from __future__ import annotations

import math

import numpy as np

from sar_core.compiled import inlined
from sar_core.radio import WAVELENGTH_M


@inlined
def te_share(normal: float, up: float) -> float:
    """Share of the field's power that lies across the plane of incidence on an upright face.

    `normal` and `up` are the ray's direction cosines along the face's normal and upwards. The field (k x (k x z)) and
    the axis across the plane of incidence (k x n), both of length 1, have this square of their product. On a face that
    lies flat it is 0.
    """
    bare = (1.0 - normal * normal) * (1.0 - up * up)
    return min(max((1.0 - normal * normal - up * up) / bare, 0.0), 1.0) if bare > 0.0 else 1.0


@inlined
def echo(normal: float, share: float, eps_re: float, eps_im: float) -> tuple[float, float]:
    """Reflection coefficient (real, imaginary) of a half space between upright antennas, for the TE share of the field.

    An image of the field is what the mirror sends back with coefficient 1; Fresnel's TM coefficient is defined with the
    other sign.
    """
    if math.isinf(eps_re):
        return -1.0, 0.0
    eps = complex(eps_re, eps_im)
    root = np.sqrt(eps - (1.0 - normal * normal))
    value = share * (normal - root) / (normal + root) - (1.0 - share) * (eps * normal - root) / (eps * normal + root)
    return value.real, value.imag


@inlined
def passage(normal: float, share: float, eps_re: float, eps_im: float, thick_m: float) -> float:
    """Share of power that passes a slab between upright antennas (Rec. ITU-R P.2040-4, single-layer slab)."""
    eps = complex(eps_re, eps_im)
    root = np.sqrt(eps - (1.0 - normal * normal))
    te = (normal - root) / (normal + root)
    tm = (eps * normal - root) / (eps * normal + root)
    turn = np.exp(-2j * math.pi * thick_m / WAVELENGTH_M * root)
    te *= te
    tm *= tm
    value = turn * (
        share * (1.0 - te) / (1.0 - te * turn * turn) + (1.0 - share) * (1.0 - tm) / (1.0 - tm * turn * turn)
    )
    return float(value.real * value.real + value.imag * value.imag)
