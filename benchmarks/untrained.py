"""An untrained actor, for tests and benchmarks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sar_core.streams import stream
from sar_swarm.piloting.policy import ACTIONS, OBSERVATIONS

HIDDEN = (128, 64)


def random_actor(path: Path | str, seed: int, hidden: Sequence[int] = HIDDEN) -> Path:
    """Write an untrained actor, labelled as such: random weights of variance 1 / inputs."""
    random = stream("random actor", seed)
    widths = (OBSERVATIONS, *hidden, ACTIONS)
    arrays: dict[str, NDArray[np.generic]] = {"label": np.array(f"untrained, random weights, seed {seed}")}
    for k in range(1, len(widths)):
        shape = (widths[k], widths[k - 1])
        arrays[f"w{k}"] = (random.standard_normal(shape) / math.sqrt(shape[1])).astype(np.float32)
        arrays[f"b{k}"] = np.zeros(shape[0], np.float32)
    file = Path(path)
    with file.open("wb") as stream_out:
        np.savez(stream_out, **arrays)  # type: ignore[arg-type]
    return file
