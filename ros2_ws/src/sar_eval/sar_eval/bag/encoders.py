"""What an episode's messages say: every topic there is, and how flight becomes bytes on it.

The recorder in the flying process and the nodes of a graph write with the same hand, so their bags are equal.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_eval.bag.messages import MessageLayout, blank, serialise, typestore
from sar_eval.bag.tick import DroneStatuses, Heard, VictimReport, dilutions
from sar_eval.bag.writer import BagTopic, make_topic
from sar_eval.scenario.model import Episode
from sar_sim.judging.referee import Event, EventKind, EventPhase
from sar_sim.judging.scoring import Judged, ReportVerdict
from sar_sim.radio.devices import known_addresses
from sar_sim.radio.receiver import Frames
from sar_sim.vehicle.fleet import FleetState
from sar_swarm.piloting.controller import Command
from sar_swarm.sensing.observation import Observation

Floats = NDArray[np.float64]
Batch = tuple[str, NDArray[np.uint8]]
"""A topic and K messages of it, one per row."""
Letter = tuple[str, bytes]
"""A topic and one message of it."""

FRAME = "map"
STATUS_DONE = 4
REPORT_TICKS = 20
"""Once a second the episode's status is told and all that was logged goes to the disk."""
NS = 1_000_000_000
_KINDS = {
    EventKind.DRONE_DRONE: 1,
    EventKind.DRONE_OBSTACLE: 2,
    EventKind.DRONE_GROUND: 3,
    EventKind.GEOFENCE: 4,
    EventKind.NEAR_MISS: 5,
}
_VERDICTS = {ReportVerdict.RIGHT: 1, ReportVerdict.DISPLACED: 2, ReportVerdict.DECOY: 3}
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
    ("/events/report", "sar_msgs/msg/ReportEvent"),
    ("/truth/devices", "sar_msgs/msg/TruthDevices"),
)
_UAV_SENSING_TOPICS = (
    ("detection", "sar_msgs/msg/Detection"),
    ("gate", "sar_msgs/msg/GateStatus"),
)


@dataclass(frozen=True)
class EpisodeProgress:
    """What /episode/status tells once a second."""

    phase: int
    search_time_s: float
    coverage: float
    collisions: int
    near_misses: int
    airborne: int
    valid: bool = True
    invalid_reason: str = ""
    issues: int = 0
    found: int = 0
    displaced: int = 0
    decoy_alarms: int = 0


def episode_topics(drones: int, sensing: bool = False, csi: bool = False) -> list[BagTopic]:
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


@functools.cache
def load_codecs() -> None:
    """Make the code that writes each kind of message, which otherwise is made when the first one is due."""
    store = typestore()
    for topic in episode_topics(1, True, True):
        store.deserialize_cdr(serialise(store, blank(store, topic.msgtype)), topic.msgtype)


class DroneHealth(NamedTuple):
    """What the drones' status tells at one moment; a value per drone."""

    stamp_ns: int
    phase: list[int]
    failsafe: list[int]
    armed: list[bool]
    charge: Floats
    delivery: Floats
    """Share of the others' packets received since the last status."""
    link_age_s: Floats
    band: list[int]
    """Worst since the last status, as the fence state is."""
    fence: list[int]


def health_of(
    stamp_ns: int,
    statuses: DroneStatuses,
    commands: Sequence[Command],
    charge: Floats,
    delivery: Floats,
    age_s: Floats,
    worst: Sequence[tuple[int, int]],
) -> DroneHealth:
    """``worst`` holds every drone's worst band and fence state since the last status."""
    return DroneHealth(
        stamp_ns,
        [int(phase) for phase in statuses.phase],
        [int(state) for state in statuses.failsafe],
        [command.armed for command in commands],
        charge,
        delivery,
        age_s,
        [band for band, _ in worst],
        [fence for _, fence in worst],
    )


