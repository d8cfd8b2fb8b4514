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
    in any order, alone or in a batch. SeedSequence strings its words together and pads them with zeros, so each
    number enters as exactly two words and their count goes in front: (5,), (5, 0) and (5 << 32,) stay apart.
    """
    if not all(0 <= k < 1 << 64 for k in key):
        raise ValueError(f"stream keys are integers from 0 to 2^64 - 1, got {key} for {label!r}")
    words = [len(key)]
    for number in (label_key(label), *(int(k) for k in key)):
        words += [number & 0xFFFFFFFF, number >> 32]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))
