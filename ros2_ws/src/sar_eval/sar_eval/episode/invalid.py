"""The record of a mission that has no outcome because the simulator or the host failed: INVALID, and nothing scored."""

from __future__ import annotations

from typing import Any

from sar_eval import __version__
from sar_eval.episode.flight import Flight
from sar_eval.episode.record import Record
from sar_eval.scenario.model import Episode


def invalid_record(episode: Episode, reason: str) -> Record:
    """As if the episode had ended before its first tick; the same for whoever writes it."""
    flight = Flight(episode, None)
    flight.score.spoil(reason)
    run = dict[str, Any](version=__version__, rtf=None, wall_s=None, setup_s=None, bag=None, worker=None)
    return Record(flight.result(), run)
