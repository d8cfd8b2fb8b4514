"""Stage 1 against Stage 2: what pairs, what is refused, and figures against scipy."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from sar_analysis.metrics.goals import LOST_M
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.render.markdown import results_markdown, tables_markdown
from sar_analysis.results.conditions import group, merge
from sar_analysis.results.document import build_results
from sar_analysis.results.model import results_schema
from sar_analysis.results.stagegap import Stage1Prediction, stage_gap
from sar_analysis.results.summary import NOISE
from sar_analysis.stage1.rows import Stage1Row, read_stage1
from sar_analysis.stats import clustered
from sar_analysis.table import Table
from sar_core.errors import ContractError, MissingDataError
from tests.unit.sar_analysis.documents import plain
from tests.unit.sar_analysis.missions import campaign


def foretold(episodes: list[EpisodeMetrics], **more: Any) -> list[Stage1Row]:
    """A Stage-1 row for every mission, each a little off in its own way."""
    rows = []
    for e in episodes:
        coverage = (e.coverage_240s or 0.0) - 0.05 + 0.01 * ((7 * e.episode + e.seed) % 5)
        told: dict[str, Any] = {
            "policy": e.pattern,
            "seed": e.seed,
            "episode": e.episode,
            "schema_version": 2,
            "world": e.world,
            "episode_set": e.episode_set,
            "sigma": e.sigma,
            "kappa": e.kappa,
            "return": 900.0 + e.episode,
            "coverage_240s": coverage,
            "detections": e.episode % 3,
            "time_to_first_detection_s": 20.0 if e.episode % 3 else None,
            "localization_error_m": 3.0 if e.episode % 3 else None,
            "false_alarms": 1,
        }
        rows.append(Stage1Row.model_validate(told | more))
    return rows


def gap(episodes: list[EpisodeMetrics], rows: list[Stage1Row]) -> dict[str, Any]:
    return stage_gap(merge(group(episodes), NOISE, "p"), rows, "stage1.jsonl")


@pytest.fixture()
def episodes(base: EpisodeMetrics) -> list[EpisodeMetrics]:
    return [*campaign(base, "spiral", 0.2), *campaign(base, "pheromone"), *campaign(base, "levy_flight", 0.1)]


def test_differences_are_paired_and_their_interval_is_over_layouts(episodes: list[EpisodeMetrics]) -> None:
    rows = foretold(episodes)
    (part,) = gap(episodes, rows)["parts"]
    assert part["pairs"] == len(episodes) == part["missions"] and part["unpaired_patterns"] == []
    coverage = next(m for m in part["metrics"] if m["metric"] == "coverage_240s")
    (spiral,) = [p for p in coverage["patterns"] if p["pattern"] == "spiral"]
    known = {row.key: row for row in rows}
    own = [e for e in episodes if e.pattern == "spiral"]
    gaps = {(e.seed, e.episode): e.coverage_240s - known["spiral", e.seed, e.episode, False].coverage_240s for e in own}
    by_layout = [np.mean([gaps[s, k] for s in (1, 2, 3) for k in (2 * j, 2 * j + 1)]) for j in range(4)]
    assert spiral["difference"] == pytest.approx(np.mean(by_layout))
    drawn = clustered.mean(by_layout, range(4))
    assert (spiral["low"], spiral["high"]) == pytest.approx((drawn.low, drawn.high)), "seeds are given, layouts vary"
    assert (spiral["method"], spiral["cluster"], spiral["resamples"]) == (drawn.method, "layout", 10_000)
    assert spiral["stage2"] - spiral["stage1"] == pytest.approx(spiral["difference"])
    assert (spiral["n"], spiral["layouts"]) == (24, 4)
    assert coverage["kendall_tau"]["value"] == 1.0 and coverage["kendall_tau"]["cluster"] == "layout"
    of_all = [p["difference"] for p in coverage["patterns"]]
    mean = coverage["mean_difference"]
    assert mean["value"] == pytest.approx(np.mean(of_all)) and mean["low"] < mean["value"] < mean["high"]
    most = max(coverage["patterns"], key=lambda p: abs(p["difference"]))
    assert coverage["moved_most"] == most["pattern"]


def test_a_miss_is_the_worst_in_both_stages(episodes: list[EpisodeMetrics]) -> None:
    (part,) = gap(episodes, foretold(episodes))["parts"]
    times = next(m for m in part["metrics"] if m["metric"] == "time_to_first_detection_s")["patterns"][0]
    told = [20.0 if k % 3 else 240.0 for k in range(8)]
    assert times["stage1"] == pytest.approx(np.mean(told)) and times["stage2"] == pytest.approx(30.0)
    errors = next(m for m in part["metrics"] if m["metric"] == "localization_error_m")["patterns"][0]
    assert errors["stage1"] == pytest.approx(np.mean([3.0 if k % 3 else LOST_M for k in range(8)]))


def test_an_invalid_mission_costs_its_episode(episodes: list[EpisodeMetrics]) -> None:
    broken = [dataclasses.replace(episodes[0], valid=False, invalid_reason="interrupted"), *episodes[1:]]
    (part,) = gap(broken, foretold(episodes))["parts"]
    spiral = next(p for p in part["metrics"][0]["patterns"] if p["pattern"] == "spiral")
    assert spiral["n"] == 21 and any("left out" in note for note in spiral["notes"])


def test_a_pattern_that_stage_1_lacks_is_named(episodes: list[EpisodeMetrics]) -> None:
    rows = foretold([e for e in episodes if e.pattern != "pheromone"])
    (part,) = gap(episodes, rows)["parts"]
    assert part["unpaired_patterns"] == ["pheromone"] and len(part["patterns"]) == 2


def test_a_campaign_without_a_valid_mission_says_so_and_why(episodes: list[EpisodeMetrics]) -> None:
    spoilt = [dataclasses.replace(e, valid=False, invalid_reason="not_ready") for e in episodes]
    with pytest.raises(MissingDataError, match=f"no mission is valid, .*: {len(spoilt)} not_ready; fly them again"):
        gap(spoilt, foretold(episodes))


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"episode_set": None}, ContractError, "stage1.jsonl: rows have no episode_set"),
        ({"episode_set": "field-v2"}, ContractError, "was flown on field-v2, but spiral-s1-e0 on field-v1"),
        ({"episode_set_sha256": "b" * 64}, ContractError, "has hash bbbbbbbbbbbb there, but aaaaaaaaaaaa in spiral-s1"),
        ({"sigma": 0.3}, ContractError, "episode 0 has sigma 0.3, kappa 16.0 there, but 0.02, 16.0 in spiral-s1-e0"),
        ({"seed": 7}, MissingDataError, "no row of seed 1, 2, 3, which Stage 2 flew; it holds seeds 7"),
        ({"world": "desert"}, MissingDataError, "was flown in desert; Stage 2 flew in field; nothing pairs"),
        ({"schema_version": 1}, ContractError, "stage1.jsonl: schema_version is 1 there, but 2 in spiral-s1-e0"),
        ({"policy": "zigzag"}, MissingDataError, "no mission pairs with a row; Stage 1 has zigzag, Stage 2 flew levy"),
    ],
)
def test_what_does_not_pair_is_refused(
    episodes: list[EpisodeMetrics], more: dict[str, Any], error: type[Exception], message: str
) -> None:
    hashed = [dataclasses.replace(e, configuration={"episode_set_sha256": "a" * 64}) for e in episodes]
    with pytest.raises(error, match=message):
        gap(hashed, foretold(hashed, **more))


ON_REPORTS = {
    *("victims_found", "time_to_first_detection_s", "localization_error_m", "false_alarms_per_mission"),
}


def test_reports_are_not_compared_where_nobody_says_how_they_were_judged(episodes: list[EpisodeMetrics]) -> None:
    found = gap(episodes, foretold(episodes, schema_version=None))
    held = {m["metric"] for part in found["parts"] for m in part["metrics"]}
    assert held == {"episode_return", "coverage_240s"} and len(found["left_out"]) == len(ON_REPORTS)
    assert all("names no schema_version" in text for text in found["left_out"])
    assert gap(episodes, foretold(episodes))["left_out"] == []


def test_errors_cut_at_10_m_are_compared_in_no_table(episodes: list[EpisodeMetrics]) -> None:
    old = [dataclasses.replace(e, schema=1) for e in episodes]
    document = build_results(
        Table(tuple(old), ()),
        resamples=200,
        stage1=Stage1Prediction("stage1.jsonl", foretold(old, schema_version=1)),
    )
    gap_told = plain(document.result)["stage_gap"]
    (part,) = gap_told["parts"]
    assert {m["metric"] for m in part["metrics"]} == {"episode_return", "coverage_240s", *ON_REPORTS} - {
        "localization_error_m"
    }
    assert gap_told["left_out"] == ["error of the first issued: records of schema 1 do not hold errors beyond 10 m"]
    page = results_markdown(document)
    assert "Left out: error of the first issued: records of schema 1" in page
    (row,) = [line for line in page.splitlines() if line.startswith("| localisation error | present")]
    assert "refused" in row and "localisation error refused: records of schema 1 do not hold it." in page


def test_missions_without_victims_are_a_part_of_their_own(episodes: list[EpisodeMetrics]) -> None:
    absent = [
        dataclasses.replace(e, victims=(), victim_absent=True, config_sha256=f"{e.config_sha256} absent")
        for e in episodes
    ]
    rows = [*foretold(episodes), *foretold(absent, victim_absent=True)]
    document = build_results(Table((*episodes, *absent), ()), resamples=200, stage1=Stage1Prediction("s.jsonl", rows))
    parts = plain(document.result)["stage_gap"]["parts"]
    assert [part["victim_absent"] for part in parts] == [False, True]
    assert [m["words"] for m in parts[1]["metrics"]] == ["return", "coverage at 240 s", "decoy alarms per mission"]
    lines = tables_markdown(document).partition("## Stage 2 minus Stage 1")[2].partition("\n## ")[0].splitlines()
    widths = {line.count("|") for line in lines if line.startswith("|")}
    assert len(widths) == 1, "every row has every column"


def test_the_page_says_what_the_kinematic_stage_hides(episodes: list[EpisodeMetrics], tmp_path: Path) -> None:
    file = tmp_path / "stage1.jsonl"
    lines = [json.dumps(row.model_dump(by_alias=True, exclude_none=True)) for row in foretold(episodes)]
    file.write_text("\n".join(lines))
    hit = [dataclasses.replace(episodes[0], collisions=2), *episodes[1:]]
    document = build_results(
        Table(tuple(hit), ()), resamples=200, stage1=Stage1Prediction(file.name, read_stage1(file))
    )
    jsonschema.Draft202012Validator(results_schema()).validate(plain(document))
    page = results_markdown(document)
    assert "Stage 1 cannot collide; Stage 2 counted 2 collisions in 72 missions." in page
    assert "The ranking of patterns is the same in both stages on coverage at 240 s." in page
    assert "## Stage 2 minus Stage 1" in tables_markdown(document)
    without = build_results(Table(tuple(hit), ()), resamples=200)
    assert "What Stage 1 got wrong" not in results_markdown(without)
    assert "not computed: Stage 1 against Stage 2: no Stage-1 results were given (--stage1)" in results_markdown(
        without
    )
