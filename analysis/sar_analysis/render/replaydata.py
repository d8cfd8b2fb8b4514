"""One episode made small enough to be carried in a page: what a map that plays it back has to draw.

Times are tenths of a second of flight time, places decimetres, headings degrees; columns of slowly changing numbers
hold the first value and then differences. The whole is JSON, deflated: 240 s of four drones take about 20 kB.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import multiprocessing
import os
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_analysis.bags.arrays import Devices, HealthSeries
from sar_analysis.bags.reader import Bag, read_bag
from sar_analysis.bags.scene import Scene
from sar_analysis.metrics.findings import CONFIDENT, KINDS, VERDICTS, JudgedRows, judge_rows
from sar_analysis.metrics.metrics import search_span
from sar_core.errors import SarError
from sar_core.frames import yaw_of
from sar_core.sweep import CELL_M, sweep

Floats = NDArray[np.float64]

STEP_S = 0.5
DEVICE_STEP_S = 1.0
NEVER = -1
"""Stands for a cell that was never scanned, and for a transmitter that is none of the world's."""
EVENTS = ("", "drone_drone", "drone_obstacle", "drone_ground", "geofence", "near_miss")
FAILSAFES = (
    "nominal",
    "autonomous_hold",
    "low_battery_warn",
    "return_to_home",
    "emergency_land",
    "emergency_diverge",
    "controlled_descent",
)
PHASES = ("idle", "takeoff", "search", "return", "land", "landed", "hold")
GATES = ("accept", "predict_only", "reject", "recalibrate", "forced_accept")


@dataclass(frozen=True)
class Replay:
    """An episode's plain data, and the place it was flown in, named by data["scene"]: None where the bag has none."""

    data: dict[str, Any]
    scene: dict[str, Any] | None


def make_replay(bag: Bag | Path) -> Replay:
    """Everything the page shows of one episode."""
    if isinstance(bag, Path):
        bag = read_bag(bag)
    truth, info = bag.truth, bag.info
    times, search = truth.times_s, search_span(bag)
    begin_s = float(times[search.start]) if search is not None else None
    end_s = float(times[search.stop - 1]) if search is not None else None
    scene = None if bag.world is None else _plain_scene(bag.world)
    data = {
        "episode_id": info.episode_id,
        "scene": None if scene is None else hashlib.sha256(json.dumps(scene).encode()).hexdigest()[:16],
        "area_m": info.area_m,
        "end": _tenths(float(times[-1])),
        "search": None if begin_s is None or end_s is None else [_tenths(begin_s), _tenths(end_s)],
        "step": _tenths(STEP_S),
        "tracks": _tracks(times, truth.position, truth.attitude),
        "devices": [] if bag.devices is None else _devices(bag.devices, float(times[-1])),
        "radio": bag.devices is not None,
        "reports": _reports(bag, begin_s, end_s),
        "gates": _gates(bag),
        "events": _events(bag),
        "phases": [_changes(h, h.phase, PHASES) for h in bag.health],
        "failsafes": [_changes(h, h.failsafe, FAILSAFES) for h in bag.health],
        "cells": _cells(bag, search),
    }
    return Replay(data, scene)


def make_replays(bags: Mapping[str, Path], workers: int | None = None) -> dict[str, Replay | str]:
    """Replays by the same keys; where a bag cannot be read any more, the reason in words."""
    workers = min(workers or os.cpu_count() or 1, len(bags))
    if workers <= 1:
        return {key: _attempt(path) for key, path in bags.items()}
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
        return dict(zip(bags, pool.map(_attempt, bags.values(), chunksize=4), strict=True))


def _attempt(path: Path) -> Replay | str:
    try:
        return make_replay(path)
    except SarError as error:
        return str(error).replace(str(path), path.name)


