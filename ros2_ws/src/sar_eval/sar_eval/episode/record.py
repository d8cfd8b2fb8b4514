"""The record of an episode: what it came to, and what the host had to do with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Record:
    """An episode's outcome: ``result`` is deterministic and compared, ``run`` tells of this host and is not."""

    result: dict[str, Any]
    run: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, "result": self.result, "run": self.run}
