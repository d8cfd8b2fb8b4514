"""Graphs as users start them: by the command, and node by node as launch does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from sar_eval.bag.check import check_bag
from sar_eval.ros.graph import Graph, graph_environment, own_domain
from sar_eval.ros.nodetable import NODES, node_table, settings_of
from tests.graph.conftest import PATIENT, started

TIMEOUT_S = 300.0
SHORT = ("--drones", "2", "--duration-s", "1", "--lockstep-timeout-s", "60")


LOOK = """
import sys
import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState

rclpy.init()
node = rclpy.create_node("onlooker")


def ask(kind, name, request):
    client = node.create_client(kind, name)
    assert client.wait_for_service(60.0)
    answer = client.call_async(request)
    rclpy.spin_until_future_complete(node, answer, timeout_sec=60.0)
    return answer.result()


stop = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_DEACTIVATE))
print(ask(ChangeState, "/recorder/change_state", stop).success)
print(ask(GetState, "/recorder/get_state", GetState.Request()).current_state.label)
"""


def run(*words: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S, **options)


def test_the_command_prints_the_record_that_run_prints(plan, tmp_path):
    plan()
    flown = run("sar_eval", "graph", *SHORT, "--composed", "--out", str(tmp_path / "graph"), "--json")
    alone = run("sar_eval", "run", *SHORT[:4], "--out", str(tmp_path / "run"), "--json")
    assert flown.returncode == 0, flown.stderr
    here, there = json.loads(flown.stdout), json.loads(alone.stdout)
    assert here["result"] == there["result"]
    assert here["run"].keys() >= there["run"].keys()
    assert check_bag(tmp_path / "graph" / here["result"]["episode_id"]).ok


@pytest.mark.parametrize(
    ("parameter", "word"),
    [("seed:=-1", "seed"), ("lockstep_timeout_s:=0.0", "lockstep_timeout_s"), ("episode:=two", "episode")],
)
def test_a_parameter_out_of_range_is_refused_by_name(parameter, word):
    done = run("sar_eval.ros", "sim", "--ros-args", "-p", parameter)
    assert done.returncode == 1, done.stderr
    assert word in done.stderr and "Traceback" not in done.stderr


def test_nodes_started_one_by_one_with_a_parameter_file_find_each_other(plan, alone, tmp_path):
    """A process per node from nothing, as launch starts them."""
    episode = plan(seed=4, drones=2, duration_s=1.0)
    settings = settings_of(episode, run=7, bag=tmp_path / "bag", **PATIENT)
    table = {row.name: {"ros__parameters": row.parameters} for row in node_table(settings)}
    (tmp_path / "parameters.yaml").write_text(yaml.safe_dump(table))
    with own_domain() as domain:
        environment = {**os.environ, **graph_environment(domain, tmp_path)}
        words = ("--ros-args", "--params-file", str(tmp_path / "parameters.yaml"))
        nodes = {
            name: subprocess.Popen(
                [sys.executable, "-m", "sar_eval.ros", name, *words],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for name in NODES
        }
        try:
            told = {name: node.communicate(timeout=TIMEOUT_S) for name, node in nodes.items()}
        finally:
            for node in nodes.values():
                node.kill()
    assert {name: node.returncode for name, node in nodes.items()} == dict.fromkeys(NODES, 0), told
    assert json.loads(told["manager"][0])["result"] == alone(episode)[0].result
    assert check_bag(tmp_path / "bag").ok


def test_a_node_shows_its_stage_and_lets_nobody_change_it(plan, tmp_path):
    """To an onlooker with the two variables that docs/ros.md names and nothing else of ours."""
    with Graph(plan(seed=5, drones=2), tmp_path / "bag", speed_factor=2.0, **PATIENT) as graph:
        assert started(graph) < PATIENT["ready_timeout_s"]
        command = [sys.executable, "-c", LOOK]
        onlooker = {"ROS_DOMAIN_ID": str(graph.domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
        environment = {**os.environ, **onlooker}
        seen = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        graph.interrupt()
        record = graph.wait()
    assert seen.stdout.split() == ["False", "active"], seen.stderr
    assert record.result["invalid_reason"] == "interrupted"
    assert check_bag(tmp_path / "bag").ok


@pytest.mark.parametrize("everyone", [True, False])
def test_interrupted_while_its_nodes_start_it_says_so_and_leaves_nobody(everyone, tmp_path):
    """As a terminal does, which tells every process, and as kill does, which tells one."""
    command = [
        sys.executable,
        "-m",
        "sar_eval",
        "graph",
        "--drones",
        "2",
        "--duration-s",
        "600",
        "--out",
        str(tmp_path),
    ]
    before = ["env", "--default-signal=INT"]
    process = subprocess.Popen([*before, *command], stderr=subprocess.PIPE, text=True, start_new_session=True)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    give_up = time.monotonic() + TIMEOUT_S
    while len(nodes := children.read_text().split()) < len(NODES):
        assert process.poll() is None and time.monotonic() < give_up
        time.sleep(0.002)
    (os.killpg if everyone else os.kill)(process.pid, signal.SIGINT)
    told = process.communicate(timeout=60.0)[1]
    assert process.returncode == 3
    assert "INVALID (interrupted)" in told and "Traceback" not in told, told
    assert not [pid for pid in nodes if Path(f"/proc/{pid}").exists()]
    assert not list(tmp_path.glob("*.partial"))
