"""One metric of one condition: a full seeds x episodes table, with the labels that resampling needs.

Every seed flies the same episodes, so the table is crossed. A hole in it is never filled and never averaged over in
silence: it is refused by name, or the caller drops the episodes that some seed lacks and the table says so.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import InputError, MissingDataError

Array = NDArray[np.float64]
NAMED = 5  # how many culprits a message lists before it counts the rest


def listed(items: Sequence[object]) -> str:
    """The first few items in words, and how many more there are."""
    head = ", ".join(str(item) for item in items[:NAMED])
    return head if len(items) <= NAMED else f"{head} and {len(items) - NAMED} more"


def numbers(items: Sequence[int], most: int = 12) -> str:
    """A list of seeds or episodes, shortened where it runs on without a gap."""
    if not items:
        return "none"
    if len(items) > 2 and list(items) == list(range(items[0], items[-1] + 1)):
        return f"{items[0]} to {items[-1]}"
    head = ", ".join(map(str, items[:most]))
    return head if len(items) <= most else f"{head} and {len(items) - most} more"


@dataclass(frozen=True)
class Scores:
    """``values`` is (seeds, episodes); ``levels`` and ``layouts`` name each episode's noise level and layout.

    A value is a number; inf stands for an error that never became finite (an undetected victim), NaN is refused.

    Episodes that share a layout are resampled together; the levels keep their share of episodes in every resample.
    ``notes`` says in words what a reader must know before trusting a figure made from this table.
    """

    metric: str
    values: Array
    seeds: tuple[int, ...]
    episodes: tuple[int, ...]
    levels: tuple[Hashable, ...]
    layouts: tuple[Hashable, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_shape(self)
        _check_numbers(self)

    @property
    def level_names(self) -> tuple[Hashable, ...]:
        """The noise levels in the order of their first episode."""
        return tuple(dict.fromkeys(self.levels))

    def at_level(self, level: Hashable) -> Scores:
        """The same table on the episodes of one noise level."""
        if level not in self.levels:
            raise InputError(f"{self.metric}: no noise level {level!r}; allowed: {listed(self.level_names)}")
        return self.on([e for e, other in enumerate(self.levels) if other == level])

    def on(self, columns: Sequence[int], *notes: str) -> Scores:
        """The same table on some of its columns (positions, not episode numbers)."""
        return Scores(
            self.metric,
            self.values[:, list(columns)],
            self.seeds,
            tuple(self.episodes[c] for c in columns),
            tuple(self.levels[c] for c in columns),
            tuple(self.layouts[c] for c in columns),
            (*self.notes, *notes),
        )


def of_matrix(
    metric: str,
    values: NDArray[np.floating],
    levels: Sequence[Hashable] | None = None,
    layouts: Sequence[Hashable] | None = None,
) -> Scores:
    """A table from a bare (seeds, episodes) matrix: numbered from 0, one noise level, every episode its own layout."""
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise InputError(f"{metric}: scores have shape {matrix.shape}; allowed: (seeds, episodes)")
    rows, columns = matrix.shape
    return Scores(
        metric,
        matrix,
        tuple(range(rows)),
        tuple(range(columns)),
        tuple(levels) if levels is not None else ("all",) * columns,
        tuple(layouts) if layouts is not None else tuple(range(columns)),
    )


@dataclass(frozen=True)
class Cell:
    """One episode of one seed; ``value`` is None where it was not flown, is INVALID (not ``valid``) or undefined."""

    seed: int
    episode: int
    value: float | None
    level: Hashable = "all"
    layout: Hashable = None
    valid: bool = True
    number: int | None = None
    """What the episode was flown as, where ``episode`` is only the table's column."""


def from_cells(metric: str, cells: Iterable[Cell], drop_incomplete: bool = False) -> Scores:
    """The crossed table of these cells; a cell's layout defaults to its episode.

    A seed or episode that is not complete is refused by name. With ``drop_incomplete`` the episodes that some seed
    lacks are left out for every seed, so that the design stays crossed, and a note counts them.
    """
    table: dict[tuple[int, int], Cell] = {}
    for cell in cells:
        if (cell.seed, cell.episode) in table:
            raise InputError(f"{metric}: seed {cell.seed}, episode {cell.episode} appears twice; allowed: once")
        table[cell.seed, cell.episode] = cell
    if not table:
        raise MissingDataError(f"{metric}: no episodes; at least one is needed")
    seeds = tuple(sorted({seed for seed, _ in table}))
    episodes = tuple(sorted({episode for _, episode in table}))
    holes = [(s, e) for s in seeds for e in episodes if (s, e) not in table or table[s, e].value is None]
    if holes and not drop_incomplete:
        names = listed([_named(table, s, e) for s, e in holes])
        raise MissingDataError(f"{metric}: {len(holes)} of {len(seeds) * len(episodes)} cells have no value: {names}")
    lost = {e for _, e in holes}
    kept = tuple(e for e in episodes if e not in lost)
    if not kept:
        raise MissingDataError(f"{metric}: no episode has a value for all {len(seeds)} seeds")
    invalid = all(hole in table and not table[hole].valid for hole in holes)
    why = "not valid for every seed" if invalid else "no value for every seed"
    notes = (f"{len(lost)} of {len(episodes)} episodes left out: {why}",) if lost else ()
    return _assemble(metric, table, seeds, kept, notes)


