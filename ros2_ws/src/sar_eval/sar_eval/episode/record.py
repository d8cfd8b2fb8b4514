"""The record of an episode: what it came to, and what the host had to do with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SCHEMA_VERSION = 2
"""Since 2 reports are judged by transmitter, inside the search (docs/migration.md)."""
NOT_COMPARED = ("version",)
"""In results written before ``run`` told the package's version; who flies the same flies it with any version."""


@dataclass(frozen=True)
class Record:
    """An episode's outcome: ``result`` is deterministic and compared, ``run`` tells of this host and is not."""

    result: dict[str, Any]
    run: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, "result": self.result, "run": self.run}


def compared(result: dict[str, Any]) -> dict[str, Any]:
    """All of a result that two flights of the same episode have in common."""
    return {key: value for key, value in result.items() if key not in NOT_COMPARED}
