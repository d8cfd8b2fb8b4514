"""The results as titled tables of words: what Markdown, LaTeX and the terminal print, each in its own way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from sar_analysis.metrics.catalogue import HEADLINE, METRICS, Metric, labels, metric
from sar_analysis.render import strata, wording
from sar_analysis.render.method import BESIDE, how
from sar_analysis.render.reported import geometry_bands, geometry_correlations, geometry_errors, geometry_views
from sar_analysis.render.stagetables import change_table
from sar_analysis.render.wording import TextTable, by_metric, estimate, head_of, independence, make, score
from sar_analysis.results.model import ResultBody
from sar_analysis.results.rows import Drawn, EstimateRow, Headline, RefusedScore, ScoreRow, Section
from sar_analysis.results.summary import NOT_HELD, ONE_KIND
from sar_analysis.stats.scores import listed, numbers

MOST_NOTES = 12
MIX = "missions with victims and without, weighted one to one"
QUESTIONS = {
    "layouts": "these seeds, new layouts",
    "seeds": "new seeds, these episodes",
    "seeds_layouts": "new seeds, new layouts",
}


def text_tables(result: ResultBody) -> list[TextTable]:
    """Every table of the results in reading order; those with nothing to show are left out."""
    made = [
        conditions(result),
        alarms(result),
        contacts(result),
        finding(result),
        times(result),
        scores(result, "layouts"),
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
        geometry_errors(result),
        geometry_bands(result),
        geometry_correlations(result),
        geometry_views(result),
    ]
    return [table for table in made if table.rows]


def headline(result: ResultBody) -> TextTable:
    """Missions with victims and those without, apart: the figures a decision hangs on."""
    rows = []
    for item in result.headlines:
        figures = by_metric(item.estimates)
        who = "absent" if item.victim_absent else "present"
        head = (item.tier, who, str(item.missions), str(item.invalid))
        why = partial(_lacking, item=item, figures=figures, schema=result.record_schema)
        rows.append((*head, *(estimate(figures.get(key), why(METRICS[key])) for key in HEADLINE)))
    shown = [e for item in result.headlines for e in item.estimates if e.metric in HEADLINE]
    caption = (
        f"{definitions(result)}All conditions of a tier together. {independence(len(result.conditions))} "
        f"{how(shown)} {labels(('ppv',))[0]}: {MIX}. Open: too few values for that end. {BESIDE}"
    )
    columns = ("tier", "victims", "missions", "invalid", *labels(HEADLINE))
    return make(result, "headline", "In ten seconds", columns, rows, caption)


def _lacking(metric: Metric, item: Headline, figures: Mapping[str, EstimateRow], schema: int) -> str:
    """Why a headline has no such figure."""
    if not item.missions:
        return "no valid mission"
    if metric.sensing and "missions_with_false_alarm" not in figures:
        return "flown without radio"
    if (metric.of_victims or metric.mixed) and item.victim_absent:
        return "no victims" if metric.of_victims else "with victims"
    if schema < metric.since:
        return NOT_HELD
    if metric.mixed:
        return ONE_KIND
    return "no victim issued" if metric.aggregate == "quantile" else "not computed"


def definitions(result: ResultBody) -> str:
    """One sentence where reports were judged by earlier definitions than the labels say."""
    if result.record_schema > 1:
        return ""
    above = "; the erratum above says what they hid" if result.erratum else ""
    return (
        "All figures on reports are by the definitions of schema 1 (docs/migration.md): a decoy alarm here is any "
        f"report more than 10 m from every victim, and errors beyond 10 m are left out{above}. "
    )


def conditions(result: ResultBody) -> TextTable:
    rows = [
        (*head_of(c), c.label, numbers(c.seeds), str(c.episodes), str(c.victims), f"{c.flight_hours:.2f}")
        for c in result.conditions
    ]
    columns = ("id", "missions", "invalid", "condition", "seeds", "episodes", "victims", "flight hours")
    caption = "Missions are the valid ones; hours are summed over drones."
    return make(result, "conditions", "What was flown", columns, rows, caption)


def alarms(result: ResultBody) -> TextTable:
    keys = (
        *("missions_with_false_alarm", "false_alarms_per_mission", "false_alarms_per_hour"),
        *("missions_with_collision", "collisions_per_hour"),
    )
    return _estimates(result, "alarms", "False alarms and collisions", keys, "")


def contacts(result: ResultBody) -> TextTable:
    kinds = ("collisions_drone_drone", "collisions_drone_obstacle", "collisions_drone_ground", "near_misses")
    keys = tuple(f"{name}_per_mission" for name in (*kinds, "geofence_breaches", "failsafe_entries"))
    caption = "Per mission; least separation of two drones in any mission, an extreme, which has no interval. "
    return _estimates(result, "contacts", "Contacts by kind", (*keys, "min_separation_m"), caption)


def finding(result: ResultBody) -> TextTable:
    keys = (
        *("missions_with_detection", "victims_found", "victims_found_240s"),
        *("cep50_m", "cep95_m", "final_cep50_m", "final_cep95_m"),
    )
    caption = (
        "CEP at the issue (and at the last confident report) of issued victims, open where few values give no end. "
    )
    return _estimates(result, "finding", "Finding victims", keys, caption)


def times(result: ResultBody) -> TextTable:
    rows = [(*head_of(c), *(wording.time(t) for t in c.times)) for c in result.conditions]
    timed = labels([t.metric for t in result.conditions[0].times])
    columns = ("id", "missions", "invalid", *(f"median {label}" for label in timed))
    caption = (
        "Kaplan and Meier's median and, behind it, the mean up to the horizon, a miss counted as that; what did not "
        f"come within the search is censored at its end. In brackets how many had it. {how(_times(result))}"
    )
    return make(result, "times", "Times", columns, rows, caption)


def scores(result: ResultBody, design: str) -> TextTable:
    """IQMs with intervals for one question; an IQM that has no table at all is refused under the first question."""
    names = list(dict.fromkeys(s.metric for s in result.conditions[0].scores))
    if design == "seeds_layouts":
        names = [name for name in names if metric(name).compared]
    rows: list[tuple[str, ...]] = []
    methods: list[tuple[str, ScoreRow | RefusedScore]] = []
    for c in result.conditions:
        found = {s.metric: s for s in c.scores if (s.design or "layouts") == design}
        if found:
            rows.append((*head_of(c), *(score(found.get(name)) for name in names)))
        methods += [(c.id, item) for name, item in found.items() if name in names]
    question = QUESTIONS[design]
    columns = ("id", "missions", "invalid", *labels(names))
    caption = f"IQM of the seeds x episodes table. {_method(methods)}"
    return make(result, f"iqm_{design}", f"IQM ({question})", columns, rows, caption)


def _method(found: Iterable[tuple[str, ScoreRow | RefusedScore]]) -> str:
    """How intervals of a table were made, and what their notes say, each once with the conditions it is about."""
    ways: list[str] = []
    notes: dict[str, list[str]] = {}
    for name, s in found:
        said = list(s.notes)
        if isinstance(s, RefusedScore):
            said.append(f"refused: {s.refused.partition(': ')[2] or s.refused}")
        else:
            drawn = f"{s.resamples} resamples, bootstrap seed {s.seed}" if s.resamples else "no resampling"
            ways.append(f"{100 * s.confidence:g} % interval: {s.method} ({s.estimand}; {drawn})")
        for text in said:
            notes.setdefault(text, []).append(name)
    about = [f"{listed(list(dict.fromkeys(names)))}: {text}" for text, names in notes.items()]
    about.sort(key=lambda text: "left out" not in text)
    more = [f"{len(about) - MOST_NOTES} more notes are in results.json"] if len(about) > MOST_NOTES else []
    told = [*dict.fromkeys(ways), *about[:MOST_NOTES], *more]
    return " ".join(f"{text[:1].upper()}{text[1:]}." if text in ways else f"{text}." for text in told)


def pooled(result: ResultBody) -> TextTable:
    """Noise levels together; nothing to show where every condition has one level."""
    if len(result.pooled) == len(result.conditions):
        return make(result, "pooled", "Noise levels pooled", (), (), "")
    keys = ("missions_with_false_alarm", "missions_with_collision", "victims_found", "cep50_m")
    compared = [m.key for m in METRICS.values() if m.compared]
    rows = []
    for c in result.pooled:
        iqms = (next(s for s in c.scores if s.metric == key) for key in compared)
        rows.append((*head_of(c), c.label, *_cells(c, keys), *map(score, iqms)))
    columns = (*labels(keys), *(f"{label}, IQM" for label in labels(compared)))
    shown = [part for c in result.pooled for part in (*(e for e in c.estimates if e.metric in keys), *c.scores[:1])]
    caption = f"Noise levels together; a pooled IQM trims the easiest and the hardest away. {how(shown)}"
    return make(
        result, "pooled", "Noise levels pooled", ("id", "missions", "invalid", "condition", *columns), rows, caption
    )


def _estimates(result: ResultBody, name: str, title: str, keys: Sequence[str], caption: str) -> TextTable:
    rows = [(*head_of(c), *_cells(c, keys)) for c in result.conditions]
    shown = [e for c in result.conditions for e in c.estimates if e.metric in keys]
    columns = ("id", "missions", "invalid", *labels(keys))
    return make(result, name, title, columns, rows, f"{caption}{how(shown)} {BESIDE}")


def _cells(c: Section, keys: Sequence[str]) -> list[str]:
    """A condition's figures, or why it has none."""
    figures, why = by_metric(c.estimates), {item.metric: item.why for item in c.not_computed}
    return [estimate(figures.get(key), why.get(key, "not computed")) for key in keys]


def _times(result: ResultBody) -> Iterator[Drawn | None]:
    for c in result.conditions:
        for item in c.times:
            if item.n:
                yield from (item, item.restricted_mean)
