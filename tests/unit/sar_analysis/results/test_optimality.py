"""The optimality gap against an oracle's returns: values by hand and by rliable's definition, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from sar_analysis.metrics.metrics import EpisodeMetrics, episode_metrics
from sar_analysis.metrics.task import TASK, task_of, task_sha256
from sar_analysis.render.markdown import results_markdown, tables_markdown
from sar_analysis.render.page import render
from sar_analysis.results.document import build_results
from sar_analysis.results.model import results_schema
from sar_analysis.results.optimality import beyond, gap_scores, gaps, load_reference
from sar_analysis.stats import clustered
from sar_analysis.stats.aggregate import optimality_gap
from sar_analysis.stats.layouts import Options
from sar_analysis.stats.resampling import bootstrap
from sar_analysis.stats.statistics import mean_of
from sar_analysis.table import Table
from sar_core.errors import ContractError, InputError, MissingDataError
from tests.unit.sar_analysis.bagmaker import Made, straight
from tests.unit.sar_analysis.documents import plain

CONFIGURATION: dict[str, Any] = {
    "tier": "embedded",
    "world_sha256": "ab" * 32,
    "episode_set": "rules-1",
    "drones": 1,
    "duration_s": 240.0,
    "wind_mps": [1.2, 1.6, 0.0],
    "pattern": "pheromone",
    "sigma": 0.05,
    "kappa": 8.0,
}
RETURNS = {0: 1000.0, 1: 500.0, 2: 2000.0}


@pytest.fixture(scope="module")
def flown(tmp_path_factory: pytest.TempPathFactory) -> EpisodeMetrics:
    """An episode read from a bag whose configuration is the one above."""
    path = straight(4.0, np.array([[2.5, 52.5, 30.0]]), np.array([[8.0, 0.0, 0.0]]))
    devices = [(7, 0, (20.0, 50.0, 0.5))]
    made = Made(path, 1.0, 3.0, devices=devices, info={"world_sha256": "ab" * 32}, config=CONFIGURATION)
    return episode_metrics(made.write(tmp_path_factory.mktemp("optimality") / "bag"))


def missions(flown: EpisodeMetrics) -> list[EpisodeMetrics]:
    """Two seeds on three episodes; one return beats the oracle."""
    values = {(0, 0): 900.0, (0, 1): 600.0, (0, 2): 1000.0, (1, 0): 500.0, (1, 1): 500.0, (1, 2): 1500.0}
    return [
        dataclasses.replace(flown, episode_id=f"s{s}-e{e}", seed=s, episode=e, valid=True, episode_return=value)
        for (s, e), value in values.items()
    ]


def write(path: Path, **changed: Any) -> Path:
    rows = [{"episode": e, "sigma": 0.05, "kappa": 8.0, "return": r} for e, r in RETURNS.items()]
    plain = {
        "schema_version": 1,
        "world": "village",
        "world_sha256": "ab" * 32,
        "episode_set": "rules-1",
        "task": task_of(CONFIGURATION),
        "task_sha256": task_sha256(CONFIGURATION),
        "version": "0.1.0",
        "returns": rows,
    }
    path.write_text(json.dumps(plain | changed))
    return path


def test_gaps_are_shortfalls_below_the_oracle_and_beating_it_is_no_negative_gap(
    flown: EpisodeMetrics, tmp_path: Path
) -> None:
    found = gaps(missions(flown), load_reference(write(tmp_path / "r.json")))
    assert [gap.gap for gap in found] == pytest.approx([0.1, 0.0, 0.5, 0.5, 0.0, 0.25])
    assert [gap.normalised for gap in found] == pytest.approx([0.9, 1.2, 0.5, 0.5, 1.0, 0.75])
    assert beyond(found) == 1


def test_the_tables_mean_is_the_optimality_gap_at_one(flown: EpisodeMetrics, tmp_path: Path) -> None:
    """aggregate.optimality_gap is held to rliable's elsewhere; normalising by the oracle makes gamma 1."""
    every, reference = missions(flown), load_reference(write(tmp_path / "r.json"))
    scores = gap_scores(every, reference)
    normalised = np.array([[e.episode_return / RETURNS[e.episode] for e in every if e.seed == s] for s in (0, 1)])
    assert scores.values.mean() == pytest.approx(optimality_gap(normalised, 1.0), abs=1e-12)
    interval = bootstrap(scores, mean_of, "seeds", "t")
    assert interval.value == pytest.approx(0.225) and interval.low < 0.225 < interval.high


