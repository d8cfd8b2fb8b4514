"""Small charts: open ends are marked, and every point lies where its value says."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_analysis.render.charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    ChartCurve,
    curve_panel,
    interval_bar,
    points_panel,
)

EVIL = "<script>alert(1)</script>"


def test_an_open_end_is_drawn_to_the_border_and_marked() -> None:
    axis = Axis("m", 0.0, 20.0, (0.0, 20.0))
    bar = interval_bar(5.0, 4.0, None, axis)
    assert 'class="span endless"' in bar and 'x1="20.0" x2="100.0"' in bar
    assert "endless" not in interval_bar(5.0, 4.0, 6.0, axis)
    panel = curve_panel(
        ChartCurve([0, 1], [0, 1], [None, 0.5], [None, 1.0]), [], axis, axis, "<script>alert(1)</script>"
    )
    assert "<script>" not in panel and "NaN" not in panel


UNIT = Axis("share", 0.0, 1.0, (0.0, 0.5, 1.0), percent=True)


@given(st.floats(-1e3, 1e3), st.floats(0.1, 1e3), st.floats(allow_nan=False))
def test_a_value_beyond_an_axis_is_held_at_its_end(low: float, span: float, value: float) -> None:
    axis = Axis("x", low, low + span, ())
    part = axis.part(value)
    assert 0.0 <= part <= 1.0
    assert part == 0.0 or value > low
    assert part == 1.0 or value < low + span


def test_a_scale_is_said_in_its_own_unit() -> None:
    assert (UNIT.text(0.25), Axis("m", 0.0, 9.0, ()).text(2.5)) == ("25 %", "2.5")
    assert 'aria-label="50 % on a scale from 0 % to 100 %"' in interval_bar(0.5, 0.4, 0.6, UNIT)


def test_points_lie_where_their_values_say_and_the_plot_grows_upwards() -> None:
    text = points_panel([(0.0, 0.0, 0.0, 0.5, 4), (1.0, 1.0, 0.5, 1.0, 1)], UNIT, UNIT, "made")
    dots = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"', text)
    assert dots == [
        (f"{LEFT:.1f}", f"{HEIGHT - BOTTOM:.1f}", "6.0"),
        (f"{WIDTH - RIGHT:.1f}", f"{TOP:.1f}", "4.0"),
    ], "radius by the root of n"
    assert "confidence 1.00: right 100 % of 1" in text


def test_a_panel_without_points_or_band_is_still_a_panel() -> None:
    for text in (points_panel([], UNIT, UNIT, "made"), curve_panel(ChartCurve([], []), [], UNIT, UNIT, "made")):
        assert text.startswith("<svg>") is False and "made: share against share" in text
    unknown = curve_panel(ChartCurve([0.0, 1.0], [0.0, 1.0], [None, 0.1], [0.5, None]), [], UNIT, UNIT, "made")
    assert '<path d="" class="band">' in unknown, "no end of the band is made up"


def test_curves_and_points_must_pair() -> None:
    with pytest.raises(ValueError, match="zip"):
        curve_panel(ChartCurve([0.0, 1.0], [0.0]), [], UNIT, UNIT, "made")
