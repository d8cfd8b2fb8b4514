"""Flights for the fit whose victims are found by a hazard that is known, in place of minutes of flying.

They are flown over open ground, where effective metres are metres.
"""

from __future__ import annotations

import numpy as np

from sar_core.streams import stream
from sar_eval.scenario.episodeset import LEVELS
from sar_eval.stage1.fitflights import FitFlight, Sighting
from sar_eval.stage1.observations import DISTANCE_EDGES_M, TIME_EDGES_S

TRUE_LEVEL = (-3.5, -4.0, -4.5, -5.0, None)
TRUE_DISTANCE = (1.0, 0.5, -0.1, -0.3, -1.2, -1.5, -2.0, -2.5, -3.0)
TRUE_TIME = (-2.0, 0.0, 0.6, 0.3, 0.1, -0.1)
ALARM_PER_S = 1e-3
ALTITUDE_M, HEIGHT_M = 30.0, 0.5


def made_flights(count: int, first_seed: int) -> list[FitFlight]:
    """Flights whose victims are found by a hazard we know: one drone passes by, victims lie all over."""
    flights = []
    for k in range(count):
        rng = stream("made flight", first_seed + k)
        level = k % len(LEVELS)
        speed = rng.uniform(-6.0, 6.0, 2)
        track = rng.uniform(-150.0, 150.0, 2) + np.arange(241)[:, None] * speed / 3.0
        sightings = []
        for _ in range(4):
            x, y = rng.uniform(-200.0, 200.0, 2)
            distance = np.sqrt((track[:, 0] - x) ** 2 + (track[:, 1] - y) ** 2 + (ALTITUDE_M - HEIGHT_M) ** 2)
            base = TRUE_LEVEL[level]
            time_s = None
            if base is not None:
                d = np.searchsorted(DISTANCE_EDGES_M, distance, side="right")
                t = np.searchsorted(TIME_EDGES_S, np.arange(241.0), side="right")
                rate = np.exp(base + np.array(TRUE_DISTANCE)[d] + np.array(TRUE_TIME)[t])
                hit = np.flatnonzero(rng.random(240) < -np.expm1(-rate[:240]))
                time_s = float(hit[0]) + 0.5 if len(hit) else None
            found = time_s is not None
            error, views = (float(rng.uniform(1.0, 5.0)), int(rng.integers(2, 5))) if found else (None, None)
            sightings.append(Sighting("victim", x, y, HEIGHT_M, 0.0, time_s, error, views))
            alarm = float(rng.exponential(1.0 / ALARM_PER_S))
            sightings.append(Sighting("passer_by", x, y, HEIGHT_M, 0.0, alarm if alarm < 240.0 else None, None, None))
        places = [[[float(px), float(py), ALTITUDE_M]] for px, py in track]
        flights.append(FitFlight("random_walk", first_seed + k, level, 240.0, places, sightings))
    return flights
