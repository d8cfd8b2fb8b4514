"""One document with everything the outputs show: each table, figure and page reads it and computes nothing.

`result` is deterministic: no paths, no times, the same bytes from the same bags, registration, resamples and seed.
`run` says where and with what it was made. Every number in it is finite; what is undefined is None with a reason.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from sar_analysis.metrics.catalogue import METRICS, NOISE_ENVELOPE, SEED_RATES, of_missions
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.results.card import host, not_computed, paper_rows, reporting_card
from sar_analysis.results.conditions import Group, group, merge
from sar_analysis.results.contrasts import compare_all
from sar_analysis.results.erratum import Correction
from sar_analysis.results.leaders import families
from sar_analysis.results.levels import noise_levels
from sar_analysis.results.model import Document
from sar_analysis.results.optimality import Reference
from sar_analysis.results.oraclegap import held_to
from sar_analysis.results.registered import held_against
from sar_analysis.results.sections import counts, estimates, figure, section, seed_rows
from sar_analysis.results.stagegap import Stage1Prediction, stage_gap
from sar_analysis.results.summary import CONDITION, NOISE, summarise, summary_of
from sar_analysis.results.together import geometry, together
from sar_analysis.results.upstream import upstream_claims
from sar_analysis.stats import clustered
from sar_analysis.stats.comparisons import comparisons_note
from sar_analysis.stats.layouts import DEFAULT, Options
from sar_analysis.stats.rates import clopper_pearson
from sar_analysis.stats.resampling import ENOUGH_SEEDS, LEAST
from sar_analysis.stats.scores import listed, numbers
from sar_analysis.table import Table
from sar_core.errors import ContractError, InputError, MissingDataError

SCHEMA_VERSION = 1
BINS = 10


def build_results(
    table: Table,
    registration: Path | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    reference: Reference | None = None,
    stage1: Stage1Prediction | None = None,
    erratum: Sequence[Correction] = (),
) -> Document:
    """The document of a table; refused when there is nothing to say or a value is no number."""
    check_options(resamples, seed)
    if not table.episodes:
        raise MissingDataError(f"no episode can be read: {'; '.join(_warnings(table)[:3]) or 'the table is empty'}")
    _check_numbers(table.episodes)
    options = Options(resamples, seed)
    groups = group(table.episodes)
    pooled = merge(groups, NOISE, "p")
    compared = pooled if len(pooled) < len(groups) else groups
    comparisons = compare_all(compared, options)
    tiers = sorted({e.tier for e in table.episodes})
    seeds = sorted({e.seed for e in table.valid})
    result = {
        "title": f"Stage 2 ({', '.join(tiers)})",
        "tiers": tiers,
        "counts": _counts(table),
        "seeds_flown": sorted({e.seed for e in table.episodes}),
        "conditional": conditional(len(seeds)),
        "warnings": _warnings(table),
        "erratum": [correction.row() for correction in erratum],
        "record_schema": table.episodes[0].schema,
        "headlines": headlines(table.episodes, options),
        "together": together(groups, options),
        "geometry": geometry(groups, options),
        "seed_rates": seed_rates(table.episodes, options),
        "patterns": families(pooled, reference),
        "noise_levels": noise_levels(table.episodes, options),
        "stage_gap": None if stage1 is None else stage_gap(pooled, stage1.rows, stage1.name, options),
        "upstream": upstream_claims(table.episodes, options, erratum),
        "registration": None if registration is None else held_against(registration, groups),
        "conditions": [section(g, options) for g in groups],
        "pooled": [section(g, options) for g in pooled],
        "seeds": [row for g in groups for row in seed_rows(g, options)],
        "pooled_seeds": [row for g in pooled for row in seed_rows(g, options)],
        "noise_envelope": noise_envelope(groups, options),
        "reliability": reliability(table.valid, options),
        "optimality": None if reference is None else held_to(reference, groups, options),
        "comparisons": comparisons,
        "comparisons_note": comparisons_note(sum("difference" in row for row in comparisons)),
        "paper": paper_rows(),
        "card": reporting_card(table.episodes, resamples, seed),
        "not_computed": not_computed(table.episodes, reference is not None, stage1 is not None),
        "bootstrap": asdict(options),
        "episodes": [episode_row(g.id, e) for g in groups for e in g.episodes],
    }
    document = {"schema_version": SCHEMA_VERSION, "result": result, "run": host(table.root)}
    try:
        text = json.dumps(document, default=BaseModel.model_dump, allow_nan=False)
    except ValueError as error:
        raise ContractError("a figure of the results is not finite: some episode holds a NaN or an infinity") from error
    return read_results(text)


def read_results(text: str) -> Document:
    """The text of a results.json as the typed document that every output is made from."""
    try:
        return Document.model_validate_json(text)
    except ValidationError as error:
        raise ContractError(f"the results do not keep their schema: {error}") from error


def check_options(resamples: int, seed: int) -> None:
    """Refuse settings no interval can be made with, before anything is read."""
    if resamples < LEAST:
        raise InputError(f"resamples = {resamples}: allowed: at least {LEAST}")
    if not 0 <= seed < 1 << 64:
        raise InputError(f"seed = {seed}: allowed: 0 to 2^64 - 1")


def conditional(seeds: int) -> str:
    """What the number of seeds allows to say, for the head of every page."""
    if seeds == 0:
        return "No mission is valid: there is no figure to give."
    if seeds == 1:
        return "One seed: everything here holds for that seed only, and no interval over seeds can be given."
    if seeds < ENOUGH_SEEDS:
        return (
            f"{seeds} seeds: everything here is conditional on these seeds. Intervals over seeds are Student's t "
            "with the jackknife's standard error; they are wide because so few seeds say little about others."
        )
    return f"{seeds} seeds. If they were chosen and not drawn, everything here is conditional on them."


def headlines(episodes: Sequence[EpisodeMetrics], options: Options = DEFAULT) -> list[dict[str, Any]]:
    """Each tier's missions with victims together, and those without: what a reader in a hurry sees first.

    A figure that needs both kinds stands with the missions with victims.
    """
    mixed = [m.key for m in METRICS.values() if m.mixed]
    rows = []
    for s in summarise(episodes, ("tier", "victim_absent"), options):
        told = estimates(s)
        if not dict(s.condition)["victim_absent"]:
            tier = [e for e in episodes if e.tier == dict(s.condition)["tier"]]
            told += estimates(summary_of(tier, (), options, mixed))
        rows.append({**dict(s.condition), **counts(s), "estimates": told})
    return rows


def seed_rates(episodes: Sequence[EpisodeMetrics], options: Options = DEFAULT) -> list[dict[str, Any]]:
    """The same seed by seed, for false alarms and collisions."""
    found = summarise(episodes, ("tier", "victim_absent", "seed"), options, SEED_RATES)
    ordered = sorted(found, key=lambda s: [value for _, value in s.condition])
    return [
        {
            **dict(s.condition),
            "missions": s.missions,
            "invalid": s.invalid,
            "estimates": estimates(s),
        }
        for s in ordered
    ]


def noise_envelope(groups: Sequence[Group], options: Options = DEFAULT) -> list[dict[str, Any]]:
    """Finding and false alarms by noise level; None with a reason where a level has no such figure."""
    rows = []
    for g in groups:
        c = g.plain
        if c["sigma"] is None:
            continue
        (summary,) = summarise(g.episodes, CONDITION, options, NOISE_ENVELOPE)
        figures = {name: figure(summary.estimate(name)) for name in NOISE_ENVELOPE}
        named = {name: c[name] for name in ("sigma", "kappa", "pattern", "world", "tier", "victim_absent")}
        rows.append({"condition": g.id, **named, "missions": summary.missions, "invalid": summary.invalid, **figures})
    return rows


def reliability(valid: Sequence[EpisodeMetrics], options: Options = DEFAULT) -> dict[str, Any]:
    """How often the swarm's last report on a transmitter was right, by its confidence; ten equal bins."""
    said = [(word, e.layout) for e in valid for word in e.track_reports if word.last]
    words, layouts = [word for word, _ in said], [layout for _, layout in said]
    head = {"which": "the last report on each transmitter of each mission", "reports": len(words)}
    if not words:
        return {**head, "bins": [], "brier": None, "ece": None, "note": "no reports"}
    p = np.array([word.confidence for word in words])
    right = np.array([word.right for word in words], dtype=np.float64)
    places = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    bins = []
    for k in np.unique(places).tolist():
        mine = places == k
        own = [layouts[index] for index in np.flatnonzero(mine)]
        found = clustered.share(right[mine], np.ones(int(mine.sum())), own, options, "reports")
        exact = clopper_pearson(int(right[mine].sum()), int(mine.sum()), options.confidence, "reports")
        edges = {"low": k / BINS, "high": (k + 1) / BINS}
        bins.append(
            {
                **edges,
                "mean_confidence": float(p[mine].mean()),
                "right": replace(found, exact=exact).plain,
            }
        )
    brier = clustered.mean((p - right) ** 2, layouts, options, "reports", (0.0, 1.0))
    gap = clustered.calibration_error(p, right, places, layouts, options)
    return {**head, "bins": bins, "brier": brier.plain, "ece": gap.plain, "note": ""}


