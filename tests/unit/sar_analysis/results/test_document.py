"""The document everything is made of: complete, deterministic, honest about seeds, and in its schema."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import yaml

from sar_analysis.metrics.findings import Victim
from sar_analysis.metrics.metrics import EpisodeMetrics, episode_metrics
from sar_analysis.prereg import prereg
from sar_analysis.render.markdown import results_markdown, tables_markdown
from sar_analysis.render.page import render
from sar_analysis.render.panels import registration
from sar_analysis.results.document import build_results
from sar_analysis.results.model import results_schema
from sar_analysis.results.sections import coverage_curve
from sar_analysis.table import Table, TableProblem
from sar_core.errors import ContractError, InputError, MissingDataError
from tests.oracles import recount
from tests.unit.sar_analysis.bagmaker import Made, straight
from tests.unit.sar_analysis.documents import plain

RESAMPLES = 400


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> EpisodeMetrics:
    path = straight(4.0, np.array([[2.5, 52.5, 30.0]]), np.array([[8.0, 0.0, 0.0]]))
    made = Made(path, 1.0, 3.0, devices=[(7, 0, (20.0, 50.0, 0.5))])
    measured = episode_metrics(made.write(tmp_path_factory.mktemp("results") / "bag"))
    return dataclasses.replace(measured, notes=())


def flown(base: EpisodeMetrics, seed: int, episode: int, **more: Any) -> EpisodeMetrics:
    """A mission with its own coverage and return, made of seed, episode and pattern."""
    pattern, sigma = str(more.get("pattern", base.pattern)), float(more.get("sigma", base.sigma) or 0.0)
    score = 0.5 + 0.02 * ((seed * 7) % 11) + 0.03 * ((episode * 5) % 4) - 0.3 * sigma + 0.05 * len(pattern) / 10
    known = {
        "episode_id": f"{pattern}-s{seed}-e{episode}",
        "config_sha256": f"{pattern}{seed}-{episode}-{sigma}",
        "seed": seed,
        "episode": episode,
        "coverage_240s": score,
        "episode_return": 1000.0 * score + seed,
    }
    return dataclasses.replace(base, **(known | more))


def table(*episodes: EpisodeMetrics) -> Table:
    return Table(tuple(episodes), ())


def crossed(base: EpisodeMetrics, seeds: int, episodes: int = 4, **more: Any) -> list[EpisodeMetrics]:
    return [flown(base, s, e, **more) for s in range(seeds) for e in range(episodes)]


def result_of(*episodes: EpisodeMetrics, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = plain(build_results(table(*episodes), resamples=RESAMPLES, **options).result)
    return found


def score_of(section: dict[str, Any], metric: str, design: str) -> dict[str, Any]:
    (found,) = [s for s in section["scores"] if s["metric"] == metric and s.get("design") == design]
    return dict(found)


def test_a_document_keeps_the_schema_and_a_broken_one_does_not(base: EpisodeMetrics) -> None:
    validator = jsonschema.Draft202012Validator(results_schema())
    validator.check_schema(results_schema())
    rivals = crossed(base, 3, pattern="spiral") + crossed(base, 3, pattern="levy_flight")
    document = build_results(table(*rivals), resamples=RESAMPLES)
    validator.validate(plain(document))
    breakages = (
        lambda d: d.pop("run"),
        lambda d: d["result"].update(title="Stage 2"),
        lambda d: d["result"]["counts"].update(invalid=-1),
        lambda d: d["result"]["conditions"][0]["estimates"][0].update(value=None),
        lambda d: d["result"]["conditions"][0]["estimates"][0].update(low=None, notes=[]),
        lambda d: d["result"]["conditions"][0]["estimates"][0].pop("cluster"),
        lambda d: d["result"]["conditions"][0]["scores"][0].pop("n"),
        lambda d: d["result"]["comparisons"][0].update(p=2.0),
        lambda d: d["result"]["paper"][0].update(note="leaderboard"),
        lambda d: d["result"]["episodes"][0].pop("invalid_reason"),
    )
    for breaking in breakages:
        broken = plain(document)
        breaking(broken)
        assert not validator.is_valid(broken)


def test_the_result_does_not_depend_on_where_the_bags_lie(base: EpisodeMetrics) -> None:
    episodes = crossed(base, 2)
    problem = TableProblem("unreadable", "/here/runs/x", "/here/runs/x/x.mcap: cut")
    one = build_results(Table(tuple(episodes), (problem,), Path("/here/runs")), resamples=RESAMPLES)
    there = dataclasses.replace(problem, where="/there/x", reason="/there/x/x.mcap: cut")
    two = build_results(Table(tuple(episodes), (there,), Path("/there")), resamples=RESAMPLES)
    assert json.dumps(plain(one.result)) == json.dumps(plain(two.result))
    assert plain(one.result)["warnings"] == ["unreadable: x/x.mcap: cut"]
    assert "/here" not in json.dumps(plain(one.result))


def test_below_ten_seeds_the_interval_is_students_and_the_page_is_conditional(base: EpisodeMetrics) -> None:
    result = result_of(*crossed(base, 3))
    for design in ("seeds", "seeds_layouts"):
        found = score_of(result["conditions"][0], "coverage_240s", design)
        assert (found["reading"], found["resamples"]) == ("t", None)
    assert result["conditional"].startswith("3 seeds: everything here is conditional on these seeds")


def test_from_ten_seeds_on_new_layouts_are_bootstrapped(base: EpisodeMetrics) -> None:
    result = result_of(*crossed(base, 10), seed=5)
    found = score_of(result["conditions"][0], "coverage_240s", "seeds_layouts")
    assert (found["reading"], found["resamples"], found["seed"]) == ("percentile", RESAMPLES, 5)
    assert "conditional on these seeds" not in result["conditional"]


def test_a_bootstrapped_interval_is_what_a_slow_loop_draws(base: EpisodeMetrics) -> None:
    """Seeds and layouts drawn again one by one, in plain Python with its own generator; within Monte-Carlo error."""
    import random

    episodes = crossed(base, 10)
    document = build_results(table(*episodes), resamples=20_000)
    found = score_of(plain(document.result)["conditions"][0], "coverage_240s", "seeds_layouts")
    value = {(e.seed, e.episode): e.coverage_240s or 0.0 for e in episodes}
    rng, drawn = random.Random(1), []
    for _ in range(4000):
        seeds, layouts = rng.choices(range(10), k=10), rng.choices(range(4), k=4)
        cells = sorted(value[s, e] for s in seeds for e in layouts)
        drawn.append(sum(cells[10:30]) / 20)
    drawn.sort()
    spread = drawn[-1] - drawn[0]
    assert found["low"] == pytest.approx(drawn[100], abs=0.03 * spread)
    assert found["high"] == pytest.approx(drawn[3899], abs=0.03 * spread)
    assert found["value"] == pytest.approx(sum(sorted(value.values())[10:30]) / 20)


def test_one_seed_is_refused_in_words(base: EpisodeMetrics) -> None:
    result = result_of(*crossed(base, 1))
    found = score_of(result["conditions"][0], "coverage_240s", "seeds")
    assert "1 seed cannot carry an interval over seeds" in found["refused"]
    assert "low" not in found
    assert result["conditional"].startswith("One seed")


def test_noise_levels_are_conditions_and_pool_into_one(base: EpisodeMetrics) -> None:
    result = result_of(*crossed(base, 3, sigma=0.05), *crossed(base, 3, sigma=0.2))
    assert [c["condition"]["sigma"] for c in result["conditions"]] == [0.05, 0.2]
    (pool,) = result["pooled"]
    assert pool["missions"] == 24
    assert "sigma" not in pool["condition"]
    assert score_of(pool, "coverage_240s", "seeds_layouts")["n"] == 24
    assert len(result["noise_envelope"]) == 2


def test_any_setting_that_differs_makes_another_condition(base: EpisodeMetrics) -> None:
    other = {**base.configuration, "gate": "forced_open"}
    result = result_of(flown(base, 0, 0), flown(base, 0, 0, configuration=other))
    assert [c["missions"] for c in result["conditions"]] == [1, 1]
    assert "gate forced_open" in result["conditions"][1]["label"]
    windy = [
        flown(base, 0, e, configuration={**base.configuration, "wind_mps": w}) for e, w in enumerate(([2, 0], [0, -2]))
    ]
    assert len(result_of(*windy)["conditions"]) == 1, "the wind's direction belongs to the episode"


def test_patterns_are_compared_in_pairs_with_holm(base: EpisodeMetrics) -> None:
    names = ("spiral", "levy_flight", "pheromone")
    result = result_of(*(e for name in names for e in crossed(base, 10, pattern=name)))
    rows = [row for row in result["comparisons"] if row["metric"] == "coverage_240s"]
    assert [(row["first"], row["second"]) for row in rows] == [("c01", "c02"), ("c01", "c03"), ("c02", "c03")]
    assert all(row["p"] == pytest.approx(2 / 2**10) and row["p_holm"] >= row["p"] for row in rows)
    assert rows[0]["difference"] == pytest.approx(0.05 * (len("spiral") - len("levy_flight")) / 10)
    assert rows[0]["detectable"] is None
    assert "same amount" in rows[0]["note"]
    assert "6 comparisons" in result["comparisons_note"]


def test_patterns_under_different_noise_or_on_other_seeds_are_not_compared(base: EpisodeMetrics) -> None:
    apart = result_of(*crossed(base, 2, pattern="spiral"), *crossed(base, 2, pattern="levy_flight", sigma=0.3))
    assert apart["comparisons"] == []
    others = [flown(base, s, e, pattern="levy_flight") for s in (7, 8) for e in range(4)]
    (coverage, _) = result_of(*crossed(base, 2, pattern="spiral"), *others)["comparisons"]
    assert "no seed in common" in coverage["refused"]


def test_late_reports_do_not_count_within_the_search(base: EpisodeMetrics) -> None:
    found = Victim(0.0, 0.0, True, 30.0, 2.0, 0.9, constellation_gdop=1.5, views=2, final_error_m=1.0)
    late = flown(base, 0, 0, victims=(found,), detections=1, time_to_first_detection_s=30.0, search_time_s=20.0)
    first, each, *_ = result_of(late)["conditions"][0]["times"]
    assert (first["reached"], first["censored"], first["median"]) == (0, 1, None)
    assert (each["reached"], each["notes"][0]) == (0, "median not reached: 0 of 1 had the event")


def test_what_has_no_figure_has_a_reason(base: EpisodeMetrics) -> None:
    absent = flown(base, 0, 0, victim_absent=True, victims=(), detections=0)
    silent = {
        "false_alarms": None,
        "detections": None,
        "victims": (),
        "sigma": None,
        "kappa": None,
        "track_reports": (),
    }
    quiet = flown(base, 0, 1, **silent)
    result = result_of(absent, quiet)
    why = [{item["metric"]: item["why"] for item in c["not_computed"]} for c in result["conditions"]]
    assert why[0]["cep50_m"] == "no victims in these missions"
    assert why[1]["missions_with_false_alarm"] == "flown without radio"
    assert "no radio" in result["conditions"][1]["label"]


def test_no_phase_noise_is_a_word_in_json(base: EpisodeMetrics) -> None:
    result = result_of(flown(base, 0, 0, kappa=math.inf))
    assert result["conditions"][0]["condition"]["kappa"] == "inf"
    assert "κ ∞" in result["conditions"][0]["label"]


def registered(folder: Path, **changes: Any) -> Path:
    document: dict[str, Any] = {
        "schema_version": 1,
        "hypothesis": "Spirals cover more than flights of Levy.",
        "conditions": [
            {"name": "spiral", "changes": {"pattern": "spiral"}},
            {"name": "levy", "changes": {"pattern": "levy_flight"}},
        ],
        "seeds": list(range(10)),
        "episodes": {"set_version": 1, "indices": list(range(4))},
        "metric": "coverage_240s",
        "thresholds": [
            {"condition": "spiral", "part": "low", "relation": "at_least", "limit": 0.1},
            {"condition": "spiral", "against": "levy", "part": "low", "relation": "at_least", "limit": 0.2},
        ],
    }
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(document | changes))
    return path


def both(base: EpisodeMetrics, seeds: int = 10) -> list[EpisodeMetrics]:
    return crossed(base, seeds, pattern="spiral") + crossed(base, seeds, pattern="levy_flight")


def both_at(base: EpisodeMetrics, sigma: float) -> list[EpisodeMetrics]:
    return [e for name in ("spiral", "levy_flight") for e in crossed(base, 10, pattern=name, sigma=sigma)]


def test_a_locked_registration_is_decided(base: EpisodeMetrics, tmp_path: Path) -> None:
    path = registered(tmp_path)
    prereg.lock(path)
    document = build_results(table(*both(base)), path, RESAMPLES)
    jsonschema.Draft202012Validator(results_schema()).validate(plain(document))
    found = plain(document.result)["registration"]
    assert (found["status"], found["deviations"], found["refused"]) == ("matches", [], None)
    assert [v["holds"] for v in found["verdicts"]] == [True, False]


def test_departures_from_a_registration_are_named(base: EpisodeMetrics, tmp_path: Path) -> None:
    path = registered(tmp_path)
    episodes = [*both(base, 9), *crossed(base, 1, pattern="pheromone")]
    episodes[0] = dataclasses.replace(episodes[0], valid=False, invalid_reason="interrupted")
    found = plain(build_results(table(*episodes), path, RESAMPLES).result)["registration"]
    assert found["status"] == "no lock"
    said = "; ".join(found["deviations"])
    for words in ("registered seeds not flown: 9", "pheromone", "1 INVALID missions; the registered policy is strict"):
        assert words in said
    assert found["refused"] is None
    assert all("cells have no value" in v["refused"] and "holds" not in v for v in found["verdicts"])


@pytest.mark.parametrize("policy", ["strict", "best_effort"])
def test_what_was_registered_and_not_flown_is_a_hole(base: EpisodeMetrics, tmp_path: Path, policy: str) -> None:
    """Every seed and every episode occurs somewhere, and yet most of one condition was never flown."""
    path = registered(tmp_path, failure_policy=policy)
    few = [e for e in crossed(base, 10, pattern="levy_flight") if e.seed == 0 or e.episode == 0]
    found = plain(build_results(table(*crossed(base, 10, pattern="spiral"), *few), path, RESAMPLES).result)[
        "registration"
    ]
    (said,) = found["deviations"]
    assert said == (
        "condition levy: 27 of 40 registered missions not flown: seed 1 episode 1, seed 1 episode 2, "
        "seed 1 episode 3, seed 2 episode 1, seed 2 episode 2 and 22 more"
    )
    told = json.dumps(found["verdicts"]) + str(found["refused"])
    if policy == "strict":
        assert "27 of 40 cells have no value: seed 1 episode 1" in told
    else:
        assert "3 of 4 episodes left out: no value for every seed" in told


def test_an_episode_no_seed_flew_is_a_hole_at_every_noise_level(base: EpisodeMetrics, tmp_path: Path) -> None:
    grid = [e for sigma in (0.05, 0.2) for e in both_at(base, sigma) if e.episode < 3]
    whole = [flown(base, s, 3, pattern="spiral", sigma=0.05) for s in range(10)]
    found = plain(build_results(table(*grid, *whole), registered(tmp_path), RESAMPLES).result)["registration"]
    said = "; ".join(found["deviations"])
    assert "condition spiral: 10 of 80 registered missions not flown: seed 0 episode 3 at sigma 0.2, kappa" in said
    assert "condition levy: 20 of 80 registered missions not flown: seed 0 episode 3 at sigma 0.05, kappa" in said
    assert "seed 0 episode 3 at sigma 0.2, kappa" in json.dumps(found["verdicts"]) + str(found["refused"])


def test_a_registration_that_fits_two_conditions_is_not_guessed(base: EpisodeMetrics, tmp_path: Path) -> None:
    path = registered(tmp_path)
    absent = [dataclasses.replace(e, victim_absent=True, config_sha256=f"a{e.config_sha256}") for e in both(base)]
    found = plain(build_results(table(*both(base), *absent), path, RESAMPLES).result)["registration"]
    assert all("differ in victim_absent" in v["refused"] for v in found["verdicts"])


def test_invalid_missions_on_either_side_leave_what_both_have(base: EpisodeMetrics, tmp_path: Path) -> None:
    """At two noise levels, where a column's number is not its episode's."""
    path = registered(tmp_path, failure_policy="best_effort")
    episodes = both_at(base, 0.05) + both_at(base, 0.2)
    lost = {("spiral", 0.05, 3, 1), ("levy_flight", 0.2, 5, 2)}
    episodes = [
        dataclasses.replace(e, valid=(e.pattern, e.sigma, e.seed, e.episode) not in lost, invalid_reason=None)
        for e in episodes
    ]
    found = plain(build_results(table(*episodes), path, RESAMPLES).result)["registration"]
    alone, against = found["verdicts"]
    assert (alone["holds"], against["holds"]) == (True, False)
    assert against["value"] == pytest.approx(0.05 * (len("spiral") - len("levy_flight")) / 10)
    assert "1 of 8 episodes left out: not valid for every seed" in against["notes"]
    assert "1 of 7 episodes left out: not in every compared table" in against["notes"]
    assert alone["notes"] == ["1 of 8 episodes left out: not valid for every seed"]


@pytest.mark.parametrize("metric", ["localization_error_m", "time_to_first_detection_s", "time_to_95_s", "gdop"])
def test_a_miss_never_helps_a_registered_median(base: EpisodeMetrics, tmp_path: Path, metric: str) -> None:
    """Spirals are within 2 when they succeed, but 22 of 40 do not; flights of Levy always are at 3."""

    def value(e: EpisodeMetrics) -> float | None:
        if e.pattern == "levy_flight":
            return 3.0
        return None if e.episode < 2 or (e.episode == 2 and e.seed < 2) else 2.0

    claims = [{"condition": name, "part": "value", "relation": "at_most", "limit": 5.0} for name in ("spiral", "levy")]
    path = registered(tmp_path, metric=metric, estimator="median", thresholds=claims, failure_policy="best_effort")
    victim = Victim(0.0, 0.0, False)
    known: dict[str, Any] = {"victims": (victim,), "detections": 0, "coverage": 0.5}
    episodes = [dataclasses.replace(e, **known, **{metric: value(e)}) for e in both(base)]
    document = build_results(table(*episodes), path, RESAMPLES)
    jsonschema.Draft202012Validator(results_schema()).validate(plain(document))
    spiral, levy = plain(document.result)["registration"]["verdicts"]
    assert (spiral["holds"], spiral["value"], levy["holds"], levy["value"]) == (False, None, True, 3.0)
    assert not any("left out" in text for text in spiral["notes"])
    assert spiral["beyond"] == {"value": "inf", "high": "inf"} | ({"low": "inf"} if spiral["low"] is None else {})
    lines = [line for line in results_markdown(document).splitlines() if line.startswith("- FAILS: spiral")]
    assert "beyond every number (half or more missed)" in lines[0] and "undefined" not in lines[0]


def test_without_radio_nothing_was_missed(base: EpisodeMetrics, tmp_path: Path) -> None:
    path = registered(tmp_path, metric="localization_error_m", estimator="median")
    deaf = [dataclasses.replace(e, detections=None, false_alarms=None, localization_error_m=None) for e in both(base)]
    found = plain(build_results(table(*deaf), path, RESAMPLES).result)["registration"]
    assert all("40 of 40 cells have no value" in v["refused"] for v in found["verdicts"])


def test_a_verdict_is_printed_in_its_estimators_unit_with_its_notes(base: EpisodeMetrics, tmp_path: Path) -> None:
    claim = {"condition": "spiral", "against": "levy", "part": "low", "relation": "at_least", "limit": 0.5}
    chosen = {"metric": "episode_return", "estimator": "probability_of_improvement", "thresholds": [claim]}
    document = build_results(table(*both(base)), registered(tmp_path, **chosen), RESAMPLES)
    (verdict,) = plain(document.result)["registration"]["verdicts"]
    told = "spiral against levy: low at least 0.5 (0.0 % [0.0, 0.0], seeds bootstrap, percentile"
    assert f"- FAILS: {told}" in results_markdown(document)
    assert "the interval has no width because nothing varied" in verdict["notes"][0]
    for shown in (results_markdown(document), str(registration(document.result))):
        assert verdict["notes"][0] in shown


def test_the_page_tells_all_of_a_registration(base: EpisodeMetrics, tmp_path: Path) -> None:
    document = build_results(table(*both(base)), registered(tmp_path), RESAMPLES)
    page = str(registration(document.result))
    first = plain(document.result)["registration"]["verdicts"][0]
    for words in (
        "Spirals cover more than flights of Levy.",
        "Metric coverage_240s, estimator iqm, purpose leaderboard, policy strict",
        f"low at least 0.1: holds ({100 * first['value']:.1f} % [{100 * first['low']:.1f}, {100 * first['high']:.1f}]",
        "95 % interval, 10000 resamples, bootstrap seed 0",
    ):
        assert words in page, words
    unknown = build_results(table(*both(base)), registered(tmp_path, metric="speed"), RESAMPLES)
    assert "Nothing was decided: metric 'speed' is no column" in str(registration(unknown.result))
    none = build_results(table(*both(base)), registered(tmp_path, thresholds=[]), RESAMPLES)
    assert "No claim was registered." in str(registration(none.result))


def test_one_claim_that_cannot_be_decided_leaves_the_others(base: EpisodeMetrics, tmp_path: Path) -> None:
    document = build_results(table(*crossed(base, 10, pattern="spiral")), registered(tmp_path), RESAMPLES)
    jsonschema.Draft202012Validator(results_schema()).validate(plain(document))
    found = plain(document.result)["registration"]
    assert found["verdicts"][0]["holds"]
    reason = "condition levy: none of its registered missions was flown"
    assert found["verdicts"][1]["refused"] == reason
    page = results_markdown(document)
    assert f"- NOT DECIDED: spiral against levy: low at least 0.2: {reason}" in page
    assert "1 of 2 claims hold, 1 cannot be decided" in page
    assert reason in str(registration(document.result))


@pytest.mark.parametrize("kappa", [math.inf, "inf"])
def test_a_registration_can_ask_for_no_phase_noise(base: EpisodeMetrics, tmp_path: Path, kappa: Any) -> None:
    conditions = [
        {"name": name, "changes": {"pattern": pattern, "kappa": kappa}}
        for name, pattern in (("spiral", "spiral"), ("levy", "levy_flight"))
    ]
    path = registered(tmp_path, conditions=conditions)
    quiet = [dataclasses.replace(e, kappa=math.inf) for e in both(base)]
    found = plain(build_results(table(*quiet), path, RESAMPLES).result)["registration"]
    assert (found["deviations"], [v["holds"] for v in found["verdicts"]]) == ([], [True, False])


def test_eighty_conditions_fit_one_page_and_the_rest_is_linked(base: EpisodeMetrics) -> None:
    patterns = ("a", "bb", "ccc", "dddd", "eeeee", "ffffff", "ggggggg", "hhhhhhhh")
    episodes = [
        e
        for pattern in patterns
        for sigma in (0.02, 0.05, 0.1, 0.2, 0.4)
        for absent in (False, True)
        for e in crossed(base, 3, 2, pattern=pattern, sigma=sigma, victim_absent=absent)
    ]
    document = build_results(table(*episodes), resamples=RESAMPLES)
    assert len(document.result.conditions) == 80
    page, tables = results_markdown(document), tables_markdown(document)
    assert len(page.splitlines()) <= 110
    assert "[TABLES.md](TABLES.md)" in page and len(tables.splitlines()) > 500
    assert len(document.result.comparisons) == 2 * 2 * 28, "noise levels are pooled before patterns are compared"


def test_the_example_in_the_docs_runs(base: EpisodeMetrics, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[4] / "docs" / "report.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.setattr("sar_analysis.table.analyze", lambda path: table(*crossed(base, 2)))
    names: dict[str, Any] = {}
    exec(example, names)
    assert names["result"].counts.valid == 8


def test_nonsense_is_refused(base: EpisodeMetrics) -> None:
    with pytest.raises(MissingDataError, match=r"no episode can be read: unreadable: x\.mcap: cut"):
        build_results(Table((), (TableProblem("unreadable", "x", "x.mcap: cut"),)))
    with pytest.raises(ContractError, match="coverage_240s is nan; allowed"):
        build_results(table(flown(base, 0, 0, coverage_240s=math.nan)))
    lost = dataclasses.replace(flown(base, 0, 0), coverage_curve=(0.0, math.nan))
    with pytest.raises(ContractError, match="not finite"):
        build_results(table(lost))
    with pytest.raises(InputError, match="resamples = 5: allowed: at least 100"):
        build_results(table(base), resamples=5)
    with pytest.raises(InputError, match="seed = -1"):
        build_results(table(base), seed=-1)


def learned(base: EpisodeMetrics, name: str, path: str, seeds: int = 3) -> list[EpisodeMetrics]:
    """Each seed is a training run of its own, so weights and their hash differ; {seed} in the path is its number."""
    return [
        flown(
            base,
            seed,
            episode,
            pattern="policy",
            coverage_240s=0.1 * len(name) + 0.01 * seed,
            configuration={
                **base.configuration,
                "pattern": "policy",
                "policy": path.format(seed=seed),
                "policy_sha256": hashlib.sha256(path.format(seed=seed).encode()).hexdigest(),
            },
        )
        for seed in range(seeds)
        for episode in range(2)
    ]


def test_training_runs_of_a_policy_are_seeds_of_one_condition(base: EpisodeMetrics) -> None:
    runs = learned(base, "mappo", "/somewhere/policies/mappo/seed{seed}.npz", 10)
    others = learned(base, "ippo", "policies/ippo/{seed:02d}.npz", 10)
    result = result_of(*runs, *others, *crossed(base, 10, 2, pattern="spiral"))
    assert [c["condition"].get("policy") for c in result["conditions"]] == ["mappo", "ippo", None]
    assert [c["seeds"] for c in result["conditions"]] == [list(range(10))] * 3
    assert [c["label"].split(" · ")[2] for c in result["conditions"]] == ["policy mappo", "policy ippo", "spiral"]
    pairs = [(row["first"], row["second"]) for row in result["comparisons"] if row["metric"] == "coverage_240s"]
    assert pairs == [("c01", "c02"), ("c01", "c03"), ("c02", "c03")]
    assert result["card"]["hyperparameters"]["varied"]["policy"] == ["ippo", "mappo", None]
    assert result["card"]["compute"]["training"].startswith("policies ippo, mappo;")
    assert ".npz" not in json.dumps(result) and "somewhere" not in json.dumps(result)


def test_a_policy_in_a_file_of_its_own_is_called_after_the_file(base: EpisodeMetrics) -> None:
    (found,) = result_of(*learned(base, "best", "runs/best.npz"))["conditions"]
    assert found["condition"]["policy"] == "best"
    clash = result_of(*learned(base, "a", "one/best.npz"), *learned(base, "b", "two/best.npz"))
    names = [c["condition"]["policy"] for c in clash["conditions"]]
    assert len(set(names)) == 2 and all(re.fullmatch("best [0-9a-f]{12}", name) for name in names)
    foreign = result_of(*learned(base, "mappo", "mappo/seed7.npz"))["conditions"]
    assert [c["condition"]["policy"] for c in foreign] == ["seed7"], "not the run of any of these seeds"


def uneven(base: EpisodeMetrics, seeds: int, **more: Any) -> list[EpisodeMetrics]:
    """Coverages whose seeds' means and IQMs differ in size and in sign."""
    rng = np.random.default_rng(len(str(more)))
    return [dataclasses.replace(e, coverage_240s=float(rng.exponential())) for e in crossed(base, seeds, **more)]


