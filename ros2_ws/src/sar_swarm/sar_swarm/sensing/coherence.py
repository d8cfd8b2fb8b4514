"""How much a link's recent frames agree: in phase (phasor coherence R) and in amplitude (score against a template).

Phase: R = |mean exp(i residual)| over the last 50 frames. Under von Mises noise its expectation is I1(kappa)/I0(kappa),
a little more in a finite window: E[R^2] = A^2 + (1 - A^2)/50.

Amplitude: x[56] is the root of both antennas' power per subcarrier, divided by the frame's mean. Division takes out
gain steps and the distance; what is left is the channel's shape over frequency. score = sum w exp(-z^2/2) / sum w with
z = |x - reference|/q and w = 1/(q^2 + 1e-6). The template learns only from frames that it accepts.

A template whose variance equals the noise's scores 1/sqrt(2) = 0.71, below the 0.85 of Accept: taken alone, a learnt
variance ends where it accepts nothing. So q^2 = variance + tolerance^2: up to a tolerance of 0.1 (a tenth of the mean
amplitude: quantisation to int8, thermal noise at 20 dB, sigma = 0.05) a shape counts as unchanged. Tolerance 0 is the
plain law. A drone that flies through echoes sees the shape change for real, and the score falls: nothing is hidden.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.radio import SUBCARRIERS

Floats = NDArray[np.float64]

WINDOW = 50
BINS = len(SUBCARRIERS)

# A phasor window's row: frames held, where the next goes, running sums, then the frames' (cosine, sine).
W_COUNT, W_NEXT, W_COS, W_SIN, W_RING = 0, 1, 2, 3, 4

# A template's row: frames learnt from, frames since the last accepted one, reference, variance.
T_SEEN, T_STALE, T_REFERENCE, T_VARIANCE = 0, 1, 2, 2 + BINS
TEMPLATE = 2 + 2 * BINS

VARIANCE_FLOOR = 1e-6
WEIGHT_FLOOR = 1e-6


@dataclass(frozen=True)
class TemplateConfig:
    """Law of the amplitude template; all numbers dimensionless, amplitudes relative to the frame's mean."""

    decay: float = 0.95
    accept: float = 0.85
    initial_variance: float = 1.0
    tolerance: float = 0.10

    def array(self) -> Floats:
        """The numbers the kernels take."""
        return np.array([self.decay, self.accept, self.initial_variance, self.tolerance**2])


def window_row(frames: int = WINDOW) -> Floats:
    """An empty phasor window."""
    return np.zeros(W_RING + 2 * frames)


def template_row() -> Floats:
    """A template that has seen nothing."""
    return np.zeros(TEMPLATE)


@compiled
def push_phasor(row: Floats, cosine: float, sine: float) -> float:
    """Take a frame's unit phasor into the window, drop the oldest of a full one; returns R.

    The running sums are added up afresh each time round the ring, so that rounding cannot pile up.
    """
    frames = (row.size - W_RING) // 2
    slot = int(row[W_NEXT])
    at = W_RING + 2 * slot
    if row[W_COUNT] == frames:
        row[W_COS] -= row[at]
        row[W_SIN] -= row[at + 1]
    else:
        row[W_COUNT] += 1.0
    row[at] = cosine
    row[at + 1] = sine
    row[W_COS] += cosine
    row[W_SIN] += sine
    slot += 1
    if slot == frames:
        slot = 0
        row[W_COS] = row[W_SIN] = 0.0
        for k in range(frames):
            row[W_COS] += row[W_RING + 2 * k]
            row[W_SIN] += row[W_RING + 2 * k + 1]
    row[W_NEXT] = slot
    return coherence(row)


@compiled
def coherence(row: Floats) -> float:
    """R of a window in [0, 1]; 0 where it is empty."""
    if row[W_COUNT] == 0.0:
        return 0.0
    return min(math.sqrt(row[W_COS] * row[W_COS] + row[W_SIN] * row[W_SIN]) / float(row[W_COUNT]), 1.0)


@compiled
def shape_of(power: Floats, out: Floats) -> bool:
    """Amplitudes [56] relative to their mean, from powers [56]; False where there is no signal at all."""
    total = 0.0
    for k in range(power.size):
        out[k] = math.sqrt(power[k])
        total += out[k]
    if not total > 0.0:
        return False
    scale = power.size / total
    for k in range(power.size):
        out[k] *= scale
    return True


@compiled
def score_shape(row: Floats, x: Floats, config: Floats) -> float:
    """Score of amplitudes x[56] against the template, in [0, 1]; 1 for the very first frame. Changes nothing."""
    if row[T_SEEN] == 0.0:
        return 1.0
    weights = 0.0
    total = 0.0
    for k in range(x.size):
        spread = max(row[T_VARIANCE + k], VARIANCE_FLOOR) + config[3]
        off = x[k] - row[T_REFERENCE + k]
        w = 1.0 / (spread + WEIGHT_FLOOR)
        weights += w
        total += w * math.exp(-0.5 * off * off / spread)
    return min(max(total / weights, 0.0), 1.0)


@compiled
def step_template(row: Floats, x: Floats, config: Floats) -> float:
    """Score a frame and, where it is accepted, learn from it; otherwise the template grows stale by a frame."""
    score = score_shape(row, x, config)
    if row[T_SEEN] == 0.0:
        row[T_REFERENCE : T_REFERENCE + x.size] = x
        row[T_VARIANCE : T_VARIANCE + x.size] = config[2]
    elif score < config[1]:
        row[T_STALE] += 1.0
        return score
    else:
        learn = 1.0 - config[0]
        for k in range(x.size):
            off = x[k] - row[T_REFERENCE + k]
            row[T_REFERENCE + k] += learn * off
            row[T_VARIANCE + k] = config[0] * row[T_VARIANCE + k] + learn * off * off
    row[T_SEEN] += 1.0
    row[T_STALE] = 0.0
    return score
