"""Parts of one link by themselves, for tests: its phasor window, amplitude template and gates, by their kernels."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_swarm.sensing.coherence import (
    BINS,
    T_STALE,
    WINDOW,
    TemplateConfig,
    coherence,
    push_phasor,
    shape_of,
    step_template,
    template_row,
    window_row,
)
from sar_swarm.sensing.gate import A_NOISE, A_STATE, AMPLITUDE_GATE, PHASE_GATE, GateState

Floats = NDArray[np.float64]


def phase_gate_row() -> Floats:
    """A closed phase gate."""
    return np.zeros(PHASE_GATE)


def amplitude_gate_row() -> Floats:
    """An amplitude gate before its first frame: nothing is accepted yet."""
    row = np.zeros(AMPLITUDE_GATE)
    row[A_STATE] = GateState.REJECT
    row[A_NOISE] = math.inf
    return row


class PhasorWindow:
    """One link's phasor window by itself."""

    def __init__(self, frames: int = WINDOW) -> None:
        self.row = window_row(frames)

    def push(self, residual_rad: float) -> float:
        """Take in a phase residual and return R."""
        return float(push_phasor(self.row, math.cos(residual_rad), math.sin(residual_rad)))

    @property
    def coherence(self) -> float:
        return float(coherence(self.row))


class AmplitudeTemplate:
    """One link's amplitude template by itself."""

    def __init__(self, config: TemplateConfig | None = None) -> None:
        self.config = config or TemplateConfig()
        self.row = template_row()
        self._numbers = self.config.array()

    def push(self, amplitudes: Floats) -> float:
        """Score amplitudes [56] of any gain and learn from them where they are accepted."""
        x = np.empty(BINS)
        shape_of(np.asarray(amplitudes, dtype=np.float64) ** 2, x)
        return float(step_template(self.row, x, self._numbers))

    @property
    def stale(self) -> int:
        return int(self.row[T_STALE])