class Encoder:
    """Writes messages: those of every tick in columns, K ticks at a time; the others one by one.

    The pose covariance of an odometry is left at -1 in its first element: unknown, by the convention of ROS.
    """

    def __init__(self, episode: Episode) -> None:
        self._episode = episode
        self._listed = frozenset(known_addresses(episode.devices))
        n = episode.scenario.drones
        self._n = n
        self._store = typestore()
        unknown = np.zeros(36)
        unknown[0] = -1.0
        self._clock = MessageLayout(self._store, blank(self._store, "rosgraph_msgs/msg/Clock"))
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
        sizes = [layout.size for layout in self._odometry]
        self._alike = [[i for i, own in enumerate(sizes) if own == size] for size in sorted(set(sizes))]
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

    def _layout(self, msgtype: str, values: dict[str, Any]) -> MessageLayout:
        return MessageLayout(self._store, blank(self._store, msgtype, values))

    def clock(self, stamps: NDArray[np.int64]) -> Batch:
        """Simulation time [K]."""
        return "/clock", self._clock.encode({"clock": stamps})

    def world(self, stamps: NDArray[np.int64], states: Sequence[FleetState]) -> Iterator[Batch]:
        """The truth of K ticks, and each drone's estimate."""
        columns = {
            "header.stamp": stamps,
            "position": np.array([s.position for s in states]),
            "velocity": np.array([s.velocity for s in states]),
            "orientation": np.roll(np.array([s.attitude for s in states]), -1, axis=-1),
            "angular_velocity": np.array([s.rates for s in states]),
        }
        yield "/truth/state", self._truth.encode(columns)
        est_position = np.array([s.est_position for s in states])
        est_velocity = np.array([s.est_velocity for s in states])
        est_attitude = np.array([s.est_attitude for s in states])
        orientation = np.roll(est_attitude, -1, axis=-1)
        body_velocity = to_body(est_attitude, est_velocity)
        moving = {
            "pose.pose.position": est_position,
            "pose.pose.orientation": orientation,
            "twist.twist.linear": body_velocity,
            "twist.twist.angular": columns["angular_velocity"],
        }
        yield from self._odometries(stamps, moving)

    def _odometries(self, stamps: NDArray[np.int64], columns: dict[str, Floats]) -> Iterator[Batch]:
        """Columns [K, N, ...]; drones whose messages have one size are written at once, then given their names."""
        for drones in self._alike:
            first = self._odometry[drones[0]]
            flat = {path: values[:, drones].reshape(-1, values.shape[-1]) for path, values in columns.items()}
            given: dict[str, NDArray[Any]] = {"header.stamp": np.repeat(stamps, len(drones)), **flat}
            rows = first.encode(given).reshape(len(stamps), len(drones), -1)
            names = np.array([self._odometry[i].template for i in drones])
            own = (names != names[0]).any(axis=0)
            rows[:, :, own] = names[:, own]
            for k, i in enumerate(drones):
                yield f"/uav_{i + 1}/odometry", rows[:, k]

    def setpoints(self, stamps: NDArray[np.int64], ticks: Sequence[Sequence[Command]]) -> Iterator[Batch]:
        """What every drone was commanded in K ticks; written for all drones at once, since their layout is one."""
        commands = [command for tick in ticks for command in tick]
        rows = self._setpoint.encode(
            {
                "header.stamp": np.repeat(stamps, self._n),
                "position": np.array([c.position for c in commands]),
                "velocity": np.array([c.velocity for c in commands]),
                "acceleration": np.array([c.acceleration for c in commands]),
                "yaw": np.array([c.yaw for c in commands]),
                "yaw_rate": np.full(len(commands), np.nan),
                "wanted": np.array([(*c.guard.wanted, math.nan) for c in commands]),
                "limit_excess": np.array([c.guard.limit_excess_mps for c in commands]),
            }
        ).reshape(len(stamps), self._n, -1)
        for i in range(self._n):
            yield f"/uav_{i + 1}/setpoint", rows[:, i]

    def health(self, rows: Sequence[DroneHealth]) -> Iterator[Batch]:
        """Every drone's status at K moments."""
        columns = (np.array(column) for column in zip(*rows, strict=True))
        stamps, phases, failsafes, armed, charge, delivery, age, bands, fences = columns
        for i in range(self._n):
            yield (
                f"/uav_{i + 1}/status",
                self._status[i].encode(
                    {
                        "header.stamp": stamps,
                        "phase": phases[:, i],
                        "failsafe": failsafes[:, i],
                        "armed": armed[:, i],
                        "battery_fraction": charge[:, i],
                        "link_delivery_ratio": delivery[:, i],
                        "link_age_s": age[:, i],
                        "band": bands[:, i],
                        "fence": fences[:, i],
                    }
                ),
            )

    def info(self, stamp_ns: int) -> Letter:
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
        return self._letter("/episode/info", stamp_ns, "sar_msgs/msg/EpisodeInfo", values)

    def status(self, stamp_ns: int, status: EpisodeProgress) -> Letter:
        """Once a second: how far the episode is."""
        return self._letter("/episode/status", stamp_ns, "sar_msgs/msg/EpisodeStatus", dict(vars(status)))

    def last_status(self, stamp_ns: int, before: bytes | None, reason: str) -> Letter:
        """The status that ends a spoilt episode, with the figures of the one before."""
        known: dict[str, Any] = dict.fromkeys((field.name for field in fields(EpisodeProgress)), 0)
        if before is not None:
            told = self._store.deserialize_cdr(before, "sar_msgs/msg/EpisodeStatus")
            known = {name: getattr(told, name) for name in known}
        return self.status(
            stamp_ns, replace(EpisodeProgress(**known), phase=STATUS_DONE, valid=False, invalid_reason=reason)
        )

    def coverage(self, stamp_ns: int, scanned: NDArray[np.bool_], cell_m: float) -> Letter:
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
        return self._letter("/swarm/coverage", stamp_ns, "nav_msgs/msg/OccupancyGrid", values)

    def event(self, stamp_ns: int, event: Event) -> Letter:
        """A referee's announcement; begin and end of one contact carry the same id."""
        key = (event.kind.value, event.a, event.b, event.begin_s)
        number = self._event_id.setdefault(key, len(self._event_id) + 1)
        drones = event.kind in (EventKind.DRONE_DRONE, EventKind.NEAR_MISS)
        obstacle = event.kind is EventKind.DRONE_OBSTACLE
        begin = round(event.begin_s * NS)
        end = begin if event.phase is EventPhase.BEGIN else round(event.end_s * NS)
        values = {
            "header.frame_id": FRAME,
            "event_id": number,
            "kind": _KINDS[event.kind],
            "phase": 1 if event.phase is EventPhase.BEGIN else 2,
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
        return self._letter("/events/collision", stamp_ns, "sar_msgs/msg/CollisionEvent", values)

    def observations(self, stamp_ns: int, heard: Heard) -> Iterator[Letter]:
        """What the drones observed and how their gates changed."""
        for i, observations in enumerate(heard.observations):
            for seen in observations:
                yield self._detection(f"/uav_{i + 1}/detection", stamp_ns, seen)
        for change in heard.changes:
            values: dict[str, Any] = {
                "header.frame_id": FRAME,
                "uav": change.drone + 1,
                "address": change.address,
                "open": change.open,
                "state": int(change.state),
                "coherence": change.coherence,
            }
            yield self._letter(f"/uav_{change.drone + 1}/gate", stamp_ns, "sar_msgs/msg/GateStatus", values)

    def frames(self, stamp_ns: int, frames: Sequence[Frames]) -> Iterator[Letter]:
        """Every drone's raw frames of one tick."""
        for i, batch in enumerate(frames):
            values = {
                "header.frame_id": FRAME,
                "uav": i + 1,
                "address": batch.address,
                "beacon": batch.beacon,
                "rssi_dbm": batch.rssi_dbm,
                "csi": batch.csi.ravel(),
            }
            yield self._letter(f"/uav_{i + 1}/csi", stamp_ns, "sar_msgs/msg/CsiBatch", values)

    def _detection(self, topic: str, stamp_ns: int, seen: Observation) -> Letter:
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
        return self._letter(topic, stamp_ns, "sar_msgs/msg/Detection", values)

    def victim_report(self, stamp_ns: int, found: VictimReport) -> Letter:
        """A drone's opinion of a transmitter."""
        report, estimate = found.report, found.estimate
        path, constellation, information = dilutions(report)
        values = {
            "header.frame_id": FRAME,
            "uav": report.drone + 1,
            "address": report.address,
            "position.x": report.x,
            "position.y": report.y,
            "covariance": estimate.covariance.ravel(),
            "confidence": report.confidence,
            "path_gdop": path,
            "constellation_gdop": constellation,
            "information_dop_m": information,
            "views": report.views,
            "observations": estimate.observations,
            "speed_mps": estimate.speed_mps,
        }
        return self._letter("/swarm/reports", stamp_ns, "sar_msgs/msg/VictimReport", values)

    def report_event(self, stamp_ns: int, judged: Judged) -> Letter:
        """The referee's verdict on an issue or an update."""
        report = judged.report
        path, constellation, information = dilutions(report)
        values = {
            "header.frame_id": FRAME,
            "update": judged.update,
            "verdict": _VERDICTS[judged.verdict],
            "uav": report.drone + 1,
            "address": report.address,
            "victim": 0 if judged.victim is None else judged.victim + 1,
            "error_m": math.nan if judged.error_m is None else judged.error_m,
            "position.x": report.x,
            "position.y": report.y,
            "confidence": report.confidence,
            "path_gdop": path,
            "constellation_gdop": constellation,
            "information_dop_m": information,
            "views": report.views,
        }
        return self._letter("/events/report", stamp_ns, "sar_msgs/msg/ReportEvent", values)

    def devices(self, stamp_ns: int, time_s: float) -> Letter:
        """Once a second: where every transmitter truly is."""
        devices = self._episode.devices
        points = [device.position_at(time_s) for device in devices]
        make_point = self._store.types["geometry_msgs/msg/Point"]
        values = {
            "header.frame_id": FRAME,
            "address": np.array([device.address for device in devices], np.uint64),
            "kind": np.array([int(device.kind) for device in devices], np.uint8),
            "position": [make_point(*(float(v) for v in point)) for point in points],
            "listed": np.array([device.address in self._listed for device in devices], np.bool_),
        }
        return self._letter("/truth/devices", stamp_ns, "sar_msgs/msg/TruthDevices", values)

    def _letter(self, topic: str, stamp_ns: int, msgtype: str, values: dict[str, Any]) -> Letter:
        stamp = {"header.stamp.sec": stamp_ns // NS, "header.stamp.nanosec": stamp_ns % NS}
        return topic, serialise(self._store, blank(self._store, msgtype, {**stamp, **values}))


def to_body(attitude: Floats, velocity: Floats) -> Floats:
    """World vectors [..., 3] seen from bodies with attitudes [..., 4] (w, x, y, z, body to world)."""
    w, axis = attitude[..., :1], -attitude[..., 1:]
    t = 2.0 * np.cross(axis, velocity)
    turned: Floats = velocity + w * t + np.cross(axis, t)
    return turned
