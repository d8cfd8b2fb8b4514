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
from sar_eval.scenario.model import Episode
from sar_sim.judging.referee import Event, RefereeSummary
from sar_sim.judging.scoring import FoundVictim, Report, ReportScorer
from sar_sim.radio.devices import Device
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
                "det": 0,
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
    found = score.scorer.found.values()
    charge, failsafes, phases = (np.array(column) for column in zip(*score.readings, strict=True))
    counts = Counts(
        new_cells=sweep(score.episode.world.area, times - times[0], positions).scanned_cells,
        confirmed_victims=len(found),
        triangulations=sum(f.views for f in found),
        idle_steps=idle_steps(times, positions),
        collisions=summary.collisions,
        geofence_breaches=summary.geofence_breaches,
        depleted=sum(depleted(charge[:, i], failsafes[:, i], phases[:, i]) for i in range(charge.shape[1])),
    )
    return {"return_counts": asdict(counts), "episode_return": episode_return(counts)}


def _findings(score: Score, tally: Tally | None) -> dict[str, Any]:
    """What the reports came to; null where the episode had no radio."""
    if tally is None:
        keys = ("detections", "false_alarms", "localization_error_m", "gdop", "time_to_first_detection_s")
        return {"victims": [], **dict.fromkeys(keys)}
    scorer, episode = score.scorer, score.episode
    begin = score.orders.search_begin_s if math.isfinite(score.orders.search_begin_s) else 0.0
    found = [scorer.found.get(k) for k in range(len(score.victims))]
    first = min((f for f in found if f is not None), key=lambda f: f.time_s, default=None)
    return {
        "victims": [_victim(device, f, begin) for device, f in zip(score.victims, found, strict=True)],
        "detections": len(scorer.found),
        "false_alarms": len(scorer.false_alarms),
        "false_alarm_events": [
            {**asdict(alarm), "kind": _kind(episode, alarm.address)} for alarm in scorer.false_alarms.values()
        ],
        "localization_error_m": None if first is None else _round(first.error_m),
        "gdop": None if first is None else _round(first.gdop),
        "time_to_first_detection_s": None if first is None else _round(max(first.time_s - begin, 0.0)),
        "tracks": [
            {"kind": _kind(episode, last.address), "first": _word(scorer, word), "last": _word(scorer, last)}
            for word, last in score.words()
        ],
        "gate": {name: _round(share) for name, share in tally.gate_shares().items()},
        "frames_dropped": tally.dropped_by_reason(),
    }


def _victim(device: Device, found: FoundVictim | None, begin_s: float) -> dict[str, Any]:
    return {
        "x": _round(device.track[0, 1]),
        "y": _round(device.track[0, 2]),
        "detected": found is not None,
        "time_s": None if found is None else _round(max(found.time_s - begin_s, 0.0)),
        "error_m": None if found is None else _round(found.error_m),
        "final_error_m": None if found is None else _round(found.final_error_m),
        "gdop": None if found is None else _round(found.gdop),
        "views": None if found is None else found.views,
    }


def _word(scorer: ReportScorer, report: Report) -> dict[str, Any]:
    return {
        "time_s": _round(report.time_s),
        "confidence": _round(report.confidence),
        "correct": scorer.correct(report),
        "error_m": _round(scorer.distance(report)),
        "gdop": _round(report.gdop),
    }


def _kind(episode: Episode, address: int) -> str:
    return next((device.kind.name.lower() for device in episode.devices if device.address == address), "unknown")


def _round(value: float | None) -> float | None:
    """Nine digits after the point: far below any sensor, and free of float noise in print."""
    return None if value is None else round(float(value), 9)


def _plain(event: Event) -> dict[str, Any]:
    fields = asdict(event)
    fields.update(kind=event.kind.value, phase=event.phase.value, a=event.a + 1)
    fields["b"] = event.b + 1 if event.kind.value in ("drone_drone", "near_miss") else event.b
    return {k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()}
