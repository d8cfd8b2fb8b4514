"""Everything wrong with a world file at once, for people who edit worlds.

libsdformat lets unknown elements, misspelt geometry, negative sizes and wrong plugin names pass, and Gazebo then runs
without them. So the rules of what our worlds may hold are written down here, and libsdformat's own check comes on
top where it is installed.
"""

from __future__ import annotations

import difflib
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from sar_core.errors import InputError
from sar_core.geometry import nearest
from sar_sim.world.sdf import Node, Report, numbers, parse_sdf, read_pose, read_shape
from sar_sim.world.world import SPAWN_CENTRE_M, World, contains, interpret, is_simple

STEP_S = 0.004
ROOMY_SPAWN_M = 3.0
SDF_COMMAND_PACKAGES = "Debian: apt-get install libsdformat-dev sdformat-sdf ignition-tools; Harmonic: gz-harmonic"

PX4_PLUGINS = {
    "gz::sim::systems::Physics": "gz-sim-physics-system",
    "gz::sim::systems::UserCommands": "gz-sim-user-commands-system",
    "gz::sim::systems::SceneBroadcaster": "gz-sim-scene-broadcaster-system",
    "gz::sim::systems::Contact": "gz-sim-contact-system",
    "gz::sim::systems::Imu": "gz-sim-imu-system",
    "gz::sim::systems::AirPressure": "gz-sim-air-pressure-system",
    "gz::sim::systems::NavSat": "gz-sim-navsat-system",
    "gz::sim::systems::Magnetometer": "gz-sim-magnetometer-system",
    "gz::sim::systems::WindEffects": "gz-sim-wind-effects-system",
}
OTHER_PLUGINS = {
    "gz::sim::systems::Sensors": "gz-sim-sensors-system",
    "gz::sim::systems::AirSpeed": "gz-sim-air-speed-system",
    "gz::sim::systems::ApplyLinkWrench": "gz-sim-apply-link-wrench-system",
    "gz::sim::systems::PythonSystemLoader": "gz-sim-python-system-loader-system",
}
PLUGIN_FILES = PX4_PLUGINS | OTHER_PLUGINS
PLUGIN_PARAMETERS = {
    "gz::sim::systems::Magnetometer": ("use_units_gauss", "use_earth_frame_ned"),
    "gz::sim::systems::WindEffects": ("force_approximation_scaling_factor", "horizontal", "vertical"),
    "gz::sim::systems::Sensors": ("render_engine", "background_color", "ambient_light"),
}


@dataclass(frozen=True)
class WorldFinding:
    """One thing to mend. `where` is the line and the element."""

    severity: Literal["error", "warning"]
    where: str
    message: str


@dataclass(frozen=True)
class Rule:
    """What an element may hold: child tags, attributes (? if optional), and its text as bool, text or n numbers."""

    children: str = ""
    attributes: str = ""
    value: int | Literal["bool", "text"] | None = None
    required: str = ""


_COLOUR = Rule(value=4)
_SCALAR = Rule(value=1)
_BOOL = Rule(value="bool")
_TEXT = Rule(value="text")

