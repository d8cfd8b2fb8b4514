"""What the launch files may be given, and the flights that asks for. Nothing here needs ROS."""

from __future__ import annotations

import difflib
import itertools
import json
import math
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sar_core.errors import ContractError, InputError
from sar_eval.bag.writer import partial_of
from sar_eval.campaign.plan import OVERHEAD_S, parse_numbers, told_time
from sar_eval.episode.record import Record
from sar_eval.ros.nodetable import PARAMETERS
from sar_eval.scenario.episodeset import SET_VERSION
from sar_eval.scenario.model import DEFAULT_WORLD, Episode, Scenario, Source, load_scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.scenario.resources import share_dir, world_path
from sar_eval.scenario.tiers import piloted, registry
from sar_swarm.piloting.patternlist import LEARNED, names

BOOLEAN = ("true", "false")
DOMAINS = (0, 232)
"""ROS domains that have ports (docs.ros.org, "The ROS_DOMAIN_ID")."""
LIMITS = {p.name: (p.low, p.high) for p in PARAMETERS if p.low is not None and p.high is not None}
"""What the nodes allow."""
DRONES = (1, 64)
STAGE1_SEEDS = "0-9"
GRAPH_RTF = 12.0
START_S = 10.0
"""Simulated over wall time of a graph, and its start with six imports, on two busy cores (docs/ros.md)."""


@dataclass(frozen=True)
class Argument:
    """One launch argument; an empty default leaves the choice to the scenario, or to the Stage-1 file."""

    name: str
    default: str
    description: str
    choices: tuple[str, ...] = ()


_WORLD = Argument("world", "", "World by name (see worlds/) or path to an SDF file.")
_BACKEND = Argument(
    "backend", "auto", "Tier to fly on; auto takes the highest found and says which.", ("auto", *registry())
)
_DRONES = Argument("num_drones", "", "Number of drones, 1 to 64.")
_PATTERN = Argument("pattern", "", "Search pattern.", ("", *names()))
_DURATION = Argument("duration_s", "", "Search time, from all drones at altitude.")
_EPISODE_SET = Argument("episode_set", "", "Fixed episode set by name (configs/episodes): layout, wind and noise.")
_CONFIG = Argument("config", "", "Scenario file (YAML); arguments given win over it.")
_RUNNING = (
    Argument("speed_factor", "0.0", "Simulated over wall time, at most; 0: as fast as it goes."),
    Argument("sim_speed", "1.0", "Simulated over wall time of real autopilots (sih, gazebo, sitl)."),
    Argument("record_csi", "false", "Record raw CSI frames too; about doubles the bag.", BOOLEAN),
    Argument("composed", "false", "All nodes in one process instead of one each.", BOOLEAN),
    Argument("use_sim_time", "true", "Nodes' own clocks follow /clock.", BOOLEAN),
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
    *(_SIGMA, _KAPPA),
    Argument("bag_dir", "runs/episode", "Folder for bag, record and picture; gets a number if it holds this episode."),
    *_RUNNING,
)
MEDIAN_SEEDS = (
    *_SHARED,
    Argument("seeds_file", "", "Stage-1 results (JSONL), whose median seeds are flown; empty: Stage 1 is flown first."),
    Argument("episode", "0-1", "Indices in the episode set; 0-49 is all of it."),
    *(_SIGMA, _KAPPA),
    Argument("bag_dir", "runs/median_seeds", "Folder for bags, records and report; what it holds is not flown again."),
    *_RUNNING,
)
NOISE_SWEEP = (
    *_SHARED,
    Argument("seeds_file", "", "Stage-1 results (JSONL), whose median seeds are flown, in their world."),
    Argument("seed", "0", "Seeds, such as 1,4,7; not read when seeds_file is given."),
    Argument("episode", "0", "Indices in the episode set, such as 0-9."),
    Argument("sigma", "0.0,0.1,0.4", "CSI amplitude noises to fly, each with each kappa."),
    Argument("kappa", "32,4,1", "CSI phase concentrations to fly, each with each sigma; inf for none."),
    Argument("bag_dir", "runs/noise_sweep", "Folder for bags, records and report; what it holds is not flown again."),
    *_RUNNING,
)


class LaunchedFlight(NamedTuple):
    """One episode and the places of its bag and record."""

    episode: Episode
    bag: Path
    record: Path


