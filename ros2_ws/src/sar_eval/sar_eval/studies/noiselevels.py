"""Where noise levels lie against the gates' thresholds: frames of standing links through receiver, listener and gates.

Drones hover around a beacon in the open field, so loud that nothing but the two noise knobs disturbs a frame. The
phase gate opens at R >= 0.70 and closes below 0.65; the amplitude gate accepts from a score of 0.85 and rejects below
0.50.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import i0e, i1e

from sar_core.errors import InputError
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import radio_path
from sar_eval.scenario.resources import world_path
from sar_sim.radio.devices import Device, DeviceKind
from sar_sim.radio.radioconfig import load_radio
from sar_sim.radio.receiver import Receiver
from sar_sim.vehicle.fleet import STEP_NS, TICKS_PER_SECOND, step_of_tick
from sar_sim.world.world import load_world
from sar_swarm.sensing.gate import STATES, GateState
from sar_swarm.sensing.observation import Listener

WORLD = "open_field"
RADIO = str(Scenario.model_fields["radio"].default)
DRONES = 8
DISTANCE_M, ALTITUDE_M = 40.0, 30.0
LOUD_DB = 40.0
"""Above the budget's phone, so that thermal noise is none of it."""
WARM_UP_S = 20.0
"""Until the windows of 50 frames are full and the templates have settled."""
ADDRESS = 0x020000000000


@dataclass(frozen=True)
class LevelPlace:
    """One level: R in the mean and by theory (I1(kappa)/I0(kappa), a window of any length), the share of frames at
    which the phase gate was open, and shares of frames by state of the amplitude gate."""

    sigma: float
    kappa: float
    frames: int
    mean_r: float
    theory_r: float
    open_share: float
    accept: float
    predict_only: float
    reject: float
    recalibrate: float


def phasor_length(kappa: float) -> float:
    """E[R] of von Mises noise in an endless window: I1(kappa)/I0(kappa)."""
    return float(i1e(kappa) / i0e(kappa))


def place_levels(levels: Sequence[tuple[float, float]], duration_s: float, seed: int = 0) -> list[LevelPlace]:
    """Every (sigma, kappa) on the same links for so long after warming up."""
    if not 10.0 <= duration_s < math.inf:
        raise InputError(f"duration_s = {duration_s:g}: allowed: 10 or more")
    return [_place(sigma, kappa, duration_s, seed) for sigma, kappa in levels]


def _place(sigma: float, kappa: float, duration_s: float, seed: int) -> LevelPlace:
    track = np.array([[0.0, 0.0, 0.0, 1.5]])
    beacon = Device(ADDRESS, DeviceKind.ACCESS_POINT, track, beacon=True, power_db=LOUD_DB)
    receiver = Receiver(
        load_radio(radio_path(RADIO)), load_world(world_path(WORLD)), [beacon], DRONES, seed, 0, sigma, kappa
    )
    listeners = [Listener(k) for k in range(DRONES)]
    turns = 2.0 * math.pi / DRONES * np.arange(DRONES)
    positions = np.column_stack([DISTANCE_M * np.cos(turns), DISTANCE_M * np.sin(turns), np.full(DRONES, ALTITUDE_M)])
    attitudes = np.tile([1.0, 0.0, 0.0, 0.0], (DRONES, 1))
    before = np.zeros((2, STATES), dtype=np.int64)
    found: list[float] = []
    for tick in range(1, round((WARM_UP_S + duration_s) * TICKS_PER_SECOND) + 1):
        now = step_of_tick(tick) * STEP_NS
        warm = tick > WARM_UP_S * TICKS_PER_SECOND
        for k, frames in enumerate(receiver.listen(now, tick, positions, attitudes)):
            observed, _ = listeners[k].listen(frames, positions[k], attitudes[k], now * 1e-9)
            if warm:
                found += [observation.coherence for observation in observed]
        if tick == WARM_UP_S * TICKS_PER_SECOND:
            before = np.sum([listener.shares for listener in listeners], axis=0)
    counts = np.sum([listener.shares for listener in listeners], axis=0) - before
    total = int(counts.sum())
    by_state = counts.sum(axis=0) / total
    return LevelPlace(
        sigma,
        kappa,
        total,
        float(np.mean(found)),
        phasor_length(kappa),
        float(counts[1].sum() / total),
        float(by_state[GateState.ACCEPT]),
        float(by_state[GateState.PREDICT_ONLY]),
        float(by_state[GateState.REJECT]),
        float(by_state[GateState.RECALIBRATE]),
    )
