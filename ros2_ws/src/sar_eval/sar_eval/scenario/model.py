"""What to fly: the scenario as YAML and as a checked model, and one episode of it with everything resolved."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from sar_core.errors import InputError
from sar_core.validation import describe_validation
from sar_eval.scenario.episodeset import EpisodeSet
from sar_sim.radio.devices import Device
from sar_sim.radio.radioconfig import RadioConfig, config_sha256
from sar_sim.vehicle.airframe import Vehicle
from sar_sim.vehicle.faults import Fault, FaultKind
from sar_sim.world.world import World
from sar_swarm.piloting.patternlist import STANDARD, canonical, names
from sar_swarm.piloting.policy import Actor
from sar_swarm.sensing.confidence import Calibration

Floats = NDArray[np.float64]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Nonnegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

DEFAULT_WORLD = "village"
SEED_LIMIT = 1 << 64
INDEX_LIMIT = 1 << 32
FENCE_MARGIN_M = 6.0
"""Ways are planned this far inside the fence and below the ceiling."""
EPISODE_SET = 2
"""Version of the rules by which an episode index becomes wind and layout where no episode set is named; a change of
rules is a new number."""
SET_DECIDES = ("sigma", "kappa", "victims", "decoys")
"""Keys whose values an episode set gives."""


def _known_pattern(name: str) -> str:
    try:
        return canonical(name)
    except InputError as error:
        raise ValueError(f"not a known pattern; allowed: {', '.join(names())}") from error


def _known_fault(name: str) -> str:
    if name not in set(FaultKind):
        raise ValueError(f"not a known fault; allowed: {', '.join(FaultKind)}")
    return name


class LinkConfig(BaseModel):
    """The radio link between the drones."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    loss: Share = 0.05
    latency_s: Annotated[float, Field(ge=0, le=1)] = 0.05
    jitter_s: Annotated[float, Field(ge=0, le=1)] = 0.05


class FaultConfig(BaseModel):
    """Something that goes wrong with one drone during the search; what ``size`` means depends on the kind."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    kind: Annotated[str, AfterValidator(_known_fault)]
    drone: Annotated[int, Field(ge=1, le=64)]
    begin_s: Nonnegative
    end_s: Positive | None = None
    size: Annotated[float, Field(allow_inf_nan=False)] | None = None


class Scenario(BaseModel):
    """Everything a user may choose about a mission; see configs/scenarios/default.yaml for each key."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] = "default"
    world: str = "open_field"
    vehicle: str = "x500"
    drones: Annotated[int, Field(ge=1, le=64)] = 4
    pattern: Annotated[str, AfterValidator(_known_pattern)] = STANDARD[0]
    policy: str | None = None
    pursuit: Literal["on", "off"] = "off"
    altitude_m: Annotated[float, Field(ge=2, allow_inf_nan=False)] | None = None
    speed_mps: Positive = 8.0
    turn_rate_dps: Annotated[float, Field(gt=0, le=360)] = 30.0
    acceleration_mps2: Annotated[float, Field(gt=0, le=10)] = 3.0
    duration_s: Annotated[float, Field(gt=0, le=3600)] = 240.0
    swath_m: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 28.0
    overlap: Annotated[float, Field(ge=0, le=0.9)] = 0.1
    wind_mps: Nonnegative | None = None
    thrust_variation: Annotated[float, Field(ge=0, le=0.3)] = 0.05
    radio: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] | None = "open_ground"
    sigma: Nonnegative = 0.05
    kappa: Annotated[float, Field(ge=0)] = 8.0
    gate: Literal["on", "forced_open"] = "on"
    attention: Literal["none", "source", "spread"] = "spread"
    victims: Annotated[int, Field(ge=0, le=16)] = 1
    decoys: Annotated[int, Field(ge=0, le=32)] = 3
    victim_absent: bool = False
    episode_set: str | None = None
    link: LinkConfig = LinkConfig()
    faults: Annotated[tuple[FaultConfig, ...], Field(strict=False)] = ()


