"""The main job: Stage 1, its median seeds, their Stage-2 missions and the report, in one folder.

    stage1.jsonl    every policy x seed x episode, kinematic
    campaign/       the Stage-2 campaign of the median seeds
    report/         what it comes to

Stage 1 is flown whole: it takes seconds, and what it gives decides which campaign this is. The same command goes on
where it was left; another one, or another version of the code, gets a folder of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sar_analysis.stage1.rows import read_stage1
from sar_core.errors import InputError
from sar_eval.campaign.manifest import Manifest, make_manifest, read_manifest
from sar_eval.campaign.plan import CampaignChoice, CampaignPlan, MissionTask, make_plan
from sar_eval.campaign.seedchoice import choose_seeds
from sar_eval.scenario.episodeset import SET_VERSION
from sar_eval.scenario.model import DEFAULT_WORLD, Scenario
from sar_eval.scenario.resources import share_dir
from sar_swarm.piloting.patternlist import STANDARD

STAGE1, CAMPAIGN, REPORT = "stage1.jsonl", "campaign", "report"
STAGE1_SEEDS = tuple(range(10))
"""Flown in Stage 1 unless others are asked for."""


@dataclass(frozen=True)
class Extent:
    """How much of Stage 2 is flown for every median seed, with victims and without."""

    episodes: tuple[int, ...]
    patterns: tuple[str, ...]
    duration_s: float | None = None


REDUCED = Extent((0, 6, 12, 18, 24), ("partitioned_lawnmower", "pheromone"))
"""Five layouts, each at another of the five noise levels: minutes on two cores, and something to say of new layouts."""
FULL = Extent(tuple(range(50)), STANDARD)
"""The set, every pattern and baseline: what results/ was flown with."""


@dataclass(frozen=True)
class Evaluation:
    """A Stage-2 campaign that follows from Stage 1."""

    plan: CampaignPlan
    manifest: Manifest

    @property
    def replayed(self) -> list[MissionTask]:
        """One mission of each pattern for people to watch: the first seed and episode, with its victims."""
        first = self.plan.tasks[0]
        return [
            task
            for task in self.plan.tasks
            if (task.seed, task.index, task.scenario.victim_absent) == (first.seed, first.index, False)
        ]


def follow(stage1: Path, extent: Extent) -> Evaluation:
    """The campaign of a Stage-1 file's median seeds."""
    seeds, origin = choose_seeds(None, stage1)
    choice = CampaignChoice(
        scenario=Scenario() if extent.duration_s is None else Scenario(duration_s=extent.duration_s),
        worlds=(DEFAULT_WORLD,),
        patterns=extent.patterns,
        victims="both",
        seeds=seeds,
        episodes=extent.episodes,
        episode_set=SET_VERSION,
    )
    plan = make_plan(choice)
    assert origin is not None
    return Evaluation(plan, make_manifest(plan, replace(origin, file=STAGE1)))


def places(base: Path) -> Iterator[Path]:
    """base, base-2, base-3 ..."""
    yield base
    yield from (base.with_name(f"{base.name}-{number}") for number in range(2, 10_000))


def place_of(evaluation: Evaluation, base: Path) -> Path:
    """The first of the places that is new or holds this very campaign."""
    for folder in places(base):
        if not folder.exists() or _holds(folder, evaluation):
            return folder
    raise InputError(f"{base}: too many folders of this name")


def begun_in(base: Path, extent: Extent, seeds: tuple[int, ...]) -> tuple[Path, Evaluation] | None:
    """Where this evaluation was begun, and it: Stage 1 of the same code and seeds need not be flown again."""
    for folder in places(base):
        if not folder.exists():
            return None
        stage1 = folder / STAGE1
        if not stage1.is_file() or {row.seed for row in read_stage1(stage1)} != set(seeds):
            continue
        evaluation = follow(stage1, extent)
        if _holds(folder, evaluation):
            return folder, evaluation
    return None


def _holds(folder: Path, evaluation: Evaluation) -> bool:
    found = read_manifest(folder / CAMPAIGN) if folder.is_dir() else None
    return found is not None and found.identity == evaluation.manifest.identity


def reference_of(episode_set: str | None) -> Path | None:
    """The oracle's returns for an episode set, where some are committed."""
    path = share_dir("configs") / "reference" / f"{episode_set}.json"
    return path if path.is_file() else None
