"""A table of scores with seed, layout and cell effects."""

from __future__ import annotations

import numpy as np

from sar_analysis.stats.scores import Scores, of_matrix


def crossed(seeds: int = 6, episodes: int = 10, shared_layouts: bool = False) -> Scores:
    """Seed, layout and cell effects; two noise levels of equal size."""
    rng = np.random.default_rng(8)
    values = rng.normal(size=(seeds, 1)) + rng.normal(size=(1, episodes)) + rng.normal(size=(seeds, episodes))
    half = episodes // 2
    layouts = list(range(half)) * 2 if shared_layouts else list(range(episodes))
    return of_matrix("return", values, levels=[0.1] * half + [0.2] * half, layouts=layouts)
