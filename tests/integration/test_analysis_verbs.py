"""The verbs of the analysis as users have them: what they print, what they write, and how they end."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from sar_analysis.bags.textfiles import read_text
from sar_analysis.metrics.catalogue import AS_ADR149
from sar_analysis.results.tenmetrics import UNKNOWN
from sar_analysis.table import analyze
from sar_eval.campaign.erratum import BEGIN_S
from sar_eval.campaign.ledger import PACKED
from sar_eval.cli.analysis import mission_table
from sar_eval.cli.app import main
from sar_eval.scenario.episodeset import load_set
from sar_sim.radio.devices import DeviceKind
from tests.integration.conftest import Run
from tests.unit.sar_analysis.campaigns import bag, campaign
from tests.unit.sar_analysis.recordmaker import result

ROOT = Path(__file__).resolve().parents[2]
Here = Callable[..., tuple[int, str, str]]
REGISTRATION = {
    "schema_version": 1,
    "hypothesis": "Spirals cover a tenth.",
    "conditions": [{"name": "spiral", "changes": {"pattern": "spiral"}}],
    "seeds": [0, 1],
    "episodes": {"set_version": 1, "indices": [0, 1]},
    "metric": "coverage_240s",
    "thresholds": [{"condition": "spiral", "part": "value", "relation": "at_least", "limit": 0.05}],
    "run_purpose": "debug",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = campaign(tmp_path_factory.mktemp("verbs") / "runs")
    bag(root, 2, 0, status={"valid": False, "invalid_reason": "takeoff_timeout"})
    return root


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """The command in this process, where a new one would spend its time on importing: exit code, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sar-eval", *arguments])
        with pytest.raises(SystemExit) as ending:
            main()
        told = capsys.readouterr()
        return int(ending.value.code or 0), told.out, told.err

    return run


def registration(folder: Path, **changes: object) -> Path:
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(REGISTRATION | changes))
    return path


def test_analyze_prints_missions_conditions_and_warnings(sar_eval: Run, runs: Path, tmp_path: Path) -> None:
    done = sar_eval("analyze", runs, "--by", "pattern", "--csv", tmp_path / "m.csv")
    assert done.returncode == 0, done.stderr
    assert "Stage 2 (embedded): 5 missions, 1 invalid" in done.stdout
    assert "0 of 4: 0.0 % [0.0, 84.2]" in done.stdout, "two layouts, each worth one mission"
    assert "invalid: s2-e0 (takeoff_timeout)" in done.stderr
    with open(tmp_path / "m.csv", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == 5


def test_every_column_of_analyze_holds_what_its_head_says(runs: Path) -> None:
    table = analyze(runs)
    changes = {"collisions": 2, "near_misses": 7, "detections": 0, "false_alarms": 3}
    first = dataclasses.replace(table.valid[0], **changes)
    view = mission_table(dataclasses.replace(table, episodes=(first,)), "embedded")
    row = {str(column.header).replace("\n", " "): next(iter(column.cells)) for column in view.columns}
    assert (row["colli- sions"], row["near misses"], row["false alarms"]) == ("2", "7", "3")
    assert row["found"] == f"0 of {len(first.victims)}" and row["valid"] == "yes"


def test_analyze_for_machines(sar_eval: Run, runs: Path) -> None:
    told = json.loads(sar_eval("analyze", runs, "--json").stdout)
    assert told["counts"] == {"episodes": 5, "invalid": 1}
    assert [e["seed"] for e in told["episodes"]] == [0, 0, 1, 1, 2]
    assert any(row["metric"] == "coverage_240s" and row["n"] == 4 for row in told["summary"])


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("analyze", "{nowhere}"), 4, "no such folder"),
        (("analyze", "{runs}", "--by", "colour"), 1, "by: colour is no metric"),
        (("report", "{nowhere}"), 4, "no such folder"),
        (("report", "{runs}", "--resamples", "3"), 1, "resamples = 3"),
        (("report", "{runs}", "--prereg", "{nowhere}"), 4, "no such registration"),
        (("report", "{runs}", "--stage1", "{nowhere}"), 4, "no such file of Stage-1 results"),
        (("report", "{runs}", "--out", "{runs}"), 1, "which is no part of a report"),
        (("prereg", "check", "{nowhere}"), 4, "no such registration"),
    ],
)
def test_endings(here: Here, runs: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, words: str) -> None:
    ended, stdout, stderr = here(*(a.format(runs=runs, nowhere=tmp_path / "nowhere") for a in arguments))
    assert (ended, stdout) == (code, "")
    assert words in stderr
    assert stderr.count("\n") == 1


