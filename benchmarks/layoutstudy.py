"""How often nominal 95 % intervals over layouts hold the truth: what is printed, beside what else could be.

Shares have beta or logit-normal layouts, rates gamma layouts with Poisson counts, errors and times lognormal ones
throughout. The correlation is that of two missions of one layout (of errors and times: of their logarithms). Where a
layout is flown once it cannot be seen and only 0 is drawn. `printed` is `sar_analysis.stats.clustered`, rule and all;
an end that cannot be given counts as open, not as missed. `noted` is how often what is printed says by itself that it
covers less than 95 %.

    python -m benchmarks.layoutstudy --tables 10000 --json layouts.json --markdown layouts.md
    python -m benchmarks.layoutstudy --kinds rmst median_time ppv --minutes 10 --json layouts.json

With --json every cell is written when it is done, and what stands there is not computed again.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri

from sar_analysis.stats import clustered
from sar_analysis.stats.effective import Ends, effective_poisson, korn_graubard
from sar_analysis.stats.interval import Array, Interval, bca, expanded_percentile, jackknife_t, percentile
from sar_analysis.stats.layouts import Options, draws
from sar_analysis.stats.rates import clopper_pearson, order_quantile, poisson_rate
from sar_analysis.stats.statistics import (
    Statistic,
    censored_medians,
    order_quantiles,
    restricted_means,
    trimmed_means,
)
from sar_analysis.stats.survival import HALF, median_time
from sar_core.errors import ContractError, InputError
from sar_core.streams import stream

Kind = Literal["share", "rate", "cep50", "cep95", "mean", "iqm", "rmst", "median_time", "ppv"]
Printed = tuple[Interval, dict[str, Ends]]
"""What is printed, and the other methods' ends."""
DESIGNS = ((10, 3), (200, 1))
TRUTHS = (0.005, 0.02, 0.10, 0.25, 0.60)
CORRELATIONS = (0.0, 0.2, 0.4, 0.6, 0.8)
SPREAD = 0.8
"""Standard deviation of the logarithm of an error."""
HORIZON_S = 240.0
TIME_SPREAD = 1.0
"""Of the logarithm of the time to find a victim, assumed: a search that ends has 0.6 to 1.1 among those it found."""
VICTIMS = 2
FOUND = {"30 % found": 0.3, "60 % found": 0.6, "90 % found": 0.9}
"""Share of victims found by the horizon; the others are misses, censored there."""
PPVS = (0.35, 0.65, 0.9, 0.98)
COUNTED = ("share", "rate")
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
    noted: float = 0.0


def cells(kinds: Sequence[Kind], designs: Sequence[tuple[int, int]]) -> Iterator[Cell]:
    """Every cell of the study."""
    for kind in kinds:
        for layouts, seeds in designs:
            for model, truth in truths_of(kind):
                for correlation in CORRELATIONS if seeds > 1 else (0.0,):
                    if correlation > 0.0 or model != "logit-normal":
                        yield Cell(kind, layouts, seeds, model, truth, correlation)


def truths_of(kind: Kind) -> list[tuple[str, float]]:
    """Models of a kind with what is true under each."""
    if kind == "share":
        return [(model, truth) for model in ("beta", "logit-normal") for truth in TRUTHS]
    if kind == "rate":
        return [("gamma", truth) for truth in TRUTHS]
    if kind == "ppv":
        return [("beta", truth) for truth in PPVS]
    if kind in ("rmst", "median_time"):
        return [(model, true_time(kind, found)) for model, found in FOUND.items()]
    return [("lognormal", true_figure(kind))]


def centre_of(found: float) -> float:
    """Mean logarithm of times of which this share is within the horizon."""
    return math.log(HORIZON_S) - TIME_SPREAD * float(ndtri(found))


