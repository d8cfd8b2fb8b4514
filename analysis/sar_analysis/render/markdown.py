"""RESULTS.md, the one page, and TABLES.md, everything longer; both are read from the document and compute nothing."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from sar_analysis.metrics.catalogue import METRICS, Metric, of_missions
from sar_analysis.render.frontpage import MOST_FAMILIES, front_tables, where_flown
from sar_analysis.render.tables import text_tables
from sar_analysis.render.wording import NONE, TextTable, number, setting, verdict
from sar_analysis.results.model import Document, FlownVersions, ResultBody, Run
from sar_analysis.results.rows import DecidedVerdict, RegistrationResult, UndecidedVerdict
from sar_analysis.stats.scores import numbers

MOST_WARNINGS = 20
FIRST_WARNINGS = 5
COLUMNS = 120
_MARKS = re.compile(r" (?=(?:[-+*>]|#+|\d+[.)]) )")
"""A space before what would be read as the beginning of a list, a heading or a quotation."""


def pages(document: Document) -> dict[str, str]:
    """Both pages by the name of their file, text wrapped."""
    return {"RESULTS.md": fitted(results_markdown(document)), "TABLES.md": fitted(tables_markdown(document))}


def fitted(page: str) -> str:
    """Lines of text wrapped at COLUMNS; rows of tables and headings stay whole."""
    return "".join(f"{line if line.startswith(('|', '#')) else _wrapped(line)}\n" for line in page.splitlines())


def _wrapped(line: str) -> str:
    under = "  " if line.startswith("- ") else ""
    head = line[: len(under)]
    text = _MARKS.sub("\N{NO-BREAK SPACE}", line[len(under) :])
    told = textwrap.fill(
        text, COLUMNS, initial_indent=head, subsequent_indent=under, break_long_words=False, break_on_hyphens=False
    )
    return told.replace("\N{NO-BREAK SPACE}", " ")


def results_markdown(document: Document) -> str:
    """The one page: rates, who is best on what, noise, Stage 1, claims, what does not count, how to do it again."""
    result = document.result
    tables = front_tables(result)
    leading = 1 + [table.name for table in tables].index("headline")
    parts = [
        f"# {result.title}: results on one page",
        *(_table(table) for table in tables[:leading]),
        _summary(result),
        *(_table(table) for table in tables[leading:]),
        *_registration(result),
        _caveats(result),
        _again(result, document.run),
    ]
    return "\n\n".join(parts) + "\n"


def tables_markdown(document: Document) -> str:
    """Every table condition by condition, all warnings, the paper's row, the reporting card."""
    result = document.result
    parts = [
        f"# {result.title}: every table",
        "The page that comes first is [RESULTS.md](RESULTS.md).",
        *(_table(table) for table in text_tables(result)),
        *_invalid(result),
        *_warnings(result),
        *_paper(result),
        *_card(result, document.run),
    ]
    return "\n\n".join(parts) + "\n"


def catalogue_tables() -> dict[str, str]:
    """The catalogue for docs/metrics.md: what a mission has, and what only many have."""
    shown = {
        "columns": ("column", of_missions()),
        "figures": ("figure", [m for m in METRICS.values() if not m.of_mission]),
    }
    return {name: _catalogue(head, metrics) for name, (head, metrics) in shown.items()}


def _catalogue(head: str, metrics: Sequence[Metric]) -> str:
    columns = (head, "label", "unit", "better", "meaning", "from", "over missions", "95 % interval")
    rows = [
        (
            f"`{m.key}`",
            m.label,
            "%" if m.share else m.unit,
            m.better,
            m.definition,
            m.source,
            _aggregated(m),
            m.interval,
        )
        for m in metrics
    ]
    return "\n".join([_row(columns), _row(["---"] * len(columns)), *map(_row, rows)])


def _aggregated(m: Metric) -> str:
    words = {
        "share": f"share of {m.of}",
        "rate": f"per {m.of}",
        "quantile": f"quantile {m.quantile:g} of {m.of}",
        "median time": f"median over {m.of}",
        "restricted mean": f"mean up to 240 s over {m.of}",
        "mean": "mean, IQM",
        "paired mean": "mean of seeds x episodes",
    }
    return words.get(m.aggregate, m.aggregate)


def _summary(result: ResultBody) -> str:
    n, r = result.counts, result.registration
    registered = "not pre-registered: exploratory" if r is None else _registered(r)
    lines = [
        f"- {n.episodes} missions, {n.valid} valid, {n.invalid} INVALID; {len(result.warnings)} warnings; "
        f"{where_flown(result)}. Condition by condition: [TABLES.md](TABLES.md).",
        f"- {result.conditional}",
        f"- Registration: {registered}.",
    ]
    more = len(result.patterns) - MOST_FAMILIES
    if more > 0:
        lines.append(f"- {more} more sets of patterns under other settings are in results.json.")
    return "\n".join(lines)


def _caveats(result: ResultBody) -> str:
    """INVALID missions, the first warnings, and what a reader may look for in vain."""
    said = result.warnings
    lines = [f"- {_invalid_words(result)}", *(f"- {text}" for text in said[:FIRST_WARNINGS])]
    if len(said) > FIRST_WARNINGS:
        lines.append(f"- and {len(said) - FIRST_WARNINGS} more warnings in TABLES.md")
    lines += [f"- not computed: {item.what}: {item.why}" for item in result.not_computed]
    return "\n".join([f"## What does not count, {result.title}", *lines])