def test_p_and_detectable_are_about_the_iqms_that_the_row_shows(base: EpisodeMetrics) -> None:
    sides = [uneven(base, 8, pattern=name) for name in ("spiral", "levy_flight")]
    row = next(r for r in result_of(*sides[0], *sides[1])["comparisons"] if r["metric"] == "coverage_240s")
    scores = [[sorted(e.coverage_240s or 0.0 for e in side if e.seed == s)[1:3] for s in range(8)] for side in sides]
    gaps = [sum(a) / 2 - sum(b) / 2 for a, b in zip(*scores, strict=True)]
    flips = [abs(sum(s * g for s, g in zip(signs, gaps, strict=True))) for signs in product((1, -1), repeat=8)]
    assert row["p"] == pytest.approx(sum(f >= abs(sum(gaps)) - 1e-12 for f in flips) / 2**8)
    assert row["detectable"] == pytest.approx(recount.detectable(gaps), rel=1e-6)
    assert row["test"] == "exact sign-flip test over seeds"


def test_too_few_seeds_to_reject_have_no_detectable_difference(base: EpisodeMetrics) -> None:
    for seeds, enough in ((3, False), (6, False), (7, True)):
        sides = [e for name in ("spiral", "levy_flight") for e in uneven(base, seeds, pattern=name)]
        row = next(r for r in result_of(*sides)["comparisons"] if r["metric"] == "coverage_240s")
        said = f"{seeds} seeds cannot reject whatever the difference"
        assert (row["detectable"] is None, row["note"] == said) == (not enough, not enough), seeds


