"""However a graph ends it leaves a record, a good bag, and nothing else."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from sar_eval.bagcheck import check_bag
from sar_eval.graph import Graph, domain_memory, fly_graph, memory_in_use
from sar_eval.nodetable import NODES
from tests.graph.conftest import PATIENT

READY_S = 15.0
NOTICED_S = 5.0
"""From the kill to the record, or without a manager the bag, that says INVALID and why; then the others leave."""


def children() -> set[int]:
    """Processes that this one has started and that still run."""
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def left_in_memory(graph: Graph) -> set[str]:
    """What only the graph's processes used of shared memory and is still there, with the locks beside it."""
    assert graph.memory, "DDS uses shared memory between processes of one host"
    ours = graph.memory - memory_in_use()
    there = os.listdir("/dev/shm")
    return {name for name in there if any(used in name for used in ours)} | domain_memory(graph.domain)


def fly_for_seconds(graph: Graph, bag: Path) -> None:
    """Start it and let it fly until two seconds lie in the bag."""
    graph.start()
    assert graph.wait_until_ready() < PATIENT["ready_timeout_s"]
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
    before = children()
    ready = []
    for number in range(20):
        with Graph(episode, tmp_path / f"bag{number}", composed=number >= 10, **PATIENT) as graph:
            graph.start()
            ready.append(graph.wait_until_ready())
            graph.interrupt()
            record = graph.wait()
        assert record.result["invalid_reason"] == "interrupted"
        assert not left_in_memory(graph)
        codes = record.run["graph"]["exit_codes"]
        assert {code for name, code in codes.items() if name not in ("manager", "composed")} <= {0}
        assert codes.get("manager", codes.get("composed")) == 3
        assert check_bag(tmp_path / f"bag{number}").ok
    assert max(ready) < READY_S, ready
    assert children() == before


@pytest.mark.parametrize("victim", NODES)
def test_a_killed_node_makes_the_episode_invalid(victim, plan, read_bag, tmp_path):
    with Graph(plan(seed=2, drones=2), tmp_path / "bag", speed_factor=1.0, ready_timeout_s=120.0) as graph:
        fly_for_seconds(graph, tmp_path / "bag")
        killed_s = time.monotonic()
        os.kill(graph.processes[victim].pid, signal.SIGKILL)
        while not graph.ended:
            time.sleep(0.01)
        noticed_s = time.monotonic() - killed_s
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
    assert not left_in_memory(graph)


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
