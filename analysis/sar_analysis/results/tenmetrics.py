"""ADR-149's ten metrics of Stage 1 and of Stage 2 in one shape; what a stage cannot know is none, with the reason.

Stage 1 begins at altitude and moves points: it knows neither when a mission began nor whether drones touched. Its GDOP
is that of the drones in reach of a victim when it was issued; rows before schema 3 have none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from sar_analysis.bags.textfiles import read_text
from sar_analysis.metrics.catalogue import AS_ADR149, METRICS
from sar_analysis.metrics.findings import Adr149
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.results.summary import estimate, median, restricted_mean, watch
from sar_analysis.stage1.rows import Stage1Row
from sar_analysis.stats.interval import Interval
from sar_analysis.stats.layouts import DEFAULT, Options

STAGE1 = "Stage 1"
UNKNOWN = {
    "adr149_time_to_first_detection_s": "Stage 1 begins at altitude, not at the start of the mission",
    "collisions_drone_drone_per_mission": "Stage 1 moves points that cannot touch",
}


class TenMetric(NamedTuple):
    """One of the ten: its figure, or why there is none.

    Of a time the figure is the median, and its mean up to a horizon stands beside, a miss as that: ADR-149 asks for
    means, which a time that may not come does not have.
    """

    metric: str
    figure: Interval | None
    why: str
    mean: Interval | None = None
    horizon_s: float | None = None


class TenMetrics(NamedTuple):
    """The ten of one pattern, by stage or tier."""

    stage: str
    pattern: str
    missions: int
    invalid: int
    metrics: tuple[TenMetric, ...]


def is_stage1(path: Path) -> bool:
    """Whether a file holds Stage-1 rows, which name a policy, and not episode records."""
    if not path.is_file():
        return False
    first = next((line for line in read_text(path).splitlines() if line.strip()), "{}")
    try:
        head = json.loads(first)
    except ValueError:
        return False
    return isinstance(head, dict) and "policy" in head


def of_stage2(episodes: Iterable[EpisodeMetrics], options: Options = DEFAULT) -> list[TenMetrics]:
    """Of each pattern on each tier, noise levels, missions with victims and those without together."""
    return _by_pattern([(f"Stage 2 ({e.tier})", e) for e in episodes], options)


def of_stage1(rows: Iterable[Stage1Row], options: Options = DEFAULT) -> list[TenMetrics]:
    """The same of Stage-1 rows."""
    return _by_pattern([(STAGE1, mission_of(row)) for row in rows], options)


def _by_pattern(flown: Sequence[tuple[str, EpisodeMetrics]], options: Options) -> list[TenMetrics]:
    groups: dict[tuple[str, str], list[EpisodeMetrics]] = {}
    for stage, e in flown:
        groups.setdefault((stage, e.pattern), []).append(e)
    return [_ten(stage, pattern, own, options) for (stage, pattern), own in groups.items()]


def _ten(stage: str, pattern: str, episodes: Sequence[EpisodeMetrics], options: Options) -> TenMetrics:
    valid = [e for e in episodes if e.valid]
    found = []
    for key in AS_ADR149:
        metric = METRICS[key]
        if stage == STAGE1 and key in UNKNOWN:
            found.append(TenMetric(key, None, UNKNOWN[key]))
            continue
        if metric.aggregate == "median time":
            seen = watch(metric, valid)
            figure, up_to = median(metric, seen, options), restricted_mean(metric, seen, options)
        else:
            figure, up_to = estimate(metric, valid, options), None
        horizon, mean = up_to or (None, None)
        found.append(TenMetric(key, figure, "" if figure is not None else "not in these missions", mean, horizon))
    return TenMetrics(stage, pattern, len(valid), len(episodes) - len(valid), tuple(found))


def mission_of(row: Stage1Row) -> EpisodeMetrics:
    """A Stage-1 row as a mission with what the ten metrics ask of it; all else is empty."""
    errors = tuple(row.errors_m) if row.errors_m is not None else None
    known = errors is not None and row.issues is not None
    gdops = tuple(row.gdops or ())
    return EpisodeMetrics(
        episode_id=f"{row.policy}-s{row.seed}-e{row.episode}",
        tier=STAGE1,
        world=row.world or "",
        vehicle="",
        pattern=row.policy,
        profile="",
        seed=row.seed,
        episode=row.episode,
        episode_set=row.episode_set,
        config_sha256="",
        world_sha256="",
        version="",
        sigma=row.sigma,
        kappa=row.kappa,
        drones=0,
        victim_absent=row.victim_absent,
        configuration={},
        valid=True,
        invalid_reason=None,
        notes=(),
        flight_time_s=row.search_time_s or 0.0,
        flight_hours=0.0,
        search_time_s=row.search_time_s or 0.0,
        coverage_240s=row.coverage_240s,
        coverage=None,
        coverage_recorded=0.0,
        coverage_curve=(),
        time_to_95_s=row.time_to_95_s,
        overlap_ratio=row.overlap_ratio,
        victims=(),
        decoys=(),
        issue_events=(),
        track_reports=(),
        adr149=Adr149((row.issues or 0) > 0, bool(errors), None, errors or (), gdops) if known else None,
        issues=row.issues,
        detections=row.detections,
        displaced=row.displaced,
        false_alarms=row.false_alarms,
        time_to_first_detection_s=row.time_to_first_detection_s,
        localization_error_m=row.localization_error_m,
        gdop=row.gdop,
        collisions=0,
        collisions_drone_drone=0,
        collisions_drone_obstacle=0,
        collisions_drone_ground=0,
        near_misses=0,
        geofence_breaches=0,
        min_separation_m=None,
        min_clearance_m=None,
        path_m=row.path_m or 0.0,
        energy_batteries=0.0,
        yaw_rate_rms_rps=None,
        yaw_rate_p95_rps=None,
        jerk_rms_mps3=None,
        jerk_mean_mps3=None,
        path_shares=(),
        cell_shares=(),
        failsafe_entries=0,
        return_counts=None,
        episode_return=row.episode_return,
        layout_number=row.layout,
    )
