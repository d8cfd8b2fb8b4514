"""Stage 1: every policy on every episode of a set by kinematic flights and fitted sensing, thousands in a minute.

One line per episode, as `sar_analysis.stage1.rows` reads it. Rows carry no host facts: the same command gives the same
file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from sar_core.errors import InputError, RunError
from sar_core.reward import Counts, episode_return, idle_steps
from sar_core.sweep import COARSE, sweep
from sar_eval.episode.flight import COVERAGE_TIME_S
from sar_eval.episode.pool import CALIBRATION_SEED, spread
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.scenario.resources import share_dir
from sar_eval.stage1.kinematics import KinematicTrack, fly, task_of
from sar_eval.stage1.observations import Observations, load_observations, observe
from sar_eval.stage1.sight import Scenery, looks_of, scenery_of
from sar_swarm.piloting.patternlist import LEARNED, canonical

SCHEMA_VERSION = 3
COVERED = 0.95
OBSERVATIONS = "observations-v3"


@dataclass(frozen=True)
class Matrix:
    """What to fly: all of these policies x seeds x episodes of a set."""

    scenario: Scenario
    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    episodes: tuple[int, ...]
    observations: Path

    def __len__(self) -> int:
        return len(self.policies) * len(self.seeds) * len(self.episodes)


def default_observations() -> Path:
    """The committed statistics."""
    return share_dir("configs") / "stage1" / f"{OBSERVATIONS}.json"


def plan(
    scenario: Scenario, policies: Sequence[str], seeds: Sequence[int], episodes: Sequence[int] | None, data: Path
) -> Matrix:
    """A checked matrix; ``episodes`` None takes the whole set."""
    names = tuple(dict.fromkeys(canonical(policy) for policy in policies))
    if LEARNED in names:
        raise InputError("policy: a learned policy is not flown by Stage 1 here; give its Stage-1 results as a file")
    if scenario.episode_set is None:
        raise InputError("Stage 1 flies a fixed episode set: give one, for example --episode-set village-v2")
    for what, values in (("seeds", seeds), ("policies", names)):
        if not values:
            raise InputError(f"{what}: none given; at least one is needed")
    bad = next((seed for seed in seeds if not 0 <= seed < CALIBRATION_SEED), None)
    if bad is not None:
        raise InputError(f"seed = {bad}: allowed are 0 to {CALIBRATION_SEED - 1}; those beyond belong to calibration")
    first = prepare(scenario, seeds[0], 0 if not episodes else episodes[0])
    assert first.drawn_from is not None
    chosen = tuple(range(len(first.drawn_from))) if episodes is None else tuple(dict.fromkeys(episodes))
    for index in chosen:
        first.drawn_from.level(index)
    load_observations(data, first)
    return Matrix(scenario, names, tuple(dict.fromkeys(seeds)), chosen, data)


@dataclass(frozen=True)
class _Job:
    """One seed and episode for all policies: they share layout, noise level and draws."""

    matrix: Matrix
    seed: int
    index: int


@cache
def _prepared(scenario: str, observations: Path) -> tuple[Episode, Scenery, Observations, str]:
    """World and statistics, read once per process; the rest of an episode is the set's to say."""
    episode = prepare(Scenario.model_validate_json(scenario), 0, 0)
    model, digest = load_observations(observations, episode)
    return episode, scenery_of(episode), model, digest


def fly_job(job: _Job) -> list[dict[str, Any]]:
    """The rows of one seed and episode, by policy."""
    matrix = job.matrix
    base, scenery, model, digest = _prepared(matrix.scenario.model_dump_json(exclude_unset=True), matrix.observations)
    assert base.drawn_from is not None
    level = base.drawn_from.level(job.index)
    devices = base.drawn_from.devices(job.index, base.scenario.victim_absent)
    rows = []
    for policy in matrix.policies:
        given = {"pattern": policy, "sigma": level.sigma, "kappa": level.kappa}
        scenario = base.scenario.model_copy(update=given)
        episode = replace(base, scenario=scenario, seed=job.seed, index=job.index, devices=devices)
        rows.append(row_of(episode, fly(task_of(episode)), scenery, model, digest))
    return rows


