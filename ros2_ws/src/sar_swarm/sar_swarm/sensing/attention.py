"""Cross-viewpoint attention: which views of a transmitter to trust more, by agreement and by geometry.

A = softmax((Q K^T + G) / sqrt(d)), identity projections, G_ij = +-(w_angle cos(theta_ij) + w_dist exp(-d_ij / d_ref)).
The source's sign (+) favours views that lie close together, although its prose claims the opposite; ``spread`` is the
sign that does favour spread-out views. Its d_ref of 5 m is half a room's diagonal: between drones tens of metres apart
the distance term would be zero for every pair, so ours is of the order of the swarm's spacing around a target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled

Floats = NDArray[np.float64]


class Bias(StrEnum):
    """What geometry adds to the attention scores; NONE leaves every view its plain statistical weight."""

    NONE = "none"
    SOURCE = "source"
    SPREAD = "spread"


@dataclass(frozen=True)
class AttentionConfig:
    """Weights of the geometric bias (dimensionless), its distance scale and the signal floor of a viewpoint."""

    bias: Bias = Bias.SPREAD
    angle_weight: float = 1.0
    distance_weight: float = 1.0
    reference_distance_m: float = 60.0
    min_snr_db: float = 0.0


@compiled
def attention_matrix(
    embeddings: Floats, azimuths: Floats, positions: Floats, angle: float, distance: float, reference_m: float
) -> Floats:
    """Row-stochastic float64[V, V] of V viewpoints: embeddings [V, d], azimuths [V] rad, positions [V, >=2] m."""
    n, d = embeddings.shape
    scale = 1.0 / math.sqrt(d)
    reference = max(reference_m, 1e-6)
    out = np.empty((n, n))
    for i in range(n):
        top = -math.inf
        for j in range(n):
            dot = 0.0
            for k in range(d):
                dot += embeddings[i, k] * embeddings[j, k]
            gap = math.hypot(positions[i, 0] - positions[j, 0], positions[i, 1] - positions[j, 1])
            bias = angle * math.cos(azimuths[i] - azimuths[j]) + distance * math.exp(-gap / reference)
            out[i, j] = (dot + bias) * scale
            top = max(top, out[i, j])
        total = 0.0
        for j in range(n):
            out[i, j] = math.exp(out[i, j] - top)
            total += out[i, j]
        for j in range(n):
            out[i, j] /= total
    return out


def view_weights(
    embeddings: Floats, azimuths: Floats, positions: Floats, snr_db: Floats, config: AttentionConfig
) -> Floats:
    """Factor float64[V] on each viewpoint's information: its mean attention times V, so that equals weigh 1.

    Viewpoints under the signal floor weigh 0 whatever the bias; they take no part in the others' attention.
    """
    weights = (np.asarray(snr_db) >= config.min_snr_db).astype(np.float64)
    kept = np.flatnonzero(weights)
    if config.bias is Bias.NONE or len(kept) < 2:
        return weights
    sign = 1.0 if config.bias is Bias.SOURCE else -1.0
    matrix = attention_matrix(
        np.ascontiguousarray(embeddings[kept], dtype=np.float64),
        np.ascontiguousarray(azimuths[kept], dtype=np.float64),
        np.ascontiguousarray(positions[kept], dtype=np.float64),
        sign * config.angle_weight,
        sign * config.distance_weight,
        config.reference_distance_m,
    )
    weights[kept] = matrix.mean(axis=0) * len(kept)
    return weights