def test_an_invalid_mission_is_left_out_and_the_table_says_so(flown: EpisodeMetrics, tmp_path: Path) -> None:
    every = missions(flown)
    every[1] = dataclasses.replace(every[1], valid=False, episode_return=None)
    reference = load_reference(write(tmp_path / "r.json"))
    assert len(gaps(every, reference)) == 5
    with pytest.raises(MissingDataError, match="seed 0 episode 1"):
        gap_scores(every, reference)
    scores = gap_scores(every, reference, drop_incomplete=True)
    assert scores.episodes == (0, 2) and scores.notes == ("1 of 3 episodes left out: not valid for every seed",)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"world_sha256": "cd" * 32}, "world is abababababab...; the reference was flown in cdcdcdcdcdcd..."),
        ({"episode_set": "rules-2"}, "episode set is rules-1; the reference was flown in rules-2"),
        ({"task_sha256": "0" * 64}, "another task; the reference was flown with .*duration_s 240"),
    ],
)
def test_a_reference_of_another_world_set_or_task_is_refused(
    flown: EpisodeMetrics, tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    reference = load_reference(write(tmp_path / "r.json", **changed))
    with pytest.raises(ContractError, match=f"s0-e0 against r.json: {words}"):
        gaps(missions(flown), reference)


def test_what_the_reference_lacks_is_named(flown: EpisodeMetrics, tmp_path: Path) -> None:
    reference = load_reference(write(tmp_path / "r.json"))
    every = missions(flown)
    other = dataclasses.replace(every[0], episode=7)
    with pytest.raises(MissingDataError, match=r"no return for episode 7 at sigma 0.05, kappa 8.0; it holds episodes"):
        gaps([other], reference)
    with pytest.raises(MissingDataError, match=r"no return for episode 0 at sigma 0.2"):
        gaps([dataclasses.replace(every[0], sigma=0.2)], reference)
    with pytest.raises(MissingDataError, match="no return to compare"):
        gaps([dataclasses.replace(every[0], episode_return=None)], reference)


def test_an_oracle_flight_that_was_invalid_is_no_reference(flown: EpisodeMetrics, tmp_path: Path) -> None:
    row = {"episode": 0, "sigma": 0.05, "kappa": 8.0, "return": None, "invalid_reason": "takeoff_timeout"}
    reference = load_reference(write(tmp_path / "r.json", returns=[row]))
    with pytest.raises(MissingDataError, match=r"the oracle's own flight was INVALID \(takeoff_timeout\)"):
        gaps(missions(flown)[:1], reference)


@pytest.mark.parametrize("value", [0.0, -20.0, float("nan")])
def test_a_return_one_cannot_divide_by_is_refused(tmp_path: Path, value: float) -> None:
    row = {"episode": 4, "sigma": 0.05, "kappa": 8.0, "return": value}
    with pytest.raises(ContractError, match=r"episode 4 returned .* must be above 0"):
        load_reference(write(tmp_path / "r.json", returns=[row]))


def test_files_that_are_no_reference_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="make one with: sar-eval reference"):
        load_reference(tmp_path / "none.json")
    (tmp_path / "text.json").write_text("no")
    with pytest.raises(InputError, match="not a reference"):
        load_reference(tmp_path / "text.json")
    with pytest.raises(ContractError, match="schema_version is 9"):
        load_reference(write(tmp_path / "r.json", schema_version=9))
    with pytest.raises(ContractError, match="lacks or mistypes 'episode'"):
        load_reference(write(tmp_path / "r.json", returns=[{"sigma": 0.05}]))
    twice = [{"episode": 1, "sigma": 0.05, "kappa": 8.0, "return": 1.0}] * 2
    with pytest.raises(ContractError, match=r"episode 1 at sigma 0.05, kappa 8.0 appears twice"):
        load_reference(write(tmp_path / "r.json", returns=twice))


