"""Attention over viewpoints against plain numpy, and what each sign of its bias favours."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from sar_swarm.sensing.attention import AttentionConfig, Bias, attention_matrix, view_weights

Floats = NDArray[np.float64]


def views(degrees: list[float], radius: float = 60.0) -> tuple[Floats, Floats, Floats, Floats]:
    """Viewpoints that agree with each other: embeddings, azimuths, positions, signal to noise ratios."""
    a = np.radians(degrees)
    return (
        np.tile([1.0, 0.0, 0.0], (len(a), 1)),
        a,
        radius * np.column_stack([np.cos(a), np.sin(a)]),
        np.full(len(a), 20.0),
    )


def test_matrix_is_the_softmax_of_the_source() -> None:
    rng = np.random.default_rng(0)
    embeddings, azimuths, positions = (
        rng.normal(size=(5, 7)),
        rng.uniform(0.0, 7.0, 5),
        rng.uniform(-80.0, 80.0, (5, 2)),
    )
    gap = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    bias = 1.3 * np.cos(azimuths[:, None] - azimuths[None]) + 0.7 * np.exp(-gap / 5.0)
    np.testing.assert_allclose(np.diag(bias), 2.0)
    scores = np.exp((embeddings @ embeddings.T + bias) / math.sqrt(7.0))
    expected = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(attention_matrix(embeddings, azimuths, positions, 1.3, 0.7, 5.0), expected, rtol=1e-12)


def test_equal_views_weigh_one_each() -> None:
    for bias in Bias:
        weights = view_weights(*views([0.0, 120.0, 240.0]), AttentionConfig(bias=bias))
        np.testing.assert_allclose(weights, 1.0)


def test_the_signs_favour_opposite_things() -> None:
    close_and_apart = views([0.0, 10.0, 180.0])
    source = view_weights(*close_and_apart, AttentionConfig(bias=Bias.SOURCE))
    spread = view_weights(*close_and_apart, AttentionConfig(bias=Bias.SPREAD))
    assert source[2] < 0.95 < 1.0 < source[0]
    assert spread[2] > 1.05 > 1.0 > spread[0]
    np.testing.assert_allclose([source.sum(), spread.sum()], 3.0)


def test_a_disagreeing_view_is_trusted_less() -> None:
    embeddings, azimuths, positions, snr = views([0.0, 90.0, 180.0, 270.0])
    embeddings[1] = [0.2, 0.0, 0.98]
    weights = view_weights(embeddings, azimuths, positions, snr, AttentionConfig(bias=Bias.SPREAD))
    assert weights[1] < 0.9 and np.all(weights[[0, 2, 3]] > 1.0)


@pytest.mark.parametrize("bias", list(Bias))
def test_weak_views_are_dropped_and_do_not_speak_for_others(bias: Bias) -> None:
    embeddings, azimuths, positions, snr = views([0.0, 120.0, 240.0, 5.0])
    snr[3] = -0.1
    weights = view_weights(embeddings, azimuths, positions, snr, AttentionConfig(bias=bias))
    np.testing.assert_allclose(weights, [1.0, 1.0, 1.0, 0.0])
    snr[3] = 2.0
    assert view_weights(embeddings, azimuths, positions, snr, AttentionConfig(bias=bias))[3] > 0.0


def test_the_sources_distance_scale_says_nothing_between_drones() -> None:
    """Beyond 25 m a scale of 5 m leaves no distance term; ours still tells 30 m from 120 m."""
    embeddings, azimuths, positions, snr = views([0.0, 0.0, 0.0])
    positions = np.array([[0.0, 0.0], [30.0, 0.0], [150.0, 0.0]])
    room = AttentionConfig(Bias.SPREAD, angle_weight=0.0, reference_distance_m=5.0)
    ours = AttentionConfig(Bias.SPREAD, angle_weight=0.0)
    assert np.ptp(view_weights(embeddings, azimuths, positions, snr, room)) < 1e-3
    assert np.ptp(view_weights(embeddings, azimuths, positions, snr, ours)) > 0.05
