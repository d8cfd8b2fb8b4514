"""One recorded episode as arrays: everything the metrics need, decoded with the definitions the bag itself carries.

Only the topics below are decoded. What a bag of the contract must hold is demanded with a clear error; what an episode
may lack (radio topics when flown without radio, events when nothing touched) is an empty table.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_analysis.bags.arrays import (
    Devices,
    Events,
    Gates,
    Grid,
    HealthSeries,
    Hearings,
    Info,
    Reports,
    SetpointSeries,
    StatusSeries,
    TruthSeries,
)
from sar_analysis.bags.cdr import Columns, decode, has_field
from sar_analysis.bags.chunks import REPAIR, Content, read_content
from sar_analysis.bags.scene import RECORD as WORLD_RECORD
from sar_analysis.bags.scene import Scene, demand_same_world, read_scene
from sar_core.errors import ContractError, MissingDataError

SCHEMA_VERSIONS = ("1", "2")
RECORD = "sar_eval"
ROUTES_RECORD = "routes"
REPAIRED_RECORD = "repaired"
OLDER = "older bag: it does not tell what the safety layer was asked and did, nor planned routes"
PARTIAL = ".partial"
FARTHEST_M = 1e5
"""Worlds are smaller than this; a position or a border beyond it is a broken number."""
LARGEST_AREA_M2 = 1e8
SMALLEST_SIDE_M = 5.0

Floats = NDArray[np.float64]

_HEADER = ("header.stamp.sec", "header.stamp.nanosec")
_INFO_TEXTS = ("episode_id", "tier", "world", "world_sha256", "config_sha256", "vehicle", "pattern")
_INFO_NUMBERS = ("seed", "episode", "drones", "duration_s", "altitude_m", "speed_mps", "wind_mps")
_STATUS = ("phase", "search_time_s", "coverage", "collisions", "near_misses", "airborne", "valid")
_ISSUES = ("issues", "found", "displaced", "decoy_alarms")
_EVENT = ("event_id", "kind", "phase", "uav", "other_uav", "min_distance_m")
_EVENT_TIMES = ("begin.sec", "begin.nanosec", "end.sec", "end.nanosec")
_REPORT = ("uav", "address", "confidence", "views", "observations", "speed_mps")
_DILUTIONS = ("path_gdop", "constellation_gdop", "information_dop_m")
_OLD_DILUTION = "gdop"
_HEALTH = ("uav", "phase", "failsafe", "armed", "battery_fraction")
_UAV_DETECTION = re.compile(r"/uav_(\d+)/detection")
_GUARDED = ("band", "fence")
_ASKED = ("wanted", "limit_excess")
_UAV_GATE = re.compile(r"/uav_(\d+)/gate")


class SchemaVersionError(ContractError):
    """A bag of another contract: older, newer, or nobody's."""


class UnfinishedError(ContractError):
    """A recording that never came to its end."""


@dataclass(frozen=True)
class Bag:
    """One episode. devices is None where it was flown without radio, world where the bag is older than that record.

    notes say what a reader should know.
    """

    path: Path
    configuration: dict[str, Any]
    versions: dict[str, str]
    notes: tuple[str, ...]
    info: Info
    truth: TruthSeries
    status: StatusSeries
    events: Events
    reports: Reports
    devices: Devices | None
    hearings: Hearings
    health: tuple[HealthSeries, ...]
    gates: Gates
    grid: Grid
    world: Scene | None
    setpoints: tuple[SetpointSeries, ...]
    """One per drone; empty where the bag holds none."""
    routes: tuple[Floats, ...] | None
    """Every drone's planned waypoints [K, 2], ENU; None for patterns that decide as they go, and in older bags."""
    layout: int | None = None
    """The number of its layout in the episode set; None for a bag that does not tell."""


def locate(path: Path) -> Path:
    """The one MCAP file of a finished bag folder."""
    if not path.exists():
        raise MissingDataError(f"{path}: no such bag; expected a rosbag2 folder")
    if not path.is_dir():
        raise MissingDataError(f"{path}: not a folder; expected a rosbag2 folder with metadata.yaml and one .mcap file")
    if path.name.endswith(PARTIAL):
        raise UnfinishedError(f"{path}: the recording was not finished; {REPAIR}")
    files = sorted(path.glob("*.mcap"))
    if not files:
        raise MissingDataError(f"{path}: no .mcap file inside; expected a rosbag2 folder with one")
    if len(files) > 1:
        raise ContractError(f"{path}: {len(files)} .mcap files inside; expected one per episode")
    if not (path / "metadata.yaml").is_file():
        raise ContractError(f"{path}: metadata.yaml is missing; the folder is not a whole rosbag2 bag")
    return files[0]


