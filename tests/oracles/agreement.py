"""What a record must say of the reports, told from the bag by the slow script; and where two accounts part."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sar_analysis.metrics.metrics import episode_metrics
from sar_analysis.metrics.records import of_result
from tests.oracles import recompute
from tests.oracles.recompute import DECOY, RIGHT

WORDS = {1: "right", 2: "displaced", 3: "decoy"}
DIGITS = 1e-9
"""A record is rounded to nine digits after the point."""


def record_of(told: dict[str, list[Any]]) -> dict[str, Any]:
    """The part of a record's result that reports decide, by its own names; for an episode with radio."""
    begin_s = recompute.span(told)[0] * 1e-9
    devices = recompute.devices(told)
    kinds = {d["address"]: d["kind"] for d in devices}
    issues = [v for v in recompute.verdicts(told) if not v["update"]]
    found = [v for v in issues if v["verdict"] == RIGHT]
    adr = recompute.upstream(told)
    assert adr is not None
    return {
        **recompute.reports(told),
        "victims": [_victim(d) for d in devices if d["victim"]],
        "decoys": [
            {**{key: d[key] for key in ("address", "kind", "listed")}, "heard_s": d["heard"], "alarm_s": d["issued"]}
            for d in devices
            if not d["victim"]
        ],
        "issue_events": [
            {
                "verdict": WORDS[v["verdict"]],
                "time_s": v["time"],
                "flight_s": begin_s + v["time"],
                "uav": v["uav"],
                "address": v["address"],
                "kind": kinds.get(v["address"], "unknown"),
                "victim": v["victim"] or None,
                "x": v["position"][0],
                "y": v["position"][1],
                "error_m": v["error"],
                "confidence": v["confidence"],
                **_dilutions(v),
                "views": v["views"],
            }
            for v in sorted(issues, key=lambda v: (v["time"], v["address"]))
        ],
        "tracks": _tracks(told, kinds, begin_s),
        "adr149": {
            "confident": adr["confident"],
            "detected": adr["detected"],
            "time_to_first_detection_s": adr["time"],
            "errors_m": adr["errors"],
            "gdop": adr["gdop"],
        },
        "return_counts": {"confirmed_victims": len(found), "triangulations": sum(v["views"] for v in found)},
    }


def _dilutions(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "path_gdop": row["path_gdop"],
        "constellation_gdop": row["gdop"],
        "information_dop_m": row["information_dop"],
    }


def _victim(d: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "x": d["place"][0],
        "y": d["place"][1],
        "heard_s": d["heard"],
        "issued_s": d["issued"],
        "found": d["found"],
        "error_m": d["error"],
        "settled_s": d["settled"],
        "final_error_m": d["last_error"],
        "confidence": d["confidence"],
        **_dilutions(d),
        "views": d["views"],
        "fixes": [
            {
                "time_s": f["mark"],
                "age_s": f["age"],
                "error_m": f["error"],
                "confidence": f["confidence"],
                **_dilutions(f),
                "views": f["views"],
            }
            for f in d["fixes"]
        ],
    }


def _tracks(told: dict[str, list[Any]], kinds: Mapping[int, str], begin_s: float) -> list[dict[str, Any]]:
    """First and last report of each transmitter, by address."""
    both: dict[int, dict[str, Any]] = {}
    for t in recompute.tracks(told):
        both.setdefault(t["address"], {"kind": kinds.get(t["address"], "unknown")})[
            "last" if t["last"] else "first"
        ] = {
            "time_s": t["time"],
            "flight_s": begin_s + t["time"],
            "confidence": t["confidence"],
            "right": t["error"] is not None and t["error"] <= recompute.NEAR_M,
            "error_m": t["error"],
            **_dilutions(t),
        }
    return [both[address] for address in sorted(both)]


def event_parts(told: dict[str, list[Any]]) -> Iterator[str]:
    """Where the referee's verdicts in the bag, message by message, and its last counts part from the slow script's."""
    begin, _ = recompute.span(told)
    ours = [
        {
            **{key: value for key, value in v.items() if key != "time"},
            "stamp": begin + round(v["time"] * 1e9),
            "error": math.nan if v["error"] is None else v["error"],
        }
        for v in recompute.verdicts(told)
    ]
    theirs = [
        {
            "update": bool(m.update),
            "verdict": m.verdict,
            "uav": m.uav,
            "address": int(m.address),
            "victim": m.victim,
            "error": m.error_m,
            "position": (m.position.x, m.position.y, m.position.z),
            "confidence": m.confidence,
            "path_gdop": recompute.number_or_none(m.path_gdop),
            "gdop": recompute.number_or_none(m.constellation_gdop),
            "information_dop": recompute.number_or_none(m.information_dop_m),
            "views": m.views,
            "stamp": recompute.nanoseconds(m),
        }
        for m in told.get("/events/report", [])
    ]
    yield from parts(ours, theirs, "/events/report")
    issues = [v["verdict"] for v in ours if not v["update"]]
    last = told["/episode/status"][-1]
    counted = [len(issues), *(issues.count(kind) for kind in (RIGHT, recompute.DISPLACED, DECOY))]
    yield from parts(counted, [last.issues, last.found, last.displaced, last.decoy_alarms], "/episode/status")


def parts(ours: Any, theirs: Any, where: str = "", within: float = DIGITS) -> Iterator[str]:
    """Each place where two tellings of the same differ; of a mapping only the keys that ours has are looked at."""
    if isinstance(ours, Mapping):
        for key in ours:
            yield from parts(ours[key], theirs[key], f"{where}.{key}", within)
    elif isinstance(ours, Sequence) and not isinstance(ours, str):
        if len(ours) != len(theirs):
            yield f"{where}: {len(ours)} and {len(theirs)} entries"
        for k, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            yield from parts(one, other, f"{where}[{k}]", within)
    elif isinstance(ours, float) and isinstance(theirs, float):
        if not (math.isnan(ours) and math.isnan(theirs)) and not abs(ours - theirs) <= within:
            yield f"{where}: {ours} and {theirs}"
    elif ours != theirs:
        yield f"{where}: {ours} and {theirs}"


JUDGED = (
    *("victims", "decoys", "issue_events", "track_reports", "adr149", "issues", "detections", "displaced"),
    *("false_alarms", "time_to_first_detection_s", "localization_error_m", "gdop", "return_counts"),
)


def all_parts(result: Mapping[str, Any], bag: Path) -> list[str]:
    """Where the record's result, the analysis of its bag and the slow script part on what the reports came to."""
    told = recompute.messages(bag, reports_only=True)
    measured, read = asdict(episode_metrics(bag)), asdict(of_result(result))
    return [
        *parts(record_of(told), result, "slow script and record"),
        *event_parts(told),
        *parts({name: measured[name] for name in JUDGED}, read, "analysis and record"),
    ]
