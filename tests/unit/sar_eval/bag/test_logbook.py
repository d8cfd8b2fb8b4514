"""What a bag says of where it came from, and that a second of ticks is written only when it is flushed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from sar_eval.backends.embedded import Simulator
from sar_eval.bag.check import check_bag
from sar_eval.bag.logbook import Logbook, bag_metadata, world_geometry
from sar_eval.bag.repair import repair_bag
from sar_eval.bag.scan import survey_file
from sar_eval.bag.tick import DroneStatuses
from sar_eval.episode.briefing import briefing_of
from sar_eval.episode.swarm import Swarm
from sar_eval.scenario.model import Episode, Scenario, scenario_from
from sar_eval.scenario.prepare import prepare
from sar_sim.vehicle.fleet import FleetState, stamp_ns


@pytest.fixture(scope="module")
def episode() -> Episode:
    return prepare(Scenario(drones=2, radio=None), 3, 5)


@pytest.fixture(scope="module")
def state(episode: Episode) -> FleetState:
    return Simulator(episode).first().state


def kept(book: Logbook, episode: Episode, state: FleetState, ticks: range) -> None:
    swarm = Swarm(briefing_of(episode))
    swarm.begin(state)
    for tick in ticks:
        book.tick(stamp_ns(tick), state, swarm.commands)


def test_a_bag_names_its_episode_so_that_it_can_be_flown_again(episode: Episode) -> None:
    told = bag_metadata(episode)["sar_eval"]
    configuration = json.loads(told["configuration"])
    assert hashlib.sha256(told["configuration"].encode()).hexdigest() == told["config_sha256"] == episode.config_sha256
    plain = {key: value for key, value in configuration.items() if key in Scenario.model_fields}
    again = prepare(scenario_from(plain | {"wind_mps": None, "altitude_m": None, "episode_set": None}, "bag"), 3, 5)
    assert again.episode_id == told["episode_id"]
    assert all(isinstance(value, str) for value in told.values()), "MCAP metadata is text"


def test_the_place_is_in_it_as_numbers(episode: Episode) -> None:
    world = episode.world
    geometry = json.loads(json.dumps(world_geometry(episode), allow_nan=False))
    assert geometry["obstacles"] == world.obstacles.tolist() and len(geometry["obstacle_names"]) == len(world.obstacles)
    assert geometry["hull_radius_m"] == episode.vehicle.airframe.hull_radius


def test_ticks_are_in_the_bag_from_their_flush_on(episode: Episode, state: FleetState, tmp_path: Path) -> None:
    """What was kept and not flushed is lost with the process; what was flushed is not."""
    book = Logbook(episode, tmp_path / "bag")
    kept(book, episode, state, range(20))
    book.flush()
    kept(book, episode, state, range(20, 25))
    book.abandon()
    assert not (tmp_path / "bag").exists() and book.partial.exists()
    repair_bag(book.partial, tmp_path / "saved")
    found = survey_file(tmp_path / "saved" / "saved_0.mcap")
    counts = {channel.topic: found.counts[number] for number, channel in found.channels.items()}
    assert counts["/clock"] == counts["/truth/state"] == counts["/uav_2/setpoint"] == 20


def test_closing_flushes_what_is_left(episode: Episode, state: FleetState, tmp_path: Path) -> None:
    book = Logbook(episode, tmp_path / "bag")
    swarm = Swarm(briefing_of(episode))
    swarm.begin(state)
    kept(book, episode, state, range(10))
    statuses = DroneStatuses(*swarm.statuses)
    worst = [(0, 0)] * len(swarm.commands)
    book.uav_status(0, statuses, swarm.commands, state.charge, state.charge, state.charge, worst)
    recording = book.close()
    assert recording.messages == 10 * (1 + 1 + 2 + 2) + 2, "clock, truth, odometry and setpoints; and health"
    assert recording.path == tmp_path / "bag"


def test_a_discarded_bag_leaves_nothing(episode: Episode, tmp_path: Path) -> None:
    Logbook(episode, tmp_path / "bag").discard()
    assert list(tmp_path.iterdir()) == []


def test_without_radio_there_is_no_topic_of_it_even_if_frames_are_asked_for(
    episode: Episode, state: FleetState, tmp_path: Path
) -> None:
    book = Logbook(episode, tmp_path / "bag", csi=True)
    kept(book, episode, state, range(2))
    book.close()
    topics = {channel.topic for channel in survey_file(tmp_path / "bag" / "bag_0.mcap").channels.values()}
    assert not [topic for topic in topics if "csi" in topic or "devices" in topic or "reports" in topic]
    assert check_bag(tmp_path / "bag").metadata["sar_eval"]["episode_id"] == episode.episode_id
