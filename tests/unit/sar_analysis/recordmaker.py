"""Episode records made by hand."""

from __future__ import annotations

import json
from typing import Any


def result(**changes: Any) -> dict[str, Any]:
    """What came of a mission, with everything the reader asks for; nothing here was flown."""
    drone = {"path_m": 10.0, "batt": 99.0}
    names = ("episode_id", "tier", "world", "vehicle", "pattern", "profile", "config_sha256")
    found: dict[str, Any] = dict.fromkeys(names, "x") | {
        "seed": 1,
        "episode": 1,
        "valid": True,
        "invalid_reason": None,
        "flight_time_s": 20.0,
        "search_time_s": 10.0,
        "coverage_240s": 0.5,
        "coverage": 0.5,
        "coverage_curve": [0.0, 0.5],
        "time_to_95_s": None,
        "overlap_ratio": 0.1,
        "issues": 0,
        "detections": 0,
        "displaced": 0,
        "false_alarms": 0,
        "decoys": [],
        "gdop": None,
        "time_to_first_detection_s": None,
        "localization_error_m": None,
        "collisions": 0,
        "near_misses": 0,
        "geofence_breaches": 0,
        "min_separation_m": 5.0,
        "min_clearance_m": 4.0,
        "path_m": 10.0,
        "num_drones": 1,
        "drones": [drone],
        "episode_set": "rules-1",
        "version": "0",
        "configuration": {
            "radio": "default",
            "sigma": 0.05,
            "kappa": "inf",
            "episode_set": "rules-1",
            "world_sha256": "0" * 64,
            "victim_absent": False,
        },
        "collisions_by_kind": {"drone_drone": 0, "drone_obstacle": 0, "drone_ground": 0},
        "victims": [],
        "failsafes": [],
    }
    return found | changes


def record(**changes: Any) -> str:
    """A line of episodes.jsonl, as sar-eval run --json prints it."""
    return json.dumps({"schema_version": 2, "result": result(**changes)})
