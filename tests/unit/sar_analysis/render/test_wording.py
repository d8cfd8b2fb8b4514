"""Numbers as people read them: units, digits, and ends that so few values cannot give."""

from __future__ import annotations

import math

import pytest

from sar_analysis.render import wording


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("coverage", 0.12345, "12.3 %"),
        ("min_separation_m", 4.0, "4.00 m"),
        ("search_time_s", 240.04, "240.0 s"),
        ("min_clearance_m", -0.001, "0.00 m"),
    ],
)
def test_a_value_has_its_unit_and_its_digits(key: str, value: float, told: str) -> None:
    assert wording.number(key, value) == told
    assert wording.bare(key, value) == told.split(" ")[0]


@pytest.mark.parametrize("end", [None, math.nan, math.inf])
def test_an_end_that_is_missing_is_open(end: float | None) -> None:
    assert wording.bare("coverage", end) == wording.OPEN


def test_a_long_list_says_how_many_more() -> None:
    assert wording.short_list(["a", "b"]) == "a, b"
    told = wording.short_list(["a", "b", "c", "d"])
    assert told.startswith("a, b") and "2" in told
