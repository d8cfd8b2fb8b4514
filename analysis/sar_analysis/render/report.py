"""Everything one command writes: the document, its texts, figures and page, all or nothing in one folder.

A reader never sees half of a report; an earlier one of ours is replaced, anything else is never touched.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sar_analysis.render.csvfiles import write_csv_files
from sar_analysis.render.figures import draw_figures, undrawn
from sar_analysis.render.latex import results_latex
from sar_analysis.render.markdown import pages
from sar_analysis.render.page import write_page
from sar_analysis.render.wholefolder import FolderKind
from sar_analysis.results.document import build_results, check_options
from sar_analysis.results.model import Document
from sar_analysis.results.optimality import load_reference
from sar_analysis.results.stagegap import Stage1Prediction
from sar_analysis.stage1.rows import read_stage1
from sar_analysis.table import Table, analyze
from sar_core.errors import MissingDependencyError

TEXTS = ("RESULTS.md", "TABLES.md", "results.json", "results.tex", "episodes.csv", "victims.csv", "summary.csv")
PAGE, FIGURES = "report.html", "figures"
FOLDER = FolderKind("a report", (*TEXTS, PAGE), FIGURES, (".png", ".svg"))


@dataclass(frozen=True)
class WrittenReport:
    """Where it lies, what it holds (relative names), what had to be left out and why, and the document itself."""

    out: Path
    files: tuple[str, ...]
    left_out: tuple[str, ...]
    document: Document


def write_report(
    folder: Path,
    out: Path,
    registration: Path | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    reference: Path | None = None,
    stage1: Path | None = None,
    workers: int | None = None,
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> WrittenReport:
    """Analyse a folder of bags (or records) and write the report; refused before reading if it could not be written."""
    check_options(resamples, seed)
    FOLDER.check_place(out)
    oracle = None if reference is None else load_reference(reference)
    foretold = None if stage1 is None else Stage1Prediction(stage1.name, read_stage1(stage1))
    table = analyze(folder, workers, tell)
    document = build_results(table, registration, resamples, seed, oracle, foretold)
    with FOLDER.made(out) as fresh:
        write_texts(document, table, fresh)
        left_out = _drawn(document, fresh)
        write_page(document, table, table.bags, fresh / PAGE)
        files = sorted(str(f.relative_to(fresh)) for f in fresh.rglob("*") if f.is_file())
    return WrittenReport(out, tuple(files), tuple(left_out), document)


def write_texts(document: Document, table: Table, folder: Path) -> None:
    """RESULTS.md, TABLES.md, results.json, results.tex and the CSV files."""
    for name, text in pages(document).items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "results.tex").write_text(results_latex(document), encoding="utf-8")
    (folder / "results.json").write_text(document.text(indent=1), encoding="utf-8")
    write_csv_files(document, table, folder)


def default_place(folder: Path) -> Path:
    """Inside a folder of bags, beside a single bag or a file of records."""
    folder = folder.resolve()
    alone = folder.is_file() or (folder / "metadata.yaml").exists()
    name = folder.stem if folder.is_file() else folder.name
    return folder.with_name(f"{name}-report") if alone else folder / "report"


def _drawn(document: Document, folder: Path) -> list[str]:
    """Draw the figures; what is missing for that is said, and the rest of the report stands without them."""
    try:
        drawn = draw_figures(document.result, folder / FIGURES)
    except MissingDependencyError as error:
        shutil.rmtree(folder / FIGURES, ignore_errors=True)
        return [f"figures: {error}"]
    return [f"figure {name}: {why}" for name, why in undrawn(drawn).items()]
