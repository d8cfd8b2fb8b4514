"""The tables of the one page: what was asked first is answered first, noise levels and patterns pooled as fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sar_analysis.metrics.catalogue import SEED_RATES, labels
from sar_analysis.render.stagetables import gap_table
from sar_analysis.render.tables import headline
from sar_analysis.render.wording import NONE, TextTable, by_metric, estimate, make, number, short_list, spread
from sar_analysis.stats.scores import numbers

Result = Mapping[str, Any]
MOST_FAMILIES = 2


def front_tables(result: Result) -> list[TextTable]:
    """In the order in which they are asked for; those with nothing to show are left out."""
    made = [headline(result), seed_rates(result)]
    made += [leaders(result, family) for family in result["patterns"][:MOST_FAMILIES]]
    made += [noise(result), gap_table(result), claims_table(result)]
    return [table for table in made if table.rows]


def seed_rates(result: Result) -> TextTable:
    """The same as the headline, seed by seed; nothing where one seed was flown."""
    several = len({row["seed"] for row in result["seed_rates"]}) > 1
    rows = []
    for row in result["seed_rates"] if several else ():
        figures = by_metric(row["estimates"])
        who = "absent" if row["victim_absent"] else "present"
        head = (row["tier"], who, str(row["seed"]), str(row["missions"]), str(row["invalid"]))
        rows.append((*head, *(estimate(figures.get(key), NONE) for key in SEED_RATES)))
    caption = "All conditions of a tier together. Shares: Clopper-Pearson; rates: exact Poisson; missions independent."
    head = ("tier", "victims", "seed", "missions", "invalid")
    return make(result, "seed_rates", "Seed by seed", (*head, *labels(SEED_RATES)), rows, caption)


def leaders(result: Result, family: Result) -> TextTable:
    """Who is best on what, by how much, and whether that can be told from the runner-up."""
    rows = [_leader(goal) for goal in family["goals"]]
    columns = ("goal", "victims", "best", "value", "runner-up", "value", "better by", "p (Holm)", "told apart from")
    return make(result, "leaders", "Which pattern is best on what", columns, rows, _leaders_caption(family))


def _leader(goal: Result) -> tuple[str, ...]:
    head = (goal["words"], "absent" if goal["victim_absent"] else "present")
    if "refused" in goal:
        return (*head, "refused", *[NONE] * 6)
    metric, values = goal["metric"], {v["pattern"]: v for v in goal["values"]}
    best, others = goal["best"], goal["rivals"]
    led = (short_list(best) if others or len(best) == 1 else "all alike", _value(metric, values[best[0]]))
    if not others:
        return (*head, *led, NONE, NONE, NONE, NONE, NONE)
    second = others[0]
    p = NONE if second["p_holm"] is None else f"{second['p_holm']:.3f}"
    gap = _value(metric, {**second, "value": second["better_by"]})
    behind = (short_list(goal["runner_up"]), number(metric, values[second["pattern"]]["value"]))
    return (*head, *led, *behind, gap, p, f"{goal['told_apart']} of {len(others)}")


def _value(metric: str, item: Result) -> str:
    return number(metric, item["value"]) if item["low"] is None else spread(metric, item)


def _leaders_caption(family: Result) -> str:
    flown = [goal for goal in family["goals"] if "refused" not in goal]
    basis = "no goal could be judged"
    if flown:
        sizes = sorted({goal["missions"] for goal in flown})
        layouts = sorted({goal["layouts"] for goal in flown})
        basis = f"{_range(sizes)} missions per pattern on {_range(layouts)} layouts"
    notes = dict.fromkeys(note for goal in flown for note in goal["notes"])
    reasons: dict[str, list[str]] = {}
    for goal in family["goals"]:
        if "refused" in goal:
            reasons.setdefault(goal["refused"].partition(": ")[2] or goal["refused"], []).append(goal["words"])
    refused = [f"{', '.join(words)} refused: {reason}" for reason, words in reasons.items()]
    said = " ".join(f"{text}." for text in (*notes, *refused))
    return (
        f"{family['label']}, noise levels pooled, {basis}. Means over missions unless it says IQM; a miss counts as "
        f"{family['horizon_s']:.1f} s in times, as 10 m in errors. Paired by seed and episode; {family['method']}, "
        f"95 %; no interval where nothing varied. Holm over all {family['comparisons']} pairs of patterns and goals; "
        f"told apart: p below 0.05. For rare events this t is rough; their exact rates stand above. {said}"
    ).strip()


def _range(items: Sequence[int]) -> str:
    return str(items[0]) if len(items) == 1 else f"{items[0]} to {items[-1]}"


def noise(result: Result) -> TextTable:
    """Level by level, all patterns together."""
    rows, said = [], []
    for part in result["noise_levels"]:
        for row in part["levels"]:
            rows.append(
                (
                    *(f"{part['tier']}, {part['world']}", f"{row['sigma']:g}", kappa_words(row["kappa"])),
                    *(str(row["missions"]), str(row["invalid"])),
                    NONE if row["gate_open"] is None else number("gate_open", row["gate_open"]),
                    *(_share(row["present"], name) for name in ("missions_with_detection", "victims_found")),
                    *(_share(row[side], "missions_with_false_alarm") for side in ("present", "absent")),
                )
            )
        said.append(closing_words(part))
    columns = (
        *("where", "σ", "κ", "missions", "invalid"),
        *labels(("gate_open", "missions_with_detection", "victims_found")),
        *("false alarm, victims present", "false alarm, victims absent"),
    )
    caption = (
        f"{' '.join(said)} All patterns together; shares of missions and of victims, Clopper-Pearson, missions taken "
        "as independent."
    )
    return make(result, "noise_levels", "At which noise the gate closes", columns, rows, caption)


def _share(figures: Result, name: str) -> str:
    return spread(name, figures[name]) if name in figures else NONE


def kappa_words(kappa: Any) -> str:
    """Kappa as tables print it; no phase noise is infinite."""
    return "∞" if isinstance(kappa, str) else f"{kappa:g}"


def closing_words(part: Result) -> str:
    """One sentence on where the gate closes, and what that was judged by."""
    c = part["closes"]
    if c["level"] is None:
        return f"{part['world']}: never closed: the share of {c['judged_by']} is half or more at every level."
    at = f"σ {c['level']['sigma']:g}, κ {kappa_words(c['level']['kappa'])}"
    before = (
        "the quietest level flown"
        if c["before"] is None
        else f"after σ {c['before']['sigma']:g}, κ {kappa_words(c['before']['kappa'])}"
    )
    return f"{part['world']}: closed at {at} ({before}), where the share of {c['judged_by']} falls below half."


def claims_table(result: Result) -> TextTable:
    """As words."""
    several = len(result["tiers"]) > 1
    rows = []
    for row in result["upstream"]:
        name = f"{row['claim']} ({row['tier']})" if several else row["claim"]
        rows.append((name, row["claimed"], _measured(row), row["verdict"].upper(), row["definition"], row["source"]))
    columns = ("claim", "claimed", "measured here, 95 %", "verdict", "what was measured", "source")
    caption = (
        "A claim holds where the whole interval is on its side, does not hold where all of it is on the other side; "
        "otherwise it cannot be said."
    )
    return make(result, "upstream", "Claimed upstream, measured here", columns, rows, caption)


def _measured(row: Result) -> str:
    m = row["measured"]
    if m is None:
        return NONE
    if m["value"] is None:
        return str(m["why"])
    text = number(row["metric"], m["value"]) if m["low"] is None and m["high"] is None else spread(row["metric"], m)
    return f"{text}, n {m['n']}"


def where_flown(result: Result) -> str:
    """What lies behind the page, in one line."""
    card = result["card"]
    sets = ", ".join(map(str, card["versions"]["episode_set"]))
    worlds = ", ".join(card["versions"]["worlds"])
    patterns = sum(len(family["patterns"]) for family in result["patterns"])
    return (
        f"{worlds}; {patterns} patterns; {len(result['conditions'])} conditions; seeds {numbers(card['seeds'])}; "
        f"{len(card['episodes'])} episodes of {sets}"
    )