def true_time(kind: Kind, found: float) -> float:
    """Of such times: the mean up to the horizon, or the median, which is never where fewer than half are found."""
    centre = centre_of(found)
    if kind == "median_time":
        return math.exp(centre) if found > 0.5 else math.inf
    below = float(ndtr((math.log(HORIZON_S) - centre) / TIME_SPREAD - TIME_SPREAD))
    return math.exp(centre + 0.5 * TIME_SPREAD**2) * below + HORIZON_S * (1.0 - found)


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
    """Outcomes of all missions: (tables, layouts, seeds) errors, (tables, layouts, victims) times, (tables, layouts, 2)
    right issues and all, or (tables, layouts) totals of counts, sorted."""
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
    if cell.kind == "ppv":
        return draw_issues(cell, tables, rng)
    timed = cell.kind in ("rmst", "median_time")
    own = rng.standard_normal((*shape, cell.seeds * (VICTIMS if timed else 1)))
    normal = math.sqrt(c) * rng.standard_normal((*shape, 1)) + math.sqrt(1.0 - c) * own
    return np.exp(centre_of(FOUND[cell.model]) + TIME_SPREAD * normal if timed else SPREAD * normal)


def draw_issues(cell: Cell, tables: int, rng: np.random.Generator) -> Array:
    """Right issues and all issues of each layout (tables, layouts, 2), at one mission without victims for each with.

    Every victim is issued, right with a layout's own share; every mission may have one decoy alarm, with the layout's
    other share. Both have the correlation, and in the mean as many issues of victims are wrong as missions are alarmed:
    of two victims' issues and two missions 2 q of 2 + 2 (1 - q) are right.
    """
    q, c, shape = 2.0 * cell.truth / (1.0 + cell.truth), cell.correlation, (tables, cell.layouts)
    right, alarmed = np.full(shape, q), np.full(shape, 1.0 - q)
    if c:
        size = (1.0 - c) / c
        right, alarmed = (rng.beta(share * size, (1.0 - share) * size, shape) for share in (q, 1.0 - q))
    hits = rng.binomial(VICTIMS * cell.seeds, right)
    return np.stack([hits, VICTIMS * cell.seeds + rng.binomial(2 * cell.seeds, alarmed)], axis=-1).astype(np.float64)


def count_intervals(cell: Cell, totals: Array, options: Options) -> Printed:
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
    return printed, {**rare, **_resampled(lambda c: (c @ totals) / (c @ sizes), m, options)}


def issue_intervals(cell: Cell, issues: Array, options: Options) -> Printed:
    """Every interval of the share of right issues (layouts, 2)."""
    right, all_of = issues.T
    printed = clustered.share(right, all_of, range(len(issues)), options, "issues")
    exact = clopper_pearson(int(right.sum()), int(all_of.sum()))
    rare = {"Clopper-Pearson": (exact.low, exact.high), "Korn-Graubard": korn_graubard(right, all_of)}
    return printed, {**rare, **_resampled(lambda c: (c @ right) / (c @ all_of), len(issues), options)}


def time_intervals(cell: Cell, times: Array, options: Options) -> Printed:
    """Every interval of a figure of times (layouts, victims), censored at the horizon."""
    flat, of = np.minimum(times.ravel(), HORIZON_S), np.repeat(np.arange(len(times)), times.shape[1])
    came = times.ravel() <= HORIZON_S
    order = np.lexsort((~came, flat))
    ordered, events, places = flat[order], came[order], of[order]
    if cell.kind == "median_time":
        exact = median_time(flat, came, options.confidence)
        medians: Statistic = lambda c: censored_medians(c, places, ordered, events, HALF)  # noqa: E731
        drawn = medians(draws(len(times), options.resamples, options.seed))
        return clustered.median_time(flat, came, of.tolist(), options, "victims"), {
            "Kaplan-Meier": _ends(exact),
            "percentile": percentile(drawn, CONFIDENCE),
            "expanded percentile": expanded_percentile(drawn, len(times), CONFIDENCE),
        }
    printed = clustered.rmst(flat, came, HORIZON_S, of.tolist(), options, "victims")
    means: Statistic = lambda c: restricted_means(c, places, ordered, events, HORIZON_S)  # noqa: E731
    return printed, _resampled(means, len(times), options)


