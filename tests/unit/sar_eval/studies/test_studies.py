"""Studies of reports on hand-made results: curves, paired differences, calibration figures, each with its interval."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_analysis.stats.interval import Interval
from sar_analysis.stats.layouts import Options, draws
from sar_core.errors import InputError, MissingDataError
from sar_eval.cli.studies import _gate_table, reliability
from sar_eval.studies import studies
from sar_eval.studies.studies import (
    THRESHOLDS,
    arms_of,
    draw_gate_study,
    draw_reliability,
    gate_row,
    judge_confidence,
    operating_curve,
)
from sar_swarm.sensing.confidence import auroc
from tests.unit.sar_analysis.recordmaker import result

FEW = Options(resamples=400)


def mission(*tracks: tuple[float, bool, str], episode: int = 1, victims: int = 1, **more: Any) -> dict[str, Any]:
    """One with a layout of its own: tracks are confidence, whether within 10 m of its own victim, and whose it is."""
    told = [
        ({"confidence": p, "right": right, "flight_s": 9.0, "error_m": None, "path_gdop": None}, kind)
        for p, right, kind in tracks
    ]
    words = [{"kind": kind, "first": word, "last": word} for word, kind in told]
    names = ("issued_s", "error_m", "final_error_m", "settled_s", "views", "confidence", "heard_s")
    unseen = dict.fromkeys((*names, "path_gdop", "constellation_gdop", "information_dop_m"))
    places = [{"x": 1.0, "y": 2.0, "found": False, "fixes": [], **unseen} for _ in range(victims)]
    return result(victims=places, tracks=words, episode=episode, episode_set="rules-1", **more)


def named(figure: Interval) -> bool:
    """Whether it says how it was made, and has ends unless its notes say why not."""
    drawn = (figure.resamples is None) == (figure.seed is None)
    return bool(figure.method and figure.cluster and drawn) and (math.isfinite(figure.low) or bool(figure.notes))


def test_a_displaced_word_is_no_decoy_alarm() -> None:
    said = [
        mission((0.9, True, "victim"), (0.8, False, "rescuer"), (0.7, False, "victim"), victims=2, episode=k)
        for k in range(2)
    ]
    by_threshold = {round(p.threshold, 2): p for p in operating_curve(said, FEW)}
    assert list(by_threshold) == np.round(THRESHOLDS, 2).tolist()

    def at(threshold: float) -> tuple[float, float, float]:
        p = by_threshold[threshold]
        assert p.found is not None
        return p.decoy_alarms.value, p.displaced.value, p.found.value

    assert at(0.6) == (1.0, 1.0, 0.5)
    assert at(0.74) == (1.0, 0.0, 0.5)
    assert at(0.86) == (0.0, 0.0, 0.5)
    assert at(0.94) == (0.0, 0.0, 0.0)


def test_a_curve_without_victims_has_alarms_alone() -> None:
    (first, *_) = operating_curve([mission((0.9, False, "bystander"), victims=0)], FEW)
    assert first.found is None and first.decoy_alarms.value == 1.0


def test_a_paired_difference_ignores_what_both_share() -> None:
    rng = np.random.default_rng(5)
    shared, layouts = rng.poisson(10.0, 200) + 2, list(range(200))
    one_more = arms_of(list(shared + 1), list(shared), layouts, FEW).difference
    assert one_more.value == 1.0 and math.isnan(one_more.low) and "nothing varied" in one_more.notes[0]
    noisy = arms_of(list(shared + rng.integers(-1, 3, 200)), list(shared), layouts, FEW)
    assert noisy.difference.low < 0.5 < noisy.difference.high and noisy.difference.high - noisy.difference.low < 0.5
    assert noisy.on.high - noisy.on.low > 0.8 and noisy.on.exact is not None


def test_the_gate_is_judged_by_todays_definitions_on_pairs_that_are_valid_both_ways(tmp_path: Path) -> None:
    def arm(alarms: int, displaced: int, broken: int) -> list[dict[str, Any]]:
        counts = {"detections": 1, "false_alarms": alarms, "displaced": displaced}
        tracks = ((0.9, True, "victim"), (0.3, False, "rescuer"))
        return [mission(*tracks, episode=k, valid=k != broken, **counts) for k in range(12)]

    row = gate_row(8.0, arm(1, 0, broken=3), arm(0, 2, broken=5), FEW)
    assert (row.missions, row.invalid) == (10, 2)
    assert {name: arms.difference.value for name, arms in row.counts.items()} == {
        "found": 0.0,
        "decoy_alarms": 1.0,
        "displaced": -2.0,
        "wrong_issues": -1.0,
    }
    assert all(named(figure) for arms in row.counts.values() for figure in arms)
    told = json.loads(json.dumps(row.plain, allow_nan=False))
    assert told["decoy_alarms"]["on"]["cluster"] == "layout" and told["curve_on"][0]["threshold"] == 0.02
    (shown,) = [c for c in _gate_table([row], "village").columns if c.header == "per mission"]
    assert list(shown.cells) == ["found", "decoy alarms", "displaced", "wrong issues"]
    draw_gate_study([row], "open_field", tmp_path / "g.png")
    assert (tmp_path / "g.png").stat().st_size > 5000
    with pytest.raises(MissingDataError, match="kappa 8: no mission is valid both ways"):
        gate_row(8.0, arm(0, 0, 0)[:1], arm(0, 0, 0)[:1], FEW)


def test_a_study_flies_both_arms_on_the_same_missions(monkeypatch: pytest.MonkeyPatch) -> None:
    def fly(spec: Any) -> dict[str, Any]:
        alarms = int(spec.scenario.gate == "on") + int(spec.scenario.kappa)
        return mission((0.9, True, "victim"), episode=spec.index, seed=spec.seed, false_alarms=alarms)

    monkeypatch.setattr(studies, "fly_one", fly)
    told: list[tuple[int, int]] = []
    rows = studies.gate_study("open_field", [2.0, 4.0], 3, 7, 1, lambda *now: told.append(now))
    assert told[-1] == (12, 12) and [row.kappa for row in rows] == [2.0, 4.0]
    assert [row.counts["decoy_alarms"].on.value for row in rows] == [3.0, 5.0]
    assert [row.counts["decoy_alarms"].difference.value for row in rows] == [1.0, 1.0]


def reported(power: float = 1.0, layouts: int = 40, each: int = 25) -> list[dict[str, Any]]:
    """Missions whose confidences are probabilities, bent by a power."""
    rng = np.random.default_rng(1)
    p = rng.uniform(0.0, 1.0, (layouts, each))
    right = rng.uniform(0.0, 1.0, p.shape) < p
    return [
        mission(*[(float(c**power), bool(y), "victim") for c, y in zip(p[k], right[k], strict=True)], episode=k)
        for k in range(layouts)
    ]


def test_confidence_that_is_a_probability_is_judged_calibrated() -> None:
    good, bold = (judge_confidence(reported(power), "last", FEW) for power in (1.0, 0.2))
    assert good.reports == 1000 and good.right.n == 1000
    assert good.expected_calibration_error.value < 0.06 < 0.2 < bold.expected_calibration_error.low
    assert good.brier_skill is not None and bold.brier_skill is not None
    assert good.brier_skill.low > 0.2 > bold.brier_skill.high
    assert good.auroc is not None and bold.auroc is not None
    assert (good.auroc.value, good.auroc.ends) == (pytest.approx(bold.auroc.value), bold.auroc.ends)
    assert good.auroc.low < good.auroc.value < good.auroc.high < 1.0


def test_every_figure_of_confidences_draws_whole_layouts_again() -> None:
    """AUROC's interval by hand: each layout's reports as often as it was drawn."""
    flown = reported(layouts=12, each=6)
    found = judge_confidence(flown, "first", FEW)
    for figure in (found.right, found.expected_calibration_error, found.brier_skill, found.auroc):
        assert figure is not None and named(figure) and figure.cluster == "layout"
    by_hand = []
    for counts in draws(12, FEW.resamples, FEW.seed):
        words = [t["first"] for r, times in zip(flown, counts, strict=True) for _ in range(times) for t in r["tracks"]]
        by_hand.append(auroc(*(np.array([w[key] for w in words], dtype=np.float64) for key in ("confidence", "right"))))
    low, high = np.quantile(np.array(by_hand, dtype=np.float64), (0.025, 0.975))
    assert found.auroc is not None and found.auroc.low < low < high < found.auroc.high
    assert found.auroc.high - found.auroc.low < 1.6 * (high - low), "expanded for twelve layouts, no more"


def test_where_a_resample_may_lack_a_kind_nothing_narrower_than_all_is_said() -> None:
    few = [mission((0.9, True, "victim"), episode=0), *[mission((0.2, False, "rescuer"), episode=k) for k in (1, 2, 3)]]
    found = judge_confidence(few, "last", FEW)
    assert found.auroc is not None and (found.auroc.low, found.auroc.high) == (0.0, 1.0)
    assert "resamples have no value" in found.auroc.notes[0]
    alike = judge_confidence([mission((0.9, True, "victim"), episode=k) for k in range(3)], "last", FEW)
    assert alike.brier_skill is alike.auroc is None and alike.right.value == 1.0


def test_no_reports_are_no_figure() -> None:
    with pytest.raises(MissingDataError, match="no report"):
        judge_confidence([mission()], "first")


def test_other_results_are_refused() -> None:
    with pytest.raises(InputError, match="not results"):
        judge_confidence([{"valid": True, "tracks": [{"confidence": 0.5}]}], "first")


def test_the_verb_draws_the_curve_and_tells_people_and_machines_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in reported(layouts=6, each=4)))
    reliability([file], tmp_path / "r.png", as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["last"]["reports"] == 24 and told["last"]["auroc"]["resamples"] == 10_000
    reliability([file], tmp_path / "r.png")
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{told['last']['auroc']['value']:.3f} [{told['last']['auroc']['low']:.3f}," in shown
    assert "10000 resamples, seed 0" in shown and "over layouts" in shown
    assert (tmp_path / "r.png").stat().st_size > 5000
    draw_reliability(reported(layouts=6, each=4), tmp_path / "again.png")