def pack(data: Any) -> str:
    """JSON, deflated (zlib), in base64: what a browser's DecompressionStream("deflate") opens."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def unpack(packed: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def _tenths(seconds: float) -> int:
    return round(seconds * 10.0)


def _differences(values: Floats) -> list[int]:
    """The first value, then steps."""
    whole = np.rint(values).astype(np.int64)
    return [int(v) for v in np.diff(whole, prepend=0)] if whole.size else []


def _sampled(times_s: Floats, values: Floats, step_s: float, end_s: float) -> Floats:
    at = np.arange(0.0, end_s + 0.5 * step_s, step_s)
    return np.asarray(np.interp(at, times_s, values), np.float64)


def _tracks(times_s: Floats, position: Floats, attitude: Floats) -> list[dict[str, list[int]]]:
    """One per drone: x, y, z [dm] and heading [degrees, ENU: 0 east, counter-clockwise] every STEP_S."""
    end = float(times_s[-1])
    heading = np.degrees(np.unwrap(yaw_of(np.roll(attitude, 1, axis=-1)), axis=0))
    return [
        {
            **{
                name: _differences(10.0 * _sampled(times_s, position[:, n, i], STEP_S, end))
                for i, name in enumerate("xyz")
            },
            "heading": _differences(_sampled(times_s, heading[:, n], STEP_S, end)),
        }
        for n in range(position.shape[1])
    ]


def _devices(devices: Devices, end_s: float) -> list[dict[str, Any]]:
    """Transmitters in the order of the bag; one that never moved has one place."""
    times = devices.stamps_ns / 1e9
    listed = []
    for d, kind in enumerate(devices.kind.tolist()):
        place = 10.0 * devices.position[:, d, :2]
        still = bool((np.abs(place - place[0]) < 0.5).all())
        x, y = (
            [round(float(place[0, i]))] if still else _differences(_sampled(times, place[:, i], DEVICE_STEP_S, end_s))
            for i in (0, 1)
        )
        name = KINDS[kind] if 0 <= kind < len(KINDS) else "unknown"
        listed.append({"kind": name, "address": _address(int(devices.address[d])), "x": x, "y": y})
    return listed


def _address(number: int) -> str:
    return ":".join(f"{number:012x}"[i : i + 2] for i in range(0, 12, 2))


def _which(bag: Bag, addresses: NDArray[np.uint64]) -> list[int]:
    known = {} if bag.devices is None else {a: d for d, a in enumerate(bag.devices.address.tolist())}
    return [known.get(a, NEVER) for a in addresses.tolist()]


def _reports(bag: Bag, begin_s: float | None, end_s: float | None) -> dict[str, Any]:
    """All reports in order, and which of them are issues, by verdict, as the metrics judge them.

    right: of a victim's device and within 10 m of that victim, inside the search; only those inside count as confident.
    """
    r = bag.reports
    span = (math.nan if begin_s is None else begin_s, math.nan if end_s is None else end_s)
    none = np.zeros(len(r.stamps_ns), np.bool_)
    judged = JudgedRows(none, none, {}) if bag.devices is None else judge_rows(r, bag.devices, bag.hearings, *span)
    return {
        "t": _differences(r.stamps_ns / 1e8),
        "uav": r.uav.tolist(),
        "device": _which(bag, r.address),
        "x": np.rint(10.0 * np.clip(r.position[:, 0], -1e6, 1e6)).astype(int).tolist(),
        "y": np.rint(10.0 * np.clip(r.position[:, 1], -1e6, 1e6)).astype(int).tolist(),
        "confidence": np.rint(1000.0 * r.confidence).astype(int).tolist(),
        "confident": (judged.inside & (r.confidence > CONFIDENT)).astype(int).tolist(),
        "right": judged.right.astype(int).tolist(),
        "issues": {verdict: [k for k, own in judged.issues.items() if own == verdict] for verdict in VERDICTS},
    }


def _gates(bag: Bag) -> dict[str, Any]:
    g = bag.gates
    return {
        "t": _differences(g.stamps_ns / 1e8),
        "uav": g.uav.tolist(),
        "device": _which(bag, g.address),
        "open": g.open.astype(int).tolist(),
        "state": g.state.tolist(),
        "names": GATES,
    }


def _events(bag: Bag) -> list[dict[str, Any]]:
    """One entry per contact, with the figures of its last announcement."""
    e = bag.events
    last = {int(number): k for k, number in enumerate(e.event_id.tolist())}
    listed = []
    for k in last.values():
        kind = int(e.kind[k])
        listed.append(
            {
                "kind": EVENTS[kind] if 0 < kind < len(EVENTS) else "unknown",
                "begin": _tenths(float(e.begin_ns[k]) / 1e9),
                "end": _tenths(float(e.end_ns[k]) / 1e9),
                "uav": int(e.uav[k]),
                "other": int(e.other_uav[k]),
                "obstacle": e.obstacle[k],
                "least_cm": round(float(e.min_distance_m[k]) * 100.0),
                **{name: round(float(e.position[k, i]) * 10.0) for i, name in enumerate("xyz")},
            }
        )
    return sorted(listed, key=lambda event: event["begin"])


def _changes(health: HealthSeries, codes: NDArray[np.int64], names: Sequence[str]) -> list[list[Any]]:
    """[time, name] wherever a drone's state changed, the first one included."""
    change = np.flatnonzero(np.diff(codes, prepend=-1))
    return [
        [_tenths(float(health.stamps_ns[k]) / 1e9), names[c] if 0 <= (c := int(codes[k])) < len(names) else "unknown"]
        for k in change.tolist()
    ]


def _cells(bag: Bag, search: slice | None) -> dict[str, Any] | None:
    """Search second in which each cell was first scanned, rows from the south, NEVER where it was not."""
    if search is None:
        return None
    times = bag.truth.times_s[search]
    first = sweep(bag.info.area_m, times - times[0], bag.truth.position[search]).first_scan_s
    seconds = np.where(np.isfinite(first), np.ceil(np.where(np.isfinite(first), first, 0.0)), NEVER)
    return {"size_m": CELL_M, "columns": first.shape[1], "seconds": seconds.astype(int).ravel().tolist()}


def _plain_scene(scene: Scene) -> dict[str, Any]:
    """For drawing only: obstacle rows as [kind, x, y, half a, half b, yaw, top], centimetres round off."""
    rows = scene.obstacles
    return {
        "name": scene.name,
        "sha256": scene.sha256,
        "obstacles": [
            [int(r[0]), *(round(float(v), 2) for v in (r[1], r[2], r[4], r[5], r[7], r[3] + r[6]))] for r in rows
        ],
        "names": scene.names,
        "fence": [[round(float(v), 2) for v in corner] for corner in scene.fence],
        "area_m": scene.area_m,
    }