def error_intervals(cell: Cell, errors: Array, options: Options) -> Printed:
    """Every interval of a figure of errors (layouts, seeds)."""
    m = len(errors)
    flat, of = errors.ravel(), np.repeat(np.arange(m), cell.seeds)
    order = np.argsort(flat, kind="stable")
    ordered, places, q = flat[order], of[order], quantile_of(cell.kind)
    if cell.kind in ("cep50", "cep95"):
        exact = order_quantile(flat.tolist(), q)
        statistic: Statistic = lambda c: order_quantiles(c, places, ordered, q)  # noqa: E731
        others = {"order statistics": _ends(exact), **_resampled(statistic, m, options)}
        return clustered.quantile(flat, q, of.tolist(), options), others
    if cell.kind == "iqm":
        printed = clustered.iqm(flat, of.tolist(), options)
        return printed, _resampled(lambda c: trimmed_means(c, places, ordered), m, options)
    sums = errors.sum(axis=1)
    printed = clustered.mean(flat, of.tolist(), options)
    return printed, _resampled(lambda c: (c @ sums) / (c.sum(axis=1, dtype=np.float64) * cell.seeds), m, options)


INTERVALS: dict[Kind, Callable[[Cell, Array, Options], Printed]] = {
    "share": count_intervals,
    "rate": count_intervals,
    "ppv": issue_intervals,
    "rmst": time_intervals,
    "median_time": time_intervals,
}
"""Of all others: `error_intervals`."""


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


def study_cell(cell: Cell, tables: int, options: Options, seen: dict[bytes, Printed]) -> list[Row]:
    """Every method's coverage; tables of counts that came before are not computed again (``seen``)."""
    if tables < 1:
        raise InputError(f"layout study: {tables} tables; allowed: at least 1")
    rng = stream(f"layout study {cell}")
    intervals = INTERVALS.get(cell.kind, error_intervals)
    ends: dict[str, list[Ends]] = {"printed": []}
    noted = 0
    for table in draw_tables(cell, tables, rng):
        key = f"{cell.kind} {cell.seeds} ".encode() + table.tobytes() if cell.kind in COUNTED else b""
        found = seen[key] if key in seen else intervals(cell, table, options)
        if key:
            seen[key] = found
        printed, others = found
        noted += clustered.falls_short(printed)
        for method, pair in {"printed": _ends(printed), **others}.items():
            ends.setdefault(method, []).append(pair)
    rows = [_row(cell, method, np.array(pairs)) for method, pairs in ends.items()]
    return [replace(rows[0], noted=noted / tables), *rows[1:]]


def _row(cell: Cell, method: str, ends: Array) -> Row:
    low, high = ends.T
    hits = ~(low > cell.truth + 1e-12) & ~(high < cell.truth - 1e-12)
    exact = clopper_pearson(int(hits.sum()), len(ends))
    both = np.isfinite(ends).all(axis=1)
    widths = high[both] - low[both]
    width = float(widths.mean()) if widths.size else None
    without = float((widths <= 1e-12 * np.abs(high[both])).sum()) / len(ends)
    return Row(cell, method, len(ends), exact.value, exact.low, exact.high, width, without, float(1.0 - both.mean()))


