"""No figure is published without a 95 % interval that says how it was made, in any of the files a report writes."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from sar_analysis.metrics.findings import HeldReport, Victim
from sar_analysis.metrics.metrics import EpisodeMetrics, episode_metrics
from sar_analysis.render.csvfiles import SUMMARY, figures, write_rows
from sar_analysis.render.latex import results_latex
from sar_analysis.render.markdown import results_markdown, tables_markdown
from sar_analysis.results.document import build_results
from sar_analysis.results.erratum import Correction
from sar_analysis.results.model import Document
from sar_analysis.results.optimality import Reference
from sar_analysis.results.stagegap import Stage1Prediction
from sar_analysis.stage1.figures import plain_choice, policy_figures
from sar_analysis.stage1.medianseeds import choose
from sar_analysis.stage1.rows import Stage1Row
from sar_analysis.stats import clustered
from sar_analysis.stats.layouts import Options
from sar_analysis.stats.rates import order_quantile
from sar_analysis.table import Table
from tests.unit.sar_analysis.bagmaker import Made, straight
from tests.unit.sar_analysis.documents import plain
from tests.unit.sar_analysis.figurecheck import INTERVAL, NAMED, faults, unexplained
from tests.unit.sar_analysis.missions import FOUND, MISSED, campaign

RESAMPLES, SEED = 400, 7
DRAWN = Options(RESAMPLES, SEED)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> EpisodeMetrics:
    path = straight(4.0, np.array([[2.5, 52.5, 30.0]]), np.array([[8.0, 0.0, 0.0]]))
    made = Made(path, 1.0, 3.0, devices=[(7, 0, (20.0, 50.0, 0.5))])
    measured = episode_metrics(made.write(tmp_path_factory.mktemp("intervals") / "bag"))
    facts: dict[str, Any] = {"notes": (), "search_time_s": 240.0, "detections": 1, "victims": (FOUND, MISSED)}
    return dataclasses.replace(measured, **facts, time_to_first_detection_s=30.0, time_to_95_s=None)


def stirred(e: EpisodeMetrics) -> EpisodeMetrics:
    """Figures of one mission that differ from the next one's, some of them rare."""
    k = 7 * e.episode + 3 * e.seed + len(e.pattern)
    first, second = e.victims if e.victims else (FOUND, MISSED)
    seen = dataclasses.replace(
        first, error_m=0.5 + 0.37 * (k % 11), final_error_m=0.2 + 0.1 * (k % 7), issued_s=5.0 + k
    )
    facts: dict[str, Any] = {
        "victims": () if e.victim_absent else (seen if k % 5 else dataclasses.replace(second, x_m=first.x_m), second),
        "collisions": int(k % 17 == 0),
        "near_misses": k % 3,
        "time_to_95_s": None if k % 4 == 0 else 100.0 + k,
        "time_to_first_detection_s": 5.0 + k if k % 5 else None,
        "episode_return": 1000.0 + 10.0 * k,
        "overlap_ratio": 0.1 + 0.01 * (k % 9),
        "gate_open": 0.9 - 0.01 * (k % 8) if (e.sigma or 0.0) < 0.1 else 0.2 + 0.01 * (k % 8),
        "path_m": 500.0 + k,
        "min_separation_m": 4.0 + 0.1 * (k % 6),
    }
    return dataclasses.replace(e, **facts)


@pytest.fixture(scope="module")
def episodes(base: EpisodeMetrics) -> list[EpisodeMetrics]:
    sides = ({}, {"victim_absent": True, "victims": (), "detections": 0})
    patterns = ("spiral", "levy_flight")
    return [stirred(e) for more in sides for name in patterns for e in campaign(base, name, layouts=8, **more)]


@pytest.fixture(scope="module")
def rows(episodes: list[EpisodeMetrics]) -> list[Stage1Row]:
    return [
        Stage1Row(
            policy=e.pattern,
            seed=e.seed,
            episode=e.episode,
            schema_version=2,
            episode_return=900.0 + 3.0 * e.episode + e.seed,
            world=e.world,
            episode_set=e.episode_set,
            sigma=e.sigma,
            kappa=e.kappa,
            coverage_240s=(e.coverage_240s or 0.0) / 2.0,
            detections=e.episode % 3,
            time_to_first_detection_s=20.0 + e.episode if e.episode % 3 else None,
            localization_error_m=3.0 + 0.1 * e.episode if e.episode % 3 else None,
            false_alarms=e.episode % 2,
        )
        for e in episodes
        if not e.victim_absent
    ]


@pytest.fixture(scope="module")
def document(episodes: list[EpisodeMetrics], rows: list[Stage1Row]) -> Document:
    table = Table(tuple(episodes), ())
    return build_results(table, resamples=RESAMPLES, seed=SEED, stage1=Stage1Prediction("stage1.jsonl", rows))


