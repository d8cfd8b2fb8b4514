"""The results as CSV for other programs: a row per mission, victim and figure; undefined is an empty field."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from sar_analysis.metrics.findings import Victim
from sar_analysis.results.conditions import group
from sar_analysis.results.model import Document, ResultBody
from sar_analysis.results.rows import CensoredTime, EstimateRow, Exact, Figure, RefusedScore, ScoreRow
from sar_analysis.table import Table

SUMMARY = (
    *("condition", "label", "kind", "metric", "value", "low", "high", "n", "unit", "method", "estimand"),
    *("cluster", "resamples", "seed", "confidence", "exact_low", "exact_high", "exact_method"),
    *("missions", "invalid", "note"),
)
VICTIM_KEYS = ("episode_id", "tier", "world", "pattern", "seed", "episode", "sigma", "kappa", "victim")


def write_csv_files(document: Document, table: Table, folder: Path) -> list[Path]:
    """episodes.csv, victims.csv and summary.csv."""
    ids = [(g.id, e) for g in group(table.episodes) for e in g.episodes]
    episodes = [{"condition": condition, **e.row()} for condition, e in ids]
    columns = list(dict.fromkeys(name for row in episodes for name in row))
    victims = (*VICTIM_KEYS, *(field.name for field in fields(Victim)))
    return [
        write_rows(folder / "episodes.csv", columns, episodes),
        write_rows(folder / "victims.csv", victims, table.victims()),
        write_rows(folder / "summary.csv", SUMMARY, figures(document.result)),
    ]


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> Path:
    """One CSV with exactly these columns."""
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def figures(result: ResultBody) -> Iterator[dict[str, object]]:
    """Every figure of every condition, single and pooled, in one shape; what was not computed says why."""
    confidence = result.bootstrap.confidence
    for row in result.together:
        label = f"{row.tier} · {row.pattern} · victims present and absent"
        head = _head("", label, row.missions, row.invalid, confidence)
        yield from _estimated(head, row.estimates)
        yield from _timed(head, row.times)
    for c in (*result.conditions, *result.pooled):
        head = _head(c.id, c.label, c.missions, c.invalid, confidence)
        yield from _estimated(head, c.estimates)
        for item in c.not_computed:
            yield {**head, "kind": "estimate", "metric": item.metric, "note": f"not computed: {item.why}"}
        for s in c.scores:
            note = f"refused: {s.refused}" if isinstance(s, RefusedScore) else "; ".join(s.notes)
            yield {**head, "kind": s.statistic, **_known(s), "note": note}
        yield from _timed(head, c.times)


def _head(condition: str, label: str, missions: int, invalid: int, confidence: float) -> dict[str, object]:
    told = {"condition": condition, "label": label, "missions": missions, "invalid": invalid}
    return {**told, "confidence": confidence}


def _estimated(head: Mapping[str, object], estimates: Sequence[EstimateRow]) -> Iterator[dict[str, object]]:
    for e in estimates:
        yield {**head, "kind": "estimate", **_known(e), "note": "; ".join(e.notes), **_exact(e.exact)}


def _timed(head: Mapping[str, object], times: Sequence[CensoredTime]) -> Iterator[dict[str, object]]:
    for t in times:
        row = {**_known(t), "value": t.median, **_exact(t.exact)}
        yield {**head, "kind": "median time", **row, "note": "; ".join(t.notes)}
        if (mean := t.restricted_mean) is not None:
            row = {**_known(mean), "metric": t.metric, "note": "; ".join(mean.notes)}
            yield {**head, "kind": f"mean time up to {t.horizon_s:g} s", **row}


def _exact(exact: Exact | None) -> dict[str, object]:
    return {} if exact is None else {f"exact_{name}": getattr(exact, name) for name in ("low", "high", "method")}


def _known(item: Figure | ScoreRow | RefusedScore | CensoredTime) -> dict[str, object]:
    return item.model_dump(include=set(SUMMARY), exclude_unset=True)