@dataclass(frozen=True)
class Tour:
    """All flights that a launch asks for, which of them are flown already, and what is to be said of them."""

    flights: tuple[LaunchedFlight, ...]
    flown: tuple[Record, ...]
    notes: tuple[str, ...]
    stage1: Path | None = None
    """The Stage-1 file of the same episode set, for the report."""

    @property
    def left(self) -> tuple[LaunchedFlight, ...]:
        """What is still to be flown."""
        done = {record.result["config_sha256"] for record in self.flown}
        return tuple(flight for flight in self.flights if flight.episode.config_sha256 not in done)


class Study(NamedTuple):
    """What a Stage-1 file was flown on."""

    file: Path
    seeds: tuple[int, ...]
    world: str | None
    episode_set: str | None
    patterns: tuple[str, ...]
    others: tuple[str, ...]
    """Policies of which nothing is known here but the name."""


def check_names(arguments: Iterable[Argument], words: Iterable[str]) -> None:
    """Refuse a name:=value that nobody reads; launch itself would pass over it."""
    known = [argument.name for argument in arguments]
    for word in words:
        name, assigned, _ = word.partition(":=")
        if assigned and name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise InputError(f"{word}: there is no argument {name}; {hint}allowed: {', '.join(known)}")


def check_values(arguments: Iterable[Argument], values: Mapping[str, str]) -> None:
    """Refuse a value that a node or the plan would refuse later."""
    for argument in arguments:
        name, value = argument.name, values[argument.name]
        if argument.choices and value not in argument.choices:
            raise InputError(f"{name} = {value!r}: allowed: {', '.join(filter(None, argument.choices))}")
        if name in ("seed", "episode"):
            for figure in parse_numbers(value, name):
                _within(name, figure, *LIMITS[name])
        elif name in LIMITS:
            _within(name, number(values, name), *LIMITS[name])
        elif name == "num_drones" and value:
            _within(name, _parsed(values, name, int, "a whole number"), *DRONES)
        elif name == "domain_id" and value != "auto":
            _within(name, _parsed(values, name, int, f"auto, or a number from {DOMAINS[0]} to {DOMAINS[1]}"), *DOMAINS)


def stage1_command(values: Mapping[str, str]) -> tuple[Path, list[str]] | None:
    """The Stage-1 file a launch makes for itself, and the words of ``sar-eval`` that make it; None if it needs none."""
    if values.get("seeds_file", "-"):
        return None
    if "seed" in values:
        return None
    scenario, source = _scenario(values, None, None, None)
    world = scenario.world if "world" in scenario.model_fields_set else DEFAULT_WORLD
    world_path(world)
    name = scenario.episode_set or f"{Path(world).stem}-{SET_VERSION}"
    _refuse_unfitted(world, name, source)
    file = Path(values["bag_dir"]) / f"stage1-{name}.jsonl"
    words = ["stage1", "--world", world, "--episode-set", name, "--seeds", STAGE1_SEEDS, "--out", str(file)]
    return file, words


def _refuse_unfitted(world: str, name: str, source: Source) -> None:
    """Stage 1 knows of sensing what was fitted in a world; elsewhere its results have to be given."""
    from sar_eval.stage1.matrix import default_observations
    from sar_eval.stage1.observations import load_observations

    episode = prepare(Scenario(world=world, episode_set=name), 0, 0, source=source)
    try:
        load_observations(default_observations(), episode)
    except ContractError as error:
        raise InputError(
            f"world = {world!r}: Stage 1 has statistics of sensing for {DEFAULT_WORLD} only; "
            "give its results as seeds_file, or fit them: sar-eval fit-observations"
        ) from error


