"""The runner of graphs, as far as it goes without ROS: domains, leftovers, what it says where ROS is missing."""

from __future__ import annotations

import importlib.util
import json
import socket
from pathlib import Path

import pytest

from sar_core.errors import MissingDependencyError
from sar_eval.cli.app import main
from sar_eval.ros import graph
from sar_eval.ros.graph import (
    FIRST_PORT,
    PORTS_PER_DOMAIN,
    UNICAST_OFFSET,
    graph_environment,
    own_domain,
    read_record,
    require_ros,
)
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare


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


def test_nodes_keep_to_the_loopback_and_to_profiles_that_somebody_has(monkeypatch, tmp_path):
    for name in ("FASTRTPS_DEFAULT_PROFILES_FILE", "RMW_IMPLEMENTATION"):
        monkeypatch.delenv(name, raising=False)
    ours = graph_environment(7, tmp_path)
    assert Path(ours["FASTRTPS_DEFAULT_PROFILES_FILE"]).is_file()
    assert ours["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "SYSTEM_DEFAULT", "any other adds shared memory to our profile"
    for name, value in (("FASTRTPS_DEFAULT_PROFILES_FILE", "mine.xml"), ("RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            theirs = graph_environment(7, tmp_path)
        assert "FASTRTPS_DEFAULT_PROFILES_FILE" not in theirs
        assert theirs["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"


def test_a_bag_that_was_whole_after_the_record_stands_in_it(tmp_path):
    """A manager that had waited long enough for the recorder writes that there is none."""
    episode = prepare(Scenario(), 0, 0)
    file, bag = tmp_path / "record.json", tmp_path / "bag"
    file.write_text(json.dumps({"result": {}, "run": {"bag": None}}))
    assert read_record(file, episode, bag).run["bag"] is None
    bag.mkdir()
    assert read_record(file, episode, bag).run["bag"] == str(bag)
