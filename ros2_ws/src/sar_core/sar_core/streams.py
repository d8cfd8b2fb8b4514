"""Random streams that depend on what they are for, never on how often anything was called before."""

from __future__ import annotations

import hashlib

import numpy as np


def label_key(label: str) -> int:
    """A stable 64-bit number for a stream's name (Python's own hash changes per process)."""
    return int.from_bytes(hashlib.sha256(label.encode()).digest()[:8], "little")


def stream(label: str, *key: int) -> np.random.Generator:
    """The generator for one purpose, for example ``stream("gust", seed, episode, drone)``.

    Different labels or keys give independent streams; the same ones give the same numbers in any process,
    in any order, alone or in a batch.
    """
    if any(k < 0 for k in key):
        raise ValueError(f"stream keys are non-negative integers, got {key} for {label!r}")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([label_key(label), *key])))
