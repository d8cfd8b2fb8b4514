"""What Stage 1 knows of sensing: statistics of full-chain flights, fitted, versioned, and bound to what was flown.

- A victim's issue comes with hazard exp(level + distance + time) per second, fitted to counts over exposure (Poisson).
  Distance is that to the nearest drone in effective metres (`sight`), time is search time, both in bins. Effects are
  shrunk, time's towards none and each distance's towards the next nearer one's (normal priors, standard deviation 1 in
  log rate). A level at which nothing was issued has hazard 0.
- Its error, right or not, and its number of views are drawn together from those seen at that level.
- A decoy is issued with a rate by kind and level, each level's shrunk towards the kind's own by the weight of one
  event.

Not in it: how drones stand to each other, echoes, wind, attitude, the link.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import ContractError, InputError, MissingDataError, RunError
from sar_core.streams import stream
from sar_eval.scenario.episodeset import LEVELS
from sar_eval.scenario.model import Episode
from sar_eval.stage1.fitflights import FitFlight
from sar_eval.stage1.sight import LOOK_S, Scenery, SwarmPlaces, constellation, heard_as_m, nearest_m, scenery_of
from sar_sim.judging.scoring import NEAR_M
from sar_sim.radio.devices import Device, DeviceKind

Floats = NDArray[np.float64]

SCHEMA_VERSION = 3
DISTANCE_EDGES_M = (50.0, 100.0, 150.0, 200.0, 300.0, 500.0, 1000.0, 2000.0)
"""Effective metres. A drone at 30 m is hardly nearer than the first; at 300 m in the open half of a phone's frames
arrive, and every doubling, or 6 dB in the way, is a bin or two."""
TIME_EDGES_S = (5.0, 15.0, 30.0, 60.0, 120.0)
PRIOR_STD = 1.0
VICTIM = DeviceKind.VICTIM.name.lower()
KINDS = tuple(kind.name.lower() for kind in DeviceKind if kind is not DeviceKind.VICTIM)


@dataclass(frozen=True)
class Observations:
    """Fitted statistics. L noise levels, D distance bins, T time bins; nested tuples, so that it compares and hashes.

    log_level[L] is None where nothing was found; errors[L] are (error m, views) pairs in the order of the error.
    """

    name: str
    world: str
    world_sha256: str
    radio_sha256: str
    calibration_sha256: str
    levels: tuple[tuple[float, float], ...]
    patterns: tuple[str, ...]
    seeds: tuple[int, ...]
    distance_edges_m: tuple[float, ...]
    time_edges_s: tuple[float, ...]
    events: tuple[tuple[tuple[int, ...], ...], ...]
    exposure_s: tuple[tuple[tuple[float, ...], ...], ...]
    log_level: tuple[float | None, ...]
    log_distance: tuple[float, ...]
    log_time: tuple[float, ...]
    errors: tuple[tuple[tuple[float, int], ...], ...]
    alarm_events: dict[str, tuple[int, ...]]
    alarm_exposure_s: dict[str, tuple[float, ...]]
    alarm_rate_per_s: dict[str, tuple[float, ...]]

    def level_of(self, sigma: float, kappa: float) -> int:
        """The number of a noise level; one that was never flown is refused."""
        if (sigma, kappa) not in self.levels:
            known = ", ".join(f"({s:g}, {k:g})" for s, k in self.levels)
            raise InputError(f"sigma, kappa = {sigma:g}, {kappa:g}: {self.name} knows only {known}")
        return self.levels.index((sigma, kappa))

    def rates(self, level: int, times_s: Floats, distances_m: Floats) -> Floats:
        """Hazard (1/s) of a victim's issue at these search times and effective distances, both [K]."""
        base = self.log_level[level]
        if base is None:
            return np.zeros(len(times_s))
        d = np.searchsorted(self.distance_edges_m, distances_m, side="right")
        t = np.searchsorted(self.time_edges_s, times_s, side="right")
        rates: Floats = np.exp(base + np.array(self.log_distance)[d] + np.array(self.log_time)[t])
        return rates


