"""Real missions by real processes: results do not depend on workers, order, kills, shards or the cluster."""

from __future__ import annotations

import functools
import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sar_core.errors import SarError
from sar_eval.bag.check import check_bag
from sar_eval.campaign.campaign import Ending, open_campaign
from sar_eval.campaign.ledger import LEDGER, read_ledger
from sar_eval.campaign.manifest import Manifest, make_manifest
from sar_eval.campaign.merging import merge
from sar_eval.campaign.plan import CampaignChoice, CampaignPlan, flight_order, make_plan, select
from sar_eval.campaign.workers import LOSSES, MissionJob, WorkerCrew
from sar_eval.cli.app import app
from sar_eval.episode.kernels import compile_kernels
from sar_eval.scenario.model import Scenario
from tests.soak.killcheck import disturb, finish, result_part

SCENARIO = "drones: 2\nduration_s: 5.0\nradio: null\n"
OPTIONS = ["--pattern", "random_walk", "--seeds", "1,4,7", "--episodes", "0-3", "--victims", "present"]


@pytest.fixture(scope="module")
def plan() -> CampaignPlan:
    """The campaign of OPTIONS: twelve short missions."""
    scenario = Scenario(drones=2, duration_s=5.0, radio=None)
    made = make_plan(
        CampaignChoice(scenario, ("village",), ("random_walk",), "present", (1, 4, 7), (0, 1, 2, 3), episode_set="v2")
    )
    compile_kernels(made.samples[0])
    return made


@pytest.fixture(scope="module")
def manifest(plan: CampaignPlan) -> Manifest:
    return make_manifest(plan)


def fly(folder: Path, manifest: Manifest, tasks: Any, flyers: Any, **options: Any) -> Ending:
    with open_campaign(folder, manifest) as campaign:
        return campaign.fly(list(tasks), flyers, **options)


