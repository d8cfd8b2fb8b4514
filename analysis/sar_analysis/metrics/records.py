"""Episode records (JSONL, as `sar-eval run --json` prints them) as the same rows that bags give.

A record lacks what only a bag can tell: comfort, and who scanned what. Those fields are None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sar_analysis.bags.reader import SchemaVersionError
from sar_analysis.metrics.findings import FalseAlarmReport, Victim, Word
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.metrics.task import task_sha256
from sar_core.errors import ContractError
from sar_core.reward import Counts
from sar_core.sealed import unseal

SCHEMA_VERSION = 1

_SAME = [
    "episode_id",
    "tier",
    "world",
    "vehicle",
    "pattern",
    "profile",
    "seed",
    "episode",
    "episode_set",
    "config_sha256",
    "valid",
    "invalid_reason",
    "flight_time_s",
    "search_time_s",
    "coverage_240s",
    "coverage",
    "time_to_95_s",
    "overlap_ratio",
    "detections",
    "false_alarms",
    "gdop",
    "time_to_first_detection_s",
    "localization_error_m",
    "collisions",
    "near_misses",
    "geofence_breaches",
    "min_separation_m",
    "min_clearance_m",
    "path_m",
]


def parse_record(line: str, where: str) -> EpisodeMetrics:
    """One line of a JSONL file; `where` names file and line for errors."""
    try:
        record = unseal(line)
    except ValueError as error:
        raise ContractError(f"{where}: not a JSON object of numbers and words: {error}") from error
    version = record.get("schema_version")
    if version != SCHEMA_VERSION:
        raise SchemaVersionError(f"{where}: schema_version is {version}; this analysis reads {SCHEMA_VERSION}")
    try:
        run = record.get("run")
        return of_result(record["result"], run.get("version", "") if isinstance(run, dict) else "")
    except (KeyError, TypeError, ValueError) as error:
        raise ContractError(f"{where}: the record's result lacks or mistypes {error}") from error


def of_result(result: Mapping[str, Any], version: str = "") -> EpisodeMetrics:
    """The row of a record's result; the package's version stood in it once, and stands in ``run`` since."""
    config, drones = result["configuration"], result["drones"]
    radio = config["radio"] is not None
    kinds = result["collisions_by_kind"]
    found = [v for v in result["victims"] if v["detected"]]
    first = min(found, key=lambda v: v["time_s"], default=None)
    total = sum(drone["path_m"] for drone in drones)
    counts = result.get("return_counts")
    return EpisodeMetrics(
        **{name: result[name] for name in _SAME},
        version=result.get("version", version),
        world_sha256=config["world_sha256"],
        sigma=float(config["sigma"]) if radio else None,
        kappa=float(config["kappa"]) if radio else None,
        drones=result["num_drones"],
        victim_absent=config["victim_absent"],
        configuration=dict(config),
        task_sha256=task_sha256(config),
        notes=("from a record, not a bag",),
        flight_hours=result["flight_time_s"] * result["num_drones"] / 3600.0,
        coverage_recorded=result["coverage"],
        coverage_curve=tuple(result["coverage_curve"]),
        victims=tuple(_victim(v) for v in result["victims"]),
        false_alarm_events=tuple(_alarm(a) for a in result.get("false_alarm_events", ())),
        words=tuple(_word(t, last) for t in result.get("tracks", ()) for last in (False, True)),
        final_localization_error_m=None if first is None else first["final_error_m"],
        collisions_drone_drone=kinds["drone_drone"],
        collisions_drone_obstacle=kinds["drone_obstacle"],
        collisions_drone_ground=kinds["drone_ground"],
        energy_batteries=sum(1.0 - drone["batt"] / 100.0 for drone in drones),
        yaw_rate_rms_rps=None,
        yaw_rate_p95_rps=None,
        jerk_rms_mps3=None,
        path_shares=tuple(drone["path_m"] / total for drone in drones) if total > 0.0 else (),
        cell_shares=(),
        failsafe_entries=sum(entry["state"] != "nominal" for entry in result["failsafes"]),
        return_counts=None if counts is None else Counts(**counts),
        episode_return=result.get("episode_return"),
        area_m2=result["area_w"] * result["area_h"] if "area_w" in result else 0.0,
        gate_open=result["gate"].get("phase_open") if result.get("gate") else None,
    )


def _victim(v: Mapping[str, Any]) -> Victim:
    return Victim(
        x_m=v["x"],
        y_m=v["y"],
        detected=v["detected"],
        time_s=v["time_s"],
        error_m=v["error_m"],
        gdop=v["gdop"],
        views=v.get("views"),
        final_error_m=v["final_error_m"],
    )


def _alarm(a: Mapping[str, Any]) -> FalseAlarmReport:
    return FalseAlarmReport(a["time_s"], a["address"], a["kind"], a["x"], a["y"], a["confidence"], a["distance_m"])


def _word(track: Mapping[str, Any], last: bool) -> Word:
    said = track["last" if last else "first"]
    return Word(track["kind"], last, said["time_s"], said["confidence"], said["correct"], said["error_m"], said["gdop"])