@pytest.fixture(scope="module")
def whole(episodes: list[EpisodeMetrics], rows: list[Stage1Row], tmp_path_factory: pytest.TempPathFactory) -> Document:
    """With all that a report can hold: looks at fixed times, an oracle, a registration, an erratum."""
    looked = [dataclasses.replace(e, victims=tuple(_held(v, e, k) for k, v in enumerate(e.victims))) for e in episodes]
    one = looked[0]
    task = (one.world_sha256, str(one.episode_set), one.task_sha256, {}, "0.1.0")
    asked = {(e.episode, e.sigma, e.kappa): 1100.0 for e in looked}
    seen = clustered.quantile([1.0 + 0.1 * k for k in range(60)], 0.5, [k % 10 for k in range(60)], DRAWN)
    erratum = [Correction("CEP50 at issue", "cep50_m", "m", order_quantile([0.1 * k for k in range(40)], 0.5), seen)]
    return build_results(
        Table(tuple(looked), ()),
        _registered(tmp_path_factory.mktemp("registered") / "study.yaml"),
        resamples=RESAMPLES,
        seed=SEED,
        reference=Reference("oracle.json", one.world, *task, asked, {}),
        stage1=Stage1Prediction("stage1.jsonl", rows),
        erratum=erratum,
    )


def _held(v: Victim, e: EpisodeMetrics, k: int) -> Victim:
    """The victim with what was held of it after each minute; nothing in the first one where an odd one was sought."""
    begin = 1 + (e.episode + e.seed + k) % 2
    fixes = tuple(
        HeldReport(
            60.0 * n, 1.0, (20.0 + k + e.seed) / n, 0.5, 2.0 + 0.1 * n, 1.0 + 0.3 * ((n + e.episode) % 5), 9.0 / n, n
        )
        for n in range(begin, 5)
    )
    return dataclasses.replace(v, fixes=fixes)


