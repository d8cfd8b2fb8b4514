"""What any published evaluation has to pass, as functions of its folder."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer

from sar_analysis.bags.textfiles import read_text
from sar_analysis.render.markdown import pages
from sar_analysis.results.document import headlines, read_results, seed_rates
from sar_analysis.results.levels import noise_levels
from sar_analysis.results.model import results_schema
from sar_analysis.stage1.medianseeds import choose
from sar_analysis.stage1.rows import read_stage1
from sar_analysis.table import analyze
from sar_eval.campaign.evaluation import FULL
from sar_eval.campaign.manifest import MANIFEST, Manifest, read_manifest
from sar_eval.campaign.plan import parse_numbers
from sar_eval.campaign.publication import FLOWN, FOLDER, FOUND, HOST_KEYS, RECORDS, ROWS, RUN_KEYS, SEEDS, seeds_told
from sar_eval.cli.app import app
from sar_eval.scenario.episodeset import load_set

RENEW = "run: sar-eval publish results --renew"
LARGEST_BYTES = 7_000_000
FOUND_KEY = {1: "detected", 2: "found"}
"""By the record's schema: what says of a victim that it was found."""
A_PLACE = re.compile(r"(?<![\w.~])/(?:home|root|tmp|work|mnt|opt|srv|usr|var|Users)/")


@cache
def document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return found


@cache
def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read_text(folder / RECORDS).splitlines()]


def manifest_of(folder: Path) -> Manifest:
    found = read_manifest(folder)
    assert found is not None
    return found


def it_holds_its_files_and_no_others_and_is_small(folder: Path) -> None:
    FOLDER.check_place(folder)
    assert all((folder / name).is_file() for name in (*FLOWN, *FOUND))
    assert list((folder / "figures").iterdir())
    assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) < LARGEST_BYTES