def plan_tour(values: Mapping[str, str], tier: str = "embedded", made: Path | None = None) -> Tour:
    """Every flight asked for: noise by noise, pattern by pattern, seed by seed, index by index.

    ``made`` is the Stage-1 file that the launch has made for itself: of its patterns only the scenario's is flown.
    """
    given = values.get("seeds_file") or ""
    study = read_study(made or Path(given)) if made or given else None
    seeds = parse_numbers(values["seed"], "seed") if study is None else study.seeds
    notes = [] if study is None else [f"{study.file}: the median seeds are {', '.join(map(str, seeds))}"]
    sigmas, kappas = _levels(values, "sigma"), _levels(values, "kappa")
    sweeping = len(sigmas) * len(kappas) > 1
    base = Path(values["bag_dir"])
    planned: list[LaunchedFlight] = []
    flown_set = None
    for sigma, kappa in itertools.product(sigmas, kappas):
        folder = base / f"sigma_{sigma:g}-kappa_{kappa:g}" if sweeping else base
        scenario, source = _scenario(values, sigma, kappa, study)
        patterns = [scenario.pattern]
        if study is not None and not (made or "seed" in values or "pattern" in scenario.model_fields_set):
            patterns = list(study.patterns) or patterns
        flown_set = scenario.episode_set
        for pattern in patterns:
            chosen = scenario.model_copy(update={"pattern": pattern}) if pattern != scenario.pattern else scenario
            for seed, index in itertools.product(seeds, parse_numbers(values["episode"], "episode")):
                episode = prepare(chosen, seed, index, tier, source)
                planned.append(
                    LaunchedFlight(episode, folder / episode.episode_id, folder / f"{episode.episode_id}.json")
                )
    if study is not None:
        notes += _contradictions(study, planned[0].episode, "seed" in values)
    if "seeds_file" not in values:
        planned, more = _in_a_folder_of_its_own(planned)
        notes += more
    flown = tuple(record for flight in planned if (record := kept_record(flight)) is not None)
    used = study.file if study is not None and study.episode_set and study.episode_set == flown_set else None
    tour = Tour(tuple(planned), flown, tuple(notes), used)
    return Tour(tour.flights, flown, (*notes, extent(tour, values)), used)


def read_study(file: Path) -> Study:
    """The median seeds of a Stage-1 file, and what they were flown on; a file from elsewhere need not say it."""
    from sar_analysis.stage1.medianseeds import choose
    from sar_analysis.stage1.rows import read_stage1

    rows = read_stage1(file)
    policies = list(dict.fromkeys(row.policy for row in rows))
    known = {*names()} - {LEARNED}
    return Study(
        file,
        tuple(choose(rows).seeds),
        _only(file, "world", {row.world for row in rows}),
        _only(file, "episode_set", {row.episode_set for row in rows}),
        tuple(policy for policy in policies if policy in known),
        tuple(policy for policy in policies if policy not in known),
    )


def _only(file: Path, key: str, found: set[str | None]) -> str | None:
    if len(found) > 1:
        raise InputError(f"{file}: {key} = {', '.join(sorted(map(str, found)))}: one file for one {key}; split it")
    return next(iter(found))


def _scenario(
    values: Mapping[str, str], sigma: float | None, kappa: float | None, study: Study | None
) -> tuple[Scenario, Source]:
    """Arguments win over the scenario file, that over what Stage 1 was flown on, that over the defaults."""
    config = Path(values["config"]) if values["config"] else None
    given = _given(values, sigma, kappa)
    scenario, source = load_scenario(config, given)
    if study is None:
        return scenario, source
    asked = scenario.model_fields_set
    world = scenario.world if "world" in asked or study.world is None else study.world
    more: dict[str, Any] = {} if world == scenario.world else {"world": world}
    if "seed" not in values and study.episode_set is not None and "episode_set" not in asked:
        name = study.episode_set
        if world != study.world:
            name = f"{Path(world).stem}-{name.rpartition('-')[2]}"
        if world == study.world or (share_dir("configs") / "episodes" / f"{name}.json").is_file():
            more["episode_set"] = name
    return load_scenario(config, {**given, **more})


def _contradictions(study: Study, episode: Episode, sweep: bool) -> list[str]:
    """Where what is flown is not what Stage 1 flew."""
    said = []
    scenario = episode.scenario
    if study.world not in (None, scenario.world):
        said.append(
            f"world = {scenario.world!r} is flown, as asked, but {study.file} was flown in {study.world!r}: "
            "its median seeds need not be those of this world"
        )
    if not sweep and study.episode_set not in (None, scenario.episode_set):
        said.append(f"episode_set = {scenario.episode_set!r} is flown, {study.file} has {study.episode_set!r}")
    if not sweep and study.others:
        said.append(f"{study.file}: not flown here, only their names are known: {', '.join(study.others)}")
    if study.patterns and scenario.pattern not in study.patterns:
        said.append(f"pattern = {scenario.pattern!r} is flown, {study.file} has {', '.join(study.patterns)}")
    return said


