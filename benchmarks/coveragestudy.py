"""How often nominal intervals hold the truth: every design and reading, at the seed counts people use.

Tables are drawn with crossed effects: value = level + layout + seed + cell, every seed on the same episodes. All are
normal; or cells have heavy tails (Student's t of three degrees of freedom, same variance); or what falls below zero is
zero, as counts of rare finds are. The truth is computed for both questions, so an interval is simply right or wrong.
Each design is held to both questions, because a method is often quoted for the one it does not answer.

    python -m benchmarks.coveragestudy --tables 2000 --shape heavy --json coverage.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtrit

from sar_analysis.stats.aggregate import iqm
from sar_analysis.stats.designs import ESTIMANDS, Design, left_out
from sar_analysis.stats.interval import READINGS, Reading, bca, jackknife_t, percentile
from sar_analysis.stats.rates import clopper_pearson
from sar_analysis.stats.resampling import distribution
from sar_analysis.stats.scores import Array, Scores, of_matrix
from sar_analysis.stats.statistics import iqm_of
from sar_core.errors import InputError
from sar_core.streams import stream

SEED_COUNTS = (3, 5, 10, 16)
QUESTIONS = ("on these episodes", "on new layouts")
SCHEMA_VERSION = 2
POINTS = 1000
FREEDOM = 3

Shape = Literal["normal", "heavy", "zeros"]


@dataclass(frozen=True)
class Effects:
    """Standard deviations of a crossed table, and the step from one noise level to the next; any one unit."""

    seed: float = 0.5
    layout: float = 1.0
    cell: float = 1.0
    level_step: float = 0.5
    levels: int = 5
    layouts_per_level: int = 10


@dataclass(frozen=True)
class Row:
    """Coverage of one method at one seed count: a fraction of tables, with its own exact 95 % interval."""

    design: Design
    reading: Reading
    question: str
    seeds: int
    tables: int
    coverage: float
    coverage_low: float
    coverage_high: float
    mean_width: float


def mixture_iqm(means: Array, deviation: float) -> float:
    """IQM of an equal mixture of normals (means (k,), one deviation): the mean between its quartiles, in closed form.

    The part of a normal between a and b has first moment m (Phi(b) - Phi(a)) - s (phi(b) - phi(a)), standardised ends.
    """
    low, high = float(means.min()) - 9.0 * deviation, float(means.max()) + 9.0 * deviation

    def share_below(x: float, share: float) -> float:
        return float(ndtr((x - means) / deviation).mean()) - share

    ends = np.array([brentq(share_below, low, high, args=(share,), xtol=1e-12) for share in (0.25, 0.75)])
    z = (ends[:, None] - means) / deviation
    mass = np.diff(ndtr(z), axis=0)[0]
    density = np.diff(np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi), axis=0)[0]
    return float((means * mass - deviation * density).mean() / 0.5)


@cache
def sum_points(normal: float, cell: float, shape: Shape) -> Array:
    """The sum of a normal and a cell effect (standard deviations given) as equally likely values (POINTS,), sorted."""
    shares = (np.arange(POINTS) + 0.5) / POINTS
    cells = cell * (_unit_t(stdtrit(FREEDOM, shares)) if shape == "heavy" else ndtri(shares))
    return np.asarray(
        np.sort(np.add.outer(normal * ndtri(shares), cells), axis=None).reshape(POINTS, POINTS).mean(axis=1)
    )


def true_iqm(means: Array, normal: float, cell: float, shape: Shape) -> float:
    """IQM of an equal mixture about these means (k,): in closed form for normals, otherwise from its points."""
    if shape == "normal":
        return mixture_iqm(means, float(np.hypot(normal, cell)))
    values = np.add.outer(means, sum_points(normal, cell, shape))
    return iqm(np.maximum(values, 0.0) if shape == "zeros" else values)


def draw_table(
    effects: Effects, seeds: int, rng: np.random.Generator, shape: Shape = "normal"
) -> tuple[Scores, dict[str, float]]:
    """One table and the true IQM for either question."""
    level = np.repeat(np.arange(effects.levels), effects.layouts_per_level)
    levels = effects.level_step * np.arange(effects.levels, dtype=np.float64)
    episode = levels[level] + effects.layout * rng.standard_normal(level.size)
    cells = (seeds, level.size)
    noise = _unit_t(rng.standard_t(FREEDOM, cells)) if shape == "heavy" else rng.standard_normal(cells)
    values = episode + effects.seed * rng.standard_normal((seeds, 1)) + effects.cell * noise
    truth = {
        QUESTIONS[0]: true_iqm(episode, effects.seed, effects.cell, shape),
        QUESTIONS[1]: true_iqm(levels, float(np.hypot(effects.seed, effects.layout)), effects.cell, shape),
    }
    return of_matrix("score", np.maximum(values, 0.0) if shape == "zeros" else values, levels=level.tolist()), truth


def _unit_t(values: Array) -> Array:
    """Student's t with its variance, n / (n - 2), taken out."""
    return np.asarray(values * np.sqrt((FREEDOM - 2) / FREEDOM))


