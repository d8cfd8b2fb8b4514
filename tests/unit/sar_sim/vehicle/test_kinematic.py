"""Stage 1's point: it keeps its limits at every step, gets where it is sent, and never jumps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_sim.vehicle.kinematic import COURSE, SPEED, STATE, Agility, X, Y, approach, corner_speed, halt
from sar_swarm.piloting.navigation import Chart
from sar_swarm.planning.trajectory import MotionLimits

AGILE = Agility(8.0, 3.0, math.radians(30.0), 3.0, 0.25)
PLACE = st.floats(-200.0, 200.0)


@given(PLACE, PLACE, st.floats(-math.pi, math.pi), st.floats(0.0, 8.0), PLACE, PLACE)
def test_limits_hold_at_every_step_and_the_goal_is_reached(
    x: float, y: float, course: float, speed: float, gx: float, gy: float
) -> None:
    state = np.array([x, y, course, speed])
    nearest = math.inf
    for _ in range(600):
        before = state.copy()
        approach(state, gx, gy, 3.0, AGILE)
        turned = abs(state[COURSE] - before[COURSE])
        went = math.hypot(state[X] - before[X], state[Y] - before[Y])
        assert went <= AGILE.speed_mps * AGILE.step_s + 1e-9
        assert abs(state[SPEED] - before[SPEED]) <= AGILE.acceleration_mps2 * AGILE.step_s + 1e-9
        if before[SPEED] > 0.0:
            assert turned <= AGILE.turn_rate_rps * AGILE.step_s + 1e-9
            assert turned * state[SPEED] <= AGILE.acceleration_mps2 * AGILE.step_s + 1e-9
        nearest = min(nearest, math.hypot(gx - state[X], gy - state[Y]))
        if nearest < 3.0:
            return
    pytest.fail(f"never came nearer than {nearest} m")


def test_it_comes_to_a_stand_and_stays() -> None:
    state = np.array([0.0, 0.0, 0.3, 8.0])
    for _ in range(11):
        halt(state, AGILE)
    assert state[SPEED] == 0.0
    place = state[[X, Y]].copy()
    assert np.hypot(*place) == pytest.approx(8.0**2 / (2.0 * 3.0), abs=1.1)
    halt(state, AGILE)
    assert np.array_equal(state[[X, Y]], place)


def test_from_rest_it_sets_off_towards_its_goal() -> None:
    state = np.zeros(STATE)
    approach(state, -50.0, 50.0, 0.0, AGILE)
    assert math.atan2(state[Y], state[X]) == pytest.approx(0.75 * math.pi)


@pytest.mark.parametrize("c", [None, (50.0, 0.0), (60.0, 0.0), (50.0, 40.0), (0.0, 0.0), (20.0, 20.0)])
def test_corners_are_taken_as_the_swarms_planner_takes_them(c: tuple[float, float] | None) -> None:
    chart = Chart(
        np.empty((0, 8)), (-100.0, -100.0, 5.0, 100.0, 100.0, 60.0), MotionLimits(8.0, math.radians(30.0), 3.0)
    )
    cx, cy = c if c is not None else (math.nan, math.nan)
    ours = corner_speed(0.0, 0.0, 50.0, 0.0, cx, cy, 3.0, AGILE)
    assert ours == pytest.approx(chart.corner_speed((0.0, 0.0), (50.0, 0.0), c, 3.0))
