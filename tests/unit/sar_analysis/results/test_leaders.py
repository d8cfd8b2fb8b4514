"""Who is best on what: pooled noise, misses as the worst, every pair in one Holm family, layouts as they were flown."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sar_analysis.metrics.goals import LOST_M, goals
from sar_analysis.metrics.metrics import EpisodeMetrics, episode_metrics
from sar_analysis.render.markdown import results_markdown
from sar_analysis.results.conditions import crossed, group, merge
from sar_analysis.results.document import build_results
from sar_analysis.results.leaders import families
from sar_analysis.results.levels import closes, noise_levels
from sar_analysis.results.summary import NOISE
from sar_analysis.stats.designs import left_out, units_left_out
from sar_analysis.stats.interval import jackknife_p, jackknife_t
from sar_analysis.stats.statistics import mean_of
from sar_analysis.table import Table
from tests.unit.sar_analysis.campaigns import bag
from tests.unit.sar_analysis.missions import campaign, flown


def family(*episodes: EpisodeMetrics) -> dict[str, Any]:
    (found,) = families(merge(group(episodes), NOISE, "p"))
    return found.model_dump(exclude_unset=True)


def goal(found: dict[str, Any], metric: str) -> dict[str, Any]:
    return dict(next(g for g in found["goals"] if g["metric"] == metric))


def test_the_episodes_of_one_layout_are_left_out_together(base: EpisodeMetrics) -> None:
    table = crossed("coverage_240s", campaign(base, "spiral"))
    assert len(table.episodes) == 8 and len(set(table.layouts)) == 4
    seeds, layouts = units_left_out(table, mean_of(table))
    by_hand = []
    for layout in dict.fromkeys(table.layouts):
        kept = [k for k, own in enumerate(table.layouts) if own != layout]
        by_hand.append(table.values[:, kept].mean())
    assert layouts == pytest.approx(by_hand)
    assert seeds == pytest.approx([np.delete(table.values, k, axis=0).mean() for k in range(3)])
    assert len(units_left_out(table, mean_of(table), seeds=False)) == 1
    for ours, designs in zip((seeds, layouts), left_out(table, "seeds_layouts", mean_of(table)), strict=True):
        assert ours == pytest.approx(designs), "on a whole table it is the design for new seeds on new layouts"


def test_p_is_students_and_none_where_nothing_varied() -> None:
    values = np.array([3.0, 4.5, 2.2, 5.1])
    left_out = [np.array([np.delete(values, k).mean() for k in range(4)])]
    assert jackknife_p(values.mean(), left_out) == pytest.approx(stats.ttest_1samp(values, 0.0).pvalue)
    assert jackknife_t(values.mean(), left_out, 0.95) == pytest.approx(
        stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    )
    assert jackknife_p(0.3, [np.full(4, 0.3)]) is None
    assert jackknife_p(0.3, []) is None


def test_the_best_is_told_from_the_rest_only_where_the_data_do(base: EpisodeMetrics) -> None:
    found = family(*campaign(base, "spiral", 0.2), *campaign(base, "levy_flight", 0.05), *campaign(base, "pheromone"))
    row = goal(found, "coverage_240s")
    assert (row["best"], row["runner_up"]) == (["spiral"], ["levy flight"])
    assert row["told_apart"] == 2 and all(r["better_by"] > 0 for r in row["rivals"])
    assert row["missions"] == 24 and row["layouts"] == 4
    alike = goal(family(*campaign(base, "spiral", 0.0001), *campaign(base, "pheromone")), "coverage_240s")
    assert alike["told_apart"] == 0, "a hair better is no evidence"


def test_holm_counts_every_pair_of_patterns_on_every_goal(base: EpisodeMetrics) -> None:
    names = ("spiral", "levy_flight", "pheromone", "random_walk")
    found = family(*(e for k, name in enumerate(names) for e in campaign(base, name, 0.1 * k)))
    assert found["comparisons"] == 6 * len(found["goals"])
    row = goal(found, "coverage_240s")
    tested = [r for r in row["rivals"] if r["p"] is not None]
    assert tested and all(r["p_holm"] > r["p"] for r in tested)


def test_a_tie_is_called_one(base: EpisodeMetrics) -> None:
    episodes = [*campaign(base, "spiral"), *campaign(base, "pheromone")]
    row = goal(family(*episodes), "missions_with_collision")
    assert (row["best"], row["rivals"]) == (["pheromone", "spiral"], []) or row["best"] == ["spiral", "pheromone"]
    assert all(v["low"] <= v["value"] < v["high"] and "nothing varied" in v["notes"][0] for v in row["values"])
    page = results_markdown(build_results(Table(tuple(episodes), ()), resamples=200))
    assert "| missions with a collision | present | all alike | 0.0 % [0.0, 60.2] | none |" in page


def test_misses_count_as_the_worst_and_never_help(base: EpisodeMetrics) -> None:
    by_metric = {g.metric: g.value for g in goals(240.0)}
    assert by_metric["victims_found"](base) == 0.5
    assert by_metric["mean_localization_error_m"](base) == (2.0 + LOST_M) / 2
    assert by_metric["time_to_95_s"](base) == 240.0
    late = dataclasses.replace(base, time_to_first_detection_s=250.0)
    assert by_metric["time_to_first_detection_s"](late) == 240.0, "a report on the way home is none within the search"
    deaf = dataclasses.replace(base, detections=None, false_alarms=None, victims=())
    errors = ("victims_found", "mean_localization_error_m")
    names = (*errors, "time_to_first_detection_s", "absent_missions_with_false_alarm")
    assert [by_metric[name](deaf) for name in names] == [None] * 4


def test_false_alarms_are_judged_without_victims_where_that_was_flown(base: EpisodeMetrics) -> None:
    present = [e for name in ("spiral", "pheromone") for e in campaign(base, name)]
    assert goal(family(*present), "absent_missions_with_false_alarm")["victim_absent"] is False
    empty = [e for name in ("spiral", "pheromone") for e in campaign(base, name, victim_absent=True)]
    absent = [dataclasses.replace(e, victims=()) for e in empty]
    found = family(*present, *absent)
    assert goal(found, "absent_missions_with_false_alarm")["victim_absent"] is True
    assert goal(found, "coverage_240s")["victim_absent"] is False


def test_seeds_and_episodes_that_not_all_flew_are_left_out_and_named(base: EpisodeMetrics) -> None:
    stray = flown(base, "spiral", 9, 0, 0)
    broken = campaign(base, "pheromone")
    broken[0] = dataclasses.replace(broken[0], valid=False, invalid_reason="interrupted")
    row = goal(family(stray, *campaign(base, "spiral"), *broken), "coverage_240s")
    assert row["seeds"] == [1, 2, 3] and row["missions"] == 21
    assert any("seed 9 left out" in note for note in row["notes"])
    assert any("1 of 8 episodes left out: not valid for every seed" in note for note in row["notes"])


def test_one_pattern_one_mission_has_values_and_no_interval(base: EpisodeMetrics) -> None:
    row = goal(family(flown(base, "spiral", 1, 0, 0)), "coverage_240s")
    assert (row["best"], row["rivals"]) == (["spiral"], [])
    assert (row["values"][0]["low"], row["values"][0]["high"]) == (0.0, 1.0), "one layout: all that is possible"
    page = results_markdown(build_results(Table((flown(base, "spiral", 1, 0, 0),), ()), resamples=200))
    assert "| coverage at 240 s | present | spiral |" in page and len(page.splitlines()) < 75


def level(kappa: float | str, gate: float | None, found: float | None) -> dict[str, Any]:
    present = {} if found is None else {"missions_with_detection": {"value": found}}
    opened = None if gate is None else {"value": gate}
    return {"sigma": 0.1, "kappa": kappa, "gate_open": opened, "present": present}


def test_where_the_gate_closes_is_the_first_level_below_half() -> None:
    rows = [level(16.0, 0.9, 1.0), level(2.0, 0.5, 0.1), level(1.0, 0.1, 0.0)]
    told = closes(rows)
    assert (told["level"], told["before"]) == ({"sigma": 0.1, "kappa": 1.0}, {"sigma": 0.1, "kappa": 2.0})
    assert told["judged_by"] == "frames that pass the gate"
    rows[1]["gate_open"] = None
    told = closes(rows)
    assert told["level"] == {"sigma": 0.1, "kappa": 2.0} and told["judged_by"] == "missions with a detection"
    assert closes([level(16.0, 0.9, 1.0), level(8.0, 0.8, 1.0)])["level"] is None
    first = closes([level("inf", 0.2, 1.0), level(8.0, 0.1, 1.0)])
    assert first["level"] == {"sigma": 0.1, "kappa": "inf"} and first["before"] is None


def test_levels_pool_patterns_and_run_from_quiet_to_loud(base: EpisodeMetrics) -> None:
    episodes = [e for name in ("spiral", "pheromone") for e in campaign(base, name)]
    shares = {0: 0.9, 1: 0.1}
    episodes = [dataclasses.replace(e, gate_open=shares[e.episode % 2]) for e in episodes]
    (part,) = noise_levels(episodes)
    assert [row["kappa"] for row in part["levels"]] == [16.0, 1.0]
    assert [row["missions"] for row in part["levels"]] == [24, 24]
    assert [row["gate_open"]["value"] for row in part["levels"]] == pytest.approx([0.9, 0.1])
    assert part["closes"]["level"] == {"sigma": 0.4, "kappa": 1.0}
    assert noise_levels([e for e in episodes if e.episode % 2]) == []
    assert noise_levels([dataclasses.replace(e, sigma=None, kappa=None) for e in episodes]) == []
    assert math.isclose(part["levels"][0]["present"]["victims_found"]["value"], 0.5)


def test_a_bags_row_takes_its_gate_from_the_record_beside_it(tmp_path: Path) -> None:
    from sar_analysis.table import _with_gates

    row = episode_metrics(bag(tmp_path))
    told = dataclasses.replace(row, gate_open=0.75, coverage_240s=0.0)
    ((where, found),) = _with_gates([("bag", row)], [("records", told)])
    assert (where, found) == ("bag", dataclasses.replace(row, gate_open=0.75))
