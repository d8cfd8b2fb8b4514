"""Shards of one campaign put together: the same folder as if one process had flown it all."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from sar_core.errors import ContractError, InputError, MissingDataError, RunError
from sar_eval.bag.store import BAGS, FLYING
from sar_eval.campaign.acceptance import Acceptance
from sar_eval.campaign.campaign import open_campaign, write_results
from sar_eval.campaign.ledger import LEDGER, PACKED, read_ledger
from sar_eval.campaign.manifest import MANIFEST, Manifest, check_same, read_manifest
from sar_eval.episode.record import Record, compared


@dataclass(frozen=True)
class Merged:
    """What came together. ``missing`` missions no shard has flown; ``results`` is None while there are any."""

    planned: int
    recorded: int
    missing: tuple[str, ...]
    bags: int
    results: Path | None


def merge(folders: list[Path], target: Path, partial: bool = False) -> Merged:
    """Check everything first, then write the target: a refusal leaves nothing behind.

    Shards must have the same identity, and missions that two of them have flown must have the same result.
    """
    manifest, records = _gather(folders)
    manifest = replace(manifest, files={})
    missing = tuple(key for key in manifest.episodes if key not in records)
    if missing and not partial:
        raise MissingDataError(
            f"{len(missing)} of {len(manifest.episodes)} missions are in no shard, the first is {missing[0]}; "
            "fly them, or take what there is with --partial"
        )
    if target.resolve() in {folder.resolve() for folder in folders}:
        raise InputError(f"{target}: is one of the shards; give --out a folder of its own")
    if any((target / name).exists() for name in (MANIFEST, LEDGER, PACKED)):
        raise InputError(f"{target}: holds a campaign already; give --out a folder of its own")
    with open_campaign(target, manifest) as campaign:
        bags = 0
        for key in manifest.episodes:
            if key in records:
                home, record = records[key]
                bags += _link_bag(home / BAGS / key, target / BAGS / key)
                campaign.ledger.append(record)
        whole = not missing
        results = write_results(target, manifest, campaign.ledger.records) if whole else None
    return Merged(len(manifest.episodes), len(records), missing, bags, results)


def _gather(folders: list[Path]) -> tuple[Manifest, dict[str, tuple[Path, Record]]]:
    first: Manifest | None = None
    door: Acceptance | None = None
    records: dict[str, tuple[Path, Record]] = {}
    for folder in folders:
        manifest = read_manifest(folder)
        if manifest is None:
            raise MissingDataError(f"{folder}: no {MANIFEST}; expected the folder of a campaign or shard")
        if first is None or door is None:
            first, door = manifest, Acceptance(manifest)
        check_same(manifest, first, folder)
        found = read_ledger(folder / LEDGER)
        door.check(found, folder)
        for key, record in found.items():
            if key not in records:
                records[key] = (folder, record)
            elif compared(records[key][1].result) != compared(record.result):
                raise ContractError(f"{folder}: {key} has another result than in {records[key][0]}")
    if first is None:
        raise InputError("nothing to merge: give the folders of the shards")
    return first, records


def _link_bag(source: Path, place: Path) -> bool:
    """The shard's bag under the same name here, by hard links where the disk allows; False if it has none."""
    if not source.is_dir():
        return False
    fresh = place.parent / FLYING / place.name
    try:
        shutil.copytree(source, fresh, copy_function=_link)
        fresh.rename(place)
    except (OSError, shutil.Error) as error:
        raise RunError(f"{place}: cannot take over the bag ({error})") from error
    return True


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target
