"""Pattern against pattern on the same missions: differences paired by seed and episode, corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sar_analysis.metrics.catalogue import METRICS
from sar_analysis.results.conditions import Group, crossed, rivals
from sar_analysis.results.sections import interval
from sar_analysis.stats.aggregate import iqm
from sar_analysis.stats.comparisons import flip_test, holm, least_p, sign_flip_p
from sar_analysis.stats.improvement import paired_improvement
from sar_analysis.stats.layouts import Options
from sar_analysis.stats.rates import POWER, detectable_difference
from sar_analysis.stats.resampling import alike, paired
from sar_analysis.stats.scores import Scores, listed, on_common_episodes
from sar_core.errors import InputError, SarError

ALPHA = 0.05


def compare_all(groups: Sequence[Group], options: Options) -> list[dict[str, Any]]:
    """Every pair of patterns flown under otherwise equal settings, for each compared metric."""
    pairs = rivals(groups)
    compared = [metric.key for metric in METRICS.values() if metric.compared]
    found = [_compare(metric, first, second, options) for metric in compared for first, second in pairs]
    tested = [row for row in found if "p" in row]
    if tested:
        adjusted = holm([row["p"] for row in tested])
        least = holm([least_p(row["seeds"]) for row in tested])
        for row, p, floor in zip(tested, adjusted, least, strict=True):
            row["p_holm"] = float(p)
            if floor > ALPHA:
                row["detectable"] = None
                row["note"] = f"{row['seeds']} seeds cannot reject whatever the difference"
    return found


def _compare(metric: str, first: Group, second: Group, options: Options) -> dict[str, Any]:
    head: dict[str, Any] = {"metric": metric, "first": first.id, "second": second.id}
    try:
        common = sorted(_seeds(first) & _seeds(second))
        if not common:
            raise InputError(f"{metric}: {first.id} and {second.id} have no seed in common")
        one, two = on_common_episodes([_on_seeds(metric, g, common) for g in (first, second)])
        one, two = (replace(t, notes=_named(g, t.notes)) for g, t in ((first, one), (second, two)))
        gap = paired(one, two, design="seeds", reading="t", confidence=options.confidence)
        better = paired_improvement(one, two, design="seeds", reading="t", confidence=options.confidence)
    except SarError as error:
        return {**head, "refused": str(error)}
    plain = interval(gap)
    return {
        **head,
        "difference": plain.pop("value"),
        **plain,
        "n": one.values.size,
        "seeds": len(common),
        "improvement": replace(better, low=max(better.low, 0.0), high=min(better.high, 1.0)).plain,
        **_evidence(one, two, options.seed, better.low == better.high),
    }


def _seeds(g: Group) -> set[int]:
    return {e.seed for e in g.episodes}


def _on_seeds(metric: str, g: Group, seeds: Sequence[int]) -> Scores:
    """The table of these seeds alone: one flown on one side only must not cost the others an episode."""
    table = crossed(metric, [e for e in g.episodes if e.seed in seeds])
    lost = sorted(_seeds(g) - set(seeds))
    note = (f"seed {listed(lost)} left out: not flown on both sides",) if lost else ()
    return replace(table, notes=(*table.notes, *note))


def _named(g: Group, notes: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{g.id}: {text}" for text in notes)


def _evidence(one: Scores, two: Scores, seed: int, certain: bool) -> dict[str, Any]:
    """The sign-flip test on each seed's difference of IQMs, and the smallest difference a paired t-test would find."""
    by_seed = np.array([iqm(a) - iqm(b) for a, b in zip(one.values, two.values, strict=True)])
    found: dict[str, Any] = {
        "p": sign_flip_p(by_seed, seed),
        "p_holm": None,
        "test": flip_test(len(by_seed), seed),
        "detectable": None,
        "note": "P has no width: every pair went alike" if certain else "",
    }
    if alike(by_seed):
        found["note"] = "all seeds differ by the same amount: no spread to work out a detectable difference from"
    else:
        found["detectable"] = detectable_difference(float(by_seed.std(ddof=1)), len(by_seed), POWER)
    return found