class DrawnIssue(NamedTuple):
    """A victim issued: search time, error, views, and the GDOP of the drones in reach of it then (None: undefined)."""

    time_s: float
    error_m: float
    views: int
    gdop: float | None


@dataclass(frozen=True)
class SensingOutcome:
    """What sensing came to in one mission: victims' issues in the order of time, and the number of decoy alarms."""

    issued: tuple[DrawnIssue, ...]
    false_alarms: int

    @property
    def found(self) -> tuple[DrawnIssue, ...]:
        """Those right at issue."""
        return tuple(issue for issue in self.issued if issue.error_m <= NEAR_M)


def count_exposure(flights: Sequence[FitFlight], levels: int, bodies: Floats) -> tuple[Floats, Floats]:
    """Issues of victims and victim-seconds before them, both [L, D, T], among what stands in the world (`Scenery`)."""
    shape = (levels, len(DISTANCE_EDGES_M) + 1, len(TIME_EDGES_S) + 1)
    events, exposure = np.zeros(shape), np.zeros(shape)
    for flight in flights:
        track = np.array(flight.track)
        starts = np.arange(len(track)) * LOOK_S
        for seen in flight.sightings:
            if seen.kind != VICTIM:
                continue
            end = flight.search_s if seen.time_s is None else seen.time_s
            far = heard_as_m(nearest_m(bodies, track, np.array([seen.x, seen.y, seen.z])), seen.power_db)
            d = np.searchsorted(DISTANCE_EDGES_M, far, side="right")
            t = np.searchsorted(TIME_EDGES_S, starts, side="right")
            np.add.at(exposure[flight.level], (d, t), np.clip(end - starts, 0.0, LOOK_S))
            if seen.time_s is not None:
                k = min(int(seen.time_s / LOOK_S), len(track) - 1)
                events[flight.level, d[k], t[k]] += 1.0
    return events, exposure


def fit_hazard(
    events: Floats, exposure: Floats, prior_std: float = PRIOR_STD
) -> tuple[list[float | None], Floats, Floats]:
    """Log rates by level, and log effects of distance and time, of counts over exposure [L, D, T].

    Newton's method on the penalised Poisson likelihood; levels without an event take no part and get None. A distance's
    effect is held to the next nearer one's, so that a bin nothing was flown in is like the nearest one flown.
    """
    seen = [k for k in range(len(events)) if events[k].sum() > 0.0]
    distances, times = events.shape[1:]
    width = len(seen) + distances + times
    if not seen:
        return [None] * len(events), np.zeros(distances), np.zeros(times)
    rows, counts, spans = [], [], []
    for n, level in enumerate(seen):
        for d in range(distances):
            for t in range(times):
                if exposure[level, d, t] > 0.0:
                    row = np.zeros(width)
                    row[[n, len(seen) + d, len(seen) + distances + t]] = 1.0
                    rows.append(row)
                    counts.append(events[level, d, t])
                    spans.append(exposure[level, d, t])
    design, y, offset = np.array(rows), np.array(counts), np.log(spans)
    penalty = np.diag(np.full(width, prior_std**-2))
    penalty[: len(seen), : len(seen)] = 1e-6 * np.eye(len(seen))
    steps = np.eye(distances) - np.eye(distances, k=-1)
    near, far = len(seen), len(seen) + distances
    penalty[near:far, near:far] = prior_std**-2 * steps.T @ steps
    beta = np.zeros(width)
    beta[: len(seen)] = [math.log(events[level].sum() / exposure[level].sum()) for level in seen]
    for _ in range(100):
        mean = np.exp(np.minimum(design @ beta + offset, 50.0))
        step = np.linalg.solve((design.T * mean) @ design + penalty, design.T @ (y - mean) - penalty @ beta)
        beta += np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-10:
            break
    found: list[float | None] = [None] * len(events)
    for n, level in enumerate(seen):
        found[level] = float(beta[n])
    return found, beta[len(seen) : len(seen) + distances], beta[len(seen) + distances :]


