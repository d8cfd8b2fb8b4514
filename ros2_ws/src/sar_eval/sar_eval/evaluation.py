"""The main job: fly a small fixed set of episodes over the four worlds and end in one table."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sar_core.errors import InputError, RunError
from sar_eval.config import Episode, Scenario, prepare
from sar_eval.episode import Progress, Record, fly_episode

WORLDS = ("open_field", "village", "forest", "collapsed_block")
EPISODES_PER_WORLD = 3
RECORDS = "episodes.jsonl"


@dataclass(frozen=True)
class Row:
    """One world's line in the table; means over its valid episodes, sums of events."""

    world: str
    episodes: int
    invalid: int
    coverage_240s: float | None
    collisions: int
    near_misses: int
    victims: int
    found: int
    false_alarms: int
    rtf: float | None


def plan_set(scenario: Scenario) -> list[Episode]:
    """The fixed set: every world, seeds 0 to 2, episode index equal to the seed."""
    return [
        prepare(scenario.model_copy(update={"world": world}), seed=k, index=k)
        for world in WORLDS
        for k in range(EPISODES_PER_WORLD)
    ]


def fresh_folder(base: Path) -> Path:
    """The first of base, base-2, base-3 ... that does not exist yet, created."""
    for number in range(1, 10_000):
        folder = base if number == 1 else base.with_name(f"{base.name}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise InputError(f"{folder}: cannot create the output folder ({error.strerror})") from error
        return folder
    raise InputError(f"{base}: too many folders of this name")


def ready_folder(folder: Path) -> None:
    """Create a folder to write into, or say why that cannot be, before anything is flown."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "a file of this name exists" if isinstance(error, FileExistsError) else error.strerror
        raise InputError(f"{folder}: cannot create the output folder ({reason})") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: the output folder is not writable")


def fly_set(
    episodes: list[Episode],
    folder: Path,
    watch: Callable[[int, Progress], None],
    stop: Callable[[], str | None],
) -> Iterator[Record]:
    """Fly episode after episode, each into its own bag; every record is on disk before the next take-off."""
    for number, episode in enumerate(episodes):
        record = fly_episode(episode, folder / episode.episode_id, partial(watch, number), stop)
        append_record(folder / RECORDS, record)
        yield record
        if stop() is not None:
            return


def append_record(path: Path, record: Record) -> None:
    """One line of JSON, whole or not at all."""
    line = (json.dumps(record.as_dict()) + "\n").encode()
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            before = os.fstat(handle).st_size
            try:
                if os.write(handle, line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                os.ftruncate(handle, before)
                raise
        finally:
            os.close(handle)
    except OSError as error:
        raise RunError(f"{path}: cannot write the episode record ({error.strerror})") from error


def tabulate(records: list[Record]) -> list[Row]:
    """Rows in the order the worlds were flown."""
    rows = []
    for world in dict.fromkeys(record.result["world"] for record in records):
        mine = [record for record in records if record.result["world"] == world]
        valid = [record for record in mine if record.result["valid"]]
        rows.append(
            Row(
                world=world,
                episodes=len(mine),
                invalid=len(mine) - len(valid),
                coverage_240s=_mean([r.result["coverage_240s"] for r in valid]),
                collisions=sum(r.result["collisions"] for r in valid),
                near_misses=sum(r.result["near_misses"] for r in valid),
                victims=sum(len(r.result["victims"]) for r in valid),
                found=sum(r.result["detections"] or 0 for r in valid),
                false_alarms=sum(r.result["false_alarms"] or 0 for r in valid),
                rtf=_mean([r.run["rtf"] for r in mine]),
            )
        )
    return rows


def _mean(values: list[Any]) -> float | None:
    return sum(values) / len(values) if values else None
