"""An episode on whatever tier it is for: the world is opened and ended around it, and spoilt flights are repeated."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sar_eval.backends import world_of
from sar_eval.config import Episode
from sar_eval.episode import Progress, Record, fly_episode
from sar_eval.invalid import invalid_record
from sar_eval.simulator import SpoiltError, Stop, never
from sar_eval.tiers import AUTOPILOTS

RETRIES = 6
"""How often an episode that its host or a simulator spoilt is flown again."""


def fly(
    episode: Episode,
    bag: Path | None,
    watch: Callable[[Progress], None] | None = None,
    stop: Stop | None = None,
    csi: bool = False,
    speed: float = 1.0,
    retries: int = RETRIES,
    tell: Callable[[str], None] | None = None,
) -> Record:
    """As :func:`fly_episode`, on the episode's own tier; ``run`` tells of every attempt that was spoilt.

    ``tell`` hears of each as it happens. The bag is the last attempt's.
    """
    if episode.tier not in AUTOPILOTS:
        return fly_episode(episode, bag, watch, stop, csi)
    return repeat(lambda: _attempt(episode, bag, watch, stop, csi, speed), bag, stop, retries, tell)


def repeat(
    attempt: Callable[[], Record],
    bag: Path | None,
    stop: Stop | None = None,
    retries: int = RETRIES,
    tell: Callable[[str], None] | None = None,
) -> Record:
    """Attempts until one is not spoilt, none is left or someone asks to stop; a spoilt one's ``run`` has a detail."""
    spoilt: list[dict[str, Any]] = []
    while True:
        record = attempt()
        detail = record.run.get("invalid_detail")
        stopped = stop is not None and bool(stop())
        if detail is not None and not stopped:
            spoilt.append({"reason": record.result["invalid_reason"], "detail": detail})
        if detail is None or stopped or len(spoilt) > retries:
            return Record(record.result, {**record.run, "spoilt_attempts": spoilt})
        if tell is not None:
            tell(f"attempt {len(spoilt)} was spoilt ({spoilt[-1]['reason']}: {detail}); it is flown again")
        if bag is not None:
            shutil.rmtree(bag, ignore_errors=True)


def _attempt(
    episode: Episode,
    bag: Path | None,
    watch: Callable[[Progress], None] | None,
    stop: Stop | None,
    csi: bool,
    speed: float,
) -> Record:
    """One flight; vehicles that never got ready leave a record without a bag."""
    try:
        with world_of(episode, speed, stop or never) as world:
            return fly_episode(episode, bag, watch, stop, csi, world)
    except SpoiltError as error:
        record = invalid_record(episode, error.reason)
        return Record(record.result, {**record.run, "invalid_detail": error.detail})
