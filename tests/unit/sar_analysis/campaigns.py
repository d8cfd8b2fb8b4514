"""Folders of small bags that differ in seed and episode alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.unit.sar_analysis.bagmaker import Made, straight

VICTIM = [(7, 0, (20.0, 50.0, 0.5))]


def bag(folder: Path, seed: int = 0, episode: int = 0, speed: float = 8.0, **more: Any) -> Path:
    """One drone on a straight line past one victim, four seconds long."""
    path = straight(4.0, np.array([[2.5, 52.5, 30.0]]), np.array([[speed, 0.0, 0.0]]))
    info = {
        "seed": seed,
        "episode": episode,
        "episode_id": f"s{seed}-e{episode}",
        "config_sha256": f"c{seed}-{episode}",
    }
    return Made(path, 1.0, 3.0, info=info, **({"devices": VICTIM, "coverage": 0.095} | more)).write(
        folder / f"{seed}-{episode}"
    )


def campaign(root: Path, seeds: int = 2, episodes: int = 2, **more: Any) -> Path:
    """A bag for each seed and episode."""
    for seed in range(seeds):
        for episode in range(episodes):
            bag(root, seed, episode, **more)
    return root
