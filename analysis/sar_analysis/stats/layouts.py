"""Which missions share a layout, and how often each layout is drawn: what every figure over layouts starts from."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sar_analysis.stats.designs import redrawn
from sar_analysis.stats.interval import Array, Cluster
from sar_analysis.stats.resampling import LEAST, RESAMPLES
from sar_analysis.stats.statistics import Counts
from sar_core.errors import InputError
from sar_core.streams import stream

LEAST_LAYOUTS = 5
Layouts = Sequence[Hashable] | None


@dataclass(frozen=True)
class Options:
    """How the resamples are drawn."""

    resamples: int = RESAMPLES
    seed: int = 0
    confidence: float = 0.95


DEFAULT = Options()


@dataclass(frozen=True)
class Groups:
    """Which layout (0 to count - 1) each entry belongs to (n,), and what the layouts stand for."""

    of: NDArray[np.intp]
    count: int
    cluster: Cluster

    @property
    def plural(self) -> str:
        return f"{self.cluster}s"

    @property
    def few(self) -> tuple[str, ...]:
        """What a bootstrap over so few must say."""
        return (f"only {self.count} {self.plural}: covers less than it claims",) if self.count < LEAST_LAYOUTS else ()

    def totals(self, values: Array) -> Array:
        """Sums of entries (n,) by layout (count,)."""
        return np.asarray(np.bincount(self.of, values, self.count), dtype=np.float64)

    def kept(self, mask: NDArray[np.bool_]) -> Groups:
        """Those of the entries kept."""
        names, of = np.unique(self.of[mask], return_inverse=True)
        return Groups(of, len(names), self.cluster)


def grouped(n: int, layouts: Layouts) -> Groups:
    """The layouts of n entries; without any each entry stands for itself."""
    if layouts is None:
        return Groups(np.arange(n), n, "mission")
    if len(layouts) != n:
        raise InputError(f"{n} values and {len(layouts)} layouts; allowed: as many of either")
    places: dict[Hashable, int] = {}
    of = np.array([places.setdefault(layout, len(places)) for layout in layouts], dtype=np.intp)
    return Groups(of, len(places), "layout")


@lru_cache(maxsize=4)
def draws(layouts: int, resamples: int, seed: int) -> Counts:
    """How often each layout is drawn (resamples, layouts); figures of the same layouts share their draws."""
    if resamples < LEAST:
        raise InputError(f"{resamples} resamples; allowed: at least {LEAST}")
    counts = redrawn(stream("bootstrap layouts", seed, layouts), resamples, layouts)
    counts.flags.writeable = False
    return counts