def test_report_writes_its_folder_and_says_so(sar_eval: Run, runs: Path, tmp_path: Path) -> None:
    study = registration(tmp_path)
    assert sar_eval("prereg", "lock", study).returncode == 0
    out = tmp_path / "out"
    done = sar_eval("report", runs, "--out", out, "--prereg", study, "--resamples", "200")
    assert done.returncode == 0, done.stderr
    assert "In ten seconds, Stage 2 (embedded)" in done.stdout
    assert str(out) in done.stdout.replace("\n", "")
    text = (out / "RESULTS.md").read_text()
    assert "study.yaml matches its lock" in text
    assert "deviation: seeds flown but not registered: 2" in text
    again = json.loads(sar_eval("report", runs, "--out", out, "--resamples", "200", "--json").stdout)
    assert {"RESULTS.md", "TABLES.md", "results.json", "results.tex", "summary.csv"} <= set(again["files"])
    assert again["counts"]["invalid"] == 1


def test_prereg_check_lock_and_tampering(sar_eval: Run, runs: Path, tmp_path: Path) -> None:
    study = registration(tmp_path)
    unlocked = sar_eval("prereg", "check", study)
    assert (unlocked.returncode, "never locked" in unlocked.stdout) == (0, True)
    assert "commit both before flying" in sar_eval("prereg", "lock", study).stdout
    against = sar_eval("prereg", "check", study, "--against", runs)
    assert against.returncode == 2
    assert "deviation: seeds flown but not registered: 2" in against.stdout
    registration(tmp_path, metric="episode_return")
    changed = sar_eval("prereg", "check", study, "--json")
    assert (changed.returncode, json.loads(changed.stdout)["status"]) == (2, "differs")
    refused = sar_eval("prereg", "lock", study)
    assert (refused.returncode, "already locks other content" in refused.stderr) == (2, True)


def test_the_committed_erratum_is_counted_again_from_its_records(here: Here) -> None:
    code, told, _ = here("erratum", str(ROOT / "results"), "--json")
    assert code == 0
    committed = json.loads((ROOT / "results" / "results.json").read_text(encoding="utf-8"))["result"]["erratum"]
    assert len(committed) == 10 and json.loads(told) == committed
    again = {row["words"]: row["corrected"]["value"] for row in json.loads(told)}
    first = flown_by_schema_1()
    assert again["displaced: issued victims more than 10 m off"] == pytest.approx(first.displaced / first.issued)
    assert again["CEP50 at issue"] == first.cep50_m


class First(NamedTuple):
    """Issues of victims in the committed records, by slow code: how many, how many displaced, the middle error."""

    issued: int
    displaced: int
    cep50_m: float


def flown_by_schema_1() -> First:
    """A victim is issued at its first right report, or before, where an alarm of its own device came."""
    episodes = load_set("village-v1")
    layouts = [
        {tuple(d.track[0, 1:3].tolist()): d.address for d in layout.devices if d.kind is DeviceKind.VICTIM}
        for layout in episodes.layouts
    ]
    errors = []
    for line in read_text(ROOT / "results" / PACKED).splitlines():
        result = json.loads(line)["result"]
        at = layouts[episodes.layout_number(result["episode"])]
        for victim in result["victims"]:
            address = min(at, key=lambda place: math.dist(place, (victim["x"], victim["y"])))
            words = []
            if victim["detected"] and victim["time_s"] <= result["search_time_s"]:
                words.append((victim["time_s"], victim["error_m"]))
            for alarm in result["false_alarm_events"]:
                if alarm["address"] == at[address] and alarm["time_s"] - BEGIN_S <= result["search_time_s"]:
                    off_m = math.dist((alarm["x"], alarm["y"]), (victim["x"], victim["y"]))
                    words.append((alarm["time_s"] - BEGIN_S, off_m))
            errors += [min(words)[1]] if words else []
    errors.sort()
    return First(len(errors), sum(error > 10.0 for error in errors), errors[math.ceil(len(errors) / 2) - 1])


