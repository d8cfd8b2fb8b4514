"""Campaigns for tests that fly nothing: a small plan, and flyers that make records up."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

from sar_eval.campaign.campaign import open_campaign
from sar_eval.campaign.manifest import Manifest
from sar_eval.campaign.plan import CampaignChoice, MissionTask
from sar_eval.campaign.workers import MissionJob, MissionOutcome
from sar_eval.episode.record import Record
from sar_eval.scenario.model import Scenario

CHOICE = CampaignChoice(
    scenario=Scenario(drones=2, duration_s=5.0, radio=None),
    worlds=("village",),
    patterns=("boustrophedon", "spiral"),
    victims="both",
    seeds=(4, 1),
    episodes=(0, 1, 2),
    episode_set="v2",
)


def made_up(task: MissionTask) -> Record:
    """A record as if flown; which missions collide follows from the seed alone."""
    result: dict[str, Any] = {
        "episode_id": task.key,
        "valid": True,
        "invalid_reason": None,
        "collisions": int(task.seed == 4 and task.index == 1),
        "false_alarms": None,
        "coverage": task.index / 7,
    }
    return Record(result, {"wall_s": 2.0, "setup_s": 0.0, "rtf": 50.0, "bag": None})


class Desk:
    """Flyers that fly nothing: records are made up, and a bag is a folder with a note."""

    def __init__(self, outcome: Callable[[MissionJob], MissionOutcome] | None = None, limit: int = 10_000) -> None:
        self.flown: list[MissionJob] = []
        self._outcome = outcome
        self._limit = limit

    def fly(
        self, more: Callable[[], MissionJob | None], stop: Callable[[], str | None]
    ) -> Generator[MissionOutcome, None, None]:
        while stop() is None and len(self.flown) < self._limit and (job := more()) is not None:
            self.flown.append(job)
            yield self._outcome(job) if self._outcome else self.record(job)

    @staticmethod
    def record(job: MissionJob) -> MissionOutcome:
        bag = None
        if job.scratch is not None:
            bag = Path(job.scratch) / f"flight-{job.task.key}" / job.task.key
            bag.mkdir(parents=True)
            (bag / "note").write_text(job.task.key)
        return MissionOutcome(job, made_up(job.task), None if bag is None else str(bag))


def fly(folder: Path, manifest: Manifest, tasks: Iterable[MissionTask], desk: Desk, **options: Any) -> Any:
    with open_campaign(folder, manifest) as campaign:
        return campaign.fly(list(tasks), desk, **options)