def row_of(
    episode: Episode, track: KinematicTrack, scenery: Scenery, model: Observations, digest: str
) -> dict[str, Any]:
    """What one flight comes to: coverage by the referee's code, findings drawn from the statistics, the return."""
    s = episode.scenario
    cover = sweep(episode.world.area, track.times_s, track.positions, steps_m=COARSE)
    level = model.level_of(s.sigma, s.kappa)
    looks = looks_of(track, episode.altitude_m)
    outcome = observe(model, level, scenery, looks, episode.devices, episode.seed, episode.index)
    first_issued, first_found = next(iter(outcome.issued), None), next(iter(outcome.found), None)
    counts = Counts(
        new_cells=cover.scanned_cells,
        confirmed_victims=len(outcome.found),
        triangulations=sum(issue.views for issue in outcome.found),
        idle_steps=idle_steps(track.times_s, track.positions),
        collisions=0,
        geofence_breaches=0,
        depleted=0,
    )
    return {
        "schema_version": SCHEMA_VERSION,
        "stage": 1,
        "policy": s.pattern,
        "seed": episode.seed,
        "episode": episode.index,
        "layout": episode.layout,
        "world": episode.world.name,
        "episode_set": episode.episode_set,
        "episode_set_sha256": episode.episode_set_sha256,
        "observations_sha256": digest,
        "sigma": s.sigma,
        "kappa": s.kappa,
        "victim_absent": s.victim_absent,
        "return": episode_return(counts),
        "return_counts": asdict(counts),
        "coverage_240s": round(cover.at(COVERAGE_TIME_S), 9),
        "time_to_95_s": _rounded(cover.time_to(COVERED)),
        "overlap_ratio": _rounded(cover.overlap_ratio),
        "issues": len(outcome.issued) + outcome.false_alarms,
        "detections": len(outcome.found),
        "displaced": len(outcome.issued) - len(outcome.found),
        "time_to_first_detection_s": None if first_found is None else round(first_found.time_s, 3),
        "localization_error_m": None if first_issued is None else round(first_issued.error_m, 3),
        "gdop": None if first_issued is None else _rounded(first_issued.gdop),
        "errors_m": [round(issue.error_m, 3) for issue in outcome.issued],
        "gdops": [_rounded(issue.gdop) for issue in outcome.issued],
        "false_alarms": outcome.false_alarms,
        "search_time_s": round(float(track.times_s[-1]), 3),
        "path_m": round(track.path_m, 3),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def compile_flights(matrix: Matrix) -> None:
    """Fly one episode, so that all that is compiled is, before processes are started and clocks run."""
    fly_job(_Job(replace(matrix, policies=matrix.policies[:1]), matrix.seeds[0], matrix.episodes[0]))


def fly_matrix(matrix: Matrix, workers: int, tell: Callable[[int], None]) -> Iterator[dict[str, Any]]:
    """All rows, seed by seed, episode by episode, policy by policy, whatever the number of processes."""
    jobs = [_Job(matrix, seed, index) for seed in matrix.seeds for index in matrix.episodes]
    done = 0
    for rows in spread(fly_job, jobs, workers):
        done += len(rows)
        tell(done)
        yield from rows


def write_rows(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    """Write all rows or nothing: the file appears under its name once it is whole."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    count = 0
    try:
        with partial.open("w", encoding="utf-8") as stream:
            for row in rows:
                stream.write(json.dumps(row, allow_nan=False) + "\n")
                count += 1
        os.replace(partial, path)
    except OSError as error:
        raise RunError(f"{path}: cannot write the Stage-1 results ({error.strerror})") from error
    finally:
        partial.unlink(missing_ok=True)
    return count
