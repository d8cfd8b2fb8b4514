"""The tracker: own motion is taken out of the phase, noise is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from sar_core.radio import array_axis
from sar_swarm.sensing.gate import GateConfig, step_phase_gate
from sar_swarm.sensing.tracker import TRACKER, TrackerConfig, correct, phase_of, predict, residuals, wrap
from tests.unit.sar_core.arrayphase import expected_phase
from tests.unit.sar_swarm.sensing.links import PhasorWindow, phase_gate_row

Floats = NDArray[np.float64]

STEP_S = 0.05
GROUND_M = 0.5
ON, OFF = TrackerConfig().array(), TrackerConfig(compensate=False).array()


class Flight:
    """A drone's poses over a minute and the phase that a transmitter in the free field causes."""

    def __init__(self, positions: Floats, yaw: Floats, device: tuple[float, float, float], roll: float = 0.0) -> None:
        self.times = np.arange(len(yaw)) * STEP_S
        self.positions = positions
        self.axes = np.array([axis_of(y, roll) for y in yaw])
        toward = np.array(device) - positions
        self.ranges = np.linalg.norm(toward, axis=1)
        toward /= self.ranges[:, None]
        self.phases = np.array([expected_phase(*a, *u) for a, u in zip(self.axes, toward, strict=True)])

    def residuals(self, config: Floats, noise: Floats | float = 0.0, range_error: float = 1.0) -> Floats:
        phases = self.phases + noise
        return residuals(phases, self.times, self.positions, self.axes, self.ranges[0] * range_error, config)


def axis_of(yaw: float, roll: float) -> tuple[float, float, float]:
    cy, sy, cr, sr = math.cos(yaw / 2), math.sin(yaw / 2), math.cos(roll / 2), math.sin(roll / 2)
    return array_axis(cy * cr, cy * sr, sy * sr, sy * cr)


def pass_by(height_m: float, heading: float) -> Flight:
    """Past a transmitter 15 m beside the track at 8 m/s; heading is the body's against the course."""
    t = np.arange(1200) * STEP_S
    positions = np.stack([8.0 * (t - 30.0), 0.0 * t, 0.0 * t + GROUND_M + height_m], axis=1)
    return Flight(positions, np.full(1200, heading), (0.0, 15.0, GROUND_M))


def turn(height_m: float) -> Flight:
    """Ten seconds of hovering 40 m away, then 30 degrees a second."""
    t = np.arange(1200) * STEP_S
    positions = np.tile([0.0, 0.0, GROUND_M + height_m], (1200, 1))
    return Flight(positions, np.maximum(t - 10.0, 0.0) * math.radians(30.0), (40.0, 0.0, GROUND_M))


def gate_history(values: Floats) -> tuple[list[bool], float]:
    """Whether the gate was open after each full window, and the least R."""
    window, row, numbers = PhasorWindow(), phase_gate_row(), GateConfig().array()
    opened, least = [], 1.0
    for residual in values:
        r = window.push(residual)
        is_open = step_phase_gate(row, r, window.row[0], numbers)
        if window.row[0] == 50:
            opened.append(bool(is_open))
            least = min(least, r)
    return opened, least


SIDEWAYS, ASLANT, AHEAD = math.pi / 2, math.pi / 4, 0.0


@pytest.mark.parametrize("range_error", [0.4, 1.0, 2.5, 30.0])
@pytest.mark.parametrize("heading", [SIDEWAYS, ASLANT, AHEAD])
@pytest.mark.parametrize("height_m", [0.0, 30.0])
def test_a_pass_at_15_m_keeps_the_gate_open(height_m: float, heading: float, range_error: float) -> None:
    """However the drone points, and whatever signal strength says about the range."""
    opened, least = gate_history(pass_by(height_m, heading).residuals(ON, range_error=range_error))
    assert all(opened)
    assert least > 0.85


@pytest.mark.parametrize("height_m", [0.0, 30.0])
def test_a_turn_at_40_m_keeps_the_gate_open(height_m: float) -> None:
    opened, least = gate_history(turn(height_m).residuals(ON))
    assert all(opened)
    assert least > 0.95


def test_without_compensation_both_close_it() -> None:
    for flight in (pass_by(0.0, SIDEWAYS), turn(0.0), turn(30.0)):
        opened, least = gate_history(flight.residuals(OFF))
        assert opened[0] and not all(opened)
        assert least < 0.65


def test_without_compensation_a_pass_30_m_below_is_slow_enough_to_stay_open() -> None:
    """33 m away the phase turns by less than two radians in a window: this one does not need the tracker."""
    opened, least = gate_history(pass_by(30.0, SIDEWAYS).residuals(OFF))
    assert all(opened) and least < 0.9


def learn(flight: Flight, frames: int) -> Floats:
    """A link's row after the first frames of a flight without noise."""
    row = np.zeros(TRACKER)
    for k in range(frames):
        p, a = flight.positions[k], flight.axes[k]
        predict(row, *p, flight.times[k], flight.ranges[0], ON)
        correct(row, wrap(flight.phases[k] - phase_of(row, *a, p[2], ON)), *a, ON)
    return row


