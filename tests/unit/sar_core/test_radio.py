"""The antenna array's phase against a rotation and a path difference worked out otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from sar_core.radio import ANTENNA_SPACING_M, SUBCARRIERS, WAVELENGTH_M, array_axis
from tests.unit.sar_core.arrayphase import expected_phase

angles = st.tuples(*[st.floats(-math.pi, math.pi)] * 3)


def test_the_channel_is_ht20_in_the_2_4_ghz_band() -> None:
    assert len(SUBCARRIERS) == 56 and 0 not in SUBCARRIERS
    assert (-SUBCARRIERS[::-1] == SUBCARRIERS).all()
    assert pytest.approx(0.123, abs=1e-3) == WAVELENGTH_M


@given(angles)
def test_the_array_lies_along_the_bodys_left(turned: tuple[float, float, float]) -> None:
    attitude = Rotation.from_euler("ZYX", turned)
    x, y, z, w = attitude.as_quat()
    assert array_axis(w, x, y, z) == pytest.approx(tuple(attitude.apply([0.0, 1.0, 0.0])), abs=1e-12)


@given(angles, angles)
def test_the_phase_is_the_way_that_the_nearer_antenna_saves(
    a: tuple[float, float, float], b: tuple[float, ...]
) -> None:
    axis, toward = (Rotation.from_euler("ZYX", turned).apply([0.0, 1.0, 0.0]) for turned in (a, b))
    ends = np.array([-0.5, 0.5])[:, None] * ANTENNA_SPACING_M * axis
    far = 1e6 * toward
    saved = np.linalg.norm(far - ends[0]) - np.linalg.norm(far - ends[1])
    assert expected_phase(*axis, *toward) == pytest.approx(2.0 * math.pi * saved / WAVELENGTH_M, abs=1e-6)


def test_ahead_says_nothing_and_along_the_array_says_pi() -> None:
    assert expected_phase(0.0, 1.0, 0.0, 1.0, 0.0, 0.0) == 0.0
    assert expected_phase(0.0, 1.0, 0.0, 0.0, 1.0, 0.0) == pytest.approx(math.pi)