@pytest.fixture(scope="module")
def calm(plan: CampaignPlan, manifest: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The campaign as one worker flies it, undisturbed."""
    folder = tmp_path_factory.mktemp("campaign") / "calm"
    assert fly(folder, manifest, plan.tasks, WorkerCrew(1)).results is not None
    return folder


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    config = tmp_path / "scenario.yaml"
    config.write_text(SCENARIO)
    return [*OPTIONS, "--config", str(config)]


@pytest.mark.parametrize(("workers", "shuffle"), [(2, None), (4, 7)])
def test_workers_and_order_change_no_byte(workers, shuffle, plan, manifest, calm, tmp_path):
    fly(tmp_path / "c", manifest, flight_order(plan.tasks, shuffle), WorkerCrew(workers))
    assert result_part(tmp_path / "c") == result_part(calm)


def test_shards_merged_change_no_byte(plan, manifest, calm, tmp_path):
    for i in (1, 2):
        fly(tmp_path / f"shard-{i}", manifest, select(plan, (), (i, 2)), WorkerCrew(2))
    merge([tmp_path / "shard-2", tmp_path / "shard-1"], tmp_path / "whole")
    assert result_part(tmp_path / "whole") == result_part(calm)


def test_bags_below_a_url_change_no_byte_and_are_whole(plan, manifest, calm, tmp_path):
    """Workers record on their own disk and send; the campaign's folder holds records only."""
    url = (tmp_path / "store").as_uri()
    with open_campaign(tmp_path / "c", manifest, url) as campaign:
        ending = campaign.fly(list(plan.tasks), WorkerCrew(2), bags="all")
    assert ending.bags_left == 0 and result_part(tmp_path / "c") == result_part(calm)
    assert not (tmp_path / "c" / "bags").exists()
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == sorted(plan.keys)
    assert check_bag(tmp_path / "store" / plan.keys[0]).ok
    records = read_ledger(tmp_path / "c" / LEDGER)
    assert all(records[key].run["bag"] == f"{url}/{key}" for key in plan.keys)
    with open_campaign(tmp_path / "c", manifest, url) as campaign:
        assert campaign.fly(list(plan.tasks), WorkerCrew(1), bags="all").flown_now == 0


def test_killed_again_and_again_and_stopped_by_hand_it_changes_no_byte(options, calm, tmp_path):
    """Twice SIGKILL to the whole group, once while starting and once while flying, then Ctrl-C, then to the end."""
    folder = tmp_path / "killed"
    options += ["--workers", "2"]
    after = disturb(options, folder, kills=2, seed=1)
    assert after[-1] >= 1
    command = [
        sys.executable,
        "-c",
        "from sar_eval.cli.app import main; main()",
        "stage2",
        *options,
        "--out",
        str(folder),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    give_up = time.monotonic() + 300.0
    while len(read_ledger(folder / LEDGER)) <= after[-1] and time.monotonic() < give_up:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 3, complaint
    assert "go on with: sar-eval stage2" in complaint.splitlines()[-1]
    flown = read_ledger(folder / LEDGER)
    assert after[-1] < len(flown) < 12
    assert all(record.result["valid"] for record in flown.values())
    finish(options, folder)
    assert len((folder / LEDGER).read_bytes().splitlines()) == 12
    assert result_part(folder) == result_part(calm)


def test_a_killed_worker_is_replaced_and_nothing_is_lost_or_doubled(plan, manifest, calm, tmp_path):
    crew = WorkerCrew(2)
    killed: list[int] = []

    def kill_one(_: Any) -> None:
        if not killed:
            killed.append(crew.pids[0])
            os.kill(crew.pids[0], signal.SIGKILL)

    ending = fly(tmp_path / "c", manifest, plan.tasks, crew, tell=kill_one)
    assert (crew.lost, ending.invalid) == (1, {})
    assert result_part(tmp_path / "c") == result_part(calm)


def test_a_worker_told_to_stop_ends_its_flight_first(plan):
    """Autopilots would be left behind by one that is killed."""
    long = replace(plan.tasks[0], scenario=Scenario(drones=2, pattern="random_walk", duration_s=3600.0, radio=None))
    crew = WorkerCrew(1)
    jobs = [MissionJob(long)]
    begun = time.monotonic()
    workers: list[Any] = []

    def stop() -> str | None:
        workers.extend(crew.processes)
        return "interrupted" if workers and time.monotonic() - begun > 3.0 else None

    assert list(crew.fly(lambda: jobs.pop() if jobs else None, stop)) == []
    assert {worker.exitcode for worker in workers} == {0}


def outcomes_of(task: Any) -> tuple[list[Any], int]:
    """What a worker makes of a task that is nobody's mission, and how many workers it cost."""
    jobs = [MissionJob(task)]
    crew = WorkerCrew(1)
    found = list(crew.fly(lambda: jobs.pop() if jobs else None, lambda: None))
    return found, crew.lost


def test_a_mission_that_kills_its_workers_is_given_up_after_three_more():
    (outcome,), lost = outcomes_of(SimpleNamespace(key="deadly", prepare=functools.partial(os._exit, 9)))
    assert (outcome.reason, outcome.record, lost) == ("worker_lost", None, 1 + LOSSES)


def test_a_mission_that_breaks_the_simulator_says_how():
    (outcome,), lost = outcomes_of(SimpleNamespace(key="broken", prepare=functools.partial(int, "not a number")))
    assert (outcome.reason, outcome.record, lost) == ("simulator_error", None, 0)
    assert "ValueError: invalid literal for int()" in outcome.message


def test_bags_come_with_the_flight_or_afterwards_and_are_whole(plan, manifest, calm, tmp_path):
    first, second = plan.tasks[0], plan.tasks[1]
    fly(tmp_path / "c", manifest, [first], WorkerCrew(1), bags="all")
    fly(tmp_path / "c", manifest, [second], WorkerCrew(1))
    ending = fly(tmp_path / "c", manifest, [first, second], WorkerCrew(1), bags="all")
    assert (ending.flown_now, ending.differing) == (0, ())
    names = sorted(item.name for item in (tmp_path / "c" / "bags").iterdir())
    assert names == sorted([first.key, second.key])
    for name in names:
        report = check_bag(tmp_path / "c" / "bags" / name)
        assert report.ok, report.findings
    flown, before = read_ledger(tmp_path / "c" / LEDGER), read_ledger(calm / LEDGER)
    assert all(flown[task.key].result == before[task.key].result for task in (first, second))
    assert flown[first.key].run["bag"] == f"bags/{first.key}"


def stage2(*options: str | Path, limit_bytes: int | None = None) -> subprocess.CompletedProcess[str]:
    """The command, optionally on a disk where no file grows beyond a limit."""

    def confine() -> None:
        if limit_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))

    command = [sys.executable, "-c", "from sar_eval.cli.app import main; main()", "stage2", *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, preexec_fn=confine)


