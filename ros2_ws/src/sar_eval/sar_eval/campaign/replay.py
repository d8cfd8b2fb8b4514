"""Fly a recorded mission again by its episode id, with a bag this time, and say whether it came out the same."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sar_core.errors import InputError, MissingDataError
from sar_eval.episode.record import compared
from sar_eval.scenario.model import Episode, scenario_from
from sar_eval.scenario.prepare import prepare


@dataclass(frozen=True)
class FoundMission:
    """A mission's result as some file holds it, and the episode it describes."""

    result: dict[str, Any]
    episode: Episode


def find(path: Path, episode_id: str) -> FoundMission:
    """The result with this id in a JSONL of results or of episode records, prepared to be flown again."""
    known = []
    for number, result in _results(path):
        known.append(str(result.get("episode_id")))
        if known[-1] != episode_id:
            continue
        where = f"{path}:{number}"
        if not isinstance(result.get("scenario"), dict):
            raise InputError(f"{where}: the result of {episode_id} carries no scenario; it cannot be flown again")
        seed, index = result.get("seed"), result.get("episode")
        if not isinstance(seed, int) or not isinstance(index, int):
            raise InputError(f"{where}: the result of {episode_id} names no seed and episode to fly")
        return FoundMission(result, prepare(scenario_from(result["scenario"], where), seed, index))
    near = ", ".join(known[:3]) + (" ..." if len(known) > 3 else "")
    raise MissingDataError(f"{path}: no episode {episode_id!r} among {len(known)} results ({near})")


def _results(path: Path) -> list[tuple[int, dict[str, Any]]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot read results ({error})") from error
    results = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}:{number}: not a line of JSON ({error})") from error
        if not isinstance(row, dict):
            raise InputError(f"{path}:{number}: expected an object with a result, found {type(row).__name__}")
        result = row.get("result", row)
        if isinstance(result, dict):
            results.append((number, result))
    return results


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Names of the fields in which two results differ, as they look after a trip through JSON."""
    before, after = compared(before), json.loads(json.dumps(compared(after)))
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