def test_banking_is_taken_out_too() -> None:
    """Tilting the array towards a transmitter below changes the phase, and the height tells how much."""
    positions = np.tile([0.0, 0.0, 30.0], (400, 1))
    level, banked = (Flight(positions, np.zeros(400), (0.0, 30.0, GROUND_M), roll) for roll in (0.0, 0.3))
    row = learn(level, 400)
    assert abs(banked.phases[0] - level.phases[0]) > 0.5
    assert phase_of(row, *banked.axes[0], 30.0, ON) == pytest.approx(banked.phases[0], abs=0.1)


def test_what_it_has_learnt_carries_it_through_a_second_of_silence() -> None:
    """In the middle of a pass, where the phase turns fastest, own steps alone tell how it goes on."""
    flight = pass_by(30.0, SIDEWAYS)
    row = learn(flight, 590)
    for k in range(590, 611):
        predict(row, *flight.positions[k], flight.times[k], 1.0, ON)
    assert abs(flight.phases[610] - flight.phases[589]) > 0.7
    assert phase_of(row, *flight.axes[610], flight.positions[610, 2], ON) - flight.phases[610] == pytest.approx(
        0.0, abs=0.25
    )


@pytest.mark.parametrize("kappa", [4.0, 8.0])
def test_motion_and_noise_together_leave_the_gate_open(kappa: float) -> None:
    """Ten draws of each manoeuvre, with ranges from signal strength off by a factor of up to three."""
    for flight in (pass_by(0.0, SIDEWAYS), pass_by(0.0, AHEAD), pass_by(30.0, SIDEWAYS), turn(30.0)):
        for seed in range(10):
            rng = np.random.default_rng(seed)
            noise = rng.vonmises(0.0, kappa, flight.phases.size)
            opened, _ = gate_history(flight.residuals(ON, noise, math.exp(rng.normal(0.0, 0.5))))
            assert all(opened)


@pytest.mark.parametrize(("kappa", "bias"), [(1.0, 0.03), (2.0, 0.012), (4.0, 0.006), (8.0, 0.003)])
@pytest.mark.parametrize("s", [0.0, 0.5, 0.9])
def test_noise_passes_the_tracker_nearly_unchanged(kappa: float, bias: float, s: float) -> None:
    """R behind the tracker against R of the same draws without: the tracker neither eats noise nor adds much."""
    windows = 400
    noise = np.random.default_rng(7).vonmises(0.0, kappa, 50 * windows)
    times = np.arange(noise.size) * STEP_S
    positions, axes = np.tile([0.0, 0.0, 30.0], (noise.size, 1)), np.tile([0.0, 1.0, 0.0], (noise.size, 1))
    behind = residuals(math.pi * s + noise, times, positions, axes, 100.0, ON)
    r = np.abs(np.exp(1j * behind).reshape(windows, 50).mean(axis=1))[2:].mean()
    raw = np.abs(np.exp(1j * noise).reshape(windows, 50).mean(axis=1))[2:].mean()
    assert -bias < r / raw - 1.0 < 0.004


def test_pure_noise_does_not_look_coherent() -> None:
    noise = np.random.default_rng(8).uniform(-math.pi, math.pi, 20_000)
    times = np.arange(noise.size) * STEP_S
    positions = np.stack([8.0 * times, 0.0 * times, 0.0 * times + 30.0], axis=1)
    axes = np.tile([0.0, 1.0, 0.0], (noise.size, 1))
    opened, _ = gate_history(residuals(noise, times, positions, axes, 50.0, ON))
    assert not any(opened)


def test_the_state_stays_finite_and_within_bounds_on_wild_input() -> None:
    """Jumps of the position estimate, gaps in time and random phases: the row never becomes nonsense."""
    rng = np.random.default_rng(9)
    for _ in range(20):
        row = np.zeros(TRACKER)
        time_s = 0.0
        for _ in range(500):
            time_s += rng.choice([0.0, 0.05, 3.0])
            x, y, z = rng.normal(0.0, 50.0, 3)
            predict(row, x, y, z, time_s, 10.0 ** rng.uniform(-2.0, 5.0), ON)
            correct(row, rng.uniform(-math.pi, math.pi), *axis_of(rng.uniform(-4.0, 4.0), rng.normal(0.0, 0.5)), ON)
            assert np.isfinite(row).all()
            assert math.hypot(row[1], row[2]) <= 1.2 + 1e-12
            assert 1.0 / 2000.0 <= row[3] <= 1.0 / 5.0
            assert row[4] >= 0.0 and row[7] >= 0.0 and row[9] >= 0.0


def test_wrap() -> None:
    assert wrap(3.0 * math.pi - 0.1) == pytest.approx(math.pi - 0.1)
    assert wrap(-math.pi + 0.1 - 2.0 * math.pi) == pytest.approx(-math.pi + 0.1)
    assert wrap(0.3) == pytest.approx(0.3)
