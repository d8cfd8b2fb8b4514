"""Claims against measurements: the verdict follows from the interval alone, and what was not measured is not judged."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from sar_analysis.metrics.findings import Victim
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.results.erratum import Correction
from sar_analysis.results.upstream import CLAIMS, Claim, upstream_claims, verdict
from sar_analysis.stats.interval import Interval
from tests.unit.sar_analysis.missions import campaign

AT_MOST = Claim("error", "somebody", "cep50_m", 2.0, "at most", "")
AT_LEAST = dataclasses.replace(AT_MOST, metric="coverage_240s", limit=0.95, side="at least")


@pytest.mark.parametrize(
    ("claim", "low", "high", "told"),
    [
        (AT_MOST, 1.0, 2.0, "holds"),
        (AT_MOST, 1.9, 2.1, "cannot be said"),
        (AT_MOST, 2.0, 3.0, "cannot be said"),
        (AT_MOST, 2.01, 3.0, "does not hold"),
        (AT_MOST, None, 1.5, "holds"),
        (AT_MOST, 2.5, None, "does not hold"),
        (AT_MOST, 1.0, None, "cannot be said"),
        (AT_MOST, None, None, "cannot be said"),
        (AT_LEAST, 0.95, 0.99, "holds"),
        (AT_LEAST, 0.90, 0.96, "cannot be said"),
        (AT_LEAST, 0.80, 0.94, "does not hold"),
    ],
)
def test_the_verdict_is_the_intervals(claim: Claim, low: float | None, high: float | None, told: str) -> None:
    ends = [math.nan if end is None else end for end in (low, high)]
    assert verdict(claim, Interval(1.0, *ends, 0.95, "", "", n=30)) == told


def test_what_nothing_measures_is_not_judged() -> None:
    assert verdict(AT_MOST, None) == verdict(AT_MOST, "nothing found") == "not measured here"


def village(base: EpisodeMetrics, **more: Any) -> list[EpisodeMetrics]:
    """Twelve layouts that differ a little in times and errors: where nothing varied nothing can be said."""
    facts: dict[str, Any] = {"drones": 4, "area_m2": 160_000.0, "time_to_95_s": 210.0} | more
    flown = [dataclasses.replace(e, **facts) for e in campaign(base, "partitioned_lawnmower", layouts=12)]
    return [_wobbling(e, 0.001 * (e.episode // 2)) for e in flown]


def _wobbling(e: EpisodeMetrics, by: float) -> EpisodeMetrics:
    errors = dict.fromkeys(("error_m", "final_error_m"), by)
    victims = tuple(
        dataclasses.replace(v, **{name: (getattr(v, name) or 0.0) + off for name, off in errors.items()})
        if v.detected
        else v
        for v in e.victims
    )
    time_s = None if e.time_to_95_s is None else e.time_to_95_s + by
    return dataclasses.replace(e, victims=victims, time_to_95_s=time_s)


def told(episodes: list[EpisodeMetrics], claim: str, *erratum: Correction) -> dict[str, Any]:
    (row,) = [row for row in upstream_claims(episodes, erratum=erratum) if row["claim"] == claim]
    return row


def test_claims_on_area_need_the_area_the_drones_and_the_pattern_they_are_about(base: EpisodeMetrics) -> None:
    name = "time to cover 160 000 m²"
    held = told(village(base), name)
    assert (held["verdict"], held["measured"]["n"]) == ("holds", 72)
    assert held["measured"]["value"] == pytest.approx(210.0, abs=0.02) and held["measured"]["cluster"] == "layout"
    assert told(village(base, time_to_95_s=230.0), name)["verdict"] == "does not hold"
    assert told(village(base, time_to_95_s=None), name)["measured"]["why"].startswith("half never covered 95 %")
    for other in ({"drones": 6}, {"area_m2": 40_000.0}, {"pattern": "spiral"}, {"area_m2": 0.0}):
        row = told(village(base, **other), name)
        assert row["verdict"] == "not measured here" and "no partitioned lawnmower" in row["measured"]["why"]


def test_bad_news_is_said(base: EpisodeMetrics) -> None:
    found = village(base)
    assert told(found, "160 000 m² within 4 min")["verdict"] == "does not hold", "coverage here is about 60 %"
    assert told(found, "every victim detected")["verdict"] == "does not hold", "half of the victims were missed"
    assert told(found, "localisation error")["verdict"] == "does not hold", "errors are 2 m, 1.732 m is claimed"
    assert told(found, "localisation error, last report")["verdict"] == "holds", "the last reports are 1 m off"


def test_views_are_counted(base: EpisodeMetrics) -> None:
    pair = Victim(1.0, 2.0, True, 30.0, 1.0, 0.9, constellation_gdop=1.2, views=2, final_error_m=1.0)
    seen = ((e, dataclasses.replace(pair, x_m=10.0 * (e.episode // 2))) for e in village(base))
    two = [_wobbling(dataclasses.replace(e, victims=(own,)), 0.001 * (e.episode // 2)) for e, own in seen]
    assert told(two, "error with 3-view fusion")["measured"]["why"] == "no such victim was issued"
    assert told(two, "localisation error")["verdict"] == "holds"


def test_invalid_missions_measure_nothing(base: EpisodeMetrics) -> None:
    rows = upstream_claims([dataclasses.replace(e, valid=False) for e in village(base)])
    assert len(rows) == len(CLAIMS) and {row["verdict"] for row in rows} == {"not measured here"}


def test_a_victim_issued_far_off_counts_with_its_error(base: EpisodeMetrics) -> None:
    """With the displaced ones left out the median is 2 m and less than 5 m is claimed: whoever cuts has it hold."""
    far = Victim(50.0, 60.0, False, 40.0, 30.0, 0.9, constellation_gdop=1.2, views=3, final_error_m=30.0)
    wide = []
    for e in village(base):
        off = [dataclasses.replace(far, y_m=y, error_m=30.0 + 0.1 * (e.episode // 2) + y / 100.0) for y in (0.0, 50.0)]
        wide.append(dataclasses.replace(e, victims=(e.victims[0], *off)))
    for claim in ("localisation error", "error with 3-view fusion", "better than Wi2SAR's error"):
        row = told(wide, claim)
        assert row["verdict"] == "does not hold" and row["measured"]["value"] > 30.0, claim
        assert row["measured"]["n"] == 3 * len(wide) and row["measured"]["cluster"] == "layout"


def test_errors_of_schema_1_are_judged_by_their_erratum_or_not_at_all(base: EpisodeMetrics) -> None:
    """Its records leave out what was more than 10 m off, so that their own median flatters."""
    old = [dataclasses.replace(e, schema=1) for e in village(base)]
    anew = Interval(4.54, 3.85, 5.29, 0.95, "bootstrap over layouts", "", 1000, 0, (), 1894, "issued victims", "layout")
    correction = Correction("CEP50 at issue", "cep50_m", "m", None, anew)
    names = [claim.words for claim in CLAIMS if claim.metric == "cep50_m" and claim.measure is not None]
    assert {told(old, name)["verdict"] for name in names} == {"undecided, not recorded"}
    assert "beyond 10 m" in told(old, names[0])["measured"]["why"]
    judged = {name: told(old, name, correction) for name in names}
    assert {name: row["verdict"] for name, row in judged.items()} == {
        "localisation error": "does not hold",
        "localisation error, last report": "undecided, not recorded",
        "error with 3-view fusion": "undecided, not recorded",
        "better than Wi2SAR's error": "cannot be said",
    }
    assert judged["better than Wi2SAR's error"]["measured"]["value"] == 4.54
    assert told(old, "time to cover 160 000 m²", correction)["verdict"] == "holds", "no error, so it is recorded"
    both = [*old, *(dataclasses.replace(e, tier="px4") for e in old)]
    rows = [row for row in upstream_claims(both, erratum=(correction,)) if row["claim"] == "better than Wi2SAR's error"]
    assert {row["verdict"] for row in rows} == {"undecided, not recorded"}, "an erratum is not of one tier of two"
