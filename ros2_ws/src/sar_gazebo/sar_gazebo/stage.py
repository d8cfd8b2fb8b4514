"""Stages an episode for Gazebo: its world with the vehicles at their spawn points, contact sensors, wind and CSI.

The committed world stays the only description. What is written here is made from it for one episode, holds everything
of it unchanged but the wind and its grip, the pace and the place on Earth, and is thrown away after the flight.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sar_core.errors import ContractError, InputError
from sar_eval.px4.mavlink import ORIGIN
from sar_eval.scenario.model import Episode
from sar_gazebo.csi import KEYS, model_name
from sar_sim.world.sdf import SAR_NAMESPACE

MODEL = "sar_x500"
CONTACT_TOPIC = "/sar/contacts"
SENSOR = "sar_touch"
LOADER = ("gz-sim-python-system-loader-system", "gz::sim::systems::PythonSystemLoader")


@dataclass(frozen=True)
class StagedVehicle:
    """One PX4 instance, the model it attaches to, and the environment it is started with."""

    instance: int
    model: str
    pose: tuple[float, float, float, float]  # x, y, z of the feet, yaw; ENU
    environment: dict[str, str]


def vehicles(episode: Episode) -> list[StagedVehicle]:
    """Drone i is PX4 instance i - 1 with system id i, and stands where the embedded simulator puts it."""
    found = []
    for i, (x, y, z, yaw) in enumerate(episode.spawns.tolist()):
        environment = {
            "PX4_SIM_MODEL": "gz_x500",
            "PX4_GZ_STANDALONE": "1",
            "PX4_GZ_WORLD": episode.world.name,
            "PX4_GZ_MODEL_NAME": model_name(i),
        }
        found.append(StagedVehicle(i, model_name(i), (x, y, z, yaw), environment))
    return found


def stage(episode: Episode, speed: float = 1.0) -> str:
    """The episode's world as SDF text for Gazebo; ``speed`` is simulated over wall time."""
    ET.register_namespace("sar", SAR_NAMESPACE)
    tree = ET.parse(episode.world.path, ET.XMLParser(target=ET.TreeBuilder(insert_comments=True)))
    root = tree.getroot()
    root.insert(0, ET.Comment(f" {episode.episode_id}, staged from world {episode.world.sha256}: not to be edited. "))
    world = root.find("world")
    assert world is not None
    _set_wind(world, episode)
    _set(world, episode, "physics/real_time_factor", f"{speed:g}")
    for key, value in zip(("latitude_deg", "longitude_deg", "elevation"), ORIGIN, strict=True):
        _set(world, episode, f"spherical_coordinates/{key}", f"{value:.12g}")
    for link in world.iterfind("model/link"):
        if link.find("collision/geometry/plane") is None:
            link.append(_contact_sensor([c.attrib["name"] for c in link.iterfind("collision")]))
    for vehicle in vehicles(episode):
        world.append(_include(vehicle))
    world.append(_csi_plugin(episode))
    ET.indent(tree)
    return ET.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def describe(episode: Episode) -> str:
    """What the staged world holds, as JSON: for whoever starts PX4, the bridge and the flight."""
    told = {
        "schema_version": 1,
        "episode_id": episode.episode_id,
        "world": episode.world.name,
        "world_sha256": episode.world.sha256,
        "config_sha256": episode.config_sha256,
        "contact_topic": CONTACT_TOPIC,
        "obstacles": list(episode.world.obstacle_names),
        "vehicles": [asdict(vehicle) for vehicle in vehicles(episode)],
    }
    return json.dumps(told, indent=2) + "\n"


@dataclass(frozen=True)
class Cast:
    """Who is on stage: what the bridge must know to listen."""

    models: tuple[str, ...]
    obstacles: tuple[str, ...]
    contact_topic: str


def read_cast(path: Path) -> Cast:
    """From a stage.json that :func:`describe` wrote."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        models = tuple(str(vehicle["model"]) for vehicle in told["vehicles"])
        return Cast(models, tuple(map(str, told["obstacles"])), str(told["contact_topic"]))
    except OSError as error:
        raise InputError(f"{path}: cannot read it ({error.strerror}); `stage --out FOLDER` writes it") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ContractError(
            f"{path}: not a stage.json ({type(error).__name__}: {error}); stage the episode again"
        ) from error


def _set_wind(world: ET.Element, episode: Episode) -> None:
    """The episode's wind, and a grip that gives the hull the drag the vehicle's file says.

    WindEffects pulls at a link with factor x mass x (wind - velocity), in still air too. The rotors' own drag in the
    wind is MulticopterMotorModel's, so for an x500, whose hull has none, the factor is 0; 1 would add 2 N per m/s.
    """
    airframe = episode.vehicle.airframe
    grip = airframe.drag_linear / airframe.mass
    _set(world, episode, "wind/linear_velocity", " ".join(f"{value:.9g}" for value in episode.wind_mps))
    _set(world, episode, "plugin/force_approximation_scaling_factor", f"{grip:.9g}")


def _set(world: ET.Element, episode: Episode, path: str, text: str) -> None:
    found = world.find(path)
    if found is None:
        raise InputError(f"{episode.world.path}: no <{path.replace('/', '><')}> in the world; see worlds/README.md")
    found.text = text


def _contact_sensor(collisions: Sequence[str]) -> ET.Element:
    """All sensors share one topic: each publishes through a node of its own, and only while something touches."""
    sensor = ET.Element("sensor", name=SENSOR, type="contact")
    ET.SubElement(sensor, "always_on").text = "true"
    ET.SubElement(sensor, "update_rate").text = "50"
    contact = ET.SubElement(sensor, "contact")
    for name in collisions:
        ET.SubElement(contact, "collision").text = name
    ET.SubElement(contact, "topic").text = CONTACT_TOPIC
    return sensor


def _include(vehicle: StagedVehicle) -> ET.Element:
    x, y, z, yaw = vehicle.pose
    include = ET.Element("include")
    ET.SubElement(include, "uri").text = f"model://{MODEL}"
    ET.SubElement(include, "name").text = vehicle.model
    ET.SubElement(include, "pose").text = f"{x:.9g} {y:.9g} {z:.9g} 0 0 {yaw:.17g}"
    return include


def _csi_plugin(episode: Episode) -> ET.Element:
    plugin = ET.Element("plugin", filename=LOADER[0], name=LOADER[1])
    ET.SubElement(plugin, "module_name").text = "sar_gazebo.system"
    values = (
        json.dumps(episode.plain_scenario(), sort_keys=True),
        str(episode.seed),
        str(episode.index),
        episode.config_sha256,
    )
    for key, value in zip(KEYS, values, strict=True):
        ET.SubElement(plugin, key).text = value
    return plugin


def write_stage(episode: Episode, folder: Path) -> None:
    """stage.sdf and stage.json of an episode, in a folder."""
    text, told = stage(episode), describe(episode)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stage.sdf").write_text(text, encoding="utf-8")
    (folder / "stage.json").write_text(told, encoding="utf-8")
