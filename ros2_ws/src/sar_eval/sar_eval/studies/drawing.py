"""A flown mission as a picture, from its bag and its world alone."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from mcap.reader import make_reader
from numpy.typing import NDArray
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from sar_core.errors import InputError, MissingDataError, MissingDependencyError
from sar_core.geometry import BOX
from sar_eval.scenario.resources import world_path
from sar_sim.judging.scoring import CONFIDENT
from sar_sim.radio.devices import DeviceKind
from sar_sim.world.world import World, load_world

Floats = NDArray[np.float64]

VICTIM = int(DeviceKind.VICTIM)
_EVENT_KINDS = {1: "collision", 2: "collision", 3: "collision", 4: "geofence", 5: "near miss"}
_EVENT_COLOURS = {"collision": "#c1121f", "geofence": "#7b2cbf", "near miss": "#f4a100"}


@dataclass
class DrawnMission:
    """What a picture needs of a bag: true tracks [K, N, 3] with times, coverage over time, and events."""

    configuration: dict[str, Any]
    times_s: Floats
    tracks: Floats
    status: list[tuple[float, float, int]] = field(default_factory=list)
    devices: list[tuple[int, float, float]] = field(default_factory=list)
    reports: dict[int, tuple[float, float, float]] = field(default_factory=dict)
    events: list[tuple[str, float, float]] = field(default_factory=list)


def read_mission(bag: Path) -> DrawnMission:
    """Read a bag with the definitions it carries."""
    files = sorted(bag.glob("*.mcap")) if bag.is_dir() else [bag]
    if bag.name.endswith(".partial"):
        raise InputError(f"{bag}: the recording was not finished; sar-eval bag repair saves what it holds")
    if len(files) != 1 or not files[0].is_file():
        raise InputError(f"{bag}: not a recorded episode (a folder with one .mcap file)")
    times: list[float] = []
    tracks: list[list[tuple[float, float, float]]] = []
    mission = DrawnMission({}, np.empty(0), np.empty((0, 0, 3)))
    wanted = ["/truth/state", "/truth/devices", "/episode/status", "/events/collision", "/swarm/reports"]
    with open(files[0], "rb") as stream:
        reader = make_reader(stream)
        for record in reader.iter_metadata():
            if record.name == "sar_eval":
                mission.configuration = json.loads(record.metadata["configuration"])
        store = get_typestore(Stores.EMPTY)
        known: set[int] = set()
        for schema, channel, message in reader.iter_messages(topics=wanted):
            assert schema is not None
            if schema.id not in known:
                store.register(get_types_from_msg(schema.data.decode(), schema.name))
                known.add(schema.id)
            item: Any = store.deserialize_cdr(message.data, schema.name)
            if channel.topic == "/truth/state":
                times.append(message.log_time / 1e9)
                tracks.append([(p.x, p.y, p.z) for p in item.position])
            elif channel.topic == "/episode/status":
                mission.status.append((item.search_time_s, item.coverage, item.phase))
            elif channel.topic == "/truth/devices":
                mission.devices = [(int(k), p.x, p.y) for k, p in zip(item.kind, item.position, strict=True)]
            elif channel.topic == "/swarm/reports":
                mission.reports[item.address] = (item.confidence, item.position.x, item.position.y)
            elif item.phase == 2:
                mission.events.append((_EVENT_KINDS[item.kind], item.position.x, item.position.y))
    if not times or not mission.configuration:
        raise MissingDataError(f"{bag}: the bag holds no flight (no /truth/state, or no record of its configuration)")
    mission.times_s, mission.tracks = np.array(times), np.array(tracks)
    return mission


def draw_bag(bag: Path, picture: Path) -> None:
    """Draw a recorded mission into a PNG or SVG file."""
    try:
        import matplotlib
    except ImportError:
        raise MissingDependencyError(
            "matplotlib is not installed; get it with: pip install 'sar-eval[report]'"
        ) from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    mission = read_mission(bag)
    world = load_world(world_path(mission.configuration["world"]))
    figure, (plan, curve) = pyplot.subplots(1, 2, figsize=(11, 5.6), width_ratios=(1.25, 1), layout="constrained")
    _draw_plan(plan, world, mission)
    _draw_curve(curve, mission)
    config = mission.configuration
    figure.suptitle(
        f"Stage 2 ({config['tier']}): {world.name}, {config['pattern'].replace('_', ' ')}, {config['drones']} drones, "
        f"seed {config['seed']}, episode {config['episode']}"
    )
    partial = picture.with_name(f".{picture.name}.partial{picture.suffix}")
    try:
        picture.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(partial, dpi=130)
        os.replace(partial, picture)
    except (OSError, ValueError) as error:
        raise InputError(f"{picture}: cannot write the picture ({error})") from error
    finally:
        partial.unlink(missing_ok=True)
        pyplot.close(figure)


def draw_map(axes: Any, world: World, altitude_m: float) -> None:
    """Obstacles from above (brown: reaching flight altitude), the fence, and the search area."""
    from matplotlib.patches import Circle, Patch, Polygon, Rectangle

    for row in world.obstacles:
        high = row[3] + row[6] > altitude_m - 2.0
        body: Patch
        if row[0] == BOX:
            corner = (row[1] - row[4], row[2] - row[5])
            body = Rectangle(corner, 2 * row[4], 2 * row[5], angle=np.degrees(row[7]), rotation_point="center")
        else:
            body = Circle((row[1], row[2]), max(row[4], 1.0))
        body.set(facecolor="#8d5a4a" if high else "#c9c4bb", edgecolor="none", zorder=2 if high else 1)
        axes.add_patch(body)
    axes.add_patch(Polygon(world.fence, fill=False, edgecolor="#777777", linestyle=":"))
    x_min, y_min, x_max, y_max = world.area
    axes.add_patch(Rectangle((x_min, y_min), x_max - x_min, y_max - y_min, fill=False, edgecolor="#444444"))


def _draw_plan(axes: Any, world: World, mission: DrawnMission) -> None:
    draw_map(axes, world, mission.configuration["altitude_m"])
    for k in range(mission.tracks.shape[1]):
        axes.plot(mission.tracks[:, k, 0], mission.tracks[:, k, 1], linewidth=1.1, label=f"drone {k + 1}", zorder=3)
    for kind, colour in _EVENT_COLOURS.items():
        points = np.array([(x, y) for name, x, y in mission.events if name == kind])
        if len(points):
            axes.scatter(points[:, 0], points[:, 1], marker="x", s=60, color=colour, label=kind, zorder=4)
    victims = np.array([(x, y) for kind, x, y in mission.devices if kind == VICTIM])
    if len(victims):
        axes.scatter(victims[:, 0], victims[:, 1], marker="*", s=130, color="#111111", label="victim", zorder=5)
    claimed = np.array([(x, y) for confidence, x, y in mission.reports.values() if confidence > CONFIDENT])
    if len(claimed):
        ring = {"facecolors": "none", "edgecolors": "#c1121f", "linewidths": 1.5}
        axes.scatter(claimed[:, 0], claimed[:, 1], s=170, **ring, label="confident report", zorder=5)
    axes.set(xlabel="east (m)", ylabel="north (m)", aspect="equal")
    axes.set_title("tracks over the map (brown: reaches flight altitude)", fontsize=10)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8, frameon=False)


def _draw_curve(axes: Any, mission: DrawnMission) -> None:
    search = np.array([(t, 100 * c) for t, c, phase in mission.status if phase == 2])
    if len(search):
        axes.plot(search[:, 0], search[:, 1], color="#1d4e89")
    axes.axhline(95, color="#999999", linestyle="--", linewidth=0.8)
    axes.axvline(240, color="#999999", linestyle="--", linewidth=0.8)
    axes.set(xlabel="search time (s)", ylabel="area scanned (%)", ylim=(0, 102), xlim=(0, 260))
    axes.set_title("coverage (dashed: 95 % and 240 s)", fontsize=10)
    axes.grid(alpha=0.3)
