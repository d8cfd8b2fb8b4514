"""What a Stage-2 campaign flies: conditions x seeds x episode indices as one ordered list, and any part of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sar_core.errors import InputError
from sar_core.streams import stream
from sar_eval.episode.pool import CALIBRATION_SEED
from sar_eval.scenario.model import Episode, Scenario, Source
from sar_eval.scenario.prepare import prepare
from sar_eval.scenario.tiers import piloted
from sar_swarm.piloting.patternlist import canonical

VICTIMS = {"present": (False,), "absent": (True,), "both": (False, True)}
FILTERS = ("world", "pattern", "victims", "seed", "episode")


@dataclass(frozen=True)
class CampaignChoice:
    """What the user asked for; ``scenario`` holds all that is the same in every condition."""

    scenario: Scenario
    worlds: tuple[str, ...]
    patterns: tuple[str, ...]
    victims: str
    seeds: tuple[int, ...]
    episodes: tuple[int, ...]
    episode_set: str | None = None
    """A version such as v1, which is each world's own set, or the name of one set; None: drawn by the rules."""
    tier: str = "embedded"
    speed: float = 1.0
    """Simulated over wall time of real autopilots."""
    source: Source | None = None

    def set_of(self, world: str) -> str | None:
        if self.episode_set is None or not re.fullmatch(r"v[0-9]+", self.episode_set):
            return self.episode_set
        return f"{Path(world).stem}-{self.episode_set}"


@dataclass(frozen=True)
class MissionTask:
    """One mission of the plan. ``key`` is its episode id, unique within the campaign."""

    key: str
    scenario: Scenario
    seed: int
    index: int
    tier: str
    speed: float = 1.0

    def prepare(self) -> Episode:
        return prepare(self.scenario, self.seed, self.index, self.tier)


@dataclass(frozen=True)
class CampaignPlan:
    """Every mission of a campaign in the order of its results, and one prepared episode per condition."""

    choice: CampaignChoice
    tasks: tuple[MissionTask, ...]
    samples: tuple[Episode, ...]

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(task.key for task in self.tasks)


def make_plan(choice: CampaignChoice) -> CampaignPlan:
    """World by world, pattern by pattern, present before absent, seed by seed, index by index.

    Every condition is prepared once and every index looked up in the set, so that what cannot be flown is refused here.
    """
    if choice.victims not in VICTIMS:
        raise InputError(f"victims = {choice.victims!r}: allowed: {', '.join(VICTIMS)}")
    if choice.scenario.victim_absent:
        raise InputError("victim_absent = true in the scenario: choose by --victims present, absent or both")
    for name, values in (("seeds", choice.seeds), ("episodes", choice.episodes)):
        if not values or len(set(values)) < len(values):
            raise InputError(f"{name} = {list(values)}: give at least one, none twice")
        outside = [value for value in values if not 0 <= value < CALIBRATION_SEED]
        if outside:
            raise InputError(
                f"{name} = {outside[0]}: evaluations use 0 to {CALIBRATION_SEED - 1}; those beyond are calibration's"
            )
    tasks: list[MissionTask] = []
    samples: list[Episode] = []
    for world in dict.fromkeys(choice.worlds):
        for pattern in dict.fromkeys(canonical(name) for name in choice.patterns):
            for absent in VICTIMS[choice.victims]:
                scenario = condition(choice, world, pattern, absent)
                sample = prepare(scenario, choice.seeds[0], choice.episodes[0], choice.tier, choice.source)
                if sample.drawn_from is not None:
                    for index in choice.episodes:
                        sample.drawn_from.level(index)
                samples.append(sample)
                tasks += [
                    MissionTask(
                        replace(sample, seed=seed, index=index).episode_id,
                        scenario,
                        seed,
                        index,
                        choice.tier,
                        choice.speed,
                    )
                    for seed in choice.seeds
                    for index in choice.episodes
                ]
    if len({task.key for task in tasks}) < len(tasks):
        raise InputError(f"worlds = {', '.join(choice.worlds)}: two of them have the same name; each may be given once")
    return CampaignPlan(choice, tuple(tasks), tuple(samples))


def condition(choice: CampaignChoice, world: str, pattern: str, absent: bool) -> Scenario:
    """The scenario of one condition."""
    changes = {"world": world, "pattern": pattern, "victim_absent": absent, "episode_set": choice.set_of(world)}
    return choice.scenario.model_copy(update=changes)


def parse_numbers(text: str, name: str) -> tuple[int, ...]:
    """``1,4,7`` or ``0-49`` or both mixed, in the order given."""
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if match is None:
            raise InputError(f"{name} = {text!r}: give numbers and ranges such as 1,4,7 or 0-49")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= CALIBRATION_SEED:
            raise InputError(f"{name} = {text!r}: the range {part.strip()} runs from low to high, below 1000000 long")
        numbers += range(first, last + 1)
    return tuple(numbers)