def test_a_full_disk_ends_with_code_3_and_goes_on_when_there_is_room(options, plan, calm, tmp_path):
    line = len((calm / LEDGER).read_bytes()) // 12
    folder = tmp_path / "full"
    full = stage2(*options, "--out", folder, "--workers", "1", limit_bytes=3 * line + line // 2)
    assert full.returncode == 3, full.stderr
    assert full.stderr.splitlines()[-1].startswith(f"error: {folder / LEDGER}: cannot write the episode record")
    assert len(read_ledger(folder / LEDGER)) in (2, 3)
    assert (folder / LEDGER).read_bytes().endswith(b"\n")
    finish(options, folder)
    assert result_part(folder) == result_part(calm)


ROW = {"policy": "spiral", "seed": 0, "episode": 0, "return": 1.0}


@pytest.mark.parametrize(
    ("wrong", "code", "told"),
    [
        (["--seeds", "x"], 1, "seeds = 'x'"),
        ([], 1, "no seeds: give --seeds"),
        (["--seeds", "1000000"], 1, "calibration"),
        (["--seeds", "1", "--episodes", "0-50"], 1, "0 to 49"),
        (["--seeds", "1", "--only", "seed=9"], 1, "not in the plan"),
        (["--seeds", "1", "--shard", "3/2"], 1, "shard"),
        (["--seeds", "1", "--workers", "0"], 1, "workers = 0"),
        (["--seeds", "1", "--bags", "some"], 1, "bags = 'some'"),
        (["--seeds", "1", "--out", "{file}/sub"], 1, "cannot create the output folder"),
        (["--stage1", "{nothing}"], 4, "no such file"),
        (["--stage1", "{good}", "--seeds", "1,9"], 4, "seed 9 is not in it; it has 0, 1, 2, 3"),
        (["--stage1", "{gap}"], 4, "seed 2"),
        (["--stage1", "{nan}"], 2, "nan.jsonl:2: return"),
        (["--stage1", "{mixed}"], 2, "mixed.jsonl:2: schema_version"),
    ],
)
def test_wrong_requests_are_refused_with_their_code_and_leave_nothing(wrong, code, told, tmp_path):
    rows = [{**ROW, "policy": policy, "seed": seed} for policy in ("spiral", "levy_flight") for seed in range(4)]
    files = {
        "good": rows,
        "gap": [row for row in rows if (row["policy"], row["seed"]) != ("spiral", 2)],
        "nan": [rows[0], {**rows[1], "return": float("nan")}, *rows[2:]],
        "mixed": [rows[0], {**rows[1], "schema_version": 1}, *rows[2:]],
    }
    for name, lines in files.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    (tmp_path / "file").write_text("")
    names = {name: tmp_path / f"{name}.jsonl" for name in (*files, "nothing")} | {"file": tmp_path / "file"}
    given = [part.format(**names) for part in wrong]
    if "--out" not in given:
        given += ["--out", str(tmp_path / "c")]
    with pytest.raises(SarError) as refused:
        app(["stage2", "--pattern", "spiral", *given], standalone_mode=False)
    assert refused.value.exit_code == code
    assert told in str(refused.value) and len(str(refused.value).splitlines()) == 1
    assert not (tmp_path / "c").exists()
