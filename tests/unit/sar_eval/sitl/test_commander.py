"""Arming, modes and failsafes follow PX4 v1.17's rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sar_eval.px4.mavlink import mode_name
from sar_eval.sitl.commander import (
    MODE_OF_WORD,
    BatteryLevel,
    CommanderRules,
    CommanderState,
    CommandResult,
    Condition,
    FlightMode,
    arm,
    can_arm,
    disarm,
    request_mode,
    watch,
)

RULES = CommanderRules()
GROUND = Condition(time_s=100.0)
AIR = replace(GROUND, landed=False)
STREAM = replace(AIR, stream_at_s=100.0)
FLYING = CommanderState(armed=True, flown=True, armed_at_s=90.0)
OFFBOARD = replace(FLYING, intended=FlightMode.OFFBOARD, after_disarming=FlightMode.OFFBOARD)


def later(now: Condition, seconds: float, **changes: object) -> Condition:
    return replace(now, time_s=now.time_s + seconds, **changes)


def test_modes_have_the_words_clients_know() -> None:
    names = {mode: mode_name(mode.word) for mode in FlightMode}
    assert names[FlightMode.OFFBOARD] == "offboard"
    assert names[FlightMode.HOLD] == "auto.loiter"
    assert names[FlightMode.RTL] == "auto.rtl"
    assert MODE_OF_WORD[FlightMode.LAND.word] is FlightMode.LAND


def test_offboard_without_a_stream_is_taken_on_the_ground_and_then_refuses_to_arm() -> None:
    taken = request_mode(CommanderState(), FlightMode.OFFBOARD, GROUND, RULES)
    assert taken.result is CommandResult.ACCEPTED
    refused = arm(taken.state, GROUND, RULES)
    assert refused.result is CommandResult.TEMPORARILY_REJECTED
    assert not refused.state.armed
    assert refused.text is not None and "no setpoint stream" in refused.text.text


def test_offboard_with_a_stream_arms() -> None:
    state = request_mode(CommanderState(), FlightMode.OFFBOARD, GROUND, RULES).state
    assert arm(state, replace(GROUND, stream_at_s=99.5), RULES).state.armed
    assert not arm(state, replace(GROUND, stream_at_s=98.9), RULES).state.armed


def test_offboard_without_a_stream_is_refused_in_flight() -> None:
    answer = request_mode(FLYING, FlightMode.OFFBOARD, AIR, RULES)
    assert answer.result is CommandResult.TEMPORARILY_REJECTED
    assert answer.state.mode is FlightMode.HOLD


@pytest.mark.parametrize("mode", [FlightMode.LAND, FlightMode.RTL])
def test_no_arming_from_modes_that_end_flights(mode: FlightMode) -> None:
    assert arm(replace(CommanderState(), intended=mode), GROUND, RULES).result is CommandResult.TEMPORARILY_REJECTED


def test_no_arming_without_position_with_an_empty_battery_or_when_told_not_to() -> None:
    assert can_arm(CommanderState(), GROUND, RULES)
    assert not can_arm(CommanderState(), replace(GROUND, position_ok=False), RULES)
    assert not can_arm(CommanderState(), replace(GROUND, battery=BatteryLevel.CRITICAL), RULES)
    refused = arm(CommanderState(), GROUND, replace(RULES, refuse_arming=True))
    assert refused.text is not None and "SAR_REFUSE_ARM" in refused.text.text


def test_disarming_in_the_air_needs_force() -> None:
    assert disarm(FLYING, AIR, forced=False).state.armed
    assert not disarm(FLYING, AIR, forced=True).state.armed


def test_after_disarming_comes_the_last_mode_one_can_arm_in() -> None:
    landing = request_mode(OFFBOARD, FlightMode.LAND, AIR, RULES).state
    assert disarm(landing, GROUND, forced=False).state.mode is FlightMode.OFFBOARD


def test_stream_loss_holds_after_its_time_and_offboard_comes_back_with_the_stream() -> None:
    state, texts = watch(OFFBOARD, later(STREAM, 0.98), RULES)
    assert (state.mode, texts) == (FlightMode.OFFBOARD, [])
    state, texts = watch(state, later(STREAM, 1.0), RULES)
    assert state.mode is FlightMode.HOLD
    assert [text.text for text in texts] == ["Failsafe: OFFBOARD stream lost, HOLD"]
    assert watch(state, later(STREAM, 1.5), RULES) == (state, [])
    back, _ = watch(state, later(STREAM, 2.0, stream_at_s=101.9), RULES)
    assert back.mode is FlightMode.OFFBOARD


@pytest.mark.parametrize(
    ("action", "manual", "mode"),
    [
        (0, 2, FlightMode.RTL),
        (1, 1, FlightMode.HOLD),
        (2, 3, FlightMode.LAND),
        (0, 0, FlightMode.RTL),
        (3, 1, FlightMode.RTL),
        (4, 1, FlightMode.LAND),
        (5, 2, FlightMode.HOLD),
    ],
)
def test_what_follows_stream_loss_is_a_parameter(action: int, manual: int, mode: FlightMode) -> None:
    rules = replace(RULES, stream_loss_action=action, manual_loss_action=manual)
    state, _ = watch(OFFBOARD, later(STREAM, 1.1), rules)
    assert state.mode is mode


@pytest.mark.parametrize("action", [6, 7])
def test_stream_loss_can_stop_the_motors(action: int) -> None:
    state, texts = watch(OFFBOARD, later(STREAM, 1.1), replace(RULES, stream_loss_action=action))
    assert not state.armed
    assert "stream lost" in texts[0].text


def test_a_user_takes_over_from_a_failsafe() -> None:
    state, _ = watch(OFFBOARD, later(STREAM, 1.1), RULES)
    landing = request_mode(state, FlightMode.LAND, later(STREAM, 1.2), RULES).state
    assert watch(landing, later(STREAM, 1.3), RULES)[0].mode is FlightMode.LAND


def test_without_position_every_mode_ends_in_a_landing() -> None:
    lost = replace(STREAM, position_ok=False)
    for mode in (FlightMode.HOLD, FlightMode.RTL, FlightMode.OFFBOARD):
        state, texts = watch(replace(FLYING, intended=mode), lost, RULES)
        assert state.mode is FlightMode.LAND, mode
        assert "position lost" in texts[0].text


def test_battery_failsafe_comes_once_per_level_and_can_be_taken_over() -> None:
    critical = replace(AIR, battery=BatteryLevel.CRITICAL)
    state, _ = watch(FLYING, critical, RULES)
    assert state.mode is FlightMode.RTL
    taken = request_mode(state, FlightMode.HOLD, critical, RULES).state
    assert watch(taken, critical, RULES)[0].mode is FlightMode.HOLD
    assert watch(taken, replace(AIR, battery=BatteryLevel.EMERGENCY), RULES)[0].mode is FlightMode.LAND
    assert watch(FLYING, critical, replace(RULES, low_battery_action=0))[0].mode is FlightMode.HOLD


def test_disarms_two_seconds_after_landing() -> None:
    state, texts = watch(FLYING, GROUND, RULES)
    assert texts[0].text == "Landing detected"
    assert watch(state, later(GROUND, 1.9), RULES)[0].armed
    off, texts = watch(state, later(GROUND, 2.0), RULES)
    assert not off.armed
    assert texts[0].text == "Disarmed by landing"


def test_disarms_when_nobody_takes_off() -> None:
    state = arm(CommanderState(), GROUND, RULES).state
    assert watch(state, later(GROUND, 10.9), RULES)[0].armed
    assert not watch(state, later(GROUND, 11.0), RULES)[0].armed
    assert watch(state, later(GROUND, 99.0), replace(RULES, disarm_preflight_s=-1.0))[0].armed


def test_nothing_happens_to_a_disarmed_vehicle() -> None:
    state = replace(CommanderState(), intended=FlightMode.OFFBOARD)
    assert watch(state, replace(GROUND, position_ok=False, battery=BatteryLevel.EMERGENCY), RULES) == (state, [])
