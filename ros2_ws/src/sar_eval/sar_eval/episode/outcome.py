"""The deterministic outcome of an episode as plain data: the ``result`` of its record."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from sar_core.frames import yaw_of
from sar_core.reward import Counts, depleted, episode_return, idle_steps
from sar_core.sweep import sweep
from sar_eval.episode.score import Score
from sar_eval.episode.sensing import Tally
from sar_sim.judging.referee import Event, RefereeSummary
from sar_sim.judging.scoring import Judged, Report, ReportVerdict, TransmitterScore, fixes
from sar_sim.radio.devices import Device, DeviceKind
from sar_swarm.piloting.controller import Phase

COVERAGE_TIME_S = 240.0
CURVE_STEP_S = 10.0


def result_of(score: Score, tally: Tally | None) -> dict[str, Any]:
    """What the referee's truth alone makes of an episode; ``tally`` is what listeners counted, if there were any."""
    e, s = score.episode, score.episode.scenario
    summary, state, statuses = score.referee.summary(), score.state, score.statuses
    search = score.search_time_s
    x_min, y_min, x_max, y_max = e.world.area
    cover = score.coverage
    heading = yaw_of(state.attitude)
    return {
        "episode_id": e.episode_id,
        "tier": e.tier,
        "profile": s.name,
        "world": e.world.name,
        "pattern": s.pattern,
        "vehicle": e.vehicle.name,
        "seed": e.seed,
        "episode": e.index,
        "layout": e.layout,
        "episode_set": e.episode_set,
        "episode_set_sha256": e.episode_set_sha256,
        "config_sha256": e.config_sha256,
        "scenario": e.plain_scenario(),
        "configuration": e.resolved(),
        "num_drones": s.drones,
        "area_w": x_max - x_min,
        "area_h": y_max - y_min,
        "valid": not score.orders.invalid_reason,
        "invalid_reason": score.orders.invalid_reason or None,
        "flight_time_s": _round(score.time_s),
        "search_time_s": _round(search),
        "coverage_240s": _round(cover.coverage_at(COVERAGE_TIME_S)),
        "coverage": _round(cover.fraction),
        "coverage_curve": [_round(cover.coverage_at(k * CURVE_STEP_S)) for k in range(int(search / CURVE_STEP_S) + 1)],
        "time_to_95_s": _round(cover.time_to(0.95)),
        "overlap_ratio": _round(cover.overlap_ratio),
        "collisions": summary.collisions,
        "collisions_by_kind": summary.collisions_by_kind,
        "near_misses": summary.near_misses,
        "geofence_breaches": summary.geofence_breaches,
        "min_separation_m": _round(summary.min_separation_m),
        "min_clearance_m": _round(summary.min_clearance_m),
        "events": [_plain(event) for event in summary.events],
        "failsafes": [
            {"time_s": _round(time_s), "drone": i + 1, "state": state.name.lower()}
            for time_s, i, state in score.failsafes
        ],
        "landed": sum(phase is Phase.LANDED for phase in statuses.phase),
        "path_m": _round(float(score.flown_m.sum())),
        **_findings(score, tally),
        **_return(score, summary),
        "conduct": _conduct(score),
        "drones": [
            {
                "id": i + 1,
                "x": _round(state.position[i, 0]),
                "y": _round(state.position[i, 1]),
                "z": _round(state.position[i, 2]),
                "vx": _round(state.velocity[i, 0]),
                "vy": _round(state.velocity[i, 1]),
                "vz": _round(state.velocity[i, 2]),
                "hdg": _round(float(heading[i])),
                "batt": _round(100.0 * state.charge[i]),
                "det": int(i in score.scorer.backing),
                "failsafe": statuses.failsafe[i].name.lower(),
                "path_m": _round(score.flown_m[i]),
            }
            for i in range(s.drones)
        ],
    }


