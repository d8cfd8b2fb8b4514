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

Plain = Mapping[str, Any]

UNDEFINED = "undefined"
MINUS = "\u2212"
FIGURES = (
    *("missions_with_false_alarm", "false_alarms_per_hour", "missions_with_collision", "collisions_per_hour"),
    *("near_misses_per_mission", "victims_found", "cep50_m", "cep95_m", "coverage_240s"),
)
FRONT = (
    *("title", "tiers", "counts", "seeds_flown", "conditions", "headlines"),
    *("seed_rates", "patterns", "noise_levels", "stage_gap", "upstream"),
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


def interval(key: str, item: Plain) -> str:
    """The two ends, an open one said; nothing where there is no interval."""
    low, high = item.get("low"), item.get("high")
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


def basis(item: Plain) -> str:
    """What a row rests on, in the words every table must carry."""
    seeds = item.get("seeds") or []
    said = f"{item.get('missions', 0)} valid missions, {item.get('invalid', 0)} INVALID"
    said += f", seeds {', '.join(map(str, seeds))}" if seeds else ", no seeds"
    return f"{said}, {item.get('episodes', 0)} layouts"


def counted(items: Sequence[Plain]) -> str:
    """How many missions a table rests on, and how many INVALID ones it leaves out, for its caption."""
    missions, bad = (sum(item.get(key) or 0 for item in items) for key in ("missions", "invalid"))
    return f"{missions} valid missions, {bad} INVALID"


def methods(result: Plain) -> str:
    boot = result.get("bootstrap") or {}
    if not boot:
        return "Resamples and bootstrap seed are not in the document."
    return f"Resampled intervals: {boot.get('resamples')} resamples, bootstrap seed {boot.get('seed')}, 95 %."


def presence(absent: Any) -> str:
    return "victims absent" if absent else "victims present"


def summary(result: Plain) -> Html:
    """What a reader in a hurry looks for, missions with and without victims apart."""
    groups = result.get("headlines")
    if not groups:
        return section("summary", "In ten seconds", note("The document has no summary over all missions."))
    rows = []
    for key in HEADLINE:
        for group in groups:
            absent = bool(group.get("victim_absent"))
            if absent and metric(key).of_victims:
                continue
            name = [name_of(key), tag("small", _side(group))]
            found = wording.by_metric(group["estimates"]).get(key)
            if found is None:
                rows.append([name, "not computed", "no interval", None])
                continue
            ends = found.get("low"), found.get("high")
            axis = WHOLE if metric(key).share else METRES
            bar = None if ends == (None, None) else interval_bar(found["value"], *ends, axis)
            rows.append([name, number(key, found["value"]), interval(key, found), bar])
    said = [f"{_side(g).capitalize()}: {basis(g)}." for g in groups]
    said.append(wording.independence(len(result.get("conditions") or [])))
    scale = "Bars run from 0 to 100 % and from 0 to 20 m. Shares: Clopper-Pearson; CEP: order statistics; all 95 %."
    return section(
        "summary",
        "In ten seconds",
        table(["", "value", "95 % interval", ""], rows, "All conditions of a tier together", class_="summary"),
        note(" ".join([*said, scale, str(result.get("conditional") or "")])),
    )


def _side(group: Plain) -> str:
    return f"{group.get('tier', 'tier unknown')}, {presence(group.get('victim_absent'))}"


def conditions(result: Plain) -> Html:
    listed = result.get("conditions") or []
    if not listed:
        return section("conditions", "Conditions", note("The document has no conditions."))
    rows = []
    for c in listed:
        known = wording.by_metric(c["estimates"])
        cells: list[object] = [[tag("b", c["id"]), " ", c["label"]], c["missions"], _invalid(c)]
        cells += [", ".join(map(str, c.get("seeds") or [])) or "none", c.get("episodes")]
        rows.append([*cells, *(_estimate(m, known.get(m)) for m in FIGURES)])
    head = ["condition", "valid", "INVALID", "seeds", "layouts", *(name_of(m) for m in FIGURES)]
    told = "Shares: Clopper-Pearson. Rates: exact Poisson. CEP: order statistics. Coverage here: mean of missions."
    caption = f"{result.get('title')}: every condition, 95 % intervals"
    return section("conditions", "Conditions", table(head, rows, caption), note(told), _scores(listed, result))


def _invalid(c: Plain) -> str:
    reasons = ", ".join(f"{k} {v}" for k, v in (c.get("invalid_reasons") or {}).items())
    return f"{c.get('invalid', 0)} ({reasons})" if reasons else str(c.get("invalid", 0))


def _estimate(key: str, found: Plain | None) -> object:
    if found is None:
        return "not computed"
    return [number(key, found["value"]), tag("small", interval(key, found))]


def _scores(listed: Sequence[Plain], result: Plain) -> object:
    rows = []
    for c in listed:
        for s in c.get("scores") or []:
            if "value" not in s or "refused" in s:
                rows.append([c["id"], name_of(s["metric"]), _value(s), s.get("refused", "no interval"), "", ""])
                continue
            how = f"{s.get('design', '')} · {s.get('method') or s.get('reading') or ''}"
            ends = interval(s["metric"], s)
            rows.append([c["id"], name_of(s["metric"]), _value(s), ends, s.get("estimand", ""), how])
        for t in c.get("times") or []:
            came = f"{t['reached']} of {t['n']} came, the others are censored"
            ends = interval(t["metric"], t)
            rows.append([c["id"], f"median {name_of(t['metric'])}", _median(t), ends, came, t.get("method", "")])
    if not rows:
        return note("The document has no interquartile means.")
    head = ["condition", "metric", "value", "95 % interval", "holds for", "method"]
    caption = f"Interquartile means over crossed seeds and episodes, and censored times: {counted(listed)}"
    return tag("details", tag("summary", caption), table(head, rows, caption), note(methods(result)))


def _value(s: Plain) -> str:
    return number(s["metric"], s.get("value"))


def _median(t: Plain) -> str:
    return "not reached" if t.get("median") is None else number(t["metric"], t["median"])


def seeds(result: Plain) -> Html:
    rows = result.get("seeds") or []
    if not rows:
        return section("seeds", "Seed by seed", note("The document has no rows per seed."))
    metrics = list(dict.fromkeys(name for row in rows for name in row["metrics"]))
    cells = [
        [
            f"{r['condition']} seed {r['seed']}",
            r["missions"],
            r["invalid"],
            *(number(m, r["metrics"].get(m)) for m in metrics),
        ]
        for r in rows
    ]
    head = ["condition and seed", "valid", "INVALID", *map(name_of, metrics)]
    return section("seeds", "Seed by seed", table(head, cells, "One row per condition and seed"))


def strata(result: Plain) -> Html:
    listed = [c for c in result.get("conditions") or [] if any(b["detections"] for b in c.get("gdop_bands") or [])]
    if not listed:
        return section(
            "gdop", "Error by geometry (GDOP)", note("No victim was detected, so there is no error to stratify.")
        )
    bands = [b["name"] for b in listed[0]["gdop_bands"]]
    rows = [[c["id"], *(_band(b) for b in c["gdop_bands"])] for c in listed]
    caption = f"Detections by GDOP band: {counted(listed)}"
    told = "Detections, CEP50 and CEP95 at the first confident report of a victim, by the GDOP of that report."
    return section("gdop", "Error by geometry (GDOP)", table(["condition", *bands], rows, caption), note(told))


def _band(b: Plain) -> object:
    if not b["detections"]:
        return "none"
    ends = [number("cep50_m", b["cep50_m"]), number("cep95_m", b["cep95_m"])]
    return [f"{b['detections']}", tag("small", f"{ends[0]} · {ends[1]}")]


def comparisons(result: Plain) -> Html:
    rows, title = result.get("comparisons") or [], "Comparisons"
    if not rows:
        return section(
            "comparisons", title, note("There is nothing to compare: no two conditions were flown in pairs.")
        )
    cells = []
    for r in rows:
        head = [f"{r['first']} {MINUS} {r['second']}", name_of(r["metric"])]
        if "difference" not in r:
            cells.append([*head, r.get("refused", "not computed"), "", "", "", "", ""])
            continue
        p = r.get("p_holm")
        told = [number(r["metric"], r["difference"]), interval(r["metric"], r), UNDEFINED if p is None else f"{p:.3g}"]
        told.append(wording.spread("improvement", r["improvement"]) if r.get("improvement") else UNDEFINED)
        cells.append([*head, *told, number(r["metric"], r.get("detectable")), wording.remarks(r)])
    head = ["pair", "metric", "difference", "95 % interval", "p (Holm)", "P(first better)", "detectable", "note"]
    missions = counted([c for c in result.get("conditions") or [] if any(c["id"] in _pair(r) for r in rows)])
    return section(
        "comparisons",
        title,
        table(head, cells, f"Paired by seed and episode: {missions}"),
        note(f"{DETECTABLE} {result.get('comparisons_note') or ''} {methods(result)}"),
    )


def _pair(row: Plain) -> tuple[Any, Any]:
    return row["first"], row["second"]


def optimality(result: Plain) -> Html:
    if not result.get("optimality"):
        return section("optimality", "Against the oracle", note("No oracle's returns were given."))
    words = worded.oracle(result)
    shown = table(words.columns, words.rows, "Mean shortfall below the oracle")
    return section("optimality", "Against the oracle", shown, note(words.caption))


def front(result: Plain) -> Html:
    """The page's own tables as RESULTS.md has them: who is best on what, noise, Stage 1, claims."""
    if any(key not in result for key in FRONT):
        return section("front", "On one page", note("The document lacks what the page is made of."))
    shown = [[tag("h3", t.title), table(t.columns, t.rows, t.title), note(t.caption)] for t in front_tables(result)[1:]]
    return section("front", "On one page", *shown)


def registration(result: Plain) -> Html:
    found, title = result.get("registration"), "Registration"
    if not found:
        return section("registration", title, note("These results were not held against a pre-registration."))
    return section(
        "registration",
        title,
        tag("p", f"{found['name']} {found['sentence']}. SHA-256 ", tag("code", found["sha256"])),
        tag("p", f"Hypothesis: {found['hypothesis']}"),
        tag(
            "p",
            f"Metric {found['metric']}, estimator {found['estimator']}, purpose {found['run_purpose']}, "
            f"policy {found['failure_policy']}.",
        ),
        _claims(found),
        tag("h3", "Deviations"),
        tag("ul", *(tag("li", d) for d in found["deviations"]))
        if found["deviations"]
        else note("Nothing departed from it."),
    )


def _claims(found: Plain) -> Html:
    if found["refused"] is not None:
        return tag("p", f"Nothing was decided: {found['refused']}")
    if not found["verdicts"]:
        return note("No claim was registered.")
    return tag("ul", *(tag("li", f"{v['claim']}: {_decision(found, v)}") for v in found["verdicts"]))


def _decision(found: Plain, v: Plain) -> str:
    if "refused" in v:
        return f"not decided: {v['refused']}"
    return f"{'holds' if v['holds'] else 'does not hold'} ({wording.verdict(found, v)})"


def warnings(result: Plain) -> Html:
    counts = ", ".join(f"{v} {k.replace('_', ' ')}" for k, v in (result.get("counts") or {}).items())
    said = result.get("warnings") or []
    listed = tag("ul", *(tag("li", text) for text in said)) if said else note("There are no warnings.")
    missing = [tag("li", f"{m['what']}: {m['why']}") for m in result.get("not_computed") or []]
    return section(
        "warnings",
        "Warnings and what does not count",
        tag("p", f"Counted: {counts or 'nothing'}."),
        listed,
        [tag("h3", "Not computed"), tag("ul", *missing)] if missing else None,
    )


def card(result: Plain, run: Plain) -> Html:
    parts = {**(result.get("card") or {}), "this analysis": run} if result.get("card") or run else {}
    listed = [join(tag("h3", str(key).replace("_", " ").capitalize()), _pairs(value)) for key, value in parts.items()]
    papers = [
        join(tag("h3", f"From a paper, not from here: {p.get('name', 'unnamed')}"), _pairs(p))
        for p in result.get("paper") or []
    ]
    return section("card", "Reporting card", *(listed or [note("There is no card.")]), *papers)


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
