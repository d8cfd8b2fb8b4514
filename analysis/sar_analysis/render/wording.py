"""Numbers and tables as people read them: one place decides units and digits, so that every output shows the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from sar_analysis.metrics.catalogue import metric
from sar_analysis.results.model import ResultBody
from sar_analysis.results.rows import (
    CensoredTime,
    Comparison,
    DecidedVerdict,
    EstimateRow,
    RefusedScore,
    RegistrationResult,
    ReliabilityRow,
    ScoreRow,
    Section,
)
from sar_analysis.stats.scores import numbers

OPEN = "open"
"""Stands for an end of an interval that so few values cannot give; captions explain it."""
NONE = "none"

_PLACES = {"s": 1, "m": 2}
"""Digits of values that are written with their unit."""


def number(key: str, value: float) -> str:
    """One value with its unit, where the heading does not have it."""
    entry = metric(key)
    if entry.share:
        return f"{100 * value:.1f} %"
    places = _PLACES.get(entry.unit) if entry.places is None else entry.places
    if places is None:
        return f"{value:.3g}"
    return _unsigned_zero(f"{value:.{places}f}") + (f" {entry.unit}" if entry.unit in _PLACES else "")


def bare(key: str, value: float | None) -> str:
    """The same without its unit, for the ends of an interval; a missing end is said to be open."""
    return OPEN if value is None or not math.isfinite(value) else number(key, value).split(" ")[0]


class Held(Protocol):
    """A value and its interval, as figures have them."""

    @property
    def value(self) -> float: ...

    @property
    def low(self) -> float | None: ...

    @property
    def high(self) -> float | None: ...


class Ends(NamedTuple):
    """The same of what is no figure by itself: a point of a curve, a difference."""

    value: float
    low: float | None
    high: float | None


def spread(key: str, item: Held) -> str:
    """Value and interval: 45.1 % [40.2, 50.3]."""
    return f"{number(key, item.value)} [{bare(key, item.low)}, {bare(key, item.high)}]"


def held(key: str, item: Held) -> str:
    """The same; the value alone where it has no interval."""
    return number(key, item.value) if item.low is item.high is None else spread(key, item)


def estimate(item: EstimateRow | None, why: str = "not computed") -> str:
    """An estimate with what it rests on: of how many missions or victims, or how many events."""
    if item is None:
        return why
    key, n = item.metric, item.n
    kind = metric(key).aggregate
    if kind == "share" and not metric(key).mixed:
        return f"{round(item.value * n)} of {n}: {spread(key, item)}"
    if kind == "least":
        return f"{number(key, item.value)}, n {n}"
    return spread(key, item) if kind == "rate" else f"{spread(key, item)}, n {n}"


def score(item: ScoreRow | RefusedScore | None) -> str:
    """An IQM with its interval; what was refused is explained once, under its table."""
    if item is None:
        return "not computed"
    if isinstance(item, RefusedScore):
        return "refused"
    return f"{spread(item.metric, item)}, n {item.n}"


def time(item: CensoredTime) -> str:
    """A censored median: when, between when, and how many ever had it."""
    if not item.n:
        return f"no {item.unit}"
    came = f"{item.reached} of {item.n}"
    mean = item.restricted_mean
    ends = "" if mean is None else f"; mean {mean.value:.1f} s [{_open(mean.low)}, {_open(mean.high)}]"
    if item.median is None:
        return f"not reached ({came}){ends}"
    high = "not reached" if item.high is None else f"{item.high:.1f}"
    return f"{item.median:.1f} s [{_open(item.low)}, {high}] ({came}){ends}"


def _open(end: float | None) -> str:
    return OPEN if end is None else f"{end:.1f}"


def verdict(registration: RegistrationResult, item: DecidedVerdict) -> str:
    """What decided a registered claim: value and interval in the estimator's unit, how they were made, all notes."""
    chance = registration.estimator == "probability_of_improvement"
    key = "improvement" if chance else registration.metric
    value = _part(key, item, "value")
    if "value" in item.beyond:
        value += " (half or more missed)" if item.beyond["value"] == "inf" else " (half or more of the other missed)"
    parts = [f"{value} [{_part(key, item, 'low')}, {_part(key, item, 'high')}]", item.method]
    parts.append(f"{100 * item.confidence:g} % interval")
    if item.resamples is not None:
        parts.append(f"{item.resamples} resamples, bootstrap seed {item.seed}")
    return ", ".join(parts) + "".join(f"; {text}" for text in item.notes)


def _part(key: str, item: DecidedVerdict, part: Literal["value", "low", "high"]) -> str:
    if part in item.beyond:
        return "beyond every number" if item.beyond[part] == "inf" else "below every number"
    value: float | None = getattr(item, part)
    if value is None:
        return "undefined"
    return number(key, value) if part == "value" else bare(key, value)


def calibration_words(found: ReliabilityRow) -> str:
    """How far confidences are from shares of right reports, over all of them; empty without reports."""
    told = ""
    for item, name in ((found.brier, "Brier score"), (found.ece, "Expected calibration error")):
        if item is not None:
            low, high = (OPEN if end is None else f"{end:.3f}" for end in (item.low, item.high))
            told += f"{name} {item.value:.4f} [{low}, {high}]. "
    return told


def short_list(names: Sequence[str], most: int = 2) -> str:
    """A few names, and how many more share the place."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def remarks(row: Comparison) -> str:
    """What a comparison's reader must know: the test's note, what was left out, what the interval's notes say."""
    return "; ".join(dict.fromkeys(filter(None, (row.note, *row.notes)))) or NONE


def independence(conditions: int) -> str:
    """What is drawn again where missions are pooled, said under every table that does."""
    if conditions == 1:
        return "Layouts are drawn again, each with all its missions; those of a seed may go alike."
    return f"Layouts are drawn again, each with all its missions in all {conditions} conditions."


def setting(value: Any) -> str:
    """A configured value in one piece; hashes are cut to what tells them apart."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {setting(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(setting, value)) or NONE
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text[:12] if len(text) == 64 else text


def _unsigned_zero(text: str) -> str:
    return text.lstrip("-") if not text.strip("-0.") else text


@dataclass(frozen=True)
class TextTable:
    """One table ready to print: columns and rows are text, the caption says how the figures were made."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str


def head_of(c: Section) -> tuple[str, str, str]:
    """The columns every row begins with: condition and tier, valid and invalid missions."""
    return f"{c.id} {c.condition.tier}", str(c.missions), str(c.invalid)


def make(
    result: ResultBody, name: str, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str
) -> TextTable:
    """Every table names tier, seeds, episodes and invalid count."""
    missions = f"{result.counts.valid} valid and {result.counts.invalid} invalid missions"
    where = f"{result.title}, seeds {numbers(result.seeds_flown)}, {missions}."
    return TextTable(
        name, f"{title}, {result.title}", tuple(columns), tuple(tuple(row) for row in rows), f"{where} {caption}"
    )


def by_metric(items: Iterable[EstimateRow]) -> dict[str, EstimateRow]:
    """Figures by their metric."""
    return {item.metric: item for item in items}
