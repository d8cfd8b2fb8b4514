"""The ten metrics of ADR-149 from both stages, and none where Stage 1 cannot know."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from sar_analysis.metrics.catalogue import AS_ADR149, METRICS
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.results.tenmetrics import UNKNOWN, is_stage1, of_stage1, of_stage2
from sar_analysis.stage1.rows import Stage1Row
from sar_analysis.stats.layouts import Options
from tests.unit.sar_analysis.missions import campaign

FEW = Options(resamples=200)


def row(seed: int, layout: int, absent: bool = False, **more: Any) -> Stage1Row:
    errors = [] if absent else [2.0 + 0.1 * layout, 12.0 + seed]
    facts = {
        "policy": "spiral",
        "seed": seed,
        "episode": layout,
        "layout": layout,
        "return": 100.0,
        "world": "field",
        "episode_set": "field-v1",
        "victim_absent": absent,
        "coverage_240s": 0.5 + 0.01 * layout,
        "time_to_95_s": None,
        "overlap_ratio": 0.1 + 0.01 * seed,
        "issues": len(errors) + (layout % 2 if absent else 0),
        "detections": 0 if absent else 1,
        "displaced": 0 if absent else 1,
        "errors_m": errors,
        "gdops": [1.5 + 0.1 * layout, None][: len(errors)],
        "false_alarms": layout % 2 if absent else 0,
        "search_time_s": 240.0,
    }
    return Stage1Row.model_validate(facts | more)


ROWS = [row(seed, layout, absent) for seed in range(3) for layout in range(8) for absent in (False, True)]


def test_stage_1_gives_all_ten_and_none_where_it_cannot_know() -> None:
    (ten,) = of_stage1(ROWS, FEW)
    assert (ten.stage, ten.pattern, ten.missions) == ("Stage 1", "spiral", 48)
    assert tuple(item.metric for item in ten.metrics) == AS_ADR149
    figures = {item.metric: item for item in ten.metrics}
    assert {key for key, item in figures.items() if item.figure is None} == set(UNKNOWN)
    assert all(figures[key].why == why for key, why in UNKNOWN.items())
    found = {key: item.figure.value for key, item in figures.items() if item.figure is not None}
    assert found["adr149_detection_rate"] == 1.0 and found["adr149_false_alarm_rate"] == 0.5
    assert found["adr149_cep95_m"] == 14.0, "an error beyond 10 m is not cut"
    assert found["adr149_gdop"] == pytest.approx(1.85, abs=0.051), "of those where it is defined"


def test_a_row_that_does_not_tell_its_errors_gives_no_detections() -> None:
    rows = [row(seed, layout, errors_m=None) for seed in range(2) for layout in range(4)]
    (ten,) = of_stage1(rows, FEW)
    figures = {item.metric: item.figure for item in ten.metrics}
    assert figures["adr149_detection_rate"] is None and figures["adr149_cep50_m"] is None
    assert figures["coverage_240s"] is not None


def test_rows_without_constellations_give_no_gdop() -> None:
    (ten,) = of_stage1([row(seed, layout, gdops=None) for seed in range(2) for layout in range(4)], FEW)
    (gdop,) = (item for item in ten.metrics if item.metric == "adr149_gdop")
    assert gdop.figure is None and gdop.why == "not in these missions"


def test_stage_2_gives_the_same_ten(base: EpisodeMetrics) -> None:
    (ten,) = of_stage2(campaign(base, "spiral"), FEW)
    assert ten.stage == "Stage 2 (embedded)" and tuple(item.metric for item in ten.metrics) == AS_ADR149
    collisions = {item.metric: item.figure for item in ten.metrics}["collisions_drone_drone_per_mission"]
    assert collisions is not None and collisions.value == 0.0 and collisions.high > 0.0


@pytest.mark.parametrize(
    ("text", "told"),
    [('{"policy": "x"}\n', True), ('{"schema_version": 2}\n', False), ("nonsense\n", False), ("", False)],
)
def test_a_stage_1_file_is_known_by_its_first_row(tmp_path: Path, text: str, told: bool) -> None:
    (tmp_path / "rows.jsonl").write_text(text)
    assert is_stage1(tmp_path / "rows.jsonl") is told
    assert not is_stage1(tmp_path)


def test_figures_are_json(base: EpisodeMetrics) -> None:
    (ten,) = of_stage2(campaign(base, "spiral"), FEW)
    json.dumps([None if item.figure is None else item.figure.plain for item in ten.metrics], allow_nan=False)


def test_a_time_has_its_mean_beside_its_median(base: EpisodeMetrics) -> None:
    """Two thirds of the missions cover 95 %, one second apart; the others count as the longest search, 240 s."""
    flown = campaign(base, "spiral", layouts=8)
    times = [None if k % 3 == 0 else 200.0 + k % 24 for k in range(len(flown))]
    (ten,) = of_stage2([dataclasses.replace(e, time_to_95_s=t) for e, t in zip(flown, times, strict=True)], FEW)
    (covered,) = [item for item in ten.metrics if item.metric == "time_to_95_s"]
    assert covered.figure is not None and covered.mean is not None and covered.horizon_s == 240.0
    assert covered.mean.value == pytest.approx(sum(240.0 if t is None else t for t in times) / len(times))
    assert covered.mean.low < covered.mean.value < covered.mean.high and covered.mean.cluster == "layout"
    assert covered.mean.value != covered.figure.value
    others = [item.mean for item in ten.metrics if METRICS[item.metric].aggregate != "median time"]
    assert others == [None] * 8
