"""The tables of the one page: what was asked first is answered first, noise levels and patterns pooled as fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sar_analysis.metrics.catalogue import SEED_RATES, labels
from sar_analysis.metrics.goals import LOST_M
from sar_analysis.render.method import how
from sar_analysis.render.reported import as_adr149, reported
from sar_analysis.render.stagetables import gap_table
from sar_analysis.render.tables import headline
from sar_analysis.render.wording import (
    NONE,
    Ends,
    TextTable,
    by_metric,
    estimate,
    held,
    make,
    number,
    short_list,
    spread,
)
from sar_analysis.results.model import (
    ErratumFigure,
    ErratumRow,
    JudgedGoal,
    NoiseLevel,
    NoiseLevels,
    PatternFamily,
    RefusedGoal,
    ResultBody,
    UnmeasuredClaim,
    UpstreamClaim,
)
from sar_analysis.results.rows import Figure, Kappa
from sar_analysis.stats.scores import numbers

MOST_FAMILIES = 2


def front_tables(result: ResultBody) -> list[TextTable]:
    """In the order in which they are asked for; those with nothing to show are left out."""
    made = [erratum(result), headline(result), reported(result), as_adr149(result), seed_rates(result)]
    made += [leaders(result, family) for family in result.patterns[:MOST_FAMILIES]]
    made += [noise(result), gap_table(result), claims_table(result)]
    return [table for table in made if table.rows]


def erratum(result: ResultBody) -> TextTable:
    """What the definitions it was flown by hid; nothing for a campaign of today's."""
    rows = [_correction(row) for row in result.erratum]
    figures = [row.corrected for row in result.erratum]
    drawn = next((f"{f.resamples} resamples, seed {f.seed}" for f in figures if f.resamples), NONE)
    caption = (
        "The figures below this table are by the definitions it was flown by: a report more than 10 m from every "
        "victim was a false alarm, a victim's own device too, CEP left such errors out, reports after the search "
        "counted. As published, missions that share a layout were taken as independent; the intervals below are over "
        "layouts. Anew: by transmitter, inside the search, errors without a cut, "
        f"intervals over layouts ({drawn}). Recomputed from the same records by: sar-eval erratum results."
    )
    columns = ("figure", "as published", "by today's definitions", "n", "95 % interval")
    return make(result, "erratum", "Erratum: what the old definitions hid", columns, rows, caption)


def _correction(row: ErratumRow) -> tuple[str, ...]:
    now = row.corrected
    words = (correction_words(row.published, row.unit), correction_words(now, row.unit))
    return (row.words, *words, f"{now.n} {now.of}", now.method)


def correction_words(figure: ErratumFigure | None, unit: str) -> str:
    """Value and interval of a figure of the erratum; not every one was published."""
    if figure is None:
        return "not given"
    times, places, sign = (100.0, 1, " %") if unit == "share" else (1.0, 2 if unit == "m" else 1, f" {unit}")
    low, high = ("open" if end is None else f"{times * end:.{places}f}" for end in (figure.low, figure.high))
    return f"{times * figure.value:.{places}f}{sign} [{low}, {high}]"


def seed_rates(result: ResultBody) -> TextTable:
    """The same as the headline, seed by seed; nothing where one seed was flown."""
    several = len({row.seed for row in result.seed_rates}) > 1
    rows = []
    for row in result.seed_rates if several else ():
        figures = by_metric(row.estimates)
        who = "absent" if row.victim_absent else "present"
        head = (row.tier, who, str(row.seed), str(row.missions), str(row.invalid))
        rows.append((*head, *(estimate(figures.get(key), NONE) for key in SEED_RATES)))
    told = how(e for row in result.seed_rates for e in row.estimates)
    caption = f"All conditions of a tier together. {told}"
    head = ("tier", "victims", "seed", "missions", "invalid")
    return make(result, "seed_rates", "Seed by seed", (*head, *labels(SEED_RATES)), rows, caption)


def leaders(result: ResultBody, family: PatternFamily) -> TextTable:
    """Who is best on what, by how much, and whether that can be told from the runner-up."""
    rows = [_leader(goal) for goal in family.goals]
    columns = ("goal", "victims", "best", "value", "runner-up", "value", "better by", "p (Holm)", "told apart from")
    return make(result, "leaders", "Which pattern is best on what", columns, rows, _leaders_caption(family))


def _leader(goal: JudgedGoal | RefusedGoal) -> tuple[str, ...]:
    head = (goal.words, "absent" if goal.victim_absent else "present")
    if isinstance(goal, RefusedGoal):
        return (*head, "refused", *[NONE] * 6)
    metric, values = goal.metric, {v.pattern: v for v in goal.values}
    first, others = values[goal.best[0]], goal.rivals
    name = short_list(goal.best) if others or len(goal.best) == 1 else "all alike"
    led = (name, held(metric, first))
    if not others:
        return (*head, *led, NONE, NONE, NONE, NONE, NONE)
    second = others[0]
    p = NONE if second.p_holm is None else f"{second.p_holm:.3f}"
    gap = held(metric, Ends(second.better_by, second.low, second.high))
    behind = (short_list(goal.runner_up), number(metric, values[second.pattern].value))
    return (*head, *led, *behind, gap, p, f"{goal.told_apart} of {len(others)}")


