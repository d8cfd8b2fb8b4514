"""Every number of a RESULTS.md is found again in raw bags by slow independent code, or this fails.

The page is parsed: each cell and each line must show exactly the numbers recount.py expects there, to the digits shown.
A table, a column or a line that recount.py knows nothing of fails too, so no number gets onto the page unchecked.
"""

from __future__ import annotations

import importlib.metadata
import math
import os
import platform
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy

from sar_analysis.markdown import results_markdown
from sar_analysis.results import build_results
from sar_analysis.table import analyze
from sar_eval.config import Scenario, prepare
from sar_eval.episode import fly_episode
from tests.unit.sar_analysis import recompute, recount
from tests.unit.sar_analysis.recount import Cell, Row

pytestmark = pytest.mark.slow

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
COMMON: dict[str, Any] = {
    "world": "village",
    "drones": 2,
    "duration_s": 12.0,
    "victims": 3,
    "decoys": 4,
    "faults": [{"kind": "drone_lost", "drone": 2, "begin_s": 9.0}],
}
FLOWN: tuple[tuple[dict[str, Any], tuple[int, ...], tuple[int, ...]], ...] = (
    ({"pattern": "partitioned_lawnmower"}, (1, 2), (3, 5)),
    ({"pattern": "pheromone"}, (1, 2), (3, 5)),
    ({"pattern": "pheromone", "sigma": 0.3, "kappa": 2.0}, (1, 2), (3, 5)),
    ({"pattern": "pheromone", "victim_absent": True}, (1,), (3,)),
)
OVERLAP_SLACK = 0.2
"""Percent: the slow scan looks at ten points of a leg, and a t interval over two seeds magnifies that 13 times."""


@dataclass(frozen=True)
class Page:
    """The page as text, and the rows that the slow script read out of its bags."""

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
                assert numbers(line) == [2.0] or "paper-to-paper" in line, line
                found[line.lstrip("# ").split(", Stage 2")[0]] = []
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
                fly_episode(prepare(Scenario(**COMMON, **changes), seed, episode), bags[-1])
    return Page(results_markdown(build_results(analyze(folder))), [recompute.whole_row(bag) for bag in bags])


def numbers(text: str) -> list[float]:
    return [float(token) for token in NUMBER.findall(text)]


def agree(text: str, expected: Cell, slack: float = 0.0) -> None:
    """The text shows these numbers in this order, each to its last digit; None is an end said in words."""
    tokens = NUMBER.findall(text)
    wanted = [value for value in expected if value is not None]
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
    agree(caption.replace("open", "").replace("not reached", ""), [*head, *rest])


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
    "IQM (new seeds, these episodes)": (recount.scores, SCORED),
    "IQM (new seeds, new layouts)": (recount.new_layouts, SCORED[:2]),
    "Noise envelope": (recount.envelope, [50]),
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
    check_caption(page, caption, flags(page, rest) if title.startswith("IQM") else rest)


def test_the_first_ten_seconds(page: Page) -> None:
    lines = page.sections()["In ten seconds"]
    _, rows, caption = table(lines)
    sides = [[r for r in page.rows if bool(r["victims"]) == present] for present in (True, False)]
    sides.sort(key=lambda side: page.groups[0][0] not in side)
    for cells, side in zip(rows, sides, strict=True):
        for cell, wanted in zip(cells, recount.headline(side), strict=True):
            agree(cell, wanted)
    check_caption(page, caption, [len(page.groups), 95])
    flown, conditional, registered = (line for line in lines if line.startswith("- "))
    agree(flown, [len(page.rows), len(page.rows), 0, 1])
    agree(conditional, [len({r["seed"] for r in page.rows})])
    agree(registered, [])


def test_noise_levels_pooled(page: Page) -> None:
    _, rows, caption = table(page.sections()["Noise levels pooled"])
    pools: dict[Any, list[Row]] = {}
    for group in page.groups:
        c = group[0]["configuration"]
        pools.setdefault((c["pattern"], c["victim_absent"]), []).extend(group)
    assert len(rows) == len(pools) < len(page.groups)
    for k, (cells, pool) in enumerate(zip(rows, pools.values(), strict=True), start=1):
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
    expected = recount.comparisons(page.groups)
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
    flown = f"- Versions: flown by sar_eval {page.rows[0]['version']}, episode set rules-1; worlds village {world}. "
    assert versions == f"{flown}Analysed by sar_eval {ours}"
    agree(seeds, [*recount.seed_list(page.rows), *recount.seed_list(page.rows, "episode"), 10_000, 0])


def test_what_is_left_is_known_word_for_word(page: Page) -> None:
    sections = page.sections()
    agree(" ".join(sections["Invalid missions"]), [0, len(page.rows)])
    by_seeds: dict[tuple[int, ...], list[int]] = {}
    for k, group in enumerate(page.groups, start=1):
        by_seeds.setdefault(tuple(sorted({r["seed"] for r in group})), []).append(k)
    agree(" ".join(sections["Warnings"]), [x for seeds, ids in by_seeds.items() for x in (*ids, *seeds)])
    paper = sections["From the paper (paper-to-paper, not a leaderboard standing)"]
    agree(paper[2], [2, 5, 160_000, 810, 18.4, 1, 2604.09115, 2026, -148, -149])
    agree(paper[0] + paper[3], [])
    tested = {
        *CONDITIONS,
        *("In ten seconds", "Noise levels pooled", "Each seed", "Pattern against pattern", "Is the confidence right?"),
        *("Reporting card", "Invalid missions", "Warnings", "Stage 2 (embedded): results"),
        "From the paper (paper-to-paper, not a leaderboard standing)",
    }
    assert set(sections) == tested, "a section that nothing here recomputes"
    assert sections["Stage 2 (embedded): results"] == []


def test_a_wrong_digit_is_noticed(page: Page) -> None:
    lines = page.sections()["False alarms and collisions"]
    wrong = [line.replace(" embedded | 4 ", " embedded | 5 ") for line in lines]
    assert wrong != lines
    with pytest.raises(AssertionError):
        agree(table(wrong)[1][0][1], [len(page.groups[0])])
    with pytest.raises(AssertionError):
        agree("12.34 m [open, 15.1]", [12.35, None, 15.1])
    agree("12.34 m [open, 15.1]", [12.344, None, 15.14])