def _return(score: Score, summary: RefereeSummary) -> dict[str, Any]:
    """The return as the bag gives it: by the same code, from the same ticks; null without a search."""
    if not score.search_track:
        return {"return_counts": None, "episode_return": None}
    times = np.array([stamp for stamp, _ in score.search_track]) / 1e9
    positions = np.array([place for _, place in score.search_track])
    found = [issue for issue in score.scorer.issues if issue.verdict is ReportVerdict.RIGHT]
    charge, failsafes, phases = (np.array(column) for column in zip(*score.readings, strict=True))
    counts = Counts(
        new_cells=sweep(score.episode.world.area, times - times[0], positions).scanned_cells,
        confirmed_victims=len(found),
        triangulations=sum(issue.report.views for issue in found),
        idle_steps=idle_steps(times, positions),
        collisions=summary.collisions,
        geofence_breaches=summary.geofence_breaches,
        depleted=sum(depleted(charge[:, i], failsafes[:, i], phases[:, i]) for i in range(charge.shape[1])),
    )
    return {"return_counts": asdict(counts), "episode_return": episode_return(counts)}


def _conduct(score: Score) -> dict[str, Any] | None:
    """How the swarm flew its search; null without one."""
    conduct = score.conduct.conduct(score.episode, score.coverage)
    return None if conduct is None else _rounded(conduct.plain())


def _rounded(plain: dict[str, Any]) -> dict[str, Any]:
    """Plain data with every figure rounded."""
    return {
        key: _rounded(value) if isinstance(value, dict) else _round(value) if isinstance(value, float) else value
        for key, value in plain.items()
    }


def _findings(score: Score, tally: Tally | None) -> dict[str, Any]:
    """What the reports came to; null where the episode had no radio. Times are search times unless named otherwise."""
    if tally is None:
        keys = ("detections", "false_alarms", "displaced", "issues", "localization_error_m", "gdop")
        return {"victims": [], "decoys": [], **dict.fromkeys((*keys, "time_to_first_detection_s"))}
    scorer, begin = score.scorer, _begin_s(score)
    issued = [issue for issue in scorer.issues if issue.victim is not None]
    found = [issue for issue in issued if issue.verdict is ReportVerdict.RIGHT]
    first = issued[0] if issued else None
    return {
        "victims": [_victim(score, number) for number in range(len(score.victims))],
        "decoys": [_decoy(score, device) for device in score.episode.devices if device.kind is not DeviceKind.VICTIM],
        "issues": len(scorer.issues),
        "detections": len(found),
        "displaced": scorer.count(ReportVerdict.DISPLACED),
        "false_alarms": scorer.count(ReportVerdict.DECOY),
        "localization_error_m": None if first is None else _round(first.error_m),
        "gdop": None if first is None else _round(first.report.constellation_gdop),
        "time_to_first_detection_s": None if not found else _round(found[0].report.time_s - begin),
        "issue_events": [_issue(score, issue) for issue in scorer.issues],
        "tracks": [
            {"kind": _kind(score, address), "first": _told(score, s.first), "last": _told(score, s.last)}
            for address, s in sorted(scorer.sightings.items())
            if s.first is not None and s.last is not None
        ],
        "adr149": _as_adr149(score),
        "gate": {name: _round(share) for name, share in tally.gate_shares().items()},
        "frames_dropped": tally.dropped_by_reason(),
    }


def _begin_s(score: Score) -> float:
    """When the search began, in time of the flight; 0 where it never did."""
    return score.orders.search_begin_s if math.isfinite(score.orders.search_begin_s) else 0.0


