"""Messages leave at their rates, in vehicle time."""

from __future__ import annotations

import pytest

from sar_eval.sitl.schedule import Schedule


def sent_in(schedule: Schedule, seconds: float, step_s: float = 0.02) -> dict[int, int]:
    counts: dict[int, int] = {}
    for k in range(round(seconds / step_s)):
        for number in schedule.due(k * step_s):
            counts[number] = counts.get(number, 0) + 1
    return counts


def test_rates_hold_whatever_the_grid() -> None:
    schedule = Schedule({1: 50.0, 2: 30.0, 3: 8.0, 4: 0.5, 5: 0.0})
    assert sent_in(schedule, 10.0) == {1: 500, 2: pytest.approx(300, abs=1), 3: 80, 4: 5}


def test_an_interval_can_be_set_switched_off_and_put_back() -> None:
    schedule = Schedule({1: 50.0, 2: 0.0})
    schedule.set_interval(1, -1)
    schedule.set_interval(2, 100_000)
    assert sent_in(schedule, 10.0) == {2: 100}
    assert (schedule.interval_us(1), schedule.interval_us(2)) == (-1, 100_000)
    schedule.set_interval(1, 0)
    schedule.set_interval(2, 0)
    assert sent_in(schedule, 1.0) == {1: 50}


def test_the_finest_interval_is_known() -> None:
    schedule = Schedule({1: 50.0, 2: 0.0})
    assert schedule.finest_s == pytest.approx(0.02)
    schedule.set_interval(2, 8_000)
    assert schedule.finest_s == pytest.approx(0.008)
    assert Schedule({1: 0.0}).finest_s == 1.0


def test_after_a_gap_there_is_no_burst() -> None:
    schedule = Schedule({1: 50.0})
    schedule.due(0.0)
    assert sum(schedule.due(5.0 + 0.02 * k) == [1] for k in range(3)) == 3
    assert schedule.due(5.041) == []
