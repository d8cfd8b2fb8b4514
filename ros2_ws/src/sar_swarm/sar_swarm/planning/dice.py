"""Random numbers inside kernels: a tiny integer state, seeded by a key, the same in every process."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined

Words = NDArray[np.uint64]

_S12, _S25, _S27, _S11 = np.uint64(12), np.uint64(25), np.uint64(27), np.uint64(11)
_STAR = np.uint64(2685821657736338717)


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A, _MIX_B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S31, _ONE = np.uint64(30), np.uint64(31), np.uint64(1)


@compiled
def seed(key: np.uint64) -> Words:
    """The generator's state for a key: two rounds of a mixing function (splitmix64), never zero."""
    word = key
    for _ in range(2):
        word += _GOLDEN
        word = (word ^ (word >> _S30)) * _MIX_A
        word = (word ^ (word >> _S27)) * _MIX_B
        word ^= word >> _S31
    state = np.empty(1, np.uint64)
    state[0] = word | _ONE
    return state


@inlined
def uniform(state: Words) -> float:
    """The next number of [0, 1): xorshift64* (Marsaglia 2003, Vigna 2016)."""
    x = state[0]
    x ^= x >> _S12
    x ^= x << _S25
    x ^= x >> _S27
    state[0] = x
    return float((x * _STAR) >> _S11) * 1.1102230246251565e-16
