"""Coherence: the phasor window and the amplitude template against brute force and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import i0e, i1e

from sar_swarm.sensing.coherence import (
    BINS,
    T_REFERENCE,
    T_SEEN,
    T_VARIANCE,
    WINDOW,
    TemplateConfig,
)
from tests.unit.sar_swarm.sensing.links import AmplitudeTemplate, PhasorWindow

PLAIN = TemplateConfig(tolerance=0.0)


def flat() -> np.ndarray:
    return np.ones(BINS)


def wiggle(size: float) -> np.ndarray:
    """A shape of mean 1 that is off by ``size`` in every bin, up and down in turn."""
    return 1.0 + size * np.where(np.arange(BINS) % 2 == 0, 1.0, -1.0)


def test_an_empty_window_has_no_coherence() -> None:
    assert PhasorWindow().coherence == 0.0


@given(st.integers(1, 180), st.floats(0.0, 7.0))
def test_r_is_the_length_of_the_mean_phasor_of_the_last_frames(frames: int, spread: float) -> None:
    phases = np.random.default_rng(frames).uniform(-spread, spread, frames)
    window = PhasorWindow()
    for phase in phases:
        r = window.push(phase)
    assert r == pytest.approx(abs(np.exp(1j * phases[-WINDOW:]).mean()), abs=1e-12)


def test_rounding_does_not_pile_up() -> None:
    phases = np.random.default_rng(1).uniform(-math.pi, math.pi, 200_017)
    window = PhasorWindow()
    for phase in phases:
        window.push(phase)
    assert window.coherence == pytest.approx(abs(np.exp(1j * phases[-WINDOW:]).mean()), abs=1e-14)


@pytest.mark.parametrize("kappa", [0.5, 1.0, 2.0, 4.0, 8.0, 32.0])
def test_r_of_von_mises_noise_is_the_ratio_of_bessel_functions_with_the_windows_bias(kappa: float) -> None:
    a = i1e(kappa) / i0e(kappa)
    draws = np.random.default_rng(2).vonmises(0.0, kappa, (4000, WINDOW))
    squares = []
    for row in draws:
        window = PhasorWindow()
        for phase in row:
            window.push(phase)
        squares.append(window.coherence**2)
    expected = a * a + (1.0 - a * a) / WINDOW
    error = np.std(squares) / math.sqrt(len(squares))
    assert np.mean(squares) == pytest.approx(expected, abs=4.0 * error)


def test_the_first_frame_makes_the_template_and_scores_one() -> None:
    template = AmplitudeTemplate()
    assert template.push(3.0 * wiggle(0.3)) == 1.0
    assert template.row[T_REFERENCE : T_REFERENCE + BINS] == pytest.approx(wiggle(0.3))
    assert np.all(template.row[T_VARIANCE:] == 1.0)


def test_gain_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    frames = np.abs(1.0 + 0.2 * rng.normal(size=(60, BINS)))
    gains = 10.0 ** rng.uniform(-2.0, 2.0, 60)
    plain, stepped = AmplitudeTemplate(), AmplitudeTemplate()
    for frame, gain in zip(frames, gains, strict=True):
        assert stepped.push(gain * frame) == pytest.approx(plain.push(frame), abs=1e-12)


def test_score_and_learning_follow_the_law() -> None:
    """Independent numpy evaluation of score, weights and the exponential means over a run of frames."""
    rng = np.random.default_rng(4)
    template = AmplitudeTemplate(PLAIN)
    template.push(flat())
    reference, variance = flat(), np.ones(BINS)
    for _ in range(80):
        frame = np.abs(1.0 + rng.normal(0.0, rng.uniform(0.02, 0.3, BINS)))
        x = frame / frame.mean()
        spread = np.maximum(variance, 1e-6)
        weight = 1.0 / (spread + 1e-6)
        score = (weight * np.exp(-((x - reference) ** 2) / spread / 2.0)).sum() / weight.sum()
        assert template.push(frame) == pytest.approx(score, abs=1e-12)
        if score >= 0.85:
            variance = 0.95 * variance + 0.05 * (x - reference) ** 2
            reference = 0.95 * reference + 0.05 * x
        assert template.row[T_REFERENCE : T_REFERENCE + BINS] == pytest.approx(reference, abs=1e-12)
        assert template.row[T_VARIANCE:] == pytest.approx(variance, abs=1e-12)


@pytest.mark.parametrize(("ratio", "score"), [(0.25, 0.970), (0.5, 0.894), (1.0, 0.707), (1.73, 0.50), (2.0, 0.447)])
def test_gaussian_noise_scores_what_theory_says(ratio: float, score: float) -> None:
    """E[exp(-z^2/2)] = 1/sqrt(1 + (s/q)^2) for noise s against a template of standard deviation q."""
    rng = np.random.default_rng(5)
    scores = []
    for _ in range(300):
        template = AmplitudeTemplate(TemplateConfig(tolerance=0.0, accept=2.0))
        template.push(flat())
        template.row[T_VARIANCE:] = 0.05**2
        scores.append(template.push(1.0 + 0.05 * ratio * rng.normal(size=BINS)))
    assert np.mean(scores) == pytest.approx(score, abs=0.012)


def test_a_frame_that_is_not_accepted_teaches_nothing() -> None:
    template = AmplitudeTemplate()
    for _ in range(100):
        template.push(flat())
    before = template.row.copy()
    assert template.push(wiggle(0.5)) < 0.85
    assert template.stale == 1
    before[1] = 1.0
    assert np.array_equal(template.row, before)
    assert template.push(flat()) >= 0.85
    assert template.stale == 0
    assert template.row[T_SEEN] == before[T_SEEN] + 1.0


def test_within_the_tolerance_a_learnt_template_goes_on_accepting() -> None:
    """The plain law ends where it accepts next to nothing; the tolerance is what keeps a steady channel accepted."""
    share = {}
    for tolerance in (0.0, TemplateConfig.tolerance):
        rng = np.random.default_rng(6)
        template = AmplitudeTemplate(TemplateConfig(tolerance=tolerance))
        scores = [template.push(1.0 + 0.035 * rng.normal(size=BINS)) for _ in range(1000)]
        share[tolerance] = np.mean(np.array(scores[500:]) >= 0.85)
    assert share[0.0] < 0.1
    assert share[TemplateConfig.tolerance] > 0.99
