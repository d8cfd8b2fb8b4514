"""What each picture shows: one function per picture, from the results to a figure or None.

Lines and markers carry the condition's name as their label, so that what was drawn can be read back.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from sar_analysis.metrics.catalogue import NOISE_ENVELOPE, metric
from sar_analysis.render.canvas import (
    COLOURS,
    DASHES,
    MARKERS,
    band,
    frame,
    legend,
    level_of,
    short_labels,
    shown,
    with_victims,
)
from sar_analysis.render.method import how
from sar_analysis.render.wording import by_metric, calibration_words
from sar_analysis.results.efficiency import EfficiencyCurve
from sar_analysis.results.model import ResultBody
from sar_analysis.results.rows import EnvelopeRow, Figure, Section, Settings

MOST_ROWS, MOST_SEED_ROWS, MOST_LINES = 16, 12, 8
CEPS = ("cep50_m", "cep95_m")
SHORT_LABEL = 24
"""Characters of a label that leave two panels room beside it."""
SEEDS_PER_LINE = 6
YLABEL_COLUMNS = 18
SEEDS_SHOWN = ("coverage_240s", "victims_found", "episode_return", "missions_with_false_alarm")
"""Of these the first three that seeds have a value for."""


def summary(result: ResultBody) -> Any:
    """Missions with at least one decoy alarm, and with at least one collision, with intervals."""
    groups, note = shown(result, MOST_ROWS)
    names = ("missions_with_false_alarm", "missions_with_collision")
    figures = [by_metric(g.estimates) for g in groups]
    drawn = [name for name in names if any(name in own for own in figures)]
    if not drawn:
        return None
    widest = 20.0 * math.ceil(5.0 * max(own[name].high or 0.0 for own in figures for name in drawn if name in own))
    labels, common = short_labels(_named(groups))
    told = how(own.get(name) for own in figures for name in drawn)
    caption = f"{common}n = {_counts(groups)}. {told} {note}"
    side_by_side = max(map(len, labels)) <= SHORT_LABEL
    heights = [0.5 + 0.19 * len(groups)] * (1 if side_by_side else len(drawn))
    columns = len(drawn) if side_by_side else 1
    figure, axes = frame(result.title, "missions with at least one", caption, heights, columns)
    for axis, name in zip(axes, drawn, strict=True):
        for row, (own, label) in enumerate(zip(figures, labels, strict=True)):
            found = own.get(name)
            if found is None:
                axis.text(0.0, row, " not known", va="center", fontsize=6.0)
                continue
            low, high = _arms(found)
            axis.errorbar(
                100.0 * found.value, row, xerr=[[100.0 * low], [100.0 * high]], fmt="o", ms=3, capsize=2, label=label
            )
        axis.set(
            title=metric(name).label,
            xlabel="missions (%)",
            xlim=(-0.02 * widest, 1.02 * widest),
            ylim=(len(groups) - 0.5, -0.5),
        )
        axis.set_yticks(range(len(groups)), labels if axis is axes[0] or not side_by_side else [""] * len(groups))
    return figure


def profiles(result: ResultBody) -> Any:
    """Share of victims localised within tau."""
    groups, note = shown(result, MOST_LINES, lambda c: c.profile.tau_m)
    if not groups:
        return None
    labels, common = short_labels(_named(groups))
    victims = sum(group.victims for group in groups)
    caption = (
        f"{common}n = {victims} victims, {_counts(groups)}. A victim never detected counts as farther than 10 m. "
        f"Bands: 95 %, {groups[0].profile.method}. {note}"
    )
    figure, (axis,) = frame(result.title, "victims localised within tau", caption, [1.9], entries=len(groups))
    for k, (group, label) in enumerate(zip(groups, labels, strict=True)):
        curve = group.profile
        band(axis, k, label, curve.tau_m, curve.share, curve.low, curve.high)
    axis.set(xlabel="tau (m)", ylabel="share of victims (%)", xlim=(0.0, 10.0), ylim=(-2.0, 102.0))
    legend(figure, axis)
    return figure


def reliability(result: ResultBody) -> Any:
    """How often reports of a confidence were right, beside how often they claim to be."""
    found, bins = result.reliability, result.reliability.bins
    if not bins:
        return None
    told = how(b.right for b in bins)
    caption = f"n = {sum(b.right.n for b in bins)} reports. {calibration_words(found)}{told}"
    figure, (axis,) = frame(result.title, "reports that were right, by confidence", caption, [2.3], entries=1)
    axis.plot([0.0, 1.0], [0.0, 1.0], color="#888888", linestyle="--", linewidth=0.8, label="as claimed")
    shares, at = [b.right.value for b in bins], [b.mean_confidence for b in bins]
    below, above = zip(*(_arms(b.right) for b in bins), strict=True)
    axis.errorbar(at, shares, yerr=[below, above], fmt="o-", ms=3, capsize=2, color=COLOURS[0], label="flown")
    axis.set(xlabel="mean confidence", ylabel="share that was right", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axis.set_aspect("equal")
    legend(figure, axis, columns=2)
    return figure


def coverage(result: ResultBody) -> Any:
    """Area scanned over search time."""
    groups, note = shown(result, MOST_LINES, lambda c: c.coverage_curve.time_s)
    if not groups:
        return None
    labels, common = short_labels(_named(groups))
    caption = (
        f"{common}n = {_counts(groups)}. Lines: mean of missions; bands: from the 2.5th to the 97.5th percentile of "
        f"missions, each moment by itself. Dashed: 95 % and 240 s. {note}"
    )
    figure, (axis,) = frame(result.title, "area scanned", caption, [1.9], entries=len(groups))
    axis.axhline(95.0, color="#888888", linestyle="--", linewidth=0.7)
    axis.axvline(240.0, color="#888888", linestyle="--", linewidth=0.7)
    for k, (group, label) in enumerate(zip(groups, labels, strict=True)):
        curve = group.coverage_curve
        band(axis, k, label, curve.time_s, curve.mean, curve.low, curve.high)
    axis.set(xlabel="search time (s)", ylabel="area scanned (%)", ylim=(-2.0, 102.0))
    axis.set_xlim(left=0.0)
    legend(figure, axis)
    return figure


def noise(result: ResultBody) -> Any:
    """Detection, false alarms and circular error over the noise levels, one line per condition apart from noise."""
    rows = result.noise_envelope
    drawn = [name for name in NOISE_ENVELOPE if any(row.figure(name) for row in rows)]
    levels = sorted({_level(row) for row in rows}, key=lambda level: (level[0], -level[1]))
    if not drawn or len(levels) < 2:
        return None
    lines = result.envelopes()
    present = with_victims([condition for condition, _ in lines])
    few = len(lines) > MOST_LINES and bool(present)
    lines = [lines[k] for k in present] if few else lines
    kept = lines[:MOST_LINES]
    per_row = [row.missions for _, own in kept for row in own]
    labels, common = short_labels([(" ".join(row.condition for row in own), condition) for condition, own in kept])
    caption = (
        f"{common}n = {sum(per_row)} missions, {_range(per_row)} at each point. An end that too few detections "
        f"cannot give is left open. {how(row.figure(name) for _, own in kept for row in own for name in drawn)}"
    )
    if few:
        caption += " Missions with victims only."
    if len(lines) > len(kept):
        caption += f" The first {len(kept)} of {len(lines)} lines are drawn; the tables have all."
    figure, axes = frame(result.title, "noise envelope", caption, [1.05] * len(drawn), entries=len(kept), shared=True)
    for axis, name in zip(axes, drawn, strict=True):
        entry, factor = metric(name), 100.0 if metric(name).share else 1.0
        for k, ((_, own), label) in enumerate(zip(kept, labels, strict=True)):
            found = [(levels.index(_level(row)), e) for row in own if (e := row.figure(name)) is not None]
            found.sort(key=lambda pair: pair[0])
            at = [place + 0.06 * (k - (len(kept) - 1) / 2) for place, _ in found]
            arms = [_arms(e) for _, e in found]
            ends = [[factor * low for low, _ in arms], [factor * high for _, high in arms]]
            style = {"color": COLOURS[k], "linestyle": DASHES[k], "marker": MARKERS[k], "ms": 3, "capsize": 2}
            values = [factor * e.value for _, e in found]
            axis.errorbar(at, values, yerr=ends, label=label, elinewidth=0.8, **style)
        axis.set(ylabel=textwrap.fill(entry.axis, YLABEL_COLUMNS))
        axis.set_ylim((-4.0, 104.0) if entry.share else (0.0, 1.1 * axis.get_ylim()[1]))
    axes[-1].set_xticks(range(len(levels)), [level_of(sigma, kappa) for sigma, kappa in levels])
    axes[-1].set_xlim(-0.5, len(levels) - 0.5)
    legend(figure, axes[0])
    return figure


def _level(row: EnvelopeRow) -> tuple[float, float]:
    return row.sigma, float(row.kappa)


def seeds(result: ResultBody) -> Any:
    """Every seed's own value, so that nobody takes a mean of three for a population."""
    groups, note = shown(result, MOST_SEED_ROWS)
    places = {group.id: k for k, group in enumerate(groups)}
    rows = [row for row in (*result.seeds, *result.pooled_seeds) if row.condition in places]
    metrics = [m for m in SEEDS_SHOWN if any(row.metrics.get(m) is not None for row in rows)][:3]
    if not metrics:
        return None
    labels, common = short_labels(_named(groups))
    numbers = sorted({row.seed for row in rows})
    caption = f"{common}n = {_counts(groups)}; each mark is one seed, the bar their mean. {note}"
    height, lines = 0.45 + 0.19 * len(groups), math.ceil(len(numbers) / SEEDS_PER_LINE)
    figure, axes = frame(result.title, "seed by seed", caption, [height] * len(metrics), entries=lines)
    for axis, key in zip(axes, metrics, strict=True):
        entry = metric(key)
        factor = 100.0 if entry.share else 1.0
        known = [(row, factor * found.value) for row in rows if (found := row.metrics.get(key)) is not None]
        for k, number in enumerate(numbers):
            own = [(row, value) for row, value in known if row.seed == number]
            at = [places[row.condition] + 0.5 * ((k + 0.5) / len(numbers) - 0.5) for row, _ in own]
            style = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)], "linestyle": "none"}
            axis.plot([value for _, value in own], at, ms=3, label=f"seed {number}", **style)
        for name, place in places.items():
            values = [value for row, value in known if row.condition == name]
            if values:
                axis.plot([sum(values) / len(values)] * 2, [place - 0.3, place + 0.3], "k-", lw=1.0)
        axis.set(xlabel=entry.axis, ylim=(len(groups) - 0.5, -0.5))
        if entry.share:
            axis.set_xlim(-2.0, 102.0)
        axis.set_yticks(range(len(groups)), labels)
    legend(figure, axes[0], columns=SEEDS_PER_LINE)
    return figure


