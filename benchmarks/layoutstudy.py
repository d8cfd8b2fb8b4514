"""How often nominal 95 % intervals over layouts hold the truth: what is printed, beside what else could be.

Shares have beta or logit-normal layouts, rates gamma layouts with Poisson counts, errors lognormal ones throughout. The
correlation is that of two missions of one layout (of errors: of their logarithms). Where a layout is flown once it
cannot be seen and only 0 is drawn. `printed` is `sar_analysis.stats.clustered`, rule and all; an end that cannot be
given counts as open, not as missed.

    python -m benchmarks.layoutstudy --tables 10000 --json layouts.json --markdown layouts.md
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri

from sar_analysis.stats import clustered
from sar_analysis.stats.effective import Ends, effective_poisson, korn_graubard
from sar_analysis.stats.interval import Array, Interval, bca, expanded_percentile, jackknife_t, percentile
from sar_analysis.stats.layouts import Options, draws
from sar_analysis.stats.rates import clopper_pearson, order_quantile, poisson_rate
from sar_analysis.stats.statistics import Statistic, order_quantiles, trimmed_means
from sar_core.errors import InputError
from sar_core.streams import stream

Kind = Literal["share", "rate", "cep50", "cep95", "mean", "iqm"]
DESIGNS = ((10, 3), (200, 1))
TRUTHS = (0.005, 0.02, 0.10, 0.25, 0.60)
CORRELATIONS = (0.0, 0.2, 0.4, 0.6, 0.8)
SPREAD = 0.8
"""Standard deviation of the logarithm of an error."""
FEWEST = 93.0
CONFIDENCE = 0.95
SCHEMA_VERSION = 1
POINTS = 4000


@dataclass(frozen=True)
class Cell:
    """What tables are drawn from; ``truth`` is the share, the rate per mission, or the errors' true figure."""

    kind: Kind
    layouts: int
    seeds: int
    model: str
    truth: float
    correlation: float


@dataclass(frozen=True)
class Row:
    """Coverage of one method in one cell with its own exact 95 % interval; widths are of intervals with both ends."""

    cell: Cell
    method: str
    tables: int
    coverage: float
    coverage_low: float
    coverage_high: float
    mean_width: float | None
    without_width: float
    open_ended: float


def cells(kinds: Sequence[Kind], designs: Sequence[tuple[int, int]]) -> Iterator[Cell]:
    """Every cell of the study."""
    for kind in kinds:
        for layouts, seeds in designs:
            for model in (
                ("beta", "logit-normal") if kind == "share" else ("gamma",) if kind == "rate" else ("lognormal",)
            ):
                for truth in TRUTHS if kind in ("share", "rate") else (true_figure(kind),):
                    for correlation in CORRELATIONS if seeds > 1 else (0.0,):
                        if correlation > 0.0 or model != "logit-normal":
                            yield Cell(kind, layouts, seeds, model, truth, correlation)


def true_figure(kind: Kind) -> float:
    """Of errors whose logarithm is normal about 0: median, 95 % quantile, mean, mean of the middle half."""
    if kind in ("cep50", "cep95"):
        return math.exp(SPREAD * float(ndtri(quantile_of(kind))))
    whole = math.exp(0.5 * SPREAD**2)
    quartile = float(ndtri(0.75))
    return whole if kind == "mean" else whole * float(ndtr(quartile - SPREAD) - ndtr(-quartile - SPREAD)) / 0.5


def quantile_of(kind: Kind) -> float:
    return 0.95 if kind == "cep95" else 0.5


def logit_normal(share: float, correlation: float) -> tuple[float, float]:
    """Mean and deviation of the logit at which layouts have this mean share and their missions this correlation."""
    z = ndtri((np.arange(POINTS) + 0.5) / POINTS)

    def centre(deviation: float) -> float:
        return float(brentq(lambda mu: expit(mu + deviation * z).mean() - share, -500.0, 500.0))

    def excess(deviation: float) -> float:
        shares = expit(centre(deviation) + deviation * z)
        return float(((shares**2).mean() - share**2) / (share - share**2)) - correlation

    deviation = float(brentq(excess, 1e-3, 100.0))
    return centre(deviation), deviation


def draw_tables(cell: Cell, tables: int, rng: np.random.Generator) -> Array:
    """Outcomes of all missions: (tables, layouts, seeds) errors, or (tables, layouts) totals of counts, sorted."""
    c, shape, truth = cell.correlation, (tables, cell.layouts), cell.truth
    if cell.kind == "share":
        shares = np.full(shape, truth)
        if cell.model == "beta" and c:
            size = (1.0 - c) / c
            shares = rng.beta(truth * size, (1.0 - truth) * size, shape)
        elif c:
            centre, deviation = logit_normal(truth, c)
            shares = expit(centre + deviation * rng.standard_normal(shape))
        return np.sort(rng.binomial(cell.seeds, shares), axis=1).astype(np.float64)
    if cell.kind == "rate":
        between = truth * c / (1.0 - c)
        rates = rng.gamma(truth**2 / between, between / truth, shape) if c else np.full(shape, truth)
        return np.sort(rng.poisson(cell.seeds * rates), axis=1).astype(np.float64)
    own = rng.standard_normal((*shape, cell.seeds))
    return np.exp(SPREAD * (math.sqrt(c) * rng.standard_normal((*shape, 1)) + math.sqrt(1.0 - c) * own))


