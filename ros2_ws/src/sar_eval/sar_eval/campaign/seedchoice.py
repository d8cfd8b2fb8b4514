"""The seeds a campaign flies: as given, or the median ones of a Stage-1 file, and where they came from."""

from __future__ import annotations

import hashlib
from pathlib import Path

from sar_core.errors import InputError, MissingDataError
from sar_eval.campaign.manifest import Stage1


def choose_seeds(given: tuple[int, ...] | None, stage1: Path | None) -> tuple[tuple[int, ...], Stage1 | None]:
    """With both, the file must have flown the seeds given."""
    from sar_analysis.stage1.medianseeds import COUNT, choose
    from sar_analysis.stage1.rows import read_stage1

    if stage1 is None:
        if given is None:
            raise InputError("no seeds: give --seeds 1,4,7, or --stage1 FILE to take its median seeds")
        return given, None
    rows = read_stage1(stage1)
    digest = hashlib.sha256(stage1.read_bytes()).hexdigest()
    if given is None:
        rule = f"{COUNT} median seeds of the return's IQM pooled over policies"
        return choose(rows).seeds, Stage1(str(stage1), digest, rule)
    known = sorted({row.seed for row in rows})
    unknown = [seed for seed in given if seed not in known]
    if unknown:
        raise MissingDataError(f"{stage1}: seed {unknown[0]} is not in it; it has {', '.join(map(str, known))}")
    return given, Stage1(str(stage1), digest, "given")
