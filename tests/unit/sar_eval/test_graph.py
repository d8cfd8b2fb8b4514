"""The runner of graphs, as far as it goes without ROS: domains, leftovers, what it says where ROS is missing."""

from __future__ import annotations

import importlib.util
import json
import mmap
import os
import socket

import pytest

from sar_core.errors import MissingDependencyError
from sar_eval import graph
from sar_eval.cli import main
from sar_eval.config import Scenario, prepare
from sar_eval.graph import (
    FIRST_PORT,
    PORTS_PER_DOMAIN,
    UNICAST_OFFSET,
    own_domain,
    read_record,
    require_ros,
    sweep_memory,
)


@pytest.mark.parametrize("absent", ["rclpy", "sar_msgs"])
def test_missing_ros_is_exit_code_5_and_says_how_to_get_it(absent, monkeypatch, capsys):
    find = importlib.util.find_spec
    there = importlib.util.find_spec("json")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == absent else find(name) or there)
    with pytest.raises(MissingDependencyError, match=f"^{absent} .* is missing: run make ros"):
        require_ros()
    monkeypatch.setattr("sys.argv", ["sar-eval", "graph"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 5
    assert "make ros" in capsys.readouterr().err


def test_every_graph_gets_a_domain_of_its_own_and_gives_it_back(monkeypatch, tmp_path):
    monkeypatch.setattr(graph.tempfile, "gettempdir", lambda: str(tmp_path))
    with own_domain() as first, own_domain() as second:
        assert first != second
    with own_domain() as again:
        assert again == first


def test_a_domain_that_someone_else_uses_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(graph.tempfile, "gettempdir", lambda: str(tmp_path))
    with own_domain() as first:
        pass
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("", FIRST_PORT + PORTS_PER_DOMAIN * first + UNICAST_OFFSET))
        with own_domain() as second:
            assert second != first


def test_only_own_and_unused_shared_memory_is_removed(monkeypatch, tmp_path):
    """A segment and its lock, a port of the domain; not another domain's, not another's segment, not one in use."""
    monkeypatch.setattr(graph, "MEMORY", tmp_path)
    port = FIRST_PORT + PORTS_PER_DOMAIN * 5 + 11
    ours = ["fastrtps_aa", "fastrtps_aa_el", f"fastrtps_port{port}", f"sem.fastrtps_port{port}_mutex"]
    others = ["fastrtps_bb", f"fastrtps_port{port + PORTS_PER_DOMAIN}", "fastrtps_cc", "something"]
    for name in (*ours, *others):
        (tmp_path / name).write_bytes(bytes(8))
    with (tmp_path / "fastrtps_cc").open("rb") as file, mmap.mmap(file.fileno(), 8, prot=mmap.PROT_READ):
        sweep_memory({"fastrtps_aa", "fastrtps_cc"}, 5)
    assert sorted(os.listdir(tmp_path)) == sorted(others)


def test_a_bag_that_was_whole_after_the_record_stands_in_it(tmp_path):
    """A manager that had waited long enough for the recorder writes that there is none."""
    episode = prepare(Scenario(), 0, 0)
    file, bag = tmp_path / "record.json", tmp_path / "bag"
    file.write_text(json.dumps({"result": {}, "run": {"bag": None}}))
    assert read_record(file, episode, bag).run["bag"] is None
    bag.mkdir()
    assert read_record(file, episode, bag).run["bag"] == str(bag)
