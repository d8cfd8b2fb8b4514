"""The layout study draws what it says, and sees what it is there to see."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.layoutstudy import Cell, Kind, cells, draw_tables, main, short, study, true_figure
from sar_analysis.stats.aggregate import iqm
from sar_analysis.stats.rates import order_quantile


@pytest.mark.parametrize(("kind", "model"), [("share", "beta"), ("share", "logit-normal"), ("rate", "gamma")])
def test_counts_have_the_truth_and_the_correlation_they_are_named_by(kind: Kind, model: str) -> None:
    cell = Cell(kind, 10, 3, model, 0.25, 0.4)
    totals = draw_tables(cell, 20_000, np.random.default_rng(1))
    assert totals.mean() / 3 == pytest.approx(0.25, rel=0.02)
    single = 0.25 * 0.75 if kind == "share" else 0.25 / 0.6
    assert totals.var() == pytest.approx(3 * single * (1 + 2 * 0.4), rel=0.03)


@pytest.mark.parametrize("kind", ["cep50", "cep95", "mean", "iqm"])
def test_errors_have_the_figures_they_are_held_to(kind: Kind) -> None:
    errors = draw_tables(Cell(kind, 10, 3, "lognormal", 1.0, 0.6), 20_000, np.random.default_rng(2)).ravel()
    found = {
        "cep50": lambda: order_quantile(errors.tolist(), 0.5).value,
        "cep95": lambda: order_quantile(errors.tolist(), 0.95).value,
        "mean": errors.mean,
        "iqm": lambda: iqm(errors),
    }[kind]()
    assert found == pytest.approx(true_figure(kind), rel=0.02)
    logs = np.log(errors.reshape(-1, 3))
    assert np.corrcoef(logs[:, 0], logs[:, 1])[0, 1] == pytest.approx(0.6, abs=0.01)


def test_a_bootstrap_of_rare_events_collapses_and_what_is_printed_does_not() -> None:
    rows = study(["share"], [(10, 3)], 400, 500, 0)
    assert len(rows) == 7 * len(list(cells(["share"], [(10, 3)])))
    rare = {row.method: row for row in rows if (row.cell.truth, row.cell.correlation) == (0.02, 0.8)}
    assert rare["percentile"].coverage_high < 0.5 < rare["percentile"].without_width
    assert rare["Clopper-Pearson"].coverage_high < 0.93
    assert rare["printed"].coverage_low > 0.95
    assert not any(row.without_width for row in rows if row.method == "printed")
    assert not [row for row in rows if row.method == "printed" and row.coverage_high < 0.93], short(rows)


def test_the_command_writes_repeatable_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        files = ["--json", str(tmp_path / f"{name}.json"), "--markdown", str(tmp_path / f"{name}.md")]
        main(["--tables", "20", "--resamples", "100", "--kinds", "rate", "iqm", "--designs", "10x3", *files])
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()
    assert json.loads((tmp_path / "a.json").read_text())["schema_version"] == 1
    assert "| 10 x 3 | gamma | 0.005 | 0 |" in (tmp_path / "a.md").read_text() and "**iqm**" in capsys.readouterr().out
