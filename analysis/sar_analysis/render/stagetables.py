"""Stage 1 against Stage 2 in words, and one tier against another: what moved, and is the first too kind."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sar_analysis.render.method import how, shortfalls
from sar_analysis.render.wording import NONE, OPEN, Ends, TextTable, held, make, number, spread
from sar_analysis.results.model import ResultBody, StageChange, StageMetric, StagePart
from sar_analysis.results.tiergap import TierGap
from sar_analysis.stats.interval import Interval
from sar_analysis.stats.scores import listed


def gap_table(result: ResultBody) -> TextTable:
    """A row per metric: does the ranking hold, and which pattern moved most."""
    rows = []
    for part in _parts(result):
        who = "absent" if part.victim_absent else "present"
        for m in part.metrics:
            most = next(p for p in m.patterns if p.pattern == m.moved_most)
            rows.append(
                (
                    *(m.words, who, NONE if m.kendall_tau is None else spread("tau", m.kendall_tau)),
                    *(held(m.metric, m.mean_difference), _changed(m)),
                    *(most.pattern, number(m.metric, most.stage1), number(m.metric, most.stage2)),
                    _difference(m.metric, most),
                )
            )
    columns = (
        *("metric", "victims", "Kendall τ", "mean change", "patterns changed", "moved most", "Stage 1", "Stage 2"),
        "change",
    )
    return make(result, "stage_gap", "What Stage 1 got wrong", columns, rows, f"{gap_words(result)} {_how(result)}")


def change_table(result: ResultBody) -> TextTable:
    """Every pattern's change on every metric; none where a part has no such metric, as without victims."""
    words = tuple(dict.fromkeys(m.words for part in _parts(result) for m in part.metrics))
    rows: list[tuple[str, ...]] = []
    for part in _parts(result):
        who = "absent" if part.victim_absent else "present"
        known = {m.words: m for m in part.metrics}
        rows += [(name, who, *(_change(known.get(word), name) for word in words)) for name in part.patterns]
    return make(result, "stage_changes", "Stage 2 minus Stage 1", ("pattern", "victims", *words), rows, _how(result))


def _change(m: StageMetric | None, pattern: str) -> str:
    own = None if m is None else next((p for p in m.patterns if p.pattern == pattern), None)
    return NONE if m is None or own is None else _difference(m.metric, own)


def _changed(m: StageMetric) -> str:
    """How many patterns' intervals leave 0 out; none where no pattern has an interval."""
    known = sum(p.low is not None for p in m.patterns)
    return f"{m.too_kind + m.too_harsh} of {known}" if known else NONE


def _difference(metric: str, item: StageChange) -> str:
    return held(metric, Ends(item.difference, item.low, item.high))


def _parts(result: ResultBody) -> Sequence[StagePart]:
    return () if result.stage_gap is None else result.stage_gap.parts


def _how(result: ResultBody) -> str:
    if result.stage_gap is None:
        return ""
    metrics = [m for part in _parts(result) for m in part.metrics]
    said = [
        "Stage 2 minus Stage 1, means of paired differences, given these seeds, not corrected; changed: the interval "
        f"leaves 0 out. {how(x for m in metrics for x in (*m.patterns, m.mean_difference, m.kendall_tau))}"
    ]
    said += [f"Left out: {text}." for text in result.stage_gap.left_out]
    for part in _parts(result):
        said.append(f"{part.label}: {part.pairs} pairs.")
        if part.unpaired_patterns:
            said.append(f"Not in Stage 1: {listed(part.unpaired_patterns)}.")
    return " ".join(said)


def gap_words(result: ResultBody) -> str:
    """Plain words on what the kinematic stage hides; empty without a Stage-1 file."""
    said = []
    for part in _parts(result):
        ranked = [(round(m.kendall_tau.value, 9), m.words) for m in part.metrics if m.kendall_tau is not None]
        if ranked:
            tau, worst = min(ranked, key=lambda pair: pair[0])
            kept = [words for tau_of, words in ranked if tau_of == 1.0]
            said.append(f"The ranking of patterns is the same in both stages on {', '.join(kept) or 'no metric'}.")
            if tau < 1.0:
                said.append(f"It differs most on {worst} (τ {tau:.2f}).")
        for verdict in ("too_kind", "too_harsh"):
            counted = [(m, getattr(m, verdict)) for m in part.metrics]
            found = [f"{m.words} ({n} of {len(m.patterns)} patterns)" for m, n in counted if n]
            if found:
                said.append(f"Stage 1 is {verdict.replace('_', ' ')} on {', '.join(found)}.")
        said.append(
            f"Stage 1 cannot collide; Stage 2 counted {part.collisions} collisions in {part.missions} missions."
        )
    return " ".join(dict.fromkeys(said))


def tier_gap_markdown(found: TierGap) -> str:
    """The same missions on two tiers, as a table for a document."""
    first, second = found.tiers
    lines = [f"| | {first} | {second} | {second} minus {first} |", "|---|---|---|---|"]
    for row in found.rows:
        name = f"{row.measure} ({row.unit})" if row.unit else row.measure
        sides = (_ends(side, "{:.4g}") for side in (row.first, row.second))
        lines.append(f"| {name} | {' | '.join(sides)} | {_ends(row.difference, '{:+.3g}')} |")
    figures = [figure for row in found.rows for figure in (row.first, row.second, row.difference)]
    told = f"{how(figures)} {shortfalls(figures)}".rstrip()
    lines += ["", f"{found.pairs} missions on both tiers, {found.layouts} layouts; means of missions. {told}"]
    return "\n".join(lines)


def _ends(figure: Interval, form: str) -> str:
    low, high = (form.format(end) if math.isfinite(end) else OPEN for end in (figure.low, figure.high))
    return f"{form.format(figure.value)} [{low}, {high}]"
