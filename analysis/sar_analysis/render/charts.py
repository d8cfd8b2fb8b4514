"""Small charts as inline SVG: one panel per condition with the same axes, the others' curves faint behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sar_analysis.render.markup import Html, join, tag

WIDTH, HEIGHT = 320, 200
LEFT, RIGHT, TOP, BOTTOM = 38, 14, 8, 34


@dataclass(frozen=True)
class Axis:
    """A linear scale from low to high with labelled ticks."""

    label: str
    low: float
    high: float
    ticks: tuple[float, ...]
    percent: bool = False

    def part(self, value: float) -> float:
        """Where a value lies between the ends, held within them: 0..1."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def text(self, tick: float) -> str:
        return f"{100 * tick:.0f} %" if self.percent else f"{tick:g}"


@dataclass(frozen=True)
class ChartCurve:
    """Points x, y with an optional band; an end of the band may be unknown."""

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


SHARE = (0.0, 0.25, 0.5, 0.75, 1.0)


def interval_bar(value: float, low: float | None, high: float | None, axis: Axis) -> Html:
    """A value with its interval on a common scale, 100 wide; an open end is drawn to the border and dotted."""
    left, right = (
        (100 * axis.part(low) if low is not None else 0.0),
        (100 * axis.part(high) if high is not None else 100),
    )
    open_ended = low is None or high is None
    said = f"{axis.text(value)} on a scale from {axis.text(axis.low)} to {axis.text(axis.high)}"
    return tag(
        "svg",
        tag("line", x1=0, x2=100, y1=6, y2=6, class_="rail"),
        tag("line", x1=_n(left), x2=_n(right), y1=6, y2=6, class_="span endless" if open_ended else "span"),
        tag("line", x1=_n(100 * axis.part(value)), x2=_n(100 * axis.part(value)), y1=1, y2=11, class_="mark"),
        class_="bar",
        viewBox="-1 0 102 12",
        role="img",
        aria_label=said,
        preserveAspectRatio="none",
    )


def curve_panel(curve: ChartCurve, behind: Sequence[ChartCurve], x: Axis, y: Axis, title: str) -> Html:
    """One condition's curve with its band."""
    return _panel(
        x,
        y,
        title,
        [tag("path", d=_line(c.x, c.y, x, y), class_="behind") for c in behind],
        tag("path", d=_band(curve, x, y), class_="band") if curve.low else None,
        tag("path", d=_line(curve.x, curve.y, x, y), class_="curve"),
    )


def points_panel(points: Sequence[tuple[float, float, float, float, int]], x: Axis, y: Axis, title: str) -> Html:
    """Points (x, y, low, high, n) with whiskers against the diagonal; a point's area grows with n."""
    most = max((n for *_, n in points), default=1)
    drawn = []
    for px, py, low, high, n in points:
        at, radius = _x(px, x), 2.0 + 4.0 * (n / most) ** 0.5
        drawn.append(tag("line", x1=at, x2=at, y1=_y(low, y), y2=_y(high, y), class_="whisker"))
        dot = tag("title", f"confidence {px:.2f}: right {100 * py:.0f} % of {n}")
        drawn.append(tag("circle", dot, cx=at, cy=_y(py, y), r=_n(radius), class_="dot"))
    diagonal = tag("line", x1=_x(x.low, x), y1=_y(y.low, y), x2=_x(x.high, x), y2=_y(y.high, y), class_="ideal")
    return _panel(x, y, title, diagonal, drawn)


def _panel(x: Axis, y: Axis, title: str, *drawn: object) -> Html:
    grid, floor = [], HEIGHT - BOTTOM
    for tick in y.ticks:
        at = _y(tick, y)
        grid.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at, class_="grid"))
        grid.append(tag("text", y.text(tick), x=LEFT - 4, y=at, class_="tick end"))
    for tick in x.ticks:
        grid.append(tag("text", x.text(tick), x=_x(tick, x), y=floor + 12, class_="tick"))
    middle = (LEFT + WIDTH - RIGHT) // 2
    grid.append(tag("text", x.label, x=middle, y=HEIGHT - 4, class_="axis"))
    frame = tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=floor, y2=floor, class_="frame")
    return tag(
        "svg",
        tag("title", f"{title}: {y.label} against {x.label}"),
        join(grid, frame, drawn),
        class_="chart",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
    )


def _n(value: float) -> str:
    return f"{value:.1f}"


def _x(value: float, axis: Axis) -> str:
    return _n(LEFT + axis.part(value) * (WIDTH - LEFT - RIGHT))


def _y(value: float, axis: Axis) -> str:
    return _n(HEIGHT - BOTTOM - axis.part(value) * (HEIGHT - TOP - BOTTOM))


def _line(xs: Sequence[float], ys: Sequence[float], x: Axis, y: Axis) -> str:
    return "M" + "L".join(f"{_x(a, x)} {_y(b, y)}" for a, b in zip(xs, ys, strict=True))


def _band(curve: ChartCurve, x: Axis, y: Axis) -> str:
    known = [
        (a, low, high)
        for a, low, high in zip(curve.x, curve.low, curve.high, strict=True)
        if low is not None and high is not None
    ]
    there = [f"{_x(a, x)} {_y(high, y)}" for a, _, high in known]
    back = [f"{_x(a, x)} {_y(low, y)}" for a, low, _ in reversed(known)]
    return "M" + "L".join(there + back) + "Z" if known else ""
