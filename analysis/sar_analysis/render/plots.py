"""What each picture shows: one function per picture, from the ``result`` of a document to a figure or None.

Lines and markers carry the condition's name as their label, so that what was drawn can be read back.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
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
    number_of,
    short_labels,
    shown,
    with_victims,
)

Result = dict[str, Any]
Group = dict[str, Any]

MOST_ROWS, MOST_SEED_ROWS, MOST_LINES = 16, 12, 8
SHORT_LABEL = 24
"""Characters of a label that leave two panels room beside it."""
SEEDS_PER_LINE = 6
YLABEL_COLUMNS = 18
SEEDS_SHOWN = ("coverage_240s", "victims_found", "episode_return", "missions_with_false_alarm")
"""Of these the first three that seeds have a value for."""


def summary(result: Result) -> Any:
    """Missions with at least one false alarm, and with at least one collision, with exact intervals."""
    groups, note = shown(result, MOST_ROWS)
    names = ("missions_with_false_alarm", "missions_with_collision")
    drawn = [name for name in names if any(_estimate(g, name) for g in groups)]
    if not drawn:
        return None
    ends = [found["high"] for g in groups for name in drawn if (found := _estimate(g, name))]
    widest = 20.0 * math.ceil(5.0 * max(ends))
    labels, common = short_labels(groups)
    caption = f"{common}n = {_counts(groups)}. Bars: exact 95 % intervals (Clopper-Pearson). {note}"
    side_by_side = max(map(len, labels)) <= SHORT_LABEL
    heights = [0.5 + 0.19 * len(groups)] * (1 if side_by_side else len(drawn))
    columns = len(drawn) if side_by_side else 1
    figure, axes = frame(result, "missions with at least one", caption, heights, columns)
    for axis, name in zip(axes, drawn, strict=True):
        for row, (group, label) in enumerate(zip(groups, labels, strict=True)):
            found = _estimate(group, name)
            if found is None:
                axis.text(0.0, row, " not known", va="center", fontsize=6.0)
                continue
            low, high = _arms(found)
            axis.errorbar(
                100.0 * found["value"], row, xerr=[[100.0 * low], [100.0 * high]], fmt="o", ms=3, capsize=2, label=label
            )
        axis.set(
            title=metric(name).label,
            xlabel="missions (%)",
            xlim=(-0.02 * widest, 1.02 * widest),
            ylim=(len(groups) - 0.5, -0.5),
        )
        axis.set_yticks(range(len(groups)), labels if axis is axes[0] or not side_by_side else [""] * len(groups))
    return figure


def profiles(result: Result) -> Any:
    """Share of victims localised within tau."""
    groups, note = shown(result, MOST_LINES, "profile")
    if not groups:
        return None
    labels, common = short_labels(groups)
    victims = sum(group["victims"] for group in groups)
    caption = (
        f"{common}n = {victims} victims, {_counts(groups)}. A victim never detected counts as farther than 10 m. "
        f"Bands: 95 %, {groups[0]['profile'].get('method', 'each tau by itself')}. {note}"
    )
    figure, (axis,) = frame(result, "victims localised within tau", caption, [1.9], entries=len(groups))
    for k, (group, label) in enumerate(zip(groups, labels, strict=True)):
        curve = group["profile"]
        band(axis, k, label, curve["tau_m"], curve["share"], curve["low"], curve["high"])
    axis.set(xlabel="tau (m)", ylabel="share of victims (%)", xlim=(0.0, 10.0), ylim=(-2.0, 102.0))
    legend(figure, axis)
    return figure


def reliability(result: Result) -> Any:
    """How often reports of a confidence were right, beside how often they claim to be."""
    found = result.get("reliability") or {}
    bins = [b for b in found.get("bins", ()) if b["n"]]
    if not bins:
        return None
    caption = f"n = {sum(b['n'] for b in bins)} reports. Bars: exact 95 % intervals (Clopper-Pearson)."
    for key, name in (("brier", "Brier score"), ("ece", "expected calibration error")):
        if found.get(key) is not None:
            caption += f" {name[0].upper()}{name[1:]} {found[key]:.3f}."
    figure, (axis,) = frame(result, "reports that were right, by confidence", caption, [2.3], entries=1)
    axis.plot([0.0, 1.0], [0.0, 1.0], color="#888888", linestyle="--", linewidth=0.8, label="as claimed")
    shares = [b["right"] for b in bins]
    below = [share - b["share_low"] for share, b in zip(shares, bins, strict=True)]
    above = [b["share_high"] - share for share, b in zip(shares, bins, strict=True)]
    at = [b["mean_confidence"] for b in bins]
    axis.errorbar(at, shares, yerr=[below, above], fmt="o-", ms=3, capsize=2, color=COLOURS[0], label="flown")
    axis.set(xlabel="mean confidence", ylabel="share that was right", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axis.set_aspect("equal")
    legend(figure, axis, columns=2)
    return figure


def coverage(result: Result) -> Any:
    """Area scanned over search time."""
    groups, note = shown(result, MOST_LINES, "coverage_curve")
    if not groups:
        return None
    labels, common = short_labels(groups)
    caption = (
        f"{common}n = {_counts(groups)}. Lines: mean of missions; bands: from the 2.5th to the 97.5th percentile of "
        f"missions, each moment by itself. Dashed: 95 % and 240 s. {note}"
    )
    figure, (axis,) = frame(result, "area scanned", caption, [1.9], entries=len(groups))
    axis.axhline(95.0, color="#888888", linestyle="--", linewidth=0.7)
    axis.axvline(240.0, color="#888888", linestyle="--", linewidth=0.7)
    for k, (group, label) in enumerate(zip(groups, labels, strict=True)):
        curve = group["coverage_curve"]
        band(axis, k, label, curve["time_s"], curve["mean"], curve["low"], curve["high"])
    axis.set(xlabel="search time (s)", ylabel="area scanned (%)", ylim=(-2.0, 102.0))
    axis.set_xlim(left=0.0)
    legend(figure, axis)
    return figure


def noise(result: Result) -> Any:
    """Detection, false alarms and circular error over the noise levels, one line per condition apart from noise."""
    rows = result.get("noise_envelope") or []
    drawn = [name for name in NOISE_ENVELOPE if any(_known(row.get(name)) for row in rows)]
    levels = sorted({_level(row) for row in rows}, key=lambda level: (level[0], -level[1]))
    if not drawn or len(levels) < 2:
        return None
    lines = _noise_lines(result, rows)
    present = with_victims([condition for condition, _ in lines])
    few = len(lines) > MOST_LINES and bool(present)
    lines = [lines[k] for k in present] if few else lines
    kept = lines[:MOST_LINES]
    per_row = [row["missions"] for _, own in kept for row in own]
    labels, common = short_labels([{"id": _line_id(own), "condition": condition} for condition, own in kept])
    caption = (
        f"{common}n = {sum(per_row)} missions, {_range(per_row)} at each point. Bars: exact 95 % intervals; those of "
        "CEP50 from order statistics, where an end that too few detections cannot give is left open."
    )
    if few:
        caption += " Missions with victims only."
    if len(lines) > len(kept):
        caption += f" The first {len(kept)} of {len(lines)} lines are drawn; the tables have all."
    figure, axes = frame(result, "noise envelope", caption, [1.05] * len(drawn), entries=len(kept), shared=True)
    for axis, name in zip(axes, drawn, strict=True):
        entry, factor = metric(name), 100.0 if metric(name).share else 1.0
        for k, ((_, own), label) in enumerate(zip(kept, labels, strict=True)):
            known = sorted((row for row in own if _known(row.get(name))), key=lambda row: levels.index(_level(row)))
            at = [levels.index(_level(row)) + 0.06 * (k - (len(kept) - 1) / 2) for row in known]
            arms = [_arms(row[name]) for row in known]
            ends = [[factor * low for low, _ in arms], [factor * high for _, high in arms]]
            style = {"color": COLOURS[k], "linestyle": DASHES[k], "marker": MARKERS[k], "ms": 3, "capsize": 2}
            values = [factor * row[name]["value"] for row in known]
            axis.errorbar(at, values, yerr=ends, label=label, elinewidth=0.8, **style)
        axis.set(ylabel=textwrap.fill(entry.axis, YLABEL_COLUMNS))
        axis.set_ylim((-4.0, 104.0) if entry.share else (0.0, 1.1 * axis.get_ylim()[1]))
    axes[-1].set_xticks(range(len(levels)), [level_of(sigma, kappa) for sigma, kappa in levels])
    axes[-1].set_xlim(-0.5, len(levels) - 0.5)
    legend(figure, axes[0])
    return figure


def _level(row: dict[str, Any]) -> tuple[float, float]:
    return row["sigma"], number_of(row["kappa"])


def _noise_lines(result: Result, rows: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], list[Any]]]:
    """The envelope's rows by what was the same apart from noise; a row without its condition has world and pattern."""
    by_id = {group["id"]: group["condition"] for group in result.get("conditions") or []}
    lines: dict[str, tuple[dict[str, Any], list[Any]]] = {}
    for row in rows:
        whole = by_id.get(row.get("condition"), {key: row[key] for key in ("world", "pattern")})
        rest = {name: value for name, value in whole.items() if name not in ("sigma", "kappa")}
        lines.setdefault(json.dumps(rest, sort_keys=True), (rest, []))[1].append(row)
    return list(lines.values())