@dataclass(frozen=True)
class Episode:
    """One flyable episode: the scenario, its index and seed, and the files it names, loaded and checked."""

    scenario: Scenario
    seed: int
    index: int
    tier: str
    world: World
    vehicle: Vehicle
    altitude_m: float
    wind_mps: Floats
    spawns: Floats
    radio: RadioConfig | None = None
    calibration: Calibration | None = None
    devices: tuple[Device, ...] = ()
    actor: Actor | None = None
    drawn_from: EpisodeSet | None = None
    routes: tuple[Floats, ...] = ()
    """Ways given to the drones instead of the pattern's own; only a reference that may know the truth has any."""

    @property
    def episode_set(self) -> str:
        """What gave layout, wind direction and noise: a set by name, or the rules for single episodes."""
        return f"rules-{EPISODE_SET}" if self.drawn_from is None else self.drawn_from.name

    @property
    def layout(self) -> int:
        """The number of its layout in the set, which may fly it at several noise levels; apart from sets, the index."""
        return self.index if self.drawn_from is None else self.drawn_from.layout_number(self.index)

    @property
    def episode_set_sha256(self) -> str | None:
        return None if self.drawn_from is None else self.drawn_from.sha256

    @property
    def episode_id(self) -> str:
        s = self.scenario
        absent = "-absent" if s.victim_absent else ""
        faults = "".join(f"-{fault.kind}{fault.drone}" for fault in s.faults[:2])
        if s.faults:
            faults += "-" + _digest([fault.model_dump() for fault in s.faults])[:6]
        place = self.world.name if self.drawn_from is None else self.drawn_from.name
        place += f"-{s.pattern}-{s.drones}x-{self.tier}"
        return f"{place}-s{self.seed:03d}-e{self.index:03d}{absent}{faults}"

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The scenario's faults, drones counted from 0; times are search time."""
        return tuple(make_fault(fault) for fault in self.scenario.faults)

    def plain_scenario(self) -> dict[str, Any]:
        """The scenario as plain data that :func:`scenario_from` takes back."""
        kappa = self.scenario.kappa
        return {**self.scenario.model_dump(mode="json"), "kappa": kappa if math.isfinite(kappa) else "inf"}

    def resolved(self) -> dict[str, Any]:
        """The full configuration as plain data, nothing left to defaults or to files that may change."""
        return {
            **self.plain_scenario(),
            "altitude_m": self.altitude_m,
            "wind_mps": [float(w) for w in self.wind_mps],
            "seed": self.seed,
            "episode": self.index,
            "episode_set": self.episode_set,
            "episode_set_sha256": self.episode_set_sha256,
            "tier": self.tier,
            "world_sha256": self.world.sha256,
            "vehicle_sha256": self.vehicle.sha256,
            "radio_sha256": None if self.radio is None else config_sha256(self.radio),
            "policy_sha256": None if self.actor is None else self.actor.sha256,
            "calibration_sha256": None if self.calibration is None else _digest(asdict(self.calibration)),
            **({"routes": [route.tolist() for route in self.routes]} if self.routes else {}),
        }

    @property
    def config_sha256(self) -> str:
        return _digest(self.resolved())


def _digest(plain: Any) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Source:
    """Where a scenario's values came from, for messages: a file, and keys given on the command line over it."""

    path: Path | None = None
    given: frozenset[str] = frozenset()

    def of(self, *keys: str) -> str:
        return "command line" if self.path is None or self.given & set(keys) else str(self.path)


def load_scenario(path: Path | None, overrides: dict[str, Any]) -> tuple[Scenario, Source]:
    """A scenario from a YAML file (or the defaults) with command-line values on top."""
    raw = read_mapping(path) if path is not None else {}
    source = Source(path, frozenset(overrides))
    try:
        return Scenario.model_validate({**raw, **overrides}), source
    except ValidationError as error:
        first = error.errors()[0]
        line = describe_validation(Path(source.of(str(first["loc"][0]))), error)
        if first["type"] == "extra_forbidden":
            nested = {"link": LinkConfig.model_fields, "faults": FaultConfig.model_fields}
            fields = nested.get(str(first["loc"][0]), Scenario.model_fields) if len(first["loc"]) > 1 else None
            line += f"; allowed: {', '.join(fields or Scenario.model_fields)}"
        raise InputError(line) from error


def scenario_from(plain: dict[str, Any], where: str) -> Scenario:
    """The scenario of a record, as :meth:`Episode.plain_scenario` wrote it.

    Next to an episode set a default value of what the set decides counts as not given.
    """
    try:
        values = {**plain, "kappa": float(plain.get("kappa", Scenario().kappa))}
        if plain.get("episode_set") is not None:
            values = {k: v for k, v in values.items() if k not in SET_DECIDES or v != Scenario.model_fields[k].default}
        return Scenario.model_validate(values)
    except (ValidationError, TypeError, ValueError) as error:
        raise InputError(f"{where}: its scenario cannot be read ({' '.join(str(error).split())})") from error


def read_mapping(path: Path) -> dict[str, Any]:
    """A YAML file's top level; a key given twice is refused, where YAML would take the last one in silence."""
    try:
        text = path.read_text(encoding="utf-8")
        raw = yaml.safe_load(text)
        top = yaml.compose(text, yaml.SafeLoader)
    except FileNotFoundError:
        raise InputError(f"{path}: no such scenario file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read the scenario ({error.strerror})") from error
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: cannot read the scenario ({' '.join(str(error).split())})") from error
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise InputError(f"{path}: a scenario is a mapping of keys to values, found {type(raw).__name__}")
    for node in _mappings(top):
        keys = [key.value for key, _ in node.value]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise InputError(f"{path}: key {twice!r} is given {keys.count(twice)} times; allowed is once")
    return {str(key): value for key, value in raw.items()}


def _mappings(top: Any) -> Iterator[Any]:
    """Every mapping of a document, also in lists; a node with an anchor may stand in several places or in itself."""
    seen, waiting = set[int](), [top]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield node
            waiting += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def make_fault(given: FaultConfig) -> Fault:
    """A fault as the simulator takes it: drones counted from 0."""
    end = math.inf if given.end_s is None else given.end_s
    return Fault(FaultKind(given.kind), given.drone - 1, given.begin_s, end, given.size)