def _alarm_counts(flights: Sequence[FitFlight], levels: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Decoy alarms and transmitter-seconds before them by kind of decoy, each [L]."""
    events = {kind: np.zeros(levels) for kind in KINDS}
    exposure = {kind: np.zeros(levels) for kind in KINDS}
    for flight in flights:
        for seen in flight.sightings:
            if seen.kind != VICTIM:
                exposure[seen.kind][flight.level] += flight.search_s if seen.time_s is None else seen.time_s
                events[seen.kind][flight.level] += seen.time_s is not None
    return events, exposure


def alarm_rates(events: Floats, exposure: Floats) -> Floats:
    """Rates per second [L], each level's shrunk towards the pooled one by the weight of one event."""
    if events.sum() == 0.0 or exposure.sum() == 0.0:
        return np.zeros(len(events))
    pooled = events.sum() / exposure.sum()
    rates: Floats = (events + 1.0) / (exposure + 1.0 / pooled)
    return rates


def fit(flights: Sequence[FitFlight], episode: Episode, name: str) -> Observations:
    """Statistics of these flights; ``episode`` is one of them, prepared, and tells world, link budget, calibration."""
    resolved = episode.resolved()
    events, exposure = count_exposure(flights, len(LEVELS), scenery_of(episode).bodies)
    log_level, log_distance, log_time = fit_hazard(events, exposure)
    errors = []
    for level in range(len(LEVELS)):
        flown = [s for f in flights if f.level == level for s in f.sightings]
        seen = [s for s in flown if s.kind == VICTIM and s.time_s is not None]
        errors.append(tuple(sorted((round(s.error_m or 0.0, 3), int(s.views or 0)) for s in seen)))
    alarms, alarm_exposure = _alarm_counts(flights, len(LEVELS))
    return Observations(
        name=name,
        world=episode.world.name,
        world_sha256=episode.world.sha256,
        radio_sha256=str(resolved["radio_sha256"]),
        calibration_sha256=str(resolved["calibration_sha256"]),
        levels=LEVELS,
        patterns=tuple(sorted({flight.pattern for flight in flights})),
        seeds=tuple(flight.seed for flight in flights),
        distance_edges_m=DISTANCE_EDGES_M,
        time_edges_s=TIME_EDGES_S,
        events=tuple(tuple(tuple(int(n) for n in row) for row in level) for level in events),
        exposure_s=tuple(tuple(tuple(round(float(s), 1) for s in row) for row in level) for level in exposure),
        log_level=tuple(None if rate is None else round(rate, 6) for rate in log_level),
        log_distance=tuple(round(float(b), 6) for b in log_distance),
        log_time=tuple(round(float(b), 6) for b in log_time),
        errors=tuple(errors),
        alarm_events={kind: tuple(int(n) for n in alarms[kind]) for kind in KINDS},
        alarm_exposure_s={kind: tuple(round(float(s), 1) for s in alarm_exposure[kind]) for kind in KINDS},
        alarm_rate_per_s={
            kind: tuple(round(float(r), 9) for r in alarm_rates(alarms[kind], alarm_exposure[kind])) for kind in KINDS
        },
    )


def observe(
    model: Observations,
    level: int,
    scenery: Scenery,
    looks: SwarmPlaces,
    devices: Sequence[Device],
    seed: int,
    index: int,
) -> SensingOutcome:
    """Draw what sensing came to; draws depend on (seed, episode, transmitter) alone, so conditions share them."""
    issued = []
    alarms = 0
    for device in devices:
        when, how_well, cry = stream("stage1 observation", seed, index, device.address).random(3)
        if device.kind is DeviceKind.VICTIM:
            place = device.track[0, 1:4]
            far = heard_as_m(nearest_m(scenery.bodies, looks.places, place), device.power_db)
            time_s = first_report_s(model, level, far, looks.search_s, when)
            if time_s is not None:
                error_m, views = draw_error(model.errors[level], how_well)
                shape = constellation(scenery, looks, place, time_s, device.power_db)
                issued.append(DrawnIssue(time_s, error_m, views, shape))
            continue
        rate = model.alarm_rate_per_s[device.kind.name.lower()][level]
        alarms += bool(cry < -math.expm1(-rate * looks.search_s))
    return SensingOutcome(tuple(sorted(issued, key=lambda issue: issue[:3])), alarms)


def first_report_s(model: Observations, level: int, far_m: Floats, search_s: float, u: float) -> float | None:
    """When the hazard at effective distances [T], one each LOOK_S, has used up -log(1 - u); None if never."""
    starts: Floats = np.arange(len(far_m), dtype=np.float64) * LOOK_S
    step = np.clip(search_s - starts, 0.0, LOOK_S)
    total = np.cumsum(model.rates(level, starts, far_m) * step)
    wanted = -math.log1p(-u)
    k = int(np.searchsorted(total, wanted, side="right"))
    if k >= len(total):
        return None
    before = total[k - 1] if k else 0.0
    return float(starts[k] + step[k] * (wanted - before) / (total[k] - before))


def draw_error(seen: tuple[tuple[float, int], ...], u: float) -> tuple[float, int]:
    """An error interpolated between those seen, and the views of the nearer one."""
    at = u * (len(seen) - 1)
    low = min(int(at), len(seen) - 1)
    high = min(low + 1, len(seen) - 1)
    error = seen[low][0] + (at - low) * (seen[high][0] - seen[low][0])
    return error, seen[round(at)][1]


def to_plain(model: Observations) -> dict[str, Any]:
    """The file's content, its own hash included."""
    content = {"schema_version": SCHEMA_VERSION, **json.loads(json.dumps(asdict(model)))}
    return {**content, "sha256": _digest(content)}


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_observations(model: Observations, path: Path) -> str:
    """Write the file, whole or not at all; returns its hash."""
    content = to_plain(model)
    partial = path.with_name(f".{path.name}.partial")
    try:
        lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in content.items()]
        partial.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise RunError(f"{path}: cannot write the statistics ({error.strerror})") from error
    finally:
        partial.unlink(missing_ok=True)
    return str(content["sha256"])


