"""Autopilots behind MAVLink in a graph: our own vehicles, in processes of their own, flown by the bridge node."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from sar_eval.bag.check import check_bag
from sar_eval.episode.kernels import compile_kernels
from sar_eval.ros.graph import fly_graph
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.scenario.tiers import tier_named

REFUSAL = "PX4_PARAM_SAR_REFUSE_ARM"


@pytest.fixture
def episode() -> Episode:
    made = prepare(Scenario(world="open_field", drones=2, duration_s=2.0, altitude_m=6.0, radio=None), 0, 0, "sitl")
    compile_kernels(made)
    return made


def test_a_bridge_that_cannot_start_is_not_waited_for(episode: Episode, tmp_path: Path) -> None:
    begun_s = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 14540))
        record = fly_graph(episode, tmp_path / "bag")
    assert (record.result["invalid_reason"], record.run["silent"]) == ("not_ready", ["sim"])
    assert time.monotonic() - begun_s < tier_named("sitl").patience["ready_timeout_s"]
    assert list(tmp_path.iterdir()) == []


def test_a_spoilt_graph_is_told_of_and_flown_again(
    episode: Episode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The vehicles refuse to arm until an attempt was given up for it. A busy machine may spoil others besides."""
    monkeypatch.setenv(REFUSAL, "1")
    told: list[str] = []
    searched: list[float] = []

    def relent(what: str) -> None:
        told.append(what)
        if "arm_refused" in what:
            monkeypatch.delenv(REFUSAL)

    record = fly_graph(episode, tmp_path / "bag", tell=relent, watch=searched.append, sim_speed=2.0)
    spoilt = record.run["spoilt_attempts"]
    assert record.result["valid"], spoilt
    assert (record.result["tier"], record.result["landed"], record.result["collisions"]) == ("sitl", 2, 0)
    assert len(told) == len(spoilt)
    refusals = [attempt["detail"] for attempt in spoilt if attempt["reason"] == "arm_refused"]
    assert len(refusals) == 1 and "SAR_REFUSE_ARM is set" in refusals[0]
    assert 0.0 < max(searched) <= 2.2, "the search could be watched"
    assert check_bag(tmp_path / "bag").ok
