"""Many episodes as one tidy table, and in words everything that is not as it should be.

Nothing is dropped in silence: a bag that cannot be read, a duplicate, an episode that is INVALID, a mixture of
versions, tiers or worlds is named and counted. In a notebook:

    from sar_analysis.table import analyze
    table = analyze("runs")
    table.columns()["coverage_240s"]
"""

from __future__ import annotations

import csv
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sar_analysis.bags.reader import PARTIAL, SchemaVersionError, UnfinishedError, read_bag
from sar_analysis.bags.textfiles import read_text
from sar_analysis.metrics.conduct import bag_conduct, demand_same_constants
from sar_analysis.metrics.findings import Victim
from sar_analysis.metrics.metrics import EpisodeMetrics, episode_metrics
from sar_analysis.metrics.records import parse_record
from sar_core.errors import InputError, MissingDataError, SarError
from sar_core.indices import Indices

RECORDS = "episodes.jsonl"
FEW = 3
"""Fewer bags than this are read in this process: starting others takes longer."""


@dataclass(frozen=True)
class TableProblem:
    """What has no row: its kind (unreadable, unfinished, schema_version, duplicate), where it is, and why."""

    kind: str
    where: str
    reason: str


Found = tuple[str, EpisodeMetrics | TableProblem]
"""Where something was read, and what it came to."""


@dataclass(frozen=True)
class Table:
    """One row per episode, valid or not, ordered by condition, seed and episode; problems name what has no row."""

    episodes: tuple[EpisodeMetrics, ...]
    problems: tuple[TableProblem, ...]
    root: Path | None = field(default=None, compare=False)
    """Where it was read from; results leave it out, so that they do not depend on where the bags lie."""
    bags: Mapping[str, Path] = field(default_factory=dict, compare=False)
    """The folder of each episode's bag by the episode's key; empty for episodes from records."""

    @property
    def valid(self) -> tuple[EpisodeMetrics, ...]:
        return tuple(e for e in self.episodes if e.valid)

    @property
    def invalid(self) -> tuple[EpisodeMetrics, ...]:
        return tuple(e for e in self.episodes if not e.valid)

    def rows(self) -> list[dict[str, Any]]:
        """One flat dict per episode."""
        return [episode.row() for episode in self.episodes]

    def columns(self) -> dict[str, list[Any]]:
        """The same by column: what numpy, pandas and polars take as it is."""
        rows = self.rows()
        return {name: [row.get(name) for row in rows] for name in _names(rows)}

    def victims(self) -> list[dict[str, Any]]:
        """One flat dict per victim, valid episodes only, with what names its episode and condition."""
        keys = ("episode_id", "tier", "world", "pattern", "seed", "episode", "sigma", "kappa")
        return [
            {**{key: getattr(e, key) for key in keys}, "victim": number, **_flat(victim)}
            for e in self.valid
            for number, victim in enumerate(e.victims, start=1)
        ]

    def warnings(self) -> list[str]:
        """Everything a reader of the table must know, one sentence each."""
        said = [f"{problem.kind}: {problem.reason}" for problem in self.problems]
        said += [f"mixed: {text}" for text in _mixtures(self.episodes)]
        said += [f"invalid: {e.episode_id} ({e.invalid_reason or 'no reason given'})" for e in self.invalid]
        told: dict[str, list[str]] = {}
        for e in self.episodes:
            for note in e.notes:
                told.setdefault(note, []).append(e.episode_id)
        for note, ids in told.items():
            said.append(f"note: {ids[0] if len(ids) == 1 else f'{len(ids)} missions'}: {note}")
        return said

    def conduct(self, indices: Indices) -> list[dict[str, Any]]:
        """The terms of conduct by these constants, one flat row per valid mission that searched.

        A mission with a bag is computed from it. A record has only the terms it was made with: one that was made with
        other constants is refused, by name.
        """
        found = []
        for e in self.valid:
            bag = self.bags.get(e.key)
            terms = e.conduct if bag is None else bag_conduct(read_bag(bag), indices)
            if terms is None:
                continue
            demand_same_constants(terms, indices, e.episode_id)
            found.append({"episode_id": e.episode_id, **dict(_leaves(terms.plain()))})
        return found

    def counts(self) -> dict[str, int]:
        """Episodes, how many of them are invalid, and problems by kind."""
        kinds = Counter(problem.kind for problem in self.problems)
        return {"episodes": len(self.episodes), "invalid": len(self.invalid), **dict(sorted(kinds.items()))}

    def to_csv(self, path: Path | str) -> Path:
        """Write the rows; undefined values are empty fields."""
        return write_csv(self.rows(), Path(path))