def read_bag(path: Path) -> Bag:
    """Read one bag folder whole; a bag that breaks the contract is refused with the reason."""
    content = read_content(locate(path))
    facts = _facts(content)
    table = _Tables(content)
    notes = [f"repaired bag: {path.name} may lack messages"] if REPAIRED_RECORD in content.metadata else []
    notes += [OLDER] if facts["schema_version"] == "1" else []
    info, events = _info(table), _events(table)
    truth = _truth(table, info.drones)
    world = read_scene(content.metadata.get(WORLD_RECORD), str(content.file))
    if world is not None:
        demand_same_world(world, info, truth, events, str(content.file))
    return Bag(
        path=path,
        configuration=_configuration(content, facts),
        versions={key: facts[key] for key in ("version", "numpy") if key in facts},
        layout=int(facts["layout"]) if facts.get("layout", "").isdecimal() else None,
        notes=tuple(notes),
        info=info,
        truth=truth,
        status=_status(table),
        events=events,
        reports=_reports(table),
        devices=_devices(table),
        hearings=_hearings(table),
        health=_health(table, info.drones),
        gates=_gates(table),
        grid=_grid(table),
        world=world,
        setpoints=_setpoints(table, info.drones),
        routes=_routes(content, info.drones),
    )


def _facts(content: Content) -> dict[str, str]:
    facts = content.metadata.get(RECORD)
    if facts is None:
        known = ", ".join(sorted(content.metadata)) or "none"
        raise ContractError(f"{content.file}: no metadata record {RECORD!r} (there is {known}); not an episode's bag")
    version = facts.get("schema_version", "none")
    if version not in SCHEMA_VERSIONS:
        known = " and ".join(SCHEMA_VERSIONS)
        raise SchemaVersionError(f"{content.file}: schema_version is {version}; this analysis reads {known}")
    return dict(facts)


