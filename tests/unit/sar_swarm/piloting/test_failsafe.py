"""The failsafe states: each row of the table, what lasts, what recovers, and what is not a number."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sar_swarm.piloting.failsafe import Failsafe, FailsafeLimits, FailsafeState, Vitals, assess

ROOT = Path(__file__).resolve().parents[4]
F = Failsafe
NAN, INF = math.nan, math.inf
WELL = Vitals(
    time_s=100.0,
    position=np.array([10.0, 20.0, 30.0]),
    velocity=np.array([8.0, 0.0, 0.0]),
    charge=0.9,
    heard_age_s=0.1,
    gps_age_s=0.1,
    motors_ok=True,
    tilt_rad=0.1,
    nearest_m=40.0,
    band=0,
    altitude_error_m=0.2,
    home_distance_m=150.0,
)


def at(time_s: float, **changes: Any) -> Vitals:
    return WELL._replace(time_s=time_s, **changes)


def watch(
    failsafe: FailsafeState, begin_s: float, seconds: float, **changes: Any
) -> tuple[FailsafeState, dict[Failsafe, float]]:
    """Let something last; returns the failsafe and how long after the beginning each state was first entered.

    Ages given as None grow from zero with the time that passes.
    """
    entered: dict[Failsafe, float] = {}
    for k in range(round(seconds * 20) + 1):
        now = {name: k / 20 if value is None else value for name, value in changes.items()}
        failsafe = assess(failsafe, at(begin_s + k / 20, **now))
        entered.setdefault(failsafe.state, k / 20)
    return failsafe, entered


def test_the_codes_are_those_of_the_message() -> None:
    text = (ROOT / "ros2_ws/src/sar_msgs/msg/UavStatus.msg").read_text(encoding="utf-8")
    assert dict(re.findall(r"FAILSAFE_(\w+)=(\d)", text)) == {state.name: str(int(state)) for state in F}


def test_a_healthy_drone_stays_nominal() -> None:
    failsafe, entered = watch(FailsafeState(), 0.0, 60.0)
    assert failsafe.state is F.NOMINAL and list(entered) == [F.NOMINAL] and failsafe.since_s == 0.0


@pytest.mark.parametrize(
    ("changes", "state", "within_s"),
    [
        ({"motors_ok": False}, F.CONTROLLED_DESCENT, 0.0),
        ({"tilt_rad": math.radians(61)}, F.CONTROLLED_DESCENT, 0.3),
        ({"gps_age_s": None}, F.AUTONOMOUS_HOLD, 1.0),
        ({"gps_age_s": None}, F.CONTROLLED_DESCENT, 5.0),
        ({"altitude_error_m": 8.5, "velocity": np.array([0.0, 0.0, -2.0])}, F.CONTROLLED_DESCENT, 1.0),
        ({"velocity": np.array([11.0, 11.0, 0.0])}, F.CONTROLLED_DESCENT, 1.0),
        ({"velocity": np.array([0.0, 0.0, -3.2])}, F.CONTROLLED_DESCENT, 1.0),
        ({"nearest_m": 1.49}, F.EMERGENCY_DIVERGE, 0.0),
        ({"band": 4}, F.EMERGENCY_DIVERGE, 0.0),
        ({"charge": 0.2}, F.LOW_BATTERY_WARN, 0.0),
        ({"charge": 0.15}, F.RETURN_TO_HOME, 0.0),
        ({"charge": 0.0479}, F.EMERGENCY_LAND, 0.0),
        ({"heard_age_s": None}, F.AUTONOMOUS_HOLD, 3.05),
        ({"heard_age_s": None}, F.RETURN_TO_HOME, 30.05),
    ],
)
def test_each_state_is_entered_in_its_time(changes: dict[str, Any], state: Failsafe, within_s: float) -> None:
    failsafe, entered = watch(FailsafeState(), 100.0, 40.0, **changes)
    assert entered[state] == pytest.approx(within_s, abs=0.051)
    assert failsafe.since_s == pytest.approx(100.0 + max(entered.values()))


@pytest.mark.parametrize(
    "changes",
    [
        {"tilt_rad": math.radians(59)},
        {"gps_age_s": 0.9},
        {"altitude_error_m": 20.0, "velocity": np.array([0.0, 0.0, 2.0])},
        {"altitude_error_m": -20.0},
        {"velocity": np.array([12.0, 0.0, 3.0])},
        {"velocity": np.array([0.0, 0.0, -2.5])},
        {"nearest_m": 1.6, "band": 3},
        {"nearest_m": INF},
        {"charge": 0.21},
        {"heard_age_s": 2.9},
        {"heard_age_s": NAN},
        {"home_distance_m": 5000.0},
    ],
)
def test_short_of_a_limit_nothing_happens(changes: dict[str, Any]) -> None:
    _, entered = watch(FailsafeState(), 0.0, 40.0, **changes)
    assert list(entered) == [F.NOMINAL]


def test_a_moment_of_tilt_or_sinking_is_forgotten() -> None:
    failsafe = FailsafeState()
    for k in range(20):
        failsafe, _ = watch(failsafe, k * 2.0, 0.25, tilt_rad=2.0)
        failsafe, _ = watch(failsafe, k * 2.0 + 0.3, 0.9, altitude_error_m=9.0, velocity=np.array([0.0, 0.0, -1.0]))
        failsafe, _ = watch(failsafe, k * 2.0 + 1.25, 0.0)
    assert failsafe.state is F.NOMINAL


def test_what_recovers() -> None:
    for changes in ({"gps_age_s": 4.9}, {"heard_age_s": 29.0}, {"nearest_m": 1.0}, {"charge": 0.19}):
        failsafe, _ = watch(FailsafeState(), 0.0, 1.0, **changes)
        assert failsafe.state is not F.NOMINAL
        failsafe, _ = watch(failsafe, 2.0, 0.1)
        assert failsafe.state is F.NOMINAL and failsafe.since_s == 2.0


def test_what_does_not_recover() -> None:
    for changes, state in (
        ({"gps_age_s": 5.0}, F.CONTROLLED_DESCENT),
        ({"motors_ok": False}, F.CONTROLLED_DESCENT),
        ({"heard_age_s": 31.0}, F.RETURN_TO_HOME),
        ({"charge": 0.14}, F.RETURN_TO_HOME),
        ({"charge": 0.02}, F.EMERGENCY_LAND),
    ):
        failsafe, _ = watch(FailsafeState(), 0.0, 0.1, **changes)
        failsafe, _ = watch(failsafe, 1.0, 10.0)
        assert failsafe.state is state


def test_a_charge_that_wavers_about_a_limit_warns_once_and_a_near_drone_is_left_for_good() -> None:
    failsafe, states = FailsafeState(), []
    for k in range(200):
        failsafe = assess(failsafe, at(k / 20, charge=0.2 + 0.015 * math.sin(k)))
        states.append(failsafe.state)
    assert states[0] is F.LOW_BATTERY_WARN and set(states[1:]) == {F.LOW_BATTERY_WARN}
    near = [1.4, 1.7, 1.9, 2.1, 1.7]
    failsafe, seen = FailsafeState(), []
    for k, distance in enumerate(near):
        failsafe = assess(failsafe, at(k / 20, nearest_m=distance))
        seen.append(failsafe.state)
    assert seen == [F.EMERGENCY_DIVERGE] * 3 + [F.NOMINAL] * 2


def test_whether_it_gets_home_depends_on_how_far_that_is() -> None:
    def state(charge: float, home_m: float) -> Failsafe:
        return assess(FailsafeState(), at(0.0, charge=charge, home_distance_m=home_m)).state

    assert state(0.06, 200.0) is F.RETURN_TO_HOME
    assert state(0.06, 300.0) is F.EMERGENCY_LAND
    assert state(0.04, 10.0) is F.RETURN_TO_HOME
    limits = FailsafeLimits()
    reach = (limits.battery_return - limits.touch_down) / limits.charge_per_m
    assert state(0.15, reach - 1.0) is F.RETURN_TO_HOME and reach > 2.0 * math.hypot(220.0, 220.0)


@pytest.mark.parametrize(
    ("first", "second", "state"),
    [
        ({"motors_ok": False}, {"nearest_m": 0.5, "band": 4, "charge": 0.01}, F.CONTROLLED_DESCENT),
        ({"charge": 0.01}, {"nearest_m": 0.5, "band": 4, "charge": 0.01}, F.EMERGENCY_LAND),
        ({"charge": 0.01}, {"motors_ok": False}, F.CONTROLLED_DESCENT),
        ({"charge": 0.14}, {"nearest_m": 0.5}, F.EMERGENCY_DIVERGE),
        ({"charge": 0.14}, {"gps_age_s": 2.0}, F.AUTONOMOUS_HOLD),
        ({"charge": 0.14}, {"heard_age_s": 5.0}, F.RETURN_TO_HOME),
        ({"charge": 0.18}, {"charge": 0.18, "heard_age_s": 5.0}, F.AUTONOMOUS_HOLD),
        ({"nearest_m": 1.0}, {"nearest_m": 1.0, "gps_age_s": 2.0}, F.EMERGENCY_DIVERGE),
    ],
)
def test_of_two_troubles_the_graver_decides(first: dict[str, Any], second: dict[str, Any], state: Failsafe) -> None:
    failsafe = assess(assess(FailsafeState(), at(0.0, **first)), at(0.05, **second))
    assert failsafe.state is state


def test_after_diverging_a_return_goes_on() -> None:
    failsafe = assess(FailsafeState(), at(0.0, charge=0.14))
    failsafe = assess(failsafe, at(0.05, charge=0.14, nearest_m=1.0))
    assert assess(failsafe, at(0.1, charge=0.14)).state is F.RETURN_TO_HOME


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize(
    ("field", "state"),
    [
        ("position", F.CONTROLLED_DESCENT),
        ("velocity", F.CONTROLLED_DESCENT),
        ("gps_age_s", F.CONTROLLED_DESCENT),
        ("tilt_rad", F.CONTROLLED_DESCENT),
        ("charge", F.RETURN_TO_HOME),
        ("home_distance_m", F.AUTONOMOUS_HOLD),
        ("time_s", F.AUTONOMOUS_HOLD),
    ],
)
def test_what_is_not_a_number_is_never_good_news(field: str, state: Failsafe, bad: float) -> None:
    value = np.array([1.0, bad, 3.0]) if field in ("position", "velocity") else bad
    failsafe = assess(FailsafeState(), WELL._replace(**{field: value}))
    assert failsafe.state is state and math.isfinite(failsafe.since_s)


def test_not_a_number_where_it_has_a_meaning_of_its_own() -> None:
    assert assess(FailsafeState(), at(0.0, heard_age_s=INF)).state is F.RETURN_TO_HOME
    assert assess(FailsafeState(), at(0.0, heard_age_s=-INF)).state is F.RETURN_TO_HOME
    assert assess(FailsafeState(), at(0.0, heard_age_s=NAN)).state is F.NOMINAL
    assert assess(FailsafeState(), at(0.0, nearest_m=NAN)).state is F.AUTONOMOUS_HOLD
    assert assess(FailsafeState(), at(0.0, charge=0.1, home_distance_m=NAN)).state is F.EMERGENCY_LAND
    for bad in (NAN, INF, -INF):
        _, entered = watch(FailsafeState(), 0.0, 3.0, altitude_error_m=bad)
        assert entered[F.CONTROLLED_DESCENT] == pytest.approx(1.0, abs=0.051)


ANY = st.floats(width=64)
NUMBERS = st.one_of(ANY, st.floats(-1.0, 1.0), st.floats(0.0, 50.0))
VITALS = st.builds(
    Vitals,
    time_s=NUMBERS,
    position=st.lists(NUMBERS, min_size=3, max_size=3).map(np.array),
    velocity=st.lists(NUMBERS, min_size=3, max_size=3).map(np.array),
    charge=NUMBERS,
    heard_age_s=NUMBERS,
    gps_age_s=NUMBERS,
    motors_ok=st.booleans(),
    tilt_rad=NUMBERS,
    nearest_m=NUMBERS,
    band=st.integers(-1, 6),
    altitude_error_m=NUMBERS,
    home_distance_m=NUMBERS,
)
MILD = st.builds(
    WELL._replace,
    charge=st.floats(0.0, 0.3),
    heard_age_s=st.sampled_from([0.1, 5.0, 40.0, NAN]),
    gps_age_s=st.sampled_from([0.1, 0.1, 2.0]),
    nearest_m=st.sampled_from([1.0, 1.8, 50.0]),
    band=st.sampled_from([0, 0, 0, 4]),
)
EDGES = {
    F.NOMINAL: set(F),
    F.AUTONOMOUS_HOLD: set(F),
    F.LOW_BATTERY_WARN: set(F),
    F.EMERGENCY_DIVERGE: set(F),
    F.RETURN_TO_HOME: {
        F.RETURN_TO_HOME,
        F.AUTONOMOUS_HOLD,
        F.EMERGENCY_LAND,
        F.EMERGENCY_DIVERGE,
        F.CONTROLLED_DESCENT,
    },
    F.EMERGENCY_LAND: {F.EMERGENCY_LAND, F.CONTROLLED_DESCENT},
    F.CONTROLLED_DESCENT: {F.CONTROLLED_DESCENT},
}


@settings(max_examples=300)
@given(st.lists(st.one_of(VITALS, MILD), min_size=1, max_size=12))
def test_any_vitals_lead_along_an_edge_of_the_table(life: list[Vitals]) -> None:
    failsafe, been = FailsafeState(), set()
    for vitals in life:
        after = assess(failsafe, vitals)
        assert after.state in EDGES[failsafe.state]
        assert not (F.RETURN_TO_HOME in been and after.state in (F.NOMINAL, F.LOW_BATTERY_WARN))
        assert math.isfinite(after.since_s)
        known = (vitals.charge, *vitals.position, *vitals.velocity, vitals.time_s, vitals.home_distance_m)
        assert after.state is not F.NOMINAL or all(math.isfinite(x) for x in known)
        been.add(after.state)
        failsafe = after


@given(VITALS)
def test_the_same_vitals_give_the_same_and_leave_what_was_untouched(vitals: Vitals) -> None:
    failsafe = FailsafeState(since_s=3.0)
    assert repr(assess(failsafe, vitals)) == repr(assess(failsafe, vitals))
    assert failsafe == FailsafeState(since_s=3.0)
