"""Figures of Stage-1 rows: every issued victim counts, right or not, with intervals over layouts."""

from __future__ import annotations

import numpy as np
import pytest

from sar_analysis.stage1.figures import FIGURES, policy_figures
from sar_analysis.stage1.rows import Stage1Row


def row(episode: int, errors: list[float] | None, displaced: int | None, **rest: object) -> Stage1Row:
    found = None if errors is None else sum(error <= 10.0 for error in errors)
    given = {
        "policy": "spiral",
        "seed": 0,
        "episode": episode,
        "return": 100.0 + episode,
        "detections": found,
        "errors_m": errors,
        "displaced": displaced,
        "localization_error_m": errors[0] if errors else None,
        "false_alarms": 0,
    }
    return Stage1Row.model_validate({**given, **rest})


def test_the_error_is_that_of_every_issued_victim() -> None:
    """Not of the first alone, and not of the right ones alone."""
    errors = [[2.0, 30.0], [4.0, 6.0], [8.0, 12.0], [], [5.0, 7.0]]
    figures = policy_figures([row(k, e, sum(x > 10.0 for x in e)) for k, e in enumerate(errors)], lambda k: k)["spiral"]
    assert figures["cep50_m"].value == pytest.approx(np.quantile(np.concatenate(errors), 0.5, method="inverted_cdf"))
    assert figures["cep50_m"].n == 8
    assert figures["displaced_issues"].value == pytest.approx(2 / 8)
    assert all(figure.cluster and figure.method for figure in figures.values())


def test_rows_that_tell_less_give_what_they_have() -> None:
    """From elsewhere: the first victim's error, and nothing of displaced ones."""
    rows = [row(k, None, None, localization_error_m=float(k + 1), detections=1) for k in range(5)]
    figures = policy_figures(rows, lambda k: k)["spiral"]
    assert figures["cep50_m"].value == 3.0 and "displaced_issues" not in figures
    assert set(figures) <= set(FIGURES)