def on_common_episodes(tables: Sequence[Scores]) -> list[Scores]:
    """The tables on the columns that all of them have, so that they pair; a note counts what each one lost.

    A column is known by its noise level and layout: the number of one flown at several levels is its table's own.
    """
    keys = [list(zip(table.levels, table.layouts, strict=True)) for table in tables]
    common = set(keys[0]).intersection(*keys[1:]) if tables else set()
    if tables and not common:
        raise MissingDataError(f"{listed([table.metric for table in tables])}: no episode is common to all tables")
    found: list[Scores] = []
    for table, own in zip(tables, keys, strict=True):
        columns = [c for c, key in enumerate(own) if key in common]
        lost = len(own) - len(columns)
        note = (f"{lost} of {len(own)} episodes left out: not in every compared table",) if lost else ()
        kept = table.on(columns, *note)
        if found and (kept.levels, kept.layouts) == (found[0].levels, found[0].layouts):
            kept = replace(kept, episodes=found[0].episodes)
        found.append(kept)
    return found


def _named(table: dict[tuple[int, int], Cell], seed: int, episode: int) -> str:
    """A cell in words; where an episode was flown at several noise levels its number is only the column's."""
    cell = table.get((seed, episode))
    if cell is None or cell.number in (None, episode):
        return f"seed {seed} episode {episode}"
    return f"seed {seed} episode {cell.number} at {level_words(cell.level)}"


def level_words(level: Hashable) -> str:
    """A noise level in words: sigma and kappa where it is such a pair."""
    return f"sigma {level[0]}, kappa {level[1]}" if isinstance(level, tuple) and len(level) == 2 else str(level)


def _assemble(
    metric: str,
    table: dict[tuple[int, int], Cell],
    seeds: tuple[int, ...],
    episodes: tuple[int, ...],
    notes: tuple[str, ...],
) -> Scores:
    for e in episodes:
        labels = {(table[s, e].level, table[s, e].layout) for s in seeds}
        if len(labels) > 1:
            raise InputError(
                f"{metric}: episode {e} has several noise levels or layouts: {listed(sorted(map(str, labels)))}"
            )
    first = [table[seeds[0], e] for e in episodes]
    return Scores(
        metric,
        np.array([[table[s, e].value for e in episodes] for s in seeds], dtype=np.float64),
        seeds,
        episodes,
        tuple(cell.level for cell in first),
        tuple(cell.episode if cell.layout is None else cell.layout for cell in first),
        notes,
    )


def _check_shape(scores: Scores) -> None:
    shape = scores.values.shape
    if len(shape) != 2 or 0 in shape:
        raise InputError(f"{scores.metric}: scores have shape {shape}; allowed: (seeds, episodes), both at least 1")
    for name, labels, size in (
        ("seeds", scores.seeds, shape[0]),
        ("episodes", scores.episodes, shape[1]),
        ("levels", scores.levels, shape[1]),
        ("layouts", scores.layouts, shape[1]),
    ):
        if len(labels) != size:
            raise InputError(f"{scores.metric}: {len(labels)} {name} for a table of shape {shape}; allowed: {size}")
    for name, numbers in (("seed", scores.seeds), ("episode", scores.episodes)):
        if len(set(numbers)) < len(numbers):
            raise InputError(f"{scores.metric}: a {name} appears twice among {listed(numbers)}; allowed: once")


def _check_numbers(scores: Scores) -> None:
    bad = np.argwhere(np.isnan(scores.values) | np.isneginf(scores.values))
    if len(bad):
        names = listed([f"seed {scores.seeds[s]} episode {scores.episodes[e]}" for s, e in bad])
        raise InputError(f"{scores.metric}: {len(bad)} values are not numbers: {names}")