def count_intervals(cell: Cell, totals: Array, options: Options) -> dict[str, Ends]:
    """Every interval of a share or a rate from the events of each layout (layouts,)."""
    m, n = len(totals), cell.seeds * len(totals)
    sizes, events = np.full(m, float(cell.seeds)), int(totals.sum())
    names = np.repeat(np.arange(m), cell.seeds).tolist()
    if cell.kind == "share":
        had = (np.arange(cell.seeds) < totals[:, None]).ravel()
        printed, exact = clustered.share(had, 1, names, options), clopper_pearson(events, n)
        rare = {"Clopper-Pearson": (exact.low, exact.high), "Korn-Graubard": korn_graubard(totals, sizes)}
    else:
        # Which mission of a layout had the events does not matter to a rate.
        counts = np.zeros((m, cell.seeds))
        counts[:, 0] = totals
        printed, exact = clustered.rate(counts, 1, names, options), poisson_rate(events, n, "mission")
        rare = {"Poisson": (exact.low, exact.high), "effective Poisson": effective_poisson(totals, sizes, n)}
    return {"printed": _ends(printed), **rare, **_resampled(lambda c: (c @ totals) / (c @ sizes), m, options)}


def error_intervals(cell: Cell, errors: Array, options: Options) -> dict[str, Ends]:
    """Every interval of a figure of errors (layouts, seeds)."""
    m = len(errors)
    flat, of = errors.ravel(), np.repeat(np.arange(m), cell.seeds)
    order = np.argsort(flat, kind="stable")
    ordered, places, q = flat[order], of[order], quantile_of(cell.kind)
    if cell.kind in ("cep50", "cep95"):
        exact = order_quantile(flat.tolist(), q)
        printed = clustered.quantile(flat, q, of.tolist(), options)
        statistic: Statistic = lambda c: order_quantiles(c, places, ordered, q)  # noqa: E731
        return {
            "printed": _ends(printed),
            "order statistics": _ends(exact),
            **_resampled(statistic, m, options),
        }
    if cell.kind == "iqm":
        printed = clustered.iqm(flat, of.tolist(), options)
        return {"printed": _ends(printed), **_resampled(lambda c: trimmed_means(c, places, ordered), m, options)}
    sums = errors.sum(axis=1)
    printed = clustered.mean(flat, of.tolist(), options)
    return {
        "printed": _ends(printed),
        **_resampled(lambda c: (c @ sums) / (c.sum(axis=1, dtype=np.float64) * cell.seeds), m, options),
    }


def _resampled(statistic: Statistic, layouts: int, options: Options) -> dict[str, Ends]:
    """Percentile, expanded percentile, BCa and the jackknife's t; the last two are the value where nothing varied."""
    found = statistic(draws(layouts, options.resamples, options.seed))
    value = float(statistic(np.ones((1, layouts), dtype=np.uint16))[0])
    left = statistic((1 - np.eye(layouts)).astype(np.uint16))
    varied = bool((found < value).any() and (found > value).any() and (left != left[0]).any())
    return {
        "percentile": percentile(found, CONFIDENCE),
        "expanded percentile": expanded_percentile(found, layouts, CONFIDENCE),
        "BCa": bca(found, value, [left], CONFIDENCE) if varied else (value, value),
        "jackknife t": jackknife_t(value, [left], CONFIDENCE),
    }


def _ends(found: Interval) -> Ends:
    return found.low, found.high


def study_cell(cell: Cell, tables: int, options: Options, seen: dict[bytes, dict[str, Ends]]) -> list[Row]:
    """Every method's coverage; tables of counts that came before are not computed again (``seen``)."""
    if tables < 1:
        raise InputError(f"layout study: {tables} tables; allowed: at least 1")
    rng = stream(f"layout study {cell}")
    drawn = draw_tables(cell, tables, rng)
    ends: dict[str, list[Ends]] = {}
    of_counts = cell.kind in ("share", "rate")
    for table in drawn:
        if of_counts:
            key = f"{cell.kind} {cell.seeds} ".encode() + table.tobytes()
            if key not in seen:
                seen[key] = count_intervals(cell, table, options)
            found = seen[key]
        else:
            found = error_intervals(cell, table, options)
        for method, pair in found.items():
            ends.setdefault(method, []).append(pair)
    return [_row(cell, method, np.array(pairs)) for method, pairs in ends.items()]


