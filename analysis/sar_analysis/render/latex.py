"""The same tables for a paper: booktabs, everything escaped, each table its own float with its caption."""

from __future__ import annotations

from collections.abc import Sequence

from sar_analysis.render.frontpage import front_tables
from sar_analysis.render.tables import text_tables
from sar_analysis.render.wording import TextTable
from sar_analysis.results.model import Document

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "σ": r"$\sigma$",
    "κ": r"$\kappa$",
    "∞": r"$\infty$",
    "·": r"$\cdot$",
    "²": r"\textsuperscript{2}",
    "³": r"\textsuperscript{3}",
    "°": r"\textdegree{}",
    "τ": r"$\tau$",
    "µ": r"$\mu$",
}
_TABLE = str.maketrans(_ESCAPES)


def results_latex(document: Document) -> str:
    """One file to \\input; it needs the packages booktabs and graphicx."""
    floats = [_float(table) for table in (*front_tables(document.result), *text_tables(document.result))]
    return "\n\n".join(["% Needs \\usepackage{booktabs} and \\usepackage{graphicx}.", *floats]) + "\n"


def escape(text: str) -> str:
    """Plain text as LaTeX shows it."""
    return text.translate(_TABLE)


def _float(table: TextTable) -> str:
    lines = [
        r"\begin{table}",
        rf"\caption{{{escape(table.title)}. {escape(table.caption)}}}",
        rf"\label{{tab:{table.name.replace('_', '-')}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{{'l' * len(table.columns)}}}",
        r"\toprule",
        _row(table.columns),
        r"\midrule",
        *(_row(row) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    # A cell that begins with a bracket would be read as the optional argument of the line break before it.
    return " & ".join(f"{{}}{escape(cell)}" if cell.startswith("[") else escape(cell) for cell in cells) + r" \\"
