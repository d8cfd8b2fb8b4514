"""Add a metric in one call and find it in a table of flown missions."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sar_analysis.bags.reader import Bag
from sar_analysis.metrics.catalogue import Metric, register
from sar_analysis.table import analyze
from sar_eval.episode.flight import fly_episode
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare


def highest_m(bag: Bag) -> float:
    """Of all drones over the whole flight, from the true states."""
    return float(bag.truth.position[..., 2].max())


HIGHEST = register(
    Metric(
        "highest_m",
        "highest point flown",
        "greatest height of any drone above the ground over the whole flight",
        "true states",
        unit="m",
        better="lower",
        aggregate="mean",
        measure=highest_m,
    )
)

with tempfile.TemporaryDirectory() as folder:
    for seed in (0, 1):
        episode = prepare(Scenario(drones=2, duration_s=20.0, radio=None), seed, index=0)
        result = fly_episode(episode, Path(folder) / episode.episode_id).result
        print(f"seed {seed}: {result['coverage']:.1%} covered in 20 s, {result['collisions']} collisions")
    columns = analyze(Path(folder)).columns()
    print(f"{HIGHEST.label}: {', '.join(f'{value:.1f} m' for value in columns['highest_m'])}")
