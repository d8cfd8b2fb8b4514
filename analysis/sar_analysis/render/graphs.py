"""The page's drawn sections: noise envelope, performance profiles, reliability, coverage over time."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from sar_analysis.metrics.catalogue import NOISE_ENVELOPE, metric
from sar_analysis.render.charts import SHARE, Axis, ChartCurve, curve_panel, points_panel
from sar_analysis.render.markup import Html, join, tag
from sar_analysis.render.panels import (
    METRES,
    Plain,
    counted,
    interval,
    name_of,
    note,
    number,
    presence,
    section,
    table,
)

SIGMA, KAPPA, ENDLESS = "\u03c3", "\u03ba", "\u221e"
TAU = Axis("\u03c4, metres", 0.0, 10.0, (0.0, 2.0, 4.0, 6.0, 8.0, 10.0))
CONFIDENCE = Axis("confidence of the report", 0.0, 1.0, SHARE)


def envelope(result: Plain) -> Html:
    """Noise levels as a table in which a darker cell is a higher share."""
    rows = result.get("noise_envelope") or []
    title = "Noise envelope"
    if not rows:
        return section("noise", title, note("No mission was flown with radio, so there are no noise levels."))
    told = f"Amplitude noise {SIGMA} grows downwards, phase noise to the right ({KAPPA} falls). Small: 95 % interval."
    return section("noise", title, note(told), *(_heats(name, group) for name, group in _levels(result, rows)))


def _levels(result: Plain, rows: Sequence[Plain]) -> list[tuple[str, list[Plain]]]:
    """Rows that differ in noise alone, with the name of what they share; a row of no known condition stands alone."""
    known = {c["id"]: _without_noise(c["condition"]) for c in result.get("conditions") or []}
    labels = {_without_noise(c["condition"]): c["label"] for c in result.get("pooled") or []}
    groups: dict[str, list[Plain]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(known.get(row.get("condition"), str(place)), []).append(row)
    return [
        (f"{labels.get(key) or _where(g[0])} ({', '.join(r['condition'] for r in g)})", g) for key, g in groups.items()
    ]


def _without_noise(condition: Plain) -> str:
    return json.dumps({k: v for k, v in condition.items() if k not in ("sigma", "kappa")}, sort_keys=True)


def _where(row: Plain) -> str:
    return f"{row['world']} · {row['pattern']} · {presence(row.get('victim_absent'))}".replace("_", " ")


def _heats(title: str, rows: Sequence[Plain]) -> Html:
    sigmas = sorted({r["sigma"] for r in rows}, key=_level)
    kappas = sorted({r["kappa"] for r in rows}, key=_level, reverse=True)
    drawn = []
    for key in NOISE_ENVELOPE:
        if not any(r.get(key) for r in rows):
            continue
        cells = []
        for sigma in sigmas:
            here = {r["kappa"]: r for r in rows if r["sigma"] == sigma}
            cells.append([f"{SIGMA} {_level(sigma):g}", *(_shade(key, here.get(kappa)) for kappa in kappas)])
        head = ["", *(f"{KAPPA} {ENDLESS if math.isinf(_level(k)) else f'{_level(k):g}'}" for k in kappas)]
        drawn.append(table(head, cells, f"{name_of(key)}: {counted(rows)}", class_="heat"))
    return join(tag("h3", title), tag("div", *drawn, class_="cards"))


def _level(value: Any) -> float:
    return float(value)


def _shade(key: str, row: Plain | None) -> object:
    found = None if row is None else row.get(key)
    if row is None or found is None:
        return "not flown" if row is None else "none"
    part = found["value"] if metric(key).share else METRES.part(found["value"])
    text = [number(key, found["value"]), tag("small", f"{interval(key, found)}, n {found['n']}")]
    return tag("span", *text, class_="shade", style=f"--share:{100 * part:.0f}%")


def _curves(result: Plain, key: str, x: str, y: str) -> list[tuple[Plain, ChartCurve]]:
    found = []
    for c in result.get("conditions") or []:
        drawn = c.get(key) or {}
        if drawn.get(x):
            found.append((c, ChartCurve(drawn[x], drawn[y], drawn.get("low") or (), drawn.get("high") or ())))
    return found


def _panels(found: Sequence[tuple[Plain, ChartCurve]], x: Axis, y: Axis) -> Html:
    drawn = []
    for c, curve in found:
        behind = [other for _, other in found if other is not curve]
        caption = tag("figcaption", tag("b", c["id"]), " ", c["label"])
        drawn.append(tag("figure", curve_panel(curve, behind, x, y, c["label"]), caption))
    return tag("div", *drawn, class_="cards")


def profiles(result: Plain) -> Html:
    found, title = _curves(result, "profile", "tau_m", "share"), "How well victims were localised"
    if not found:
        return section("profiles", title, note("No victims were searched for, so there is no performance profile."))
    told = "Share of victims whose first confident report was within τ; one never found is beyond 10 m. Band: 95 %."
    return section("profiles", title, _panels(found, TAU, Axis("share of victims", 0, 1, SHARE, True)), note(told))


def coverage(result: Plain) -> Html:
    found, title = _curves(result, "coverage_curve", "time_s", "mean"), "Coverage over time"
    if not found:
        return section("coverage", title, note("No mission has a coverage curve."))
    end = max(max(curve.x) for _, curve in found) or 1.0
    step = next(s for s in (10.0, 20.0, 60.0, 120.0, 300.0, 1e9) if end / s <= 6)
    time = Axis("search time, s", 0.0, end, tuple(k * step for k in range(int(end / step) + 1)))
    told = "Mean of the missions; the band holds the middle 95 % of missions at each time. Grey: the other conditions."
    return section("coverage", title, _panels(found, time, Axis("share of cells", 0, 1, SHARE, True)), note(told))


def reliability(result: Plain) -> Html:
    found, title = result.get("reliability") or {}, "Are confidences honest?"
    bins = found.get("bins") or []
    if not bins:
        return section("reliability", title, note("There are no reports, so there is no reliability curve."))
    points = [(b["mean_confidence"], b["right"], b["share_low"], b["share_high"], b["n"]) for b in bins]
    chart = points_panel(points, CONFIDENCE, Axis("share that was right", 0, 1, SHARE, True), title)
    rows = [
        [
            f"{b['low']:.1f} to {b['high']:.1f}",
            b["n"],
            f"{b['mean_confidence']:.3f}",
            f"{100 * b['right']:.1f} %",
            f"{100 * b['share_low']:.1f} to {100 * b['share_high']:.1f}",
        ]
        for b in bins
    ]
    head = ["confidence", "reports", "mean", "right", "95 % interval"]
    missions = counted(result.get("conditions") or [])
    told = (
        f"{found.get('reports')} reports ({found.get('which', 'all')}). Brier score {found['brier']:.4f}, expected "
        f"calibration error {found['ece']:.4f}. On the dashed line a confidence is honest."
    )
    return section(
        "reliability",
        title,
        tag("div", tag("figure", chart), table(head, rows, f"Reports by confidence: {missions}"), class_="cards"),
        note(told),
    )
