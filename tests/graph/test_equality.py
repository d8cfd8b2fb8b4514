"""The same seed tells the same story whether it is flown in one process or as a graph of nodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader

from sar_eval.bag.check import check_bag
from sar_eval.ros.graph import fly_graph
from sar_eval.ros.nodetable import ANSWERING, topic_table
from tests.graph.conftest import PATIENT

MISSIONS = {
    1: {"world": "village"},
    2: {"world": "open_field", "pursuit": "on", "drones": 3},
    3: {"world": "forest", "pattern": "spiral"},
    4: {"world": "collapsed_block", "drones": 2, "sigma": 0.2, "kappa": 2.0},
    5: {"world": "village", "faults": [{"kind": "frozen_neighbour", "drone": 2, "begin_s": 1.0}]},
}
HEARD = {"world": "open_field", "drones": 3, "altitude_m": 8.0, "duration_s": 20.0, "victims": 8, "sigma": 0.02}
"""So many devices so near that something is issued within seconds."""
TRIED = range(8)
"""Episodes of which the first with an issue is flown as a graph: which it is depends on radio and calibration."""


@pytest.mark.parametrize("seed", MISSIONS)
def test_separate_processes_fly_the_same_episode(seed, plan, alone, read_bag, tmp_path):
    episode = plan(seed=seed, index=seed, **MISSIONS[seed])
    csi = seed == 1
    record, bag = alone(episode, csi)
    flown = fly_graph(episode, tmp_path / "bag", csi=csi, **PATIENT)
    assert json.dumps(flown.result) == json.dumps(record.result)
    assert flown.run["diagnostics"] == {} and flown.run["silent"] == []
    assert set(flown.run["graph"]["exit_codes"].values()) == {0}
    here, there = read_bag(bag), read_bag(tmp_path / "bag")
    assert len(here.messages) > 4000
    assert here.difference(there) is None
    assert here.metadata["sar_eval"] == there.metadata["sar_eval"]
    assert check_bag(tmp_path / "bag").ok


def test_the_referees_verdicts_are_the_same_from_a_graph(plan, alone, read_bag, tmp_path):
    flown = ((episode, *alone(episode)) for episode in (plan(index=index, kappa=16.0, **HEARD) for index in TRIED))
    episode, record, bag = next((found for found in flown if found[1].result["issues"]), (None, None, None))
    assert episode is not None, f"nothing was issued in {len(TRIED)} missions: give HEARD more time or devices"
    assert json.dumps(fly_graph(episode, tmp_path / "bag", **PATIENT).result) == json.dumps(record.result)
    here, there = read_bag(bag), read_bag(tmp_path / "bag")
    verdicts = [message.decoded for message in here.topic("/events/report")]
    assert sum(not verdict.update for verdict in verdicts) == record.result["issues"] > 0
    assert [m.bits for m in here.topic("/events/report")] == [m.bits for m in there.topic("/events/report")]
    assert here.difference(there) is None


def test_nodes_composed_in_one_process_fly_the_same_episode(plan, alone, read_bag, tmp_path):
    episode = plan(seed=1, index=1, **MISSIONS[1])
    record, bag = alone(episode, True)
    flown = fly_graph(episode, tmp_path / "bag", composed=True, csi=True, **PATIENT)
    assert json.dumps(flown.result) == json.dumps(record.result)
    assert read_bag(bag).difference(read_bag(tmp_path / "bag")) is None
    assert flown.run["graph"]["exit_codes"] == {"composed": 0}


def test_a_graph_without_radio_or_bag_flies_too(plan, alone):
    episode = plan(seed=6, drones=2, radio=None)
    flown = fly_graph(episode, None, **PATIENT)
    assert json.dumps(flown.result) == json.dumps(alone(episode)[0].result)
    assert flown.run["bag"] is None


def test_the_bag_of_a_graph_opens_with_rosbags_and_mcap(plan, tmp_path):
    flown = fly_graph(plan(seed=7, drones=2), tmp_path / "bag", **PATIENT)
    with AnyReader([tmp_path / "bag"]) as reader:
        assert {c.topic for c in reader.connections} == {w.topic for w in topic_table(2) if w.recorded}
        read = [reader.deserialize(data, connection.msgtype) for connection, _, data in reader.messages()]
    (file,) = Path(tmp_path / "bag").glob("*.mcap")
    with file.open("rb") as stream:
        mcap_count = sum(1 for _ in make_reader(stream, validate_crcs=True).iter_messages())
    assert len(read) == mcap_count == flown.run["bag_messages"]


def test_the_swarm_subscribes_to_no_truth():
    heard = {wire.topic: wire for wire in topic_table(4, True, True) if "swarm" in wire.subscribers}
    assert heard.keys() == {"/sim/estimates", "/csi/frames", "/episode/orders", "/episode/end"}
    assert all(set(wire.publishers) <= {"sim", "csi", "manager"} for wire in heard.values())
    assert "swarm" in ANSWERING
