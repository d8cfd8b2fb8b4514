"""Ticks on the 4 ms grid, and reasons to end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.errors import RunError
from sar_eval.backends.backend import STEP_S, SpoiltError, heed, never, time_of, times_of


@given(st.integers(1, 200_000))
def test_ticks_join_without_gap_or_overlap(tick: int) -> None:
    times = times_of(tick)
    assert times[0] == time_of(tick - 1) and times[-1] == time_of(tick)
    assert len(times) in (13, 14), "twelve or thirteen steps, and the last of the tick before"
    assert np.allclose(np.diff(times), STEP_S)


@given(st.integers(0, 200_000))
def test_a_tick_is_the_first_step_not_before_its_20_hz(tick: int) -> None:
    assert 0.0 <= time_of(tick) - tick / 20 + 1e-9 < STEP_S


def test_the_first_tick_is_one_instant() -> None:
    assert times_of(0).tolist() == [0.0]


def test_a_reason_to_stop_ends_the_wait_and_none_does_not() -> None:
    heed(never)
    heed(lambda: "")
    with pytest.raises(SpoiltError, match="interrupted: stopped before the first tick") as caught:
        heed(lambda: "interrupted")
    assert (caught.value.reason, caught.value.final) == ("interrupted", False)
    assert caught.value.exit_code == RunError.exit_code