def _leaders_caption(family: PatternFamily) -> str:
    flown = [goal for goal in family.goals if isinstance(goal, JudgedGoal)]
    basis = "no goal could be judged"
    if flown:
        sizes = sorted({goal.missions for goal in flown})
        layouts = sorted({goal.layouts for goal in flown})
        basis = f"{_range(sizes)} missions per pattern on {_range(layouts)} layouts"
    notes = dict.fromkeys(note for goal in flown for note in goal.notes)
    reasons: dict[str, list[str]] = {}
    for goal in family.goals:
        if isinstance(goal, RefusedGoal):
            reasons.setdefault(goal.refused.partition(": ")[2] or goal.refused, []).append(goal.words)
    refused = [f"{', '.join(words)} refused: {reason}" for reason, words in reasons.items()]
    said = " ".join(f"{text}." for text in (*notes, *refused))
    return (
        f"{family.label}, noise levels pooled, {basis}. Means over missions unless it says IQM; a miss counts as "
        f"{family.horizon_s:.1f} s in times, as {LOST_M:g} m in errors. Paired by seed and episode; "
        f"{family.method}, 95 %; what did not vary by what layouts not seen may do. "
        f"Holm over all {family.comparisons} pairs of patterns and goals; "
        f"told apart: p below 0.05. For rare events this t is rough; their rates stand above. {said}"
    ).strip()


def _range(items: Sequence[int]) -> str:
    return str(items[0]) if len(items) == 1 else f"{items[0]} to {items[-1]}"


def noise(result: ResultBody) -> TextTable:
    """Level by level, all patterns together."""
    rows, said = [], []
    for part in result.noise_levels:
        for row in part.levels:
            rows.append(
                (
                    *(f"{part.tier}, {part.world}", f"{row.sigma:g}", kappa_words(row.kappa)),
                    *(str(row.missions), str(row.invalid)),
                    NONE if row.gate_open is None else spread("gate_open", row.gate_open),
                    *(_share(row.present, name) for name in ("missions_with_detection", "victims_found")),
                    *(_share(side, "missions_with_false_alarm") for side in (row.present, row.absent)),
                )
            )
        said.append(closing_words(part))
    columns = (
        *("where", "σ", "κ", "missions", "invalid"),
        *labels(("gate_open", "missions_with_detection", "victims_found")),
        *("false alarm, victims present", "false alarm, victims absent"),
    )
    levels = [row for part in result.noise_levels for row in part.levels]
    shown = [f for row in levels for f in (row.gate_open, *row.present.values(), *row.absent.values())]
    caption = f"{' '.join(said)} All patterns together; shares of missions and of victims. {how(shown)}"
    return make(result, "noise_levels", "At which noise the gate closes", columns, rows, caption)


def _share(figures: Mapping[str, Figure], name: str) -> str:
    found = figures.get(name)
    return NONE if found is None else spread(name, found)


def kappa_words(kappa: Kappa) -> str:
    """Kappa as tables print it; no phase noise is infinite."""
    return "∞" if isinstance(kappa, str) else f"{kappa:g}"


def closing_words(part: NoiseLevels) -> str:
    """One sentence on where the gate closes, and what that was judged by."""
    c = part.closes
    if c.level is None:
        return f"{part.world}: never closed: the share of {c.judged_by} is half or more at every level."
    before = "the quietest level flown" if c.before is None else f"after {_level(c.before)}"
    return f"{part.world}: closed at {_level(c.level)} ({before}), where the share of {c.judged_by} falls below half."


def _level(level: NoiseLevel) -> str:
    return f"σ {level.sigma:g}, κ {kappa_words(level.kappa)}"


def claims_table(result: ResultBody) -> TextTable:
    """As words."""
    several = len(result.tiers) > 1
    rows = []
    for row in result.upstream:
        name = f"{row.claim} ({row.tier})" if several else row.claim
        rows.append((name, row.claimed, _measured(row), row.verdict.upper(), row.definition, row.source))
    columns = ("claim", "claimed", "measured here, 95 %", "verdict", "what was measured", "source")
    caption = (
        "A claim holds where the whole interval is on its side, does not hold where all of it is on the other side; "
        f"otherwise it cannot be said. {how(row.measured for row in result.upstream)}"
    )
    return make(result, "upstream", "Claimed upstream, measured here", columns, rows, caption)


def _measured(row: UpstreamClaim) -> str:
    m = row.measured
    if m is None:
        return NONE
    if isinstance(m, UnmeasuredClaim):
        return m.why
    return f"{held(row.metric, m)}, n {m.n}"


def where_flown(result: ResultBody) -> str:
    """What lies behind the page, in one line."""
    card = result.card
    sets, worlds = ", ".join(map(str, card.versions.episode_set)), ", ".join(card.versions.worlds)
    patterns = sum(len(family.patterns) for family in result.patterns)
    return (
        f"{worlds}; {patterns} patterns; {len(result.conditions)} conditions; seeds {numbers(card.seeds)}; "
        f"{len(card.episodes)} episodes of {sets}"
    )