def _again(result: ResultBody, run: Run) -> str:
    """Commands, hashes, machines."""
    card, flown = result.card, run.campaign
    versions = card.versions
    hashes = f", sha256 {setting(versions.episode_set_sha256)}" if versions.episode_set_sha256 else ""
    lines = []
    if flown is not None:
        who = f"scenario {flown.scenario}, identity {setting(flown.identity)}"
        at = "" if flown.commit is None else f" at commit {flown.commit[:12]}"
        lines.append(f"- Flown: `{flown.command}`{at}; {who}; {flown.machine}, Python {flown.python}.")
    lines += [
        f"- Analysed: `{run.command}`; {run.platform}, {run.cpus} CPUs, Python {run.python}, "
        f"numpy {run.numpy}, scipy {run.scipy}.",
        f"- Seeds {numbers(card.seeds)}; episode set {setting(versions.episode_set)}{hashes}; flown by sar_eval "
        f"{setting(versions.sar_eval)}; worlds {_worlds(versions)}.",
    ]
    return "\n".join([f"## To do it again, {result.title}", *lines])


def _worlds(versions: FlownVersions) -> str:
    return "; ".join(f"{name} {setting(hashes)}" for name, hashes in versions.worlds.items())


def _registered(r: RegistrationResult) -> str:
    held = sum(isinstance(v, DecidedVerdict) and v.holds for v in r.verdicts)
    undecided = sum(isinstance(v, UndecidedVerdict) for v in r.verdicts)
    claims = f"{held} of {len(r.verdicts)} claims hold" if r.refused is None else "its claims cannot be decided"
    claims += f", {undecided} cannot be decided" if undecided else ""
    return f"{r.name} {r.sentence}; {claims}; {len(r.deviations)} deviations"


def _table(table: TextTable) -> str:
    lines = [f"## {table.title}", _row(table.columns), _row(["---"] * len(table.columns))]
    lines += [_row(row) for row in table.rows]
    return "\n".join([*lines, "", table.caption])


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _registration(result: ResultBody) -> list[str]:
    r = result.registration
    if r is None:
        return []
    lines = [
        f"## Registration, {result.title}",
        f"{r.name} {r.sentence}. Hypothesis: {r.hypothesis}",
        f"Metric {r.metric}, estimator {r.estimator}, purpose {r.run_purpose}, policy {r.failure_policy}.",
    ]
    lines += [f"- deviation: {text}" for text in r.deviations] or ["- no deviation from what was registered"]
    if r.refused is not None:
        lines.append(f"- not decided: {r.refused}")
    for v in r.verdicts:
        if isinstance(v, UndecidedVerdict):
            lines.append(f"- NOT DECIDED: {v.claim}: {v.refused}")
        else:
            lines.append(f"- {'HOLDS' if v.holds else 'FAILS'}: {v.claim} ({verdict(r, v)})")
    return ["\n".join(lines)]


def _invalid(result: ResultBody) -> list[str]:
    return [f"## Invalid missions, {result.title}", _invalid_words(result)]


def _invalid_words(result: ResultBody) -> str:
    bad = [e for e in result.episodes if not e.valid]
    reasons: dict[str, int] = {}
    for e in bad:
        reason = e.invalid_reason or "no reason given"
        reasons[reason] = reasons.get(reason, 0) + 1
    told = "; ".join(f"{count} {reason}" for reason, count in sorted(reasons.items())) or NONE
    return f"INVALID: {len(bad)} of {len(result.episodes)}: {told}. They enter no figure."


def _warnings(result: ResultBody) -> list[str]:
    said = result.warnings
    lines = [f"- {text}" for text in said[:MOST_WARNINGS]] or ["- no warning"]
    if len(said) > MOST_WARNINGS:
        lines.append(f"- and {len(said) - MOST_WARNINGS} more in results.json")
    lines += [f"- not computed: {item.what}: {item.why}" for item in result.not_computed]
    return ["\n".join([f"## Warnings, {result.title}", *lines])]


def _paper(result: ResultBody) -> list[str]:
    columns = ("system", "localisation", "area", "search time", "median angle", "drones", "label", "source")
    rows = [
        (
            p.name,
            f"{p.localisation_error_m:g} m",
            f"{p.area_m2} m²",
            f"{p.search_time_s:g} s",
            f"{p.angle_of_arrival_median_deg:g}°",
            str(p.drones),
            p.note,
            p.source,
        )
        for p in result.paper
    ]
    head = [
        "## From the paper (paper-to-paper, not a leaderboard standing)",
        _row(columns),
        _row(["---"] * len(columns)),
    ]
    return ["\n".join([*head, *map(_row, rows), "", *(p.caution for p in result.paper)])]


def _card(result: ResultBody, run: Run) -> list[str]:
    card = result.card
    hyper, compute, versions = card.hyperparameters, card.compute, card.versions
    lines = [
        "- Fixed: " + "; ".join(f"{key} {setting(value)}" for key, value in hyper.fixed.items()) + ".",
        "- Varied: " + ("; ".join(f"{key}: {setting(value)}" for key, value in hyper.varied.items()) or NONE) + ".",
        f"- Compute: {compute.missions} missions, {number('flight_hours', compute.flight_hours)} flight hours, "
        f"{number('flight_hours', compute.simulated_hours)} simulated hours. Wall time: {compute.wall_time}. "
        f"Training: {compute.training}.",
        f"- Versions: flown by sar_eval {setting(versions.sar_eval)}, "
        f"episode set {setting(versions.episode_set)}; worlds {_worlds(versions)}. "
        f"Analysed by sar_eval {run.sar_eval}, Python {run.python}, numpy {run.numpy}, "
        f"scipy {run.scipy} on {run.platform}, {run.cpus} CPUs.",
        f"- Seeds: {numbers(card.seeds)}. Episodes: {numbers(card.episodes)}. Bootstrap: "
        f"{card.bootstrap.resamples} resamples, seed {card.bootstrap.seed}, where resampled.",
    ]
    return ["\n".join([f"## Reporting card, {result.title}", *lines])]
