"""The page's sections of words and tables, each read from the results document alone; what is missing is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sar_analysis.metrics.catalogue import HEADLINE, metric
from sar_analysis.render import strata as worded
from sar_analysis.render import wording
from sar_analysis.render.charts import SHARE, Axis, interval_bar
from sar_analysis.render.frontpage import front_tables
from sar_analysis.render.markup import Html, join, tag
from sar_analysis.render.method import how
from sar_analysis.render.tables import definitions
from sar_analysis.results.model import ResultBody, Run
from sar_analysis.results.rows import (
    DecidedVerdict,
    EnvelopeRow,
    EstimateRow,
    GdopBand,
    Headline,
    RefusedComparison,
    RefusedScore,
    RegistrationResult,
    Section,
    UndecidedVerdict,
)
from sar_analysis.results.summary import NOT_HELD

UNDEFINED = "undefined"
MINUS = "\u2212"
FIGURES = (
    *("missions_with_false_alarm", "false_alarms_per_hour", "missions_with_collision", "collisions_per_hour"),
    *("near_misses_per_mission", "victims_found", "cep50_m", "cep95_m", "coverage_240s"),
)
DETECTABLE = (
    "p: sign-flip test on each seed's difference of IQMs. Detectable: what a paired t-test over seeds at 5 %, "
    "uncorrected, finds with a power of 80 %."
)
WHOLE = Axis("share", 0.0, 1.0, SHARE, percent=True)
METRES = Axis("m", 0.0, 20.0, (0.0, 5.0, 10.0, 15.0, 20.0))


def name_of(key: str) -> str:
    return metric(key).heading


def number(key: str, value: float | None) -> str:
    """A value as people read it; undefined is said."""
    return UNDEFINED if value is None else wording.number(key, value)


def interval(key: str, low: float | None, high: float | None) -> str:
    """The two ends, an open one said; nothing where there is no interval."""
    if low is None and high is None:
        return "no interval"
    return f"{wording.bare(key, low)} to {wording.bare(key, high)}"


def section(key: str, title: str, *children: object) -> Html:
    return tag("section", tag("h2", title), *children, id=key)


def note(text: object) -> Html:
    return tag("p", text, class_="note")


def table(head: Sequence[object], rows: Sequence[Sequence[object]], caption: object = None, **more: object) -> Html:
    """A table whose first column names the row; it scrolls by itself where it is wider than the page."""
    cells = [
        tag("tr", *(tag("th" if i == 0 else "td", c, scope="row" if i == 0 else None) for i, c in enumerate(row)))
        for row in rows
    ]
    top = tag("thead", tag("tr", *(tag("th", h, scope="col") for h in head)))
    body = tag("table", tag("caption", caption) if caption else None, top, tag("tbody", *cells), **more)
    return tag("div", body, class_="wide", tabindex=0, role="region", aria_label=str(caption or "table"))


def basis(item: Headline) -> str:
    """What a row rests on, in the words every table must carry."""
    seeds = f"seeds {', '.join(map(str, item.seeds))}" if item.seeds else "no seeds"
    return f"{item.missions} valid missions, {item.invalid} INVALID, {seeds}, {item.episodes} layouts"


def counted(items: Sequence[Section | EnvelopeRow]) -> str:
    """How many missions a table rests on, and how many INVALID ones it leaves out, for its caption."""
    return f"{sum(c.missions for c in items)} valid missions, {sum(c.invalid for c in items)} INVALID"


def methods(result: ResultBody) -> str:
    boot = result.bootstrap
    return f"Resampled intervals: {boot.resamples} resamples, bootstrap seed {boot.seed}, 95 %."


def presence(absent: bool) -> str:
    return "victims absent" if absent else "victims present"


def summary(result: ResultBody) -> Html:
    """What a reader in a hurry looks for, missions with and without victims apart."""
    rows = []
    for key in HEADLINE:
        for group in result.headlines:
            if group.victim_absent and (metric(key).of_victims or metric(key).mixed):
                continue
            name = [name_of(key), tag("small", _side(group))]
            found = wording.by_metric(group.estimates).get(key)
            if found is None:
                rows.append([name, _lacking(key, result), "no interval", None])
                continue
            ends = found.low, found.high
            axis = WHOLE if metric(key).share else METRES
            bar = None if ends == (None, None) or metric(key).unit == "s" else interval_bar(found.value, *ends, axis)
            rows.append([name, number(key, found.value), interval(key, *ends), bar])
    said = [f"{_side(g).capitalize()}: {basis(g)}." for g in result.headlines]
    said.append(wording.independence(len(result.conditions)))
    scale = "Bars run from 0 to 100 % and from 0 to 20 m. "
    return section(
        "summary",
        "In ten seconds",
        table(["", "value", "95 % interval", ""], rows, "All conditions of a tier together", class_="summary"),
        note(" ".join([definitions(result) + said[0], *said[1:], scale, result.conditional])),
    )


def _lacking(key: str, result: ResultBody) -> str:
    held = metric(key).since <= result.record_schema
    return "not computed" if held else f"not computed: {NOT_HELD}"


def _side(group: Headline) -> str:
    return f"{group.tier}, {presence(group.victim_absent)}"


def conditions(result: ResultBody) -> Html:
    rows = []
    for c in result.conditions:
        known = wording.by_metric(c.estimates)
        cells: list[object] = [[tag("b", c.id), " ", c.label], c.missions, _invalid(c)]
        cells += [", ".join(map(str, c.seeds)) or "none", c.episodes]
        rows.append([*cells, *(_estimate(m, known.get(m)) for m in FIGURES)])
    head = ["condition", "valid", "INVALID", "seeds", "layouts", *(name_of(m) for m in FIGURES)]
    told = how(e for c in result.conditions for e in c.estimates if e.metric in FIGURES)
    caption = f"{result.title}: every condition, 95 % intervals"
    return section("conditions", "Conditions", table(head, rows, caption), note(told), _scores(result))


def _invalid(c: Section) -> str:
    reasons = ", ".join(f"{k} {v}" for k, v in c.invalid_reasons.items())
    return f"{c.invalid} ({reasons})" if reasons else str(c.invalid)


def _estimate(key: str, found: EstimateRow | None) -> object:
    if found is None:
        return "not computed"
    return [number(key, found.value), tag("small", interval(key, found.low, found.high))]


def _scores(result: ResultBody) -> object:
    rows = []
    for c in result.conditions:
        for s in c.scores:
            head = [c.id, name_of(s.metric)]
            if isinstance(s, RefusedScore):
                rows.append([*head, "refused", s.refused, "", ""])
            else:
                rows.append(
                    [
                        *head,
                        number(s.metric, s.value),
                        interval(s.metric, s.low, s.high),
                        s.estimand,
                        f"{s.design} · {s.method}",
                    ]
                )
        for t in c.times:
            came = f"{t.reached} of {t.n} came, the others are censored"
            median = "not reached" if t.median is None else number(t.metric, t.median)
            ends = interval(t.metric, t.low, t.high)
            rows.append([c.id, f"median {name_of(t.metric)}", median, ends, came, t.method])
    head = ["condition", "metric", "value", "95 % interval", "holds for", "method"]
    caption = f"Interquartile means over crossed seeds and episodes, and censored times: {counted(result.conditions)}"
    return tag("details", tag("summary", caption), table(head, rows, caption), note(methods(result)))


def seeds(result: ResultBody) -> Html:
    metrics = list(dict.fromkeys(name for row in result.seeds for name in row.metrics))
    cells = [
        [
            *(f"{r.condition} seed {r.seed}", r.missions, r.invalid),
            *("none" if (found := r.metrics.get(m)) is None else wording.spread(m, found) for m in metrics),
        ]
        for r in result.seeds
    ]
    head = ["condition and seed", "valid", "INVALID", *map(name_of, metrics)]
    told = how(found for r in result.seeds for found in r.metrics.values())
    return section("seeds", "Seed by seed", table(head, cells, "One row per condition and seed"), note(told))


def strata(result: ResultBody) -> Html:
    listed = [c for c in result.conditions if any(b.detections for b in c.gdop_bands)]
    if not listed:
        return section(
            "gdop", "Error by geometry (GDOP)", note("No victim was issued, so there is no error to stratify.")
        )
    bands = [b.name for b in listed[0].gdop_bands]
    rows = [[c.id, *(_band(b) for b in c.gdop_bands)] for c in listed]
    caption = f"Issued victims by GDOP band: {counted(listed)}"
    told = "Issued victims, CEP50 and CEP95 at issue, by the constellation's GDOP there. "
    told += how(cep for c in listed for b in c.gdop_bands for cep in (b.cep50_m, b.cep95_m))
    return section("gdop", "Error by geometry (GDOP)", table(["condition", *bands], rows, caption), note(told))


def _band(b: GdopBand) -> object:
    if b.cep50_m is None or b.cep95_m is None:
        return "none"
    ends = [wording.spread("cep50_m", b.cep50_m), wording.spread("cep95_m", b.cep95_m)]
    return [f"{b.detections}", tag("small", f"{ends[0]} · {ends[1]}")]


def comparisons(result: ResultBody) -> Html:
    rows, title = result.comparisons, "Comparisons"
    if not rows:
        return section(
            "comparisons", title, note("There is nothing to compare: no two conditions were flown in pairs.")
        )
    cells = []
    for r in rows:
        head = [f"{r.first} {MINUS} {r.second}", name_of(r.metric)]
        if isinstance(r, RefusedComparison):
            cells.append([*head, r.refused, "", "", "", "", ""])
            continue
        p, better = UNDEFINED if r.p_holm is None else f"{r.p_holm:.3g}", r.improvement
        told = [number(r.metric, r.difference), interval(r.metric, r.low, r.high), p]
        told.append(wording.spread("improvement", better))
        cells.append([*head, *told, number(r.metric, r.detectable), wording.remarks(r)])
    head = ["pair", "metric", "difference", "95 % interval", "p (Holm)", "P(first better)", "detectable", "note"]
    missions = counted([c for c in result.conditions if any(c.id in (r.first, r.second) for r in rows)])
    return section(
        "comparisons",
        title,
        table(head, cells, f"Paired by seed and episode: {missions}"),
        note(f"{DETECTABLE} {result.comparisons_note} {methods(result)}"),
    )


def optimality(result: ResultBody) -> Html:
    if result.optimality is None:
        return section("optimality", "Against the oracle", note("No oracle's returns were given."))
    words = worded.oracle(result)
    shown = table(words.columns, words.rows, "Mean shortfall below the oracle")
    return section("optimality", "Against the oracle", shown, note(words.caption))


def front(result: ResultBody) -> Html:
    """The page's own tables as RESULTS.md has them: who is best on what, noise, Stage 1, claims."""
    shown = [
        [tag("h3", t.title), table(t.columns, t.rows, t.title), note(t.caption)]
        for t in front_tables(result)
        if t.name != "headline"
    ]
    return section("front", "On one page", *shown)


