"""Which frames may speak: a phase gate with hysteresis and a four-state amplitude gate.

The phase gate opens at R >= 0.70 and closes at R < 0.65; it starts closed. The amplitude gate asks in this order: stale
for 200 frames: Recalibrate; score >= 0.85: Accept; score >= 0.50: PredictOnly (noise x 3); else Reject.
Recalibrate freezes the link, collects 200 frames, makes a template of them and resumes.
Reject and Recalibrate, like a closed phase gate, block victim reports.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_swarm.sensing.coherence import BINS, T_REFERENCE, T_SEEN, T_STALE, T_VARIANCE, TemplateConfig, step_template

Floats = NDArray[np.float64]


class GateState(IntEnum):
    """The amplitude gate's states."""

    ACCEPT = 0
    PREDICT_ONLY = 1
    REJECT = 2
    RECALIBRATE = 3
    FORCED_ACCEPT = 4


STATES = len(GateState)
_ACCEPT, _PREDICT_ONLY, _REJECT, _RECALIBRATE, _FORCED_ACCEPT = (int(s) for s in GateState)

# The phase gate's row: open or not.
P_OPEN = 0
PHASE_GATE = 1

# The amplitude gate's row: state, noise multiplier, score, frames since the last Accept, frames still to collect, then
# the collected frames' sums and sums of squares per subcarrier.
A_STATE, A_NOISE, A_SCORE, A_UNACCEPTED, A_COLLECT, A_SUM, A_SQUARES = 0, 1, 2, 3, 4, 5, 5 + BINS
AMPLITUDE_GATE = 5 + 2 * BINS

# Where the kernels find the configuration's numbers.
_OPEN_AT, _CLOSE_BELOW, _MIN_FRAMES, _ACCEPT_AT, _REJECT_BELOW, _STALE_AFTER, _COLLECTS, _REBUILT = range(8)
_PREDICT_NOISE, _ADAPTIVE, _FORCED, _FORCED_AFTER, _FORCED_NOISE = range(8, 13)


@dataclass(frozen=True)
class GateConfig:
    """Thresholds of both gates; R and score are in [0, 1], the rest are frames and factors on a standard deviation."""

    open_at: float = 0.70
    close_below: float = 0.65
    min_frames: int = 16
    """Frames a phase window holds before it is asked, some four seconds of a phone's: R of one frame is always 1, of 16
    frames of pure noise it is above 0.70 once in 2500 times, exp(-16 0.7^2) (Rayleigh's test)."""
    accept: float = 0.85
    reject_below: float = 0.50
    stale_frames: int = 200
    collect_frames: int = 200
    rebuilt_variance: float = 4.0
    """A rebuilt template's variance over the collected frames': at 1 unchanged noise would score 0.71, at 4 0.89."""
    predict_only_noise: float = 3.0
    adaptive: bool = False
    """Let PredictOnly's noise factor grow from 1 at ``accept`` to ``predict_only_noise`` at ``reject_below``."""
    forced_accept: bool = False
    forced_frames: int = 600
    forced_noise: float = 10.0
    """With ``forced_accept``: after so many frames without an Accept take frames anyway, at this noise factor."""
    forced_open: bool = False
    """Let every frame speak at noise 1 while both gates are still worked out: what a mission without gates would do."""

    def array(self) -> Floats:
        """The numbers the kernels take."""
        return np.array(
            [
                self.open_at,
                self.close_below,
                self.min_frames,
                self.accept,
                self.reject_below,
                self.stale_frames,
                self.collect_frames,
                self.rebuilt_variance,
                self.predict_only_noise,
                float(self.adaptive),
                float(self.forced_accept),
                self.forced_frames,
                self.forced_noise,
            ]
        )

    def template(self, tolerance: float = TemplateConfig.tolerance) -> TemplateConfig:
        """The template that learns at this gate's accept threshold."""
        return TemplateConfig(accept=self.accept, tolerance=tolerance)


@compiled
def step_phase_gate(row: Floats, coherence: float, frames: float, config: Floats) -> bool:
    """Ask the phase gate with a window's R and how many frames it holds; returns whether it is open."""
    if frames >= config[_MIN_FRAMES]:
        if row[P_OPEN] == 0.0:
            if coherence >= config[_OPEN_AT]:
                row[P_OPEN] = 1.0
        elif coherence < config[_CLOSE_BELOW]:
            row[P_OPEN] = 0.0
    return bool(row[P_OPEN] == 1.0)


@compiled
def judge(score: float, stale: float, unaccepted: float, config: Floats) -> tuple[int, float]:
    """State and noise multiplier for a score, frames stale and frames since the last Accept; remembers nothing."""
    if config[_FORCED] == 1.0 and unaccepted >= config[_FORCED_AFTER] and score < config[_ACCEPT_AT]:
        return _FORCED_ACCEPT, config[_FORCED_NOISE]
    if stale >= config[_STALE_AFTER]:
        return _RECALIBRATE, math.inf
    if score >= config[_ACCEPT_AT]:
        return _ACCEPT, 1.0
    if score < config[_REJECT_BELOW]:
        return _REJECT, math.inf
    if config[_ADAPTIVE] == 1.0:
        depth = (config[_ACCEPT_AT] - score) / (config[_ACCEPT_AT] - config[_REJECT_BELOW])
        return _PREDICT_ONLY, 1.0 + (config[_PREDICT_NOISE] - 1.0) * depth
    return _PREDICT_ONLY, config[_PREDICT_NOISE]


@compiled
def step_amplitude_gate(row: Floats, template: Floats, x: Floats, config: Floats, template_config: Floats) -> int:
    """Take a frame's shape x[56] to the template and the gate; returns the state, which the row keeps with the rest."""
    if row[A_COLLECT] > 0.0:
        for k in range(x.size):
            row[A_SUM + k] += x[k]
            row[A_SQUARES + k] += x[k] * x[k]
        row[A_COLLECT] -= 1.0
        row[A_UNACCEPTED] += 1.0
        if row[A_COLLECT] == 0.0:
            _rebuild(row, template, config)
        return int(row[A_STATE])
    score = step_template(template, x, template_config)
    row[A_SCORE] = score
    row[A_UNACCEPTED] = 0.0 if template[T_STALE] == 0.0 else row[A_UNACCEPTED] + 1.0
    state, noise = judge(score, template[T_STALE], row[A_UNACCEPTED], config)
    row[A_STATE] = state
    row[A_NOISE] = noise
    if state == _RECALIBRATE:
        row[A_COLLECT] = config[_COLLECTS]
        row[A_SUM:] = 0.0
    return state


@inlined
def _rebuild(row: Floats, template: Floats, config: Floats) -> None:
    """A template of the frames collected."""
    n = config[_COLLECTS]
    for k in range(BINS):
        mean = row[A_SUM + k] / n
        template[T_REFERENCE + k] = mean
        template[T_VARIANCE + k] = config[_REBUILT] * max(row[A_SQUARES + k] / n - mean * mean, 0.0)
    template[T_SEEN] = n
    template[T_STALE] = 0.0


@inlined
def passes(is_open: bool, state: int) -> bool:
    """Whether a frame may speak for a victim: phase gate open, amplitude gate neither rejecting nor recalibrating."""
    return is_open and state != _REJECT and state != _RECALIBRATE


def verdict(is_open: bool, state: GateState) -> GateState:
    """Both gates in one word: a closed phase gate rejects whatever the amplitudes say."""
    return state if is_open else GateState.REJECT
