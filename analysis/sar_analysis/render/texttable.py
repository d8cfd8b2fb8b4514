"""A table of words, ready to print, with what every table must carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sar_analysis.render.wording import numbers


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
