"""How far returns stay below an oracle's on the same episodes: Agarwal's optimality gap with the oracle as 1.

A reference is versioned data, flown by ``sar-eval reference``: one return per episode and noise level, bound to the
world's hash, the episode set and the task. A return is divided by the oracle's; what reaches it or more has no gap, so
the mean over a table is rliable's optimality gap at gamma = 1. The oracle is a good flyer that knows the victims, not a
bound: ``beyond`` tells how often it was beaten.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.stats.aggregate import shortfall
from sar_analysis.stats.scores import Cell, Scores, from_cells, listed
from sar_core.errors import ContractError, InputError, MissingDataError

SCHEMA_VERSION = 1
Key = tuple[int, float | None, float | None]
"""Episode, sigma, kappa; the last two None without radio."""


@dataclass(frozen=True)
class Reference:
    """An oracle's returns; those of flights that were INVALID are missing, with the reason in ``invalid``."""

    name: str
    world: str
    world_sha256: str
    episode_set: str
    task_sha256: str
    task: Mapping[str, Any]
    version: str
    returns: Mapping[Key, float]
    invalid: Mapping[Key, str]

    @property
    def episodes(self) -> tuple[int, ...]:
        """The episodes it holds at least one return for."""
        return tuple(sorted({episode for episode, _, _ in self.returns}))


@dataclass(frozen=True)
class Gap:
    """One episode against the oracle: its return over the oracle's, and the shortfall below 1."""

    episode_id: str
    seed: int
    episode: int
    normalised: float
    gap: float


def load_reference(path: Path) -> Reference:
    """A reference from its file; one that is not of this schema or holds no usable number is refused."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        version = plain.get("schema_version")
    except FileNotFoundError:
        raise MissingDataError(f"{path}: no such reference; make one with: sar-eval reference") from None
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: not a reference ({error})") from error
    if version != SCHEMA_VERSION:
        raise ContractError(f"{path}: schema_version is {version}; this analysis reads {SCHEMA_VERSION}")
    try:
        return _reference(path, plain)
    except (KeyError, TypeError, ValueError) as error:
        raise ContractError(f"{path}: the reference lacks or mistypes {error}") from error


def gaps(episodes: Iterable[EpisodeMetrics], reference: Reference) -> list[Gap]:
    """Every valid episode against the oracle, in the order given; one that cannot be compared is refused by name."""
    found = []
    for e in episodes:
        if not e.valid:
            continue
        oracle = _oracle_return(e, reference)
        if e.episode_return is None:
            raise MissingDataError(f"{e.episode_id}: no return to compare (it was not read from a bag with a search)")
        normalised = e.episode_return / oracle
        found.append(Gap(e.episode_id, e.seed, e.episode, normalised, float(shortfall(normalised))))
    return found


def gap_scores(episodes: Iterable[EpisodeMetrics], reference: Reference, drop_incomplete: bool = False) -> Scores:
    """The gaps of one condition as a crossed table, whose mean is the optimality gap under any design."""
    every = list(episodes)
    known = {(gap.seed, gap.episode): gap.gap for gap in gaps(every, reference)}
    cells = [
        Cell(e.seed, e.episode, known.get((e.seed, e.episode)), (e.sigma, e.kappa), e.layout, e.valid) for e in every
    ]
    return from_cells("optimality_gap", cells, drop_incomplete)


def beyond(found: Iterable[Gap]) -> int:
    """How many episodes returned more than the oracle."""
    return sum(gap.normalised > 1.0 for gap in found)


def _oracle_return(e: EpisodeMetrics, reference: Reference) -> float:
    where = f"{e.episode_id} against {reference.name}"
    for name, own, theirs in (
        ("episode set", e.episode_set, reference.episode_set),
        ("world", e.world_sha256, reference.world_sha256),
    ):
        if own != theirs:
            raise ContractError(f"{where}: {name} is {_short(own)}; the reference was flown in {_short(theirs)}")
    if e.task_sha256 != reference.task_sha256:
        flown = ", ".join(f"{key} {value}" for key, value in reference.task.items() if isinstance(value, int | float))
        raise ContractError(f"{where}: another task; the reference was flown with {flown}")
    key = (e.episode, e.sigma, e.kappa)
    if key in reference.invalid:
        raise MissingDataError(f"{where}: the oracle's own flight was INVALID ({reference.invalid[key]})")
    if key not in reference.returns:
        held = listed(reference.episodes)
        raise MissingDataError(
            f"{where}: no return for episode {e.episode} at sigma {e.sigma}, kappa {e.kappa}; it holds episodes {held}"
        )
    return reference.returns[key]


def _reference(path: Path, plain: dict[str, Any]) -> Reference:
    returns: dict[Key, float] = {}
    invalid: dict[Key, str] = {}
    for row in plain["returns"]:
        key = (int(row["episode"]), _number(row["sigma"]), _number(row["kappa"]))
        if key in returns or key in invalid:
            raise ContractError(f"{path}: episode {key[0]} at sigma {key[1]}, kappa {key[2]} appears twice")
        if row["return"] is None:
            invalid[key] = str(row["invalid_reason"])
            continue
        value = float(row["return"])
        if not (math.isfinite(value) and value > 0.0):
            raise ContractError(
                f"{path}: episode {key[0]} returned {value:g}; a reference must be above 0 to divide by"
            )
        returns[key] = value
    return Reference(
        path.name,
        str(plain["world"]),
        str(plain["world_sha256"]),
        str(plain["episode_set"]),
        str(plain["task_sha256"]),
        dict(plain["task"]),
        str(plain["version"]),
        returns,
        invalid,
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _short(value: Any) -> str:
    """A hash by its first digits, anything else as it is."""
    text = str(value)
    return f"{text[:12]}..." if len(text) == 64 else text