def _row(cell: Cell, method: str, ends: Array) -> Row:
    low, high = ends.T
    missing = np.isnan(ends).any(axis=1)
    hits = ~(low > cell.truth + 1e-12) & ~(high < cell.truth - 1e-12)
    exact = clopper_pearson(int(hits.sum()), len(ends))
    widths = (high - low)[~missing]
    width = float(widths.mean()) if widths.size else None
    without = float((widths <= 1e-12 * np.abs(high[~missing])).sum()) / len(ends)
    return Row(cell, method, len(ends), exact.value, exact.low, exact.high, width, without, float(missing.mean()))


def study(
    kinds: Sequence[Kind],
    designs: Sequence[tuple[int, int]],
    tables: int,
    resamples: int,
    seed: int,
    tell: Callable[[int, int, Cell], None] = lambda done, of, cell: None,
) -> list[Row]:
    """All cells, one after the other; errors are not counted out, so they take a fifth of the tables."""
    every, seen, rows = list(cells(kinds, designs)), dict[bytes, dict[str, Ends]](), list[Row]()
    for done, cell in enumerate(every):
        tell(done, len(every), cell)
        count = tables if cell.kind in ("share", "rate") else max(tables // 5, 1)
        rows += study_cell(cell, count, Options(resamples, seed, CONFIDENCE), seen)
    return rows


def as_markdown(rows: Sequence[Row]) -> str:
    """A table per kind: cells down, methods across: coverage in per cent and mean width; short cells are marked."""
    lines = []
    for kind in dict.fromkeys(row.cell.kind for row in rows):
        own = [row for row in rows if row.cell.kind == kind]
        methods = list(dict.fromkeys(row.method for row in own))
        lines += [f"**{kind}**, {own[0].tables} tables a cell", ""]
        lines += ["| layouts | model | truth | correlation | " + " | ".join(methods) + " |"]
        lines.append("|---|---|---|---|" + "---|" * len(methods))
        for cell in dict.fromkeys(row.cell for row in own):
            found = {row.method: row for row in own if row.cell == cell}
            head = f"| {cell.layouts} x {cell.seeds} | {cell.model} | {cell.truth:.4g} | {cell.correlation:g} | "
            lines.append(head + " | ".join(_shown(found[m]) for m in methods) + " |")
        lines.append("")
    return "\n".join(lines)


def _shown(row: Row) -> str:
    covered = f"{100 * row.coverage:.1f}"
    if row.method == "printed" and 100 * row.coverage < FEWEST:
        covered = f"**{covered}**"
    width = "open" if row.mean_width is None else f"{row.mean_width:.3f}"
    return f"{covered} ({width}{f', {100 * row.without_width:.0f} % 0' if row.without_width >= 0.005 else ''})"


def short(rows: Sequence[Row]) -> list[str]:
    """The cells in which what is printed covers less than it should."""
    return [
        f"{r.cell.kind} {r.cell.layouts} x {r.cell.seeds}, {r.cell.model}, truth {r.cell.truth:.4g}, correlation "
        f"{r.cell.correlation:g}: {100 * r.coverage:.1f} % ({100 * r.coverage_low:.1f} to {100 * r.coverage_high:.1f})"
        for r in rows
        if r.method == "printed" and 100 * r.coverage < FEWEST
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study, print the tables, and write them where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.layoutstudy", description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=int, default=10_000, help="tables per cell; of errors a fifth")
    parser.add_argument("--resamples", type=int, default=2000, help="bootstrap resamples per interval")
    parser.add_argument("--seed", type=int, default=0, help="of the resamples; the tables have their own")
    parser.add_argument("--kinds", nargs="+", choices=get_args(Kind), default=list(get_args(Kind)))
    parser.add_argument("--designs", nargs="+", default=[f"{m}x{s}" for m, s in DESIGNS], help="such as 10x3 200x1")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--markdown", type=Path, help="where to write the tables")
    given = parser.parse_args(arguments)
    designs = [(int(m), int(s)) for m, _, s in (text.partition("x") for text in given.designs)]
    began = time.monotonic()

    def tell(done: int, of: int, cell: Cell) -> None:
        print(f"{done} of {of}, {time.monotonic() - began:.0f} s: {cell}", file=sys.stderr)

    rows = study(given.kinds, designs, given.tables, given.resamples, given.seed, tell)
    told = as_markdown(rows)
    print(told)
    print("\n".join(["Below 93 %:", *short(rows)]) if short(rows) else "No printed interval covers less than 93 %.")
    if given.markdown:
        given.markdown.write_text(told)
    if given.json:
        head = {"schema_version": SCHEMA_VERSION, "resamples": given.resamples, "seed": given.seed}
        given.json.write_text(json.dumps({**head, "rows": [asdict(row) for row in rows]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