def its_manifest_holds_the_hash_of_every_other_file(folder: Path) -> None:
    files = {file for file in folder.rglob("*") if file.is_file() and file.name != MANIFEST}
    hashes = {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    assert manifest_of(folder).files == hashes, RENEW


def its_pages_are_what_the_code_makes_of_its_document(folder: Path) -> None:
    jsonschema.Draft202012Validator(results_schema()).validate(document(folder))
    typed = read_results((folder / "results.json").read_text(encoding="utf-8"))
    for name, text in pages(typed).items():
        assert (folder / name).read_text(encoding="utf-8") == text, RENEW


def every_planned_mission_is_there_once_and_in_order(folder: Path) -> None:
    manifest = manifest_of(folder)
    flown = [record["result"] for record in records(folder)]
    assert tuple(result["episode_id"] for result in flown) == manifest.episodes
    assert {result["seed"] for result in flown} == set(manifest.decides["configuration"]["seeds"])
    assert document(folder)["run"]["campaign"]["identity"] == manifest.identity
    assert document(folder)["result"]["counts"]["episodes"] == len(manifest.episodes)


def it_flew_the_committed_episode_set(folder: Path) -> None:
    flown = {(r["result"]["episode_set"], r["result"]["episode_set_sha256"]) for r in records(folder)}
    ((name, digest),) = flown
    assert load_set(name).sha256 == digest
    assert document(folder)["result"]["card"]["versions"]["episode_set_sha256"] == [digest]


def its_seeds_are_the_median_seeds_of_its_stage_1(folder: Path) -> None:
    manifest = manifest_of(folder)
    rows = read_stage1(folder / ROWS)
    choice = choose(rows)
    assert json.loads((folder / SEEDS).read_text(encoding="utf-8")) == json.loads(json.dumps(seeds_told(rows)))
    assert list(choice.seeds) == manifest.decides["configuration"]["seeds"]
    digest = hashlib.sha256(read_text(folder / ROWS).encode()).hexdigest()
    assert digest == manifest.decides["inputs"]["stage1"]["sha256"]


def its_command_is_one_that_the_command_line_takes(folder: Path) -> None:
    manifest = manifest_of(folder)
    program, verb, *options = shlex.split(manifest.host["command"])
    assert (program, verb) == ("sar-eval", "eval")
    given: dict[str, Any] = typer.main.get_command(app).commands["eval"].make_context(verb, options).params
    episodes = FULL.episodes if given["episodes"] is None else parse_numbers(given["episodes"], "episodes")
    assert sorted({r["result"]["episode"] for r in records(folder)}) == sorted(episodes)
    assert manifest.decides["configuration"]["patterns"] == list(given["patterns"] or FULL.patterns)
    assert {row.seed for row in read_stage1(folder / ROWS)} == set(parse_numbers(given["seeds"], "seeds"))


def its_headline_counts_up_from_the_records(folder: Path) -> None:
    """With plain loops that share nothing with the analysis."""
    told = {row["victim_absent"]: row for row in document(folder)["result"]["headlines"]}
    for absent, row in told.items():
        whole = [r for r in records(folder) if r["result"]["configuration"]["victim_absent"] is absent]
        flown = [record["result"] for record in whole]
        valid = [result for result in flown if result["valid"]]
        assert (row["missions"], row["invalid"]) == (len(valid), len(flown) - len(valid))
        found = [
            victim[FOUND_KEY[record["schema_version"]]]
            for record in whole
            if record["result"]["valid"]
            for victim in record["result"]["victims"]
        ]
        counted = {
            "missions_with_collision": (sum(result["collisions"] > 0 for result in valid), len(valid)),
            "missions_with_false_alarm": (sum(result["false_alarms"] > 0 for result in valid), len(valid)),
            "victims_found": (sum(found), len(found)),
        }
        estimates = {estimate["metric"]: estimate for estimate in row["estimates"]}
        for name, (hits, n) in counted.items():
            if n:
                assert (estimates[name]["value"], estimates[name]["n"]) == (pytest.approx(hits / n), n), name
        total = sum(result["collisions"] for result in valid)
        assert estimates["collisions_per_mission"]["value"] == pytest.approx(total / len(valid))


def its_rates_follow_from_the_records_by_todays_analysis(folder: Path) -> None:
    episodes = analyze(folder / RECORDS).episodes
    result = document(folder)["result"]
    assert rounded(result["headlines"]) == rounded(headlines(episodes)), RENEW
    assert rounded(result["seed_rates"]) == rounded(seed_rates(episodes)), RENEW
    assert rounded(result["noise_levels"]) == rounded(noise_levels(episodes)), RENEW


def its_claims_on_errors_leave_no_error_out(folder: Path) -> None:
    """By a plain sort of all errors at issue; records that were cut at 10 m answer by the erratum or not at all."""
    result = document(folder)["result"]
    claims = {row["claim"]: row["measured"] for row in result["upstream"] if row["metric"] == "cep50_m"}
    told = claims["better than Wi2SAR's error"]
    if result["record_schema"] == 1:
        (anew,) = [row["corrected"] for row in result["erratum"] if row["metric"] == "cep50_m"]
        assert (told["value"], told["n"]) == (anew["value"], anew["n"])
        assert {measured.get("value") for measured in claims.values() if measured} == {None, anew["value"]}
        return
    valid = [record["result"] for record in records(folder) if record["result"]["valid"]]
    errors = sorted(v["error_m"] for flown in valid for v in flown["victims"] if v["error_m"] is not None)
    if errors:
        assert (told["value"], told["n"]) == (pytest.approx(errors[(len(errors) - 1) // 2]), len(errors))
    else:
        assert "value" not in told


def rounded(value: Any) -> Any:
    """As JSON, to nine digits: the last ones may depend on the processor."""
    return json.loads(json.dumps(value), parse_float=lambda text: f"{float(text):.9g}")


def it_names_no_machine_and_no_place(folder: Path) -> None:
    assert set(manifest_of(folder).host) <= {*HOST_KEYS, "command", "commit", "flying_s"}
    assert all(set(record["run"]) <= set(RUN_KEYS) for record in records(folder))
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        assert A_PLACE.search(read_text(file)) is None, file.name


CHECKS = (
    it_holds_its_files_and_no_others_and_is_small,
    its_manifest_holds_the_hash_of_every_other_file,
    its_pages_are_what_the_code_makes_of_its_document,
    every_planned_mission_is_there_once_and_in_order,
    it_flew_the_committed_episode_set,
    its_seeds_are_the_median_seeds_of_its_stage_1,
    its_command_is_one_that_the_command_line_takes,
    its_headline_counts_up_from_the_records,
    its_rates_follow_from_the_records_by_todays_analysis,
    its_claims_on_errors_leave_no_error_out,
    it_names_no_machine_and_no_place,
)
