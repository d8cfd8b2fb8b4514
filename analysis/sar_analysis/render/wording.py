"""Numbers and tables as people read them: one place decides units and digits, so that every output shows the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sar_analysis.stats.scores import numbers

OPEN = "open"
"""Stands for an end of an interval that so few values cannot give; captions explain it."""
NONE = "none"

NAMES = {
    "episode_return": "return",
    "coverage_240s": "coverage at 240 s",
    "overlap_ratio": "overlap",
    "path_m": "path",
    "energy_batteries": "energy, batteries",
    "yaw_rate_rms_rps": "yaw rate, rad/s",
    "jerk_rms_mps3": "jerk, m/s³",
    "time_to_first_detection_s": "first detection",
    "time_to_each_victim_s": "each victim",
    "time_to_95_s": "95 % covered",
}
_SHARES = ("coverage_240s", "overlap_ratio", "improvement")
_PLACES = {
    "episode_return": (0, ""),
    "path_m": (0, " m"),
    "energy_batteries": (2, ""),
    "yaw_rate_rms_rps": (3, ""),
    "jerk_rms_mps3": (2, ""),
}


def number(metric: str, value: float) -> str:
    """One value with its unit."""
    if metric in _SHARES or metric.startswith(("missions_with", "victims_found")):
        return f"{100 * value:.1f} %"
    if metric.endswith("_s"):
        return f"{value:.1f} s"
    if metric in _PLACES:
        places, unit = _PLACES[metric]
        return _unsigned_zero(f"{value:.{places}f}") + unit
    if metric.endswith("_m"):
        return f"{value:.2f} m"
    return f"{value:.3g}"


def bare(metric: str, value: float | None) -> str:
    """The same without its unit, for the ends of an interval; a missing end is said to be open."""
    return OPEN if value is None else number(metric, value).split(" ")[0]


def spread(metric: str, item: Mapping[str, Any]) -> str:
    """Value and interval: 45.1 % [40.2, 50.3]."""
    return f"{number(metric, item['value'])} [{bare(metric, item['low'])}, {bare(metric, item['high'])}]"


def estimate(item: Mapping[str, Any] | None, why: str = "not computed") -> str:
    """An estimate with what it rests on: of how many missions or victims, or how many events."""
    if item is None:
        return why
    metric, n = item["metric"], item["n"]
    if str(item["method"]).startswith("Clopper"):
        return f"{round(item['value'] * n)} of {n}: {spread(metric, item)}"
    if item["method"] == "order statistics":
        return f"{spread(metric, item)}, n {n}"
    if item["low"] is None:
        return f"{number(metric, item['value'])}, n {n}"
    return spread(metric, item)


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
    metric = "improvement" if chance else registration["metric"]
    value = _part(metric, item, "value")
    if "value" in item["beyond"]:
        value += " (half or more missed)" if item["beyond"]["value"] == "inf" else " (half or more of the other missed)"
    parts = [f"{value} [{_part(metric, item, 'low')}, {_part(metric, item, 'high')}]", item["method"]]
    parts.append(f"{100 * item['confidence']:g} % interval")
    if item["resamples"] is not None:
        parts.append(f"{item['resamples']} resamples, bootstrap seed {item['seed']}")
    return ", ".join(parts) + "".join(f"; {text}" for text in item["notes"])


def _part(metric: str, item: Mapping[str, Any], part: str) -> str:
    if part in item["beyond"]:
        return "beyond every number" if item["beyond"][part] == "inf" else "below every number"
    if item[part] is None:
        return "undefined"
    return number(metric, item[part]) if part == "value" else bare(metric, item[part])


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