def _configuration(content: Content, facts: dict[str, str]) -> dict[str, Any]:
    try:
        found = json.loads(facts["configuration"])
    except (KeyError, ValueError) as error:
        raise ContractError(f"{content.file}: metadata key 'configuration' is missing or no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ContractError(f"{content.file}: metadata key 'configuration' holds {type(found).__name__}, not an object")
    return found


class _Tables:
    """Decodes topics of one file on demand."""

    def __init__(self, content: Content) -> None:
        self.content = content

    def names(self, pattern: re.Pattern[str]) -> list[str]:
        return [name for name in self.content.topics if pattern.fullmatch(name)]

    def holds(self, topic: str, path: str) -> bool:
        """Whether a topic's messages, by the definition in the bag, have a field of this name."""
        found = self.content.topics.get(topic)
        return found is not None and has_field(found, path)

    def optional(self, topic: str, *paths: str) -> Columns | None:
        found = self.content.topics.get(topic)
        if found is None or not len(found.starts):
            return None
        return decode(self.content, found, (*_HEADER, *paths))

    def required(self, topic: str, *paths: str) -> Columns:
        columns = self.optional(topic, *paths)
        if columns is None:
            raise MissingDataError(f"{self.content.file}: no message on {topic}, which every episode's bag holds")
        return columns

    def demand(self, columns: Columns, path: str, low: float, high: float) -> None:
        """Refuse numbers that no episode can have; a figure made of them would be silent nonsense."""
        values = columns.numbers[path]
        sound = ((values >= low) & (values <= high)).all(axis=1)
        if not sound.all():
            row = int(np.argmin(sound))
            when = columns.stamps("header.stamp")[row] / 1e9
            told = f"{columns.topic}: {path} is {values[row].tolist()} at {when:.3f} s"
            raise ContractError(f"{self.content.file}: {told}; allowed is {low:g} to {high:g}")


def _info(table: _Tables) -> Info:
    texts, numbers = _INFO_TEXTS, _INFO_NUMBERS
    c = table.required("/episode/info", *texts, *numbers, "area_min", "area_max")
    for corner in ("area_min", "area_max"):
        table.demand(c, corner, -FARTHEST_M, FARTHEST_M)
    low, high = c.numbers["area_min"][0], c.numbers["area_max"][0]
    area = (float(low[0]), float(low[1]), float(high[0]), float(high[1]))
    width, height = area[2] - area[0], area[3] - area[1]
    if min(width, height) < SMALLEST_SIDE_M or width * height > LARGEST_AREA_M2:
        wanted = f"sides of at least {SMALLEST_SIDE_M:g} m, at most {LARGEST_AREA_M2:g} m^2"
        raise ContractError(f"{table.content.file}: /episode/info: the search area is {area}; expected {wanted}")
    values: dict[str, Any] = {name: c.scalar(name)[0].item() for name in numbers}
    values |= {name: c.strings[name][0] for name in texts}
    return Info(**values, area_m=area)


def _truth(table: _Tables, drones: int) -> TruthSeries:
    c = table.required("/truth/state", "position", "velocity", "orientation", "angular_velocity")
    position = c.vectors("position", 3)
    if position.shape[1] != drones:
        name = table.content.file
        raise ContractError(f"{name}: /truth/state holds {position.shape[1]} drones, /episode/info says {drones}")
    stamps = c.stamps("header.stamp")
    for path, bound in (("position", FARTHEST_M), ("velocity", 1e3), ("orientation", 1.001), ("angular_velocity", 1e3)):
        table.demand(c, path, -bound, bound)
    if len(stamps) > 1 and int(np.diff(stamps).min()) <= 0:
        raise ContractError(f"{table.content.file}: /truth/state runs backwards or repeats a stamp")
    return TruthSeries(
        stamps,
        position,
        c.vectors("velocity", 3),
        c.vectors("orientation", 4),
        c.vectors("angular_velocity", 3),
    )


def _status(table: _Tables) -> StatusSeries:
    told = _ISSUES if table.holds("/episode/status", _ISSUES[0]) else ()
    c = table.required("/episode/status", *_STATUS, *told, "invalid_reason")
    columns = {name: c.scalar(name) for name in _STATUS}
    stamps = c.stamps("header.stamp")
    table.demand(c, "search_time_s", 0.0, float(stamps.max()) / 1e9)
    table.demand(c, "coverage", 0.0, 1.0)
    for name in ("phase", "collisions", "near_misses", "airborne"):
        columns[name] = columns[name].astype(np.int64)
    issues = np.stack([c.scalar(name).astype(np.int64) for name in told], axis=1) if told else None
    return StatusSeries(stamps, **columns, invalid_reason=tuple(c.strings["invalid_reason"]), issues=issues)


def _events(table: _Tables) -> Events:
    c = table.optional("/events/collision", *_EVENT, *_EVENT_TIMES, "position", "obstacle")
    if c is None:
        none = np.empty(0, np.int64)
        return Events(none, none, none, none, none, none, none, none, np.empty(0), np.empty((0, 3)), ())
    event_id, kind, phase, uav, other = (c.scalar(name).astype(np.int64) for name in _EVENT[:-1])
    return Events(
        c.stamps("header.stamp"),
        event_id,
        kind,
        phase,
        uav,
        other,
        c.stamps("begin"),
        c.stamps("end"),
        c.scalar("min_distance_m"),
        c.numbers["position"],
        tuple(c.strings["obstacle"]),
    )


def _reports(table: _Tables) -> Reports:
    topic = "/swarm/reports"
    told = (_OLD_DILUTION,) if table.holds(topic, _OLD_DILUTION) else _DILUTIONS
    c = table.optional(topic, *_REPORT, *told, "position", "covariance")
    if c is None:
        none, blank = np.empty(0, np.int64), np.empty(0)
        address = np.empty(0, np.uint64)
        empty = np.empty((0, 3)), np.empty((0, 4))
        return Reports(none, none, address, *empty, blank, blank, blank, blank, none, none, blank)
    table.demand(c, "position", -1e9, 1e9)
    table.demand(c, "confidence", 0.0, 1.0)
    path_gdop = c.scalar(told[0])
    constellation_gdop, information_dop = (
        c.scalar(name) if name in told else np.full(c.rows, np.nan) for name in _DILUTIONS[1:]
    )
    return Reports(
        c.stamps("header.stamp"),
        c.scalar("uav").astype(np.int64),
        c.scalar("address"),
        c.numbers["position"],
        c.numbers["covariance"],
        c.scalar("confidence"),
        path_gdop,
        constellation_gdop,
        information_dop,
        c.scalar("views").astype(np.int64),
        c.scalar("observations").astype(np.int64),
        c.scalar("speed_mps"),
    )


def _devices(table: _Tables) -> Devices | None:
    told = ("listed",) if table.holds("/truth/devices", "listed") else ()
    c = table.optional("/truth/devices", "address", "kind", "position", *told)
    if c is None:
        return None
    address = c.numbers["address"]
    if (address != address[0]).any():
        raise ContractError(f"{table.content.file}: /truth/devices changes its list of transmitters within an episode")
    table.demand(c, "position", -FARTHEST_M, FARTHEST_M)
    count = address.shape[1]
    position = c.numbers["position"].reshape(c.rows, count, 3)
    return Devices(
        c.stamps("header.stamp"),
        address[0].astype(np.uint64),
        c.numbers["kind"][0].astype(np.int64),
        position,
        c.numbers["listed"][0].astype(np.bool_) if told else None,
    )


def _hearings(table: _Tables) -> Hearings:
    columns = [table.optional(name, "uav", "address", "usable") for name in table.names(_UAV_DETECTION)]
    found = [c for c in columns if c is not None]
    if not found:
        none = np.empty(0, np.int64)
        return Hearings(none, none, np.empty(0, np.uint64), np.empty(0, np.bool_))
    stamps = np.concatenate([c.stamps("header.stamp") for c in found])
    order = np.argsort(stamps, kind="stable")
    uav, address, usable = (
        np.concatenate([c.scalar(name) for c in found])[order] for name in ("uav", "address", "usable")
    )
    return Hearings(stamps[order], uav.astype(np.int64), address, usable.astype(np.bool_))


def _health(table: _Tables, drones: int) -> tuple[HealthSeries, ...]:
    found = []
    for i in range(drones):
        topic = f"/uav_{i + 1}/status"
        told = _GUARDED if table.holds(topic, _GUARDED[0]) else ()
        c = table.required(topic, *_HEALTH, *told)
        band, fence = (c.scalar(name).astype(np.int64) for name in told) if told else (None, None)
        table.demand(c, "battery_fraction", 0.0, 1.0)
        found.append(
            HealthSeries(
                c.stamps("header.stamp"),
                c.scalar("phase").astype(np.int64),
                c.scalar("failsafe").astype(np.int64),
                c.scalar("armed"),
                c.scalar("battery_fraction").astype(np.float64),
                band,
                fence,
            )
        )
    return tuple(found)


def _setpoints(table: _Tables, drones: int) -> tuple[SetpointSeries, ...]:
    found = []
    for i in range(drones):
        topic = f"/uav_{i + 1}/setpoint"
        told = _ASKED if table.holds(topic, _ASKED[0]) else ()
        c = table.optional(topic, "velocity", *told)
        if c is None:
            return ()
        wanted, excess = (c.numbers["wanted"], c.scalar("limit_excess")) if told else (None, None)
        found.append(SetpointSeries(c.stamps("header.stamp"), c.numbers["velocity"], wanted, excess))
    return tuple(found)


def _routes(content: Content, drones: int) -> tuple[Floats, ...] | None:
    record = content.metadata.get(ROUTES_RECORD)
    if record is None:
        return None
    try:
        routes = tuple(np.asarray(route, np.float64).reshape(-1, 2) for route in json.loads(record["routes"]))
        sound = all(len(route) and np.isfinite(route).all() for route in routes)
    except (KeyError, TypeError, ValueError) as error:
        raise ContractError(f"{content.file}: metadata record {ROUTES_RECORD!r} lacks or mistypes {error}") from error
    if len(routes) != drones or not sound:
        told = f"{content.file}: metadata record {ROUTES_RECORD!r}"
        raise ContractError(f"{told} must hold a list of [x, y] for each of {drones} drones, found {len(routes)} lists")
    return routes


def _gates(table: _Tables) -> Gates:
    columns = [table.optional(name, "uav", "address", "open", "state", "coherence") for name in table.names(_UAV_GATE)]
    found = [c for c in columns if c is not None]
    if not found:
        none = np.empty(0, np.int64)
        return Gates(none, none, np.empty(0, np.uint64), np.empty(0, np.bool_), none, np.empty(0))
    stamps = np.concatenate([c.stamps("header.stamp") for c in found])
    order = np.argsort(stamps, kind="stable")

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([c.scalar(name) for c in found])[order]

    return Gates(
        stamps[order],
        joined("uav").astype(np.int64),
        joined("address"),
        joined("open"),
        joined("state").astype(np.int64),
        joined("coherence").astype(np.float64),
    )


def _grid(table: _Tables) -> Grid:
    c = table.required("/swarm/coverage", "info.resolution", "info.width", "info.height", "data")
    shape = (int(c.scalar("info.height")[0]), int(c.scalar("info.width")[0]))
    if shape[0] * shape[1] != c.numbers["data"].shape[1]:
        raise ContractError(
            f"{table.content.file}: /swarm/coverage: {shape} cells stated, {c.numbers['data'].shape[1]} sent"
        )
    scanned = (c.numbers["data"] > 0).reshape(c.rows, *shape)
    return Grid(c.stamps("header.stamp"), float(c.scalar("info.resolution")[0]), scanned)
