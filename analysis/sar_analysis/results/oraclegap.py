"""The part of the results that stands against an oracle: each condition's optimality gap, or why it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sar_analysis.render.texttable import TextTable, make
from sar_analysis.results.conditions import Group
from sar_analysis.results.optimality import Reference, beyond, gap_scores, gaps
from sar_analysis.results.sections import Options, interval
from sar_analysis.stats.resampling import bootstrap
from sar_analysis.stats.statistics import mean_of
from sar_core.errors import SarError


def held_to(reference: Reference, groups: Sequence[Group], options: Options) -> dict[str, Any]:
    """Every condition against the reference; one that was asked something else is refused in words."""
    return {
        "reference": {"name": reference.name, "world": reference.world, "version": reference.version},
        "conditions": [_held(reference, g, options) for g in groups],
    }


def _held(reference: Reference, g: Group, options: Options) -> dict[str, Any]:
    head = {"id": g.id, "tier": g.plain["tier"], "missions": len(g.valid), "invalid": len(g.episodes) - len(g.valid)}
    try:
        found = gaps(g.episodes, reference)
        table = gap_scores(g.episodes, reference, drop_incomplete=True)
        told = bootstrap(table, mean_of, "seeds", "t", options.resamples, options.seed, options.confidence)
    except SarError as error:
        return {**head, "refused": str(error)}
    return {**head, "n": len(found), "beyond": beyond(found), **interval(told)}


def gap_table(result: Mapping[str, Any]) -> TextTable:
    """As words; no table where no reference was given."""
    part = result["optimality"]
    if part is None:
        return make(result, "optimality", "Against the oracle", (), (), "")
    rows, said = [], []
    for c in part["conditions"]:
        head = (f"{c['id']} {c['tier']}", str(c["missions"]), str(c["invalid"]))
        if "refused" in c:
            rows.append((*head, "refused", "refused"))
            said.append(f"{c['id']} refused: {c['refused']}.")
            continue
        rows.append((*head, f"{c['value']:.4f} [{c['low']:.4f}, {c['high']:.4f}]", f"{c['beyond']} of {c['n']}"))
        said += [f"{note}." for note in c["notes"]]
    reference = part["reference"]
    caption = (
        f"Mean of 1 - return / oracle's return, not below 0; reference {reference['name']}, flown by sar_eval "
        f"{reference['version']}. Student's t over seeds, these episodes, no resampling. The oracle knows the victims "
        "but is no bound: the last column counts missions that returned more. "
    )
    columns = ("id", "missions", "invalid", "optimality gap", "beyond the oracle")
    return make(result, "optimality", "Against the oracle", columns, rows, caption + " ".join(dict.fromkeys(said)))
