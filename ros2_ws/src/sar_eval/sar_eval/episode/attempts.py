"""An episode on whatever tier it is for: the world is opened and ended around it, and spoilt flights are repeated."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sar_eval.backends.backend import SpoiltError, Stop, never
from sar_eval.backends.registry import backend_of
from sar_eval.bag.writer import partial_of, refuse_existing
from sar_eval.episode.flight import FlightProgress, fly_episode
from sar_eval.episode.invalid import invalid_record
from sar_eval.episode.record import Record
from sar_eval.scenario.model import Episode
from sar_eval.scenario.tiers import piloted

RETRIES = 6
"""How often an episode that its host or a simulator spoilt is flown again."""


def fly(
    episode: Episode,
    bag: Path | None,
    watch: Callable[[FlightProgress], None] | None = None,
    stop: Stop | None = None,
    csi: bool = False,
    speed: float = 1.0,
    retries: int = RETRIES,
    tell: Callable[[str], None] | None = None,
) -> Record:
    """As :func:`fly_episode`, on the episode's own tier; ``run`` tells of every attempt that was spoilt.

    ``tell`` hears of each as it happens. The bag is the last attempt's.
    """
    if not piloted(episode.tier):
        with backend_of(episode) as backend:
            return fly_episode(episode, bag, watch, stop, csi, backend)
    return repeat(lambda: _attempt(episode, bag, watch, stop, csi, speed), bag, stop, retries, tell)


def repeat(
    attempt: Callable[[], Record],
    bag: Path | None,
    stop: Stop | None = None,
    retries: int = RETRIES,
    tell: Callable[[str], None] | None = None,
) -> Record:
    """Attempts until one is not spoilt, none is left or someone asks to stop."""
    if bag is not None:
        refuse_existing(bag)
    attempts = Attempts(bag, retries, tell)
    while True:
        record = attempt()
        if not attempts.again(record, stop is not None and bool(stop())):
            return attempts.tell_of(record)


class Attempts:
    """Attempts at one episode. A spoilt one's ``run`` has a detail; it leaves no bag if it is flown again."""

    def __init__(self, bag: Path | None, retries: int = RETRIES, tell: Callable[[str], None] | None = None) -> None:
        self._bag, self._retries, self._tell = bag, retries, tell
        self.spoilt: list[dict[str, Any]] = []

    def again(self, record: Record, stopped: bool) -> bool:
        """Whether it is to be flown again; who stopped it has not spoilt it."""
        detail = record.run.get("invalid_detail")
        if detail is None or stopped:
            return False
        reason = record.result["invalid_reason"]
        seen = {key: record.result[key] for key in ("flight_time_s", "collisions")}
        self.spoilt.append({"reason": reason, "detail": detail, **seen})
        if len(self.spoilt) > self._retries or record.run.get("final"):
            return False
        if self._tell is not None:
            self._tell(f"attempt {len(self.spoilt)} was spoilt ({reason}: {detail}); it is flown again")
        if self._bag is not None:
            for left in (self._bag, partial_of(self._bag)):
                shutil.rmtree(left, ignore_errors=True)
        return True

    def tell_of(self, record: Record) -> Record:
        """The last attempt's record, with what was spoilt before."""
        return Record(record.result, {**record.run, "spoilt_attempts": self.spoilt})


def _attempt(
    episode: Episode,
    bag: Path | None,
    watch: Callable[[FlightProgress], None] | None,
    stop: Stop | None,
    csi: bool,
    speed: float,
) -> Record:
    """One flight; vehicles that never got ready leave a record without a bag."""
    try:
        with backend_of(episode, speed, stop or never) as world:
            return fly_episode(episode, bag, watch, stop, csi, world)
    except SpoiltError as error:
        record = invalid_record(episode, error.reason)
        return Record(record.result, {**record.run, "invalid_detail": error.detail, "final": error.final})
