"""Fit the swarm's confidence: fly missions that no evaluation uses, and learn which estimates were right."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sar_eval.episode.flight import Flight
from sar_eval.episode.pool import Spec, spread
from sar_eval.scenario.episodeset import LEVELS
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare, radio_path
from sar_eval.scenario.splits import CALIBRATION
from sar_sim.judging.scoring import NEAR_M
from sar_sim.radio.radioconfig import config_sha256, load_radio
from sar_swarm.piloting.patternlist import STANDARD
from sar_swarm.sensing.confidence import FEATURES, Calibration, features, fit

Floats = NDArray[np.float64]

WORLDS = ("open_field", "village", "forest", "collapsed_block")
NOISE = LEVELS[:4]
"""All but the hopeless one, at which no frame passes the gate."""
LOOK_EVERY_S = 15.0


def plan_calibration(radio: str, missions: int) -> list[Spec]:
    """All worlds, noise levels and patterns in turn, every third mission without victims; seeds and layouts of their
    own."""
    specs = []
    for k in range(missions):
        sigma, kappa = NOISE[(k // len(WORLDS)) % len(NOISE)]
        scenario = Scenario(
            world=WORLDS[k % len(WORLDS)],
            pattern=STANDARD[(k // (len(WORLDS) * len(NOISE))) % len(STANDARD)],
            radio=radio,
            sigma=sigma,
            kappa=kappa,
            victims=2,
            victim_absent=k % 3 == 2,
        )
        number = CALIBRATION.layout(k)
        specs.append(Spec(scenario, number, number))
    return specs


def gather(spec: Spec) -> tuple[Floats, NDArray[np.bool_]]:
    """Features [K, F] of one mission's confirmed estimates, each looked at every 15 s by a drone in turn, and whether
    the victim whose device it is lay within 10 m."""
    flight = Flight(prepare(spec.scenario, spec.seed, spec.index, calibrated=False), None)
    sensing = flight.swarm.sensing
    assert sensing is not None
    rows: list[Floats] = []
    labels: list[bool] = []
    look = 0
    while not flight.score.done and flight.score.search_time_s < spec.scenario.duration_s:
        flight.advance()
        if flight.score.search_time_s >= (look + 1) * LOOK_EVERY_S:
            look += 1
            for estimate in sensing.centres[look % len(sensing.centres)].estimates:
                if estimate.confirmed:
                    rows.append(features(estimate))
                    place = flight.score.scorer.owners.get(estimate.address)
                    labels.append(place is not None and math.dist(place[1:], (estimate.x, estimate.y)) <= NEAR_M)
    return np.array(rows).reshape(-1, len(FEATURES)), np.array(labels, dtype=np.bool_)


def calibrate(radio: str, missions: int, workers: int, tell: Callable[[int], None]) -> Calibration:
    """Fly the calibration missions and fit; ``tell`` hears how many are done."""
    specs = plan_calibration(radio, missions)
    parts = []
    for number, part in enumerate(spread(gather, specs, workers), start=1):
        parts.append(part)
        tell(number)
    values = np.concatenate([rows for rows, _ in parts if len(rows)])
    labels = np.concatenate([marks for _, marks in parts if len(marks)])
    digest = config_sha256(load_radio(radio_path(radio)))
    return fit(values, labels, digest, [spec.seed for spec in specs])
