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

from sar_analysis.render.method import how, shortfalls
from sar_analysis.render.wording import OPEN
from sar_analysis.stats import clustered
from sar_analysis.stats.interval import Interval
from sar_core.errors import MissingDependencyError
from sar_core.streams import stream
from sar_eval.stage1.fitflights import FitFlight
from sar_eval.stage1.observations import VICTIM, Observations, draw_error, first_report_s
from sar_eval.stage1.sight import heard_as_m, nearest_m

Floats = NDArray[np.float64]

COLUMNS = 120
DRAWS = 200
"""Fates drawn for each victim of a flight."""
DRAWN = "drawn fates"


@dataclass(frozen=True)
class Residual:
    """One noise level on flights not used for the fit: what was flown beside what the statistics foretell.

    Shares are of victims issued, right or not; times (s) and errors (m) are medians, infinite where most victims were
    not issued, None where none was. Every flight has a layout of its own, over which the intervals are.
    """

    sigma: float
    kappa: float
    victims: int
    issued: Interval | None
    issued_foretold: Interval | None
    time_s: Interval | None
    time_foretold_s: Interval | None
    error_m: Interval | None
    error_foretold_m: Interval | None
    alarms_per_flight: Interval | None
    alarms_foretold: Interval | None

    @property
    def figures(self) -> dict[str, Interval | None]:
        """All but the level and how many victims there were."""
        return {name: value for name, value in vars(self).items() if name not in ("sigma", "kappa", "victims")}

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON holds it: a median that was never reached is "inf"."""
        told = {name: None if found is None else dict(found.plain) for name, found in self.figures.items()}
        for found in filter(None, told.values()):
            found["value"] = "inf" if found["value"] is None else found["value"]
        return {**vars(self), **told}


def check(model: Observations, flights: Sequence[FitFlight], bodies: Floats) -> list[Residual]:
    """Foretell every victim's fate along its flight's own track among the world's bodies, many times, and compare."""
    rows = []
    for level, (sigma, kappa) in enumerate(model.levels):
        mine = [flight for flight in flights if flight.level == level]
        flown, foretold, errors, drawn_errors = _Values(), _Values(), _Values(), _Values()
        alarms, alarms_foretold = _Values(), _Values()
        for flight in mine:
            track = np.array(flight.track)
            for number, seen in enumerate(flight.sightings):
                if seen.kind != VICTIM:
                    alarms.add(flight, [seen.time_s is not None])
                    rate_per_s = model.alarm_rate_per_s[seen.kind][level]
                    alarms_foretold.add(flight, [-math.expm1(-rate_per_s * flight.search_s)])
                    continue
                flown.add(flight, [math.inf if seen.time_s is None else seen.time_s])
                errors.add(flight, [] if seen.error_m is None else [seen.error_m])
                u, v = stream("fit check", flight.seed, number).random((2, DRAWS))
                far = heard_as_m(nearest_m(bodies, track, np.array([seen.x, seen.y, seen.z])), seen.power_db)
                times = [first_report_s(model, level, far, flight.search_s, float(x)) for x in u]
                foretold.add(flight, [math.inf if t is None else t for t in times])
                came = [float(x) for x, t in zip(v, times, strict=True) if t is not None]
                drawn_errors.add(flight, [draw_error(model.errors[level], x)[0] for x in came])
        rows.append(
            Residual(
                sigma,
                kappa,
                len(flown.values),
                _share(flown, "victims"),
                _share(foretold, DRAWN),
                _median(flown, "victims"),
                _median(foretold, DRAWN),
                _median(errors, "issued victims"),
                _median(drawn_errors, DRAWN),
                _per_flight(alarms, mine),
                _per_flight(alarms_foretold, mine),
            )
        )
    return rows


class _Values:
    """Numbers with the seed of the flight, which is its layout, that each is from."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.layouts: list[int] = []

    def add(self, flight: FitFlight, values: Sequence[float]) -> None:
        self.values += values
        self.layouts += [flight.seed] * len(values)


def _share(times: _Values, unit: str) -> Interval | None:
    came = np.isfinite(times.values)
    return clustered.share(came, 1, times.layouts, unit=unit) if came.size else None


def _median(found: _Values, unit: str) -> Interval | None:
    return clustered.quantile(found.values, 0.5, found.layouts, unit=unit) if found.values else None


def _per_flight(counts: _Values, flights: Sequence[FitFlight]) -> Interval | None:
    """Events, or chances of one, per flight; those that are no counts have a mean's interval."""
    if not flights:
        return None
    seeds = [flight.seed for flight in flights]
    totals = np.array([sum(v for v, at in zip(counts.values, counts.layouts, strict=True) if at == s) for s in seeds])
    if (totals == np.floor(totals)).all():
        return clustered.rate(totals, 1, seeds, unit="flight")
    return clustered.mean(totals, seeds, unit="flights", bounds=(0.0, math.inf))


def as_page(model: Observations, digest: str, rows: Sequence[Residual], flights: int, picture: str | None) -> str:
    """The check as a page of Markdown; ``picture`` is how the page reaches it."""
    pairs = ("issued", "median time", "median error", "decoy alarms per flight")
    figures = [figure for row in rows for figure in row.figures.values()]
    heads = ("sigma", "kappa", "victims", *(f"{name}: flown, foretold" for name in pairs))
    lines = [
        f"# {model.name}: what Stage 1 knows of sensing, and how well",
        "",
        *textwrap.wrap(
            "Made by `sar-eval fit-observations`; the flights' seeds belong to calibration, no evaluation contains "
            f"them. Stage 2 (embedded), {model.world}: fitted on {len(model.seeds)} full-chain flights "
            f"({', '.join(model.patterns)}), checked on {flights} others. "
            f"Victims never issued count as infinitely late; {DRAWS} fates are drawn for each. Every flight has a "
            f"layout of its own. {how(figures)} {shortfalls(figures)} "
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


def pair(flown: Interval | None, foretold: Interval | None, form: str) -> str:
    """Two figures side by side with their intervals, in words where there is none."""

    def told(value: float) -> str:
        return OPEN if math.isnan(value) else "never" if math.isinf(value) else form.format(value)

    def held(found: Interval | None) -> str:
        return "none" if found is None else f"{told(found.value)} [{told(found.low)}, {told(found.high)}]"

    return f"{held(flown)}; {held(foretold)}"


def draw_check(model: Observations, rows: Sequence[Residual], picture: Path) -> None:
    """Flown against foretold by level: share issued, median time, median error."""
    try:
        import matplotlib
    except ImportError:
        raise MissingDependencyError(
            "matplotlib is not installed; get it with: pip install 'sar-eval[report]'"
        ) from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    def numbers(name: str) -> list[float]:
        found = [row.figures[name] for row in rows]
        return [math.nan if figure is None or math.isinf(figure.value) else figure.value for figure in found]

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
