"""Stage-1 results: one line of JSON per episode, our own or anyone's, read and checked (docs/stage1.md has the schema).

A line needs ``policy``, ``seed``, ``episode`` and a finite ``return``; the other keys may be left out, keys beyond the
schema are refused unless they stand under ``extra``. A file must be whole: every policy has the same seeds, episodes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sar_analysis.bags.textfiles import read_text
from sar_core.errors import ContractError, InputError, MissingDataError

SCHEMA_VERSION = 3
JUDGED_AS = {1: 1, 2: 2, 3: 2}
"""Schema of the records whose definitions a schema of rows judges reports by; 3 adds only the constellation."""

Finite = Annotated[float, Field(allow_inf_nan=False)]
Nonnegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Key = tuple[str, int, int, bool]


class Stage1Row(BaseModel):
    """One episode. None means not given, or not defined (nothing found)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)
    policy: Annotated[str, Field(min_length=1)]
    seed: Count
    episode: Count
    episode_return: Annotated[Finite, Field(alias="return")]
    schema_version: Literal[1, 2, 3] | None = None
    stage: Literal[1] | None = None
    layout: Count | None = None
    world: str | None = None
    episode_set: str | None = None
    episode_set_sha256: str | None = None
    observations_sha256: str | None = None
    sigma: Nonnegative | None = None
    kappa: Annotated[float, Field(ge=0)] | None = None
    victim_absent: bool = False
    return_counts: dict[str, Count] | None = None
    coverage_240s: Annotated[Finite, Field(ge=0, le=1)] | None = None
    time_to_95_s: Nonnegative | None = None
    overlap_ratio: Annotated[Finite, Field(ge=0, le=1)] | None = None
    issues: Count | None = None
    detections: Count | None = None
    displaced: Count | None = None
    time_to_first_detection_s: Nonnegative | None = None
    localization_error_m: Nonnegative | None = None
    errors_m: list[Nonnegative] | None = None
    gdop: Nonnegative | None = None
    gdops: list[Nonnegative | None] | None = None
    search_time_s: Nonnegative | None = None
    false_alarms: Count | None = None
    path_m: Nonnegative | None = None
    extra: dict[str, Any] | None = None

    @property
    def key(self) -> Key:
        """What names an episode: policy, seed, episode, and whether its victims were left out."""
        return self.policy, self.seed, self.episode, self.victim_absent


def read_stage1(path: Path | str) -> list[Stage1Row]:
    """All rows of a file (.zst too) in its order; the first thing wrong is an error with file, line, key and value."""
    path = Path(path)
    if not path.is_file():
        raise MissingDataError(f"{path}: no such file of Stage-1 results; make one: sar-eval stage1 --out {path}")
    try:
        lines = read_text(path).splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as text ({error})") from error
    rows: list[Stage1Row] = []
    where: list[str] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            where.append(f"{path}:{number}")
            rows.append(_row(line, where[-1]))
    if not rows:
        raise MissingDataError(f"{path}: holds no Stage-1 result")
    _check_schema(rows, where)
    _check_unique(rows, where)
    check_whole(rows, str(path))
    return rows


def _row(line: str, where: str) -> Stage1Row:
    try:
        raw = json.loads(line)
    except ValueError as error:
        raise ContractError(f"{where}: not a line of JSON ({error})") from error
    if not isinstance(raw, dict):
        raise ContractError(f"{where}: expected an object with policy, seed, episode and return")
    try:
        return Stage1Row.model_validate(raw)
    except ValidationError as error:
        raise ContractError(f"{where}: {_told(error)}") from error


def _told(error: ValidationError) -> str:
    """The first problem in words: key, value, what is allowed."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"key {key!r} is missing; needed are policy, seed, episode and return"
    if first["type"] == "extra_forbidden":
        known = ", ".join(field.alias or name for name, field in Stage1Row.model_fields.items())
        return f"unknown key {key!r}; put it under 'extra'; allowed: {known}"
    return f"{key} = {first.get('input')!r}: {first['msg'][0].lower()}{first['msg'][1:]}"


def _check_schema(rows: Sequence[Stage1Row], where: Sequence[str]) -> None:
    for name in ("schema_version", "stage", "episode_set_sha256", "observations_sha256"):
        values = [getattr(row, name) for row in rows]
        other = next((k for k, value in enumerate(values) if value != values[0]), None)
        if other is not None:
            raise ContractError(
                f"{where[other]}: {name} = {values[other]!r}, but {where[0]} has {values[0]!r}; "
                "one file holds one kind of result"
            )


def _check_unique(rows: Sequence[Stage1Row], where: Sequence[str]) -> None:
    seen: dict[Key, str] = {}
    for row, place in zip(rows, where, strict=True):
        if row.key in seen:
            raise ContractError(f"{place}: {_named(row.key)} stands already in {seen[row.key]}")
        seen[row.key] = place


def check_whole(rows: Sequence[Stage1Row], where: str) -> None:
    """Every policy must have every seed and episode that any has, or seeds would be compared on different missions."""
    keys = {row.key for row in rows}
    seeds = sorted({row.seed for row in rows})
    missions = sorted({(row.episode, row.victim_absent) for row in rows})
    for policy in sorted({row.policy for row in rows}):
        for seed in seeds:
            for episode, absent in missions:
                if (policy, seed, episode, absent) not in keys:
                    raise MissingDataError(
                        f"{where}: {_named((policy, seed, episode, absent))} is missing; every policy needs the same "
                        f"{len(seeds)} seeds and {len(missions)} episodes"
                    )


def _named(key: Key) -> str:
    policy, seed, episode, absent = key
    return f"policy {policy}, seed {seed}, episode {episode}{', victims absent' if absent else ''}"
