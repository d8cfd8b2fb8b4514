"""How well the fitted statistics foretell flights they were not fitted on, level by level, as a table and a picture."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import MissingDependencyError
from sar_core.streams import stream
from sar_eval.stage1.fitflights import FitFlight
from sar_eval.stage1.observations import VICTIM, Observations, draw_error, first_report_s
from sar_eval.stage1.sight import heard_as_m, nearest_m

Floats = NDArray[np.float64]

COLUMNS = 120
DRAWS = 200
"""Fates drawn for each victim of a flight."""


@dataclass(frozen=True)
class Residual:
    """One noise level on flights not used for the fit: what was flown beside what the statistics foretell.

    Shares are of victims issued, right or not; times (s) and errors (m) are medians, infinite where most victims were
    not issued, None where none was.
    """

    sigma: float
    kappa: float
    victims: int
    issued: float | None
    issued_foretold: float | None
    time_s: float | None
    time_foretold_s: float | None
    error_m: float | None
    error_foretold_m: float | None
    alarms_per_flight: float | None
    alarms_foretold: float | None


def check(model: Observations, flights: Sequence[FitFlight], bodies: Floats) -> list[Residual]:
    """Foretell every victim's fate along its flight's own track among the world's bodies, many times, and compare."""
    rows = []
    for level, (sigma, kappa) in enumerate(model.levels):
        mine = [flight for flight in flights if flight.level == level]
        flown, foretold, errors, drawn_errors = [], [], [], []
        alarms, alarms_foretold = 0, 0.0
        for flight in mine:
            track = np.array(flight.track)
            for number, seen in enumerate(flight.sightings):
                if seen.kind != VICTIM:
                    alarms += seen.time_s is not None
                    alarms_foretold -= math.expm1(-model.alarm_rate_per_s[seen.kind][level] * flight.search_s)
                    continue
                flown.append(math.inf if seen.time_s is None else seen.time_s)
                errors += [] if seen.error_m is None else [seen.error_m]
                u, v = stream("fit check", flight.seed, number).random((2, DRAWS))
                far = heard_as_m(nearest_m(bodies, track, np.array([seen.x, seen.y, seen.z])), seen.power_db)
                times = [first_report_s(model, level, far, flight.search_s, float(x)) for x in u]
                foretold += [math.inf if t is None else t for t in times]
                drawn_errors += [
                    draw_error(model.errors[level], float(x))[0] for x, t in zip(v, times, strict=True) if t is not None
                ]
        rows.append(
            Residual(
                sigma,
                kappa,
                len(flown),
                _share(flown),
                _share(foretold),
                _median(flown),
                _median(foretold),
                _median(errors),
                _median(drawn_errors),
                alarms / len(mine) if mine else None,
                alarms_foretold / len(mine) if mine else None,
            )
        )
    return rows


def _share(times: list[float]) -> float | None:
    return sum(map(math.isfinite, times)) / len(times) if times else None


def _median(values: list[float]) -> float | None:
    return float(np.quantile(values, 0.5, method="inverted_cdf")) if values else None


def as_page(model: Observations, digest: str, rows: Sequence[Residual], flights: int, picture: str | None) -> str:
    """The check as a page of Markdown; ``picture`` is how the page reaches it."""
    pairs = ("issued", "median time", "median error", "decoy alarms per flight")
    heads = ("sigma", "kappa", "victims", *(f"{name}: flown, foretold" for name in pairs))
    lines = [
        f"# {model.name}: what Stage 1 knows of sensing, and how well",
        "",
        *textwrap.wrap(
            "Made by `sar-eval fit-observations`; the flights' seeds belong to calibration, no evaluation contains "
            f"them. Stage 2 (embedded), {model.world}: fitted on {len(model.seeds)} full-chain flights "
            f"({', '.join(model.patterns)}), checked on {flights} others. "
            f"Victims never issued count as infinitely late; {DRAWS} fates are drawn for each. "
            f"sha256 `{digest}`, radio `{model.radio_sha256[:12]}`, calibration `{model.calibration_sha256[:12]}`.",
            COLUMNS,
            break_on_hyphens=False,
        ),
        "",
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
    ]
    for row in rows:
        cells = (
            f"{row.sigma:g}",
            f"{row.kappa:g}",
            str(row.victims),
            pair(row.issued, row.issued_foretold, "{:.0%}"),
            pair(row.time_s, row.time_foretold_s, "{:.0f} s"),
            pair(row.error_m, row.error_foretold_m, "{:.1f} m"),
            pair(row.alarms_per_flight, row.alarms_foretold, "{:.2f}"),
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "Issues of victims by level, over victim-seconds before them:",
        "",
        "| kappa | issues | victim-seconds |",
        "|---|---|---|",
    ]
    for (_, kappa), events, exposure in zip(model.levels, model.events, model.exposure_s, strict=True):
        lines.append(f"| {kappa:g} | {int(np.sum(events))} | {float(np.sum(exposure)):.0f} |")
    if picture is not None:
        lines += ["", f"![Flown against foretold, by noise level]({picture})"]
    return "\n".join(lines) + "\n"


def pair(flown: float | None, foretold: float | None, form: str) -> str:
    """Two figures side by side, in words where there is none."""

    def told(value: float | None) -> str:
        if value is None:
            return "none"
        return "never" if math.isinf(value) else form.format(value)

    return f"{told(flown)}, {told(foretold)}"


def draw_check(model: Observations, rows: Sequence[Residual], picture: Path) -> None:
    """Flown against foretold by level: share found, median time, median error."""
    try:
        import matplotlib
    except ImportError:
        raise MissingDependencyError(
            "matplotlib is not installed; get it with: pip install 'sar-eval[report]'"
        ) from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    def numbers(name: str) -> list[float]:
        values = [getattr(row, name) for row in rows]
        return [math.nan if value is None or math.isinf(value) else float(value) for value in values]

    panels = (
        ("victims issued (share)", "issued", "issued_foretold"),
        ("median time to the issue (s)", "time_s", "time_foretold_s"),
        ("median error at issue (m)", "error_m", "error_foretold_m"),
    )
    figure, axes = pyplot.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    places: Any = np.arange(len(rows))
    for axis, (title, flown, foretold) in zip(axes, panels, strict=True):
        axis.plot(places, numbers(flown), "o-", color="#1d4e89", label="flown, full chain")
        axis.plot(places, numbers(foretold), "s--", color="#c1121f", label="foretold by Stage 1")
        axis.set_xticks(places, [f"{row.kappa:g}\nn={row.victims}" for row in rows])
        axis.set(title=title, xlabel="kappa, victims flown")
        axis.set_ylim(bottom=0.0)
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False, fontsize=8)
    figure.suptitle(
        f"Stage 1 ({model.name}, {len(model.seeds)} flights) on flights it was not fitted on: {model.world}; "
        "no point where most victims were not found"
    )
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=100)
    pyplot.close(figure)
