"""What an oracle returns on each episode: it knows the victims, flies straight to them, then covers the area.

The swarm never sees truth, so the oracle is no pattern of it: its ways are made here from the episode's devices and
given to the same controllers, vehicles, safety layer and referee that fly every other mission. Its return is computed
from its bag by the analysis, as anyone's. `sar_analysis.results.optimality` divides by it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

import sar_analysis
import sar_core
import sar_eval
import sar_sim
import sar_swarm
from sar_analysis.metrics.metrics import episode_metrics
from sar_analysis.metrics.task import task_of, task_sha256
from sar_analysis.results.optimality import SCHEMA_VERSION
from sar_core.errors import ContractError, InputError
from sar_eval import __version__
from sar_eval.episode.flight import fly_episode
from sar_eval.episode.pool import CALIBRATION_SEED, spread
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_sim.radio.devices import DeviceKind
from sar_swarm.planning.routes import partitioned_lawnmower

Floats = NDArray[np.float64]
Level = tuple[float, float]

PATTERN = "partitioned_lawnmower"
SEED = 0
"""The oracle's own noise; a reference holds one flight per episode and noise level."""
EPISODES_IN_SET = 50
FLYING = ("scenario", "backends", "episode", "stage1/oracle.py")
"""Of sar_eval, what flies or scores."""
SCORING = ("bags", "metrics")
"""Of sar_analysis, what turns a bag into its return."""


@dataclass(frozen=True)
class ReferenceFlight:
    """One reference flight."""

    scenario: Scenario
    index: int


def assign(starts: Floats, goals: Floats) -> list[list[int]]:
    """Goals [V, 2] for each of the drones at starts [D, 2], in order: the last one is reached as early as can be.

    Each round gives every drone at most one more goal so that the longest way so far is shortest (a bottleneck
    assignment), and among those the sum is.
    """
    ways: list[list[int]] = [[] for _ in starts]
    at, flown = starts.astype(np.float64).copy(), np.zeros(len(starts))
    left = list(range(len(goals)))
    while left:
        cost = flown[:, None] + np.linalg.norm(at[:, None] - goals[left][None], axis=2)
        pairs = _bottleneck(cost)
        for drone, column in pairs:
            ways[drone].append(left[column])
            flown[drone], at[drone] = cost[drone, column], goals[left[column]]
        taken = {column for _, column in pairs}
        left = [goal for column, goal in enumerate(left) if column not in taken]
    return ways


def _bottleneck(cost: Floats) -> list[tuple[int, int]]:
    """As many pairs as the smaller side of cost [D, V] has, their largest cost as small as can be."""
    forbidden = 1.0 + 2.0 * float(cost.sum())
    for limit in np.unique(cost):
        rows, columns = linear_sum_assignment(np.where(cost <= limit, cost, forbidden))
        if (cost[rows, columns] <= limit).all():
            return [(int(d), int(v)) for d, v in zip(rows, columns, strict=True)]
    raise AssertionError("the largest cost allows every pair")


def oracle_routes(episode: Episode) -> tuple[Floats, ...]:
    """Each drone's waypoints [K, 2]: its victims, then the lanes of its strip from whichever end is nearer."""
    s, w = episode.scenario, episode.world
    victims = np.array([d.track[0, 1:3] for d in episode.devices if d.kind is DeviceKind.VICTIM]).reshape(-1, 2)
    routes = []
    for i, goals in enumerate(assign(episode.spawns[:, :2], victims)):
        lanes = partitioned_lawnmower(w.area, s.drones, i, s.swath_m, s.overlap)
        last = victims[goals[-1]] if goals else episode.spawns[i, :2]
        if goals and math.dist(last, lanes[-1]) < math.dist(last, lanes[0]):
            lanes = lanes[::-1]
        routes.append(np.vstack([victims[goals], lanes]))
    return tuple(routes)


def prepare_oracle(scenario: Scenario, index: int) -> Episode:
    """An episode that knows its victims."""
    episode = prepare(scenario.model_copy(update={"pattern": PATTERN, "policy": None, "pursuit": "off"}), SEED, index)
    return dataclasses.replace(episode, routes=oracle_routes(episode))


def fly_reference(job: ReferenceFlight) -> dict[str, Any]:
    """One row of a reference: the return of the oracle's bag, or why it has none."""
    episode = prepare_oracle(job.scenario, job.index)
    with tempfile.TemporaryDirectory(prefix="sar_eval_reference_") as folder:
        bag = Path(folder) / "bag"
        fly_episode(episode, bag)
        found = episode_metrics(bag)
    radio = job.scenario.radio is not None
    return {
        "episode": job.index,
        "sigma": episode.scenario.sigma if radio else None,
        "kappa": _plain(episode.scenario.kappa) if radio else None,
        "return": found.episode_return if found.valid else None,
        "invalid_reason": found.invalid_reason or (None if found.episode_return is not None else "no search"),
        "coverage_240s": found.coverage_240s,
        "detections": found.detections,
        "time_to_first_detection_s": found.time_to_first_detection_s,
        "collisions": found.collisions,
    }


