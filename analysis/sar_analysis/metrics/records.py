"""Episode records (JSONL, as `sar-eval run --json` prints them) as the same rows that bags give.

A record lacks what only a bag can tell: turning, and who scanned what. Those fields are None, as is the conduct of
records older than that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sar_analysis.bags.reader import SchemaVersionError
from sar_analysis.metrics.findings import DECOY, DISPLACED, Adr149, Decoy, HeldReport, Issue, TrackReport, Victim
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.metrics.task import task_sha256
from sar_core.conduct import read_conduct
from sar_core.errors import ContractError
from sar_core.reward import Counts
from sar_core.sealed import unseal

SCHEMA_VERSION = 2
FIRST_SCHEMA = 1
"""Its records are read by the definitions they were written by, and refused beside any others."""
FIRST_NOTE = (
    "a record of schema 1: any report more than 10 m from every victim is a false alarm, a victim's own device too, "
    "errors beyond 10 m are left out, reports after the search count; see docs/migration.md"
)

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
    if version not in (FIRST_SCHEMA, SCHEMA_VERSION):
        wanted = f"{FIRST_SCHEMA} and {SCHEMA_VERSION}"
        raise SchemaVersionError(f"{where}: schema_version is {version}; this analysis reads {wanted}")
    try:
        run = record.get("run")
        return of_result(record["result"], run.get("version", "") if isinstance(run, dict) else "", version)
    except (KeyError, TypeError, ValueError) as error:
        raise ContractError(f"{where}: the record's result lacks or mistypes {error}") from error


def of_result(result: Mapping[str, Any], version: str = "", schema: int = SCHEMA_VERSION) -> EpisodeMetrics:
    """The row of a record's result; the package's version stood in it once, and stands in ``run`` since."""
    config, drones = result["configuration"], result["drones"]
    radio = config["radio"] is not None
    kinds = result["collisions_by_kind"]
    total = sum(drone["path_m"] for drone in drones)
    counts = result.get("return_counts")
    conduct = read_conduct(result["conduct"]) if result.get("conduct") else None
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
        schema=schema,
        layout_number=result.get("layout"),
        notes=("from a record, not a bag", *((FIRST_NOTE,) if schema == FIRST_SCHEMA else ())),
        flight_hours=result["flight_time_s"] * result["num_drones"] / 3600.0,
        coverage_recorded=result["coverage"],
        coverage_curve=tuple(result["coverage_curve"]),
        **(_first_findings(result) if schema == FIRST_SCHEMA else _findings(result)),
        collisions_drone_drone=kinds["drone_drone"],
        collisions_drone_obstacle=kinds["drone_obstacle"],
        collisions_drone_ground=kinds["drone_ground"],
        energy_batteries=sum(1.0 - drone["batt"] / 100.0 for drone in drones),
        yaw_rate_rms_rps=None,
        yaw_rate_p95_rps=None,
        jerk_rms_mps3=None if conduct is None else conduct.comfort.jerk_rms_mps3,
        jerk_mean_mps3=None if conduct is None else conduct.comfort.jerk_mean_mps3,
        conduct=conduct,
        path_shares=tuple(drone["path_m"] / total for drone in drones) if total > 0.0 else (),
        cell_shares=(),
        failsafe_entries=sum(entry["state"] != "nominal" for entry in result["failsafes"]),
        return_counts=None if counts is None else Counts(**counts),
        episode_return=result.get("episode_return"),
        area_m2=result["area_w"] * result["area_h"] if "area_w" in result else 0.0,
        gate_open=result["gate"].get("phase_open") if result.get("gate") else None,
    )


_DILUTIONS = ("path_gdop", "constellation_gdop", "information_dop_m")
_OF_ISSUE = ("issued_s", "error_m", "confidence", *_DILUTIONS, "views", "heard_s", "settled_s", "final_error_m")


def _findings(result: Mapping[str, Any]) -> dict[str, Any]:
    """Victims, decoys and issues of today's records."""
    adr = result.get("adr149")
    return {
        "victims": tuple(_victim(v) for v in result["victims"]),
        "decoys": tuple(Decoy(**decoy) for decoy in result["decoys"]),
        "issue_events": tuple(_issue(i) for i in result.get("issue_events", ())),
        "track_reports": tuple(_told(t, last) for t in result.get("tracks", ()) for last in (False, True)),
        "adr149": None if adr is None else Adr149(**{**adr, **{key: tuple(adr[key]) for key in ("errors_m", "gdop")}}),
        "issues": result["issues"],
        "displaced": result["displaced"],
        "gdop": result["gdop"],
    }


def _victim(v: Mapping[str, Any]) -> Victim:
    return Victim(
        x_m=v["x"],
        y_m=v["y"],
        detected=v["found"],
        fixes=tuple(HeldReport(**fix) for fix in v["fixes"]),
        **{name: v[name] for name in _OF_ISSUE},
    )


def _issue(i: Mapping[str, Any]) -> Issue:
    same = {item.name for item in fields(Issue)} - {"x_m", "y_m"}
    return Issue(x_m=i["x"], y_m=i["y"], **{name: i[name] for name in same})


def _told(track: Mapping[str, Any], last: bool) -> TrackReport:
    said = track["last" if last else "first"]
    same = ("flight_s", "confidence", "right", "error_m", "path_gdop")
    return TrackReport(kind=track["kind"], last=last, **{name: said[name] for name in same})


def _first_findings(result: Mapping[str, Any]) -> dict[str, Any]:
    """The same by the names of schema 1; what it did not know is None or empty."""
    return {
        "victims": tuple(_first_victim(v) for v in result["victims"]),
        "decoys": (),
        "issue_events": tuple(_first_alarm(a) for a in result.get("false_alarm_events", ())),
        "track_reports": tuple(_first_told(t, last) for t in result.get("tracks", ()) for last in (False, True)),
        "adr149": None,
        "issues": None,
        "displaced": None,
        "gdop": None,
    }


def _first_victim(v: Mapping[str, Any]) -> Victim:
    return Victim(
        x_m=v["x"],
        y_m=v["y"],
        detected=v["detected"],
        issued_s=v["time_s"],
        error_m=v["error_m"],
        path_gdop=v["gdop"],
        views=v.get("views"),
        final_error_m=v["final_error_m"],
    )


def _first_alarm(a: Mapping[str, Any]) -> Issue:
    verdict = DISPLACED if a["kind"] == "victim" else DECOY
    at = a["time_s"]
    return Issue(verdict, at, at, a["address"], a["kind"], a["x"], a["y"], a["confidence"], a["distance_m"])


def _first_told(track: Mapping[str, Any], last: bool) -> TrackReport:
    said = track["last" if last else "first"]
    told = (said["time_s"], said["confidence"], said["correct"], said["error_m"], said["gdop"])
    return TrackReport(track["kind"], last, *told)