def registration(result: ResultBody) -> Html:
    found, title = result.registration, "Registration"
    if found is None:
        return section("registration", title, note("These results were not held against a pre-registration."))
    return section(
        "registration",
        title,
        tag("p", f"{found.name} {found.sentence}. SHA-256 ", tag("code", found.sha256)),
        tag("p", f"Hypothesis: {found.hypothesis}"),
        tag(
            "p",
            f"Metric {found.metric}, estimator {found.estimator}, purpose {found.run_purpose}, "
            f"policy {found.failure_policy}.",
        ),
        _claims(found),
        tag("h3", "Deviations"),
        tag("ul", *(tag("li", d) for d in found.deviations)) if found.deviations else note("Nothing departed from it."),
    )


def _claims(found: RegistrationResult) -> Html:
    if found.refused is not None:
        return tag("p", f"Nothing was decided: {found.refused}")
    if not found.verdicts:
        return note("No claim was registered.")
    return tag("ul", *(tag("li", f"{v.claim}: {_decision(found, v)}") for v in found.verdicts))


def _decision(found: RegistrationResult, v: DecidedVerdict | UndecidedVerdict) -> str:
    if isinstance(v, UndecidedVerdict):
        return f"not decided: {v.refused}"
    return f"{'holds' if v.holds else 'does not hold'} ({wording.verdict(found, v)})"


