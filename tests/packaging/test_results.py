"""The committed campaign is whole, its pages are what the code makes of it, its figures count up from its records."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer

from sar_analysis.bags.textfiles import read_text
from sar_analysis.render.markdown import results_markdown, tables_markdown
from sar_analysis.results.document import headlines, seed_rates
from sar_analysis.results.levels import noise_levels
from sar_analysis.results.model import results_schema
from sar_analysis.stage1.medianseeds import choose
from sar_analysis.stage1.rows import read_stage1
from sar_analysis.table import analyze
from sar_eval.campaign.evaluation import FULL, STAGE1_SEEDS
from sar_eval.campaign.manifest import MANIFEST, Manifest, read_manifest
from sar_eval.campaign.plan import parse_numbers
from sar_eval.campaign.publication import (
    FLOWN,
    FOLDER,
    FOUND,
    HOST_KEYS,
    RECORDS,
    ROWS,
    RUN_KEYS,
    SEEDS,
    checked_commit,
)
from sar_eval.cli.app import app
from sar_eval.scenario.episodeset import load_set

ROOT = Path(__file__).resolve().parents[2]
RENEW = "run: sar-eval publish results --renew"
LARGEST_BYTES = 5_000_000
A_PLACE = re.compile(r"(?<![\w.~])/(?:home|root|tmp|work|mnt|opt|srv|usr|var|Users)/")
QUOTED = re.compile(r"\d[\d.,]*(?: %| m| s)? \[[-\d., ]+\]")
"""A figure with its interval, as pages print it."""


@pytest.fixture
def published() -> Path:
    folder = ROOT / "results"
    assert folder.is_dir(), "results/ is not there: sar-eval publish makes it of a finished evaluation"
    return folder


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


def test_it_holds_its_files_and_no_others_and_is_small(published: Path) -> None:
    FOLDER.check_place(published)
    assert all((published / name).is_file() for name in (*FLOWN, *FOUND))
    assert list((published / "figures").iterdir())
    assert sum(file.stat().st_size for file in published.rglob("*") if file.is_file()) < LARGEST_BYTES


def test_its_manifest_holds_the_hash_of_every_other_file(published: Path) -> None:
    files = {file for file in published.rglob("*") if file.is_file() and file.name != MANIFEST}
    hashes = {str(file.relative_to(published)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    assert manifest_of(published).files == hashes, RENEW


def test_its_pages_are_what_the_code_makes_of_its_document(published: Path) -> None:
    jsonschema.Draft202012Validator(results_schema()).validate(document(published))
    assert (published / "RESULTS.md").read_text(encoding="utf-8") == results_markdown(document(published)), RENEW
    assert (published / "TABLES.md").read_text(encoding="utf-8") == tables_markdown(document(published)), RENEW


def test_every_planned_mission_is_there_once_and_in_order(published: Path) -> None:
    manifest = manifest_of(published)
    flown = [record["result"] for record in records(published)]
    assert tuple(result["episode_id"] for result in flown) == manifest.episodes
    assert {result["seed"] for result in flown} == set(manifest.decides["configuration"]["seeds"])
    assert document(published)["run"]["campaign"]["identity"] == manifest.identity
    assert document(published)["result"]["counts"]["episodes"] == len(manifest.episodes)


def test_it_flew_the_committed_episode_set(published: Path) -> None:
    flown = {(r["result"]["episode_set"], r["result"]["episode_set_sha256"]) for r in records(published)}
    ((name, digest),) = flown
    assert load_set(name).sha256 == digest
    assert document(published)["result"]["card"]["versions"]["episode_set_sha256"] == [digest]


def test_its_seeds_are_the_median_seeds_of_its_stage_1(published: Path) -> None:
    manifest = manifest_of(published)
    choice = choose(read_stage1(published / ROWS))
    assert json.loads((published / SEEDS).read_text(encoding="utf-8")) == json.loads(json.dumps(choice.plain()))
    assert list(choice.seeds) == manifest.decides["configuration"]["seeds"]
    digest = hashlib.sha256(read_text(published / ROWS).encode()).hexdigest()
    assert digest == manifest.decides["inputs"]["stage1"]["sha256"]


def test_its_command_is_one_that_the_command_line_takes(published: Path) -> None:
    manifest = manifest_of(published)
    program, verb, *options = shlex.split(manifest.host["command"])
    assert (program, verb) == ("sar-eval", "eval")
    given: dict[str, Any] = typer.main.get_command(app).commands["eval"].make_context(verb, options).params
    episodes = FULL.episodes if given["episodes"] is None else parse_numbers(given["episodes"], "episodes")
    assert sorted({r["result"]["episode"] for r in records(published)}) == sorted(episodes)
    assert manifest.decides["configuration"]["patterns"] == list(given["patterns"] or FULL.patterns)
    assert {row.seed for row in read_stage1(published / ROWS)} == set(parse_numbers(given["seeds"], "seeds"))


def test_its_headline_counts_up_from_the_records(published: Path) -> None:
    """With plain loops that share nothing with the analysis."""
    told = {row["victim_absent"]: row for row in document(published)["result"]["headlines"]}
    for absent, row in told.items():
        flown = [r["result"] for r in records(published) if r["result"]["configuration"]["victim_absent"] is absent]
        valid = [result for result in flown if result["valid"]]
        assert (row["missions"], row["invalid"]) == (len(valid), len(flown) - len(valid))
        victims = [victim for result in valid for victim in result["victims"]]
        counted = {
            "missions_with_collision": (sum(result["collisions"] > 0 for result in valid), len(valid)),
            "missions_with_false_alarm": (sum(result["false_alarms"] > 0 for result in valid), len(valid)),
            "victims_found": (sum(victim["detected"] for victim in victims), len(victims)),
        }
        estimates = {estimate["metric"]: estimate for estimate in row["estimates"]}
        for name, (hits, n) in counted.items():
            if n:
                assert (estimates[name]["value"], estimates[name]["n"]) == (pytest.approx(hits / n), n), name
        total = sum(result["collisions"] for result in valid)
        assert estimates["collisions_per_mission"]["value"] == pytest.approx(total / len(valid))


def test_its_rates_follow_from_the_records_by_todays_analysis(published: Path) -> None:
    episodes = analyze(published / RECORDS).episodes
    result = document(published)["result"]
    assert rounded(result["headlines"]) == rounded(headlines(episodes)), RENEW
    assert rounded(result["seed_rates"]) == rounded(seed_rates(episodes)), RENEW
    assert rounded(result["noise_levels"]) == rounded(noise_levels(episodes)), RENEW


def rounded(value: Any) -> Any:
    """As JSON, to nine digits: the last ones may depend on the processor."""
    return json.loads(json.dumps(value), parse_float=lambda text: f"{float(text):.9g}")


def test_it_names_no_machine_and_no_place(published: Path) -> None:
    assert set(manifest_of(published).host) <= {*HOST_KEYS, "command", "commit", "flying_s"}
    assert all(set(record["run"]) <= set(RUN_KEYS) for record in records(published))
    for file in sorted(file for file in published.rglob("*") if file.is_file()):
        assert A_PLACE.search(read_text(file)) is None, file.name


def test_its_commit_has_the_code_that_flew_it(published: Path) -> None:
    """By the rule that its manifest was hashed by, whatever the rule is today."""
    manifest = manifest_of(published)
    known = subprocess.run(["git", "-C", str(ROOT), "cat-file", "-e", manifest.host["commit"]], capture_output=True)
    if known.returncode != 0:
        pytest.skip(f"commit {manifest.host['commit'][:12]} is not in this checkout: git fetch --unshallow gets it")
    assert checked_commit(ROOT, manifest.host["commit"], manifest) == manifest.host["commit"]


def test_it_is_the_default_campaign() -> None:
    manifest = manifest_of(ROOT / "results")
    assert manifest.host["command"] == "sar-eval eval --full"
    assert len(manifest.episodes) == 2_400
    assert re.fullmatch(r"[0-9a-f]{40}", manifest.host["commit"])
    assert set(STAGE1_SEEDS) == {row.seed for row in read_stage1(ROOT / "results" / ROWS)}


@pytest.mark.parametrize("page", ["README.md", "docs/campaigns.md"])
def test_figures_quoted_from_it_are_its_own(page: str) -> None:
    """In sections that link to its page, every figure with an interval stands in RESULTS.md or TABLES.md."""
    sections = re.split(r"^## ", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    quoted = [figure for part in sections if "results/RESULTS.md" in part for figure in QUOTED.findall(part)]
    pages = "".join((ROOT / "results" / name).read_text(encoding="utf-8") for name in ("RESULTS.md", "TABLES.md"))
    assert quoted and not [figure for figure in quoted if figure not in pages]


CHECKS = (
    *(test_it_holds_its_files_and_no_others_and_is_small, test_its_manifest_holds_the_hash_of_every_other_file),
    test_its_pages_are_what_the_code_makes_of_its_document,
    *(test_every_planned_mission_is_there_once_and_in_order, test_it_flew_the_committed_episode_set),
    *(test_its_seeds_are_the_median_seeds_of_its_stage_1, test_its_command_is_one_that_the_command_line_takes),
    *(test_its_headline_counts_up_from_the_records, test_its_rates_follow_from_the_records_by_todays_analysis),
    test_it_names_no_machine_and_no_place,
)
"""What any published evaluation has to pass."""
