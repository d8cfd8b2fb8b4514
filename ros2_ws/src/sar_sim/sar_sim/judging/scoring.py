"""The referee's judgement of reports: which victim was found, when and how well, and which report was a false alarm.

A report counts when its confidence exceeds 0.85. Within 10 m of a victim it is a detection of that victim; farther than
10 m from every victim it is a false alarm, counted once per reported transmitter and mission.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CONFIDENT = 0.85
NEAR_M = 10.0


@dataclass(frozen=True)
class Report:
    """What a drone claims about one transmitter; position in ENU metres, gdop None where undefined.

    views: how many independent viewpoints it rests on.
    """

    time_s: float
    drone: int
    address: int
    x: float
    y: float
    confidence: float
    gdop: float | None
    views: int = 0


@dataclass(frozen=True)
class FoundVictim:
    """A victim's first confident report, and the error of the latest one within reach of it."""

    time_s: float
    error_m: float
    gdop: float | None
    final_error_m: float
    views: int = 0


@dataclass(frozen=True)
class FalseAlarm:
    """The first confident report of a transmitter away from every victim; distance None where there is no victim."""

    time_s: float
    address: int
    x: float
    y: float
    confidence: float
    distance_m: float | None


@dataclass
class ReportScorer:
    """Keeps the score. victims float64[V, 3], where they truly are."""

    victims: Floats
    found: dict[int, FoundVictim] = field(default_factory=dict)
    false_alarms: dict[int, FalseAlarm] = field(default_factory=dict)

    def _nearest(self, report: Report) -> tuple[int, float] | None:
        """The victim nearest to a report, and how far; None where there is no victim."""
        distances = [math.hypot(report.x - v[0], report.y - v[1]) for v in self.victims]
        return min(enumerate(distances), key=lambda pair: pair[1]) if distances else None

    def distance(self, report: Report) -> float | None:
        """How far a report lies from the nearest victim."""
        nearest = self._nearest(report)
        return None if nearest is None else nearest[1]

    def correct(self, report: Report) -> bool:
        """Whether a victim lies within reach of a report."""
        nearest = self._nearest(report)
        return nearest is not None and nearest[1] <= NEAR_M

    def judge(self, report: Report) -> str | None:
        """Say detection or false_alarm, or None for a report that does not count."""
        if not report.confidence > CONFIDENT:
            return None
        nearest = self._nearest(report)
        if nearest is not None and nearest[1] <= NEAR_M:
            victim, error = nearest
            before = self.found.get(victim)
            if before is None:
                self.found[victim] = FoundVictim(report.time_s, error, report.gdop, error, report.views)
            else:
                self.found[victim] = replace(before, final_error_m=error)
            return "detection"
        if report.address not in self.false_alarms:
            self.false_alarms[report.address] = FalseAlarm(
                report.time_s, report.address, report.x, report.y, report.confidence, self.distance(report)
            )
        return "false_alarm"