def _in_a_folder_of_its_own(planned: Sequence[LaunchedFlight]) -> tuple[list[LaunchedFlight], list[str]]:
    """An episode is flown whenever it is asked for; earlier bags stay where they are."""
    (flight,) = planned
    first = flight.bag.parent
    for count in itertools.count(1):
        folder = first if count == 1 else first.with_name(f"{first.name}-{count}")
        place = folder / flight.bag.name
        if not (place.exists() or partial_of(place).exists()):
            break
    said = [] if folder == first else [f"{first} holds this episode already: this flight goes to {folder}"]
    return [flight._replace(bag=place, record=folder / flight.record.name)], said


def kept_record(flight: LaunchedFlight) -> Record | None:
    """The record of a flight that need not be flown again: valid, of this very configuration, its bag beside it.

    What stands in the way of flying it is refused, unless it was flown with this configuration and did not count.
    """
    record = _read(flight.record)
    if record is not None and record.result["config_sha256"] != flight.episode.config_sha256:
        raise InputError(
            f"{flight.record}: {flight.episode.episode_id} was flown with another configuration "
            f"({record.result['config_sha256'][:12]}, now {flight.episode.config_sha256[:12]}); give another bag_dir"
        )
    if not flight.bag.exists():
        return None
    if record is None:
        raise InputError(
            f"{flight.bag}: exists, but no record beside it says what was flown; move it away, or give another bag_dir"
        )
    return record if record.result["valid"] else None


def clear(flight: LaunchedFlight) -> None:
    """Make way for a flight that is to be flown: what an earlier attempt left that does not count."""
    for left in (flight.bag, partial_of(flight.bag)):
        if left.exists():
            shutil.rmtree(left)
    flight.record.unlink(missing_ok=True)


def _read(file: Path) -> Record | None:
    if not file.is_file():
        return None
    try:
        plain = json.loads(file.read_text(encoding="utf-8"))
        record = Record(plain["result"], plain["run"])
        record.result["config_sha256"], record.result["valid"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file}: not the record of an episode ({error}); move it away") from error
    return record


def extent(tour: Tour, values: Mapping[str, str]) -> str:
    """What will be flown and about how long that takes, in a sentence."""
    left, scenarios = tour.left, [flight.episode.scenario for flight in tour.flights]
    worlds = {s.episode_set or s.world for s in scenarios}
    patterns = {s.pattern for s in scenarios}
    seeds, indices = {f.episode.seed for f in tour.flights}, {f.episode.index for f in tour.flights}
    levels = {(s.sigma, s.kappa) for s in scenarios} if not any(s.episode_set for s in scenarios) else set()
    parts = [
        f"{', '.join(sorted(worlds))}: {_many(len(seeds), 'seed')} x {_many(len(indices), 'episode')} x "
        f"{_many(len(patterns), 'pattern')}" + (f" x {_many(len(levels), 'noise level')}" if len(levels) > 1 else "")
    ]
    if tour.flown:
        parts.append(f"{len(tour.flown)} of {len(tour.flights)} flown already")
    seconds = foreseen_s(left, values)
    parts.append(f"{_many(len(left), 'flight')} to fly, about {told_time(seconds)}" if left else "nothing left to fly")
    return "; ".join(parts)


def foreseen_s(flights: Sequence[LaunchedFlight], values: Mapping[str, str]) -> float:
    """Wall time that these flights take."""
    pace = number(values, "speed_factor") or math.inf
    return sum(
        START_S
        + (f.episode.scenario.duration_s + OVERHEAD_S)
        / min(pace, number(values, "sim_speed") if piloted(f.episode.tier) else GRAPH_RTF)
        for f in flights
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def number(values: Mapping[str, str], name: str) -> float:
    """A launch argument as a number."""
    return float(_parsed(values, name, float, "a number"))


def truth(values: Mapping[str, str], name: str) -> bool:
    """A launch argument as yes or no."""
    if values[name] not in BOOLEAN:
        raise InputError(f"{name} = {values[name]!r}: allowed: {', '.join(BOOLEAN)}")
    return values[name] == "true"


def given_words(command: Sequence[str], file: str) -> list[str]:
    """The name:=value words of a command line that names this launch file; none where another one includes it."""
    if not any(re.fullmatch(rf"(.*/)?{re.escape(file)}", word) for word in command):
        return []
    return [word for word in command if ":=" in word]


def _within(name: str, value: float, low: float | None, high: float | None) -> None:
    if low is not None and high is not None and not low <= value <= high:
        raise InputError(f"{name} = {value:g}: allowed are {low:g} to {high:g}")


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