def study(
    kinds: Sequence[Kind],
    designs: Sequence[tuple[int, int]],
    tables: int,
    resamples: int,
    seed: int,
    tell: Callable[[int, int, Cell], None] = lambda done, of, cell: None,
    before: Sequence[Row] = (),
    keep: Callable[[Sequence[Row]], bool] = lambda rows: True,
) -> list[Row]:
    """All cells, one after the other; what is not a count takes a fifth of the tables, since nothing is counted out.

    Cells that are ``before`` are not computed again; ``keep`` is given all rows after each cell and says whether to
    go on.
    """
    every, seen, rows = list(cells(kinds, designs)), dict[bytes, Printed](), list(before)
    for done, cell in enumerate(every):
        if any(row.cell == cell for row in before):
            continue
        tell(done, len(every), cell)
        count = tables if cell.kind in COUNTED else max(tables // 5, 1)
        rows += study_cell(cell, count, Options(resamples, seed, CONFIDENCE), seen)
        if not keep(rows):
            break
    return rows


def as_markdown(rows: Sequence[Row]) -> str:
    """A table per kind: cells down, methods across: coverage in per cent and mean width; short cells are marked."""
    lines = []
    for kind in dict.fromkeys(row.cell.kind for row in rows):
        own = [row for row in rows if row.cell.kind == kind]
        methods = list(dict.fromkeys(row.method for row in own))
        lines += [
            f"**{kind}**, {own[0].tables} tables a cell: 95 % is good to {error_of(own[0].tables):.1f} points",
            "",
        ]
        lines += ["| layouts | model | truth | correlation | " + " | ".join(methods) + " |"]
        lines.append("|---|---|---|---|" + "---|" * len(methods))
        for cell in dict.fromkeys(row.cell for row in own):
            found = {row.method: row for row in own if row.cell == cell}
            head = f"| {cell.layouts} x {cell.seeds} | {cell.model} | {cell.truth:.4g} | {cell.correlation:g} | "
            lines.append(head + " | ".join(_shown(found[m]) for m in methods) + " |")
        lines.append("")
    return "\n".join(lines)


def error_of(tables: int) -> float:
    """Points by which a coverage of 95 % of so many tables may be off, at 95 %."""
    return 196.0 * math.sqrt(CONFIDENCE * (1.0 - CONFIDENCE) / tables)


def _shown(row: Row) -> str:
    covered = f"{100 * row.coverage:.1f}"
    if row.method == "printed" and 100 * row.coverage < FEWEST:
        covered = f"**{covered}**"
    width = "open" if row.mean_width is None else f"{row.mean_width:.3f}"
    without = f", {100 * row.without_width:.0f} % 0" if row.without_width >= 0.005 else ""
    noted = f", {100 * row.noted:.0f} % noted" if row.noted >= 0.005 else ""
    return f"{covered} ({width}{without}{noted})"


def short(rows: Sequence[Row]) -> list[str]:
    """The cells in which what is printed covers less than it should."""
    return [
        f"{r.cell.kind} {r.cell.layouts} x {r.cell.seeds}, {r.cell.model}, truth {r.cell.truth:.4g}, correlation "
        f"{r.cell.correlation:g}: {100 * r.coverage:.1f} % ({100 * r.coverage_low:.1f} to {100 * r.coverage_high:.1f})"
        f", said so in {100 * r.noted:.0f} % of tables"
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
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no cell after so long")
    parser.add_argument("--json", type=Path, help="where to write the figures, and to go on from")
    parser.add_argument("--markdown", type=Path, help="where to write the tables")
    given = parser.parse_args(arguments)
    designs = [(int(m), int(s)) for m, _, s in (text.partition("x") for text in given.designs)]
    head = {"schema_version": SCHEMA_VERSION, "tables": given.tables, "resamples": given.resamples, "seed": given.seed}
    began = time.monotonic()

    def tell(done: int, of: int, cell: Cell) -> None:
        print(f"{done} of {of}, {time.monotonic() - began:.0f} s: {cell}", file=sys.stderr)

    def keep(rows: Sequence[Row]) -> bool:
        if given.json:
            given.json.write_text(json.dumps({**head, "rows": [_plain(row) for row in rows]}, indent=1) + "\n")
        return bool(time.monotonic() - began < 60.0 * given.minutes)

    before = read_rows(given.json, head) if given.json and given.json.is_file() else []
    rows = study(given.kinds, designs, given.tables, given.resamples, given.seed, tell, before, keep)
    told = as_markdown(rows)
    print(told)
    print("\n".join(["Below 93 %:", *short(rows)]) if short(rows) else "No printed interval covers less than 93 %.")
    left = set(cells(given.kinds, designs)) - {row.cell for row in rows}
    if left:
        print(f"{len(left)} cells are left; the same command with --json goes on")
    if given.markdown:
        given.markdown.write_text(told)


def _plain(row: Row) -> dict[str, Any]:
    """A row as JSON can hold it: a truth that is beyond every number is null."""
    cell = {**asdict(row.cell), "truth": row.cell.truth if math.isfinite(row.cell.truth) else None}
    return {**asdict(row), "cell": cell}


def read_rows(file: Path, head: dict[str, int]) -> list[Row]:
    """The cells that are done, of a study of the same tables, resamples and seed."""
    told = json.loads(file.read_text())
    odd = [f"{key} {told.get(key)} instead of {value}" for key, value in head.items() if told.get(key) != value]
    if odd:
        raise ContractError(f"{file}: made with {', '.join(odd)}; give another name to begin anew")
    for row in told["rows"]:
        truth = row["cell"]["truth"]
        row["cell"] = Cell(**{**row["cell"], "truth": math.inf if truth is None else truth})
    return [Row(**row) for row in told["rows"]]


if __name__ == "__main__":
    main()
