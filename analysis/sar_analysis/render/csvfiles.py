"""The results as CSV for other programs: a row per mission, victim and figure; undefined is an empty field."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from sar_analysis.metrics.findings import Victim
from sar_analysis.render.reported import view_words
from sar_analysis.results.conditions import group
from sar_analysis.results.dilution import LEAST_ROOT
from sar_analysis.results.model import Document, ErratumFigure, ErratumRow, ResultBody
from sar_analysis.results.rows import CensoredTime, EstimateRow, Exact, Figure, Geometry, RefusedScore, ScoreRow
from sar_analysis.table import Table

SUMMARY = (
    *("condition", "label", "kind", "metric", "value", "low", "high", "n", "unit", "method", "estimand"),
    *("cluster", "resamples", "seed", "confidence", "exact_low", "exact_high", "exact_method"),
    *("missions", "invalid", "note"),
)
CEPS = ("cep50_m", "cep95_m")
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
    yield from _corrected(result.erratum, confidence)
    for side in result.headlines:
        who = "victims absent" if side.victim_absent else "victims present"
        head = _head("", f"{side.tier} · all conditions · {who}", side.missions, side.invalid, confidence)
        yield from _estimated(head, side.estimates)
    for row in result.together:
        label = f"{row.tier} · {row.pattern} · victims present and absent"
        head = _head("", label, row.missions, row.invalid, confidence)
        yield from _estimated(head, row.estimates)
        yield from _timed(head, row.times)
    for part in result.geometry:
        yield from _looked(part, confidence)
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


def _corrected(erratum: Sequence[ErratumRow], confidence: float) -> Iterator[dict[str, object]]:
    """What a campaign was published with, and by today's definitions."""
    for row in erratum:
        head = {"label": f"erratum: {row.words}", "metric": row.metric, "confidence": confidence}
        for kind, found in (("as published", row.published), ("by today's definitions", row.corrected)):
            if found is None:
                yield {**head, "kind": kind, "note": "not given"}
            else:
                yield {**head, "kind": kind, **_known(found), "unit": found.of, "note": "; ".join(found.notes)}


def _looked(part: Geometry, confidence: float) -> Iterator[dict[str, object]]:
    """What was held of victims at fixed times."""

    def told(kind: str, where: str, metric: str, n: int, found: Figure | None, why: str) -> dict[str, object]:
        head = {"label": f"{part.tier} · {where}", "kind": kind, "metric": metric, "n": n, "confidence": confidence}
        return {**head, "note": why} if found is None else {**head, **_known(found), "note": "; ".join(found.notes)}

    for at in part.errors:
        far = f"infinite: {at.n - at.reported} of {at.n} have no report"
        for name in CEPS:
            where = f"all victims at {at.time_s:g} s"
            yield told("error at a fixed time", where, name, at.n, getattr(at, name), far)
    for band in part.bands:
        for name in CEPS:
            where = f"constellation GDOP {band.name}"
            yield told("error by geometry", where, name, band.n, getattr(band, name), "no look in this band")
    for row in part.correlations:
        where = f"{row.dilution} with the error, " + ("all times" if row.time_s is None else f"{row.time_s:g} s")
        yield told(
            "rank correlation", where, "rho", row.n, row.rho, "fewer than three looks, or one of both never varies"
        )
    for views in part.views:
        where = f"{view_words(views.views)} views at {views.time_s:g} s"
        for name in CEPS:
            yield told("error by views", where, name, views.n, getattr(views, name), "")
        yield told("1 / sqrt(N)", where, "cep50_m", views.n, views.root_m, f"fewer views never had {LEAST_ROOT} looks")


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


def _known(item: Figure | ScoreRow | RefusedScore | CensoredTime | ErratumFigure) -> dict[str, object]:
    return item.model_dump(include=set(SUMMARY), exclude_unset=True)
