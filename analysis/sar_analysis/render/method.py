"""How the intervals of a table were made, in one sentence: methods, what was drawn again, how often, by which seed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sar_analysis.results.rows import Closed, Drawn
from sar_analysis.stats.clustered import SHORT
from sar_analysis.stats.interval import Interval

_EFFECTIVE = re.compile(r"(: Clopper-Pearson)? on [\d.e+]+ effective of \d+")
BESIDE = "The exact interval of missions taken as independent stands beside each in results.json."


def how(figures: Iterable[Closed | Interval | None]) -> str:
    """Of figures, curves and intervals, the most used way first; what was refused or is not known has none."""
    ways: dict[str, int] = {}
    for item in figures:
        if isinstance(item, (Drawn, Interval)):
            way = _way(item)
            ways[way] = ways.get(way, 0) + 1
    ordered = sorted(ways, key=lambda way: -ways[way])
    return f"95 % intervals: {'; '.join(ordered)}." if ordered else ""


def shortfalls(figures: Iterable[Closed | Interval | None]) -> str:
    """Of figures, what is known of intervals that cover less than they claim, each note once; empty without any."""
    known = (item for item in figures if isinstance(item, (Drawn, Interval)))
    notes = dict.fromkeys(note for item in known for note in item.notes if note.endswith(SHORT))
    return f"Known to fall short: {'; '.join(notes)}." if notes else ""


def _way(item: Drawn | Interval) -> str:
    method = _EFFECTIVE.sub(" on the effective sample", item.method)
    parts = [] if not item.cluster or item.cluster in method else [f"by {item.cluster}"]
    if item.resamples is not None:
        parts.append(f"{item.resamples} resamples, seed {item.seed}")
    return f"{method} ({', '.join(parts)})" if parts else method