def test_the_task_is_what_is_asked_not_how_it_is_flown() -> None:
    same = {"pattern": "spiral", "sigma": 0.4, "kappa": 1.0, "seed": 9, "episode": 3, "wind_mps": [0.0, -2.0, 0.0]}
    assert task_sha256(CONFIGURATION | same) == task_sha256(CONFIGURATION)
    for key in TASK:
        assert task_sha256(CONFIGURATION | {key: "other"}) != task_sha256(CONFIGURATION), key
    assert task_sha256(CONFIGURATION | {"wind_mps": [0.0, 3.0, 0.0]}) != task_sha256(CONFIGURATION)


def test_results_hold_every_condition_to_the_oracle_or_say_why_not(flown: EpisodeMetrics, tmp_path: Path) -> None:
    """By hand: gaps 0.1, 0, 0.5 for seed 0 and 0.5, 0, 0.25 for seed 1; one mission returned more than the oracle."""
    reference = load_reference(write(tmp_path / "r.json"))
    elsewhere = [dataclasses.replace(e, world="desert", world_sha256="cd" * 32) for e in missions(flown)]
    document = build_results(Table((*missions(flown), *elsewhere), ()), resamples=200, reference=reference)
    jsonschema.Draft202012Validator(results_schema()).validate(plain(document))
    rows = {row["id"]: row for row in plain(document.result)["optimality"]["conditions"]}
    (held,) = (row for row in rows.values() if "value" in row)
    (refused,) = (row for row in rows.values() if "refused" in row)
    assert held["value"] == pytest.approx((0.1 + 0.0 + 0.5 + 0.5 + 0.0 + 0.25) / 6)
    by_layout = {"x": [0.1, 0.5, 0.0, 0.0, 0.5, 0.25], "layouts": [0, 0, 1, 1, 2, 2]}
    drawn = clustered.mean(by_layout["x"], by_layout["layouts"], Options(200), bounds=(0.0, math.inf))
    assert (held["low"], held["high"]) == pytest.approx((drawn.low, drawn.high))
    assert (held["method"], held["cluster"], held["resamples"]) == (drawn.method, "layout", 200)
    assert (held["beyond"], held["n"], held["missions"]) == (1, 6, 6)
    assert "world is cdcdcdcdcdcd" in refused["refused"]
    page = tables_markdown(document)
    html = render(document, [None] * len(plain(document.result)["episodes"]))
    for text in (page, html):
        assert "Against the oracle" in text and "1 of 6" in text and f"{held['value']:.4f} [" in text
    assert all("optimality gap" not in item["what"] for item in plain(document.result)["not_computed"])
    without = build_results(Table(tuple(missions(flown)), ()), resamples=200)
    assert plain(without.result)["optimality"] is None and "Against the oracle" not in tables_markdown(without)
    assert f"| optimality gap | present | spiral | {held['value']:.3g} [" in results_markdown(document)


def test_an_invalid_mission_costs_results_its_episode_and_no_more(flown: EpisodeMetrics, tmp_path: Path) -> None:
    """Episode 1 of seed 0 is INVALID: left are 0.1 and 0.5 for seed 0, 0.5 and 0.25 for seed 1."""
    reference = load_reference(write(tmp_path / "r.json"))
    flights = [dataclasses.replace(e, valid=(e.seed, e.episode) != (0, 1)) for e in missions(flown)]
    document = build_results(Table(tuple(flights), ()), resamples=200, reference=reference)
    (row,) = plain(document.result)["optimality"]["conditions"]
    assert row["value"] == pytest.approx((0.1 + 0.5 + 0.5 + 0.25) / 4)
    assert (row["missions"], row["invalid"]) == (5, 1)
    assert any("left out" in note for note in row["notes"])


def test_two_worlds_of_one_name_are_two_conditions(flown: EpisodeMetrics) -> None:
    def in_world(sha256: str, name: str) -> list[EpisodeMetrics]:
        facts = {"world": name, "world_sha256": sha256, "configuration": {"world_sha256": sha256}}
        return [dataclasses.replace(e, **facts) for e in missions(flown)]

    here, edited, desert = in_world("ab" * 32, "village"), in_world("cd" * 32, "village"), in_world("cd" * 32, "desert")
    conditions = plain(build_results(Table((*here, *edited), ()), resamples=200).result)["conditions"]
    assert [c["missions"] for c in conditions] == [6, 6]
    apart = plain(build_results(Table((*here, *desert), ()), resamples=200).result)["conditions"]
    assert len(apart) == 2 and all("sha256" not in c["label"] for c in apart)