def test_headlines_keep_tiers_apart_and_say_what_they_take_for_granted(base: EpisodeMetrics) -> None:
    episodes = [*crossed(base, 2), *crossed(base, 2, tier="sih"), *crossed(base, 2, tier="sih", sigma=0.3)]
    document = build_results(table(*episodes), resamples=RESAMPLES)
    jsonschema.Draft202012Validator(results_schema()).validate(plain(document))
    rows = plain(document.result)["headlines"]
    assert [(row["tier"], row["missions"]) for row in rows] == [("embedded", 8), ("sih", 16)]
    page = results_markdown(document)
    assert "| embedded | present | 8 |" in page and "| sih | present | 16 |" in page
    assert "Layouts are drawn again, each with all its missions in all 3 conditions." in page
    html = render(document, [None] * len(episodes))
    assert "Layouts are drawn again, each with all its missions in all 3 conditions." in html
    assert "sih, victims present" in html


def test_a_stray_seed_costs_a_comparison_nothing_and_what_is_left_out_is_said(base: EpisodeMetrics) -> None:
    stray = flown(base, 9, 0, pattern="spiral")
    sides = [crossed(base, 3, pattern=name) for name in ("spiral", "levy_flight")]
    sides[1][0] = dataclasses.replace(sides[1][0], valid=False, invalid_reason="interrupted")
    document = build_results(table(stray, *sides[0], *sides[1]), resamples=RESAMPLES)
    row = plain(document.result)["comparisons"][0]
    assert (row["seeds"], row["n"]) == (3, 9), "three seeds on the three episodes that both sides have"
    pages = (tables_markdown(document), render(document, [None] * 25))
    for said in ("c01: seed 9 left out: not flown on both sides", "c01: 1 of 4 episodes left out: not in every"):
        assert all(said in page for page in pages), said
    assert all("c02: 1 of 4 episodes left out" in page for page in pages)
    told = "conditions were flown with different seeds: c01 by 0, 1, 2, 9; c02 by 0 to 2"
    assert told in document.result.warnings
    same = result_of(*crossed(base, 3, pattern="spiral"), *crossed(base, 3, pattern="levy_flight"))
    assert same["warnings"] == []


