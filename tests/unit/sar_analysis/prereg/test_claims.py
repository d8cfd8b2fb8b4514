"""A registration's thresholds are decided by exactly the intervals it registered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sar_analysis.prereg.claims import compare, decide, estimate
from sar_analysis.prereg.prereg import Registration
from sar_analysis.stats.improvement import paired_improvement
from sar_analysis.stats.resampling import bootstrap, paired
from sar_analysis.stats.scores import Scores, of_matrix
from sar_analysis.stats.statistics import quantile_of
from sar_core.errors import MissingDataError


def registered(**changes: Any) -> Registration:
    base: dict[str, Any] = {
        "schema_version": 1,
        "hypothesis": "a beats b by one",
        "conditions": [{"name": "a"}, {"name": "b"}],
        "seeds": list(range(10)),
        "episodes": {"set_version": 1, "indices": list(range(12))},
        "metric": "return",
        "bootstrap": {"method": "seeds_layouts", "resamples": 1500, "seed": 4, "confidence": 0.9},
    }
    return Registration.model_validate(base | changes)


def tables() -> dict[str, Scores]:
    """a is better than b by about 1.5 in every cell, under a large seed effect that pairing removes."""
    rng = np.random.default_rng(1)
    shared = 5.0 * rng.normal(size=(10, 1)) + rng.normal(size=(10, 12))
    shared -= shared.mean()
    return {
        "a": of_matrix("return", shared + 1.5 + 0.1 * rng.normal(size=(10, 12))),
        "b": of_matrix("return", shared),
    }


def claim(limit: float, **more: Any) -> dict[str, Any]:
    return {"condition": "a", "part": "low", "relation": "at_least", "limit": limit} | more


def test_intervals_are_made_as_registered() -> None:
    t = tables()
    registration = registered(estimator="median")
    expected = bootstrap(t["a"], lambda s: quantile_of(s, 0.5), "seeds_layouts", "percentile", 1500, 4, 0.9)
    assert estimate(registration, t["a"]) == expected
    assert compare(registered(), t["a"], t["b"]) == paired(
        t["a"], t["b"], design="seeds_layouts", resamples=1500, seed=4, confidence=0.9
    )
    improvement = compare(registered(estimator="probability_of_improvement"), t["a"], t["b"])
    assert improvement == paired_improvement(t["a"], t["b"], "seeds_layouts", "percentile", 1500, 4, 0.9)


def test_thresholds_are_decided_one_by_one() -> None:
    registration = registered(thresholds=[claim(1.0, against="b"), claim(2.0, against="b"), claim(1.0)])
    verdicts = decide(registration, tables())
    assert [verdict.holds for verdict in verdicts] == [True, False, False]
    assert ["paired" in v.interval.estimand for v in verdicts if v.interval] == [True, True, False]


def test_a_claim_without_its_table_or_its_number_says_why() -> None:
    t = tables()
    claims = [claim(1.0, against="b"), claim(-9.0)]
    lost, kept = decide(registered(thresholds=claims), {"a": t["a"], "b": "b was never flown"})
    assert (lost.holds, lost.interval, lost.refused) == (None, None, "b was never flown")
    assert (kept.holds, kept.refused) == (True, None)
    endless = of_matrix("return", np.where(np.arange(12) < 8, np.inf, t["a"].values))
    t_reading = {"method": "seeds", "reading": "t"}
    (undefined,) = decide(
        registered(estimator="median", bootstrap=t_reading, thresholds=[claim(0.0)]), {"a": endless, "b": endless}
    )
    assert undefined.refused == "return: its low end is undefined; a median among misses needs a percentile interval"


def test_a_condition_without_a_table_is_refused() -> None:
    with pytest.raises(MissingDataError, match="return: no table for condition b; all are needed"):
        decide(registered(), {"a": tables()["a"]})
