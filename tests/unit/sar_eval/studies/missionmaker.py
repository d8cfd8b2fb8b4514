"""Results of missions made by hand, and two dozen of them as one campaign."""

from __future__ import annotations

from typing import Any

from tests.unit.sar_analysis.recordmaker import result


def victim(found: bool, time_s: float = 50.0, error_m: float = 2.0) -> dict[str, Any]:
    dilutions = {"path_gdop": 1.3, "constellation_gdop": 1.4, "information_dop_m": 5.0}
    seen = {"issued_s": time_s, "error_m": error_m, "final_error_m": error_m / 2, "settled_s": time_s, "views": 2}
    issue = seen | dilutions | {"confidence": 0.9, "heard_s": time_s}
    return {"x": 1.0, "y": 2.0, "found": found, "fixes": [], **(issue if found else dict.fromkeys(issue))}


def mission(found: bool, alarms: int | None, valid: bool = True, collisions: int = 0, **more: Any) -> dict[str, Any]:
    place = {"x": 0.0, "y": 0.0, "error_m": None, "confidence": 0.9, "constellation_gdop": None}
    alarm = {"verdict": "decoy", "time_s": 9.0, "flight_s": 29.0, "address": 1, "kind": "rescuer", **place}
    changes: dict[str, Any] = {
        "episode_id": f"somewhere-{found}-{alarms}",
        "valid": valid,
        "victims": [victim(found)],
        "detections": int(found),
        "false_alarms": alarms,
        "issues": None if alarms is None else int(found) + alarms,
        "displaced": None if alarms is None else 0,
        "decoys": [],
        "issue_events": [alarm] * (alarms or 0),
        "collisions": collisions,
        "near_misses": 2 * collisions,
        "search_time_s": 240.0,
        "flight_time_s": 900.0,
        "num_drones": 4,
    }
    return result(**(changes | more))


def campaign() -> list[dict[str, Any]]:
    """Two dozen missions, no two alike, of which some found nobody and one is INVALID."""
    return [
        mission(
            k % 3 > 0,
            k % 4,
            valid=k != 5,
            collisions=int(k == 7),
            invalid_reason="interrupted" if k == 5 else None,
            seed=k,
            episode=k,
            episode_id=f"made-{k}",
            config_sha256=f"{k}",
            coverage_240s=0.5 + 0.01 * k,
            victims=[
                victim(k % 3 > 0, 20.0 + 11.0 * k, 1.0 + 0.3 * k),
                victim(k % 5 > 1, 15.0 + 7.0 * k, 9.0 - 0.3 * k),
            ],
        )
        for k in range(24)
    ]
