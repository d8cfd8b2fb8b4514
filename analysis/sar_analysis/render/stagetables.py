"""Stage 1 against Stage 2 in words: does the ranking hold, which pattern moved most, and is Stage 1 too kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sar_analysis.render.wording import NONE, TextTable, make, number, spread
from sar_analysis.results.stagegap import METHOD
from sar_analysis.stats.scores import listed


def gap_table(result: Mapping[str, Any]) -> TextTable:
    """A row per metric: does the ranking hold, and which pattern moved most."""
    rows = []
    for part in _parts(result):
        who = "absent" if part["victim_absent"] else "present"
        for m in part["metrics"]:
            most = next(p for p in m["patterns"] if p["pattern"] == m["moved_most"])
            tau = NONE if m["kendall_tau"] is None else f"{m['kendall_tau']:.2f}"
            rows.append(
                (
                    *(m["words"], who, tau, number(m["metric"], m["mean_difference"])),
                    _changed(m),
                    *(most["pattern"], number(m["metric"], most["stage1"]), number(m["metric"], most["stage2"])),
                    _difference(m["metric"], most),
                )
            )
    columns = (
        *("metric", "victims", "Kendall τ", "mean change", "patterns changed", "moved most", "Stage 1", "Stage 2"),
        "change",
    )
    return make(result, "stage_gap", "What Stage 1 got wrong", columns, rows, f"{gap_words(result)} {_how(result)}")


def change_table(result: Mapping[str, Any]) -> TextTable:
    """Every pattern's change on every metric; none where a part has no such metric, as without victims."""
    words = tuple(dict.fromkeys(m["words"] for part in _parts(result) for m in part["metrics"]))
    rows: list[tuple[str, ...]] = []
    for part in _parts(result):
        who = "absent" if part["victim_absent"] else "present"
        known = {m["words"]: m for m in part["metrics"]}
        rows += [(name, who, *(_change(known.get(word), name) for word in words)) for name in part["patterns"]]
    return make(result, "stage_changes", "Stage 2 minus Stage 1", ("pattern", "victims", *words), rows, _how(result))


def _change(m: Mapping[str, Any] | None, pattern: str) -> str:
    own = None if m is None else next((p for p in m["patterns"] if p["pattern"] == pattern), None)
    return NONE if m is None or own is None else _difference(m["metric"], own)


def _changed(m: Mapping[str, Any]) -> str:
    """How many patterns' intervals leave 0 out; none where no pattern has an interval."""
    known = sum(p["low"] is not None for p in m["patterns"])
    return f"{m['too_kind'] + m['too_harsh']} of {known}" if known else NONE


def _difference(metric: str, item: Mapping[str, Any]) -> str:
    plain = {**item, "value": item["difference"]}
    return number(metric, item["difference"]) if item["low"] is None else spread(metric, plain)


def _parts(result: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return () if result["stage_gap"] is None else result["stage_gap"]["parts"]


def _how(result: Mapping[str, Any]) -> str:
    if result["stage_gap"] is None:
        return ""
    said = [f"Stage 2 minus Stage 1; {METHOD}, each at 95 %, not corrected; changed: the interval leaves 0 out."]
    for part in _parts(result):
        said.append(f"{part['label']}: {part['pairs']} pairs.")
        if part["unpaired_patterns"]:
            said.append(f"Not in Stage 1: {listed(part['unpaired_patterns'])}.")
    return " ".join(said)


def gap_words(result: Mapping[str, Any]) -> str:
    """Plain words on what the kinematic stage hides; empty without a Stage-1 file."""
    said = []
    for part in _parts(result):
        ranked = [m for m in part["metrics"] if m["kendall_tau"] is not None]
        if ranked:
            worst = min(ranked, key=lambda m: m["kendall_tau"])
            kept = [m["words"] for m in ranked if m["kendall_tau"] == 1.0]
            said.append(f"The ranking of patterns is the same in both stages on {', '.join(kept) or 'no metric'}.")
            if worst["kendall_tau"] < 1.0:
                said.append(f"It differs most on {worst['words']} (τ {worst['kendall_tau']:.2f}).")
        for key, words in (("too_kind", "too kind"), ("too_harsh", "too harsh")):
            found = [f"{m['words']} ({m[key]} of {len(m['patterns'])} patterns)" for m in part["metrics"] if m[key]]
            if found:
                said.append(f"Stage 1 is {words} on {', '.join(found)}.")
        said.append(
            f"Stage 1 cannot collide; Stage 2 counted {part['collisions']} collisions in {part['missions']} missions."
        )
    return " ".join(dict.fromkeys(said))
