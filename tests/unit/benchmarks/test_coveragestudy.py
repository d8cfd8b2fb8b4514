"""The coverage study's truths are true, and it sees what it is there to see."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.coveragestudy import QUESTIONS, Effects, Shape, draw_table, main, mixture_iqm, study, true_iqm
from sar_analysis.stats.aggregate import iqm


@pytest.mark.parametrize("means", [[0.0], [-1.0, 0.0, 5.0], [0.0, 0.5, 1.0, 1.5, 2.0]])
def test_the_mixtures_iqm_is_that_of_a_large_sample(means: list[float]) -> None:
    sample = np.random.default_rng(1).normal(means, 0.8, (400_000, len(means)))
    assert mixture_iqm(np.array(means), 0.8) == pytest.approx(iqm(sample), abs=0.005)


def test_the_truths_are_what_many_seeds_and_many_layouts_come_to() -> None:
    scores, truth = draw_table(Effects(), 20_000, np.random.default_rng(3))
    assert iqm(scores.values) == pytest.approx(truth["on these episodes"], abs=0.02)
    many = Effects(seed=0.0, layouts_per_level=20_000)
    scores, _ = draw_table(many, 1, np.random.default_rng(4))
    expected = draw_table(Effects(seed=0.0), 1, np.random.default_rng(5))[1]["on new layouts"]
    assert iqm(scores.values) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("shape", ["heavy", "zeros"])
def test_the_truths_of_other_shapes_are_what_many_seeds_and_many_layouts_come_to(shape: Shape) -> None:
    scores, truth = draw_table(Effects(), 20_000, np.random.default_rng(3), shape)
    assert iqm(scores.values) == pytest.approx(truth["on these episodes"], abs=0.02)
    scores, _ = draw_table(Effects(seed=0.0, layouts_per_level=20_000), 1, np.random.default_rng(4), shape)
    expected = draw_table(Effects(seed=0.0), 1, np.random.default_rng(5), shape)[1]["on new layouts"]
    assert iqm(scores.values) == pytest.approx(expected, abs=0.03)
    if shape == "zeros":
        assert 0.1 < float((scores.values == 0.0).mean()) < 0.5
    else:
        assert float(np.abs(scores.values - np.median(scores.values)).max()) > 10.0, "no heavy tail to be seen"


def test_the_truth_from_points_is_the_closed_one_where_that_exists() -> None:
    """Normals far from zero: cutting there changes nothing, so both ways must agree."""
    means = np.array([20.0, 20.5, 23.0])
    assert true_iqm(means, 0.5, 1.0, "zeros") == pytest.approx(true_iqm(means, 0.5, 1.0, "normal"), abs=1e-4)


def test_few_seeds_undercover_strata_more_so_and_t_does_not() -> None:
    rows = {(r.design, r.reading, r.question): r for r in study(Effects(), 150, 300, 0, seed_counts=(3,))}
    these = QUESTIONS[0]
    assert rows["stratified", "percentile", these].coverage_high < 0.6
    assert rows["seeds", "percentile", these].coverage_high < 0.9
    assert rows["seeds", "t", these].coverage_high > 0.95
    assert (
        rows["seeds", "percentile", QUESTIONS[1]].coverage < rows["seeds_layouts", "percentile", QUESTIONS[1]].coverage
    )


def test_the_command_prints_tables_and_writes_repeatable_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = []
    for name in ("a.json", "b.json"):
        main(["--tables", "2", "--resamples", "100", "--seed", "7", "--json", str(tmp_path / name)])
        figures.append(json.loads((tmp_path / name).read_text()))
    assert figures[0] == figures[1]
    assert figures[0]["schema_version"] == 2 and figures[0]["effects"]["seed"] == 0.5
    printed = capsys.readouterr().out
    assert "| seeds_layouts, t |" in printed and "| method | 3 seeds | 5 seeds | 10 seeds | 16 seeds |" in printed
