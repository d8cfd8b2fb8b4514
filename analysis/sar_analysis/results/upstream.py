"""What is claimed upstream, beside what was measured here: each claim with its source, its rule and a plain verdict.

A claim holds when the whole 95 % interval is on its side, does not hold when the whole interval is on the other side,
and otherwise cannot be said. Nothing here was tuned to a claim, and a claim that nothing here measures says so.

Errors are those at issue, right or not. Records of schema 1 leave out what was more than 10 m off, which no claim may
be judged by: their erratum's figure stands in, and what it does not recompute is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sar_analysis.metrics.catalogue import ISSUES, METRICS, metric
from sar_analysis.metrics.findings import Victim
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.results.erratum import Correction
from sar_analysis.results.summary import estimate, median, watch
from sar_analysis.stats import clustered
from sar_analysis.stats.interval import Interval
from sar_analysis.stats.layouts import DEFAULT, Options
from sar_analysis.stats.rates import order_quantile

AREA_M2, DRONES, PATTERN = 160_000.0, 4, "partitioned_lawnmower"
HOLDS, FAILS, OPEN, UNMEASURED = "holds", "does not hold", "cannot be said", "not measured here"
UNRECORDED = "undecided, not recorded"
CUT = "records of schema 1 do not hold errors beyond 10 m"
ADR_148 = "ADR-148, SotaComparison, as quoted in ADR-149"
README = "ruv-drone README, targets for 4 drones"
STAGE_1 = "ruv-drone evals/RESULTS.md, Stage 1, 10 x 10"
Missions = Sequence[EpisodeMetrics]


Measured = Interval | str
"""A figure with its interval, or why there is none."""


@dataclass(frozen=True)
class Claim:
    """What is said, by whom, and what here comes nearest to it; without `measure` nothing here does.

    ``recorded``: whether records of schema 1 hold it; where not, the erratum's figure of the metric named `recounted`
    is judged instead, and without one nothing is.
    """

    words: str
    source: str
    metric: str
    limit: float
    side: Literal["at most", "at least"]
    definition: str
    measure: Callable[[Missions, Options], Measured] | None = None
    shown: str | None = None
    recorded: bool = True
    recounted: str | None = None

    @property
    def claimed(self) -> str:
        return self.shown or f"{self.side} {_figure(self.metric, self.limit)}"


def upstream_claims(
    episodes: Missions, options: Options = DEFAULT, erratum: Sequence[Correction] = ()
) -> list[dict[str, Any]]:
    """Every claim against every tier's valid missions; an erratum is of all missions, so it is for one tier alone."""
    valid = [e for e in episodes if e.valid]
    tiers = sorted({e.tier for e in episodes})
    anew = {c.metric: c.corrected for c in erratum} if len(tiers) == 1 else {}
    rows = []
    for tier in tiers:
        own = [e for e in valid if e.tier == tier]
        rows += [_row(claim, tier, own, options, anew) for claim in CLAIMS]
    return rows


def verdict(claim: Claim, measured: Measured | None) -> str:
    """By the interval alone."""
    if measured is None or isinstance(measured, str):
        return UNMEASURED
    if claim.side == "at most":
        inside, outside = measured.high <= claim.limit, measured.low > claim.limit
    else:
        inside, outside = measured.low >= claim.limit, measured.high < claim.limit
    return HOLDS if inside else FAILS if outside else OPEN


def _figure(key: str, limit: float) -> str:
    entry = metric(key)
    return f"{100 * limit:g} %" if entry.share else f"{limit:g} {entry.unit}"


def _row(claim: Claim, tier: str, missions: Missions, options: Options, anew: Mapping[str, Interval]) -> dict[str, Any]:
    measured, told = _judged(claim, missions, options, anew)
    return {
        "tier": tier,
        "claim": claim.words,
        "source": claim.source,
        "metric": claim.metric,
        "claimed": claim.claimed,
        "limit": claim.limit,
        "side": claim.side,
        "definition": claim.definition,
        "measured": None if measured is None else _plain(measured),
        "verdict": told,
    }


def _judged(
    claim: Claim, missions: Missions, options: Options, anew: Mapping[str, Interval]
) -> tuple[Measured | None, str]:
    """What was measured, and the verdict on it."""
    if claim.measure is None:
        return None, UNMEASURED
    if not claim.recorded and any(e.schema < ISSUES for e in missions):
        found = anew.get(claim.recounted or "")
        return (CUT, UNRECORDED) if found is None else (found, verdict(claim, found))
    measured = claim.measure(missions, options)
    return measured, verdict(claim, measured)


def _plain(measured: Measured) -> dict[str, Any]:
    if isinstance(measured, str):
        return {"why": measured}
    return {**measured.plain, "why": ""}