def test_an_erratum_of_todays_records_is_refused(here: Here, tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(json.dumps({"schema_version": 2, "result": result(), "run": {}}) + "\n")
    code, told, error = here("erratum", str(file))
    assert (code, told) == (2, "") and "schema_version is 2; an erratum is of 1 only" in error


def test_the_ten_metrics_of_bags_and_of_stage_1_rows(here: Here, runs: Path) -> None:
    code, told, _ = here("adr149", str(runs), "--json", "--resamples", "200")
    (flown,) = json.loads(told)
    assert code == 0 and (flown["stage"], flown["missions"], flown["invalid"]) == ("Stage 2 (embedded)", 4, 1)
    code, told, _ = here("adr149", str(ROOT / "results" / "stage1.jsonl.zst"), "--json", "--resamples", "200")
    kinematic = json.loads(told)
    assert code == 0 and {row["stage"] for row in kinematic} == {"Stage 1"} and len(kinematic) > 1
    for row in (flown, *kinematic):
        assert [metric["metric"] for metric in row["metrics"]] == list(AS_ADR149)
        assert all((metric["figure"] is None) == bool(metric["why"]) for metric in row["metrics"])
    for key, why in UNKNOWN.items():
        (none,) = [metric for metric in kinematic[0]["metrics"] if metric["metric"] == key]
        assert (none["figure"], none["why"]) == (None, why)
    code, told, _ = here("adr149", str(runs), "--resamples", "200")
    assert code == 0 and "Stage 2 (embedded): " in told and "4 missions, 1 invalid" in told
    figures = {metric["metric"]: metric["figure"] for metric in flown["metrics"]}
    assert (figures["collisions_drone_drone_per_mission"]["value"], figures["coverage_240s"]["n"]) == (0.0, 4)


def test_a_flown_search_is_written_as_telemetry_once(here: Here, tmp_path: Path) -> None:
    flown, file = bag(tmp_path), tmp_path / "new" / "telemetry.jsonl"
    code, said, _ = here("export", "telemetry", str(flown), "--out", str(file), "--every-s", "0.5")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert code == 0 and f"{len(lines) - 2} steps" in said
    assert [line["type"] for line in lines] == ["meta", *["step"] * (len(lines) - 2), "episode"]
    assert [line["t"] for line in lines[1:-1]] == pytest.approx([0.0, 0.5, 1.0, 1.5, 2.0], abs=0.06)
    before = file.read_bytes()
    code, _, error = here("export", "telemetry", str(flown), "--out", str(file))
    assert code == 1 and "exists already; choose another name" in error and file.read_bytes() == before
    code, _, error = here("export", "telemetry", str(tmp_path / "none"), "--out", str(tmp_path / "none.jsonl"))
    assert code == 4 and error.count("\n") == 1 and not (tmp_path / "none.jsonl").exists()


@pytest.mark.parametrize("verb", [("analyze",), ("report",), ("prereg", "check"), ("prereg", "lock")])
def test_help_teaches_with_an_example(here: Here, verb: tuple[str, ...]) -> None:
    code, stdout, _ = here(*verb, "--help")
    assert code == 0
    assert f"sar-eval {' '.join(verb)} " in stdout


def test_what_a_campaign_would_find_is_said_before_it_is_flown(here: Here, tmp_path: Path) -> None:
    code, told, _ = here("detectable", "--base", "0.25", "--layouts", "50", "--seeds", "3")
    assert code == 0 and "above: from 41.4 %, a difference of 16.4 points" in told and "with twice the layouts" in told
    code, told, _ = here("detectable", "--base", "0.25", "--prereg", str(registration(tmp_path)), "--json")
    assert code == 0 and json.loads(told)["campaign"]["layouts"] == 2
    for arguments, why in (
        (["--base", "0.25"], "give --layouts and --seeds, or --prereg"),
        (["--base", "1.5", "--layouts", "9", "--seeds", "1"], "base 1.5; allowed: above 0 and below 1"),
        (["--base", "0.2", "--layouts", "9", "--prereg", "x.yaml"], "either it or both"),
    ):
        code, _, error = here("detectable", *arguments)
        assert code == 1 and why in error