def gdop(result: ResultBody) -> Any:
    """Localisation error by the geometry of the detection."""
    groups, note = shown(result, MOST_LINES)
    groups = [group for group in groups if any(band.detections for band in group.gdop_bands)]
    if not groups:
        return None
    labels, common = short_labels(_named(groups))
    names = [band.name for band in groups[0].gdop_bands]
    found = sum(band.detections for group in groups for band in group.gdop_bands)
    caption = (
        f"{common}n = {found} issued victims, their number at each mark. Filled: CEP50, open: CEP95; their "
        f"intervals are in the tables. {note}"
    )
    figure, (axis,) = frame(result.title, "localisation error by GDOP", caption, [1.9], entries=len(groups))
    for k, (group, label) in enumerate(zip(groups, labels, strict=True)):
        shift = 0.8 * ((k + 0.5) / len(groups) - 0.5)
        bands = [b for b in group.gdop_bands if b.detections]
        at = [names.index(b.name) + shift for b in bands]
        style = {"color": COLOURS[k], "marker": MARKERS[k], "linestyle": "none", "ms": 4}
        fifty, most = ([cep.value for b in bands if (cep := getattr(b, key)) is not None] for key in CEPS)
        axis.plot(at, fifty, label=label, **style)
        axis.plot(at, most, label=f"_{label} CEP95", fillstyle="none", **style)
        for x, low, high, b in zip(at, fifty, most, bands, strict=True):
            axis.plot([x, x], [low, high], color=COLOURS[k], linewidth=0.6)
            axis.annotate(f"{b.detections}", (x, high), (0, 3), textcoords="offset points", ha="center", fontsize=5.5)
    axis.set(xlabel="constellation's GDOP at issue", ylabel="error (m)", xlim=(-0.5, len(names) - 0.5))
    axis.set_ylim(0.0, 1.1 * axis.get_ylim()[1])
    axis.set_xticks(range(len(names)), names)
    legend(figure, axis)
    return figure


