"""However a graph ends it leaves a record, a good bag, and nothing else."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from sar_eval.bag.check import check_bag
from sar_eval.ros.graph import Graph, fly_graph
from sar_eval.ros.nodetable import NODES
from tests.graph.conftest import PATIENT, started

READY_S = 15.0
NOTICED_S = 5.0
"""From the kill to the record, or without a manager the bag, that says INVALID and why; then the others leave."""


def children() -> set[int]:
    """Processes that this one has started and that still run."""
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def shared_memory() -> set[str]:
    """What DDS keeps in this host's shared memory: locks of processes that are gone would be among it."""
    return {name for name in os.listdir("/dev/shm") if "fast" in name}


def seconds_until_ended(graph: Graph) -> float:
    """From now to the outcome, without the time in which this host let nobody run."""
    pause_s = 0.01
    before = now = time.monotonic()
    stalled_s = 0.0
    while not graph.ended:
        time.sleep(pause_s)
        now, last = time.monotonic(), now
        stalled_s += now - last - pause_s
    return now - before - stalled_s


def fly_for_seconds(graph: Graph, bag: Path) -> None:
    """Start it and let it fly until two seconds lie in the bag."""
    assert started(graph) < PATIENT["ready_timeout_s"]
    partial = bag.with_name(f"{bag.name}.partial") / f"{bag.name}_0.mcap"
    first = partial.stat().st_size
    written = {first}
    while len(written) < 3:
        assert graph.alive
        written.add(partial.stat().st_size)
        time.sleep(0.005)


def test_up_and_down_twenty_times(plan, tmp_path):
    """Ready every time, gone every time; the second half composed in one process."""
    episode = plan(seed=1, drones=2)
    before, memory = children(), shared_memory()
    ready = []
    for number in range(20):
        with Graph(episode, tmp_path / f"bag{number}", composed=number >= 10, **PATIENT) as graph:
            ready.append(started(graph))
            graph.interrupt()
            record = graph.wait()
        assert record.result["invalid_reason"] == "interrupted"
        codes = record.run["graph"]["exit_codes"]
        assert {code for name, code in codes.items() if name not in ("manager", "composed")} <= {0}
        assert codes.get("manager", codes.get("composed")) == 3
        assert check_bag(tmp_path / f"bag{number}").ok
    assert max(ready) < READY_S, ready
    assert children() == before
    assert shared_memory() <= memory


@pytest.mark.parametrize("victim", NODES)
def test_a_killed_node_makes_the_episode_invalid(victim, plan, read_bag, tmp_path):
    memory = shared_memory()
    with Graph(plan(seed=2, drones=2), tmp_path / "bag", speed_factor=1.0, ready_timeout_s=120.0) as graph:
        fly_for_seconds(graph, tmp_path / "bag")
        os.kill(graph.processes[victim].pid, signal.SIGKILL)
        noticed_s = seconds_until_ended(graph)
        record = graph.wait()
    assert (record.result["valid"], record.result["invalid_reason"]) == (False, "lockstep_timeout")
    assert record.run["silent"] == [victim]
    assert record.run["graph"]["exit_codes"][victim] == -signal.SIGKILL
    assert noticed_s < NOTICED_S
    assert (record.run["bag"] is None) == (victim == "recorder")
    if victim != "recorder":
        assert check_bag(tmp_path / "bag").ok
        last = read_bag(tmp_path / "bag").topic("/episode/status")[-1].decoded
        assert (last.phase, last.valid, last.invalid_reason) == (4, False, "lockstep_timeout")
    assert shared_memory() <= memory


def test_a_node_that_never_answers_is_named(plan, tmp_path):
    """It still runs, it only says nothing."""
    with Graph(plan(seed=2, drones=2), tmp_path / "bag", speed_factor=1.0, ready_timeout_s=120.0) as graph:
        fly_for_seconds(graph, tmp_path / "bag")
        os.kill(graph.processes["csi"].pid, signal.SIGSTOP)
        record = graph.wait()
    assert record.result["invalid_reason"] == "lockstep_timeout"
    assert record.run["silent"] == ["csi"]
    assert any("csi has not answered" in what for what in record.run["diagnostics"]["sim"])


def test_nodes_that_miss_a_partner_do_not_start(plan, tmp_path):
    with Graph(plan(seed=2, drones=2), tmp_path / "bag", ready_timeout_s=3.0) as graph:
        graph.start()
        os.kill(graph.processes["swarm"].pid, signal.SIGKILL)
        record = graph.wait()
    assert record.result["invalid_reason"] == "not_ready"
    assert "swarm" in record.run["silent"]


@pytest.mark.parametrize("composed", [False, True])
def test_stopped_while_it_starts_it_says_so_and_leaves_nothing_half_done(composed, plan, tmp_path):
    """Nothing at all, or, where the first ticks were quicker, a whole bag."""
    before = children()
    record = fly_graph(plan(seed=1, drones=2), tmp_path / "bag", composed, stop=lambda: "interrupted", **PATIENT)
    assert (record.result["valid"], record.result["invalid_reason"]) == (False, "interrupted")
    assert [path.name for path in tmp_path.iterdir()] == ([] if record.run["bag"] is None else ["bag"])
    assert record.run["bag"] is None or check_bag(tmp_path / "bag").ok
    assert children() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_every_process_twice_leaves_a_good_bag(number, plan, tmp_path):
    """As a terminal sends it, and as launch sends it again."""
    with Graph(plan(seed=3, drones=2), tmp_path / "bag", speed_factor=2.0, **PATIENT) as graph:
        fly_for_seconds(graph, tmp_path / "bag")
        for _ in range(2):
            for process in graph.processes.values():
                os.kill(process.pid, number)
        record = graph.wait()
    assert record.result["invalid_reason"] == "interrupted"
    assert {code for name, code in record.run["graph"]["exit_codes"].items() if name != "manager"} == {0}
    assert check_bag(tmp_path / "bag").ok


def test_a_recorder_that_is_sent_away_alone_leaves_a_bag_that_says_so(plan, read_bag, tmp_path):
    with Graph(plan(seed=3, drones=2), tmp_path / "bag", speed_factor=1.0, ready_timeout_s=120.0) as graph:
        fly_for_seconds(graph, tmp_path / "bag")
        os.kill(graph.processes["recorder"].pid, signal.SIGTERM)
        record = graph.wait()
    assert (record.result["invalid_reason"], record.run["silent"]) == ("lockstep_timeout", ["recorder"])
    assert record.run["graph"]["exit_codes"]["recorder"] == 0
    assert check_bag(tmp_path / "bag").ok
    last = read_bag(tmp_path / "bag").topic("/episode/status")[-1].decoded
    assert (last.valid, last.invalid_reason) == (False, "interrupted")
