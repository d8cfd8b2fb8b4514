"""The swarm's sensing: one listener and one fusion centre per drone, and what they report.

Each drone's listener hears only its own frames at its own estimated pose; its fusion centre is fed with its own
observations and with those the link delivered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_eval.bag.tick import Heard, VictimReport
from sar_eval.episode.briefing import RadioBriefing
from sar_sim.judging.scoring import CONFIDENT, Report
from sar_sim.radio.receiver import Frames
from sar_swarm.piloting.pursuit import Hypothesis
from sar_swarm.sensing.attention import AttentionConfig
from sar_swarm.sensing.confidence import features
from sar_swarm.sensing.frames import Reason
from sar_swarm.sensing.fusion import Estimate, FusionCentre, fusion_config
from sar_swarm.sensing.gate import GateConfig
from sar_swarm.sensing.observation import Listener, ListenerConfig

Floats = NDArray[np.float64]

SOLVE_TICKS = 20
"""Every drone solves once a second, the drones in turn."""
WORTH_CONFIDENCE = 0.02
WORTH_M = 0.5
MOST_VIEWS = 255
"""A report's message has one byte for its views."""


class Tally(NamedTuple):
    """What the listeners have counted so far: frames by gate verdict, and frames dropped by reason."""

    gate: NDArray[np.int64]
    """[2, states] by phase gate (closed, open) and amplitude state."""
    dropped: NDArray[np.int64]
    """[reasons]"""

    def dropped_by_reason(self) -> dict[str, int]:
        return {reason.name.lower(): int(self.dropped[reason]) for reason in Reason if self.dropped[reason]}

    def gate_shares(self) -> dict[str, float]:
        """Share of frames by gate verdict, over all drones and links."""
        total = max(float(self.gate.sum()), 1.0)
        names = ("accept", "predict_only", "reject", "recalibrate", "forced_accept")
        by_state = {name: float(self.gate[:, k].sum()) / total for k, name in enumerate(names[: self.gate.shape[1]])}
        return {"phase_open": float(self.gate[1].sum()) / total, **by_state}


class Sensing:
    """One episode's sensing. ``hear`` every tick, then ``think`` with what the link delivered."""

    def __init__(self, drones: int, told: RadioBriefing) -> None:
        self._calibration = told.calibration
        config = ListenerConfig(law=told.law, gate=GateConfig(forced_open=told.gate_forced_open))
        self.listeners = [Listener(i, config) for i in range(drones)]
        attention = AttentionConfig(bias=told.attention)
        fusion = fusion_config(told.law, told.bearing_bias_rad, told.noise_dbm, attention)
        self.centres = [FusionCentre(fusion, told.known_addresses) for _ in range(drones)]
        self._told: list[dict[int, Report]] = [{} for _ in range(drones)]
        self._hypotheses: list[dict[int, Hypothesis]] = [{} for _ in range(drones)]
        self.heard = Heard()

    def hear(self, stamp_ns: int, frames: list[Frames], position: Floats, attitude: Floats) -> Heard:
        """One tick of radio: each drone's frames, understood at its estimated position [N, 3] and attitude [N, 4]."""
        heard = Heard(frames)
        for i, listener in enumerate(self.listeners):
            seen, changes = listener.listen(frames[i], position[i], attitude[i], stamp_ns * 1e-9)
            heard.observations.append(seen)
            heard.changes += changes
        self.heard = heard
        return heard

    def think(
        self, tick: int, time_s: float, delivered: Sequence[Sequence[Any]], searching: bool = True
    ) -> list[VictimReport]:
        """Every drone takes in what it sensed and was sent; those whose turn it is solve and may report.

        Nobody reports before the search: on their way up drones are close together and see everything from one side.
        """
        reports = []
        for i, centre in enumerate(self.centres):
            centre.add(self.heard.observations[i])
            centre.add(delivered[i])
            if (tick + i * SOLVE_TICKS // len(self.centres)) % SOLVE_TICKS == 0:
                for estimate in centre.solve(time_s):
                    found = self._report(i, estimate) if searching else None
                    if found is not None:
                        reports.append(found)
        return reports

    def _report(self, drone: int, estimate: Estimate) -> VictimReport | None:
        """A report, if the estimate is confirmed and says something new."""
        if self._calibration is None or not estimate.confirmed:
            return None
        confidence = float(self._calibration.probability(features(estimate)))
        report = Report(
            estimate.time_s,
            drone,
            estimate.address,
            estimate.x,
            estimate.y,
            confidence,
            estimate.path_gdop,
            estimate.constellation_gdop,
            estimate.information_dop_m,
            min(estimate.views, MOST_VIEWS),
        )
        self._hypotheses[drone][estimate.track] = Hypothesis(
            estimate.track, estimate.x, estimate.y, confidence, estimate.information_dop_m
        )
        before = self._told[drone].get(estimate.track)
        if before is not None:
            moved = math.hypot(report.x - before.x, report.y - before.y)
            crossed = (confidence > CONFIDENT) != (before.confidence > CONFIDENT)
            if moved < WORTH_M and abs(confidence - before.confidence) < WORTH_CONFIDENCE and not crossed:
                return None
        self._told[drone][estimate.track] = report
        return VictimReport(report, estimate)

    def hypotheses(self, drone: int) -> tuple[Hypothesis, ...]:
        """What one drone believes of every transmitter it could place, as of its last solve."""
        return tuple(self._hypotheses[drone].values())

    def tally(self) -> Tally:
        """What all listeners together have counted."""
        gate = np.sum([listener.shares for listener in self.listeners], axis=0)
        return Tally(gate, np.sum([listener.filter.counts for listener in self.listeners], axis=0))
