"""Whether a record belongs to a campaign: flown with its inputs and code, and by the autopilot of its other records.

Workers read files anew for every mission and autopilots are processes of their own, so a file edited while a campaign
flies would mix two experiments under one identity. What was really flown is compared, record by record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sar_core.errors import ContractError, SarError
from sar_eval.campaign.manifest import MANIFEST, Manifest, condition_name, index_hashes
from sar_eval.campaign.sources import first_difference
from sar_eval.episode.conduct import index_file
from sar_eval.episode.record import Record
from sar_eval.scenario.episodeset import set_path
from sar_eval.scenario.prepare import calibration_path, radio_path
from sar_eval.scenario.resources import params_path, share_dir, vehicle_path, world_path
from sar_eval.scenario.tiers import tier_named
from sar_swarm.piloting.patternlist import pattern_file

_FILES: dict[str, tuple[str, tuple[Callable[[str], object], ...]]] = {
    "world": ("world", (world_path,)),
    "pattern": ("pattern", (pattern_file,)),
    "tier": ("tier", (lambda name: tier_named(name).file,)),
    "vehicle": ("vehicle", (vehicle_path, params_path)),
    "radio": ("radio", (radio_path,)),
    "calibration": ("radio", (calibration_path,)),
    "policy": ("policy", (str,)),
    "episode_set": ("episode_set", (set_path,)),
    "models": ("tier", (lambda tier: share_dir("models"),)),
    "flight_rules": ("", (index_file,)),
    "quality": ("", (index_file,)),
    "safety": ("", (index_file,)),
}
"""Of each input the key of the configuration that names it, and what finds its files by that name; the constants of an
index are named by themselves."""


class Acceptance:
    """The door of a campaign: ``complaint`` says what is wrong with a record, "" where it may come in."""

    def __init__(self, manifest: Manifest) -> None:
        self._inputs: dict[str, dict[str, Any]] = manifest.decides["inputs"].get("conditions", {})
        self._code = manifest.decides["code"]
        self._planned = frozenset(manifest.episodes)
        self._autopilot: tuple[str, dict[str, str]] | None = None

    def check(self, records: Mapping[str, Record], where: Path) -> None:
        """Refuse a ledger that holds what the campaign did not plan, or what two experiments came to."""
        for key, record in records.items():
            if key not in self._planned:
                raise ContractError(f"{where}: {key} is not in the plan of {MANIFEST}")
            if wrong := self.complaint(record):
                raise ContractError(f"{where}: {key}: {wrong}; these records are not of one experiment")

    def complaint(self, record: Record) -> str:
        """By the hashes in its configuration and its conduct, and by what its vehicles said they were."""
        flown = record.result.get("configuration")
        if not isinstance(flown, dict):
            return self._other_autopilot(record)
        return self.edited(record.result, flown | _judged_by(record.result)) or self._other_autopilot(record)

    def edited(self, result: Mapping[str, Any], found: Mapping[str, Any]) -> str:
        """The first input whose hash, of those found, is not the manifest's, by the name of its file."""
        flown = result["configuration"]
        condition = condition_name(
            str(result.get("world")), str(result.get("pattern")), bool(flown.get("victim_absent"))
        )
        if condition not in self._inputs:
            return f"{condition} is no condition of this campaign"
        for key, planned in self._inputs[condition].items():
            if key in found and found[key] != planned:
                return f"{_named(key, flown)} was edited: sha256 {_short(found[key])}, the campaign's {_short(planned)}"
        return ""

    def _other_autopilot(self, record: Record) -> str:
        """Release and git hash as vehicles report them; our own vehicle tells the package's, and its sources count."""
        told = record.run.get("autopilot")
        if told is None or record.result.get("tier") == "sitl":
            return ""
        key, found = record.result["episode_id"], {part: str(told.get(part)) for part in ("version", "git")}
        if self._autopilot is None:
            self._autopilot = key, found
        first, known = self._autopilot
        if found == known:
            return ""
        return f"flown by autopilot {' '.join(found.values())}, but {first} by {' '.join(known.values())}"

    def other_code(self, code: Mapping[str, Any]) -> str:
        """The first source or library that is not the manifest's."""
        parted = first_difference(code, self._code)
        return "" if parted is None else f"{parted[0]} was changed: {parted[1]}, the campaign's {parted[2]}"


def _judged_by(result: Mapping[str, Any]) -> dict[str, str]:
    """Hashes of the constants that the terms of its conduct were worked out with; none where nothing was searched."""
    conduct = result.get("conduct")
    made = conduct.get("indices") if isinstance(conduct, dict) else None
    return index_hashes(made) if isinstance(made, dict) else {}


def _named(key: str, flown: Mapping[str, Any]) -> str:
    kind = key.removesuffix("_sha256")
    named_by, finders = _FILES[kind]
    name = str(flown.get(named_by, kind))
    try:
        files = " or ".join(str(find(name)) for find in finders)
    except SarError:
        files = name
    return f"{kind.replace('_', ' ')} {files}"


def _short(digest: str | None) -> str:
    return "none" if digest is None else f"{digest[:12]}..."
