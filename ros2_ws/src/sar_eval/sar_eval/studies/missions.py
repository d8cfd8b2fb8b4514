"""Many missions of one condition, flown in parallel without bags, and what they come to with honest intervals."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sar_analysis.metrics.catalogue import METRICS
from sar_analysis.metrics.findings import DECOY
from sar_analysis.metrics.records import of_result
from sar_analysis.results.summary import median, summary_of, watch
from sar_analysis.stats.interval import Interval
from sar_analysis.stats.layouts import DEFAULT, Options


@dataclass(frozen=True)
class MissionFigures:
    """What a condition's missions come to; victims and missions are counted over valid missions only."""

    missions: int
    invalid: int
    victims: int
    found_240s: Interval | None
    found_at_all: Interval | None
    time_to_detection_s: Interval | None
    mean_time_to_detection_s: Interval | None
    """Up to 240 s, or to the longest search; a miss counts as that."""
    ppv: Interval | None
    """Of all issues those right, at one mission without victims for each with; None where one kind was flown."""
    cep50_m: Interval | None
    cep95_m: Interval | None
    final_cep50_m: Interval | None
    missions_with_false_alarm: Interval | None
    false_alarms_per_mission: Interval | None
    false_alarms_per_hour: Interval | None
    displaced_issues: Interval | None
    wrong_issues_per_mission: Interval | None
    false_alarms_by_kind: dict[str, int]
    missions_with_collision: Interval | None
    collisions_per_mission: Interval | None
    near_misses_per_mission: Interval | None
    coverage_240s: Interval | None
    flight_hours: float
    collided: tuple[str, ...]
    """Episode ids of the missions with a collision, as ``sar-eval replay`` takes them."""


KEYS = {
    "found_240s": "victims_found_240s",
    "found_at_all": "victims_found",
    "time_to_detection_s": "time_to_each_victim_s",
    "mean_time_to_detection_s": "mean_time_to_victim_s",
    **{
        name: name
        for name in (
            *("ppv", "cep50_m", "cep95_m", "final_cep50_m"),
            *("missions_with_false_alarm", "false_alarms_per_mission", "false_alarms_per_hour"),
            *("displaced_issues", "wrong_issues_per_mission"),
            *("missions_with_collision", "collisions_per_mission", "near_misses_per_mission", "coverage_240s"),
        )
    },
}
"""What each figure with an interval is in the analysis's catalogue of metrics."""


def summarise(results: list[dict[str, Any]], options: Options = DEFAULT) -> MissionFigures:
    """Figures over missions, by the code that makes the report: the same records give the same numbers."""
    episodes = [of_result(result) for result in results]
    summary = summary_of(episodes, options=options, metrics=list(KEYS.values()))
    valid = [e for e in episodes if e.valid]
    figures = {name: summary.estimate(key) for name, key in KEYS.items()}
    timed = METRICS[KEYS["time_to_detection_s"]]
    figures["time_to_detection_s"] = median(timed, watch(timed, valid), options)
    return MissionFigures(
        missions=len(results),
        invalid=summary.invalid,
        victims=summary.victims,
        **figures,
        false_alarms_by_kind=dict(
            Counter(issue.kind for e in valid for issue in e.issue_events if issue.verdict == DECOY)
        ),
        flight_hours=summary.flight_hours,
        collided=tuple(e.episode_id for e in valid if e.collisions > 0),
    )
