"""A campaign on its way to another machine: its manifest and its records, compressed, and nothing else.

    manifest.json         as it was, with the hash of what lies beside it
    episodes.jsonl.zst    every record there is, in the order they were flown

Two small files to commit or to send. In the folder where they arrive, the command that began the campaign goes on with
it; bags and logs stay where they were made.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from sar_analysis.bags.textfiles import write_compressed
from sar_core.errors import InputError, MissingDataError, RunError
from sar_core.sealed import seal
from sar_eval.bag.folders import ready_folder
from sar_eval.campaign.acceptance import Acceptance
from sar_eval.campaign.ledger import LEDGER, PACKED, Lock, read_ledger
from sar_eval.campaign.manifest import MANIFEST, Manifest, file_sha256, read_manifest


def pack(folder: Path, target: Path) -> tuple[Manifest, int]:
    """Write the campaign of a folder, flown as far as it is, into a target; its manifest and how many records.

    An earlier state of the same campaign in the target is replaced, anything else there is refused.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise MissingDataError(f"{folder}: no {MANIFEST}; expected the folder of a campaign")
    there = read_manifest(target)
    if (target / LEDGER).exists() or (there is not None and there.identity != manifest.identity):
        raise InputError(f"{target}: holds a campaign already; give --out a folder of its own")
    ready_folder(target)
    with Lock(folder):
        records = read_ledger(folder / LEDGER)
    Acceptance(manifest).check(records, folder / LEDGER)
    text = "".join(f"{seal(record.as_dict())}\n" for record in records.values())
    fresh = target / f"{PACKED}.new"
    try:
        write_compressed(fresh, text)
        os.replace(fresh, target / PACKED)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise RunError(f"{target / PACKED}: cannot write ({error.strerror})") from error
    replace(manifest, files={PACKED: file_sha256(target / PACKED)}).write(target)
    return manifest, len(records)