def _error(pick: Callable[[Victim], float | None], views: int = 0) -> Callable[[Missions, Options], Measured]:
    """The median error of issued victims, right or not, of those seen from so many views at least."""

    def measure(missions: Missions, options: Options) -> Measured:
        victims = [(v, e.layout) for e in missions for v in e.victims if (v.views or 0) >= views]
        found = [(error, layout) for v, layout in victims if (error := pick(v)) is not None]
        if not found:
            return "no such victim was issued"
        errors, layouts = [error for error, _ in found], [layout for _, layout in found]
        exact = order_quantile(errors, 0.5, options.confidence, "issued victims")
        return replace(clustered.quantile(errors, 0.5, layouts, options, "issued victims"), exact=exact)

    return measure


def _alike(missions: Missions) -> list[EpisodeMetrics]:
    """What the claim on area is about: the partitioned lawnmower with four drones on 160 000 m², victims present."""
    return [
        e
        for e in missions
        if e.pattern == PATTERN
        and e.drones == DRONES
        and not e.configuration.get("policy")
        and abs(e.area_m2 - AREA_M2) <= 0.01 * AREA_M2
        and not e.victim_absent
    ]


def _covering_time(missions: Missions, options: Options) -> Measured:
    seen = watch(METRICS["time_to_95_s"], _alike(missions))
    found = median(METRICS["time_to_95_s"], seen, options)
    if found is None:
        return NOT_ALIKE
    if math.isinf(found.value):
        return f"half never covered 95 % ({sum(seen.came)} of {len(seen.came)} did)"
    return found


def _coverage(missions: Missions, options: Options) -> Measured:
    return estimate(METRICS["coverage_240s"], _alike(missions), options) or NOT_ALIKE


def _found(missions: Missions, options: Options) -> Measured:
    heard = [e for e in _alike(missions) if e.detections is not None]
    return estimate(METRICS["victims_found"], heard, options) or NOT_ALIKE


NOT_ALIKE = "no partitioned lawnmower with 4 drones on 160 000 m² was flown with victims and radio"
CLAIMS = (
    Claim(
        "localisation error",
        ADR_148,
        "cep50_m",
        1.732,
        "at most",
        "CEP50 at issue, without a cut, all patterns and noise levels; upstream's figure is a formula's value at one "
        "geometry, no error that was measured",
        _error(lambda v: v.error_m),
        recorded=False,
        recounted="cep50_m",
    ),
    Claim(
        "localisation error, last report",
        ADR_148,
        "cep50_m",
        1.732,
        "at most",
        "CEP50 at the last confident report of issued victims, without a cut, which is the kinder reading",
        _error(lambda v: v.final_error_m),
        recorded=False,
    ),
    Claim(
        "error with 3-view fusion",
        README,
        "cep50_m",
        2.0,
        "at most",
        "CEP50 at issue, without a cut, of the issues that rest on 3 views or more",
        _error(lambda v: v.error_m, views=3),
        recorded=False,
    ),
    Claim(
        "better than Wi2SAR's error",
        "upstream's methodology: CEP50 below 5 m, interval without 5 m",
        "cep50_m",
        5.0,
        "at most",
        "CEP50 at issue, without a cut; other sites and another method than Wi2SAR's",
        _error(lambda v: v.error_m),
        recorded=False,
        recounted="cep50_m",
    ),
    Claim(
        "time to cover 160 000 m²",
        f"{ADR_148}; an estimate by formula",
        "time_to_95_s",
        223.0,
        "at most",
        "median search time to 95 % of the area, partitioned lawnmower, 4 drones; take-off and the last 5 % left out",
        _covering_time,
    ),
    Claim(
        "160 000 m² within 4 min",
        README,
        "coverage_240s",
        0.95,
        "at least",
        "mean coverage at 240 s of search, partitioned lawnmower, 4 drones; covered taken as 95 %",
        _coverage,
    ),
    Claim(
        "partitioned lawnmower covers all",
        STAGE_1,
        "coverage_240s",
        0.9995,
        "at least",
        "mean coverage at 240 s; upstream flew 420 s on 250 000 m² with drones that jump",
        _coverage,
        "1.000",
    ),
    Claim(
        "every victim detected",
        STAGE_1,
        "victims_found",
        0.995,
        "at least",
        "share of victims found by the partitioned lawnmower; upstream counts a drone within 28 m as a detection",
        _found,
        "100 %",
    ),
    Claim(
        "Wi2SAR: 5 m, 160 000 m² in 810 s, one drone",
        "arXiv 2604.09115, as quoted in ADR-148 and ADR-149",
        "cep50_m",
        5.0,
        "at most",
        "another system: signal strength with a lens, phones that reconnect; paper-to-paper, no standing",
        None,
        "5 m, 810 s",
    ),
    Claim(
        "micro-benchmarks",
        "ADR-149 4.3",
        "latency",
        0.0,
        "at most",
        "latency of single calls on upstream's machine says nothing about missions",
        None,
        "3.3 µs, 43 µs, 54 ns, 248 µs",
    ),
)