def _line_id(rows: Sequence[dict[str, Any]]) -> str:
    return " ".join(row["condition"] for row in rows if "condition" in row) or "all missions"


def seeds(result: Result) -> Any:
    """Every seed's own value, so that nobody takes a mean of three for a population."""
    groups, note = shown(result, MOST_SEED_ROWS)
    drawn = {g["id"] for g in groups}
    rows = [r for key in ("seeds", "pooled_seeds") for r in result.get(key) or [] if r["condition"] in drawn]
    metrics = [m for m in SEEDS_SHOWN if any(row["metrics"].get(m) is not None for row in rows)][:3]
    if not metrics:
        return None
    labels, common = short_labels(groups)
    places = {group["id"]: k for k, group in enumerate(groups)}
    numbers = sorted({row["seed"] for row in rows})
    caption = f"{common}n = {_counts(groups)}; each mark is one seed, the bar their mean. {note}"
    height, lines = 0.45 + 0.19 * len(groups), math.ceil(len(numbers) / SEEDS_PER_LINE)
    figure, axes = frame(result, "seed by seed", caption, [height] * len(metrics), entries=lines)
    for axis, key in zip(axes, metrics, strict=True):
        entry = metric(key)
        factor = 100.0 if entry.share else 1.0
        for k, number in enumerate(numbers):
            own = [r for r in rows if r["seed"] == number and r["metrics"].get(key) is not None]
            at = [places[row["condition"]] + 0.5 * ((k + 0.5) / len(numbers) - 0.5) for row in own]
            style = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)], "linestyle": "none"}
            axis.plot([factor * r["metrics"][key] for r in own], at, ms=3, label=f"seed {number}", **style)
        for group in groups:
            mine = [r["metrics"].get(key) for r in rows if r["condition"] == group["id"]]
            values = [factor * value for value in mine if value is not None]
            if values:
                axis.plot(
                    [sum(values) / len(values)] * 2,
                    [places[group["id"]] - 0.3, places[group["id"]] + 0.3],
                    "k-",
                    lw=1.0,
                )
        axis.set(xlabel=entry.axis, ylim=(len(groups) - 0.5, -0.5))
        if entry.share:
            axis.set_xlim(-2.0, 102.0)
        axis.set_yticks(range(len(groups)), labels)
    legend(figure, axes[0], columns=SEEDS_PER_LINE)
    return figure


