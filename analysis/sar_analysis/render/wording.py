"""Numbers and tables as people read them: one place decides units and digits, so that every output shows the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sar_analysis.metrics.catalogue import metric
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
    return OPEN if value is None or math.isnan(value) else number(key, value).split(" ")[0]


def spread(key: str, item: Mapping[str, Any]) -> str:
    """Value and interval: 45.1 % [40.2, 50.3]."""
    return f"{number(key, item['value'])} [{bare(key, item['low'])}, {bare(key, item['high'])}]"


def estimate(item: Mapping[str, Any] | None, why: str = "not computed") -> str:
    """An estimate with what it rests on: of how many missions or victims, or how many events."""
    if item is None:
        return why
    key, n = item["metric"], item["n"]
    if str(item["method"]).startswith("Clopper"):
        return f"{round(item['value'] * n)} of {n}: {spread(key, item)}"
    if item["method"] == "order statistics":
        return f"{spread(key, item)}, n {n}"
    if item["low"] is None:
        return f"{number(key, item['value'])}, n {n}"
    return spread(key, item)


def score(item: Mapping[str, Any] | None) -> str:
    """An IQM with its interval; one that was refused is explained once, under its table."""
    if item is None:
        return "not computed"
    if "refused" in item:
        return f"{number(item['metric'], item['value'])}, no interval" if "value" in item else "refused"
    return f"{spread(item['metric'], item)}, n {item['n']}"


def time(item: Mapping[str, Any]) -> str:
    """A censored median: when, between when, and how many ever had it."""
    if not item["n"]:
        return f"no {item['unit']}"
    came = f"{item['reached']} of {item['n']}"
    if item["median"] is None:
        return f"not reached ({came})"
    low = "open" if item["low"] is None else f"{item['low']:.1f}"
    high = "not reached" if item["high"] is None else f"{item['high']:.1f}"
    return f"{item['median']:.1f} s [{low}, {high}] ({came})"


def verdict(registration: Mapping[str, Any], item: Mapping[str, Any]) -> str:
    """What decided a registered claim: value and interval in the estimator's unit, how they were made, all notes."""
    chance = registration["estimator"] == "probability_of_improvement"
    key = "improvement" if chance else registration["metric"]
    value = _part(key, item, "value")
    if "value" in item["beyond"]:
        value += " (half or more missed)" if item["beyond"]["value"] == "inf" else " (half or more of the other missed)"
    parts = [f"{value} [{_part(key, item, 'low')}, {_part(key, item, 'high')}]", item["method"]]
    parts.append(f"{100 * item['confidence']:g} % interval")
    if item["resamples"] is not None:
        parts.append(f"{item['resamples']} resamples, bootstrap seed {item['seed']}")
    return ", ".join(parts) + "".join(f"; {text}" for text in item["notes"])


def _part(key: str, item: Mapping[str, Any], part: str) -> str:
    if part in item["beyond"]:
        return "beyond every number" if item["beyond"][part] == "inf" else "below every number"
    if item[part] is None:
        return "undefined"
    return number(key, item[part]) if part == "value" else bare(key, item[part])


def short_list(names: Sequence[str], most: int = 2) -> str:
    """A few names, and how many more share the place."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def remarks(row: Mapping[str, Any]) -> str:
    """What a comparison's reader must know: the test's note, what was left out, what the interval's notes say."""
    return "; ".join(dict.fromkeys(filter(None, (row.get("note"), *(row.get("notes") or ()))))) or NONE


def independence(conditions: int) -> str:
    """What pooling missions takes for granted, said under every table that does."""
    if conditions == 1:
        return "Missions taken as independent; those of a seed or of a layout may go alike."
    return f"Missions taken as independent; {conditions} conditions share layouts and seeds."


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


def head_of(c: Mapping[str, Any]) -> tuple[str, str, str]:
    """The columns every row begins with: condition and tier, valid and invalid missions."""
    return f"{c['id']} {c['condition']['tier']}", str(c["missions"]), str(c["invalid"])


def make(
    result: Mapping[str, Any],
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str,
) -> TextTable:
    """Every table names tier, seeds, episodes and invalid count."""
    n = result["counts"]
    missions = f"{n['valid']} valid and {n['invalid']} invalid missions"
    where = f"{result['title']}, seeds {numbers(result['seeds_flown'])}, {missions}."
    return TextTable(
        name, f"{title}, {result['title']}", tuple(columns), tuple(tuple(row) for row in rows), f"{where} {caption}"
    )


def by_metric(items: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Figures by their metric."""
    return {item["metric"]: item for item in items}
