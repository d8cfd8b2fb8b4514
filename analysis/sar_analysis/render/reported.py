"""Tables of what reports came to: by pattern, as ADR-149 defines it, and by geometry at fixed times."""

from __future__ import annotations

from collections.abc import Sequence

from sar_analysis.metrics.catalogue import AS_ADR149, METRICS, REPORTED, labels
from sar_analysis.render.method import BESIDE, how
from sar_analysis.render.wording import NONE, TextTable, by_metric, estimate, make, spread, time
from sar_analysis.results.dilution import LEAST_ROOT, MOST_VIEWS
from sar_analysis.results.model import ResultBody
from sar_analysis.results.rows import Figure, TogetherRow


def reported(result: ResultBody) -> TextTable:
    """What reports came to, a column per figure: with victims and without together, noise levels pooled."""
    caption = (
        "Missions with victims and without together, noise levels pooled. A figure that needs what was not flown, or "
        "what its records do not hold, is none; PPV is of missions with victims and without, weighted one to one. "
    )
    return _table(result, "reported", "What the reports came to", REPORTED, caption)


def as_adr149(result: ResultBody) -> TextTable:
    """ADR-149's ten metrics by its own definitions, from the same flights."""
    caption = (
        "By the definitions of ADR-149, section 4.1, from the same flights: a detection is a report of confidence "
        "> 0.85 at any time of the mission and any distance; collisions are of two drones closer than 1.5 m. "
    )
    return _table(result, "adr149", "As ADR-149 defines it", AS_ADR149, caption)


def _table(result: ResultBody, name: str, title: str, keys: Sequence[str], caption: str) -> TextTable:
    rows = [
        (row.tier, row.pattern, str(row.missions), str(row.invalid), *(_cell(row, key) for key in keys))
        for row in result.together
    ]
    shown: list[Figure | None] = [e for row in result.together for e in row.estimates if e.metric in keys]
    columns = ("tier", "pattern", "missions", "invalid", *labels(keys))
    return make(result, name, title, columns, rows, f"{caption}{how(shown)} {BESIDE}")


def _cell(row: TogetherRow, key: str) -> str:
    if METRICS[key].aggregate == "median time":
        found = [item for item in row.times if item.metric == key and item.n]
        return time(found[0]) if found else NONE
    return estimate(by_metric(row.estimates).get(key), NONE)


def geometry_errors(result: ResultBody) -> TextTable:
    """Errors at fixed times of all victims."""
    rows = [
        (part.tier, f"{row.time_s:.0f} s", str(row.n), str(row.n - row.reported), *map(_or_far, ceps))
        for part in result.geometry
        for row in part.errors
        if (ceps := (row.cep50_m, row.cep95_m))
    ]
    shown = [figure for part in result.geometry for row in part.errors for figure in (row.cep50_m, row.cep95_m)]
    caption = (
        f"{_looks(result)} A victim without a report is infinitely far off; open: so far goes that end. {how(shown)}"
    )
    columns = ("tier", "at", "victims", "without a report", "CEP50", "CEP95")
    return make(result, "errors", "Error at fixed times", columns, rows, caption)


def _or_far(figure: Figure | None) -> str:
    return "infinite" if figure is None else spread("cep50_m", figure)


def geometry_bands(result: ResultBody) -> TextTable:
    """Errors at fixed times by band of constellation GDOP."""
    rows = [
        (part.tier, band.name, str(band.n), _or_none("cep50_m", band.cep50_m), _or_none("cep95_m", band.cep95_m))
        for part in result.geometry
        for band in part.bands
    ]
    shown = [figure for part in result.geometry for band in part.bands for figure in (band.cep50_m, band.cep95_m)]
    caption = f"{_looks(result)} Bands of the constellation's GDOP then. {how(shown)}"
    columns = ("tier", "constellation GDOP", "n", "CEP50", "CEP95")
    return make(result, "geometry", "Error by geometry, at fixed times", columns, rows, caption)


def geometry_correlations(result: ResultBody) -> TextTable:
    """How well each dilution foretells the error."""
    rows = [
        (
            part.tier,
            row.dilution,
            "all" if row.time_s is None else f"{row.time_s:.0f} s",
            str(row.n),
            NONE if row.rho is None else spread("rho", row.rho),
        )
        for part in result.geometry
        for row in part.correlations
    ]
    shown = [row.rho for part in result.geometry for row in part.correlations]
    caption = f"{_looks(result)} Spearman's rank correlation with the error, where defined. {how(shown)}"
    columns = ("tier", "dilution", "at", "n", "rho")
    return make(result, "dilution", "Which dilution foretells the error", columns, rows, caption)


def geometry_views(result: ResultBody) -> TextTable:
    """Errors at fixed times by number of views."""
    rows = [
        (
            *(part.tier, f"{row.time_s:.0f} s", view_words(row.views), str(row.n)),
            *(spread("cep50_m", row.cep50_m), spread("cep95_m", row.cep95_m)),
            _or_none("cep50_m", row.root_m),
        )
        for part in result.geometry
        for row in part.views
    ]
    shown = [figure for part in result.geometry for row in part.views for figure in (row.cep50_m, row.cep95_m)]
    caption = (
        f"{_looks(result)} 1/√N goes on from the CEP50 of the fewest views that {LEAST_ROOT} looks have. The bound and "
        f"chosen constellations: sar-eval views. {how(shown)}"
    )
    columns = ("tier", "at", "views", "n", "CEP50", "CEP95", "1/√N")
    return make(result, "views", "Error by number of views, at fixed times", columns, rows, caption)


def view_words(views: int) -> str:
    """The last row is of as many or more."""
    return f"{views} or more" if views == MOST_VIEWS else str(views)


def _or_none(key: str, figure: Figure | None) -> str:
    return NONE if figure is None else spread(key, figure)


def _looks(result: ResultBody) -> str:
    times = ", ".join(f"{at:.0f}" for at in result.geometry[0].times_s) if result.geometry else ""
    return f"What the swarm held of each victim {times} s into the search, of any confidence."
