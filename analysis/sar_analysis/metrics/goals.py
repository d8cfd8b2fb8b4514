"""What patterns are held against each other on: one finite number per mission and goal, so that missions pair.

A miss has no time and no error. To leave it out would reward whoever misses, so it counts as the worst there is: a time
as the longest search, an error as the 10 m beyond which nothing is a detection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from sar_analysis.metrics.findings import NEAR_M
from sar_analysis.metrics.metrics import EpisodeMetrics

SHARES = ("coverage_240s", "victims_found", "missions_with_false_alarm", "missions_with_collision", "overlap_ratio")
Value = Callable[[EpisodeMetrics], float | None]


@dataclass(frozen=True)
class Goal:
    """One goal: which way is better, on which missions it is judged if both kinds were flown, and a mission's value."""

    metric: str
    words: str
    higher: bool
    victims: Literal["present", "absent"]
    statistic: Literal["mean", "iqm"]
    value: Value

    @property
    def bounds(self) -> tuple[float, float]:
        """What no value can be beyond."""
        return -math.inf if self.metric == "episode_return" else 0.0, 1.0 if self.metric in SHARES else math.inf


def goals(horizon_s: float, gap: Value | None = None) -> tuple[Goal, ...]:
    """All goals; `horizon_s` is the longest search, `gap` a mission's shortfall below an oracle where one is known."""

    def timed(name: str) -> Value:
        return lambda e: _within(getattr(e, name), e, horizon_s)

    first = timed("time_to_first_detection_s")
    found: tuple[Goal, ...] = (
        Goal("coverage_240s", "coverage at 240 s", True, "present", "mean", lambda e: e.coverage_240s),
        Goal(
            "time_to_95_s",
            "time to 95 % coverage",
            False,
            "present",
            "mean",
            lambda e: None if e.coverage is None else timed("time_to_95_s")(e),
        ),
        Goal("victims_found", "victims found", True, "present", "mean", share_found),
        Goal(
            "time_to_first_detection_s",
            "time to first detection",
            False,
            "present",
            "mean",
            lambda e: first(e) if sought(e) else None,
        ),
        Goal("localization_error_m", "localisation error", False, "present", "mean", capped_error),
        Goal(
            "missions_with_false_alarm",
            "missions with a false alarm",
            False,
            "absent",
            "mean",
            lambda e: None if e.false_alarms is None else float(e.false_alarms > 0),
        ),
        Goal(
            "missions_with_collision",
            "missions with a collision",
            False,
            "present",
            "mean",
            lambda e: float(e.collisions > 0),
        ),
        Goal("episode_return", "return (IQM)", True, "present", "iqm", lambda e: e.episode_return),
    )
    if gap is not None:
        found = (*found, Goal("optimality_gap", "optimality gap", False, "present", "mean", gap))
    return (*found, Goal("overlap_ratio", "overlap", False, "present", "mean", lambda e: e.overlap_ratio))


def longest_search_s(episodes: Iterable[EpisodeMetrics]) -> float:
    """What a miss counts as in times; 0 without a valid mission."""
    return max((e.search_time_s for e in episodes if e.valid), default=0.0)


def sought(e: EpisodeMetrics) -> bool:
    """Whether there was somebody to find and a radio to find them with."""
    return bool(e.victims) and e.detections is not None


def share_found(e: EpisodeMetrics) -> float | None:
    """Of the mission's victims."""
    return sum(v.detected for v in e.victims) / len(e.victims) if sought(e) else None


def capped_error(e: EpisodeMetrics) -> float | None:
    """Mean error of the mission's victims at their first confident report; one never found counts as 10 m."""
    if not sought(e):
        return None
    return sum(NEAR_M if v.error_m is None else v.error_m for v in e.victims) / len(e.victims)


def _within(time_s: float | None, e: EpisodeMetrics, horizon_s: float) -> float:
    return time_s if time_s is not None and time_s <= e.search_time_s else horizon_s
