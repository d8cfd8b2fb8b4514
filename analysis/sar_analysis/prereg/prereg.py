"""Pre-registration: what will be flown, measured and claimed, written down and locked before any result is seen.

The hash is taken over the checked content with every default filled in, so comments and layout may change and meaning
may not. The lock keeps the content itself, so that a mismatch can name the keys that were changed afterwards.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from sar_analysis.metrics.catalogue import metric
from sar_analysis.stats.designs import Design
from sar_analysis.stats.interval import Interval, Reading
from sar_analysis.stats.scores import listed
from sar_core.errors import ContractError, InputError, MissingDataError

SCHEMA_VERSION = 1
Purpose = Literal["leaderboard", "power", "debug"]
# A public row rests on at least ten seeds, as the evaluation protocol asks; a power study needs a spread to work from.
LEAST_SEEDS: dict[Purpose, int] = {"leaderboard": 10, "power": 5, "debug": 1}

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.+-]+$")]
Sentence = Annotated[str, Field(min_length=1)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Index = Annotated[int, Field(ge=0, lt=1 << 64, strict=True)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RegisteredCondition(_Model):
    """One thing that is flown: a name for the tables and what it changes in the scenario."""

    name: Name
    changes: dict[Name, str | int | float | bool | None] = {}

    @field_validator("changes")
    @classmethod
    def _storable(cls, changes: dict[str, Any]) -> dict[str, Any]:
        """No phase noise (kappa infinite) is the word inf, as in results: JSON and so the lock hold no infinity."""
        told = {key: "inf" if value in (math.inf, ".inf") else value for key, value in changes.items()}
        for key, value in told.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{key} is {value}; allowed: a finite number or inf")
        return told


class Episodes(_Model):
    """Which episodes of which version of the episode set every seed flies."""

    set_version: Index
    indices: Annotated[tuple[Index, ...], Field(min_length=1)]


class RegisteredBootstrap(_Model):
    """How the interval is made; ``method`` names the units that are drawn again."""

    method: Design = "seeds"
    reading: Reading = "percentile"
    resamples: Annotated[int, Field(ge=1000, strict=True)] = 10_000
    seed: Index = 0
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95


class Threshold(_Model):
    """A claim that the interval decides: this part of it against this number, for one condition or a difference."""

    condition: Name
    against: Name | None = None
    part: Literal["value", "low", "high"]
    relation: Literal["at_least", "at_most"]
    limit: Number

    def holds(self, interval: Interval) -> bool:
        """Whether the interval meets the claim; an undefined part (NaN) never does."""
        part = float(getattr(interval, self.part))
        return part >= self.limit if self.relation == "at_least" else part <= self.limit


class Registration(_Model):
    """Everything that is decided before the first episode; see the fields' own models."""

    schema_version: Literal[1]
    hypothesis: Sentence
    conditions: Annotated[tuple[RegisteredCondition, ...], Field(min_length=1)]
    seeds: Annotated[tuple[Index, ...], Field(min_length=1)]
    episodes: Episodes
    metric: Name
    estimator: Literal["iqm", "mean_iqm_of_levels", "mean", "median", "probability_of_improvement"] = "iqm"
    bootstrap: RegisteredBootstrap = RegisteredBootstrap()
    thresholds: tuple[Threshold, ...] = ()
    failure_policy: Literal["strict", "best_effort"] = "strict"
    run_purpose: Purpose = "leaderboard"
    notes: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [condition.name for condition in self.conditions]
        for key, items in (("conditions", names), ("seeds", self.seeds), ("episodes.indices", self.episodes.indices)):
            twice = next((item for item in items if list(items).count(item) > 1), None)
            if twice is not None:
                raise ValueError(f"{key}: {twice} is given twice; allowed: once")
        for threshold in self.thresholds:
            for name in (threshold.condition, threshold.against):
                if name is not None and name not in names:
                    raise ValueError(f"thresholds: condition {name!r} is not registered; allowed: {listed(names)}")
            if self.estimator == "probability_of_improvement" and threshold.against is None:
                raise ValueError("thresholds: against is missing; probability_of_improvement compares two conditions")
        if self.estimator == "probability_of_improvement" and len(names) < 2:
            raise ValueError(
                "estimator: probability_of_improvement compares conditions; allowed: at least 2 conditions"
            )
        if metric(self.metric).open_ended and self.estimator != "median":
            raise ValueError(
                f"estimator: {self.estimator} of {self.metric} has no place for a miss, which is beyond every number; "
                "allowed: median"
            )
        self._fit_for_purpose()
        return self

    def _fit_for_purpose(self) -> None:
        if self.run_purpose == "leaderboard" and self.bootstrap.method == "iid":
            raise ValueError("bootstrap.method: iid ignores seeds; allowed for run_purpose leaderboard: any other")
        least = LEAST_SEEDS[self.run_purpose]
        if len(self.seeds) < least:
            raise ValueError(
                f"seeds: {len(self.seeds)} given; allowed for run_purpose {self.run_purpose}: at least {least}"
            )

    def content(self) -> dict[str, Any]:
        """The registration as plain values, defaults filled in: what is hashed and kept in the lock."""
        return self.model_dump(mode="json")

    @property
    def sha256(self) -> str:
        """Hash of the content with sorted keys; comments, key order and layout of the file do not enter."""
        canonical = json.dumps(self.content(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()


def load_registration(path: Path) -> Registration:
    """Read and check a registration; errors name the file, the key, the value and what is allowed."""
    try:
        text = path.read_text(encoding="utf-8")
        raw, top = yaml.safe_load(text), yaml.compose(text, yaml.SafeLoader)
    except FileNotFoundError:
        raise MissingDataError(f"{path}: no such registration") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: cannot read the registration ({' '.join(str(error).split())})") from error
    if not isinstance(raw, dict):
        raise InputError(f"{path}: a registration is a mapping of keys to values, found {type(raw).__name__}")
    for keys in _keys(top):
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise InputError(f"{path}: key {twice!r} is given {keys.count(twice)} times; allowed: once")
    try:
        return Registration.model_validate(raw)
    except ValidationError as error:
        raise InputError(f"{path}: {'; '.join(_described(error))}") from None


def lock_path(path: Path) -> Path:
    """Where the lock of a registration lies: beside it."""
    return path.with_name(path.name + ".lock.json")


def lock(path: Path) -> str:
    """Store the registration's hash and content beside it and return the hash; no lock overwrites another."""
    registration, target = load_registration(path), lock_path(path)
    document = {
        "schema_version": SCHEMA_VERSION,
        "registration": path.name,
        "sha256": registration.sha256,
        "content": registration.content(),
    }
    if target.exists():
        match = verify(path)
        if match.status != "matches":
            raise ContractError(
                f"{target}: already locks other content ({match.sentence}); register under another name"
            )
        return registration.sha256
    with target.open("x", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=1, sort_keys=True) + "\n")
    return registration.sha256


@dataclass(frozen=True)
class Match:
    """Whether a registration is what was locked; ``changed`` names the keys that are not."""

    status: Literal["matches", "differs", "no lock"]
    sha256: str
    changed: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What a table says about its registration."""
        if self.status == "matches":
            return f"matches its lock {self.sha256[:12]}"
        if self.status == "no lock":
            return "was never locked: exploratory, not pre-registered"
        return f"differs from its lock in {listed(self.changed)}: exploratory, not pre-registered"


def verify(path: Path) -> Match:
    """Compare a registration with its lock; a lock whose own content does not hash to what it says is refused."""
    registration, target = load_registration(path), lock_path(path)
    if not target.exists():
        return Match("no lock", registration.sha256)
    try:
        document = json.loads(target.read_text(encoding="utf-8"))
        locked, told = Registration.model_validate(document["content"]), document["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ContractError(f"{target}: cannot read the lock ({' '.join(str(error).split())[:120]})") from error
    if locked.sha256 != told:
        raise ContractError(
            f"{target}: its content hashes to {locked.sha256[:12]}, not to the {str(told)[:12]} it states"
        )
    if locked.sha256 == registration.sha256:
        return Match("matches", registration.sha256)
    before, after = locked.content(), registration.content()
    return Match("differs", registration.sha256, tuple(key for key in before if before[key] != after[key]))


def deviations(
    registration: Registration, conditions: Iterable[str], seeds: Iterable[int], episodes: Iterable[int]
) -> tuple[str, ...]:
    """How what was flown departs from what was registered, in words; empty when it does not."""
    found = []
    registered: tuple[tuple[str, Sequence[object], Iterable[object]], ...] = (
        ("conditions", [condition.name for condition in registration.conditions], conditions),
        ("seeds", registration.seeds, seeds),
        ("episodes", registration.episodes.indices, episodes),
    )
    for name, planned, flown in registered:
        done = list(dict.fromkeys(flown))
        missing = [item for item in planned if item not in done]
        extra = [item for item in done if item not in planned]
        if missing:
            found.append(f"registered {name} not flown: {listed(missing)}")
        if extra:
            found.append(f"{name} flown but not registered: {listed(extra)}")
    return tuple(found)


def _keys(top: Any) -> Iterator[list[str]]:
    """The keys of every mapping of a document, as written: the parser itself keeps only the last of twins."""
    seen, waiting = set[int](), [top]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:  # a node with an anchor may stand in itself
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield [str(key.value) for key, _ in node.value]
            waiting += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _described(error: ValidationError) -> list[str]:
    lines = []
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"])
        text = problem["msg"].removeprefix("Value error, ")
        value = problem["input"]
        if not key:
            lines.append(text)
        elif problem["type"] == "missing":
            lines.append(f"{key} is missing")
        elif problem["type"] == "extra_forbidden":
            lines.append(f"{key} is not a known key")
        else:
            lines.append(f"{key} is {value!r}; allowed: {text[:1].lower()}{text[1:]}")
    return lines
