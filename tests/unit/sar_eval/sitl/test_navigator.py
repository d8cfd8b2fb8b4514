"""Routes: where automatic modes go and how fast."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_eval.sitl.commander import FlightMode
from sar_eval.sitl.navigator import (
    Leg,
    NavigatorPlace,
    Point,
    Return,
    Route,
    Speeds,
    braking_point,
    go_on,
    return_height,
    set_out,
    setpoint,
    sinking_speed,
    stand_still,
)
from sar_sim.vehicle.autopilot import SP_POS, SP_VEL, SP_YAW

HOME = (0.0, 0.0, 0.0)
SPEEDS, WAY = Speeds(), Return()
distances = st.floats(0.0, 500.0)
places = st.tuples(st.floats(-200.0, 200.0), st.floats(-200.0, 200.0), st.floats(-100.0, 0.0))


def route(mode: FlightMode, here: Point, velocity: Point = (0.0, 0.0, 0.0), goal: Point | None = None) -> Route:
    return set_out(mode, NavigatorPlace(here, velocity, 0.3), HOME, goal, SPEEDS, WAY)


def test_hold_stays_where_braking_ends() -> None:
    assert braking_point(NavigatorPlace((1.0, 2.0, -5.0), (6.0, 0.0, 1.0), 0.0)) == pytest.approx((7.0, 2.0, -5.0))
    assert route(FlightMode.HOLD, (1.0, 2.0, -5.0)).legs[0].goal == (1.0, 2.0, -5.0)
    assert route(FlightMode.HOLD, (1.0, 2.0, -5.0), goal=(9.0, 9.0, -9.0)).legs[0].goal == (9.0, 9.0, -9.0)


def test_take_off_climbs_over_its_spot_at_take_off_speed() -> None:
    here = (3.0, 4.0, 0.0)
    row = setpoint(route(FlightMode.TAKEOFF, here, goal=(0.0, 0.0, -30.0)), here, 0.0, SPEEDS)
    assert row[SP_POS : SP_POS + 3] == pytest.approx((3.0, 4.0, -1.5))
    assert row[SP_YAW] == 0.3


def test_landing_sinks_without_a_height_to_reach() -> None:
    here = (3.0, 4.0, -20.0)
    row = setpoint(route(FlightMode.LAND, here), here, 0.0, SPEEDS)
    assert math.isnan(row[SP_POS + 2])
    assert row[SP_VEL + 2] == SPEEDS.down


@pytest.mark.parametrize(("height", "speed"), [(30.0, 1.5), (10.0, 1.5), (7.5, 1.1), (5.0, 0.7), (-3.0, 0.7)])
def test_landing_slows_down_near_the_ground(height: float, speed: float) -> None:
    assert sinking_speed(height, SPEEDS) == pytest.approx(speed)


def test_return_climbs_then_crosses_then_sinks() -> None:
    here = (100.0, 0.0, -5.0)
    legs = route(FlightMode.RTL, here).legs
    assert [leg.goal for leg in legs] == [(100.0, 0.0, -30.0), (0.0, 0.0, -30.0), HOME]
    assert [leg.sink for leg in legs] == [False, False, True]


@pytest.mark.parametrize(
    ("distance", "height", "expected"),
    [(100.0, 5.0, 30.0), (100.0, 45.0, 45.0), (8.0, 2.0, 8.0), (3.0, 2.0, 4.0), (1.0, 1.5, 2.0), (0.0, 1.5, 1.5)],
)
def test_return_height_follows_the_cone(distance: float, height: float, expected: float) -> None:
    assert return_height(distance, height, WAY) == pytest.approx(expected)


@given(distances, st.floats(0.0, 200.0))
def test_return_never_sinks_before_home_nor_climbs_beyond_its_height(distance: float, height: float) -> None:
    wanted = return_height(distance, height, WAY)
    assert wanted >= height
    assert wanted <= max(WAY.height_m, height)


def test_a_leg_ends_only_when_its_place_and_height_are_reached() -> None:
    trip = Route((Leg((0.0, 0.0, -10.0)), Leg((50.0, 0.0, -10.0))), 0.0)
    assert go_on(trip, (0.0, 0.0, -9.0), 2.0) == trip
    assert go_on(trip, (0.0, 2.5, -10.0), 2.0) == trip
    rest = go_on(trip, (0.0, 1.5, -9.5), 2.0)
    assert rest.legs == trip.legs[1:]
    assert go_on(rest, (50.0, 0.0, -10.0), 2.0) == rest


@given(places, places)
def test_no_setpoint_asks_for_more_than_the_speeds_allow(here: Point, goal: Point) -> None:
    row = setpoint(Route((Leg(goal),), 0.0), here, 0.0, SPEEDS)
    step = row[SP_POS : SP_POS + 3] - np.array(here)
    assert math.hypot(step[0], step[1]) * SPEEDS.gain_xy <= SPEEDS.cruise + 1e-9
    assert -SPEEDS.up - 1e-9 <= step[2] * SPEEDS.gain_z <= SPEEDS.down + 1e-9
    left = math.dist(row[SP_POS : SP_POS + 3], goal)
    assert left <= math.dist(here, goal) + 1e-9


def test_standing_still_commands_nothing() -> None:
    assert np.isnan(stand_still()).all()
