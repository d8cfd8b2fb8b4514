"""Designs draw what they say, and refuse tables whose units are too few to be drawn again."""

from __future__ import annotations

import numpy as np
import pytest

from sar_analysis.stats.designs import ESTIMANDS, Design, check_design, sampler
from sar_analysis.stats.scores import Scores, of_matrix
from sar_core.errors import InputError
from tests.unit.sar_analysis.stats.madescores import crossed

DESIGNS: list[Design] = list(ESTIMANDS)


def drawn(scores: Scores, design: Design, resamples: int = 400) -> np.ndarray:
    counts = sampler(scores, design)(np.random.default_rng(0), resamples)
    return counts.reshape(resamples, *scores.values.shape).astype(int)


@pytest.mark.parametrize("design", DESIGNS)
def test_every_resample_has_as_many_cells_as_the_table_and_each_cell_its_turn(design: Design) -> None:
    scores = crossed()
    counts = drawn(scores, design, 4000)
    assert set(counts.sum(axis=(1, 2))) == {scores.values.size}
    np.testing.assert_allclose(counts.mean(axis=0), 1.0, atol=0.15)


def test_seeds_keep_their_episodes() -> None:
    counts = drawn(crossed(), "seeds")
    assert (counts == counts[:, :, :1]).all()
    assert (counts[:, :, 0].std(axis=1) > 0).any()


@pytest.mark.parametrize("shared", [False, True])
def test_layouts_are_drawn_whole_and_every_noise_level_keeps_its_size(shared: bool) -> None:
    scores = crossed(shared_layouts=shared)
    counts = drawn(scores, "seeds_layouts")
    by_seed, by_episode = counts.sum(axis=2) // 10, counts.sum(axis=1) // 6
    np.testing.assert_array_equal(counts, by_seed[:, :, None] * by_episode[:, None, :])
    np.testing.assert_array_equal(by_episode[:, :5].sum(axis=1), 5)
    assert (by_episode[:, :5] == by_episode[:, 5:]).all() == shared


def test_cluster_draws_seeds_then_episodes_within() -> None:
    counts = drawn(crossed(), "cluster")
    assert (counts.sum(axis=2) % 10 == 0).all()
    assert not (counts == counts[:, :, :1]).all()
    assert set(counts.sum(axis=2).ravel() // 10) >= {0, 1, 2, 3}


def test_strata_draw_runs_within_each_episode() -> None:
    assert (drawn(crossed(), "stratified").sum(axis=1) == 6).all()


@pytest.mark.parametrize(
    ("values", "design", "message"),
    [
        (np.ones((1, 5)), "seeds", "1 seed cannot carry an interval over seeds; at least 2"),
        (np.ones((3, 1)), "cluster", "1 episode cannot be redrawn within seeds"),
        (np.ones((3, 1)), "seeds_layouts", "a single layout at its noise level cannot be redrawn: episode 0"),
        (np.ones((1, 1)), "iid", "1 value cannot be redrawn"),
        (np.ones((3, 3)), "nested", "bootstrap design 'nested'; allowed: seeds, seeds_layouts"),
    ],
)
def test_too_few_units_are_refused(values: np.ndarray, design: Design, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_design(of_matrix("return", values), design)