def episode_row(condition: str, e: EpisodeMetrics) -> dict[str, Any]:
    """One mission as a list shows it; None where a thing did not happen or was not measured."""
    named = {name: getattr(e, name) for name in ("episode_id", "seed", "episode", "valid", "invalid_reason")}
    figures = {m.key: m.at(e) for m in of_missions() if m.listed != "no"}
    return {"condition": condition, "victims": len(e.victims), **named, **figures}


def _counts(table: Table) -> dict[str, int]:
    known = table.counts()
    return {
        "episodes": len(table.episodes),
        "valid": len(table.valid),
        "invalid": len(table.invalid),
        "duplicates": known.get("duplicate", 0),
        "unreadable": known.get("unreadable", 0),
        "unfinished": known.get("unfinished", 0),
        "schema_version": known.get("schema_version", 0),
    }


def _warnings(table: Table) -> list[str]:
    """The table's warnings without the folder it lay in."""
    told = table.warnings()
    if table.root is not None:
        told = [text.replace(f"{table.root}/", "").replace(str(table.root), table.root.name) for text in told]
    said = []
    groups = group(table.episodes)
    for g in groups:
        seeds = sorted({e.seed for e in g.episodes})
        episodes = sorted({e.episode for e in g.episodes})
        flown = {(e.seed, e.episode) for e in g.episodes}
        if holes := [f"seed {s} episode {k}" for s in seeds for k in episodes if (s, k) not in flown]:
            more = f" and {len(holes) - 3} more" if len(holes) > 3 else ""
            said.append(f"missing: {g.id} was not flown by every seed: {', '.join(holes[:3])}{more}")
    flown_by: dict[tuple[int, ...], list[str]] = {}
    for g in groups:
        flown_by.setdefault(tuple(sorted({e.seed for e in g.episodes})), []).append(g.id)
    if len(flown_by) > 1:
        sets = [f"{listed(ids)} by {numbers(own)}" for own, ids in flown_by.items()]
        more = f"; and {len(sets) - 3} more sets of seeds" if len(sets) > 3 else ""
        said.append(f"conditions were flown with different seeds: {'; '.join(sets[:3])}{more}")
    return [*said, *told]


def _check_numbers(episodes: Sequence[EpisodeMetrics]) -> None:
    for e in episodes:
        for name, value in (*vars(e).items(), *e.measured.items()):
            if isinstance(value, float) and not math.isfinite(value) and name not in NOISE:
                raise ContractError(
                    f"{e.episode_id}: {name} is {value}; allowed: a finite number, or None if undefined"
                )
