"""Small bags of the contract with made-up truth, so that every metric has a value one can work out by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_eval.bag.encoders import episode_topics
from sar_eval.bag.messages import MessageLayout, blank, serialise, typestore
from sar_eval.bag.writer import BagWriter

Floats = NDArray[np.float64]
NS = 1_000_000_000


def stamps(seconds: float) -> NDArray[np.int64]:
    """Ticks at 20 Hz on the 4 ms grid: 0, 52, 100, 152 ... ms."""
    ticks = np.arange(round(seconds * 20) + 1)
    return np.asarray(-(-25 * ticks // 2) * 4_000_000, np.int64)


@dataclass
class Made:
    """An episode to be written: positions float64[K, N, 3] at stamps(seconds), searching from begin_s to end_s."""

    positions: Floats
    begin_s: float
    end_s: float
    area: tuple[float, float, float, float] = (0.0, 0.0, 100.0, 100.0)
    velocity: Floats | None = None
    orientation: Floats | None = None
    rates: Floats | None = None
    coverage: float = 0.0
    events: list[dict[str, Any]] = field(default_factory=list)
    reports: list[dict[str, Any]] = field(default_factory=list)
    devices: list[tuple[int, int, tuple[float, float, float]]] | None = None
    listed: frozenset[int] = frozenset()
    """Addresses the swarm was told beforehand."""
    heard: list[tuple[float, int]] = field(default_factory=list)
    """Observations that drone 1 made: time (s) and transmitter."""
    battery: Floats | None = None
    failsafe: NDArray[np.int64] | None = None
    status: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    setpoints: Floats | None = None
    wanted: Floats | None = None
    """Velocities [K, N, 3] commanded, and asked for before the safety layer (none asked: NaN)."""
    bands: NDArray[np.int64] | None = None
    routes: list[list[list[float]]] | None = None
    older: bool = False
    """By definitions that lack what the safety layer was asked and did."""
    schema_version: str = "2"
    extra: dict[str, dict[str, str]] = field(default_factory=dict)
    finished: bool = True

    def write(self, folder: Path) -> Path:
        """Leave a verified bag in the folder."""
        store = typestore()
        drones = self.positions.shape[1]
        radio = self.devices is not None
        config = {"name": "made", "radio": "default" if radio else None, "sigma": 0.05, "kappa": 8.0, "episode_set": 1}
        facts = {
            "schema_version": self.schema_version,
            "configuration": json.dumps(config | self.config),
            "version": "0.1.0",
        }
        topics = episode_topics(drones, radio)
        routes = {} if self.routes is None else {"routes": {"routes": json.dumps(self.routes)}}
        with BagWriter(folder, topics, {"sar_eval": facts, **routes, **self.extra}) as writer:
            self._ticks(store, writer, drones)
            self._rare(store, writer)
            writer.flush()
        return folder

    def _ticks(self, store: Any, writer: BagWriter, drones: int) -> None:
        at = stamps((len(self.positions) - 1) / 20)
        counts = dict.fromkeys(("position", "velocity", "orientation", "angular_velocity"), drones)
        truth = MessageLayout(store, blank(store, "sar_msgs/msg/TruthState", {"header.frame_id": "map", **counts}))
        level = np.zeros((*self.positions.shape[:2], 4))
        level[..., 3] = 1.0
        zero = np.zeros_like(self.positions)
        columns = {
            "header.stamp": at,
            "position": self.positions,
            "velocity": zero if self.velocity is None else self.velocity,
            "orientation": level if self.orientation is None else self.orientation,
            "angular_velocity": zero if self.rates is None else self.rates,
        }
        writer.write_batch("/truth/state", at, truth.encode(columns))
        half = at[::10]
        for i in range(drones):
            status = MessageLayout(store, blank(store, "sar_msgs/msg/UavStatus", {"uav": i + 1}))
            battery = np.ones(len(half)) if self.battery is None else self.battery[:, i]
            failsafe = np.zeros(len(half), np.int64) if self.failsafe is None else self.failsafe[:, i]
            band = np.zeros(len(half), np.int64) if self.bands is None else self.bands[:, i]
            told = {"header.stamp": half, "battery_fraction": battery, "failsafe": failsafe}
            told |= {} if self.older else {"band": band}
            writer.write_batch(f"/uav_{i + 1}/status", half, status.encode(told))
            if self.setpoints is not None:
                layout = MessageLayout(store, blank(store, "sar_msgs/msg/Setpoint"))
                wanted = np.full_like(self.positions, np.nan) if self.wanted is None else self.wanted
                asked = {"header.stamp": at, "velocity": self.setpoints[:, i]}
                asked |= {} if self.older else {"wanted": wanted[:, i]}
                writer.write_batch(f"/uav_{i + 1}/setpoint", at, layout.encode(asked))

    def _rare(self, store: Any, writer: BagWriter) -> None:
        def put(topic: str, stamp_ns: int, kind: str, values: dict[str, Any]) -> None:
            stamp = {"header.stamp.sec": stamp_ns // NS, "header.stamp.nanosec": stamp_ns % NS}
            writer.write(topic, stamp_ns, serialise(store, blank(store, kind, stamp | values)))

        west, south, east, north = self.area
        info = {"episode_id": "made", "tier": "embedded", "world": "field", "pattern": "spiral", "config_sha256": "c0"}
        info |= {"seed": 3, "episode": 1, "drones": self.positions.shape[1], "area_min.x": west, "area_min.y": south}
        info |= {"area_max.x": east, "area_max.y": north}
        put("/episode/info", 0, "sar_msgs/msg/EpisodeInfo", info | self.info)
        nx, ny = round((east - west) / 5.0), round((north - south) / 5.0)
        grid = {"info.resolution": 5.0, "info.width": nx, "info.height": ny, "data": np.zeros(nx * ny, np.int8)}
        at = stamps((len(self.positions) - 1) / 20)
        done = [(int(at[-1]), 4)] if self.finished else []
        for stamp_ns, ending in [*((stamp, 0) for stamp in at[::20].tolist()), *done]:
            searched = min(max(stamp_ns / NS, self.begin_s), self.end_s) - self.begin_s
            phase = 1 if stamp_ns / NS < self.begin_s else 2 if stamp_ns / NS <= self.end_s else 3
            told = {"phase": ending or phase, "search_time_s": searched, "coverage": self.coverage, "valid": True}
            put("/episode/status", stamp_ns, "sar_msgs/msg/EpisodeStatus", told | self.status)
            put("/swarm/coverage", stamp_ns, "nav_msgs/msg/OccupancyGrid", grid)
            if self.devices is not None and not ending:
                self._devices(store, put, stamp_ns)
        for report in self.reports:
            put("/swarm/reports", report["ns"], "sar_msgs/msg/VictimReport", _without(report))
        for time_s, address in self.heard:
            seen = {"uav": 1, "address": address, "usable": True}
            put("/uav_1/detection", round(time_s * NS), "sar_msgs/msg/Detection", seen)
        for event in self.events:
            put("/events/collision", event["ns"], "sar_msgs/msg/CollisionEvent", _without(event))

    def _devices(self, store: Any, put: Any, stamp_ns: int) -> None:
        assert self.devices is not None
        point = store.types["geometry_msgs/msg/Point"]
        values = {
            "address": np.array([address for address, _, _ in self.devices], np.uint64),
            "kind": np.array([kind for _, kind, _ in self.devices], np.uint8),
            "position": [point(*place) for _, _, place in self.devices],
            "listed": np.array([address in self.listed for address, _, _ in self.devices], np.bool_),
        }
        put("/truth/devices", stamp_ns, "sar_msgs/msg/TruthDevices", values)


def _without(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != "ns"}


def straight(seconds: float, starts: Floats, velocity: Floats) -> Floats:
    """Positions float64[K, N, 3] of drones flying straight on from starts [N, 3] at constant velocity [N, 3]."""
    return np.asarray(starts)[None] + (stamps(seconds) / NS)[:, None, None] * np.asarray(velocity)[None]


def report(time_s: float, x: float, y: float, confidence: float, address: int = 7, **more: Any) -> dict[str, Any]:
    values = {"ns": round(time_s * NS), "position.x": x, "position.y": y, "confidence": confidence, "address": address}
    return values | {"uav": 1, "path_gdop": 1.5, "views": 2} | more


def event(time_s: float, number: int, kind: int, phase: int, **more: Any) -> dict[str, Any]:
    return {"ns": round(time_s * NS), "event_id": number, "kind": kind, "phase": phase, "uav": 1} | more
