"""What messages say: every drone's own, however many are written at once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from sar_eval.backends.embedded import Simulator
from sar_eval.bag.encoders import STATUS_DONE, Encoder, EpisodeProgress, health_of
from sar_eval.bag.messages import typestore
from sar_eval.bag.tick import VictimReport
from sar_eval.episode.briefing import briefing_of
from sar_eval.episode.swarm import Swarm
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_sim.judging.scoring import Report
from sar_swarm.piloting.controller import Command, Guard, Order
from sar_swarm.piloting.geofence import SAFE, SOFT
from sar_swarm.piloting.safety import PREDICTED, SPLIT, UNJUDGED


def test_drones_with_longer_names_get_their_own_odometry_and_setpoint():
    """Ten drones and more: the names of their frames differ in length, and so do their messages."""
    episode = prepare(Scenario(world="open_field", drones=12), 1, 0)
    encoder, state = Encoder(episode), Simulator(episode).first().state
    stamps = np.array([0, 52_000_000])
    batches = dict(encoder.world(stamps, [state, state]))
    free = np.full(3, np.nan)
    guards = [Guard((float(i), -1.0), 0.5 * i, i % 5, i % 3) for i in range(12)]
    commands = [Command(True, np.full(3, float(i)), free, 0.1 * i, guard=guards[i]) for i in range(12)]
    setpoints = dict(encoder.setpoints(stamps, [commands, commands]))
    for i in range(12):
        rows = batches[f"/uav_{i + 1}/odometry"]
        assert len(rows) == 2
        for stamp, row in zip(stamps.tolist(), rows, strict=True):
            told = typestore().deserialize_cdr(row.tobytes(), "nav_msgs/msg/Odometry")
            place = told.pose.pose.position
            assert told.child_frame_id == f"uav_{i + 1}/base_link" and told.header.frame_id == "map"
            assert told.header.stamp.nanosec == stamp
            assert (place.x, place.y, place.z) == tuple(state.est_position[i])
            assert told.pose.covariance[0] == told.twist.covariance[0] == -1.0
        last = typestore().deserialize_cdr(setpoints[f"/uav_{i + 1}/setpoint"][1].tobytes(), "sar_msgs/msg/Setpoint")
        assert (last.position.y, last.yaw, last.header.stamp.nanosec) == (float(i), 0.1 * i, 52_000_000)
        assert (last.wanted.x, last.wanted.y, last.limit_excess) == (float(i), -1.0, 0.5 * i)
        assert np.isnan(last.wanted.z)


def test_status_tells_the_worst_band_and_fence_state_since_the_one_before():
    """A drone dives through a band between two statuses; another is not asked at all."""
    episode = prepare(Scenario(world="open_field", drones=2), 1, 0)
    swarm, encoder = Swarm(briefing_of(episode)), Encoder(episode)
    state, free = Simulator(episode).first().state, np.full(3, np.nan)
    for tick in range(1, 12):
        guard = Guard((0.0, 0.0), 0.0, SPLIT if tick == 4 else PREDICTED, SOFT if tick == 9 else SAFE)
        swarm.decide(0.05 * tick, state, Order.WAIT)
        swarm.commands[0] = Command(True, free, free, 0.0, guard=guard)
    health = health_of(0, swarm.statuses, swarm.commands, np.ones(2), np.ones(2), np.ones(2), swarm.worst())
    told = [
        typestore().deserialize_cdr(rows[0].tobytes(), "sar_msgs/msg/UavStatus") for _, rows in encoder.health([health])
    ]
    assert [(one.band, one.fence) for one in told] == [(SPLIT, SOFT), (UNJUDGED, UNJUDGED)]
    assert (told[0].BAND_SPLIT, told[0].FENCE_SOFT, told[0].BAND_UNJUDGED) == (SPLIT, SOFT, UNJUDGED)


@pytest.mark.parametrize("constellation", [None, 1.25])
def test_a_report_tells_dilution_three_ways(constellation: float | None):
    report = Report(3.0, 1, 7, 4.0, 5.0, 0.9, 1.5, constellation, 2.5, 3)
    estimate = SimpleNamespace(covariance=np.eye(2), observations=9, speed_mps=0.1)
    topic, payload = Encoder(prepare(Scenario(drones=2), 0, 0)).victim_report(
        3_000_000_000, VictimReport(report, estimate)
    )
    told = typestore().deserialize_cdr(payload, "sar_msgs/msg/VictimReport")
    assert topic == "/swarm/reports" and (told.uav, told.address, told.views, told.confidence) == (2, 7, 3, 0.9)
    assert (told.path_gdop, told.information_dop_m) == (1.5, 2.5)
    assert np.isnan(told.constellation_gdop) if constellation is None else told.constellation_gdop == constellation


def test_the_last_status_of_a_spoilt_episode_keeps_the_figures_before_it():
    encoder = Encoder(prepare(Scenario(drones=2), 0, 0))
    _, before = encoder.status(1_000_000_000, EpisodeProgress(2, 7.5, 0.25, 1, 2, 2))
    for known, figures in ((before, (7.5, 0.25, 1, 2, 2)), (None, (0.0, 0.0, 0, 0, 0))):
        topic, payload = encoder.last_status(2_000_000_000, known, "lockstep_timeout")
        told = typestore().deserialize_cdr(payload, "sar_msgs/msg/EpisodeStatus")
        assert topic == "/episode/status" and told.header.stamp.sec == 2
        assert (told.phase, told.valid, told.invalid_reason) == (STATUS_DONE, False, "lockstep_timeout")
        assert (told.search_time_s, told.coverage, told.collisions, told.near_misses, told.airborne) == figures