def write_csv(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Flat rows under the names that any of them has."""
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, _names(rows), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def _names(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _leaves(plain: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Ends of nested mappings, such as ``rules.lane_s``."""
    for name, value in plain.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def analyze(
    path: Path | str, workers: int | None = None, tell: Callable[[int, int], None] = lambda done, of: None
) -> Table:
    """The table of a bag, of a folder of bags (searched through), or of a JSONL file of episode records (.zst too).

    A folder may hold both, as a campaign does that records only some missions: an episode with a bag is read from it,
    the others from their records in episodes.jsonl.

    `workers` processes read bags side by side; None takes one per CPU. `tell` hears how many of how many are read.
    """
    path = Path(path).resolve()
    if path.is_file():
        return _unique(_from_records(path), path)
    if not path.is_dir():
        raise MissingDataError(f"{path}: no such folder; expected bags or a .jsonl file of episode records")
    folders = find_bags(path)
    if folders:
        found = list(zip(map(str, folders), _measure_all(folders, workers, tell), strict=True))
        known = {item.key for _, item in found if isinstance(item, EpisodeMetrics)}
        told = [pair for file in sorted(path.rglob(RECORDS)) for pair in _from_records(file)]
        found = _with_gates(found, told)
        found += [(where, item) for where, item in told if not _is_among(item, known)]
        return _unique(found, path, frozenset(map(str, folders)))
    files = sorted(path.rglob("*.jsonl"))
    if not files:
        raise MissingDataError(f"{path}: neither a bag nor a .jsonl file of episode records inside")
    return _unique((item for file in files for item in _from_records(file)), path)


def _flat(victim: Victim) -> dict[str, Any]:
    return {name: value for name, value in asdict(victim).items() if name != "fixes"}


def _is_among(item: EpisodeMetrics | TableProblem, keys: set[str]) -> bool:
    return isinstance(item, EpisodeMetrics) and item.key in keys


def find_bags(path: Path) -> list[Path]:
    """Every folder at or below path that is, or was meant to be, a bag."""
    files = [*path.rglob("*.mcap"), *path.rglob("metadata.yaml"), *path.rglob(f"*{PARTIAL}/")]
    return sorted({file if file.is_dir() else file.parent for file in files})


def _with_gates(bags: Iterable[Found], records: Iterable[Found]) -> list[Found]:
    """Bags' rows with what only their records tell: how many frames passed the gate."""
    gates = {item.key: item.gate_open for _, item in records if isinstance(item, EpisodeMetrics)}
    return [
        (where, replace(item, gate_open=gates.get(item.key)) if isinstance(item, EpisodeMetrics) else item)
        for where, item in bags
    ]


def _measure_all(
    folders: list[Path], workers: int | None, tell: Callable[[int, int], None]
) -> list[EpisodeMetrics | TableProblem]:
    workers = min(workers or os.cpu_count() or 1, len(folders))
    if workers == 1 or len(folders) < FEW:
        return list(_counted(map(_measure, folders), len(folders), tell))
    # Forked children need no importable __main__, so this works from a notebook and from a bare script.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
        measured = pool.map(_measure, folders, chunksize=max(1, len(folders) // (8 * workers)))
        return list(_counted(measured, len(folders), tell))


def _counted(
    items: Iterable[EpisodeMetrics | TableProblem], of: int, tell: Callable[[int, int], None]
) -> Iterable[EpisodeMetrics | TableProblem]:
    for done, item in enumerate(items, start=1):
        yield item
        tell(done, of)


def _measure(folder: Path) -> EpisodeMetrics | TableProblem:
    try:
        return episode_metrics(folder)
    except SarError as error:
        return TableProblem(_kind(error), str(folder), str(error))


def _kind(error: SarError) -> str:
    if isinstance(error, SchemaVersionError):
        return "schema_version"
    return "unfinished" if isinstance(error, UnfinishedError) else "unreadable"


def _from_records(file: Path) -> list[tuple[str, EpisodeMetrics | TableProblem]]:
    try:
        lines = read_text(file).splitlines()
    except (OSError, ValueError) as error:
        raise MissingDataError(f"{file}: cannot be read as text: {error}") from error
    found: list[tuple[str, EpisodeMetrics | TableProblem]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{file}:{number}"
        try:
            found.append((where, parse_record(line, where)))
        except SarError as error:
            found.append((where, TableProblem(_kind(error), where, str(error))))
    if not found:
        raise MissingDataError(f"{file}: no episode records inside")
    return found


def _unique(
    items: Iterable[tuple[str, EpisodeMetrics | TableProblem]], root: Path, bags: frozenset[str] = frozenset()
) -> Table:
    """One row per episode flown. Of duplicates the first valid one counts; the others are named."""
    kept: dict[str, tuple[str, EpisodeMetrics]] = {}
    problems: list[TableProblem] = []
    for where, item in items:
        if isinstance(item, TableProblem):
            problems.append(item)
            continue
        key = item.key
        if key not in kept:
            kept[key] = (where, item)
            continue
        if item.valid and not kept[key][1].valid:
            kept[key], (where, item) = (where, item), kept[key]
        there, chosen = kept[key]
        problems.append(
            TableProblem("duplicate", where, f"{where}: the same episode as {there}, {_difference(chosen, item)}")
        )
    _refuse_mixed({e.schema: where for where, e in kept.values()})
    ordered = sorted((e for _, e in kept.values()), key=_order)
    folders = {key: Path(where) for key, (where, _) in kept.items() if where in bags}
    return Table(tuple(ordered), tuple(problems), root, folders)


def _refuse_mixed(schemas: Mapping[int, str]) -> None:
    """Reports judged by other definitions are no sample of the same thing."""
    if len(schemas) > 1:
        told = ", ".join(f"schema {schema} ({schemas[schema]})" for schema in sorted(schemas))
        raise InputError(f"one table holds one kind of record, here are {told}; analyse them apart (docs/migration.md)")


def _difference(chosen: EpisodeMetrics, other: EpisodeMetrics) -> str:
    one, two = chosen.row(), other.row()
    parted = [name for name in one if one[name] != two.get(name) and one[name] == one[name]]
    return f"but DIFFERENT in {', '.join(parted)}; left out" if parted else "with equal values; counted once"


def _order(e: EpisodeMetrics) -> tuple[Any, ...]:
    noise = (e.sigma or 0.0, -(e.kappa or 0.0))
    return (e.tier, e.world, e.pattern, e.drones, *noise, e.victim_absent, e.seed, e.episode, e.config_sha256)


def _mixtures(episodes: Iterable[EpisodeMetrics]) -> Iterable[str]:
    """What a table should not mix without saying so."""
    listed = list(episodes)
    for name, word in (("tier", "tiers"), ("version", "software versions"), ("episode_set", "episode sets")):
        values = sorted({str(getattr(e, name)) for e in listed})
        if len(values) > 1:
            yield f"{len(values)} {word} in one table: {', '.join(values)}"
    for world in sorted({e.world for e in listed}):
        hashes = {e.world_sha256 for e in listed if e.world == world}
        if len(hashes) > 1:
            yield f"{len(hashes)} different worlds are all called {world}"
    made = [e.conduct.indices for e in listed if e.conduct is not None]
    for file in sorted({file for indices in made for file in indices}):
        if len({indices.get(file) for indices in made}) > 1:
            yield f"terms of conduct computed with different {file}"
