"""Both gates: a fixture for every transition, the thresholds in kappa, and shares that grow with it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from sar_swarm.sensing.coherence import BINS, T_STALE, TemplateConfig, template_row
from sar_swarm.sensing.gate import (
    A_COLLECT,
    A_NOISE,
    A_STATE,
    GateConfig,
    GateState,
    judge,
    passes,
    step_amplitude_gate,
    step_phase_gate,
    verdict,
)
from sar_swarm.sensing.tracker import TrackerConfig, residuals
from tests.unit.sar_swarm.sensing.links import PhasorWindow, amplitude_gate_row, phase_gate_row

Floats = NDArray[np.float64]

CONFIG = GateConfig()
NUMBERS = CONFIG.array()
OPENING_KAPPA, CLOSING_KAPPA = 2.014, 1.739


@pytest.mark.parametrize(
    ("before", "r", "after"),
    [
        (False, 0.6999, False),
        (False, 0.70, True),
        (True, 0.65, True),
        (True, 0.6499, False),
        (True, 0.69, True),
        (False, 0.69, False),
    ],
)
def test_the_phase_gate_opens_and_closes_with_hysteresis(before: bool, r: float, after: bool) -> None:
    row = phase_gate_row()
    row[0] = before
    assert step_phase_gate(row, r, 50, NUMBERS) is after


def test_the_phase_gate_starts_closed_and_waits_for_sixteen_frames() -> None:
    row = phase_gate_row()
    assert not step_phase_gate(row, 1.0, 15, NUMBERS)
    assert step_phase_gate(row, 1.0, 16, NUMBERS)


class Link:
    """An amplitude gate with its template, fed with shapes whose score is known."""

    def __init__(self, config: GateConfig = CONFIG) -> None:
        self.config = config
        self.gate, self.template = amplitude_gate_row(), template_row()
        self.numbers = config.array()
        self.template_numbers = TemplateConfig(accept=config.accept).array()

    def feed(self, off: float, frames: int = 1) -> GateState:
        """Frames that are off the flat shape by this much in every bin, up and down in turn."""
        x = 1.0 + off * np.where(np.arange(BINS) % 2 == 0, 1.0, -1.0)
        for _ in range(frames):
            state = step_amplitude_gate(self.gate, self.template, x, self.numbers, self.template_numbers)
        return GateState(state)

    def learnt(self) -> Link:
        self.feed(0.0, 400)
        return self


STEADY, STRANGE, FOREIGN = 0.0, 0.09, 0.3


@pytest.mark.parametrize("first", [STEADY, STRANGE, FOREIGN])
@pytest.mark.parametrize(
    ("then", "state", "noise"),
    [(STEADY, GateState.ACCEPT, 1.0), (STRANGE, GateState.PREDICT_ONLY, 3.0), (FOREIGN, GateState.REJECT, math.inf)],
)
def test_between_accept_predict_only_and_reject_every_step_is_possible(
    first: float, then: float, state: GateState, noise: float
) -> None:
    link = Link().learnt()
    link.feed(first)
    assert link.feed(then) is state
    assert link.gate[A_NOISE] == noise


@pytest.mark.parametrize("off", [STRANGE, FOREIGN])
def test_two_hundred_stale_frames_lead_to_recalibration(off: float) -> None:
    link = Link().learnt()
    assert link.feed(off, 199) in (GateState.PREDICT_ONLY, GateState.REJECT)
    assert link.feed(off) is GateState.RECALIBRATE
    assert link.gate[A_COLLECT] == 200


def test_an_accepted_frame_ends_staleness() -> None:
    link = Link().learnt()
    link.feed(FOREIGN, 199)
    assert link.feed(STEADY) is GateState.ACCEPT
    assert link.template[T_STALE] == 0
    assert link.feed(FOREIGN) is GateState.REJECT


def test_recalibration_collects_two_hundred_frames_and_resumes_with_what_it_saw() -> None:
    link = Link().learnt()
    assert link.feed(FOREIGN, 200) is GateState.RECALIBRATE
    assert link.feed(FOREIGN, 200) is GateState.RECALIBRATE
    assert link.gate[A_COLLECT] == 0
    assert link.feed(FOREIGN) is GateState.ACCEPT
    assert link.feed(-FOREIGN) is GateState.REJECT


def test_a_rebuilt_template_has_the_collected_mean_and_a_widened_variance() -> None:
    link = Link().learnt()
    link.feed(FOREIGN, 200)
    rng = np.random.default_rng(1)
    frames = 1.0 + 0.2 * rng.normal(size=(200, BINS))
    for x in frames:
        step_amplitude_gate(link.gate, link.template, x, link.numbers, link.template_numbers)
    assert link.template[2 : 2 + BINS] == pytest.approx(frames.mean(axis=0), abs=1e-12)
    assert link.template[2 + BINS :] == pytest.approx(4.0 * frames.var(axis=0), abs=1e-12)


def test_the_adaptive_multiplier_runs_from_one_to_its_limit() -> None:
    numbers = replace(CONFIG, adaptive=True).array()
    assert judge(0.85, 0, 0, numbers) == (GateState.ACCEPT, 1.0)
    assert judge(0.675, 1, 1, numbers) == (GateState.PREDICT_ONLY, pytest.approx(2.0))
    assert judge(0.50, 1, 1, numbers) == (GateState.PREDICT_ONLY, pytest.approx(3.0))
    assert judge(0.4999, 1, 1, numbers)[0] == GateState.REJECT


def test_staleness_is_asked_before_the_score() -> None:
    assert judge(0.99, 200, 200, NUMBERS)[0] == GateState.RECALIBRATE
    assert judge(0.99, 199, 199, NUMBERS) == (GateState.ACCEPT, 1.0)


def test_forced_accept_is_off_unless_asked_for() -> None:
    assert judge(0.3, 1, 10_000, NUMBERS)[0] == GateState.REJECT


def test_forced_accept_takes_over_after_six_hundred_frames_until_a_real_accept() -> None:
    """A channel that never repeats itself: recalibration does not help, so at last it is taken at ten times noise."""
    link = Link(replace(CONFIG, forced_accept=True)).learnt()
    rng = np.random.default_rng(2)
    states = []
    for _ in range(700):
        x = np.abs(1.0 + rng.choice([-1.0, 1.0], BINS) * rng.uniform(2.0, 9.0))
        x /= x.mean()
        states.append(GateState(step_amplitude_gate(link.gate, link.template, x, link.numbers, link.template_numbers)))
        link.template[2 + BINS :] = 1e-6
    assert GateState.FORCED_ACCEPT not in states[:599]
    assert states[-1] is GateState.FORCED_ACCEPT
    assert link.gate[A_NOISE] == 10.0
    link.template[2 : 2 + BINS] = 1.0
    assert link.feed(STEADY) is GateState.ACCEPT
    assert link.feed(FOREIGN) is GateState.REJECT


def test_reject_recalibrate_and_a_closed_phase_gate_block_reports() -> None:
    for state in GateState:
        assert passes(True, int(state)) is (state not in (GateState.REJECT, GateState.RECALIBRATE))
        assert not passes(False, int(state))
    assert verdict(True, GateState.ACCEPT) is GateState.ACCEPT
    assert verdict(False, GateState.ACCEPT) is GateState.REJECT


def test_before_its_first_frame_the_amplitude_gate_lets_nothing_pass() -> None:
    assert not passes(True, int(amplitude_gate_row()[A_STATE]))


def tracked(kappa: float, frames: int, seed: int) -> Floats:
    """Residuals behind the tracker of a hovering drone's phase under von Mises noise."""
    rng = np.random.default_rng(seed)
    times = np.arange(frames) * 0.05
    pose, axes = np.tile([0.0, 0.0, 30.0], (frames, 1)), np.tile([0.0, 1.0, 0.0], (frames, 1))
    phases = 0.8 + rng.vonmises(0.0, kappa, frames)
    return residuals(phases, times, pose, axes, 100.0, TrackerConfig().array())


