"""What every published figure must say of its interval; whoever breaks a rule is named with the place it stands at.

Figures are given by a bootstrap over layouts. The exceptions stand in docs/statistics.md with their reasons, in two
tables, and nowhere else: they are read from there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sar_analysis.metrics.catalogue import metric
from sar_analysis.results.summary import EXTREME

HOW = ("method", "cluster", "resamples", "seed")
VALUES = ("value", "median", "difference", "better_by")
PARTS = (*VALUES, "low", "high", "p", "p_holm", "detectable", "stage1", "stage2")
STATISTICS = Path(__file__).resolve().parents[3] / "docs" / "statistics.md"
EVERYWHERE = "everywhere"
REGISTERED = "registration/verdicts"
"""Where the draws are those of the registration and not of the document."""
NO_FIGURES = ("episodes", "card", "paper", "sample_efficiency")
"""Single missions, what was set, and what others published."""


@cache
def listed(name: str) -> tuple[tuple[str, str, str], ...]:
    """The rows of a table of exceptions: two columns, and why."""
    page = STATISTICS.read_text(encoding="utf-8")
    _, begun, rest = page.partition(f"<!-- exceptions: {name} -->\n")
    table, ended, _ = rest.partition(f"<!-- end of {name} -->")
    assert begun and ended, f"{STATISTICS.name} has no table of {name}"
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]
    assert all(len(row) == 3 and all(row) for row in rows), f"a row of {name} lacks a cell"
    return tuple((one, two, why) for one, two, why in rows)


def excepted(method: str, place: str) -> bool:
    """Whether a place may be given by this method, which is no bootstrap."""
    where = re.sub(r"\[\d+\]", "", place)
    for places, methods, _ in listed("methods"):
        if any(method.startswith(begin) for begin in re.findall(r"`([^`]+)`", methods)):
            named = re.findall(r"`([^`]+)`", places)
            if places == EVERYWHERE or any(f"{where}/".startswith(f"{name}/") for name in named):
                return True
    return False


@cache
def bare() -> frozenset[str]:
    """Names of numbers that need no interval."""
    return frozenset(name for names, _, _ in listed("numbers") for name in re.findall(r"`([^`]+)`", names))


def faults(result: Mapping[str, Any]) -> list[str]:
    """Every rule a document's result breaks, as place: fault."""
    parts = {key: part for key, part in result.items() if key not in NO_FIGURES}
    drawn = (result["bootstrap"]["resamples"], result["bootstrap"]["seed"])
    return [fault for key, part in parts.items() for fault in _walk(part, key, {}, drawn)]


def _walk(part: Any, place: str, how: Mapping[str, Any], drawn: tuple[int, int]) -> Iterator[str]:
    if isinstance(part, Mapping):
        own = {name: part[name] for name in HOW if name in part}
        how = {**(how if "method" not in own else {}), **own}
        if "refused" not in part and _is_figure(part):
            yield from (f"{place}: {fault}" for fault in _judge(part, how, drawn, place))
        for key, item in part.items():
            inside = _is_figure(part) and key in PARTS
            if key == "exact" or key == "published":
                yield from _exact(item, f"{place}/{key}")
            elif isinstance(item, float) and not inside and key not in bare():
                yield f"{place}/{key}: a number without an interval"
            elif not isinstance(item, float):
                yield from _walk(item, f"{place}/{key}", how, drawn)
    elif isinstance(part, list):
        for k, item in enumerate(part):
            yield from _walk(item, f"{place}[{k}]", how, drawn)


def _is_figure(part: Mapping[str, Any]) -> bool:
    return "low" in part and "high" in part


def _exact(part: Mapping[str, Any] | None, place: str) -> Iterator[str]:
    if part is not None and not part["method"]:
        yield f"{place}: names no method"


def _judge(part: Mapping[str, Any], how: Mapping[str, Any], drawn: tuple[int, int], place: str) -> Iterator[str]:
    if "mean_confidence" in part:
        return  # low and high are the edges of the bin; its figure stands inside
    if lacking := [name for name in HOW if name not in how]:
        yield f"does not say its {', '.join(lacking)}"
        return
    method, cluster = how["method"], how["cluster"]
    if method == EXTREME:
        if metric(part["metric"]).aggregate != "least" or not part["notes"]:
            yield "no interval, and is no extreme that says so"
    elif "bootstrap" in method:
        own = place.startswith(REGISTERED) and how["resamples"] is not None
        if ((how["resamples"], how["seed"]) != drawn and not own) or cluster is None:
            yield f"a bootstrap of {how['resamples']} resamples, seed {how['seed']}, cluster {cluster}"
        yield from _ends(part)
    elif excepted(method, place):
        if (how["resamples"], how["seed"]) != (None, None) and not isinstance(part["low"], list):
            yield f"{method}: draws nothing, but names resamples and seed"
        if cluster is None and part["low"] not in (None, []):
            yield f"{method}: names no cluster"
        yield from _ends(part)
    elif any(part.get(name) is not None for name in VALUES):
        yield f"method {method!r} is neither a bootstrap nor one of the exceptions"


def _ends(part: Mapping[str, Any]) -> Iterator[str]:
    low, high = part["low"], part["high"]
    if isinstance(low, list):
        low, high = part.get("mean_low", low), part.get("mean_high", high)
        if len(low) != len(high) or any(not a < b for a, b in zip(low, high, strict=True)):
            yield "a curve's interval lacks an end or has no width"
        return
    noted = bool(part["notes"] or part.get("beyond"))
    if low is None or high is None:
        if not noted:
            yield "an end is missing and nothing says why"
    elif not (math.isfinite(low) and math.isfinite(high)) or low > high or (low == high and not noted):
        yield f"ends {low}, {high}"


def tables(markdown: str) -> Iterator[tuple[str, str, str]]:
    """Title, rows and what stands around them, of every table of a page of Markdown."""
    for part in re.split(r"^## ", markdown, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        rows = "\n".join(line for line in body.splitlines() if line.startswith("|"))
        yield title, rows, "\n".join(line for line in body.splitlines() if not line.startswith("|"))


INTERVAL = re.compile(r"\[[^\]|]+, [^\]|]+\]")
NAMED = re.compile(r"resamples|[Jj]ackknife|on the effective|Student's t|all that is possible|as published")


def unexplained(markdown: str) -> list[str]:
    """Titles of tables that show intervals and do not say how they were made."""
    return [title for title, rows, said in tables(markdown) if INTERVAL.search(rows) and not NAMED.search(said)]
