"""The results as pictures: PNG for a screen, SVG for a paper, every value read from the document.

One column wide, in colours that colour-blind readers can tell apart (Okabe and Ito 2008), each with a line style or
marker of its own. The title names the tier, the line below says what the picture rests on. A picture nothing is known
for is not drawn, and ``undrawn`` says which and why. The same document gives the same SVG, byte for byte.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sar_analysis.render import plots
from sar_analysis.results.efficiency import EfficiencyCurve
from sar_analysis.results.model import ResultBody
from sar_core.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 220
FIGURES: dict[str, tuple[Callable[[ResultBody], Any], str]] = {
    "summary": (plots.summary, "no condition has a rate of false alarms or collisions"),
    "profiles": (plots.profiles, "no condition has a victim to localise"),
    "reliability": (plots.reliability, "no report carried a confidence"),
    "coverage": (plots.coverage, "no condition has a search of 10 s or more"),
    "noise": (plots.noise, "no missions were flown with radio at two noise levels or more"),
    "seeds": (plots.seeds, "no seed has a value"),
    "gdop": (plots.gdop, "no victim was detected"),
}
"""What draws each picture, and what it means when there is nothing to draw."""
_STYLE: Any = {
    "axes.grid": True,
    "axes.labelsize": 7.0,
    "axes.linewidth": 0.6,
    "axes.prop_cycle": "cycler('color', ['#0072B2'])",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 7.0,
    "font.family": "DejaVu Sans",
    "font.size": 7.0,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "legend.fontsize": 6.5,
    "lines.linewidth": 1.2,
    "svg.fonttype": "path",
    "svg.hashsalt": "sar_analysis",
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
}


def draw_figures(result: ResultBody, out: Path) -> list[Path]:
    """Write every picture the results have data for into a folder, as PNG and SVG; the paths in a fixed order."""
    return _written(((name, make_figure(name, result)) for name in FIGURES), out)


def draw_training(title: str, curves: Sequence[EfficiencyCurve], out: Path) -> list[Path]:
    """The same of what was evaluated while a policy was trained, which no campaign holds."""
    with _style():
        figure = plots.efficiency(title, curves)
    return _written([("efficiency", figure)], out)


def _written(figures: Iterable[tuple[str, Figure | None]], out: Path) -> list[Path]:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot create the folder of figures ({error.strerror})") from error
    written = []
    for name, figure in figures:
        if figure is not None:
            _settle(figure)
            written += [_save(figure, out / f"{name}.{kind}") for kind in ("png", "svg")]
    return written


def undrawn(written: Iterable[Path]) -> dict[str, str]:
    """Why each picture is missing that is not among those :func:`draw_figures` wrote."""
    there = {path.stem for path in written}
    return {name: reason for name, (_, reason) in FIGURES.items() if name not in there}


def make_figure(name: str, result: ResultBody) -> Figure | None:
    """One picture as a matplotlib figure, not yet written; None where the results have no data for it."""
    if name not in FIGURES:
        raise InputError(f"figure {name!r} is not known; allowed: {', '.join(FIGURES)}")
    with _style():
        figure: Figure | None = FIGURES[name][0](result)
    return figure


def _settle(figure: Figure) -> None:
    """Lay the panels out once and round where they lie: the solver's last digits change from run to run."""
    with _style():
        figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axis in figure.get_axes():
        x, y, width, height = axis.get_position(original=True).bounds
        axis.set_position((round(x, 5), round(y, 5), round(width, 5), round(height, 5)))


def _save(figure: Figure, path: Path) -> Path:
    """The picture in its place, whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    metadata: dict[str, Any] = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    try:
        with _style():
            figure.savefig(partial, format=path.suffix[1:], dpi=DOTS_PER_INCH, metadata=metadata)
        os.replace(partial, path)
    except OSError as error:
        raise InputError(f"{path}: cannot write the figure ({error.strerror})") from error
    finally:
        partial.unlink(missing_ok=True)
    return path


def _style() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MissingDependencyError(
            "matplotlib is not installed; get it with: pip install 'sar-eval[report]'"
        ) from None
    return matplotlib.rc_context(_STYLE)
