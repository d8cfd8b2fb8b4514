"""Every number of a RESULTS.md and its TABLES.md is found again in raw bags by slow independent code, or this fails.

Both are parsed: each cell and each line must show exactly the numbers recount.py expects there, to the digits shown.
A table, a column or a line that recount.py knows nothing of fails too, so no number gets onto them unchecked.
"""

from __future__ import annotations

import importlib.metadata
import math
import os
import platform
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

from sar_analysis.render.markdown import results_markdown, tables_markdown
from sar_analysis.results.document import build_results
from sar_analysis.results.stagegap import Stage1Prediction
from sar_analysis.stage1.rows import Stage1Row
from sar_analysis.table import analyze
from sar_eval.episode.flight import fly_episode
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from tests.oracles import recompute, recount
from tests.oracles.recount import Cell, End, Row

pytestmark = pytest.mark.slow

OVER_LAYOUTS = re.compile(r" \[[^\]]*\]|; mean .*$")
"""What a cell shows of layouts drawn again: the interval, and the mean of a time."""
HOW = re.compile(r"95 % intervals: .*?\.(?= |$)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
COMMON: dict[str, Any] = {
    "world": "village",
    "drones": 2,
    "duration_s": 130.0,
    "victims": 3,
    "decoys": 6,
    "faults": [{"kind": "drone_lost", "drone": 2, "begin_s": 127.0}],
}
"""Long enough for issues, right and wrong ones, and for a look at what was held after a minute."""
SCAN_INTERVAL_S = 3.0
"""Phones scan this often and never sleep, so that so short a search has found most of them."""
FLOWN: tuple[tuple[dict[str, Any], tuple[int, ...], tuple[int, ...]], ...] = (
    ({"pattern": "partitioned_lawnmower"}, (1, 2), (4, 6)),
    ({"pattern": "pheromone"}, (1, 2), (4, 6)),
    ({"pattern": "pheromone", "sigma": 0.3, "kappa": 2.0}, (1, 2), (4, 6)),
    ({"pattern": "pheromone", "victim_absent": True}, (1,), (4,)),
)
STAGE_TITLES = ("What Stage 1 got wrong", "Stage 2 minus Stage 1")
PAPER = "From the paper (paper-to-paper, not a leaderboard standing)"
OVERLAP_SLACK = 0.2
"""Percent: the slow scan looks at ten points of a leg, and a t interval over two seeds magnifies that 13 times."""


FORETOLD: list[Row] = [
    {
        "policy": policy,
        "seed": seed,
        "episode": episode,
        "schema_version": 2,
        "episode_set": "rules-2",
        "return": 1500.0 + 311.0 * seed + 57.0 * episode + 20.0 * len(policy),
        "coverage_240s": 0.02 + 0.01 * seed + 0.001 * episode,
        "detections": (seed + episode) % 3,
        "time_to_first_detection_s": 4.5 * seed if (seed + episode) % 3 else None,
        "localization_error_m": 1.25 * episode if (seed + episode) % 3 else None,
        "false_alarms": (seed * episode) % 2,
    }
    for policy in ("partitioned_lawnmower", "pheromone")
    for seed in (1, 2)
    for episode in (4, 6)
]
"""Stage-1 results made up: what is checked is how they are paired and subtracted."""


@dataclass(frozen=True)
class Page:
    """RESULTS.md and TABLES.md as one text, and the rows that the slow script read out of the bags."""

    text: str
    rows: list[Row]

    @property
    def groups(self) -> list[list[Row]]:
        return recount.conditions(self.rows)

    def sections(self) -> dict[str, list[str]]:
        """The lines below each heading, without empty ones."""
        found: dict[str, list[str]] = {}
        for line in self.text.splitlines():
            if line.startswith("#"):
                title = line.lstrip("# ").split(", Stage 2 (")[0]
                assert numbers(line) == [2.0] or title in (*STAGE_TITLES, *TOGETHER, PAPER), line
                assert title not in found, f"two sections are called {title}"
                found[title] = []
            elif line:
                found[list(found)[-1]].append(line)
        return found


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("campaign")
    bags = []
    for number, (changes, seeds, episodes) in enumerate(FLOWN):
        for seed in seeds:
            for episode in episodes:
                bags.append(folder / f"{number}-{seed}-{episode}")
                mission = prepare(Scenario(**COMMON, **changes), seed, episode)
                often = tuple(replace(d, scan_interval_s=SCAN_INTERVAL_S, sleep_share=0.0) for d in mission.devices)
                fly_episode(replace(mission, devices=often), bags[-1])
    return make_page(folder, bags)


def make_page(folder: Path, bags: list[Path]) -> Page:
    foretold = Stage1Prediction("stage1.jsonl", [Stage1Row.model_validate(row) for row in FORETOLD])
    document = build_results(analyze(folder), stage1=foretold)
    text = f"{results_markdown(document)}\n{tables_markdown(document)}"
    return Page(text, [recompute.whole_row(bag) for bag in bags])


def numbers(text: str) -> list[float]:
    return [float(token) for token in NUMBER.findall(text)]


def agree(text: str, expected: Cell, slack: float = 0.0) -> None:
    """The text shows these numbers in this order, each to its last digit; None is an end said in words."""
    wanted = [value for value in expected if value is not None and not isinstance(value, End)]
    if any(isinstance(value, End) for value in expected) or len(NUMBER.findall(text)) != len(wanted):
        text = OVER_LAYOUTS.sub("", text)
    expected = [value for value in expected if not isinstance(value, End)]
    tokens = NUMBER.findall(text)
    assert len(tokens) == len(wanted), (text, expected)
    assert text.count("open") + text.count(", not reached") == len(expected) - len(wanted), (text, expected)
    for token, value in zip(tokens, wanted, strict=True):
        mantissa, _, power = token.partition("e")
        digits = len(mantissa.partition(".")[2]) - int(power or 0)
        if len(mantissa.lstrip("-").replace(".", "").strip("0")) == 3 and digits <= 0 and abs(value) >= 1000:
            digits = 2 - math.floor(math.log10(abs(value)))
        assert float(token) == pytest.approx(value, abs=0.5000001 * 10.0**-digits + slack, rel=1e-12), (text, expected)


def table(lines: list[str]) -> tuple[list[str], list[list[str]], str]:
    """Columns, rows of cells, and the caption below."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    (caption,) = [line for line in lines if not line.startswith(("|", "-"))]
    return cells[0], cells[2:], caption


def check_caption(page: Page, caption: str, rest: Cell) -> None:
    head = [2, *recount.seed_list(page.rows), len(page.rows), 0]
    said = HOW.sub("", caption)
    agree(said.replace("open", "").replace("not reached", ""), [*head, *rest])


SCORED = tuple(name for name, _ in recount.SCORED)


def flags(page: Page, names: tuple[str, ...]) -> Cell:
    """How sure intervals are; whose 4 values of a metric are all 0; who has 1 seed where at least 2 are needed."""
    several = [len({r["seed"] for r in g}) > 1 for g in page.groups]
    flat = [k for k, g in enumerate(page.groups) if several[k] and any(all(r[n] == 0 for r in g) for n in names)]
    lone = [k for k in range(len(page.groups)) if not several[k]]
    told = sorted([(flat, [4, 0]), (lone, [1, 2])])
    return [95, *(x for ids, rest in told if ids for x in (*(k + 1 for k in ids), *rest))]


CONDITIONS: dict[str, tuple[Any, Any]] = {
    "What was flown": (recount.flown, []),
    "False alarms and collisions": (recount.alarms, []),
    "Contacts by kind": (recount.contacts, []),
    "Finding victims": (recount.finding, []),
    "Times": (recount.times, []),
    "IQM (these seeds, new layouts)": (recount.these_seeds, None),
    "IQM (new seeds, these episodes)": (recount.scores, SCORED),
    "IQM (new seeds, new layouts)": (recount.new_layouts, SCORED[:2]),
    "Noise envelope": (recount.envelope, []),
    "Localisation error by geometry": (recount.bands, [50, 95]),
    "Performance profile": (recount.profile, []),
}
NEEDS_VICTIMS = ("Localisation error by geometry", "Performance profile")


@pytest.mark.parametrize("title", CONDITIONS)
def test_a_table_with_a_row_per_condition(page: Page, title: str) -> None:
    of, rest = CONDITIONS[title]
    columns, rows, caption = table(page.sections()[title])
    groups = [(k, g) for k, g in enumerate(page.groups, start=1) if g[0]["victims"] or title not in NEEDS_VICTIMS]
    assert len(rows) == len(groups)
    for cells, (k, group) in zip(rows, groups, strict=True):
        expected: list[Cell] = [[k], [len(group)], [0], *of(group)]
        assert len(cells) == len(expected) == len(columns)
        for column, cell, wanted in zip(columns, cells, expected, strict=True):
            agree(cell, wanted, slack={"overlap": OVERLAP_SLACK, "least separation": 2e-3}.get(column, 0.0))
    if rest is None:
        assert "10000 resamples, bootstrap seed 0" in caption
    else:
        check_caption(page, caption, flags(page, rest) if title.startswith("IQM") else rest)


def test_the_first_ten_seconds(page: Page) -> None:
    lines = page.sections()["In ten seconds"]
    _, rows, caption = table(lines)
    sides = [[r for r in page.rows if bool(r["victims"]) == present] for present in (True, False)]
    sides.sort(key=lambda side: page.groups[0][0] not in side)
    for cells, side in zip(rows, sides, strict=True):
        for cell, wanted in zip(cells, recount.headline(side, page.rows), strict=True):
            agree(cell, wanted)
    check_caption(page, caption, [len(page.groups)])
    flown, conditional, registered = (line for line in lines if line.startswith("- "))
    patterns = {r["configuration"]["pattern"] for r in page.rows}
    episodes = {r["episode"] for r in page.rows}
    what = [len(patterns), len(page.groups), *recount.seed_list(page.rows), len(episodes), -2]
    agree(flown, [len(page.rows), len(page.rows), 0, 1, *what])
    agree(conditional, [len({r["seed"] for r in page.rows})])
    agree(registered, [])


TOGETHER: dict[str, tuple[Any, Cell]] = {
    "What the reports came to": (recount.came_to, []),
    "As ADR-149 defines it": (recount.upstream_metrics, [-149, 4.1, 0.85, 1.5]),
}


@pytest.mark.parametrize("title", TOGETHER)
def test_missions_with_victims_and_without_together(page: Page, title: str) -> None:
    of, rest = TOGETHER[title]
    columns, rows, caption = table(page.sections()[title])
    patterns = sorted({r["configuration"]["pattern"] for r in page.rows})
    groups = [page.rows, *([r for r in page.rows if r["configuration"]["pattern"] == name] for name in patterns)]
    assert [row[1] for row in rows] == ["all patterns", *(name.replace("_", " ") for name in patterns)]
    for cells, group in zip(rows, groups, strict=True):
        for column, cell, wanted in zip(columns, cells, [[], [], [len(group)], [0], *of(group)], strict=True):
            agree(cell, wanted, slack=OVERLAP_SLACK if column == "overlap" else 0.0)
    check_caption(page, caption, rest)


LOOKS: dict[str, tuple[Any, Cell]] = {
    "Error by geometry, at fixed times": (recount.look_bands, []),
    "Which dilution foretells the error": (recount.look_correlations, []),
    "Error by number of views, at fixed times": (recount.look_views, [1, 50, 24]),
    "Error at fixed times": (recount.look_errors, []),
}


@pytest.mark.parametrize("title", LOOKS)
def test_what_was_held_at_fixed_times(page: Page, title: str) -> None:
    of, rest = LOOKS[title]
    _, rows, caption = table(page.sections()[title])
    expected = of(page.rows)
    assert len(rows) == len(expected) > 0
    check_rows(rows, expected)
    check_caption(page, caption, [*sorted({fix["mark"] for fix in recount.looks(page.rows)}), *rest])


def test_noise_levels_pooled(page: Page) -> None:
    _, rows, caption = table(page.sections()["Noise levels pooled"])
    pools = recount.pools(page.rows)
    assert len(rows) == len(pools) < len(page.groups)
    for k, (cells, pool) in enumerate(zip(rows, pools, strict=True), start=1):
        for cell, wanted in zip(cells, [[k], [len(pool)], [0], *recount.pooled(pool)], strict=True):
            agree(cell, wanted)
    check_caption(page, caption, [])


def test_each_seed(page: Page) -> None:
    _, rows, caption = table(page.sections()["Each seed"])
    expected = [
        [[k], [len(own)], [0], *recount.one_seed(own)]
        for k, group in enumerate(page.groups, start=1)
        for seed in sorted({r["seed"] for r in group})
        if (own := [r for r in group if r["seed"] == seed])
    ]
    for cells, wanted in zip(rows, expected, strict=True):
        for cell, values in zip(cells, wanted, strict=True):
            agree(cell, values)
    check_caption(page, caption, [])


def test_pattern_against_pattern(page: Page) -> None:
    _, rows, caption = table(page.sections()["Pattern against pattern"])
    expected = recount.comparisons(recount.pools(page.rows))
    assert len(rows) == len(expected) == 2
    for cells, wanted in zip(rows, expected, strict=True):
        for cell, values in zip(cells, wanted, strict=True):
            agree(cell, values)
    check_caption(page, caption, [5, 80, 2, 95, 2 * 0.05, 97.5])


def test_confidence(page: Page) -> None:
    _, rows, caption = table(page.sections()["Is the confidence right?"])
    expected, scored = recount.reliability(page.rows)
    for cells, wanted in zip(rows, expected, strict=True):
        for cell, values in zip(cells, wanted, strict=True):
            agree(cell, values)
    check_caption(page, caption, scored)


def shown(value: Any) -> str:
    """A setting as the card prints it."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(shown, value)) or "none"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = format(value, "g") if isinstance(value, float) else str(value)
    return text[:12] if len(text) == 64 else text


def test_reporting_card(page: Page) -> None:
    fixed, varied, compute, versions, seeds = page.sections()["Reporting card"]
    settings = [dict(r["configuration"]) for r in page.rows]
    for s in settings:
        s["wind_mps"] = round(math.hypot(*s["wind_mps"]), 6)
        for name in ("seed", "episode", "name", "tier", "episode_set"):
            s.pop(name)
    same = {k: v for k, v in sorted(settings[0].items()) if all(s[k] == v for s in settings)}
    assert fixed == "- Fixed: " + "; ".join(f"{k} {shown(v)}" for k, v in same.items()) + "."
    other = {k: sorted({s[k] for s in settings}, key=str) for k in sorted(settings[0]) if k not in same}
    told = [
        f"{k}: {', '.join('yes' if v is True else 'no' if v is False else shown(v) for v in vs)}"
        for k, vs in other.items()
    ]
    assert varied == "- Varied: " + "; ".join(told) + "."
    simulated = sum(r["flight_time_s"] for r in page.rows) / 3600
    agree(compute, [len(page.rows), recount.hours(page.rows), simulated])
    world = page.rows[0]["configuration"]["world_sha256"][:12]
    host = f"numpy {np.__version__}, scipy {scipy.__version__} on {platform.system()} {platform.machine()}"
    ours = (
        f"{importlib.metadata.version('sar-eval')}, Python {platform.python_version()}, {host}, {os.cpu_count()} CPUs."
    )
    flown = f"- Versions: flown by sar_eval {page.rows[0]['version']}, episode set rules-2; worlds village {world}. "
    assert versions == f"{flown}Analysed by sar_eval {ours}"
    agree(seeds, [*recount.seed_list(page.rows), *recount.seed_list(page.rows, "episode"), 10_000, 0])


def check_rows(rows: list[list[str]], expected: list[list[Cell]], columns: list[str] | None = None) -> None:
    for cells, wanted in zip(rows, expected, strict=True):
        names = columns or [""] * len(cells)
        for column, cell, values in zip(names, cells, wanted, strict=True):
            agree(cell, values, slack=OVERLAP_SLACK if column == "overlap" or cells[0] == "overlap" else 0.0)


def test_seed_by_seed(page: Page) -> None:
    _, rows, caption = table(page.sections()["Seed by seed"])
    check_rows(rows, recount.seed_rates(page.rows))
    check_caption(page, caption, [])


def test_who_is_best_on_what(page: Page) -> None:
    _, rows, caption = table(page.sections()["Which pattern is best on what"])
    expected, compared = recount.leaders(page.rows)
    check_rows(rows, [cells for _, cells in expected])
    assert [row[0] for row in rows] == list(recount.GOALS)
    assert [[row[2], row[4]] for row in rows] == [names for names, _ in expected]
    sizes = [len(next(iter(recount.goal_tables(goal, page.rows).values()))) for goal in recount.GOALS]
    layouts = [len({k[1] for own in recount.goal_tables(g, page.rows).values() for k in own}) for g in recount.GOALS]
    basis = [2, min(sizes), max(sizes), min(layouts), max(layouts)]
    told = [recount.horizon(page.rows), recount.LOST_M, 95, compared, 0.05]
    check_caption(page, caption, [*basis, *told, 2, 4])


def test_pattern_by_pattern(page: Page) -> None:
    columns, rows, caption = table(page.sections()["Pattern by pattern"])
    tables = [recount.goal_tables(goal, page.rows) for goal in recount.GOALS]
    names = sorted({r["configuration"]["pattern"].replace("_", " ") for r in page.rows})
    expected = [
        [
            [2],
            [],
            *(
                recount.pattern_value(goal, own[name]) if name in own else []
                for goal, own in zip(recount.GOALS, tables, strict=True)
            ),
        ]
        for name in names
    ]
    assert [row[1] for row in rows] == names
    assert columns[2:] == list(recount.GOALS)
    check_rows(rows, expected, columns)
    check_caption(page, caption, [95])


def test_where_the_gate_closes(page: Page) -> None:
    _, rows, caption = table(page.sections()["At which noise the gate closes"])
    expected, closed = recount.levels(page.rows)
    check_rows(rows, expected)
    check_caption(page, caption, closed)
    assert "the share of missions with a detection" in caption, "bags do not tell what gates did"


CLAIMED: tuple[tuple[Cell, Cell, Cell], ...] = (
    ([1.732], [50], [-148, -149]),
    ([1.732], [50], [-148, -149]),
    ([2], [50, 3], [4]),
    ([5], [50, 2], [50, 5, 5]),
    ([223], [95, 4, 5], [-148, -149]),
    ([95], [240, 4, 95], [4]),
    ([1.0], [240, 420, 250, 0], [1, 10, 10]),
    ([100], [28], [1, 10, 10]),
    ([5, 810], [], [2604.09115, -148, -149]),
    ([3.3, 43, 54, 248], [], [-149, 4.3]),
)
"""The numbers claimed, in the definition, and in the source, as the sources have them."""


def _judged(found: str, limit: float) -> str:
    """The verdict on a claim of at most so much, by the interval that is shown."""
    low, high = (
        math.nan if end == "open" else float(end) for end in found.partition("[")[2].partition("]")[0].split(", ")
    )
    return "HOLDS" if high <= limit else "DOES NOT HOLD" if low > limit else "CANNOT BE SAID"


def test_claims_are_what_the_sources_say_and_verdicts_what_the_bags_say(page: Page) -> None:
    _, rows, caption = table(page.sections()["Claimed upstream, measured here"])
    for cells, claimed, (measured, verdict) in zip(rows, CLAIMED, recount.claims(page.rows), strict=True):
        _, said, found, told, definition, source = cells
        agree(said, claimed[0])
        agree(found, measured)
        shown_verdict = _judged(found, numbers(said)[0]) if "[" in found else "CANNOT BE SAID"
        assert told == (verdict if verdict == "NOT MEASURED HERE" else shown_verdict)
        agree(definition, claimed[1])
        agree(source, claimed[2])
    names = [number for cells in rows for number in numbers(cells[0])]
    assert names == [3, 2, 160, 0, 160, 0, 4, 2, 5, 160, 0, 810]
    check_caption(page, caption, [])


def _shown_changes(page: Page) -> dict[str, dict[str, tuple[float, float] | None]]:
    """The intervals over layouts in the table of changes, by metric and pattern; None with an open end."""
    columns, rows, _ = table(page.sections()["Stage 2 minus Stage 1"])
    found: dict[str, dict[str, tuple[float, float] | None]] = {name: {} for name in columns[2:]}
    for row in rows:
        for name, cell in zip(columns[2:], row[2:], strict=True):
            ends = cell.partition("[")[2].partition("]")[0].split(", ")
            found[name][row[0]] = None if "open" in ends or len(ends) < 2 else (float(ends[0]), float(ends[1]))
    return found


def test_stage_1_against_stage_2(page: Page) -> None:
    _, rows, caption = table(page.sections()["What Stage 1 got wrong"])
    expected = recount.stage_gap(page.rows, FORETOLD, _shown_changes(page))
    assert [(row[0], row[5]) for row in rows] == [(metric, most) for metric, most, _, _ in expected]
    check_rows(rows, [cells for _, _, cells, _ in expected])
    present = [r for r in page.rows if not r["configuration"]["victim_absent"]]
    how = [2, 1, 0, 2, len(present)]
    ranked = {metric: cells[2][0] for metric, _, cells, _ in expected if cells[2]}
    kept = [240.0 for metric, tau in ranked.items() if tau == 1.0 and "240" in metric]
    worst = min(ranked.items(), key=lambda item: item[1] or 0.0)
    differs = [] if worst[1] == 1.0 else [*([240.0] if "240" in worst[0] else []), worst[1]]
    patterns = len({r["configuration"]["pattern"] for r in present})
    judged: Cell = []
    for side in (0, 1):
        counts = [(metric, sides[side]) for metric, _, _, sides in expected if sides[side]]
        judged += [1] if counts else []
        judged += [x for metric, n in counts for x in (*([240] if "240" in metric else []), n, patterns)]
    collisions = [1, 2, sum(r["collisions"] for r in present), len(present)]
    check_caption(page, caption, [*kept, *differs, *judged, *collisions, *how])


def test_stage_2_minus_stage_1(page: Page) -> None:
    _, rows, caption = table(page.sections()["Stage 2 minus Stage 1"])
    changes = recount.stage_changes(page.rows, FORETOLD)
    names = list(next(iter(changes.values())))
    assert [row[0] for row in rows] == names
    check_rows(rows, [[[], [], *(own[name][2] for own in changes.values())] for name in names])
    check_caption(page, caption, [2, 1, 0, 2, sum(not r["configuration"]["victim_absent"] for r in page.rows)])


def test_how_to_do_it_again(page: Page) -> None:
    analysed, seeds = page.sections()["To do it again"]
    host = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    assert analysed.endswith(f"; {host}, numpy {np.__version__}, scipy {scipy.__version__}.")
    world = page.rows[0]["configuration"]["world_sha256"][:12]
    flown = f"flown by sar_eval {page.rows[0]['version']}; worlds village {world}."
    told = ", ".join(map(str, recount.seed_list(page.rows)))
    assert seeds == f"- Seeds {told}; episode set rules-2; {flown}"


def test_what_is_left_is_known_word_for_word(page: Page) -> None:
    sections = page.sections()
    agree(" ".join(sections["Invalid missions"]), [0, len(page.rows)])
    assert sections["Stage 2 (embedded): every table"] == ["The page that comes first is [RESULTS.md](RESULTS.md)."]
    by_seeds: dict[tuple[int, ...], list[int]] = {}
    for k, group in enumerate(page.groups, start=1):
        by_seeds.setdefault(tuple(sorted({r["seed"] for r in group})), []).append(k)
    told = [x for seeds, ids in by_seeds.items() for x in (*ids, *seeds)]
    agree(" ".join(sections["Warnings"]), told)
    agree(" ".join(sections["What does not count"]), [0, len(page.rows), *told])
    paper = sections[PAPER]
    agree(paper[2], [2, 5, 160_000, 810, 18.4, 1, 2604.09115, 2026, -148, -149])
    agree(paper[0] + paper[3], [])
    tested = {
        *CONDITIONS,
        *TOGETHER,
        *LOOKS,
        *("In ten seconds", "Noise levels pooled", "Each seed", "Pattern against pattern", "Is the confidence right?"),
        *("Reporting card", "Invalid missions", "Warnings", "Stage 2 (embedded): every table"),
        *("Seed by seed", "Which pattern is best on what", "Pattern by pattern", "At which noise the gate closes"),
        *("Claimed upstream, measured here", "What does not count", "To do it again"),
        *("Stage 2 (embedded): results on one page", PAPER, *STAGE_TITLES),
    }
    assert set(sections) == tested, "a section that nothing here recomputes"
    assert sections["Stage 2 (embedded): results on one page"] == []


def test_the_campaign_has_what_there_is_to_count(page: Page) -> None:
    assert all(recount.total(page.rows, name) for name in ("detections", "displaced", "false_alarms", "collisions"))
    assert any(v["error"] is None for r in page.rows for v in r["victims"])


def test_a_wrong_digit_is_noticed(page: Page) -> None:
    lines = page.sections()["False alarms and collisions"]
    wrong = [line.replace(" embedded | 4 ", " embedded | 5 ") for line in lines]
    assert wrong != lines
    with pytest.raises(AssertionError):
        agree(table(wrong)[1][0][1], [len(page.groups[0])])
    with pytest.raises(AssertionError):
        agree("12.34 m [open, 15.1]", [12.35, None, 15.1])
    agree("12.34 m [open, 15.1]", [12.344, None, 15.14])
