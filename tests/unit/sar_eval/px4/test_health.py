"""The health gate: each thing that spoils an episode has its name and its moment, and nothing else does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sar_eval.backends.backend import SpoiltError
from sar_eval.px4.health import Gate, HealthLimits
from sar_eval.px4.mavlink import ORIGIN
from sar_eval.px4.telemetry import Telemetry


def vehicle(index: int) -> Any:
    told = Telemetry(ORIGIN)
    told.armed, told.mode, told.estimator_ok = True, "offboard", True
    return SimpleNamespace(
        name=f"vehicle {index + 1}",
        told=told,
        want_armed=True,
        wanted_since_s=0.0,
        arm_answer=None,
    )


class Flight:
    """Two vehicles that report at 50 Hz, as a test lets them."""

    def __init__(self, speed: float = 1.0) -> None:
        self.vehicles = [vehicle(0), vehicle(1)]
        self.gate = Gate(self.vehicles, HealthLimits(), speed)
        self.gate.flying = True
        self.now_s = 0.0
        self.rates = [speed, speed]
        self.clocks = [100.0, 200.0]
        self.silent: set[int] = set()
        self.streams = [{"truth", "estimate", "attitude"}, {"truth", "estimate", "attitude"}]

    def fly(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.02)):
            self.now_s += 0.02
            for i, each in enumerate(self.vehicles):
                self.clocks[i] += 0.02 * self.rates[i]
                if i in self.silent:
                    continue
                told = each.told
                told.heard_s = told.estimator_s = told.fix_s = self.now_s
                told.clock.add(self.now_s, self.clocks[i])
                for name in self.streams[i]:
                    getattr(told, name).add(self.now_s, np.zeros(1))
            self.gate.check(self.now_s)


def test_a_healthy_flight_passes_and_drifting_clocks_are_told() -> None:
    flight = Flight()
    flight.rates[1] = 0.998
    flight.fly(30.0)
    worst = flight.gate.watches[1].worst
    assert worst.drift_s == pytest.approx(0.002 * 29.0, rel=0.1)
    assert worst.residual_s < 0.002
    assert flight.gate.slowest == pytest.approx(1.0, abs=0.01)


def spoilt(flight: Flight, seconds: float) -> tuple[str, float]:
    began = flight.now_s
    with pytest.raises(SpoiltError) as caught:
        flight.fly(seconds)
    return caught.value.reason, flight.now_s - began


@pytest.mark.parametrize("flying", [True, False])
def test_a_silent_vehicle_is_lost(flying: bool) -> None:
    flight = Flight()
    flight.gate.flying = flying
    flight.fly(5.0)
    flight.silent.add(1)
    reason, after_s = spoilt(flight, 10.0)
    assert reason == "vehicle_lost"
    assert after_s == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("stream", ["truth", "estimate", "attitude"])
def test_a_stream_that_stops_is_a_gap(stream: str) -> None:
    flight = Flight()
    flight.fly(5.0)
    flight.streams[1].discard(stream)
    reason, after_s = spoilt(flight, 10.0)
    assert reason == "sensor_gap"
    assert after_s < 2.0


def test_a_clock_step_under_a_second_is_skew() -> None:
    flight = Flight()
    flight.fly(5.0)
    flight.clocks[1] += 0.2
    reason, after_s = spoilt(flight, 10.0)
    assert reason == "clock_skew"
    assert after_s < 1.0


def test_a_single_late_packet_is_no_skew() -> None:
    flight = Flight()
    flight.fly(5.0)
    flight.clocks[1] -= 0.2
    flight.fly(0.02)
    flight.clocks[1] += 0.2
    flight.fly(5.0)


def test_a_slow_simulation_is_named() -> None:
    flight = Flight()
    flight.fly(5.0)
    flight.rates[:] = [0.3, 0.3]
    reason, after_s = spoilt(flight, 30.0)
    assert reason == "rtf_low"
    assert after_s < 12.0


def test_a_vehicle_that_does_not_arm_is_named_with_its_words() -> None:
    flight = Flight()
    flight.vehicles[0].told.armed = False
    flight.vehicles[0].told.texts = ["Preflight Fail: no compass"]
    with pytest.raises(SpoiltError, match=r"arm_refused: vehicle 1 .*no answer.*no compass"):
        flight.fly(10.0)
    assert flight.now_s == pytest.approx(4.0, abs=0.1)


def test_a_vehicle_that_leaves_offboard_is_named_but_not_after_landing() -> None:
    flight = Flight()
    flight.fly(2.0)
    flight.vehicles[1].told.mode = "auto.rtl"
    reason, after_s = spoilt(flight, 10.0)
    assert reason == "offboard_lost"
    assert after_s < 3.0
    flight = Flight()
    flight.vehicles[1].want_armed = False
    flight.vehicles[1].told.mode = "auto.land"
    flight.fly(10.0)


def test_an_estimator_without_position_is_named() -> None:
    flight = Flight()
    flight.fly(2.0)
    for each in flight.vehicles:
        each.told.estimator_s, each.told.estimator_ok = flight.now_s - 4.0, False
    with pytest.raises(SpoiltError, match="estimator: vehicle 1 has not known where it is for 4"):
        flight.gate.check(flight.now_s)


def test_a_gps_without_a_fix_is_a_gap() -> None:
    flight = Flight()
    flight.fly(2.0)
    flight.vehicles[0].told.fix_s = flight.now_s - 2.5
    with pytest.raises(SpoiltError, match=r"sensor_gap: vehicle 1 has had no GPS fix for 2\.5 s"):
        flight.gate.check(flight.now_s)


def test_an_estimator_that_says_nothing_is_a_gap() -> None:
    flight = Flight()
    flight.fly(2.0)
    for each in flight.vehicles:
        each.told.estimator_s = flight.now_s - 11.0
    with pytest.raises(SpoiltError, match="sensor_gap: vehicle 1 said nothing of its estimator"):
        flight.gate.check(flight.now_s)
