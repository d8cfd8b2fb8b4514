"""The main verb from end to end, small: Stage 1, median seeds, Stage 2, report; stopped and gone on with."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sar_analysis.stage1.medianseeds import choose
from sar_analysis.stage1.rows import read_stage1
from sar_core.errors import ContractError, InputError, MissingDataError
from sar_eval.bag.check import check_bag
from sar_eval.campaign.ledger import read_ledger
from sar_eval.campaign.publication import RECORDS, publish, renew
from tests.packaging.published import CHECKS
from tests.unit.sar_analysis.figurecheck import faults
from tests.unit.sar_eval.campaign.checkout import committed_sources

SMALL = ("eval", "--seeds", "2-5", "--episodes", "0", "--pattern", "spiral", "--json")
MISSIONS = 6
"""Three median seeds, one episode, with victims and without."""


@pytest.fixture(scope="module")
def evaluated(
    warm: None, sar_eval: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("eval") / "small"
    done = sar_eval(*SMALL, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder, done


def test_it_flies_the_median_seeds_of_its_own_stage_1_and_ends_in_rates(evaluated):
    folder, done = evaluated
    told = json.loads(done.stdout)
    assert told["folder"] == str(folder)
    assert tuple(told["seeds"]) == choose(read_stage1(folder / "stage1.jsonl")).seeds
    records = read_ledger(folder / "campaign" / "episodes.jsonl")
    assert len(records) == MISSIONS
    assert {record.result["seed"] for record in records.values()} == set(told["seeds"])
    assert [headline["victim_absent"] for headline in told["headlines"]] == [False, True]
    for headline in told["headlines"]:
        estimates = {estimate["metric"]: estimate for estimate in headline["estimates"]}
        for name in ("missions_with_false_alarm", "missions_with_collision"):
            rate = estimates[name]
            assert 0.0 <= rate["low"] <= rate["value"] <= rate["high"] <= 1.0, name
            assert rate["low"] < rate["high"]
    assert (folder / "report" / "RESULTS.md").is_file() and (folder / "report" / "report.html").is_file()
    bags = sorted((folder / "campaign" / "bags").iterdir())
    assert len(bags) == 1 and check_bag(bags[0]).ok


def test_every_figure_of_its_report_says_how_its_interval_was_made(evaluated):
    """As flown, with looks at fixed times, the oracle and Stage 1."""
    result = json.loads((evaluated[0] / "report" / "results.json").read_text())["result"]
    assert result["geometry"] and result["optimality"] and result["stage_gap"]
    assert faults(result) == []


def test_given_again_it_flies_nothing_and_something_else_gets_a_folder_of_its_own(
    evaluated, sar_eval, launch, wait_for
):
    folder, done = evaluated
    before = (folder / "campaign" / "episodes.jsonl").read_bytes()
    again = sar_eval(*SMALL, "--out", folder)
    assert json.loads(again.stdout) == json.loads(done.stdout)
    assert f"{MISSIONS} of {MISSIONS} missions are flown, 0 to fly" in again.stderr
    assert "Stage 1: " in done.stderr and "Stage 1: " not in again.stderr, "it is there already"
    assert (folder / "campaign" / "episodes.jsonl").read_bytes() == before
    other = launch(*SMALL, "--episodes", "4", "--out", folder)
    ledger = Path(f"{folder}-2", "campaign", "episodes.jsonl")
    wait_for(ledger.exists, other, "the first mission ended")
    other.send_signal(signal.SIGTERM)
    other.communicate(timeout=60)
    assert other.returncode == 3
    assert {record.result["episode"] for record in read_ledger(ledger).values()} == {4}


def test_stopped_it_says_how_to_go_on_and_does(warm, launch, wait_for, sar_eval, evaluated, tmp_path):
    ledger = tmp_path / "e" / "campaign" / "episodes.jsonl"
    process = launch(*SMALL, "--workers", "1", "--out", tmp_path / "e")
    wait_for(ledger.exists, process, "the first mission ended")
    process.send_signal(signal.SIGTERM)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "go on with: sar-eval eval" in complaint
    flown = len(read_ledger(ledger))
    assert 1 <= flown < MISSIONS
    done = sar_eval(*SMALL, "--out", tmp_path / "e")
    assert f"{flown} of {MISSIONS} missions are flown, {MISSIONS - flown} to fly" in done.stderr
    same = [json.loads(d.stdout)["headlines"] for d in (done, evaluated[1])]
    assert same[0] == same[1]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return committed_sources(tmp_path_factory.mktemp("checkout"))


def test_published_it_passes_every_check_of_the_committed_one_and_can_be_renewed(evaluated, checkout, tmp_path):
    out = tmp_path / "results"
    publish(evaluated[0], "HEAD", out, checkout)
    for check in CHECKS:
        check(out)
    before = {file.name: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    (out / "RESULTS.md").write_text("of yesterday's analysis")
    renew(out)
    assert {file.name: file.read_bytes() for file in out.rglob("*") if file.is_file()} == before
    damaged = bytearray((out / RECORDS).read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (out / RECORDS).write_bytes(damaged)
    with pytest.raises(ContractError, match=r"episodes\.jsonl\.zst: is not the file"):
        renew(out)


def copied(evaluated: Any, place: Path) -> Path:
    """The evaluation without bags and report, to be spoilt."""
    return Path(shutil.copytree(evaluated[0], place, ignore=shutil.ignore_patterns("bags", "report", ".lock")))


def test_an_unfinished_or_other_campaign_is_not_published(evaluated, checkout, tmp_path):
    ledger = copied(evaluated, tmp_path / "cut") / "campaign" / "episodes.jsonl"
    ledger.write_text("".join(ledger.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(MissingDataError, match=f"1 of {MISSIONS} missions are not flown"):
        publish(tmp_path / "cut", "HEAD", tmp_path / "out", checkout)
    rows = copied(evaluated, tmp_path / "other") / "stage1.jsonl"
    rows.write_text(rows.read_text() + "\n")
    with pytest.raises(ContractError, match="not the Stage-1 file"):
        publish(tmp_path / "other", "HEAD", tmp_path / "out", checkout)
    with pytest.raises(MissingDataError, match=r"no manifest\.json"):
        publish(tmp_path, "HEAD", tmp_path / "out", checkout)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.docx").touch()
    with pytest.raises(InputError, match=r"thesis\.docx, which is no part of published results"):
        publish(evaluated[0], "HEAD", tmp_path / "taken", checkout)
    assert not (tmp_path / "out").exists()
