"""The results as titled tables of words: what Markdown, LaTeX and the terminal print, each in its own way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sar_analysis.metrics.catalogue import HEADLINE, METRICS, Metric, labels, metric
from sar_analysis.render import strata, wording
from sar_analysis.render.stagetables import change_table
from sar_analysis.render.wording import TextTable, by_metric, estimate, head_of, independence, make, score
from sar_analysis.stats.scores import listed, numbers

MOST_NOTES = 12


def text_tables(result: Mapping[str, Any]) -> list[TextTable]:
    """Every table of the results in reading order; those with nothing to show are left out."""
    made = [
        conditions(result),
        alarms(result),
        contacts(result),
        finding(result),
        times(result),
        scores(result, "seeds"),
        scores(result, "seeds_layouts"),
        pooled(result),
        strata.patterns(result),
        strata.seeds(result),
        strata.bands(result),
        strata.envelope(result),
        strata.profiles(result),
        strata.comparisons(result),
        strata.oracle(result),
        change_table(result),
        strata.reliability(result),
    ]
    return [table for table in made if table.rows]


def headline(result: Mapping[str, Any]) -> TextTable:
    """Missions with victims and those without, apart: the figures a decision hangs on."""
    rows = []
    for item in result["headlines"]:
        figures = by_metric(item["estimates"])
        who = "absent" if item["victim_absent"] else "present"
        head = (item["tier"], who, str(item["missions"]), str(item["invalid"]))
        rows.append((*head, *(estimate(figures.get(key), _lacking(METRICS[key], item, figures)) for key in HEADLINE)))
    caption = (
        f"All conditions of a tier together. {independence(len(result['conditions']))} In brackets two-sided 95 % "
        "intervals: Clopper-Pearson for shares, order statistics for CEP (open: too few values for that end); "
        "coverage is a mean, its interval is below."
    )
    columns = ("tier", "victims", "missions", "invalid", *labels(HEADLINE))
    return make(result, "headline", "In ten seconds", columns, rows, caption)


def _lacking(metric: Metric, item: Mapping[str, Any], figures: Mapping[str, Any]) -> str:
    """Why a headline has no such figure."""
    if not item["missions"]:
        return "no valid mission"
    if metric.sensing and "missions_with_false_alarm" not in figures:
        return "flown without radio"
    if metric.of_victims and not item["victims"]:
        return "no victims"
    return "no victim found" if metric.aggregate == "quantile" else "not computed"


def conditions(result: Mapping[str, Any]) -> TextTable:
    rows = [
        (
            *head_of(c),
            c["label"],
            numbers(c["seeds"]),
            str(c["episodes"]),
            str(c["victims"]),
            f"{c['flight_hours']:.2f}",
        )
        for c in result["conditions"]
    ]
    columns = ("id", "missions", "invalid", "condition", "seeds", "episodes", "victims", "flight hours")
    return make(
        result,
        "conditions",
        "What was flown",
        columns,
        rows,
        "Missions are the valid ones; hours are summed over drones.",
    )


def alarms(result: Mapping[str, Any]) -> TextTable:
    keys = (
        *("missions_with_false_alarm", "false_alarms_per_mission", "false_alarms_per_hour"),
        *("missions_with_collision", "collisions_per_hour"),
    )
    caption = "Shares: two-sided Clopper-Pearson. Rates: exact Poisson. Missions taken as independent; no resampling."
    return _estimates(result, "alarms", "False alarms and collisions", keys, caption)


def contacts(result: Mapping[str, Any]) -> TextTable:
    kinds = ("collisions_drone_drone", "collisions_drone_obstacle", "collisions_drone_ground", "near_misses")
    keys = tuple(f"{name}_per_mission" for name in (*kinds, "geofence_breaches", "failsafe_entries"))
    caption = "Per mission, exact Poisson; least separation of two drones in any mission. No resampling."
    return _estimates(result, "contacts", "Contacts by kind", (*keys, "min_separation_m"), caption)


def finding(result: Mapping[str, Any]) -> TextTable:
    keys = (
        *("missions_with_detection", "victims_found", "victims_found_240s"),
        *("cep50_m", "cep95_m", "final_cep50_m", "final_cep95_m"),
    )
    caption = (
        "Shares: two-sided Clopper-Pearson. CEP at the first (and the last) confident report of found victims: order "
        "statistics, open where so few values give no end. No resampling."
    )
    return _estimates(result, "finding", "Finding victims", keys, caption)


def times(result: Mapping[str, Any]) -> TextTable:
    rows = [(*head_of(c), *(wording.time(t) for t in c["times"])) for c in result["conditions"]]
    columns = (
        "id",
        "missions",
        "invalid",
        *(f"median {label}" for label in labels([t["metric"] for t in result["conditions"][0]["times"]])),
    )
    caption = (
        "Kaplan-Meier, log-log; what did not come within the search is censored at its end. In brackets how many had "
        "it. No resampling."
    )
    return make(result, "times", "Times", columns, rows, caption)


def scores(result: Mapping[str, Any], design: str) -> TextTable:
    """IQMs with intervals for one question; an IQM that has no table at all is refused under the first question."""
    names = list(dict.fromkeys(s["metric"] for s in result["conditions"][0]["scores"]))
    if design == "seeds_layouts":
        names = [name for name in names if metric(name).compared]
    rows: list[tuple[str, ...]] = []
    methods: list[tuple[str, Mapping[str, Any]]] = []
    for c in result["conditions"]:
        found = {s["metric"]: s for s in c["scores"] if s.get("design", "seeds") == design}
        if found:
            rows.append((*head_of(c), *(score(found.get(name)) for name in names)))
        methods += [(c["id"], item) for name, item in found.items() if name in names]
    question = "new seeds, these episodes" if design == "seeds" else "new seeds, new layouts"
    columns = ("id", "missions", "invalid", *labels(names))
    return make(
        result,
        f"iqm_{design}",
        f"IQM ({question})",
        columns,
        rows,
        f"IQM of the seeds x episodes table. {_method(methods)}",
    )


def _method(found: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """How intervals of a table were made, and what their notes say, each once with the conditions it is about."""
    ways: list[str] = []
    notes: dict[str, list[str]] = {}
    for name, s in found:
        said = list(s.get("notes") or ())
        if "refused" in s:
            said.append(f"refused: {s['refused'].partition(': ')[2] or s['refused']}")
        else:
            drawn = f"{s['resamples']} resamples, bootstrap seed {s['seed']}" if s["resamples"] else "no resampling"
            ways.append(f"{100 * s['confidence']:g} % interval: {s['method']} ({s['estimand']}; {drawn})")
        for text in said:
            notes.setdefault(text, []).append(name)
    about = [f"{listed(list(dict.fromkeys(names)))}: {text}" for text, names in notes.items()]
    about.sort(key=lambda text: "left out" not in text)
    more = [f"{len(about) - MOST_NOTES} more notes are in results.json"] if len(about) > MOST_NOTES else []
    told = [*dict.fromkeys(ways), *about[:MOST_NOTES], *more]
    return " ".join(f"{text[:1].upper()}{text[1:]}." if text in ways else f"{text}." for text in told)


def pooled(result: Mapping[str, Any]) -> TextTable:
    """Noise levels together; nothing to show where every condition has one level."""
    if len(result["pooled"]) == len(result["conditions"]):
        return make(result, "pooled", "Noise levels pooled", (), (), "")
    keys = ("missions_with_false_alarm", "missions_with_collision", "victims_found", "cep50_m")
    compared = [m.key for m in METRICS.values() if m.compared]
    rows = []
    for c in result["pooled"]:
        figures = by_metric(c["estimates"])
        why = {item["metric"]: item["why"] for item in c["not_computed"]}
        iqms = [next(s for s in c["scores"] if s["metric"] == key) for key in compared]
        cells = (estimate(figures.get(name), why.get(name, "not computed")) for name in keys)
        rows.append((*head_of(c), c["label"], *cells, *map(score, iqms)))
    columns = (*labels(keys), *(f"{label}, IQM" for label in labels(compared)))
    caption = "As in the tables above, noise levels together; a pooled IQM trims the easiest and the hardest away."
    return make(
        result, "pooled", "Noise levels pooled", ("id", "missions", "invalid", "condition", *columns), rows, caption
    )


def _estimates(result: Mapping[str, Any], name: str, title: str, keys: Sequence[str], caption: str) -> TextTable:
    rows = []
    for c in result["conditions"]:
        figures = by_metric(c["estimates"])
        why = {item["metric"]: item["why"] for item in c["not_computed"]}
        rows.append((*head_of(c), *(estimate(figures.get(key), why.get(key, "not computed")) for key in keys)))
    return make(result, name, title, ("id", "missions", "invalid", *labels(keys)), rows, caption)