# A subset of the SDF 1.9 specification: what our worlds use. A key "parent/tag" wins over "tag".
RULES = {
    "sdf": Rule("world", "version", required="world"),
    "world": Rule(
        "physics plugin gravity magnetic_field atmosphere wind spherical_coordinates scene light model"
        " sar:mission sar:fence sar:spawn sar:volume",
        "name",
        required="physics plugin gravity magnetic_field atmosphere wind spherical_coordinates light model"
        " sar:mission sar:fence sar:spawn",
    ),
    "physics": Rule(
        "max_step_size real_time_factor real_time_update_rate",
        "name? type default?",
        required="max_step_size real_time_update_rate",
    ),
    "max_step_size": _SCALAR,
    "real_time_factor": _SCALAR,
    "real_time_update_rate": _SCALAR,
    "gravity": Rule(value=3),
    "magnetic_field": Rule(value=3),
    "atmosphere": Rule("temperature temperature_gradient pressure", "type"),
    "temperature": _SCALAR,
    "temperature_gradient": _SCALAR,
    "pressure": _SCALAR,
    "wind": Rule("linear_velocity", required="linear_velocity"),
    "linear_velocity": Rule(value=3),
    "spherical_coordinates": Rule(
        "surface_model world_frame_orientation latitude_deg longitude_deg elevation heading_deg",
        required="surface_model world_frame_orientation latitude_deg longitude_deg elevation heading_deg",
    ),
    "surface_model": _TEXT,
    "world_frame_orientation": _TEXT,
    "latitude_deg": _SCALAR,
    "longitude_deg": _SCALAR,
    "elevation": _SCALAR,
    "heading_deg": _SCALAR,
    "scene": Rule("ambient background shadows grid"),
    "ambient": _COLOUR,
    "background": _COLOUR,
    "diffuse": _COLOUR,
    "specular": _COLOUR,
    "shadows": _BOOL,
    "grid": _BOOL,
    "light": Rule("pose cast_shadows intensity direction diffuse specular", "name type"),
    "cast_shadows": _BOOL,
    "intensity": _SCALAR,
    "direction": Rule(value=3),
    "model": Rule("static pose link", "name", required="static link"),
    "static": _BOOL,
    "pose": Rule(value=6),
    "link": Rule("pose collision visual", "name", required="collision visual"),
    "collision": Rule("pose geometry sar:material", "name", required="geometry sar:material"),
    "visual": Rule("pose geometry material", "name", required="geometry"),
    "material": Rule("ambient diffuse specular"),
    "geometry": Rule("box cylinder plane"),
    "box": Rule("size", required="size"),
    "size": Rule(value=3),
    "cylinder": Rule("radius length", required="radius length"),
    "radius": _SCALAR,
    "length": _SCALAR,
    "plane": Rule("normal size", required="normal size"),
    "plane/size": Rule(value=2),
    "normal": Rule(value=3),
    "sar:mission": Rule(attributes="altitude_m area"),
    "sar:fence": Rule(attributes="ceiling_m", value="text"),
    "sar:spawn": Rule(value=4),
    "sar:volume": Rule(attributes="name? material pose size"),
    "sar:material": _TEXT,
}
_REPEATABLE = {"plugin", "light", "model", "link", "collision", "visual", "sar:spawn", "sar:volume"}


def lint_world(path: Path) -> list[WorldFinding]:
    """All findings in file order, errors and warnings mixed; an unreadable file is one finding, never an exception."""
    try:
        root, digest = parse_sdf(path)
    except InputError as unreadable:
        line, colon, message = str(unreadable).removeprefix(f"{path}:").strip().partition(": ")
        if colon and line.isdecimal():
            return [WorldFinding("error", f"line {line}: {path.name}", message)]
        return [WorldFinding("error", path.name, str(unreadable))]
    found: dict[WorldFinding, int] = {}

    def error(node: Node, message: str) -> None:
        found.setdefault(WorldFinding("error", f"line {node.line}: {node.where}", message), node.line)

    def warning(node: Node, message: str) -> None:
        found.setdefault(WorldFinding("warning", f"line {node.line}: {node.where}", message), node.line)

    if root.tag == "sdf":
        _check_element(root, None, error)
    world = interpret(root, path, digest, error)
    for node in root.all("world"):
        _check_plugins(node, error)
        _check_names(node, error)
        _check_values(node, error, warning)
        for link in (n for n in node.walk() if n.tag == "link"):
            _check_twins(link, error)
        if world is not None:
            _check_room(world, node, warning)
    return sorted(found, key=lambda finding: found[finding])


