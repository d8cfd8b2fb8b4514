"""What this machine has and lacks, what each thing is for, and which tier it could fly.

Nothing probed is imported: a broken or environment-changing package must not take the doctor down.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sar_core.errors import MissingDependencyError
from sar_eval.px4.binary import find_px4
from sar_eval.px4.gazebo import find_models, missing_modules

SCHEMA_VERSION = 1
HOW_TO_GET_ROS = (
    "make ros in a checkout, or pip install 'sar-eval[ros]', or install ROS 2 Jazzy and source its setup file"
)
HOW_TO_GET_MESSAGES = (
    "make ros in a checkout, or sar-eval msgs build, or on a ROS 2 installation colcon build in ros2_ws"
)
COMMAND_TIMEOUT_S = 10.0
MIN_FREE_GB = 1.0
MIN_PYTHON = (3, 11)


@dataclass(frozen=True)
class Probe:
    """One thing looked for. ``version`` is what was seen: a version, a place or an amount; empty if unknown."""

    name: str
    found: bool
    version: str
    purpose: str
    how_to_get: str
    required: bool = False


def diagnose() -> list[Probe]:
    """Probes everything, in the order a reader wants it: what must be there, ROS, PX4, Gazebo, extras, host."""
    return [_python(), *_default_install(), *_ros(), *_px4(), *_gazebo(), *_extras(), *_docker(), *_host()]


def best_tier(probes: Iterable[Probe]) -> tuple[str, str]:
    """The highest tier whose tools are all there, and why not a higher one.

    embedded needs nothing but the default install, sih a PX4 binary and a MAVLink client, gazebo also Gazebo
    Harmonic with its Python modules, and PX4's models for it.
    """
    found = {p.name for p in probes if p.found}
    sih_needs = ("PX4", "pymavlink")
    gazebo_needs = (*sih_needs, "Gazebo", "Gazebo Python modules", "PX4's Gazebo models")
    sih_lacks = [n for n in sih_needs if n not in found]
    gazebo_lacks = [n for n in gazebo_needs if n not in found]
    if not gazebo_lacks:
        return "gazebo", "PX4 with its Gazebo models, pymavlink and Gazebo with its Python modules were found"
    if not sih_lacks:
        return "sih", f"PX4 and pymavlink were found; gazebo also needs {_listed(gazebo_lacks)}"
    return "embedded", f"needs nothing more; sih also needs {_listed(sih_lacks)}"


def healthy(probes: Iterable[Probe]) -> bool:
    """Whether everything the default install promises is there."""
    return all(p.found for p in probes if p.required)


def as_json(probes: Sequence[Probe]) -> str:
    """For machines: one JSON document on one line."""
    tier, why = best_tier(probes)
    return json.dumps(
        {
            "schema_version": SCHEMA_VERSION,
            "healthy": healthy(probes),
            "best_tier": tier,
            "why": why,
            "probes": [asdict(p) for p in probes],
        }
    )


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _python() -> Probe:
    return Probe(
        "Python",
        tuple(int(v) for v in platform.python_version_tuple()[:2]) >= MIN_PYTHON,
        platform.python_version(),
        "everything",
        f"Python {'.'.join(map(str, MIN_PYTHON))} or newer",
        required=True,
    )


def _default_install() -> list[Probe]:
    purposes = {
        "numpy": "arrays and random streams",
        "numba": "the compiled simulator",
        "scipy": "numerics",
        "pydantic": "checked configuration",
        "yaml": "configuration files",
        "rosbags": "ROS 2 messages without ROS",
        "mcap": "bag files",
        "typer": "the command line",
        "rich": "tables and progress bars",
    }
    remedy = "pip install sar-eval"
    return [
        _module(name, purpose, remedy, distributions=("PyYAML" if name == "yaml" else name,), required=True)
        for name, purpose in purposes.items()
    ]


def _ros() -> list[Probe]:
    ros = "install ROS 2 Jazzy and source its setup file"
    ros2 = shutil.which("ros2")
    return [
        _module(
            "rclpy", "flying an episode as ROS 2 nodes", HOW_TO_GET_ROS, distributions=("rclpy", "ros-jazzy-rclpy")
        ),
        _module("launch", "ROS 2 launch files", ros, built=True),
        _module("launch_ros", "ROS 2 launch files", ros, built=True),
        Probe(
            "ros2 CLI", ros2 is not None, os.environ.get("ROS_DISTRO", "") if ros2 else "", "ros2 bag, ros2 launch", ros
        ),
        _module(
            "sar_msgs.msg",
            "our messages as ROS 2 types",
            HOW_TO_GET_MESSAGES,
            name="sar_msgs",
            built=True,
        ),
    ]


def _px4() -> list[Probe]:
    binary = os.environ.get("PX4_BIN") or "px4"
    place = shutil.which(binary)
    return [
        Probe(
            "PX4",
            place is not None,
            place or "",
            "the sih and gazebo tiers: the real autopilot",
            f"PX4_BIN={binary} is not an executable: point it at a px4 binary"
            if os.environ.get("PX4_BIN")
            else "the px4 package or a px4io/px4-sitl image; put px4 on PATH or set PX4_BIN",
        ),
        _module("pymavlink", "setpoints to PX4", "pip install pymavlink"),
        _module("mavsdk", "an outside client for PX4 and for sar-eval sitl", "pip install mavsdk"),
    ]


def _gazebo() -> list[Probe]:
    harmonic = "install Gazebo Harmonic (gz-sim8)"
    gz = _command_output("gz", "sim", "--versions")
    sdf = _command_output("ign", "sdf", "--versions") or _command_output("gz", "sdf", "--versions")
    return [
        Probe("Gazebo", bool(gz), gz, "the gazebo tier", harmonic),
        Probe(
            "Gazebo Python modules",
            not missing_modules(),
            "",
            "the gazebo tier's sensor plugin, and what hears it",
            f"{harmonic} with its Python modules; missing: {', '.join(missing_modules())}",
        ),
        _px4_models(),
        Probe(
            "libsdformat",
            bool(sdf),
            sdf,
            "a second opinion in world check",
            "apt-get install sdformat-sdf ignition-tools, or Gazebo Harmonic",
        ),
    ]


def _px4_models() -> Probe:
    name, purpose = "PX4's Gazebo models", "the gazebo tier: the x500"
    how_to_get = "the px4-gazebo package; or set PX4_GZ_MODELS to the folder of PX4's models"
    try:
        return Probe(name, True, str(find_models(find_px4())), purpose, how_to_get)
    except MissingDependencyError:
        return Probe(name, False, "", purpose, how_to_get)


def _extras() -> list[Probe]:
    return [
        _module("matplotlib", "figures", "pip install 'sar-eval[report]'"),
        _module("distributed", "campaigns on a dask cluster", "pip install 'sar-eval[cluster]'"),
        _module("mujoco", "the peer in bench", "pip install 'sar-eval[bench]'"),
        _module("ompl", "the planner's peer in bench", "pip install 'sar-eval[bench]'"),
    ]


def _docker() -> list[Probe]:
    client = _command_output("docker", "--version").removeprefix("Docker version ")
    engine = _command_output("docker", "version", "--format", "{{.Server.Version}}")
    purpose = "ready-made PX4 and Gazebo images"
    return [
        Probe("Docker client", bool(client), client, purpose, "install Docker"),
        Probe("Docker engine", bool(engine), engine, purpose, "start the Docker engine, or get leave to use it"),
    ]


def _host() -> list[Probe]:
    free_gb = shutil.disk_usage(Path.cwd()).free / 1e9
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return [
        Probe(
            "free disk",
            free_gb >= MIN_FREE_GB,
            f"{free_gb:.1f} GB",
            "bags, in the current folder",
            f"free at least {MIN_FREE_GB:g} GB",
            required=True,
        ),
        Probe("CPU cores", True, str(cores), "episodes side by side", ""),
    ]


def _module(
    module: str,
    purpose: str,
    how_to_get: str,
    *,
    name: str | None = None,
    distributions: tuple[str, ...] | None = None,
    required: bool = False,
    built: bool = False,
) -> Probe:
    """Whether a module can be imported; where a folder of our own may have its name, only a real package counts."""
    try:
        spec = importlib.util.find_spec(module)
        found = spec is not None and not (built and spec.origin is None)
    except (ImportError, ValueError):
        found = False
    version = _distribution_version(distributions or (module.partition(".")[0],)) if found else ""
    return Probe(name or module, found, version, purpose, how_to_get, required)


def _distribution_version(distributions: Iterable[str]) -> str:
    for distribution in distributions:
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def _command_output(*command: str) -> str:
    """First line a program prints, empty if it is absent, fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    lines = done.stdout.strip().splitlines()
    return lines[0].strip() if lines else ""
