"""What messages say: every drone's own, however many are written at once."""

from __future__ import annotations

import numpy as np

from sar_eval.backends.embedded import Simulator
from sar_eval.bag.encoders import STATUS_DONE, Encoder, EpisodeProgress
from sar_eval.bag.messages import typestore
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_swarm.piloting.controller import Command


def test_drones_with_longer_names_get_their_own_odometry_and_setpoint():
    """Ten drones and more: the names of their frames differ in length, and so do their messages."""
    episode = prepare(Scenario(world="open_field", drones=12), 1, 0)
    encoder, state = Encoder(episode), Simulator(episode).first().state
    stamps = np.array([0, 52_000_000])
    batches = dict(encoder.world(stamps, [state, state]))
    free = np.full(3, np.nan)
    commands = [Command(True, np.full(3, float(i)), free, 0.1 * i) for i in range(12)]
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


def test_the_last_status_of_a_spoilt_episode_keeps_the_figures_before_it():
    encoder = Encoder(prepare(Scenario(drones=2), 0, 0))
    _, before = encoder.status(1_000_000_000, EpisodeProgress(2, 7.5, 0.25, 1, 2, 2))
    for known, figures in ((before, (7.5, 0.25, 1, 2, 2)), (None, (0.0, 0.0, 0, 0, 0))):
        topic, payload = encoder.last_status(2_000_000_000, known, "lockstep_timeout")
        told = typestore().deserialize_cdr(payload, "sar_msgs/msg/EpisodeStatus")
        assert topic == "/episode/status" and told.header.stamp.sec == 2
        assert (told.phase, told.valid, told.invalid_reason) == (STATUS_DONE, False, "lockstep_timeout")
        assert (told.search_time_s, told.coverage, told.collisions, told.near_misses, told.airborne) == figures