def gdop(result: Result) -> Any:
    """Localisation error by the geometry of the detection."""
    groups, note = shown(result, MOST_LINES)
    groups = [group for group in groups if any(band["detections"] for band in group.get("gdop_bands") or ())]
    if not groups:
        return None
    labels, common = short_labels(groups)
    names = [band["name"] for band in groups[0]["gdop_bands"]]
    found = sum(band["detections"] for group in groups for band in group["gdop_bands"])
    caption = (
        f"{common}n = {found} detections, their number at each mark. Filled: CEP50, open: CEP95, without intervals. "
        f"{note}"
    )
    figure, (axis,) = frame(result, "localisation error by GDOP", caption, [1.9], entries=len(groups))
    for k, (group, label) in enumerate(zip(groups, labels, strict=True)):
        shift = 0.8 * ((k + 0.5) / len(groups) - 0.5)
        bands = [b for b in group["gdop_bands"] if b["detections"]]
        at = [names.index(b["name"]) + shift for b in bands]
        style = {"color": COLOURS[k], "marker": MARKERS[k], "linestyle": "none", "ms": 4}
        axis.plot(at, [b["cep50_m"] for b in bands], label=label, **style)
        axis.plot(at, [b["cep95_m"] for b in bands], label=f"_{label} CEP95", fillstyle="none", **style)
        for x, b in zip(at, bands, strict=True):
            axis.plot([x, x], [b["cep50_m"], b["cep95_m"]], color=COLOURS[k], linewidth=0.6)
            axis.annotate(
                f"{b['detections']}", (x, b["cep95_m"]), (0, 3), textcoords="offset points", ha="center", fontsize=5.5
            )
    axis.set(xlabel="GDOP at the first confident report", ylabel="error (m)", xlim=(-0.5, len(names) - 0.5))
    axis.set_ylim(0.0, 1.1 * axis.get_ylim()[1])
    axis.set_xticks(range(len(names)), names)
    legend(figure, axis)
    return figure