def test_notes_under_a_table_name_their_conditions_and_say_when_there_are_more(base: EpisodeMetrics) -> None:
    broken = [
        dataclasses.replace(e, valid=e.seed > 0 or e.episode > k, invalid_reason="x")
        for k in range(14)
        for e in crossed(base, 2, 20, sigma=0.01 * k)
    ]
    page = tables_markdown(build_results(table(*broken), resamples=RESAMPLES))
    caption = next(line for line in page.splitlines() if "IQM of the seeds x episodes" in line)
    assert "c01: 1 of 20 episodes left out" in caption and "c12: 12 of 20 episodes left out" in caption
    assert "more notes are in results.json" in caption


def test_noise_levels_close_together_keep_labels_apart(base: EpisodeMetrics) -> None:
    labels = [c["label"] for c in result_of(*(flown(base, 0, 0, sigma=s) for s in (0.001, 0.004, 0.1)))["conditions"]]
    assert [label.split(" · ")[4].split(" κ")[0] for label in labels] == ["σ 0.001", "σ 0.004", "σ 0.1"]


def test_a_short_search_keeps_what_it_covered(base: EpisodeMetrics) -> None:
    """One mission that ended early must not cut the others' curves short."""
    curves = ((0.0, 0.2), (0.0, 0.4, 0.8))
    missions = [dataclasses.replace(flown(base, k, 0), coverage_curve=curve) for k, curve in enumerate(curves)]
    curve = coverage_curve(missions)
    assert curve["mean"] == pytest.approx([0.0, 0.3, 0.5]) and len(curve["time_s"]) == 3
