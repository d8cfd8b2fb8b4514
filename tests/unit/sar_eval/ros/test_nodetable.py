"""The one table of nodes and topics: whole, consistent, and readable without ROS."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sar_eval.bag.encoders import episode_topics
from sar_eval.bag.messages import typestore
from sar_eval.ros.nodetable import (
    ANSWERING,
    NODES,
    PARAMETERS,
    Settings,
    culprits,
    node_table,
    settings_of,
    topic_table,
)
from sar_eval.scenario.model import Scenario, scenario_from
from sar_eval.scenario.prepare import prepare

WIRES = topic_table(12, True, True)


def test_every_node_has_a_row_with_every_parameter_it_declares():
    table = node_table(Settings(seed=7, bag=Path("bags/one")))
    assert [row.name for row in table] == list(NODES)
    for row in table:
        assert (row.package, row.executable) == ("sar_eval", f"{row.name}_node")
        declared = {p.name: type(p.default) for p in PARAMETERS if row.name in p.nodes}
        assert {name: type(value) for name, value in row.parameters.items()} == declared
        assert row.parameters["seed"] == 7
    assert next(row for row in table if row.name == "recorder").parameters["bag"] == "bags/one"


def test_the_defaults_of_settings_are_those_of_the_parameters_and_lie_in_their_ranges():
    for parameter in PARAMETERS:
        assert Settings().parameters(parameter.nodes[0])[parameter.name] == parameter.default
        assert parameter.description.endswith(".")
        if parameter.low is not None:
            assert parameter.low <= parameter.default <= parameter.high


def test_an_episode_comes_back_from_its_parameters():
    episode = prepare(Scenario(drones=3, kappa=float("inf"), sigma=0.1), 4, 5)
    given = settings_of(episode).parameters("sim")
    again = prepare(scenario_from(json.loads(given["scenario"]), "test"), given["seed"], given["episode"])
    assert again.config_sha256 == episode.config_sha256


def test_what_is_recorded_is_what_one_process_records_each_from_one_sender():
    recorded = {wire.topic: wire for wire in WIRES if wire.recorded}
    assert recorded.keys() == {topic.name for topic in episode_topics(12, True, True)}
    for wire in recorded.values():
        assert len(wire.publishers) == 1 and wire.subscribers == ("recorder",)
    assert recorded["/uav_12/status"].publishers == ("swarm",)
    assert recorded["/episode/status"].publishers == ("referee",)


def test_every_wire_has_a_known_type_and_known_ends():
    assert len({wire.topic for wire in WIRES}) == len(WIRES)
    for wire in WIRES:
        assert wire.msgtype in typestore().fielddefs, wire
        assert set(wire.publishers) | set(wire.subscribers) <= set(NODES)
        assert wire.publishers


def test_truth_goes_to_referee_radio_and_recorder_only():
    for wire in WIRES:
        if wire.topic.startswith("/truth") or wire.topic == "/sim/truth":
            assert set(wire.subscribers) <= {"referee", "csi", "recorder"}


@pytest.mark.parametrize(
    ("missing", "guilty"),
    [
        (["csi", "swarm", "swarm/tick", "referee"], ["csi"]),
        (["manager", "manager/orders", "swarm", "swarm/tick", "referee"], ["manager"]),
        (["swarm", "swarm/tick", "referee"], ["swarm"]),
        (["referee"], ["referee"]),
        (["recorder", "csi", "referee"], ["csi", "recorder"]),
    ],
)
def test_who_only_waits_for_a_silent_node_is_not_blamed(missing, guilty):
    assert culprits(missing) == guilty
    assert set(guilty) <= set(ANSWERING)


def test_the_table_needs_no_ros():
    walled = "import sys; sys.modules['rclpy'] = sys.modules['sar_msgs'] = None; "
    script = walled + "import sar_eval.ros.nodetable, sar_eval.ros.graph"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
