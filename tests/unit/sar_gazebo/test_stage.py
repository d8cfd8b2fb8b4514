"""Staged worlds: everything of the committed world, vehicles on their spawns, sensors, wind; and the models."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sar_core.errors import ContractError, InputError
from sar_eval.px4.mavlink import ORIGIN
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_gazebo.csi import TIER, read_episode
from sar_gazebo.stage import CONTACT_TOPIC, SENSOR, describe, read_cast, stage, vehicles, write_stage
from sar_sim.world.sdf import Node, parse_sdf
from sar_sim.world.worldlint import PX4_PLUGINS, SDF_COMMAND_PACKAGES, libsdformat_check, lint_world

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "ros2_ws" / "src" / "sar_gazebo"
PLACE = ("latitude_deg", "longitude_deg", "elevation")
WORLDS = ("open_field", "village", "forest", "collapsed_block")
X500_STANDIN = """<?xml version="1.0"?>
<sdf version="1.9"><model name="x500">
  <link name="base_link"><pose>0 0 0.24 0 0 0</pose><collision name="base_link_collision_0">
    <geometry><box><size>0.35 0.35 0.05</size></box></geometry></collision></link>
</model></sdf>
"""


def episode_in(world: str, **scenario: Any) -> Any:
    return prepare(Scenario(world=world, **scenario), 2, 4, TIER)


def staged_tree(tmp_path: Path, episode: Any) -> tuple[Path, Node]:
    path = tmp_path / "stage.sdf"
    path.write_text(stage(episode), encoding="utf-8")
    return path, parse_sdf(path)[0]


def plain(node: Node) -> Any:
    """An element without its line: tag, attributes, words, children."""
    return node.tag, tuple(sorted(node.attributes.items())), node.text.split(), [plain(c) for c in node.children]


def one(root: Node, tag: str) -> Node:
    (found,) = (node for node in root.walk() if node.tag == tag)
    return found


def strip(node: Node, drop: Any) -> None:
    node.children = [c for c in node.children if not drop(c)]
    for child in node.children:
        strip(child, drop)


@pytest.mark.parametrize("world", WORLDS)
def test_a_staged_world_is_the_committed_one_and_what_was_added(world: str, tmp_path: Path) -> None:
    episode = episode_in(world)
    _, tree = staged_tree(tmp_path, episode)
    committed, _ = parse_sdf(episode.world.path)
    wind, grip = (one(tree, tag) for tag in ("linear_velocity", "force_approximation_scaling_factor"))
    assert [float(v) for v in wind.text.split()] == pytest.approx(episode.wind_mps.tolist())
    assert float(grip.text) == 0.0, "the hull of an x500 has no drag of its own"
    assert float(one(tree, "real_time_factor").text) == 1.0
    place = [float(one(tree, tag).text) for tag in PLACE]
    assert place == pytest.approx(list(ORIGIN), abs=1e-9), "all tiers fly at one place on Earth"
    for root in (tree, committed):
        for tag in ("linear_velocity", "force_approximation_scaling_factor", "real_time_factor", *PLACE):
            one(root, tag).text = ""

    def added(node: Node) -> bool:
        sensor = node.tag == "sensor" and node.attributes["name"] == SENSOR
        loader = node.tag == "plugin" and node.attributes["name"].endswith("PythonSystemLoader")
        return sensor or loader or node.tag == "include"

    strip(tree, added)
    assert plain(tree) == plain(committed)


def test_a_hull_with_drag_feels_the_wind(tmp_path: Path) -> None:
    episode = episode_in("open_field")
    airframe = episode.vehicle.airframe._replace(drag_linear=1.0)
    _, tree = staged_tree(tmp_path, replace(episode, vehicle=replace(episode.vehicle, airframe=airframe)))
    assert float(one(tree, "force_approximation_scaling_factor").text) * airframe.mass == pytest.approx(1.0)


@pytest.mark.parametrize("world", WORLDS)
def test_every_body_but_the_ground_feels_touch(world: str, tmp_path: Path) -> None:
    episode = episode_in(world)
    _, tree = staged_tree(tmp_path, episode)
    felt = 0
    for link in (n for n in tree.walk() if n.tag == "link"):
        solid = [c.attributes["name"] for c in link.all("collision") if not any(n.tag == "plane" for n in c.walk())]
        sensors = link.all("sensor")
        assert len(sensors) == (1 if solid else 0)
        for sensor in sensors:
            (contact,) = sensor.all("contact")
            assert [c.text for c in contact.all("collision")] == solid
            assert [t.text for t in contact.all("topic")] == [CONTACT_TOPIC]
            felt += len(solid)
    assert felt == len(episode.world.obstacles)


def test_vehicles_stand_where_the_embedded_simulator_puts_them(tmp_path: Path) -> None:
    episode = episode_in("village", drones=5)
    _, tree = staged_tree(tmp_path, episode)
    includes = [{c.tag: c.text for c in n.children} for n in tree.walk() if n.tag == "include"]
    assert [i["name"] for i in includes] == [f"uav_{i}" for i in range(1, 6)]
    assert {i["uri"] for i in includes} == {"model://sar_x500"}
    poses = [[float(v) for v in i["pose"].split()] for i in includes]
    assert [[x, y, z, yaw] for x, y, z, _, _, yaw in poses] == episode.spawns.tolist()
    for i, vehicle in enumerate(vehicles(episode)):
        assert (vehicle.instance, vehicle.environment["PX4_GZ_MODEL_NAME"]) == (i, f"uav_{i + 1}")
        assert vehicle.environment["PX4_GZ_WORLD"] == "village"


def test_the_system_reads_back_what_was_staged(tmp_path: Path) -> None:
    episode = prepare(Scenario(episode_set="village-v2", drones=3), 1, 9, TIER)
    _, tree = staged_tree(tmp_path, episode)
    (plugin,) = (n for n in tree.walk() if n.attributes.get("name", "").endswith("PythonSystemLoader"))
    values = {child.tag: child.text for child in plugin.children}
    assert values["module_name"] == "sar_gazebo.system"
    assert (PACKAGE / "sar_gazebo" / "system.py").is_file()
    assert read_episode(lambda key: values.get(key, "")).config_sha256 == episode.config_sha256


def test_another_vehicle_is_refused() -> None:
    with pytest.raises(InputError, match="vehicle = sihsim_quadx: tier gazebo flies x500 only"):
        stage(episode_in("open_field", vehicle="sihsim_quadx", speed_mps=3.0))


def test_a_cast_comes_back_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    write_stage(episode_in("open_field", drones=2), tmp_path / "new" / "stage")
    cast = read_cast(tmp_path / "new" / "stage" / "stage.json")
    assert (cast.models, cast.obstacles, cast.contact_topic) == (("uav_1", "uav_2"), (), CONTACT_TOPIC)
    told = json.loads(describe(episode_in("village")))
    assert told["obstacles"] and told["vehicles"][3]["model"] == "uav_4"
    with pytest.raises(InputError, match="cannot read it"):
        read_cast(tmp_path / "stage.json")
    (tmp_path / "stage.json").write_text("{}")
    with pytest.raises(ContractError, match="stage the episode again"):
        read_cast(tmp_path / "stage.json")


def test_the_server_configuration_has_what_our_worlds_have() -> None:
    root = ET.parse(PACKAGE / "server.config").getroot()
    plugins = {p.attrib["name"]: p for p in root.iter("plugin")}
    assert {name: p.attrib["filename"] for name, p in plugins.items()} == PX4_PLUGINS
    assert all((p.attrib["entity_type"], p.attrib["entity_name"]) == ("world", "*") for p in plugins.values())
    world, _ = parse_sdf(ROOT / "worlds" / "open_field.sdf")
    for node in (n for n in world.walk() if n.tag == "plugin"):
        wanted = [(c.tag, c.text.strip()) for c in node.children]
        assert [(c.tag, (c.text or "").strip()) for c in plugins[node.attributes["name"]]] == wanted


def test_the_wrapper_lets_the_wind_in_and_tells_the_truth() -> None:
    model = ET.parse(PACKAGE / "models" / "sar_x500" / "model.sdf").getroot().find("model")
    assert model is not None and model.attrib["name"] == "sar_x500"
    assert model.findtext("enable_wind") == "true"
    assert [(i.attrib.get("merge"), i.findtext("uri")) for i in model.iter("include")] == [("true", "model://x500")]
    (publisher,) = model.iter("plugin")
    assert publisher.attrib["name"] == "gz::sim::systems::PosePublisher"
    said = {child.tag: child.text for child in publisher}
    assert (said["publish_model_pose"], said["publish_link_pose"], said["use_pose_vector_msg"]) == ("true",) * 3
    config = ET.parse(PACKAGE / "models" / "sar_x500" / "model.config").getroot()
    assert (config.findtext("name"), config.findtext("sdf")) == ("sar_x500", "model.sdf")


def test_committed_worlds_keep_our_linter_silent() -> None:
    for world in WORLDS:
        assert [f for f in lint_world(ROOT / "worlds" / f"{world}.sdf") if f.severity == "error"] == []


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Our model and a stand-in for PX4's x500, where libsdformat looks for model:// names."""
    if libsdformat_check(ROOT / "worlds" / "open_field.sdf") is None:
        pytest.skip(f"no `gz sdf` or `ign sdf` command here; to get it: {SDF_COMMAND_PACKAGES}")
    folder = tmp_path / "models"
    for name, text in (("x500", X500_STANDIN), ("sar_x500", (PACKAGE / "models/sar_x500/model.sdf").read_text())):
        (folder / name).mkdir(parents=True)
        (folder / name / "model.sdf").write_text(text)
        config = (PACKAGE / "models" / "sar_x500" / "model.config").read_text().replace("sar_x500", name)
        (folder / name / "model.config").write_text(config)
    for variable in ("SDF_PATH", "GZ_SIM_RESOURCE_PATH"):
        monkeypatch.setenv(variable, str(folder))
    return folder


def test_libsdformat_accepts_the_wrapper_and_a_staged_world(models: Path, tmp_path: Path) -> None:
    assert libsdformat_check(models / "sar_x500" / "model.sdf") == []
    path, _ = staged_tree(tmp_path, episode_in("open_field", drones=2))
    assert libsdformat_check(path) == []


def test_libsdformat_misses_the_wrapped_vehicle(models: Path) -> None:
    os.rename(models / "x500", models / "x501")
    assert libsdformat_check(models / "sar_x500" / "model.sdf")
