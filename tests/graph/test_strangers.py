"""What does not belong to a graph is named in its diagnostics and never gets into its results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from sar_eval.ros.graph import Graph
from tests.graph.conftest import PATIENT

STRANGER = Path(__file__).with_name("stranger.py")


def test_a_stranger_on_our_topics_changes_nothing_and_is_named(plan, alone, read_bag, tmp_path):
    episode = plan(seed=1, index=1, world="village", duration_s=60.0)  # so long that every node finds the stranger
    record, bag = alone(episode, True)
    with Graph(episode, tmp_path / "bag", csi=True, **PATIENT) as graph:
        environment = {**os.environ, **graph.environment}
        with subprocess.Popen(
            [sys.executable, STRANGER], env=environment, stdout=subprocess.PIPE, text=True
        ) as stranger:
            try:
                assert stranger.stdout is not None and stranger.stdout.readline() == "here\n"
                graph.start()
                flown = graph.wait()
            finally:
                stranger.kill()
    assert json.dumps(flown.result) == json.dumps(record.result)
    assert read_bag(bag).difference(read_bag(tmp_path / "bag")) is None
    told = {node: " ".join(problems) for node, problems in flown.run["diagnostics"].items()}
    assert "foreign message: /uav_1/odometry" in told["recorder"]
    assert "time ran backwards: /clock" in told["recorder"]
    assert "foreign run: /swarm/tick: a message of run 12345" in told["sim"]
    assert "foreign run: /episode/tick_done: a message of run 12345" in told["sim"]
    assert "foreign run: /episode/end" in told["swarm"]
    assert "foreign publisher: /uav_1/odometry: stranger" in told["manager"]
    assert "wrong QoS: /clock: stranger" in told["manager"]


def test_two_graphs_side_by_side_do_not_hear_each_other(plan, alone, read_bag, tmp_path):
    episodes = [plan(seed=8, drones=2), plan(seed=9, drones=2, world="forest")]
    with (
        Graph(episodes[0], tmp_path / "0", **PATIENT) as first,
        Graph(episodes[1], tmp_path / "1", **PATIENT) as second,
    ):
        assert first.domain != second.domain
        first.start()
        second.start()
        flown = [first.wait(), second.wait()]
    for number, (episode, record) in enumerate(zip(episodes, flown, strict=True)):
        expected, bag = alone(episode)
        assert json.dumps(record.result) == json.dumps(expected.result)
        assert record.run["diagnostics"] == {}
        assert read_bag(bag).difference(read_bag(tmp_path / str(number))) is None
