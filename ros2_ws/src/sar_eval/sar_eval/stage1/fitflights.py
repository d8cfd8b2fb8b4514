"""Full-chain flights from which Stage 1's observation statistics are learned, each boiled down to what that needs.

Flights for the fit and flights to check it on have seeds and layouts of their own (scenario/splits.py), which no
evaluation and no episode set contains.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import InputError, RunError
from sar_eval.episode.flight import Flight
from sar_eval.episode.pool import Spec, spread
from sar_eval.scenario.episodeset import DECOYS, LEVELS, VICTIMS
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.scenario.splits import Split
from sar_eval.stage1.sight import LOOK_S
from sar_swarm.piloting.controller import Order

Floats = NDArray[np.float64]

PATTERNS = ("partitioned_lawnmower", "random_walk")
"""One that passes everywhere once and one that stays where it began: near and far looks at every moment."""


@dataclass(frozen=True)
class Sighting:
    """One transmitter of a flight: what it is, where it lies, what it sends more than the budget's phone, and, where it
    came, its issue: search time (s), error (m, None for a decoy) and views."""

    kind: str
    x: float
    y: float
    z: float
    power_db: float
    time_s: float | None
    error_m: float | None
    views: int | None


@dataclass(frozen=True)
class FitFlight:
    """A flown search: noise level by number, true tracks float[T][N][3] every LOOK_S, every transmitter's fate."""

    pattern: str
    seed: int
    level: int
    search_s: float
    track: list[list[list[float]]]
    sightings: list[Sighting]


def plan_flights(world: str, count: int, split: Split) -> list[Spec]:
    """All noise levels in turn, patterns changing after each round; every flight has its own layout and seed."""
    if count < len(LEVELS):
        raise InputError(f"flights = {count}: at least {len(LEVELS)} are needed, one of every noise level")
    specs = []
    for k in range(count):
        sigma, kappa = LEVELS[k % len(LEVELS)]
        pattern = PATTERNS[k // len(LEVELS) % len(PATTERNS)]
        scenario = Scenario(world=world, pattern=pattern, sigma=sigma, kappa=kappa, victims=VICTIMS, decoys=DECOYS)
        number = split.layout(k)
        specs.append(Spec(scenario, number, number))
    return specs


def observe_flight(spec: Spec) -> FitFlight:
    """Fly the search of one mission through the whole chain."""
    flight = Flight(prepare(spec.scenario, spec.seed, spec.index), None)
    track: list[list[list[float]]] = []
    while not flight.score.done and flight.score.orders.order is not Order.RETURN:
        flight.advance()
        if flight.score.orders.order is Order.SEARCH and flight.score.search_time_s >= len(track) * LOOK_S:
            track.append([[round(float(v), 2) for v in place[:3]] for place in flight.score.state.position])
    if flight.score.orders.invalid_reason or flight.swarm.sensing is None:
        raise RunError(
            f"seed {spec.seed}: a flight for the fit is INVALID ({flight.score.orders.invalid_reason or 'no radio'})"
        )
    scorer, begin = flight.score.scorer, flight.score.orders.search_begin_s
    issues = {issue.report.address: issue for issue in scorer.issues}
    sightings = []
    for device in flight.episode.devices:
        issue = issues.get(device.address)
        error = None if issue is None else issue.error_m
        sightings.append(
            Sighting(
                kind=device.kind.name.lower(),
                x=round(float(device.track[0, 1]), 2),
                y=round(float(device.track[0, 2]), 2),
                z=round(float(device.track[0, 3]), 2),
                power_db=round(device.power_db, 2),
                time_s=None if issue is None else round(issue.report.time_s - begin, 3),
                error_m=None if error is None else round(error, 4),
                views=None if issue is None else issue.report.views,
            )
        )
    level = next(k for k, (s, _) in enumerate(LEVELS) if s == spec.scenario.sigma)
    return FitFlight(spec.scenario.pattern, spec.seed, level, round(flight.score.search_time_s, 3), track, sightings)


def fly_for_fit(specs: list[Spec], workers: int, kept: Path | None, tell: Callable[[int], None]) -> list[FitFlight]:
    """The flights of the specs; those already in ``kept`` (JSONL) are not flown again, new ones are added to it."""
    known = {flight.seed: flight for flight in _read(kept)} if kept is not None and kept.exists() else {}
    missing = [spec for spec in specs if spec.seed not in known]
    tell(len(specs) - len(missing))
    for number, flight in enumerate(spread(observe_flight, missing, workers), start=1):
        known[flight.seed] = flight
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            with kept.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(asdict(flight)) + "\n")
        tell(len(specs) - len(missing) + number)
    return [known[spec.seed] for spec in specs]


def _read(path: Path) -> list[FitFlight]:
    flights = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            raw: dict[str, Any] = json.loads(line)
            sightings = [Sighting(**item) for item in raw.pop("sightings")]
            flight = FitFlight(**raw, sightings=sightings)
            if np.array(flight.track).shape[2:] != (3,):
                raise ValueError("its track has no altitude; fly it again")
            flights.append(flight)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}:{number}: not a flight for the fit ({error})") from error
    return flights