def warnings(result: ResultBody) -> Html:
    counts = ", ".join(f"{v} {k.replace('_', ' ')}" for k, v in result.counts)
    said = result.warnings
    listed = tag("ul", *(tag("li", text) for text in said)) if said else note("There are no warnings.")
    missing = [tag("li", f"{m.what}: {m.why}") for m in result.not_computed]
    return section(
        "warnings",
        "Warnings and what does not count",
        tag("p", f"Counted: {counts}."),
        listed,
        [tag("h3", "Not computed"), tag("ul", *missing)] if missing else None,
    )


def card(result: ResultBody, run: Run) -> Html:
    parts = {**result.card.model_dump(), "this analysis": run.model_dump()}
    listed = [join(tag("h3", key.replace("_", " ").capitalize()), _pairs(value)) for key, value in parts.items()]
    papers = [join(tag("h3", f"From a paper, not from here: {p.name}"), _pairs(p.model_dump())) for p in result.paper]
    return section("card", "Reporting card", *listed, *papers)


def _pairs(value: Any) -> Html:
    if not isinstance(value, Mapping):
        return tag("p", wording.setting(value))
    return tag("dl", *(tag("div", tag("dt", key), tag("dd", text)) for key, text in _flat(value)))


def _flat(value: Mapping[str, Any], path: str = "") -> list[tuple[str, str]]:
    found = []
    for key, item in value.items():
        name = f"{path} · {key}" if path else str(key)
        found += _flat(item, name) if isinstance(item, Mapping) else [(name, wording.setting(item))]
    return found
