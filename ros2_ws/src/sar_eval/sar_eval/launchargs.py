"""What the launch files may be given, and the flights that asks for. Nothing here needs ROS."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sar_core.errors import InputError
from sar_eval.config import Episode, load_scenario, prepare
from sar_eval.plan import parse_numbers
from sar_eval.tiers import TIERS
from sar_swarm.patterns import PATTERNS

BOOLEAN = ("true", "false")


@dataclass(frozen=True)
class Argument:
    """One launch argument; an empty default leaves the choice to the scenario."""

    name: str
    default: str
    description: str
    choices: tuple[str, ...] = ()


_WORLD = Argument("world", "", "World by name (see worlds/) or path to an SDF file.")
_BACKEND = Argument("backend", "auto", "Tier to fly on; auto takes the highest found and says which.", ("auto", *TIERS))
_DRONES = Argument("num_drones", "", "Number of drones, 1 to 64.")
_PATTERN = Argument("pattern", "", "Search pattern.", ("", *PATTERNS))
_DURATION = Argument("duration_s", "", "Search time, from all drones at altitude.")
_EPISODE_SET = Argument("episode_set", "", "Fixed episode set by name (configs/episodes): layout, wind and noise.")
_CONFIG = Argument("config", "", "Scenario file (YAML); arguments given win over it.")
_SEEDS_FILE = Argument("seeds_file", "", "Stage-1 results (JSONL), whose median seeds are flown.")
_BAG_DIR = Argument("bag_dir", "runs", "Folder for bags and records; created if needed.")
_REPLAY_SPEED = Argument("speed_factor", "0.0", "Simulated over wall time, at most; 0: as fast as it goes.")
_RUNNING = (
    Argument("use_sim_time", "true", "Nodes' own clocks follow /clock.", BOOLEAN),
    Argument("headless", "true", "No window of the simulator; the embedded one never has any.", BOOLEAN),
    Argument("rviz", "false", "Watch in RViz.", BOOLEAN),
    Argument("foxglove", "false", "Start Foxglove's bridge.", BOOLEAN),
    Argument("log_level", "warn", "Of every node.", ("debug", "info", "warn", "error", "fatal")),
    Argument("domain_id", "auto", "ROS domain; auto takes one that nobody on this host uses and says which."),
    Argument("lockstep_timeout_s", "3.0", "Wall time after which a silent node ends the episode."),
    Argument("ready_timeout_s", "60.0", "Wall time the nodes have to find each other."),
)
_SHARED = (_WORLD, _BACKEND, _DRONES, _PATTERN, _DURATION, _EPISODE_SET, _CONFIG)
_SIGMA = Argument("sigma", "", "CSI amplitude noise, relative to the frame's mean.")
_KAPPA = Argument("kappa", "", "CSI phase concentration (von Mises); inf for none.")

EPISODE = (
    *_SHARED,
    Argument("seed", "0", "Seed of sensor, link and motor noise."),
    Argument("episode", "0", "Index in the episode set: decides wind and layout."),
    *(_SIGMA, _KAPPA, _BAG_DIR, _REPLAY_SPEED, *_RUNNING),
)
MEDIAN_SEEDS = (
    *_SHARED,
    _SEEDS_FILE,
    Argument("episode", "0-49", "Indices in the episode set, such as 0-49."),
    *(_SIGMA, _KAPPA, _BAG_DIR, _REPLAY_SPEED, *_RUNNING),
)
NOISE_SWEEP = (
    *_SHARED,
    _SEEDS_FILE,
    Argument("seed", "0", "Seeds, such as 1,4,7; not read when seeds_file is given."),
    Argument("episode", "0", "Indices in the episode set, such as 0-9."),
    Argument("sigma", "0.0,0.1,0.4", "CSI amplitude noises to fly, each with each kappa."),
    Argument("kappa", "32,4,1", "CSI phase concentrations to fly, each with each sigma; inf for none."),
    *(_BAG_DIR, _REPLAY_SPEED, *_RUNNING),
)


class Flight(NamedTuple):
    """One episode and the places of its bag and record."""

    episode: Episode
    bag: Path
    record: Path


def flights(values: Mapping[str, str], tier: str = "embedded") -> list[Flight]:
    """Every combination of the noise levels, seeds and indices asked for, in that order."""
    seeds = _seeds(values)
    indices = parse_numbers(values["episode"], "episode")
    sigmas, kappas = _levels(values, "sigma"), _levels(values, "kappa")
    found = []
    for sigma, kappa in itertools.product(sigmas, kappas):
        scenario, source = load_scenario(
            Path(values["config"]) if values["config"] else None, _given(values, sigma, kappa)
        )
        folder = Path(values["bag_dir"])
        if len(sigmas) * len(kappas) > 1:
            folder /= f"sigma_{sigma:g}-kappa_{kappa:g}"
        for seed, index in itertools.product(seeds, indices):
            episode = prepare(scenario, seed, index, tier, source)
            found.append(Flight(episode, folder / episode.episode_id, folder / f"{episode.episode_id}.json"))
    return found


def number(values: Mapping[str, str], name: str) -> float:
    """A launch argument as a number."""
    return float(_parsed(values, name, float, "a number"))


def truth(values: Mapping[str, str], name: str) -> bool:
    """A launch argument as yes or no."""
    if values[name] not in BOOLEAN:
        raise InputError(f"{name} = {values[name]!r}: allowed: {', '.join(BOOLEAN)}")
    return values[name] == "true"


def _seeds(values: Mapping[str, str]) -> tuple[int, ...]:
    from sar_analysis.medianseeds import choose
    from sar_analysis.stage1 import read_stage1

    if values.get("seeds_file"):
        return tuple(choose(read_stage1(Path(values["seeds_file"]))).seeds)
    if "seed" not in values:
        raise InputError("seeds_file is empty: give Stage-1 results (JSONL), such as sar-eval stage1 writes")
    return parse_numbers(values["seed"], "seed")


def _levels(values: Mapping[str, str], name: str) -> list[float | None]:
    if not values[name]:
        return [None]
    return [
        _parsed({name: part}, name, float, "numbers such as 0.1 or 0.0,0.1,0.4") for part in values[name].split(",")
    ]


def _given(values: Mapping[str, str], sigma: float | None, kappa: float | None) -> dict[str, Any]:
    typed: dict[str, Any] = {
        "world": values["world"] or None,
        "drones": _parsed(values, "num_drones", int, "a whole number") if values["num_drones"] else None,
        "pattern": values["pattern"] or None,
        "duration_s": number(values, "duration_s") if values["duration_s"] else None,
        "episode_set": values["episode_set"] or None,
        "sigma": sigma,
        "kappa": kappa,
    }
    return {key: value for key, value in typed.items() if value is not None}


def _parsed(values: Mapping[str, str], name: str, kind: Callable[[str], Any], what: str) -> Any:
    try:
        return kind(values[name])
    except ValueError as error:
        raise InputError(f"{name} = {values[name]!r}: give {what}") from error