def make_reference(
    scenario: Scenario,
    episodes: Sequence[int],
    levels: Sequence[Level],
    held: dict[str, Any] | None,
    workers: int,
    tell: Callable[[int, int], None],
) -> dict[str, Any]:
    """A reference document: what ``held`` has is kept, what it lacks is flown; one of another task is refused.

    An episode set brings its own noise: then there are no levels to give.
    """
    head = describe(scenario)
    rows = [] if held is None else list(_same(held, head)["returns"])
    known = {(row["episode"], row["sigma"], row["kappa"]) for row in rows}
    jobs = []
    if scenario.episode_set is not None:
        jobs = [ReferenceFlight(scenario, index) for index in episodes if index not in {row["episode"] for row in rows}]
    for sigma, kappa in () if scenario.episode_set is not None else levels:
        level = scenario.model_copy(update={"sigma": sigma, "kappa": kappa})
        key = (sigma, _plain(kappa)) if scenario.radio is not None else (None, None)
        jobs += [ReferenceFlight(level, index) for index in episodes if (index, *key) not in known]
    for done, row in enumerate(spread(fly_reference, jobs, workers), start=1):
        rows.append(row)
        tell(done, len(jobs))
    rows.sort(key=lambda row: (row["sigma"] or 0.0, -float(row["kappa"] or 0.0), row["episode"]))
    missing = sorted(set(range(EPISODES_IN_SET)) - {row["episode"] for row in rows})
    return {**head, "missing_episodes": missing, "returns": rows}


def describe(scenario: Scenario) -> dict[str, Any]:
    """What a reference is bound to; the same for every episode and noise level of it."""
    configuration = prepare_oracle(scenario, 0).resolved()
    return {
        "schema_version": SCHEMA_VERSION,
        "oracle": "flies straight to the victims, each to the drone that lets the last be reached first; then covers",
        "world": scenario.world,
        "world_sha256": configuration["world_sha256"],
        "episode_set": configuration["episode_set"],
        "episode_set_sha256": configuration["episode_set_sha256"],
        "task": task_of(configuration),
        "task_sha256": task_sha256(configuration),
        "seed": SEED,
        "version": __version__,
        "sources_sha256": sources_sha256(),
    }


def sources_sha256() -> str:
    """A hash of everything that flies or scores: a reference made by other code is flown again, not added to."""
    parts = [(sar_eval, name) for name in FLYING] + [(sar_analysis, name) for name in SCORING]
    digest = hashlib.sha256()
    for package, part in (*parts, (sar_core, "."), (sar_sim, "."), (sar_swarm, ".")):
        root = Path(str(package.__file__)).parent
        place = root / part
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def parse_episodes(text: str) -> list[int]:
    """Episode indices from words such as 0-9,12."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        try:
            low, high = int(first), int(last or first)
        except ValueError:
            raise InputError(f"episodes = {text!r}: allowed are numbers and ranges such as 0-9,12") from None
        if not 0 <= low <= high < CALIBRATION_SEED:
            raise InputError(f"episodes = {part.strip()!r}: allowed are 0 to {CALIBRATION_SEED - 1}, first before last")
        found.update(range(low, high + 1))
    return sorted(found)


def parse_levels(words: Sequence[str]) -> list[Level]:
    """Noise levels from words such as 0.1:8 (sigma:kappa)."""
    levels = []
    for word in words:
        try:
            sigma, kappa = map(float, word.split(":"))
        except ValueError:
            raise InputError(f"level = {word!r}: allowed is sigma:kappa, such as 0.1:8") from None
        levels.append((sigma, kappa))
    return list(dict.fromkeys(levels))


def save_reference(document: dict[str, Any], path: Path) -> None:
    """The document in its place, one row per line, whole or not at all."""
    head = {key: value for key, value in document.items() if key != "returns"}
    rows = ",\n".join(f"  {json.dumps(row)}" for row in document["returns"])
    text = json.dumps(head, indent=1)[:-2] + f',\n "returns": [\n{rows}\n ]\n}}\n'
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot write the reference ({error.strerror})") from error


def _same(held: dict[str, Any], head: dict[str, Any]) -> dict[str, Any]:
    """The reference held, if it may be added to."""
    for key in ("schema_version", "world_sha256", "episode_set", "episode_set_sha256", "task_sha256", "sources_sha256"):
        if held.get(key) != head[key]:
            raise ContractError(
                f"the reference held is of another {key.replace('_', ' ')} ({held.get(key)}, now {head[key]}): "
                "fly it anew with --fresh"
            )
    return held


def _plain(kappa: float) -> float | str:
    return kappa if math.isfinite(kappa) else "inf"
