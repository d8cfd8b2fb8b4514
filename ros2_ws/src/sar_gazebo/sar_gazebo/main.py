"""What `ros2 run sar_gazebo` starts: thin shells that parse, call and print."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sar_core.errors import SarError
from sar_eval.scenario.model import load_scenario
from sar_eval.scenario.prepare import prepare
from sar_gazebo.csi import TIER
from sar_gazebo.stage import read_cast, write_stage


def stage(arguments: Sequence[str] | None = None) -> int:
    """stage --out FOLDER: writes stage.sdf and stage.json there."""
    parser = argparse.ArgumentParser(prog="stage", description="Write an episode's world for Gazebo.")
    parser.add_argument("--out", type=Path, required=True, help="folder for stage.sdf and stage.json")
    parser.add_argument("--config", type=Path, help="scenario file (YAML)")
    parser.add_argument("--world", help="world by name or path to an SDF file")
    parser.add_argument("--drones", type=int, help="number of drones")
    parser.add_argument("--episode-set", help="fixed episode set by name")
    parser.add_argument("--seed", type=int, default=0, help="seed of sensor and link noise")
    parser.add_argument("--episode", type=int, default=0, help="index that decides wind and layout")
    given = parser.parse_args(arguments)
    asked = {"world": given.world, "drones": given.drones, "episode_set": given.episode_set}
    try:
        scenario, source = load_scenario(given.config, {k: v for k, v in asked.items() if v is not None})
        episode = prepare(scenario, given.seed, given.episode, TIER, source)
        write_stage(episode, given.out)
    except SarError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 3
    print(f"{given.out / 'stage.sdf'}: {episode.episode_id}, {scenario.drones} vehicles")
    return 0


def bridge() -> int:
    """bridge FOLDER [--ros-args ...]: the folder is the one ``stage --out`` wrote."""
    from rclpy.utilities import remove_ros_args

    from sar_gazebo.bridge import carry

    words = remove_ros_args(sys.argv)[1:]
    if len(words) != 1:
        print("error: give one folder, the one `stage --out FOLDER` wrote", file=sys.stderr)
        return 1
    try:
        cast = read_cast(Path(words[0]) / "stage.json")
    except SarError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    carry(cast)
    return 0
