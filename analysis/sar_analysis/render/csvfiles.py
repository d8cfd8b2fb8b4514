"""The results as CSV for other programs: a row per mission, victim and figure; undefined is an empty field."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from sar_analysis.metrics.findings import Victim
from sar_analysis.results.conditions import group
from sar_analysis.table import Table

SUMMARY = (
    *("condition", "label", "kind", "metric", "value", "low", "high", "n", "unit", "method", "estimand"),
    *("resamples", "seed", "confidence", "missions", "invalid", "note"),
)
VICTIM_KEYS = ("episode_id", "tier", "world", "pattern", "seed", "episode", "sigma", "kappa", "victim")


def write_csv_files(document: Mapping[str, Any], table: Table, folder: Path) -> list[Path]:
    """episodes.csv, victims.csv and summary.csv."""
    ids = [(g.id, e) for g in group(table.episodes) for e in g.episodes]
    episodes = [{"condition": condition, **e.row()} for condition, e in ids]
    columns = list(dict.fromkeys(name for row in episodes for name in row))
    victims = (*VICTIM_KEYS, *(field.name for field in fields(Victim)))
    return [
        write_rows(folder / "episodes.csv", columns, episodes),
        write_rows(folder / "victims.csv", victims, table.victims()),
        write_rows(folder / "summary.csv", SUMMARY, figures(document["result"])),
    ]


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Path:
    """One CSV with exactly these columns."""
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def figures(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every figure of every condition, single and pooled, in one shape; what was not computed says why."""
    for kind in ("conditions", "pooled"):
        for c in result[kind]:
            head = {"condition": c["id"], "label": c["label"], "missions": c["missions"], "invalid": c["invalid"]}
            for e in c["estimates"]:
                yield {**head, "kind": "estimate", **_known(e), "note": e.get("note", "")}
            for item in c["not_computed"]:
                yield {**head, "kind": "estimate", "metric": item["metric"], "note": f"not computed: {item['why']}"}
            for s in c["scores"]:
                note = f"refused: {s['refused']}" if "refused" in s else "; ".join(s["notes"])
                yield {**head, "kind": s["statistic"], **_known(s), "note": note}
            for t in c["times"]:
                row = {**_known(t), "value": t["median"]}
                yield {**head, "kind": "median time", **row, "note": "; ".join(t["notes"])}


def _known(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in SUMMARY if name in item}
