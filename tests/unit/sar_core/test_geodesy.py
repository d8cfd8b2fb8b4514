"""The local frame against latitude and longitude: round trips, lengths on the sphere, and PX4's own spawn grid."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.geodesy import RADIUS_M, Origin, to_global, to_local

ORIGIN = Origin(47.397742, 8.545594, 489.4)
metres = st.floats(-5000.0, 5000.0)


@given(metres, metres, st.floats(-80.0, 80.0), st.floats(-179.0, 179.0))
def test_there_and_back_is_the_same_place(north: float, east: float, latitude: float, longitude: float) -> None:
    origin = Origin(latitude, longitude, 0.0)
    assert to_local(origin, *to_global(origin, north, east)) == pytest.approx((north, east), abs=1e-5)


def test_a_degree_of_latitude_is_its_arc_on_the_sphere() -> None:
    north, east = to_local(ORIGIN, ORIGIN.latitude + 0.01, ORIGIN.longitude)
    assert north == pytest.approx(math.radians(0.01) * RADIUS_M)
    assert east == pytest.approx(0.0, abs=1e-9)


def test_distances_from_the_origin_are_great_circles() -> None:
    """Equidistant from its middle; checked by the haversine formula."""
    latitude, longitude = to_global(ORIGIN, 300.0, -400.0)
    a, b = math.radians(ORIGIN.latitude), math.radians(latitude)
    half = math.sin((b - a) / 2.0) ** 2
    half += math.cos(a) * math.cos(b) * math.sin(math.radians(longitude - ORIGIN.longitude) / 2.0) ** 2
    assert 2.0 * RADIUS_M * math.asin(math.sqrt(half)) == pytest.approx(500.0, abs=1e-6)


def test_the_origin_is_zero() -> None:
    assert to_local(ORIGIN, ORIGIN.latitude, ORIGIN.longitude) == pytest.approx((0.0, 0.0), abs=1e-9)
    assert to_global(ORIGIN, 0.0, 0.0) == (ORIGIN.latitude, ORIGIN.longitude)