def _registered(path: Path) -> Path:
    names = ("spiral", "levy_flight")
    document: dict[str, Any] = {
        "schema_version": 1,
        "hypothesis": "Spirals cover more than flights of Levy.",
        "conditions": [{"name": n, "changes": {"pattern": n, "victim_absent": False}} for n in names],
        "seeds": [1, 2, 3],
        "episodes": {"set_version": 1, "indices": list(range(16))},
        "metric": "coverage_240s",
        "run_purpose": "debug",
        "thresholds": [
            {"condition": "spiral", "part": "low", "relation": "at_least", "limit": 0.1},
            {"condition": "spiral", "against": "levy_flight", "part": "low", "relation": "at_least", "limit": 0.2},
        ],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_every_figure_of_a_document_with_all_its_parts_says_so_too(whole: Document) -> None:
    result = plain(whole.result)
    assert faults(result) == []
    (part,) = result["geometry"]
    assert all(part[name] for name in ("bands", "correlations", "views")) and result["erratum"]
    assert any("value" in c for c in result["optimality"]["conditions"]), "against the oracle"
    assert any("method" in v for v in result["registration"]["verdicts"]), "what was registered"


IN_WHOLE: list[Callable[[dict[str, Any]], Any]] = [
    lambda r: r["geometry"][0]["correlations"][0]["rho"].update(resamples=1000),
    lambda r: next(v for v in r["geometry"][0]["views"] if v["root_m"]).update(root_m=3.2),
    lambda r: next(c for c in r["optimality"]["conditions"] if "value" in c).update(method="seeds jackknife, t"),
    lambda r: r["stage_gap"]["parts"][0]["metrics"][0].update(kendall_tau=0.5),
    lambda r: r["stage_gap"]["parts"][0]["metrics"][0]["patterns"][0].pop("method"),
    lambda r: r["erratum"][0]["corrected"].update(cluster=None),
    lambda r: r["registration"]["verdicts"][0].pop("method"),
]


@pytest.mark.parametrize("breaking", IN_WHOLE)
def test_a_figure_of_such_a_part_that_does_not_is_found(
    whole: Document, breaking: Callable[[dict[str, Any]], Any]
) -> None:
    result = plain(whole.result)
    breaking(result)
    assert faults(result)


def test_every_figure_of_the_document_says_how_its_interval_was_made(document: Document) -> None:
    assert faults(plain(document.result)) == []


BREAKAGES: list[Callable[[dict[str, Any]], Any]] = [
    lambda r: r["headlines"][0]["estimates"][0].pop("cluster"),
    lambda r: r["headlines"][0]["estimates"][0].update(method="Clopper-Pearson"),
    lambda r: r["conditions"][0]["estimates"][0].update(seed=SEED + 1, method="bootstrap over layouts"),
    lambda r: r["conditions"][0]["estimates"][0].update(low=None, notes=[]),
    lambda r: r["conditions"][0]["gdop_bands"][1].update(cep50_m=3.2),
    lambda r: r["conditions"][0]["scores"][0].update(resamples=None),
    lambda r: r["conditions"][0]["coverage_curve"].update(mean_low=r["conditions"][0]["coverage_curve"]["mean_high"]),
    lambda r: r["seeds"][0]["metrics"].update(coverage_240s=0.4),
    lambda r: r["reliability"].update(brier=0.1),
    lambda r: r["patterns"][0].pop("cluster"),
    lambda r: r["headlines"][0]["estimates"][0].update(method="seeds jackknife, t", resamples=None, seed=None),
    lambda r: r["noise_levels"][0]["levels"][0].update(gate_open=0.9),
    lambda r: next(e for e in r["headlines"][0]["estimates"] if e["metric"] == "coverage_240s").update(
        method="extreme, no interval"
    ),
]


@pytest.mark.parametrize("breaking", BREAKAGES)
def test_a_figure_that_does_not_is_found(document: Document, breaking: Callable[[dict[str, Any]], Any]) -> None:
    result = plain(document.result)
    breaking(result)
    assert faults(result)


def summary_rows(document: Document, folder: Path) -> list[dict[str, str]]:
    path = write_rows(folder / "summary.csv", SUMMARY, figures(document.result))
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("name", ["document", "whole"])
def test_rows_of_the_summary_have_an_interval_or_say_why_not(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    document: Document = request.getfixturevalue(name)
    told = summary_rows(document, tmp_path)
    for row in told:
        if row["value"]:
            assert row["method"] and row["confidence"] == "0.95", row
            assert (row["low"] and row["high"]) or row["note"], row
            assert row["cluster"] or row["kind"] == "as published" or row["method"] == "extreme, no interval", row
            assert not row["method"].startswith("bootstrap") or (row["resamples"], row["seed"]) == ("400", "7"), row
        else:
            assert row["note"], row
    shared = [e for c in document.result.conditions for e in c.estimates]
    single = [row for row in told if row["condition"] and row["kind"] == "estimate" and row["value"]]
    assert [row["low"] for row in single][: len(shared)] == ["" if e.low is None else str(e.low) for e in shared]
    assert any(row["exact_method"].startswith("Clopper-Pearson") for row in told)


def test_the_summary_has_the_geometry_and_the_erratum(whole: Document, tmp_path: Path) -> None:
    told = summary_rows(whole, tmp_path)
    kinds = [row["kind"] for row in told]
    (part,) = whole.result.geometry
    assert kinds.count("error at a fixed time") == 2 * len(part.errors) > 0
    assert kinds.count("error by geometry") == 2 * len(part.bands)
    assert kinds.count("rank correlation") == len(part.correlations)
    assert (kinds.count("error by views"), kinds.count("1 / sqrt(N)")) == (2 * len(part.views), len(part.views))
    (row,) = [
        row
        for row in told
        if row["kind"] == "rank correlation"
        and row["label"].startswith("embedded · constel")
        and row["label"].endswith("all times")
    ]
    rho = next(c.rho for c in part.correlations if c.dilution == "constellation_gdop" and c.time_s is None)
    assert rho is not None and [float(row[end]) for end in ("value", "low", "high")] == [rho.value, rho.low, rho.high]
    (now,) = [row for row in told if row["kind"] == "by today's definitions"]
    (erratum,) = whole.result.erratum
    assert (now["metric"], float(now["value"]), now["unit"]) == ("cep50_m", erratum.corrected.value, "victims")
    assert kinds.count("as published") == 1


def test_tables_that_show_intervals_say_how_they_were_made(document: Document) -> None:
    for page in (results_markdown(document), tables_markdown(document)):
        assert INTERVAL.search(page) and unexplained(page) == []
    assert "400 resamples, seed 7" in results_markdown(document)
    latex = results_latex(document)
    for part in latex.split(r"\begin{table}")[1:]:
        caption, _, body = part.partition(r"\label")
        assert not INTERVAL.search(body) or NAMED.search(caption), caption
    assert unexplained("## A table\n| a |\n|---|\n| 3.1 [2.0, 4.0] |\n\nNothing is said.\n") == ["A table"]


def test_stage_1_says_how_its_intervals_were_made(rows: list[Stage1Row]) -> None:
    found = policy_figures(rows, lambda episode: episode // 2)
    told = {policy: {key: interval.plain for key, interval in own.items()} for policy, own in found.items()}
    choice = plain_choice(choose(rows), rows, lambda episode: episode // 2)
    seeds = {"picks": [{"candidates": pick["candidates"]} for pick in choice["picks"]]}
    for pick in seeds["picks"]:
        for candidate in pick["candidates"]:
            del candidate["distance"]
    assert faults({"stage1": told, "seeds": seeds, "bootstrap": {"resamples": 10_000, "seed": 0}}) == []
    assert len(told["spiral"]) == 6 and told["spiral"]["episode_return"]["cluster"] == "seed and layout"


def test_stage_1_on_one_layout_has_figures_that_say_so(rows: list[Stage1Row]) -> None:
    found = policy_figures([row for row in rows if row.episode < 2], lambda episode: episode // 2)
    told = found["spiral"]["coverage_240s"]
    assert told.notes == ("one layout: says nothing about any other",) and told.value > 0.0