def load_observations(path: Path, episode: Episode) -> tuple[Observations, str]:
    """Statistics and their hash; refused where edited, or fitted on another world, link budget or calibration."""
    if not path.is_file():
        raise MissingDataError(f"{path}: no such file of observation statistics; make it: sar-eval fit-observations")
    try:
        raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        digest = raw.pop("sha256")
        version = raw.pop("schema_version")
        if version != SCHEMA_VERSION:
            raise ContractError(
                f"{path}: schema_version = {version}: allowed is {SCHEMA_VERSION}, whose distances are "
                "effective metres; fit anew: sar-eval fit-observations"
            )
        model = Observations(**{key: _frozen(value) for key, value in raw.items()})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ContractError(f"{path}: not a file of observation statistics ({error})") from error
    if _digest({"schema_version": version, **raw}) != digest:
        raise ContractError(f"{path}: its content does not match its sha256; fit again instead of editing it")
    resolved = episode.resolved()
    for key in ("world_sha256", "radio_sha256", "calibration_sha256"):
        if getattr(model, key) != resolved[key]:
            what = key.removesuffix("_sha256")
            raise ContractError(
                f"{path}: fitted for {what} {getattr(model, key)[:12]}... (world {model.world}), but this mission has "
                f"{str(resolved[key])[:12]}... (world {episode.world.name}); fit for it: sar-eval fit-observations"
            )
    return model, digest


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return {k: _frozen(v) for k, v in value.items()} if isinstance(value, dict) else value
