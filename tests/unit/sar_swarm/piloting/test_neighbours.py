"""Where another drone should be by now: carried on while news is fresh, braked when it is not, unknown when stale."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_swarm.piloting.neighbours import (
    BRAKING_MPS2,
    HEARD,
    SANE_M,
    SANE_MPS,
    SILENT,
    UNKNOWN,
    SeparationLimits,
    neighbour,
)

KEEP = SeparationLimits()
coordinates = st.tuples(*[st.floats(-500, 500)] * 3)
speeds = st.tuples(*[st.floats(-12, 12)] * 3)


def heard(position: tuple[float, ...], velocity: tuple[float, ...], stamp_s: float = 10.0) -> NDArray[np.float64]:
    return np.array([*position, *velocity, stamp_s, 0.0, 0.0])


@given(coordinates, speeds, st.floats(0.0, KEEP.timeout_s, exclude_max=True))
def test_fresh_news_is_carried_straight_on(p: tuple[float, ...], v: tuple[float, ...], age: float) -> None:
    kind, *rest = neighbour(heard(p, v, 0.0), age, KEEP)
    assert kind == HEARD
    assert rest == pytest.approx([a + b * age for a, b in zip(p, v, strict=True)] + list(v), abs=1e-9)


@given(coordinates, speeds)
def test_who_fell_silent_has_braked_where_the_formula_says(p: tuple[float, ...], v: tuple[float, ...]) -> None:
    """v^2 / 2a along the way it flew; and it stays there as long as it is kept."""
    kind, *place = neighbour(heard(p, v), 10.0 + KEEP.timeout_s, KEEP)
    assert kind == SILENT and place[3:] == [0.0, 0.0, 0.0]
    assert math.dist(place[:3], p) == pytest.approx(np.dot(v, v) / (2.0 * BRAKING_MPS2), abs=1e-9)
    later = neighbour(heard(p, v), 10.0 + KEEP.timeout_s + KEEP.silent_keep_s - 1e-6, KEEP)
    assert later == (SILENT, *place)


def test_what_is_too_long_ago_is_forgotten() -> None:
    row = heard((0.0, 0.0, 30.0), (1.0, 0.0, 0.0))
    assert neighbour(row, 10.0 + KEEP.timeout_s + KEEP.silent_keep_s, KEEP)[0] == UNKNOWN


def test_news_from_the_future_is_taken_as_of_now() -> None:
    """Clocks differ by a tick."""
    assert neighbour(heard((1.0, 2.0, 3.0), (5.0, 0.0, 0.0)), 9.9, KEEP) == (HEARD, 1.0, 2.0, 3.0, 5.0, 0.0, 0.0)


@pytest.mark.parametrize("column", range(7))
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_not_known(column: int, value: float) -> None:
    row = heard((1.0, 2.0, 3.0), (5.0, 0.0, 0.0))
    row[column] = value
    assert neighbour(row, 10.0, KEEP)[0] == UNKNOWN


@pytest.mark.parametrize(("column", "limit"), [(0, SANE_M), (2, SANE_M), (3, SANE_MPS), (5, SANE_MPS)])
def test_what_no_drone_can_be_is_not_known(column: int, limit: float) -> None:
    row = heard((1.0, 2.0, 3.0), (5.0, 0.0, 0.0))
    for sign in (1.0, -1.0):
        row[column] = sign * limit
        assert neighbour(row, 10.0, KEEP)[0] == UNKNOWN
        row[column] = 0.999 * sign * limit
        assert neighbour(row, 10.0, KEEP)[0] == HEARD
