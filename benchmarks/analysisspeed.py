"""Our intervals beside rliable's on the same table, as ratios measured in one run.

    python -m benchmarks.analysisspeed

rliable is asked for the interval it makes (stratified, IQM); ours is timed on the same one and on a full table's worth.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from sar_analysis.stats.designs import ESTIMANDS
from sar_analysis.stats.resampling import bootstrap
from sar_analysis.stats.scores import of_matrix
from sar_core.errors import MissingDependencyError

SEEDS, EPISODES = 10, 50
RESAMPLES = 50_000
METRICS, CONDITIONS, TABLE_RESAMPLES = 12, 4, 10_000
REPEATS = 3


@dataclass(frozen=True)
class Speed:
    """Best times in s; ``ratio`` is the peer's time over ours for the same interval."""

    rliable_s: float
    interval_s: dict[str, float]
    ratio: float
    table_s: float
    table_per_rliable: float


def best(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """The shortest wall time of several runs, s; compiling falls into the first and so out of the best."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(resamples: int = RESAMPLES, repeats: int = REPEATS) -> Speed:
    """Time one interval per design, a table of them, and rliable's interval of the same size."""
    try:
        library = importlib.import_module("rliable.library")
        metrics = importlib.import_module("rliable.metrics")
    except ImportError:
        raise MissingDependencyError("rliable is not installed: pip install 'sar-eval[oracle]'") from None
    values = np.random.default_rng(0).normal(size=(SEEDS, EPISODES))
    scores = of_matrix("return", values)
    ours: dict[str, float] = {
        design: best(partial(bootstrap, scores, design=design, resamples=resamples), repeats) for design in ESTIMANDS
    }

    def table() -> None:
        for row in range(METRICS * CONDITIONS):
            bootstrap(scores, design="seeds_layouts", resamples=TABLE_RESAMPLES, seed=row)

    def peer() -> None:
        library.get_interval_estimates({"a": values}, lambda s: np.array([metrics.aggregate_iqm(s)]), reps=resamples)

    theirs, whole = best(peer, repeats), best(table, repeats)
    return Speed(theirs, ours, theirs / ours["stratified"], whole, whole / theirs)


def main() -> None:
    """Print the figures as JSON."""
    print(json.dumps(asdict(measure()), indent=1))


if __name__ == "__main__":
    main()
