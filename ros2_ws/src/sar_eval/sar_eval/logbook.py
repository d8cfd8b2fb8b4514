"""An episode's topics: which there are, and how a second of flight becomes messages in the bag."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sar_eval import __version__
from sar_eval.config import Episode
from sar_eval.messages import Layout, blank, serialise, typestore
from sar_eval.recorder import BagWriter, Recording, Topic, make_topic

if TYPE_CHECKING:
    from sar_eval.sensing import Claim, Heard
from sar_sim.devices import Device
from sar_sim.fleet import FleetState
from sar_sim.referee import Event, Kind, Phase
from sar_swarm.controller import Command, Pilot
from sar_swarm.observation import Observation

Floats = NDArray[np.float64]

FRAME = "map"
NS = 1_000_000_000
_KINDS = {
    Kind.DRONE_DRONE: 1,
    Kind.DRONE_OBSTACLE: 2,
    Kind.DRONE_GROUND: 3,
    Kind.GEOFENCE: 4,
    Kind.NEAR_MISS: 5,
}
_TOPICS = (
    ("/clock", "rosgraph_msgs/msg/Clock", False),
    ("/episode/info", "sar_msgs/msg/EpisodeInfo", True),
    ("/episode/status", "sar_msgs/msg/EpisodeStatus", False),
    ("/events/collision", "sar_msgs/msg/CollisionEvent", False),
    ("/swarm/coverage", "nav_msgs/msg/OccupancyGrid", False),
    ("/truth/state", "sar_msgs/msg/TruthState", False),
)
_UAV_TOPICS = (
    ("odometry", "nav_msgs/msg/Odometry"),
    ("setpoint", "sar_msgs/msg/Setpoint"),
    ("status", "sar_msgs/msg/UavStatus"),
)
_SENSING_TOPICS = (
    ("/swarm/reports", "sar_msgs/msg/VictimReport"),
    ("/truth/devices", "sar_msgs/msg/TruthDevices"),
)
_UAV_SENSING_TOPICS = (
    ("detection", "sar_msgs/msg/Detection"),
    ("gate", "sar_msgs/msg/GateStatus"),
)


@dataclass(frozen=True)
class Status:
    """What /episode/status tells once a second."""

    phase: int
    search_time_s: float
    coverage: float
    collisions: int
    near_misses: int
    airborne: int
    valid: bool = True
    invalid_reason: str = ""


def episode_topics(drones: int, sensing: bool = False, csi: bool = False) -> list[Topic]:
    """Every topic of an episode with so many drones, numbered from 1; with what their radios add."""
    store = typestore()
    topics = [make_topic(store, name, kind, latched) for name, kind, latched in _TOPICS]
    per_drone = list(_UAV_TOPICS)
    if sensing:
        topics += [make_topic(store, name, kind) for name, kind in _SENSING_TOPICS]
        per_drone += _UAV_SENSING_TOPICS
    if csi:
        per_drone.append(("csi", "sar_msgs/msg/CsiBatch"))
    for i in range(1, drones + 1):
        topics += [make_topic(store, f"/uav_{i}/{name}", kind) for name, kind in per_drone]
    return topics


def bag_metadata(episode: Episode) -> dict[str, dict[str, str]]:
    """MCAP metadata records: the resolved configuration and where everything came from."""
    resolved = episode.resolved()
    return {
        "sar_eval": {
            "schema_version": "1",
            "episode_id": episode.episode_id,
            "tier": episode.tier,
            "configuration": json.dumps(resolved, sort_keys=True),
            "config_sha256": episode.config_sha256,
            "world": episode.world.name,
            "world_sha256": episode.world.sha256,
            "seed": str(episode.seed),
            "episode": str(episode.index),
            "episode_set": episode.episode_set,
            "episode_set_sha256": episode.episode_set_sha256 or "",
            "version": __version__,
            "numpy": np.__version__,
        },
        "world": {
            "schema_version": "1",
            "world_sha256": episode.world.sha256,
            "geometry": json.dumps(world_geometry(episode), sort_keys=True),
        },
    }


def world_geometry(episode: Episode) -> dict[str, Any]:
    """What a reader of the bag needs to draw the place and to measure distances in it; ENU metres."""
    w = episode.world
    return {
        "name": w.name,
        "obstacles": w.obstacles.tolist(),
        "obstacle_names": list(w.obstacle_names),
        "area_m": list(w.area),
        "fence": w.fence.tolist(),
        "ceiling_m": w.ceiling_m,
        "spawns": w.spawns.tolist(),
        "hull_radius_m": episode.vehicle.airframe.hull_radius,
    }


class Logbook:
    """Collects one second of ticks as columns and writes them in one go: messages are made K at a time.

    The pose covariance of an odometry is left at -1 in its first element: unknown, by the convention of ROS.
    """

    def __init__(self, episode: Episode, directory: Path, csi: bool = False) -> None:
        self._episode = episode
        self._csi = csi and episode.radio is not None
        n = episode.scenario.drones
        self._n = n
        self._store = typestore()
        self._writer = BagWriter(
            directory, episode_topics(n, episode.radio is not None, self._csi), bag_metadata(episode)
        )
        unknown = np.zeros(36)
        unknown[0] = -1.0
        self._clock = Layout(self._store, blank(self._store, "rosgraph_msgs/msg/Clock"))
        self._truth = self._layout(
            "sar_msgs/msg/TruthState",
            {"header.frame_id": FRAME, "position": n, "velocity": n, "orientation": n, "angular_velocity": n},
        )
        self._odometry = [
            self._layout(
                "nav_msgs/msg/Odometry",
                {
                    "header.frame_id": FRAME,
                    "child_frame_id": f"uav_{i + 1}/base_link",
                    "pose.covariance": unknown,
                    "twist.covariance": unknown,
                },
            )
            for i in range(n)
        ]
        self._setpoint = self._layout("sar_msgs/msg/Setpoint", {"header.frame_id": FRAME})
        self._status = [
            self._layout(
                "sar_msgs/msg/UavStatus",
                {
                    "header.frame_id": FRAME,
                    "uav": i + 1,
                    "offboard": True,
                    "battery_voltage_v": math.nan,
                },
            )
            for i in range(n)
        ]
        self._event_id: dict[tuple[str, int, int, float], int] = {}
        self._clear()

    @property
    def partial(self) -> Path:
        return self._writer.partial

    def _layout(self, msgtype: str, values: dict[str, Any]) -> Layout:
        return Layout(self._store, blank(self._store, msgtype, values))

    def _clear(self) -> None:
        self._stamps: list[int] = []
        self._states: list[FleetState] = []
        self._commands: list[Sequence[Command]] = []
        self._health: list[tuple[int, list[int], list[int], list[bool], Floats, Floats, Floats]] = []

    def tick(self, stamp_ns: int, state: FleetState, commands: Sequence[Command]) -> None:
        """Keep one tick until the next flush."""
        self._stamps.append(stamp_ns)
        self._states.append(state)
        self._commands.append(commands)

    def flush(self) -> None:
        """Write what has been kept; from here on it survives the end of this process."""
        if self._stamps:
            self._write_ticks()
        if self._health:
            self._write_health()
        self._clear()
        self._writer.flush()

    def _write_ticks(self) -> None:
        stamps = np.array(self._stamps)
        states = self._states
        self._writer.write_batch("/clock", stamps, self._clock.encode({"clock": stamps}))
        position = np.array([s.position for s in states])
        columns = {
            "header.stamp": stamps,
            "position": position,
            "velocity": np.array([s.velocity for s in states]),
            "orientation": np.roll(np.array([s.attitude for s in states]), -1, axis=-1),
            "angular_velocity": np.array([s.rates for s in states]),
        }
        self._writer.write_batch("/truth/state", stamps, self._truth.encode(columns))
        est_position = np.array([s.est_position for s in states])
        est_velocity = np.array([s.est_velocity for s in states])
        est_attitude = np.array([s.est_attitude for s in states])
        orientation = np.roll(est_attitude, -1, axis=-1)
        body_velocity = to_body(est_attitude, est_velocity)
        rates = columns["angular_velocity"]
        for i in range(self._n):
            odometry = self._odometry[i].encode(
                {
                    "header.stamp": stamps,
                    "pose.pose.position": est_position[:, i],
                    "pose.pose.orientation": orientation[:, i],
                    "twist.twist.linear": body_velocity[:, i],
                    "twist.twist.angular": rates[:, i],
                }
            )
            self._writer.write_batch(f"/uav_{i + 1}/odometry", stamps, odometry)
            commands = [tick[i] for tick in self._commands]
            setpoint = self._setpoint.encode(
                {
                    "header.stamp": stamps,
                    "position": np.array([c.position for c in commands]),
                    "velocity": np.array([c.velocity for c in commands]),
                    "acceleration": np.array([c.acceleration for c in commands]),
                    "yaw": np.array([c.yaw for c in commands]),
                    "yaw_rate": np.full(len(stamps), np.nan),
                }
            )
            self._writer.write_batch(f"/uav_{i + 1}/setpoint", stamps, setpoint)

    def uav_status(
        self,
        stamp_ns: int,
        pilots: Sequence[Pilot],
        commands: Sequence[Command],
        charge: Floats,
        delivery: Floats,
        link_age_s: Floats,
    ) -> None:
        """Twice a second: each drone's health, kept until the next flush."""
        armed = [command.armed for command in commands]
        phases = [int(pilot.phase) for pilot in pilots]
        failsafes = [int(pilot.vigil.state) for pilot in pilots]
        self._health.append((stamp_ns, phases, failsafes, armed, charge, delivery, link_age_s))

    def _write_health(self) -> None:
        columns = (np.array(column) for column in zip(*self._health, strict=True))
        stamps, phases, failsafes, armed, charge, delivery, age = columns
        for i in range(self._n):
            rows = self._status[i].encode(
                {
                    "header.stamp": stamps,
                    "phase": phases[:, i],
                    "failsafe": failsafes[:, i],
                    "armed": armed[:, i],
                    "battery_fraction": charge[:, i],
                    "link_delivery_ratio": delivery[:, i],
                    "link_age_s": age[:, i],
                }
            )
            self._writer.write_batch(f"/uav_{i + 1}/status", stamps, rows)

    def info(self, stamp_ns: int) -> None:
        """The one latched message that names the episode."""
        e, s = self._episode, self._episode.scenario
        x_min, y_min, x_max, y_max = e.world.area
        values = {
            "header.frame_id": FRAME,
            "episode_id": e.episode_id,
            "tier": e.tier,
            "world": e.world.name,
            "world_sha256": e.world.sha256,
            "config_sha256": e.config_sha256,
            "vehicle": e.vehicle.name,
            "pattern": s.pattern,
            "seed": e.seed,
            "episode": e.index,
            "drones": s.drones,
            "duration_s": s.duration_s,
            "altitude_m": e.altitude_m,
            "speed_mps": s.speed_mps,
            "wind_mps": float(np.linalg.norm(e.wind_mps)),
            "area_min.x": x_min,
            "area_min.y": y_min,
            "area_max.x": x_max,
            "area_max.y": y_max,
        }
        self._write("/episode/info", stamp_ns, "sar_msgs/msg/EpisodeInfo", values)

    def status(self, stamp_ns: int, status: Status) -> None:
        """Once a second: how far the episode is."""
        self._write("/episode/status", stamp_ns, "sar_msgs/msg/EpisodeStatus", dict(vars(status)))

    def coverage(self, stamp_ns: int, scanned: NDArray[np.bool_], cell_m: float) -> None:
        """Once a second: the scanned cells, bool [ny, nx] from the south-west corner, as an occupancy grid."""
        x_min, y_min, _, _ = self._episode.world.area
        values = {
            "header.frame_id": FRAME,
            "info.resolution": cell_m,
            "info.width": scanned.shape[1],
            "info.height": scanned.shape[0],
            "info.origin.position.x": x_min,
            "info.origin.position.y": y_min,
            "info.origin.orientation.w": 1.0,
            "data": np.where(scanned, 100, 0).astype(np.int8).ravel(),
        }
        self._write("/swarm/coverage", stamp_ns, "nav_msgs/msg/OccupancyGrid", values)

    def event(self, stamp_ns: int, event: Event) -> None:
        """A referee's announcement; begin and end of one contact carry the same id."""
        key = (event.kind.value, event.a, event.b, event.begin_s)
        number = self._event_id.setdefault(key, len(self._event_id) + 1)
        drones = event.kind in (Kind.DRONE_DRONE, Kind.NEAR_MISS)
        obstacle = event.kind is Kind.DRONE_OBSTACLE
        begin = round(event.begin_s * NS)
        end = begin if event.phase is Phase.BEGIN else round(event.end_s * NS)
        values = {
            "header.frame_id": FRAME,
            "event_id": number,
            "kind": _KINDS[event.kind],
            "phase": 1 if event.phase is Phase.BEGIN else 2,
            "uav": event.a + 1,
            "other_uav": event.b + 1 if drones else 0,
            "obstacle": self._episode.world.obstacle_names[event.b] if obstacle else "",
            "begin.sec": begin // NS,
            "begin.nanosec": begin % NS,
            "end.sec": end // NS,
            "end.nanosec": end % NS,
            "min_distance_m": event.min_distance_m,
            "position.x": event.position[0],
            "position.y": event.position[1],
            "position.z": event.position[2],
        }
        self._write("/events/collision", stamp_ns, "sar_msgs/msg/CollisionEvent", values)

    def sensing(self, stamp_ns: int, heard: Heard, claims: Sequence[Claim]) -> None:
        """What the drones observed, how their gates changed, what they claimed; raw frames if wanted."""
        for i, observations in enumerate(heard.observations):
            for seen in observations:
                self._detection(f"/uav_{i + 1}/detection", stamp_ns, seen)
        for change in heard.changes:
            values: dict[str, Any] = {
                "header.frame_id": FRAME,
                "uav": change.drone + 1,
                "address": change.address,
                "open": change.open,
                "state": int(change.state),
                "coherence": change.coherence,
            }
            self._write(f"/uav_{change.drone + 1}/gate", stamp_ns, "sar_msgs/msg/GateStatus", values)
        for claim in claims:
            self._claim(stamp_ns, claim)
        if self._csi:
            for i, frames in enumerate(heard.frames):
                values = {
                    "header.frame_id": FRAME,
                    "uav": i + 1,
                    "address": frames.address,
                    "beacon": frames.beacon,
                    "rssi_dbm": frames.rssi_dbm,
                    "csi": frames.csi.ravel(),
                }
                self._write(f"/uav_{i + 1}/csi", stamp_ns, "sar_msgs/msg/CsiBatch", values)

    def _detection(self, topic: str, stamp_ns: int, seen: Observation) -> None:
        values = {
            "header.frame_id": FRAME,
            "uav": seen.drone + 1,
            "address": seen.address,
            **dict(zip(("position.x", "position.y", "position.z"), seen.position, strict=True)),
            **dict(zip(("array_axis.x", "array_axis.y", "array_axis.z"), seen.axis, strict=True)),
            "range_m": seen.range_m,
            "range_std_m": seen.range_std_m,
            "phase_rad": seen.phase_rad,
            "phase_std_rad": seen.phase_std_rad,
            "coherence": seen.coherence,
            "gate_open": seen.open,
            "gate_state": int(seen.state),
            "rssi_dbm": seen.rssi_dbm,
            "frames": seen.frames,
            "usable": seen.usable,
        }
        self._write(topic, stamp_ns, "sar_msgs/msg/Detection", values)

    def _claim(self, stamp_ns: int, claim: Claim) -> None:
        report, estimate = claim.report, claim.estimate
        values = {
            "header.frame_id": FRAME,
            "uav": report.drone + 1,
            "address": report.address,
            "position.x": report.x,
            "position.y": report.y,
            "covariance": estimate.covariance.ravel(),
            "confidence": report.confidence,
            "gdop": np.nan if report.gdop is None else report.gdop,
            "views": report.views,
            "observations": estimate.observations,
            "speed_mps": estimate.speed_mps,
        }
        self._write("/swarm/reports", stamp_ns, "sar_msgs/msg/VictimReport", values)

    def devices(self, stamp_ns: int, devices: Sequence[Device], time_s: float) -> None:
        """Once a second: where every transmitter truly is."""
        points = [device.position_at(time_s) for device in devices]
        make_point = self._store.types["geometry_msgs/msg/Point"]
        values = {
            "header.frame_id": FRAME,
            "address": np.array([device.address for device in devices], np.uint64),
            "kind": np.array([int(device.kind) for device in devices], np.uint8),
            "position": [make_point(*(float(v) for v in point)) for point in points],
        }
        self._write("/truth/devices", stamp_ns, "sar_msgs/msg/TruthDevices", values)

    def _write(self, topic: str, stamp_ns: int, msgtype: str, values: dict[str, Any]) -> None:
        stamp = {"header.stamp.sec": stamp_ns // NS, "header.stamp.nanosec": stamp_ns % NS}
        message = blank(self._store, msgtype, {**stamp, **values})
        self._writer.write(topic, stamp_ns, serialise(self._store, message))

    def close(self) -> Recording:
        """Finish and verify the bag."""
        self.flush()
        return self._writer.close()

    def abandon(self) -> None:
        self._writer.abandon()


def to_body(attitude: Floats, velocity: Floats) -> Floats:
    """World vectors [..., 3] seen from bodies with attitudes [..., 4] (w, x, y, z, body to world)."""
    w, axis = attitude[..., :1], -attitude[..., 1:]
    t = 2.0 * np.cross(axis, velocity)
    turned: Floats = velocity + w * t + np.cross(axis, t)
    return turned
