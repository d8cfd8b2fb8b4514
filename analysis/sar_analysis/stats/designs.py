"""How a crossed table is resampled: which units are drawn again, and so what the interval is about.

Each design turns random draws into counts (resamples, cells), a cell being seed-major. The counts of one chunk fit a
core's cache, so memory stays flat however many resamples are asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sar_analysis.stats.interval import Cluster
from sar_analysis.stats.scores import Scores, listed
from sar_analysis.stats.statistics import Counts, Statistic
from sar_core.compiled import compiled
from sar_core.errors import InputError

Design = Literal["seeds", "seeds_layouts", "cluster", "stratified", "iid"]
CLUSTERS: dict[Design, Cluster] = {
    "seeds": "seed",
    "seeds_layouts": "seed and layout",
    "cluster": "episode within seed",
    "stratified": "run",
    "iid": "cell",
}
"""What each design takes as independent."""

ESTIMANDS: dict[Design, str] = {
    "seeds": "new seeds on these episodes",
    "seeds_layouts": "new seeds on new layouts at these noise levels",
    "cluster": "new seeds, each on its own new episodes",
    "stratified": "new runs of each episode, as if a seed had nothing in common between episodes",
    "iid": "new cells, as if neither seeds nor episodes had anything in common",
}
CELLS_PER_CHUNK = 1 << 16
Draws = NDArray[np.uint16]
Sampler = Callable[[np.random.Generator, int], Counts]


def check_design(scores: Scores, design: Design) -> None:
    """Refuse a design whose units are too few to be drawn again."""
    if design not in ESTIMANDS:
        raise InputError(f"{scores.metric}: bootstrap design {design!r}; allowed: {listed(list(ESTIMANDS))}")
    seeds, episodes = scores.values.shape
    if design != "iid" and seeds < 2:
        raise InputError(f"{scores.metric}: {seeds} seed cannot carry an interval over seeds; at least 2 are needed")
    if design == "seeds_layouts":
        alone = [blocks[0] for blocks in layout_groups(scores) if len(blocks) < 2]
        if alone:
            names = listed([f"episode {scores.episodes[block[0]]}" for block in alone])
            raise InputError(f"{scores.metric}: a single layout at its noise level cannot be redrawn: {names}")
    if design == "cluster" and episodes < 2:
        raise InputError(f"{scores.metric}: {episodes} episode cannot be redrawn within seeds; at least 2 are needed")
    if scores.values.size < 2:
        raise InputError(f"{scores.metric}: 1 value cannot be redrawn; at least 2 are needed")
    if scores.values.size > np.iinfo(np.uint16).max:
        raise InputError(f"{scores.metric}: {scores.values.size} cells; allowed: up to {np.iinfo(np.uint16).max}")


def layout_groups(scores: Scores) -> list[list[list[int]]]:
    """Blocks of columns that are drawn together (one layout), grouped by the noise levels they cover.

    Drawing whole layouts within a group keeps every level's number of episodes, whether each layout was flown at all
    levels or at one only.
    """
    blocks: dict[Hashable, list[int]] = {}
    for column, layout in enumerate(scores.layouts):
        blocks.setdefault(layout, []).append(column)
    groups: dict[frozenset[tuple[Hashable, int]], list[list[int]]] = {}
    for block in blocks.values():
        signature = frozenset(Counter(scores.levels[column] for column in block).items())
        groups.setdefault(signature, []).append(block)
    return list(groups.values())


def sampler(scores: Scores, design: Design) -> Sampler:
    """A function from a generator and a number of resamples to their counts (resamples, cells)."""
    seeds, episodes = scores.values.shape
    cells = seeds * episodes
    if design == "seeds":
        return lambda rng, n: np.repeat(redrawn(rng, n, seeds), episodes, axis=1)
    if design == "seeds_layouts":
        return _crossed_sampler(scores)
    if design == "stratified":
        column = np.tile(np.arange(episodes), seeds)
        return lambda rng, n: _count(_draw(rng, seeds, (n, cells)), cells, episodes, column)
    if design == "cluster":
        return lambda rng, n: _cluster_counts(
            _draw(rng, seeds, (n, seeds)), _draw(rng, episodes, (n, seeds, episodes)), cells
        )
    return lambda rng, n: redrawn(rng, n, cells)


def _crossed_sampler(scores: Scores) -> Sampler:
    seeds = len(scores.seeds)
    groups = layout_groups(scores)
    first = np.cumsum([0, *(len(blocks) for blocks in groups)])
    block_of = np.empty(len(scores.episodes), dtype=np.intp)
    for start, blocks in zip(first, groups, strict=False):
        for k, block in enumerate(blocks):
            block_of[block] = start + k

    def sample(rng: np.random.Generator, n: int) -> Counts:
        by_seed = redrawn(rng, n, seeds)
        by_block = np.concatenate([redrawn(rng, n, len(blocks)) for blocks in groups], axis=1)
        counts: Counts = by_seed[:, :, None] * by_block[:, None, block_of]
        return counts.reshape(n, -1)

    return sample


def left_out(scores: Scores, design: Design, statistic: Statistic) -> list[NDArray[np.float64]]:
    """The statistic with one unit left out at a time, one array per independent sample of the design."""
    return [defined(scores, statistic(kept), "jackknife samples") for kept in _jackknife_counts(scores, design)]


def units_left_out(scores: Scores, statistic: Statistic, seeds: bool = True) -> list[NDArray[np.float64]]:
    """The same for whatever can be left out: each seed (unless they are taken as given) and each layout, where two are.

    A layout is left out at all its noise levels, be it whole or not, so that one INVALID mission costs no more than
    its own episode. Empty where there is one of either: then nothing can be said about others.
    """
    episodes = len(scores.episodes)
    cell = np.arange(scores.values.size)
    names = list(dict.fromkeys(scores.layouts))
    layout = np.array([names.index(name) for name in scores.layouts])
    samples = [_without(cell // episodes, len(scores.seeds))] if seeds and len(scores.seeds) > 1 else []
    if len(names) > 1:
        samples.append(_without(layout[cell % episodes], len(names)))
    return [defined(scores, statistic(kept), "jackknife samples") for kept in samples]


def defined(scores: Scores, found: NDArray[np.float64], what: str) -> NDArray[np.float64]:
    """The statistics found, refused when any is NaN."""
    undefined = int(np.isnan(found).sum())
    if undefined:
        why = "inf minus inf, or a noise level left empty"
        raise InputError(f"{scores.metric}: undefined in {undefined} of {len(found)} {what} ({why})")
    return found


def _jackknife_counts(scores: Scores, design: Design) -> list[Counts]:
    seeds, episodes = scores.values.shape
    cell = np.arange(seeds * episodes)
    row, column = cell // episodes, cell % episodes
    if design == "iid":
        return [_without(cell, len(cell))]
    if design == "stratified":
        return [_without(np.where(column == e, row, seeds), seeds) for e in range(episodes)]
    samples = [_without(row, seeds)]
    if design == "seeds_layouts":
        for blocks in layout_groups(scores):
            unit = np.full(episodes, len(blocks))
            for k, block in enumerate(blocks):
                unit[block] = k
            samples.append(_without(unit[column], len(blocks)))
    return samples


def _without(unit: NDArray[np.intp], units: int) -> Counts:
    """Counts (units, cells): row k has 0 where a cell belongs to unit k, and 1 elsewhere."""
    return np.asarray(unit[None, :] != np.arange(units)[:, None], dtype=np.uint16)


def _draw(rng: np.random.Generator, below: int, shape: tuple[int, ...]) -> Draws:
    return rng.integers(0, below, shape, dtype=np.uint16)


def redrawn(rng: np.random.Generator, resamples: int, units: int) -> Counts:
    """Counts (resamples, units) of as many draws as there are units."""
    return _count(_draw(rng, units, (resamples, units)), units, 1, np.zeros(units, dtype=np.intp))


@compiled
def _count(draws: Draws, units: int, stride: int, offset: NDArray[np.intp]) -> Counts:
    """Counts (resamples, units) of draws (resamples, n); draw j of a resample names unit draw * stride + offset[j]."""
    counts = np.zeros((len(draws), units), dtype=np.uint16)
    for b in range(len(draws)):
        for j in range(draws.shape[1]):
            counts[b, draws[b, j] * stride + offset[j]] += 1
    return counts


@compiled
def _cluster_counts(rows: Draws, columns: Draws, cells: int) -> Counts:
    """Counts (resamples, cells) of drawn seeds (resamples, seeds) and the episodes drawn within each."""
    counts = np.zeros((len(rows), cells), dtype=np.uint16)
    episodes = columns.shape[2]
    for b in range(len(rows)):
        for s in range(rows.shape[1]):
            start = rows[b, s] * episodes
            for e in range(episodes):
                counts[b, start + columns[b, s, e]] += 1
    return counts
