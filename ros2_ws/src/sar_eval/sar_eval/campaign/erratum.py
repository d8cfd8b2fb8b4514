"""The erratum of a campaign flown by the definitions of schema 1: its records, and the layouts they were flown on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sar_analysis.bags.textfiles import read_text
from sar_analysis.results.erratum import Correction, Layout, corrections
from sar_analysis.stats.layouts import Options
from sar_core.errors import ContractError, MissingDataError
from sar_core.sealed import unseal
from sar_eval.campaign.ledger import PACKED
from sar_eval.scenario.episodeset import EpisodeSet, load_set
from sar_sim.radio.devices import DeviceKind, known_addresses

BEGIN_S = 15.2
"""From the start of a recording to the search, of which records of schema 1 do not tell. Every 60th mission of the
committed campaign, flown again up to there, took 14.85 to 15.70 s, half of them less than 15.15 s."""
SCHEMA = 1


def campaign_erratum(source: Path, begin_s: float = BEGIN_S, options: Options | None = None) -> list[Correction]:
    """Of a folder of published results, or of a file of records, packed or plain."""
    file = source / PACKED if source.is_dir() else source
    if not file.is_file():
        raise MissingDataError(f"{file}: not there; give published results or a file of episode records")
    results = []
    for number, line in enumerate(read_text(file).splitlines(), start=1):
        record = unseal(line)
        if record.get("schema_version") != SCHEMA:
            raise ContractError(
                f"{file}:{number}: schema_version is {record.get('schema_version')}; an erratum is of {SCHEMA} only"
            )
        results.append(record["result"])
    flown = sorted({str(result["episode_set"]) for result in results})
    if len(flown) != 1:
        raise ContractError(f"{file}: flew {', '.join(flown) or 'nothing'}; allowed: one episode set")
    episodes = load_set(flown[0])
    layouts = layouts_of(episodes)
    return corrections(results, lambda index: layouts[episodes.layout_number(index)], begin_s, options or Options())


def layouts_of(episodes: EpisodeSet) -> Sequence[Layout]:
    """What an erratum must know of each layout of a set."""
    made = []
    for number, layout in enumerate(episodes.layouts):
        known = known_addresses(layout.devices)
        victims = {
            d.address: (float(d.track[0, 1]), float(d.track[0, 2]))
            for d in layout.devices
            if d.kind is DeviceKind.VICTIM
        }
        rescuers = (d.address for d in layout.devices if d.kind is DeviceKind.RESCUER)
        made.append(Layout(number, victims, any(address not in known for address in rescuers)))
    return made
