"""Streams depend on their label and key only: not on order, process, batch, or how numbers happen to be packed."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sar_core
from sar_core.streams import label_key, stream

KEYS = st.lists(st.integers(0, 2**64 - 1), max_size=5).map(tuple)
LABELS = st.text(max_size=8)


def test_the_same_name_gives_the_same_numbers_in_any_order() -> None:
    alone = stream("gust", 7, 3, 1).normal(size=50)
    batch = {k: stream("gust", 7, 3, k).normal(size=50) for k in (4, 3, 2, 1, 0)}
    np.testing.assert_array_equal(alone, batch[1])


def test_another_process_with_another_hash_seed_agrees() -> None:
    code = "from sar_core.streams import stream; print(stream('link', 12, 2**40, 0).integers(0, 2**62, 8).tolist())"
    env = os.environ | {"PYTHONPATH": str(Path(sar_core.__file__).parents[1])}
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=env | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("0", "1")
    }
    assert seen == {str(stream("link", 12, 2**40, 0).integers(0, 2**62, 8).tolist())}


@given(LABELS, KEYS, LABELS, KEYS)
def test_different_names_give_different_streams(la: str, ka: tuple[int, ...], lb: str, kb: tuple[int, ...]) -> None:
    same = (la, ka) == (lb, kb)
    drawn_a, drawn_b = (stream(name, *key).integers(0, 2**63, 2).tolist() for name, key in ((la, ka), (lb, kb)))
    assert (drawn_a == drawn_b) == same


def test_keys_that_pack_alike_stay_apart() -> None:
    keys = [(), (0,), (0, 0), (0, 0, 0), (5,), (5, 0), (0, 5), (5 << 32,), (0, 1), (1 << 32,), (1, 0), (1,)]
    first = [int(stream("noise", *key).integers(0, 2**63)) for key in keys]
    assert len(set(first)) == len(keys)


def test_neighbouring_streams_are_uncorrelated_and_uniform() -> None:
    draws = np.array([stream("csi", seed, k).random(4000) for seed, k in itertools.product(range(6), range(6))])
    correlation = np.corrcoef(draws) - np.eye(len(draws))
    assert np.abs(correlation).max() < 5.0 / np.sqrt(4000)
    assert abs(draws.mean() - 0.5) < 5.0 * np.sqrt(1 / 12 / draws.size)


def test_numpy_integers_are_the_same_key_as_python_ones() -> None:
    key: Any = (np.int64(3), np.uint32(9))
    assert stream("wind", *key).random() == stream("wind", 3, 9).random()


@pytest.mark.parametrize("key", [(-1,), (3, -2), (2**64,)])
def test_keys_out_of_range_are_refused_by_name(key: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="'gust'"):
        stream("gust", *key)


def test_label_keys_are_the_little_end_of_sha256() -> None:
    assert label_key("") == int.from_bytes(bytes.fromhex("e3b0c44298fc1c14"), "little")
