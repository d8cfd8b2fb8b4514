"""A bag as ADR-148's telemetry: one JSON line for the mission, one per step, one for the episode.

The keys are that schema's; what it lacks (height, velocity, errors, collisions …) stands beside them under its own
names. ``det`` is 1 from when a drone's usable observations back an issue or its update. Without training there is no
loss: those are null.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_analysis.bags.reader import Bag
from sar_analysis.metrics.findings import backed_since
from sar_analysis.metrics.metrics import episode_metrics, search_span
from sar_core.errors import InputError, MissingDataError
from sar_core.frames import yaw_of
from sar_core.sweep import sweep

Floats = NDArray[np.float64]


def telemetry(bag: Bag, every_s: float = 1.0) -> Iterator[dict[str, Any]]:
    """The lines of a bag's search, a step every ``every_s``; times are search times, lengths metres, ENU."""
    if not every_s > 0.0:
        raise InputError(f"a step every {every_s} s; allowed: above 0")
    span = search_span(bag)
    if span is None:
        raise MissingDataError(f"{bag.path}: the swarm never searched, so there is no step to write")
    mission = episode_metrics(bag)
    info, number = bag.info, bag.info.episode
    yield {
        "type": "meta",
        "profile": str(bag.configuration.get("name", "")),
        "drones": info.drones,
        "area_w": info.area_m[2] - info.area_m[0],
        "area_h": info.area_m[3] - info.area_m[1],
        "victims": [[v.x_m, v.y_m] for v in mission.victims],
        "episode_id": info.episode_id,
        "tier": info.tier,
        "world": info.world,
        "pattern": info.pattern,
        "seed": info.seed,
    }
    yield from _steps(bag, span, every_s)
    yield {
        "type": "episode",
        "ep": number,
        "mean_return": mission.episode_return,
        "policy_loss": None,
        "value_loss": None,
        "victims_found": mission.detections,
        "valid": mission.valid,
        **{
            key: getattr(mission, key)
            for key in (
                *("coverage_240s", "time_to_first_detection_s", "localization_error_m", "gdop", "issues"),
                *("displaced", "false_alarms", "collisions", "near_misses", "overlap_ratio"),
            )
        },
    }


def _steps(bag: Bag, span: slice, every_s: float) -> Iterator[dict[str, Any]]:
    truth, times = bag.truth, bag.truth.times_s[span]
    clock = times - times[0]
    cover = sweep(bag.info.area_m, clock, truth.position[span])
    heading = yaw_of(np.roll(truth.attitude[span], 1, axis=-1))
    battery = [np.interp(times, h.stamps_ns / 1e9, h.battery_fraction) for h in bag.health]
    backed = backed_since(bag.reports, bag.hearings, float(times[0]), float(times[-1]))
    wanted = np.arange(0.0, clock[-1] + 0.5 * every_s, every_s)
    rows = np.unique(np.minimum(np.searchsorted(clock, wanted - 1e-9), len(clock) - 1))
    for step, k in enumerate(rows.tolist()):
        position, velocity = truth.position[span][k], truth.velocity[span][k]
        yield {
            "type": "step",
            "ep": bag.info.episode,
            "step": step,
            "t": _round(clock[k]),
            "coverage": _round(cover.at(float(clock[k]))),
            "drones": [
                {
                    "id": n + 1,
                    "x": _round(position[n, 0]),
                    "y": _round(position[n, 1]),
                    "hdg": _round(heading[k, n]),
                    "batt": _round(100.0 * battery[n][k]),
                    "det": int(times[k] >= backed.get(n + 1, np.inf)),
                    "z": _round(position[n, 2]),
                    **{f"v{axis}": _round(v) for axis, v in zip("xyz", velocity[n], strict=True)},
                }
                for n in range(bag.info.drones)
            ],
        }


def _round(value: float) -> float:
    return round(float(value), 6)
