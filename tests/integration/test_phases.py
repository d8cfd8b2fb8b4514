"""Systematic, pursuit, convergence: flown by real vehicles on what the swarm itself found out."""

from __future__ import annotations

import math

import numpy as np

from sar_eval.episode.flight import Flight
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_sim.judging.scoring import ReportVerdict
from sar_swarm.piloting.pursuit import Stage


def test_three_drones_take_a_constellation_around_the_victim_and_go_back_to_their_strips() -> None:
    """Each holds its own place, 120 degrees from the others' as seen from the victim, which none of them knows."""
    flight = Flight(prepare(Scenario(pursuit="on"), 4, 4), None)
    assert flight.swarm.sensing is not None
    victim = flight.score.victims[0].position_at(0.0)[:2]
    held: dict[int, float] = {}
    while flight.score.search_time_s < 180.0:
        flight.advance()
        for i, pilot in enumerate(flight.swarm.pilots):
            station, here = pilot.task.station, flight.score.state.position[i, :2]
            if station is None or station.stage is not Stage.CONVERGENCE:
                continue
            if math.dist(here, (station.x, station.y)) < 4.0:
                held[i] = math.atan2(here[1] - victim[1], here[0] - victim[0])
    turns = np.sort(list(held.values()))
    assert len(turns) == 3
    gaps = np.degrees(np.diff([*turns, turns[0] + 2.0 * math.pi]))
    assert np.abs(gaps - 120.0).max() < 30.0
    assert all(pilot.task.station is None for pilot in flight.swarm.pilots)
    [sighting] = flight.score.scorer.of_victim(0)
    assert sighting.latest is not None and sighting.latest.error_m is not None and sighting.latest.error_m < 3.0
    assert flight.score.referee.summary().collisions == 0


def test_without_pursuit_nobody_leaves_the_pattern() -> None:
    flight = Flight(prepare(Scenario(), 9, 9), None)
    while flight.score.search_time_s < 60.0:
        flight.advance()
        assert all(pilot.task.station is None for pilot in flight.swarm.pilots)
    assert flight.swarm.sensing is not None and flight.score.scorer.count(ReportVerdict.RIGHT)


def test_by_hand_one_drone_takes_three_bearings_one_after_another() -> None:
    """The heuristic baseline: whoever is near leaves its sweep and looks at the hypothesis from three sides, alone."""
    flight = Flight(prepare(Scenario(world="open_field", pattern="boustrophedon_triangulation"), 5, 5), None)
    seen: dict[int, set[tuple[float, float]]] = {}
    while flight.score.search_time_s < 120.0 and not any(len(places) == 3 for places in seen.values()):
        flight.advance()
        busy = [pilot.task.station for pilot in flight.swarm.pilots]
        assert sum(station is not None for station in busy) <= 1
        for i, station in enumerate(busy):
            if station is not None and math.dist(flight.score.state.position[i, :2], (station.x, station.y)) < 4.0:
                seen.setdefault(i, set()).add((round(station.x), round(station.y)))
    (places,) = (np.array(sorted(places)) for places in seen.values())
    bearings = np.sort(np.arctan2(*(places - places.mean(axis=0)).T[::-1]))
    gaps = np.degrees(np.diff([*bearings, bearings[0] + 2.0 * math.pi]))
    assert len(places) == 3 and np.abs(gaps - 120.0).max() < 30.0