def efficiency(title: str, curves: Sequence[EfficiencyCurve]) -> Any:
    """IQM of the return over environment steps, per policy."""
    curves = curves[:MOST_LINES]
    most = [f"{c.policy} {len(c.seeds)} seeds x {len(c.episodes)} episodes" for c in curves]
    caption = f"n: {'; '.join(most)}. Lines: IQM; bands: 95 %, {curves[0].method}, each step by itself."
    figure, (axis,) = frame(title, "return while training", caption, [1.9], entries=len(curves))
    for k, curve in enumerate(curves):
        band(axis, k, curve.policy, curve.steps, curve.iqm, curve.low, curve.high, factor=1.0)
    axis.set(xlabel="environment steps", ylabel="return (IQM)")
    legend(figure, axis)
    return figure


def _arms(found: Figure) -> tuple[float, float]:
    """How far an interval reaches below and above its value; nothing where an end is not known."""
    value, low, high = found.value, found.low, found.high
    return 0.0 if low is None else value - low, 0.0 if high is None else high - value


def _named(groups: Iterable[Section]) -> list[tuple[str, Settings]]:
    return [(group.id, group.condition.given()) for group in groups]


def _counts(groups: Sequence[Section]) -> str:
    missions, invalid = sum(g.missions for g in groups), sum(g.invalid for g in groups)
    seeds = {seed for g in groups for seed in g.seeds}
    return f"{missions} missions, {invalid} invalid, {len(seeds)} seeds"


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"