def parse_shard(text: str) -> tuple[int, int]:
    """``i/n`` with i from 1 to n."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"shard = {text!r}: give i/n with i from 1 to n, such as 2/8")
    return int(match[1]), int(match[2])


def select(plan: CampaignPlan, only: Iterable[str] = (), shard: tuple[int, int] = (1, 1)) -> tuple[MissionTask, ...]:
    """The part of the plan to fly now: values of one filter add up, different filters cut down.

    Shard i of n takes every n-th mission of what the filters leave, so that shards cost about the same.
    """
    wanted: dict[str, set[str]] = {}
    for text in only:
        key, _, value = text.partition("=")
        if key not in FILTERS or not value:
            raise InputError(f"only = {text!r}: give key=value with key one of {', '.join(FILTERS)}")
        if key == "pattern":
            value = canonical(value)
        wanted.setdefault(key, set()).update(value.split(","))
    for key, values in wanted.items():
        known = dict.fromkeys(_facet(task, key) for task in plan.tasks)
        unknown = sorted(values - set(known))
        if unknown:
            raise InputError(f"only = {key}={unknown[0]}: not in the plan; it has {_some(list(known))}")
    left = [task for task in plan.tasks if all(_facet(task, key) in values for key, values in wanted.items())]
    return tuple(left[shard[0] - 1 :: shard[1]])


def _facet(task: MissionTask, key: str) -> str:
    scenario = task.scenario
    facets: dict[str, Callable[[], Any]] = {
        "world": lambda: scenario.world,
        "pattern": lambda: scenario.pattern,
        "victims": lambda: "absent" if scenario.victim_absent else "present",
        "seed": lambda: task.seed,
        "episode": lambda: task.index,
    }
    return str(facets[key]())


def _some(values: list[str], count: int = 12) -> str:
    return ", ".join(values[:count]) + (f" ... ({len(values)} in all)" if len(values) > count else "")


def flight_order(tasks: Iterable[MissionTask], shuffle: int | None = None) -> list[MissionTask]:
    """Index by index across all conditions, so that a campaign half flown is a balanced half; or shuffled."""
    ordered = sorted(tasks, key=lambda task: task.index)
    if shuffle is None:
        return ordered
    order = stream("campaign order", shuffle).permutation(len(ordered))
    return [ordered[int(k)] for k in np.asarray(order)]


def told_time(seconds: float) -> str:
    """A span of time as people say it."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    minutes = math.ceil(seconds / 60.0)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


@dataclass(frozen=True)
class Cost:
    """What flying so many missions takes on this machine, and where the figures come from."""

    episodes: int
    simulated_h: float
    wall_h: float
    disk_gb: float
    basis: str


STATED_RTF = 60.0
"""Simulated over wall seconds of one process with 4 drones and the radio on, embedded tier (docs/performance.md)."""
OVERHEAD_S = 90.0
"""Take-off, return and landing beside the search time, as eight missions of 60 s in the village took."""
RECORD_BYTES = 4_500
BAG_BYTES_PER_S = 6_000
"""Of one drone's topics per simulated second, compressed, in the bags of two of these missions."""


def cost(tasks: Iterable[MissionTask], workers: int, bags: str, flown: Iterable[dict[str, Any]] = ()) -> Cost:
    """Size of what is left to fly, from the speed of records of this campaign or, without any, a stated one."""
    work = list(tasks)
    walls = [(run["wall_s"] + run["setup_s"], run["rtf"] * run["wall_s"]) for run in flown if run.get("wall_s")]
    spent, simulated = sum(w for w, _ in walls), sum(s for _, s in walls)
    paced = [task.speed for task in work if piloted(task.tier)]
    rtf = simulated / spent if spent > 0.0 else min(paced, default=STATED_RTF)
    basis = f"measured on {len(walls)} episodes here" if spent > 0.0 else "stated, nothing measured yet"
    seconds = [task.scenario.duration_s + OVERHEAD_S for task in work]
    bag_bytes = sum(s * task.scenario.drones for s, task in zip(seconds, work, strict=True)) * BAG_BYTES_PER_S
    disk = len(work) * RECORD_BYTES * 2 + (bag_bytes if bags == "all" else 0.0)
    return Cost(
        episodes=len(work),
        simulated_h=sum(seconds) / 3600.0,
        wall_h=sum(seconds) / rtf / max(workers, 1) / 3600.0,
        disk_gb=disk / 1e9,
        basis=f"{rtf:.0f} x real time per worker, {basis}",
    )