def study(
    effects: Effects,
    tables: int,
    resamples: int,
    seed: int,
    seed_counts: Sequence[int] = SEED_COUNTS,
    confidence: float = 0.95,
    shape: Shape = "normal",
) -> list[Row]:
    """Coverage of every design and reading for both questions at each seed count."""
    if tables < 1:
        raise InputError(f"coverage study: {tables} tables; allowed: at least 1")
    rows = []
    for seeds in seed_counts:
        hits: dict[tuple[Design, Reading, str], int] = {}
        widths: dict[tuple[Design, Reading], float] = {}
        for table in range(tables):
            scores, truth = draw_table(effects, seeds, stream("coverage table", seed, seeds, table), shape)
            for design in ESTIMANDS:
                for reading, (low, high) in _intervals(scores, design, resamples, table, confidence).items():
                    widths[design, reading] = widths.get((design, reading), 0.0) + (high - low)
                    for question, true in truth.items():
                        key = (design, reading, question)
                        hits[key] = hits.get(key, 0) + (low <= true <= high)
        for (design, reading, question), count in hits.items():
            exact = clopper_pearson(count, tables)
            width = widths[design, reading] / tables
            rows.append(Row(design, reading, question, seeds, tables, exact.value, exact.low, exact.high, width))
    return rows


def _intervals(
    scores: Scores, design: Design, resamples: int, seed: int, confidence: float
) -> dict[Reading, tuple[float, float]]:
    """Every reading of one table under one design."""
    statistic = iqm_of(scores)
    found = distribution(scores, statistic, design, resamples, seed)
    value = float(statistic(np.ones((1, scores.values.size), dtype=np.uint16))[0])
    without = left_out(scores, design, statistic)
    return {
        "percentile": percentile(found, confidence),
        "bca": bca(found, value, without, confidence),
        "t": jackknife_t(value, without, confidence),
    }


def as_markdown(rows: Sequence[Row]) -> str:
    """A table per question: methods down, seed counts across, coverage in per cent."""
    counts = sorted({row.seeds for row in rows})
    lines = []
    for question in QUESTIONS:
        lines += [f"Truth: {question}", "", "| method | " + " | ".join(f"{n} seeds" for n in counts) + " |"]
        lines.append("|---|" + "---|" * len(counts))
        for design in ESTIMANDS:
            for reading in READINGS:
                cells = {r.seeds: r for r in rows if (r.design, r.reading, r.question) == (design, reading, question)}
                shown = [f"{100 * cells[n].coverage:.1f} %" for n in counts]
                lines.append(f"| {design}, {reading} | " + " | ".join(shown) + " |")
        lines.append("")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study, print the tables, and write the figures as JSON where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coveragestudy", description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=int, default=200, help="tables per seed count")
    parser.add_argument("--resamples", type=int, default=1000, help="bootstrap resamples per interval")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shape", choices=get_args(Shape), default="normal", help="how the values are distributed")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    for name in ("seed", "layout", "cell"):
        default = getattr(Effects, name)
        parser.add_argument(f"--sd-{name}", type=float, default=default, help=f"standard deviation between {name}s")
    given = parser.parse_args(arguments)
    effects = Effects(given.sd_seed, given.sd_layout, given.sd_cell)
    rows = study(effects, given.tables, given.resamples, given.seed, shape=given.shape)
    print(as_markdown(rows))
    if given.json:
        figures = {
            "schema_version": SCHEMA_VERSION,
            "effects": asdict(effects),
            "shape": given.shape,
            "resamples": given.resamples,
            "seed": given.seed,
            "rows": [asdict(row) for row in rows],
        }
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
