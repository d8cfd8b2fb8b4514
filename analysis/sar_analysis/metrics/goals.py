"""What patterns are held against each other on: one finite number per mission and goal, so that missions pair.

A miss has no time and no error. To leave it out would reward whoever misses, so it counts as the worst there is: a time
as the longest search, an error as LOST_M, and so does a report that far off, which helps a rescuer no more than none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from sar_analysis.metrics.catalogue import METRICS, Value
from sar_analysis.metrics.metrics import EpisodeMetrics

LOST_M = 50.0
"""Ours: five times the 10 m within which a report is right."""


@dataclass(frozen=True)
class Goal:
    """One goal: a metric of the catalogue, on which missions it is judged if both kinds were flown, and its value."""

    metric: str
    value: Value
    victims: Literal["present", "absent"] = "present"
    statistic: Literal["mean", "iqm"] = "mean"

    @property
    def words(self) -> str:
        label = METRICS[self.metric].label
        return f"{label} (IQM)" if self.statistic == "iqm" else label

    @property
    def higher(self) -> bool:
        """Whether more is better."""
        return METRICS[self.metric].better == "higher"

    @property
    def bounds(self) -> tuple[float, float]:
        """What no value can be beyond."""
        return METRICS[self.metric].bounds


def goals(horizon_s: float, gap: Value | None = None) -> tuple[Goal, ...]:
    """All goals; `horizon_s` is the longest search, `gap` a mission's shortfall below an oracle where one is known."""

    def covered(e: EpisodeMetrics) -> float | None:
        return None if e.coverage is None else _within(e.time_to_95_s, e, horizon_s)

    def first(e: EpisodeMetrics) -> float | None:
        return _within(e.time_to_first_detection_s, e, horizon_s) if sought(e) else None

    def alarmed(e: EpisodeMetrics) -> float | None:
        return None if e.false_alarms is None else float(e.false_alarms > 0)

    return (
        Goal("coverage_240s", lambda e: e.coverage_240s),
        Goal("time_to_95_s", covered),
        Goal("victims_found", share_found),
        Goal("time_to_first_detection_s", first),
        Goal("mean_localization_error_m", capped_error),
        Goal("absent_missions_with_false_alarm", alarmed, victims="absent"),
        Goal("missions_with_collision", lambda e: float(e.collisions > 0)),
        Goal("episode_return", lambda e: e.episode_return, statistic="iqm"),
        *(() if gap is None else (Goal("optimality_gap", gap),)),
        Goal("overlap_ratio", lambda e: e.overlap_ratio),
    )


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
    """Mean error of the mission's victims at issue; one never issued, or farther off, counts as LOST_M."""
    if not sought(e):
        return None
    return sum(LOST_M if v.error_m is None else min(v.error_m, LOST_M) for v in e.victims) / len(e.victims)


def _within(time_s: float | None, e: EpisodeMetrics, horizon_s: float) -> float:
    return time_s if time_s is not None and time_s <= e.search_time_s else horizon_s