def _victim(score: Score, number: int) -> dict[str, Any]:
    """One victim: when its device was heard and issued, how well, since when that was right, and how it stood."""
    device, begin = score.victims[number], _begin_s(score)
    (sighting,) = score.scorer.of_victim(number) or [TransmitterScore()]
    issue, latest = sighting.issue, sighting.latest
    report = None if issue is None else issue.report
    return {
        "x": _round(device.track[0, 1]),
        "y": _round(device.track[0, 2]),
        "heard_s": _since(sighting.heard_s, begin),
        "issued_s": None if report is None else _round(report.time_s - begin),
        "found": issue is not None and issue.verdict is ReportVerdict.RIGHT,
        "error_m": None if issue is None else _round(issue.error_m),
        "settled_s": _since(sighting.settled_s, begin),
        "final_error_m": None if latest is None else _round(latest.error_m),
        "confidence": None if report is None else _round(report.confidence),
        **_dilutions(report),
        "views": None if report is None else report.views,
        "fixes": [
            {
                "time_s": time_s,
                "age_s": _round(begin + time_s - held.time_s),
                "error_m": _round(score.scorer.error_m(held)),
                "confidence": _round(held.confidence),
                **_dilutions(held),
                "views": held.views,
            }
            for time_s, held in fixes(sighting.history, begin, score.search_time_s)
        ],
    }


def _decoy(score: Score, device: Device) -> dict[str, Any]:
    """One decoy: whether the swarm was told of it, since when it was heard in the search, and when it was issued."""
    sighting, begin = score.scorer.sightings.get(device.address, TransmitterScore()), _begin_s(score)
    return {
        "address": device.address,
        "kind": device.kind.name.lower(),
        "listed": device.address in score.listed,
        "heard_s": _since(sighting.heard_s, begin),
        "alarm_s": None if sighting.issue is None else _round(sighting.issue.report.time_s - begin),
    }


def _issue(score: Score, issue: Judged) -> dict[str, Any]:
    """An issue; ``flight_s`` counts from the start of the recording, as a replay does."""
    report = issue.report
    return {
        "verdict": str(issue.verdict),
        "time_s": _round(report.time_s - _begin_s(score)),
        "flight_s": _round(report.time_s),
        "uav": report.drone + 1,
        "address": report.address,
        "kind": _kind(score, report.address),
        "victim": None if issue.victim is None else issue.victim + 1,
        "x": _round(report.x),
        "y": _round(report.y),
        "error_m": _round(issue.error_m),
        "confidence": _round(report.confidence),
        **_dilutions(report),
        "views": report.views,
    }


def _as_adr149(score: Score) -> dict[str, Any]:
    """What ADR-149's definitions count: confident reports of the whole mission, from its start, at any distance."""
    scorer = score.scorer
    first = sorted(scorer.mission_first.values(), key=lambda report: (report.time_s, report.address))
    of_victims = [report for report in first if report.address in scorer.owners]
    return {
        "confident": bool(first),
        "detected": bool(of_victims),
        "time_to_first_detection_s": _round(of_victims[0].time_s) if of_victims else None,
        "errors_m": [_round(scorer.error_m(report)) for report in of_victims],
        "gdop": [_round(report.constellation_gdop) for report in of_victims],
    }


def _told(score: Score, report: Report) -> dict[str, Any]:
    return {
        "time_s": _round(report.time_s - _begin_s(score)),
        "flight_s": _round(report.time_s),
        "confidence": _round(report.confidence),
        "right": score.scorer.right(report),
        "error_m": _round(score.scorer.error_m(report)),
        **_dilutions(report),
    }


def _dilutions(report: Report | None) -> dict[str, float | None]:
    """GDOP three ways, each null where undefined."""
    names = ("path_gdop", "constellation_gdop", "information_dop_m")
    return {name: None if report is None else _round(getattr(report, name)) for name in names}


def _kind(score: Score, address: int) -> str:
    return next((device.kind.name.lower() for device in score.episode.devices if device.address == address), "unknown")


def _since(time_s: float | None, begin_s: float) -> float | None:
    return None if time_s is None else _round(time_s - begin_s)


def _round(value: float | None) -> float | None:
    """Nine digits after the point: far below any sensor, and free of float noise in print."""
    return None if value is None else round(float(value), 9)


def _plain(event: Event) -> dict[str, Any]:
    fields = asdict(event)
    fields.update(kind=event.kind.value, phase=event.phase.value, a=event.a + 1)
    fields["b"] = event.b + 1 if event.kind.value in ("drone_drone", "near_miss") else event.b
    return {k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()}
