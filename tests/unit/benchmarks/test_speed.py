"""The speed figures are what they are called; their size is for the command to print, not for a test to hope for."""

from __future__ import annotations

import pytest

from benchmarks.analysisspeed import measure

pytest.importorskip(
    "rliable", reason="rliable is the peer of these figures; get it with: pip install 'sar-eval[oracle]'"
)


def test_ratios_are_of_the_times_measured() -> None:
    found = measure(resamples=200, repeats=1)
    assert found.ratio == found.rliable_s / found.interval_s["stratified"]
    assert found.table_per_rliable == found.table_s / found.rliable_s
    assert min(found.interval_s.values()) > 0.0