def libsdformat_check(path: Path, timeout_s: float = 60.0) -> list[WorldFinding] | None:
    """What libsdformat itself says (no findings: it accepts the file in silence), or None where it is not installed.

    Its exit code alone is not enough: versions it cannot read and elements it drops end with "Valid." and 0, and only
    the error stream tells.
    """
    for tool in ("gz", "ign"):
        command = shutil.which(tool)
        version = _run([command, "sdf", "--versions"], timeout_s) if command else None
        if command is None or version is None or not re.search(r"^\d+\.\d+", version[1], re.MULTILINE):
            continue
        code, _, errors = _run([command, "sdf", "-k", str(path)], timeout_s)
        lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip() for line in errors.splitlines()]
        # Debian's launcher misses an optional library for backtraces and says so on every call.
        lines = [line for line in lines if line and "libignition-tools-backward" not in line]
        findings = [WorldFinding("error", f"{tool} sdf -k", line) for line in lines]
        if code != 0 and not findings:
            findings = [WorldFinding("error", f"{tool} sdf -k", f"exit code {code} without a message")]
        return findings
    return None


def _run(command: list[str], timeout_s: float) -> tuple[int, str, str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return 124, "", f"no answer within {timeout_s:g} s"
    return done.returncode, done.stdout, done.stderr


def _check_element(node: Node, parent: Node | None, error: Report) -> None:
    """Tags, attributes, repetition and text of one element and all below it."""
    rule = RULES.get(f"{parent.tag}/{node.tag}" if parent else "") or RULES[node.tag]
    allowed = rule.children.split()
    counts = Counter(child.tag for child in node.children)
    for tag in rule.required.split():
        if not counts[tag]:
            error(node, f"<{tag}> is missing")
    for tag, count in counts.items():
        if count > 1 and tag in allowed and tag not in _REPEATABLE:
            error(node, f"<{tag}> appears {count} times, allowed is once")
    attributes = rule.attributes.replace("?", "").split()
    for key in node.attributes:
        if key not in attributes:
            error(node, f"attribute {key!r} is unknown{_hint(key, attributes)}")
    for key in rule.attributes.split():
        if not key.endswith("?") and not node.attributes.get(key, "").strip():
            error(node, f"attribute {key!r} is missing")
    text = node.text.strip()
    if rule.value is None and text:
        error(node, f"text {text[:40]!r} has no meaning here")
    elif rule.value == "bool" and text not in ("true", "false", "0", "1"):
        error(node, f"{node.tag} is {text!r}, allowed are true and false")
    elif rule.value == "text" and not text:
        error(node, f"{node.tag} is empty")
    elif isinstance(rule.value, int) and (text or node.tag != "pose"):
        numbers(text, rule.value, node, node.tag.removeprefix("sar:"), error)
    for child in node.children:
        if child.tag not in allowed:
            error(child, f"<{child.tag}> is not allowed in <{node.tag}>{_hint(child.tag, allowed)}")
        elif child.tag != "plugin":
            _check_element(child, node, error)


def _hint(word: str, allowed: list[str]) -> str:
    close = difflib.get_close_matches(word, allowed, 1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; allowed: {', '.join(allowed) or 'nothing'}"


def _check_plugins(world: Node, error: Report) -> None:
    """Gazebo only logs a plugin it cannot find, and flies on without the sensor."""
    names = [plugin.attributes.get("name", "") for plugin in world.all("plugin")]
    for plugin, name in zip(world.all("plugin"), names, strict=True):
        filename = plugin.attributes.get("filename", "")
        if name not in PLUGIN_FILES:
            error(plugin, f"plugin name {name!r} is unknown{_hint(name, list(PLUGIN_FILES))}")
        elif filename != PLUGIN_FILES[name]:
            error(plugin, f"plugin filename {filename!r} does not hold {name}, allowed is {PLUGIN_FILES[name]!r}")
        for key in plugin.attributes:
            if key not in ("name", "filename"):
                error(plugin, f"attribute {key!r} is unknown; allowed: name, filename")
        parameters = PLUGIN_PARAMETERS.get(name)
        for child in plugin.children if parameters is not None or name in PX4_PLUGINS else []:
            if child.tag not in (parameters or ()):
                error(child, f"<{child.tag}> is no parameter of {name}{_hint(child.tag, list(parameters or ()))}")
    for name, count in Counter(names).items():
        if count > 1 and name in PX4_PLUGINS:
            error(world, f"plugin {name} is listed {count} times")
    for name in PX4_PLUGINS:
        if name not in names:
            error(world, f"plugin {name} ({PX4_PLUGINS[name]}) is missing; PX4 needs it in the world")


def _check_names(world: Node, error: Report) -> None:
    """SDF wants siblings of any kind to have different names."""
    for parent in world.walk():
        seen: dict[str, Node] = {}
        for child in parent.children:
            name = child.attributes.get("name")
            if name is None or child.tag == "plugin":
                continue
            if name in seen:
                error(child, f"name {name!r} is already taken by <{seen[name].tag}> on line {seen[name].line}")
            seen.setdefault(name, child)


def _check_twins(link: Node, error: Report) -> None:
    """What is seen must be what is hit: each collision has a visual of the same pose and shape."""

    def outlines(tag: str) -> Counter[object]:
        return Counter((read_pose(n, _ignore), read_shape(n, _ignore)) for n in link.all(tag))

    if outlines("collision") != outlines("visual"):
        error(link, "collision and visual geometry differ; allowed is one visual of equal pose and size per collision")


def _ignore(node: Node, message: str) -> None:
    """For second readings whose problems the first one has reported."""


def _check_values(world: Node, error: Report, warning: Report) -> None:
    """Values that are well-formed but that PX4 or our own step cannot fly with."""

    def one(parent: Node, tag: str) -> tuple[Node, tuple[float, ...]] | None:
        nodes = parent.all(tag)
        values = numbers(nodes[0].text, None, nodes[0], tag, _ignore) if nodes else None
        return (nodes[0], values) if values else None

    for physics in world.all("physics"):
        step, rate = one(physics, "max_step_size"), one(physics, "real_time_update_rate")
        factor = one(physics, "real_time_factor")
        if step and step[1][0] != STEP_S:
            error(step[0], f"max_step_size {step[1][0]:g} s, allowed is {STEP_S:g} s (PX4's lockstep rate)")
        if step and rate and abs(step[1][0] * rate[1][0] - 1.0) > 1e-9:
            warning(rate[0], f"{rate[1][0]:g} steps of {step[1][0]:g} s a second do not make real time")
        if factor and factor[1][0] <= 0.0:
            error(factor[0], f"real_time_factor {factor[1][0]:g} is not positive")
    gravity, field = one(world, "gravity"), one(world, "magnetic_field")
    if gravity and not (gravity[1][:2] == (0.0, 0.0) and -9.9 < gravity[1][-1] < -9.7):
        error(gravity[0], "gravity must point down with 9.7 to 9.9 m/s2")
    if field and not 2e-5 < float(np.linalg.norm(field[1])) < 7e-5:
        error(field[0], "magnetic_field is in tesla: on Earth its length is 2e-5 to 7e-5")
    for node in world.walk():
        if node.tag == "surface_model" and node.text.strip() != "EARTH_WGS84":
            error(node, f"surface_model {node.text.strip()!r}, allowed is 'EARTH_WGS84'")


def _check_room(world: World, node: Node, warning: Report) -> None:
    """Legal, but a person would want to know."""
    for i, (x, y, z, _) in enumerate(world.spawns):
        gap, index = nearest(world.obstacles, x, y, z + SPAWN_CENTRE_M)
        if gap < ROOMY_SPAWN_M:
            obstacle = world.obstacle_names[index]
            warning(node, f"spawn {i} is {gap:.2f} m from obstacle {obstacle!r}; {ROOMY_SPAWN_M:g} m is safer")
    fenced = is_simple(world.fence)
    for name, row in zip(world.obstacle_names, world.obstacles, strict=True):
        if fenced and not contains(world.fence, float(row[1]), float(row[2])):
            warning(node, f"obstacle {name!r} lies outside the fence, where no drone flies")
        if row[3] + row[6] <= 0.0:
            warning(node, f"obstacle {name!r} lies wholly under the ground")
