"""A campaign on a real dask scheduler with two worker processes on loopback, one of them killed while flying."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sar_core.errors import ContractError, RunError
from sar_eval.campaign.campaign import open_campaign
from sar_eval.campaign.cluster import Cluster, fly_remote
from sar_eval.campaign.ledger import LEDGER
from sar_eval.campaign.manifest import make_manifest
from sar_eval.campaign.plan import CampaignChoice, make_plan
from sar_eval.campaign.sources import code
from sar_eval.campaign.workers import MissionJob, WorkerCrew
from sar_eval.episode.kernels import compile_kernels
from sar_eval.scenario.model import Scenario
from tests.soak.killcheck import result_part

pytest.importorskip("distributed", reason="dask.distributed is missing: pip install 'sar-eval[cluster]'")

WORKER = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
SCHEDULER = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
START_S = 120.0


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Address of a scheduler, and its two worker processes."""
    folder = tmp_path_factory.mktemp("dask")
    file = folder / "scheduler.json"
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str) -> None:
        with (folder / f"{len(started)}.log").open("wb") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=folder))

    start(*SCHEDULER, "--no-dashboard", "--scheduler-file", str(file))
    for number in (1, 2):
        start(*WORKER, "--scheduler-file", str(file), "--local-directory", str(folder / f"worker{number}"))
    give_up = time.monotonic() + START_S
    while not file.exists() or not file.read_text():
        assert started[0].poll() is None and time.monotonic() < give_up, (folder / "0.log").read_text()
        time.sleep(0.05)
    yield json.loads(file.read_text())["address"], started[1:]
    for process in started[::-1]:
        process.kill()
        process.wait()


def workers_of(cluster: Cluster, count: int) -> None:
    give_up = time.monotonic() + START_S
    while cluster.size < count:
        assert time.monotonic() < give_up, f"{cluster.size} of {count} dask workers came"
        time.sleep(0.05)


def test_a_cluster_that_loses_a_worker_gives_the_same_bytes(dask, tmp_path):
    address, processes = dask
    scenario = Scenario(drones=2, duration_s=5.0, radio=None)
    plan = make_plan(
        CampaignChoice(scenario, ("village",), ("random_walk",), "present", (1, 4), tuple(range(6)), episode_set="v2")
    )
    compile_kernels(plan.samples[0])
    manifest = make_manifest(plan)
    with open_campaign(tmp_path / "local", manifest) as campaign:
        campaign.fly(list(plan.tasks), WorkerCrew(1))
    cluster = Cluster(address)
    workers_of(cluster, 2)
    told: list[Any] = []

    def kill_one(now: Any) -> None:
        told.append(now)
        if len(told) == 2:
            os.kill(processes[0].pid, signal.SIGKILL)

    with open_campaign(tmp_path / "cluster", manifest) as campaign:
        ending = campaign.fly(list(plan.tasks), cluster, bags="events", tell=kill_one)
    assert (ending.recorded, ending.invalid) == (12, {})
    assert processes[0].wait() == -signal.SIGKILL and processes[1].poll() is None
    lines = (tmp_path / "cluster" / LEDGER).read_text().splitlines()
    assert len({json.loads(line)["result"]["episode_id"] for line in lines}) == len(lines) == 12
    assert result_part(tmp_path / "cluster") == result_part(tmp_path / "local")


def test_a_worker_with_other_code_is_refused(dask, monkeypatch):
    address, _ = dask
    monkeypatch.setattr("sar_eval.campaign.cluster.code", lambda: {**code(), "sar_sim": "0123456789abcdef"})
    with pytest.raises(ContractError, match=r"on tcp://127.* sar_sim is .*, here it is 0123456789ab"):
        Cluster(address)


def test_a_worker_that_came_later_with_other_code_flies_nothing():
    plan = make_plan(CampaignChoice(Scenario(), ("village",), ("spiral",), "present", (1,), (0,)))
    outcome = fly_remote(MissionJob(plan.tasks[0]), {**code(), "numba": "0.1"})
    assert outcome.fatal and "numba is" in outcome.message and outcome.record is None


def test_no_scheduler_is_told_in_one_line(monkeypatch):
    monkeypatch.setattr("sar_eval.campaign.cluster.CONNECT_S", 0.5)
    with pytest.raises(RunError, match="no scheduler with a worker"):
        Cluster("tcp://127.0.0.1:9")


def test_bags_of_a_cluster_land_in_the_campaign(dask, tmp_path):
    address, _ = dask
    plan = make_plan(
        CampaignChoice(
            Scenario(drones=2, duration_s=5.0, radio=None), ("village",), ("random_walk",), "present", (1,), (0,), "v2"
        )
    )
    with open_campaign(Path(os.path.relpath(tmp_path / "c")), make_manifest(plan)) as campaign:
        campaign.fly(list(plan.tasks), Cluster(address), bags="all")
    assert [item.name for item in (tmp_path / "c" / "bags").iterdir()] == [plan.tasks[0].key]
