"""Studies of reports on hand-made results: curves, paired differences, calibration figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_core.errors import InputError, MissingDataError
from sar_eval.studies.studies import (
    THRESHOLDS,
    draw_gate_study,
    draw_reliability,
    judge_confidence,
    operating_curve,
    paired_difference,
)


def mission(*tracks: tuple[float, bool], victims: int = 1) -> dict[str, Any]:
    words = [{"confidence": p, "right": right} for p, right in tracks]
    return {"valid": True, "victims": [{}] * victims, "tracks": [{"first": word, "last": word} for word in words]}


def test_a_curve_trades_alarms_for_victims() -> None:
    curve = operating_curve([mission((0.9, True), (0.3, False)), mission((0.5, True), (0.95, False))])
    by_threshold = dict(zip(np.round(THRESHOLDS, 2).tolist(), curve, strict=True))
    assert by_threshold[0.02] == (1.0, 1.0)
    assert by_threshold[0.4] == (0.5, 1.0)
    assert by_threshold[0.92] == (0.5, 0.0)
    assert by_threshold[0.98] == (0.0, 0.0)


def test_two_right_reports_of_one_victim_count_once() -> None:
    assert operating_curve([mission((0.9, True), (0.8, True))])[0] == (0.0, 1.0)


def test_a_paired_difference_ignores_what_both_share() -> None:
    rng = np.random.default_rng(5)
    shared = rng.normal(0.0, 10.0, 200)
    gap = paired_difference(list(shared + 1.0), list(shared), "x")
    assert gap.value == pytest.approx(1.0)
    assert gap.ends["low"] is gap.ends["high"] is None and gap.notes == ("all 200 missions gave 1: no spread seen",)
    one = paired_difference([2.0], [1.0], "x")
    assert one.ends["low"] is None and one.notes == ("one mission: says nothing about any other",)
    noise = paired_difference(list(shared + rng.normal(0.5, 1.0, 200)), list(shared), "x")
    assert noise.low < 0.5 < noise.high and noise.high - noise.low < 0.4


def test_confidence_that_is_a_probability_is_judged_calibrated() -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(0.0, 1.0, 4000)
    right = rng.uniform(0.0, 1.0, 4000) < p
    good = judge_confidence([mission(*zip(p.tolist(), right.tolist(), strict=True))], "last")
    bold = judge_confidence([mission(*zip((p**0.2).tolist(), right.tolist(), strict=True))], "last")
    assert good["n"] == 4000 and good["expected_calibration_error"] < 0.03 < 0.2 < bold["expected_calibration_error"]
    assert good["brier_skill"] > 0.2 > bold["brier_skill"]
    assert good["auroc"] == pytest.approx(bold["auroc"])


def test_no_reports_are_no_figure() -> None:
    with pytest.raises(MissingDataError, match="no report"):
        judge_confidence([mission()], "first")


def test_other_results_are_refused() -> None:
    with pytest.raises(InputError, match="not results"):
        judge_confidence([{"valid": True, "tracks": [{"confidence": 0.5}]}], "first")


def test_the_pictures_are_drawn(tmp_path: Path) -> None:
    results = [mission((0.9, True), (0.3, False))]
    draw_reliability(results, tmp_path / "r.png")
    row = {"kappa": 8.0, "curve_on": operating_curve(results), "curve_forced_open": operating_curve(results)}
    draw_gate_study([row], "open_field", tmp_path / "g.png")
    assert (tmp_path / "r.png").stat().st_size > 5000 and (tmp_path / "g.png").stat().st_size > 5000