def share_open(kappa: float, start_open: bool, windows: int = 2000, seed: int = 3) -> float:
    """Share of separate windows of 50 frames after which a gate started so is open."""
    phasors = np.exp(1j * tracked(kappa, 50 * (windows + 4), seed)).reshape(-1, 50)[4:]
    opened = 0
    for r in np.abs(phasors.mean(axis=1)):
        row = phase_gate_row()
        row[0] = start_open
        opened += step_phase_gate(row, r, 50, NUMBERS)
    return opened / windows


@pytest.mark.parametrize(("start_open", "theory"), [(False, OPENING_KAPPA), (True, CLOSING_KAPPA)])
def test_half_of_separate_windows_open_and_close_at_the_theoretical_kappa(start_open: bool, theory: float) -> None:
    """The kappa of an even share, interpolated over a scan, behind the tracker as in flight."""
    kappas = np.linspace(0.7 * theory, 1.3 * theory, 13)
    shares = np.array([share_open(k, start_open) for k in kappas])
    half = np.interp(0.5, shares, kappas)
    assert shares[0] < 0.1 and shares[-1] > 0.9
    assert half == pytest.approx(theory, rel=0.05)


def sliding_duty(kappa: float, frames: int = 20_000) -> float:
    window, row = PhasorWindow(), phase_gate_row()
    opened = [step_phase_gate(row, window.push(r), window.row[0], NUMBERS) for r in tracked(kappa, frames, 4)]
    return float(np.mean(opened[CONFIG.min_frames - 1 :]))


def test_the_sliding_duty_cycle_crosses_between_the_two_thresholds() -> None:
    """Sliding windows remember: the gate is open half of the time somewhere between closing and opening kappa."""
    assert sliding_duty(0.85 * CLOSING_KAPPA) < 0.1
    assert 0.2 < sliding_duty(0.5 * (CLOSING_KAPPA + OPENING_KAPPA)) < 0.8
    assert sliding_duty(1.3 * OPENING_KAPPA) > 0.95


def test_the_accept_share_grows_with_kappa() -> None:
    """Frames both gates take (phase open, amplitudes Accept) at sigma = 0.05 on each of two antennas."""
    shares = []
    for kappa in (0.5, 1.0, 1.5, 1.75, 2.0, 2.5, 4.0, 8.0, 32.0):
        rng = np.random.default_rng(5)
        link, window, gate = Link(), PhasorWindow(), phase_gate_row()
        accepted = 0
        noise = tracked(kappa, 3000, 6)
        for residual, x in zip(noise, 1.0 + 0.05 / math.sqrt(2.0) * rng.normal(size=(3000, BINS)), strict=True):
            is_open = step_phase_gate(gate, window.push(residual), window.row[0], NUMBERS)
            state = step_amplitude_gate(link.gate, link.template, x / x.mean(), link.numbers, link.template_numbers)
            accepted += verdict(is_open, GateState(state)) is GateState.ACCEPT
        shares.append(accepted / 3000)
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] > 0.95