def efficiency(result: Result) -> Any:
    """IQM of the return over environment steps, per policy."""
    curves = (result.get("sample_efficiency") or [])[:MOST_LINES]
    if not curves:
        return None
    most = [f"{c['policy']} {len(c['seeds'])} seeds x {len(c['episodes'])} episodes" for c in curves]
    caption = f"n: {'; '.join(most)}. Lines: IQM; bands: 95 %, {curves[0]['method']}, each step by itself."
    figure, (axis,) = frame(result, "return while training", caption, [1.9], entries=len(curves))
    for k, curve in enumerate(curves):
        band(axis, k, curve["policy"], curve["steps"], curve["iqm"], curve["low"], curve["high"], factor=1.0)
    axis.set(xlabel="environment steps", ylabel="return (IQM)")
    legend(figure, axis)
    return figure


def _estimate(group: Group, metric: str) -> dict[str, Any] | None:
    return next((e for e in group["estimates"] if e["metric"] == metric and _known(e)), None)


def _known(estimate: dict[str, Any] | None) -> bool:
    return estimate is not None and estimate.get("value") is not None


def _arms(estimate: dict[str, Any]) -> tuple[float, float]:
    """How far an interval reaches below and above its value; nothing where an end is not known."""
    value, low, high = estimate["value"], estimate.get("low"), estimate.get("high")
    return 0.0 if low is None else value - low, 0.0 if high is None else high - value


def _counts(groups: Sequence[Group]) -> str:
    missions, invalid = sum(g["missions"] for g in groups), sum(g["invalid"] for g in groups)
    seeds = {seed for g in groups for seed in g["seeds"]}
    return f"{missions} missions, {invalid} invalid, {len(seeds)} seeds"


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"
