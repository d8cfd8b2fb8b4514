"""What pictures are made on and how conditions are named in them: one column wide, title above, caption below."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from sar_analysis.render.wording import setting
from sar_analysis.results.model import ResultBody
from sar_analysis.results.rows import Section, Settings

WIDTH_IN = 3.5
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8A00")
"""Okabe and Ito's, the yellow darkened: on white it would not be seen."""
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (6, 2)), (0, (3, 1, 1, 1)))
MARKERS = "osD^vPX*"
PARTS = ("tier", "world", "vehicle", "pattern", "profile", "drones", "sigma", "kappa", "victim_absent")
_CAPTION_COLUMNS, _EXTRA_COLUMNS = 82, 36
_CAPTION_LINE_IN, _LEGEND_LINE_IN = 0.115, 0.135


def shown(
    result: ResultBody, most: int, needs: Callable[[Section], object] = lambda c: c.missions
) -> tuple[list[Section], str]:
    """The conditions a picture has room for, and which, in words.

    All of them; or, while they are too many, those pooled over noise, of these the ones with victims, the first.
    """
    groups, pooled = list(filter(needs, result.conditions)), list(filter(needs, result.pooled))
    said = []
    if len(groups) > most and pooled:
        groups = pooled
        said.append("Noise levels are pooled.")
    present = with_victims([g.condition.given() for g in groups])
    if len(groups) > most and present:
        groups = [groups[k] for k in present]
        said.append("Missions with victims only.")
    if len(groups) > most:
        said.append(f"The first {most} of {len(groups)} conditions are drawn; the tables have all.")
    return groups[:most], " ".join(said)


def with_victims(conditions: Sequence[Settings]) -> list[int]:
    """Which conditions have victims; none where that is no choice, because all have or none has."""
    found = [k for k, condition in enumerate(conditions) if not condition.get("victim_absent")]
    return found if len(found) < len(conditions) else []


def short_labels(named: Sequence[tuple[str, Settings]]) -> tuple[list[str], str]:
    """What tells the conditions apart, and what they have in common as the beginning of a caption.

    A tier that all share stands in the title already. No two labels are the same: an id follows where they would be.
    """
    known = dict.fromkeys((*PARTS, *(key for _, own in named for key in own)))
    parts = [{key: _part(key, own[key]) for key in known if key in own} for _, own in named]
    keys = [key for key in known if any(key in part for part in parts)]
    same = [key for key in keys if len({repr(own.get(key)) for _, own in named}) == 1]
    common = ", ".join(filter(None, (parts[0][key] for key in same if key != "tier")))
    labels = [", ".join(filter(None, (part.get(k) for k in keys if k not in same))) for part in parts]
    told = [
        (f"{label} ({name})" if labels.count(label) > 1 else label) if label else name
        for label, (name, _) in zip(labels, named, strict=True)
    ]
    return told, f"{common}. " if common else ""


def frame(
    title: str,
    words: str,
    caption: str,
    heights: Sequence[float],
    columns: int = 1,
    entries: int = 0,
    shared: bool = False,
) -> tuple[Any, list[Any]]:
    """A figure one column wide: title, panels of these heights (inches), room for a legend, the caption's lines."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    lines = textwrap.wrap(caption, _CAPTION_COLUMNS)
    foot = _CAPTION_LINE_IN * len(lines) + 0.04
    below, above = foot + _LEGEND_LINE_IN * entries + 0.03, 0.2
    height = sum(heights) + 0.3 * len(heights) + below + above
    layout = ConstrainedLayoutEngine(rect=(0.0, below / height, 1.0, 1.0 - (below + above) / height))
    figure = Figure(figsize=(WIDTH_IN, height), layout=layout)
    figure.text(0.01, 1.0 - 0.04 / height, f"{title}: {words}", fontsize=8.0, va="top", gid="title")
    figure.text(0.01, 0.03 / height, "\n".join(lines), fontsize=6.0, va="bottom", linespacing=1.25, gid="caption")
    grid = figure.add_gridspec(len(heights), columns, height_ratios=list(heights))
    axes: list[Any] = []
    for row in range(len(heights)):
        for column in range(columns):
            axes.append(figure.add_subplot(grid[row, column], sharex=axes[0] if shared and axes else None))
            if shared and row < len(heights) - 1:
                axes[-1].tick_params(labelbottom=False)
    return figure, axes


def legend(figure: Any, axis: Any, columns: int = 1) -> None:
    """The labels of one panel, in the room the frame left between panels and caption."""
    caption = next(text for text in figure.texts if text.get_gid() == "caption")
    foot = _CAPTION_LINE_IN * len(caption.get_text().split("\n")) + 0.04
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(0.0, foot / figure.get_figheight()),
        ncols=columns,
        frameon=False,
        handlelength=2.6,
        labelspacing=0.25,
        columnspacing=1.0,
        borderaxespad=0.1,
    )


def band(
    axis: Any,
    number: int,
    label: str,
    x: Sequence[float],
    middle: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    factor: float = 100.0,
) -> None:
    """One line with its band; an end that is not known leaves a gap in the band."""
    line, edges = _scaled(middle, factor), (_scaled(low, factor), _scaled(high, factor))
    axis.plot(x, line, color=COLOURS[number], linestyle=DASHES[number], label=label)
    axis.fill_between(x, *edges, color=COLOURS[number], alpha=0.15, linewidth=0.0)


def _scaled(values: Sequence[float], factor: float) -> list[float]:
    return [factor * value if math.isfinite(value) else math.nan for value in values]


def _part(key: str, value: Any) -> str:
    if key == "policy":
        return value or ""
    if key not in PARTS:
        return textwrap.shorten(f"{words_of(key)} {setting(value)}", _EXTRA_COLUMNS, placeholder=" …")
    if value is None:
        return "no radio" if key == "sigma" else ""
    if key == "victim_absent":
        return "victims absent" if value else "victims present"
    if key == "sigma":
        return f"\N{GREEK SMALL LETTER SIGMA} {value:g}"
    if key == "kappa":
        return f"\N{GREEK SMALL LETTER KAPPA} {_kappa(float(value))}"
    return f"{value} drones" if key == "drones" else words_of(value)


def words_of(name: Any) -> str:
    return str(name).replace("_", " ")


def level_of(sigma: float, kappa: float) -> str:
    """A noise level in two short lines."""
    return f"\N{GREEK SMALL LETTER SIGMA} {sigma:g}\n\N{GREEK SMALL LETTER KAPPA} {_kappa(kappa)}"


def _kappa(kappa: float) -> str:
    return "∞" if math.isinf(kappa) else f"{kappa:g}"
