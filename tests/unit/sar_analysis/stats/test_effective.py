"""What missions that share layouts are worth; how it meets the exact intervals is tested with the clustered ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sar_analysis.stats.effective import crowding, effective_poisson, effective_trials, korn_graubard
from sar_analysis.stats.rates import beta_ends

layouts = st.lists(st.tuples(st.integers(0, 10), st.just(10)), min_size=2, max_size=12)


def split(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    table = np.array(pairs, dtype=np.float64)
    return table[:, 0], table[:, 1]


@given(layouts)
def test_missions_are_never_worth_more_than_they_are(pairs: list[tuple[int, int]]) -> None:
    events, trials = split(pairs)
    worth = effective_trials(events, trials, 0.95)
    assert 0.0 < worth <= trials.sum()
    low, high = korn_graubard(events, trials)
    assert 0.0 <= low <= events.sum() / trials.sum() <= high <= 1.0


def test_events_that_crowd_in_few_layouts_are_worth_less() -> None:
    trials = np.full(10, 10.0)
    spread, crowded = np.full(10, 1.0), np.array([10.0] + [0.0] * 9)
    assert effective_trials(crowded, trials, 0.95) < 0.2 * effective_trials(spread, trials, 0.95)
    assert crowding(crowded, trials) > 5.0 * max(crowding(spread, trials), 1.0)
    wide, narrow = (effective_poisson(events, trials, 100) for events in (crowded, spread))
    assert wide[1] - wide[0] > 1.5 * (narrow[1] - narrow[0])


@pytest.mark.parametrize("events", [0.0, 10.0])
def test_where_all_are_alike_a_layout_is_one_trial(events: float) -> None:
    assert effective_trials(np.full(8, events), np.full(8, 10.0), 0.95) == 8.0


@given(st.integers(0, 30), st.integers(1, 30), st.floats(0.5, 0.99))
def test_whole_trials_are_clopper_pearsons(had: int, more: int, confidence: float) -> None:
    theirs = stats.binomtest(had, had + more).proportion_ci(confidence, "exact")
    low, high = beta_ends(had, more, confidence)
    assert (float(low), float(high)) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_no_event_counts_layouts_not_missions() -> None:
    """Three in the exposure of the layouts: the rule of three at 95 % one-sided, 3.69 at 97.5 %."""
    low, high = effective_poisson(np.zeros(5), np.full(5, 2.0), missions=50)
    assert low == 0.0 and high == pytest.approx(3.689 / (10.0 * 5 / 50), abs=1e-3)
    assert crowding(np.zeros(5), np.full(5, 2.0)) == 1.0
