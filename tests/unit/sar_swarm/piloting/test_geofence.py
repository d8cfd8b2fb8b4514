"""The geofence: states, and that no wanted velocity carries a vehicle with inertia out of the polygon."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_swarm.piloting.geofence import HARD, SAFE, SOFT, fence_state, keep_inside, keep_level, room

Floats = NDArray[np.float64]

SQUARE = np.array([[-60.0, -60.0], [60.0, -60.0], [60.0, 60.0], [-60.0, 60.0]])
NOTCHED = np.array([[-60.0, -60.0], [60.0, -60.0], [60.0, 60.0], [0.0, -10.0], [-60.0, 60.0]])
WEDGE = np.array([[-60.0, -60.0], [60.0, -60.0], [60.0, -20.0]])
NONE = np.zeros((0, 2))
MARGIN = 5.0
SPEED = 8.0
TICK = 0.05
LAG_S = 0.5


@pytest.mark.parametrize(
    ("at", "state"),
    [
        ((0.0, 0.0, 30.0), SAFE),
        ((57.0, 0.0, 30.0), SOFT),
        ((60.5, 0.0, 30.0), HARD),
        ((0.0, 0.0, 116.0), SOFT),
        ((0.0, 0.0, 121.0), HARD),
        ((0.0, 0.0, 8.0), SOFT),
        ((0.0, 0.0, 4.0), HARD),
    ],
)
def test_states(at: tuple[float, float, float], state: int) -> None:
    assert fence_state(np.array(at), SQUARE, MARGIN, 120.0, 10.0) == state


def test_without_a_fence_everything_is_safe() -> None:
    assert fence_state(np.array([1e5, 0.0, 5.0]), NONE, MARGIN, math.inf, -math.inf) == SAFE
    assert keep_inside(np.array([1e5, 0.0, 5.0]), np.zeros(3), 8.0, 0.0, NONE, MARGIN) == (8.0, 0.0)


@given(st.floats(-90, 90), st.floats(-90, 90))
def test_room_is_the_distance_to_the_polygon(x: float, y: float) -> None:
    """Against a dense sampling of the boundary; the sign against the square's own inequality."""
    corners = np.vstack([SQUARE, SQUARE[:1]])
    edge = np.concatenate([np.linspace(a, b, 2401) for a, b in pairwise(corners)])
    distance, ux, uy = room(x, y, SQUARE)
    assert abs(distance) == pytest.approx(float(np.hypot(edge[:, 0] - x, edge[:, 1] - y).min()), abs=0.03)
    if abs(distance) > 1e-6:
        assert (distance > 0.0) == (max(abs(x), abs(y)) < 60.0)
        foot = np.array([x, y]) + abs(distance) * np.array([ux, uy])
        assert max(abs(foot)) == pytest.approx(60.0, abs=1e-6)


@pytest.mark.parametrize("fence", [SQUARE, NOTCHED, WEDGE], ids=["square", "notched", "acute wedge"])
@given(
    st.lists(st.tuples(st.floats(-math.pi, math.pi), st.floats(0, SPEED)), min_size=4, max_size=4),
    st.integers(0, 2**32 - 1),
)
def test_no_wanted_velocity_leads_out(fence: Floats, wishes: list[tuple[float, float]], seed: int) -> None:
    """A mass with first-order velocity lag, started inside the margin at up to full speed, for 40 s."""
    rng = np.random.default_rng(seed)
    while True:
        position = np.array([*rng.uniform(-60, 60, 2), 30.0])
        if room(position[0], position[1], fence)[0] > MARGIN:
            break
    heading = rng.uniform(-math.pi, math.pi)
    velocity = rng.uniform(0, SPEED) * np.array([math.cos(heading), math.sin(heading), 0.0])
    for angle, speed in wishes:
        for _ in range(int(10.0 / TICK)):
            vx, vy = keep_inside(position, velocity, speed * math.cos(angle), speed * math.sin(angle), fence, MARGIN)
            assert math.hypot(vx, vy) <= max(speed, SPEED) + 1e-9
            velocity[:2] += (np.array([vx, vy]) - velocity[:2]) * TICK / LAG_S
            position += velocity * TICK
            assert room(position[0], position[1], fence)[0] > 0.0


def test_flight_along_the_fence_and_inward_is_free() -> None:
    at, still = np.array([56.0, 0.0, 30.0]), np.zeros(3)
    assert keep_inside(at, still, 0.0, 8.0, SQUARE, MARGIN) == (0.0, 8.0)
    assert keep_inside(at, still, -8.0, 0.0, SQUARE, MARGIN) == (-8.0, 0.0)
    vx, vy = keep_inside(at, still, 6.0, 5.0, SQUARE, MARGIN)
    assert (vx, vy) == (pytest.approx(0.0), pytest.approx(5.0))


def test_outward_speed_falls_smoothly_to_nothing_at_the_margin() -> None:
    """Half the room left to the margin per second, so a vehicle with a lag of half a second does not overshoot."""
    allowed = [keep_inside(np.array([x, 0.0, 30.0]), np.zeros(3), 8.0, 0.0, SQUARE, MARGIN)[0] for x in range(35, 60)]
    assert allowed[0] == 8.0 and allowed[-5:] == pytest.approx([0.0] * 5)
    assert max(a - b for a, b in pairwise(allowed)) < 0.51
    assert allowed == sorted(allowed, reverse=True)


@given(st.floats(60.5, 90), st.floats(-90, 90), st.floats(-8, 8), st.floats(-8, 8))
def test_outside_the_drone_flies_back(x: float, y: float, vx: float, vy: float) -> None:
    at = np.array([x, y, 30.0])
    back = keep_inside(at, np.array([3.0, 0.0, 0.0]), vx, vy, SQUARE, MARGIN)
    after = at[:2] + 0.1 * np.array(back)
    assert room(after[0], after[1], SQUARE)[0] > room(x, y, SQUARE)[0] + 0.2


def test_altitude_stays_in_its_band() -> None:
    assert keep_level(119.0, MARGIN, 120.0, 10.0) == 115.0
    assert keep_level(3.0, MARGIN, 120.0, 10.0) == 10.0
    assert keep_level(30.0, MARGIN, 120.0, 10.0) == 30.0
    assert keep_level(30.0, MARGIN, math.inf, -math.inf) == 30.0
