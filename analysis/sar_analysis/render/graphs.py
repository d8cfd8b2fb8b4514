"""The page's drawn sections: noise envelope, performance profiles, reliability, coverage over time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sar_analysis.metrics.catalogue import NOISE_ENVELOPE, metric
from sar_analysis.render.charts import SHARE, Axis, ChartCurve, curve_panel, points_panel
from sar_analysis.render.markup import Html, join, tag
from sar_analysis.render.method import how
from sar_analysis.render.panels import METRES, counted, interval, name_of, note, number, section, table
from sar_analysis.render.wording import calibration_words
from sar_analysis.results.model import ResultBody
from sar_analysis.results.rows import EnvelopeRow, Figure, Section

SIGMA, KAPPA, ENDLESS = "\u03c3", "\u03ba", "\u221e"
TAU = Axis("\u03c4, metres", 0.0, 10.0, (0.0, 2.0, 4.0, 6.0, 8.0, 10.0))
CONFIDENCE = Axis("confidence of the report", 0.0, 1.0, SHARE)


def envelope(result: ResultBody) -> Html:
    """Noise levels as a table in which a darker cell is a higher share."""
    title = "Noise envelope"
    if not result.noise_envelope:
        return section("noise", title, note("No mission was flown with radio, so there are no noise levels."))
    told = f"Amplitude noise {SIGMA} grows downwards, phase noise to the right ({KAPPA} falls). Small: 95 % interval."
    return section("noise", title, note(told), *(_heats(name, group) for name, group in _levels(result)))


def _levels(result: ResultBody) -> list[tuple[str, list[EnvelopeRow]]]:
    """Rows that differ in noise alone, with the name of what they share."""
    named = []
    for settings, rows in result.envelopes():
        label = next(c.label for c in result.pooled if c.condition.given("sigma", "kappa") == settings)
        named.append((f"{label} ({', '.join(row.condition for row in rows)})", rows))
    return named


def _heats(title: str, rows: Sequence[EnvelopeRow]) -> Html:
    sigmas = sorted({r.sigma for r in rows})
    kappas = sorted({r.kappa for r in rows}, key=float, reverse=True)
    drawn = []
    for key in NOISE_ENVELOPE:
        if not any(r.figure(key) for r in rows):
            continue
        cells = []
        for sigma in sigmas:
            here = {r.kappa: r for r in rows if r.sigma == sigma}
            cells.append([f"{SIGMA} {sigma:g}", *(_shade(key, here.get(kappa)) for kappa in kappas)])
        head = ["", *(f"{KAPPA} {ENDLESS if math.isinf(float(k)) else f'{float(k):g}'}" for k in kappas)]
        drawn.append(table(head, cells, f"{name_of(key)}: {counted(rows)}", class_="heat"))
    return join(tag("h3", title), tag("div", *drawn, class_="cards"))


def _shade(key: str, row: EnvelopeRow | None) -> object:
    if row is None:
        return "not flown"
    found = row.figure(key)
    if found is None:
        return "none"
    part = found.value if metric(key).share else METRES.part(found.value)
    text = [number(key, found.value), tag("small", f"{interval(key, found.low, found.high)}, n {found.n}")]
    return tag("span", *text, class_="shade", style=f"--share:{100 * part:.0f}%")


def _panels(found: Sequence[tuple[Section, ChartCurve]], x: Axis, y: Axis) -> Html:
    drawn = []
    for c, curve in found:
        behind = [other for _, other in found if other is not curve]
        caption = tag("figcaption", tag("b", c.id), " ", c.label)
        drawn.append(tag("figure", curve_panel(curve, behind, x, y, c.label), caption))
    return tag("div", *drawn, class_="cards")


def profiles(result: ResultBody) -> Html:
    title, known = "How well victims were localised", [(c, c.profile) for c in result.conditions]
    found = [(c, ChartCurve(p.tau_m, p.share, p.low, p.high)) for c, p in known if p.tau_m]
    if not found:
        return section("profiles", title, note("No victims were searched for, so there is no performance profile."))
    told = "Share of victims whose issue was within τ; one never issued is beyond any τ. Band: 95 %."
    return section("profiles", title, _panels(found, TAU, Axis("share of victims", 0, 1, SHARE, True)), note(told))


def coverage(result: ResultBody) -> Html:
    title, known = "Coverage over time", [(c, c.coverage_curve) for c in result.conditions]
    found = [(c, ChartCurve(v.time_s, v.mean, v.low, v.high)) for c, v in known if v.time_s]
    if not found:
        return section("coverage", title, note("No mission has a coverage curve."))
    end = max(max(curve.x) for _, curve in found) or 1.0
    step = next(s for s in (10.0, 20.0, 60.0, 120.0, 300.0, 1e9) if end / s <= 6)
    time = Axis("search time, s", 0.0, end, tuple(k * step for k in range(int(end / step) + 1)))
    told = "Mean of the missions; the band holds the middle 95 % of missions at each time. Grey: the other conditions."
    return section("coverage", title, _panels(found, time, Axis("share of cells", 0, 1, SHARE, True)), note(told))


def _whisker(found: Figure) -> tuple[float, float, float]:
    """Value and ends; an end that is not known is not drawn."""
    value, low, high = found.value, found.low, found.high
    return value, value if low is None else low, value if high is None else high


def reliability(result: ResultBody) -> Html:
    found, title = result.reliability, "Are confidences honest?"
    if not found.bins:
        return section("reliability", title, note("There are no reports, so there is no reliability curve."))
    rights = [b.right for b in found.bins]
    points = [(b.mean_confidence, *_whisker(b.right), b.right.n) for b in found.bins]
    chart = points_panel(points, CONFIDENCE, Axis("share that was right", 0, 1, SHARE, True), title)
    rows = [
        [
            f"{b.low:.1f} to {b.high:.1f}",
            b.right.n,
            f"{b.mean_confidence:.3f}",
            number("victims_found", b.right.value),
            interval("victims_found", b.right.low, b.right.high),
        ]
        for b in found.bins
    ]
    head = ["confidence", "reports", "mean", "right", "95 % interval"]
    missions = counted(result.conditions)
    told = (
        f"{found.reports} reports ({found.which}). {calibration_words(found)}"
        f"{how(rights)} On the dashed line a confidence is honest."
    )
    return section(
        "reliability",
        title,
        tag("div", tag("figure", chart), table(head, rows, f"Reports by confidence: {missions}"), class_="cards"),
        note(told),
    )
