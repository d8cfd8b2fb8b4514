"""The kernels' random numbers: the same everywhere, apart by key, and evenly spread."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sar_swarm.planning.dice import seed, uniform

keys = st.integers(0, 2**64 - 1)
WORD = 2**64 - 1


def plain(key: int, count: int) -> list[float]:
    """splitmix64 twice, then xorshift64*, in Python's own integers."""
    word = key
    for _ in range(2):
        word = word + 0x9E3779B97F4A7C15 & WORD
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & WORD
        word = (word ^ word >> 27) * 0x94D049BB133111EB & WORD
        word ^= word >> 31
    x, drawn = word | 1, []
    for _ in range(count):
        x ^= x >> 12
        x ^= x << 25 & WORD
        x ^= x >> 27
        drawn.append((x * 2685821657736338717 & WORD) / 2**64)
    return drawn


def throws(key: int, count: int) -> list[float]:
    state = seed(np.uint64(key))
    with np.errstate(over="ignore"):
        return [uniform(state) for _ in range(count)]


@given(keys)
def test_numbers_are_those_of_the_published_generator(key: int) -> None:
    ours = throws(key, 8)
    assert np.allclose(ours, plain(key, 8), rtol=0.0, atol=2.0**-53)
    assert all(0.0 <= number < 1.0 for number in ours)


@given(keys)
def test_no_key_gives_the_state_that_stands_still(key: int) -> None:
    assert seed(np.uint64(key))[0] != 0


def test_neighbouring_keys_share_nothing() -> None:
    first = [throws(key, 1)[0] for key in range(2000)]
    assert len(set(first)) == 2000
    assert stats.kstest(first, "uniform").pvalue > 0.01
    assert stats.kstest(throws(0, 2000), "uniform").pvalue > 0.01
