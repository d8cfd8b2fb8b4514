"""Geometry's figures against published values, closed forms and a brute-force Fisher information."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_core.radio import BASELINE
from sar_swarm.sensing.gdop import band, constellation_gdop, crlb, effective_views, fisher, gdi, gdop

Floats = NDArray[np.float64]
HEIGHT = 0.5


def ring(degrees: list[float], radius: float = 60.0) -> Floats:
    a = np.radians(degrees)
    return radius * np.column_stack([np.cos(a), np.sin(a)])


@pytest.mark.parametrize("n", [3, 4, 6, 9])
def test_even_constellations_have_the_closed_form(n: int) -> None:
    assert gdop(ring([360.0 * k / n for k in range(n)]), np.zeros(2)) == pytest.approx(2.0 / math.sqrt(n), rel=1e-12)


@pytest.mark.parametrize(
    ("degrees", "value"),
    [
        ([0, 90], 1.414),
        ([0, 60], 1.633),
        ([0, 30], 2.828),
        ([0, 10], 8.144),
        ([0, 10, 20], 4.114),
        ([0, 30, 60], 1.549),
    ],
)
def test_uneven_constellations_have_the_published_values(degrees: list[float], value: float) -> None:
    assert gdop(ring(degrees), np.zeros(2)) == pytest.approx(value, abs=6e-4)


@pytest.mark.parametrize(
    "sensors",
    [ring([]), ring([10]), ring([0, 180]), ring([45, 45, 225]), np.array([[0.0, 0.0], [3.0, 4.0], [5.0, 0.0]])],
    ids=["none", "one", "opposite", "collinear", "on the target"],
)
def test_what_is_undefined_is_none_and_never_zero(sensors: Floats) -> None:
    assert gdop(sensors, np.zeros(2)) is None


def test_not_a_number_is_undefined() -> None:
    assert gdop(np.array([[1.0, math.nan], [2.0, 3.0]]), np.zeros(2)) is None


def standing(degrees: list[float], times: list[float], target: Floats) -> Floats:
    return np.column_stack([times, target + ring(degrees)])


@pytest.mark.parametrize(
    ("degrees", "value"),
    [([0, 90], math.sqrt(2.0)), ([0, 120, 240], math.sqrt(4.0 / 3.0)), ([0, 180], None), ([30, 30, 210], None)],
    ids=["right angle", "three at 120 degrees", "opposite", "collinear"],
)
def test_a_constellation_has_its_value_by_hand(degrees: list[float], value: float | None) -> None:
    target = np.array([40.0, -7.0])
    latest = standing(degrees, [9.0] * len(degrees), target)
    assert constellation_gdop(latest, target, 10.0) == (None if value is None else pytest.approx(value, rel=1e-12))


@pytest.mark.parametrize(
    ("time_s", "value"),
    [(9.0, 1.1547), (10.0, 1.1547), (10.01, 1.633), (10.49, 1.633), (10.51, None), (8.75, 1.633)],
    ids=["all", "one exactly 2 s old", "one too old", "two left", "one left", "one of later"],
)
def test_only_what_was_heard_within_two_seconds_is_in_the_constellation(time_s: float, value: float | None) -> None:
    latest = standing([0, 120, 240], [8.0, 8.5, 9.0], np.zeros(2))
    assert constellation_gdop(latest, np.zeros(2), time_s) == (
        None if value is None else pytest.approx(value, abs=1e-4)
    )


def test_nobody_hears_it() -> None:
    assert constellation_gdop(np.empty((0, 3)), np.zeros(2), 1.0) is None


def test_bands_meet_at_their_limits() -> None:
    values = [0.8, 1.2, 1.999, 2.0, 4.0, math.inf, None]
    assert [band(v) for v in values] == ["excellent", "good", "good", "fair", "poor", "poor", "undefined"]


def test_diversity_of_views() -> None:
    even = np.radians([0.0, 120.0, 240.0])
    assert gdi(even) == pytest.approx(2.0 * math.pi / 3.0)
    assert gdi(np.radians([0.0, 10.0, 180.0])) == pytest.approx(math.radians((10.0 + 10.0 + 170.0) / 3.0))
    assert gdi(np.radians([350.0, 10.0])) == pytest.approx(math.radians(20.0))
    assert gdi(np.zeros(1)) is None


@given(st.lists(st.floats(-10.0, 10.0), min_size=1, max_size=12))
def test_effective_views_lie_between_one_and_all(azimuths: list[float]) -> None:
    assert 1.0 <= effective_views(np.array(azimuths)) <= len(azimuths)


def test_effective_views_count_what_is_apart() -> None:
    assert effective_views(np.zeros(5)) == pytest.approx(1.0)
    assert effective_views(np.radians([0.0, 90.0, 180.0, 270.0])) == pytest.approx(4.0, rel=1e-3)
    assert effective_views(np.empty(0)) == 0.0
    pair = math.exp(-0.5 * (30.0 / 30.0) ** 2)
    assert effective_views(np.radians([0.0, 30.0])) == pytest.approx(4.0 / (2.0 + 2.0 * pair**2))


def constellation(rng: np.random.Generator, drones: int = 3, each: int = 4) -> Floats:
    rows = []
    for d in range(drones):
        for k in range(each):
            axis = rng.normal(size=3)
            position = (*rng.uniform(-90.0, 90.0, 2), rng.uniform(20.0, 40.0))
            rows.append([d, 0.5 * k, *position, *axis / np.linalg.norm(axis), 70.0, 7.0, 0.0, 0.2])
    return np.array(rows)


def predicted(rows: Floats, unknown: Floats, drones: int) -> Floats:
    """Log-ranges and phases for (x, y, power offset, then per drone dx dy dz yaw): the model, written once more."""
    out = []
    for row in rows:
        d = int(row[0])
        dx, dy, dz, yaw = unknown[3 + 4 * d : 7 + 4 * d]
        offset = np.array([unknown[0], unknown[1], HEIGHT]) - row[2:5] - (dx, dy, dz)
        c, s = math.cos(yaw), math.sin(yaw)
        axis = np.array([c * row[5] - s * row[6], s * row[5] + c * row[6], row[7]])
        distance = np.linalg.norm(offset)
        out.append((math.log(distance) + unknown[2], BASELINE * axis @ offset / distance))
    return np.array(out).T.ravel()


@pytest.mark.parametrize("power", [0.0, 0.3])
def test_information_equals_that_of_the_whole_covariance(power: float) -> None:
    """Brute force: numeric derivatives, one covariance matrix over all measurements with every shared error in it."""
    rng = np.random.default_rng(5)
    rows, target, pose, yaw = constellation(rng), np.array([5.0, -3.0]), 0.4, 0.03
    at = np.concatenate([target, np.zeros(1 + 4 * 3)])
    step = 1e-6
    jacobian = np.column_stack(
        [(predicted(rows, at + step * e, 3) - predicted(rows, at - step * e, 3)) / (2 * step) for e in np.eye(len(at))]
    )
    shared = np.diag([power**2] + [pose**2, pose**2, pose**2, yaw**2] * 3)
    noise = np.diag(np.concatenate([np.full(len(rows), 0.1**2), np.full(len(rows), 0.2**2)]))
    covariance = noise + jacobian[:, 2:] @ shared @ jacobian[:, 2:].T
    expected = jacobian[:, :2].T @ np.linalg.solve(covariance, jacobian[:, :2])
    np.testing.assert_allclose(fisher(rows, target, HEIGHT, pose, yaw, power), expected, rtol=1e-5)
    bound = crlb(rows, target, HEIGHT, pose, yaw, power)
    assert bound == pytest.approx(math.sqrt(np.trace(np.linalg.inv(expected))), rel=1e-5)


def test_own_errors_can_only_widen_the_bound() -> None:
    rows, target = constellation(np.random.default_rng(2)), np.zeros(2)
    plain, posed = crlb(rows, target, HEIGHT), crlb(rows, target, HEIGHT, 0.3, 0.01)
    powered = crlb(rows, target, HEIGHT, 0.3, 0.01, 0.35)
    assert plain is not None and posed is not None and powered is not None
    assert plain < posed < powered


def test_a_range_alone_has_no_bound() -> None:
    row = np.array([[0, 0.0, 60.0, 0.0, HEIGHT, 1.0, 0.0, 0.0, 60.0, 1.0, math.pi, 0.1]])
    assert crlb(row, np.zeros(2), HEIGHT) is None
