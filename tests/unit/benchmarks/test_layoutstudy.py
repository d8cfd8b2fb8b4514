"""The layout study draws what it says, and sees what it is there to see."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.layoutstudy import (
    FOUND,
    HORIZON_S,
    Cell,
    Kind,
    Row,
    cells,
    draw_tables,
    main,
    short,
    study,
    true_figure,
    truths_of,
)
from sar_analysis.stats.aggregate import iqm
from sar_analysis.stats.rates import order_quantile
from sar_core.errors import ContractError


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


@pytest.mark.parametrize("model", FOUND)
def test_times_have_the_misses_and_the_figures_they_are_held_to(model: str) -> None:
    (mean,) = (truth for name, truth in truths_of("rmst") if name == model)
    (middle,) = (truth for name, truth in truths_of("median_time") if name == model)
    times = draw_tables(Cell("rmst", 10, 3, model, mean, 0.4), 8_000, np.random.default_rng(3))
    assert times.shape == (8_000, 10, 6), "two victims in each of three missions"
    assert (times <= HORIZON_S).mean() == pytest.approx(FOUND[model], abs=0.01)
    assert np.minimum(times, HORIZON_S).mean() == pytest.approx(mean, rel=0.01)
    found = float(np.median(times))
    assert found == pytest.approx(middle, rel=0.02) if found < HORIZON_S else middle == np.inf


def test_issues_have_the_ppv_and_the_correlation_they_are_named_by() -> None:
    right, issues = draw_tables(Cell("ppv", 10, 3, "beta", 0.65, 0.4), 20_000, np.random.default_rng(4)).T
    assert right.sum() / issues.sum() == pytest.approx(0.65, rel=0.01)
    q = 2.0 * 0.65 / 1.65
    assert right.mean() / 6 == pytest.approx(q, rel=0.01)
    assert right.var() == pytest.approx(6 * q * (1.0 - q) * (1 + 5 * 0.4), rel=0.03)
    assert (issues - 6).mean() / 6 == pytest.approx(1.0 - q, rel=0.02), "decoy alarms of three missions and three more"


def test_restricted_means_of_few_layouts_say_that_they_fall_short_and_nothing_else_does() -> None:
    rows = study(["rmst", "median_time", "ppv"], [(10, 3)], 200, 200, 0)
    noted = {row.cell.kind: row.noted for row in rows if row.method == "printed"}
    assert noted == {"rmst": 1.0, "median_time": 0.0, "ppv": 0.0}
    assert {row.method for row in rows if row.cell.kind == "ppv"} > {"printed", "Clopper-Pearson", "Korn-Graubard"}
    never = [row for row in rows if row.cell.truth == np.inf and row.method == "printed"]
    assert never and all(row.mean_width is None and row.coverage > 0.9 for row in never)


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


def test_it_stops_in_time_goes_on_where_it_stopped_and_mixes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--tables", "10", "--resamples", "100", "--kinds", "iqm", "median_time", "--designs", "10x3"]
    whole, parts = tmp_path / "whole.json", tmp_path / "parts.json"
    main([*options, "--json", str(whole)])
    every = list(cells(["iqm", "median_time"], [(10, 3)]))
    for left in range(len(every) - 1, 0, -1):
        main([*options, "--json", str(parts), "--minutes", "0"])
        assert f"{left} cells are left; the same command with --json goes on" in capsys.readouterr().out
    main([*options, "--json", str(parts)])
    assert parts.read_text() == whole.read_text()
    told = json.loads(whole.read_text())["rows"]
    assert {row["cell"]["truth"] for row in told} > {None}, "never is null"
    assert len({(row["cell"]["model"], row["cell"]["correlation"]) for row in told}) == len(every)
    with pytest.raises(ContractError, match="made with resamples 100 instead of 200; give another name"):
        main([*options[:3], "200", *options[4:], "--json", str(parts)])


def test_a_short_cell_says_how_often_that_is_printed() -> None:
    cell = Cell("rmst", 10, 3, "30 % found", 210.0, 0.8)
    row = Row(cell, "printed", 200, 0.88, 0.83, 0.92, 60.0, 0.0, 0.0, noted=1.0)
    (told,) = short([row])
    assert told.endswith("correlation 0.8: 88.0 % (83.0 to 92.0), said so in 100 % of tables")
