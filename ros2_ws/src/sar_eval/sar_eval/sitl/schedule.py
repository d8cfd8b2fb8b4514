"""Which message is due when on one link, in vehicle time."""

from __future__ import annotations

from collections.abc import Mapping

OFF = -1.0
SLACK_S = 1e-6
LONGEST_US = 2**31 - 1


class Schedule:
    """Intervals by message id; a message that comes late does not shift the ones after it."""

    def __init__(self, rates_hz: Mapping[int, float]) -> None:
        self._default = {number: 1.0 / rate if rate > 0.0 else OFF for number, rate in rates_hz.items()}
        self._interval = dict(self._default)
        self._next: dict[int, float] = {}

    def __contains__(self, number: object) -> bool:
        return number in self._interval

    def interval_us(self, number: int) -> int:
        """As MESSAGE_INTERVAL says it: -1 is off."""
        interval = self._interval.get(number, OFF)
        return -1 if interval == OFF else min(round(interval * 1e6), LONGEST_US)

    def set_interval(self, number: int, interval_us: float) -> None:
        """SET_MESSAGE_INTERVAL: 0 is the default rate, negative is off."""
        if interval_us > 0.0:
            self._interval[number] = interval_us * 1e-6
        else:
            self._interval[number] = self._default[number] if interval_us == 0.0 else OFF
        self._next.pop(number, None)

    @property
    def finest_s(self) -> float:
        """The shortest interval anything is sent at."""
        return min((interval for interval in self._interval.values() if interval != OFF), default=1.0)

    def due(self, time_s: float) -> list[int]:
        """The messages to send now."""
        numbers = []
        for number, interval in self._interval.items():
            if interval == OFF:
                continue
            planned = self._next.setdefault(number, time_s)
            if time_s + SLACK_S >= planned:
                numbers.append(number)
                behind = time_s - planned
                self._next[number] = planned + interval if behind < interval else time_s + interval
        return numbers
