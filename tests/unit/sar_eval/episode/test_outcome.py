"""A record's result from flights told by hand: nulls where nothing was, search times, and figures anyone can count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sar_eval.episode.operator import Orders
from sar_eval.episode.outcome import result_of
from sar_eval.episode.sensing import Tally
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_sim.judging.scoring import Hearing, Report
from sar_sim.radio.devices import DeviceKind
from sar_swarm.piloting.controller import Order, Phase
from sar_swarm.piloting.failsafe import Failsafe
from tests.unit.sar_eval.episode.madescore import Told

PLACES = ([0.0, 0.0, 10.0], [60.0, 0.0, 10.0])
STILL, EAST = ([0.0, 0.0, 0.0],) * 2, ([5.0, 0.0, 0.0],) * 2
COUNTED = Tally(np.array([[6, 0, 0, 0, 0], [2, 0, 2, 0, 0]]), np.zeros(9, np.int64))


@pytest.fixture(scope="module")
def episode() -> Episode:
    return prepare(Scenario(world="open_field", drones=2, victims=1, decoys=1, duration_s=60.0), 0, 0)


def reported(told: Told, address: int, off_m: float, views: int = 3) -> Report:
    """A confident report this far east of where the device lies."""
    (device,) = (d for d in told.score.episode.devices if d.address == address)
    x, y, _ = device.position_at(0.0)
    return Report(told.time_s, 1, address, x + off_m, y, 0.9, 1.5, 1.25, 4.0, views)


@pytest.fixture
def searched(episode: Episode) -> dict[str, Any]:
    """Ten seconds of search at 5 m/s after two on the ground; the victim issued 3 m off, the decoy as a victim."""
    victim = next(device for device in episode.devices if device.kind is DeviceKind.VICTIM)
    decoy = next(device for device in episode.devices if device.kind is not DeviceKind.VICTIM)
    told = Told(episode, PLACES)
    for _ in range(40):
        told.move(STILL)
        told.note(Orders(Order.TAKE_OFF), told.stand(Phase.TAKEOFF))
    begin_s = told.time_s
    told.search(4.0, EAST, begin_s)
    orders = Orders(Order.SEARCH, begin_s)
    told.move(EAST)
    heard = [Hearing(1, victim.address, True), Hearing(0, decoy.address, False)]
    told.note(orders, told.stand(Phase.SEARCH), [], heard)
    told.search(1.0, EAST, begin_s)
    told.move(EAST)
    reports = [reported(told, victim.address, 3.0), reported(told, decoy.address, 0.0)]
    told.note(orders, told.stand(Phase.SEARCH), reports)
    told.charge[:] = (0.9, 0.5)
    told.search(10.0 - (told.time_s - begin_s), EAST, begin_s)
    return result_of(told.score, COUNTED)


def test_what_never_searched_has_no_return_no_conduct_and_no_findings(episode: Episode) -> None:
    told = Told(episode, PLACES)
    told.score.spoil("takeoff_timeout")
    found = result_of(told.score, None)
    assert (found["valid"], found["invalid_reason"], found["search_time_s"]) == (False, "takeoff_timeout", 0.0)
    assert (found["coverage"], found["coverage_curve"], found["time_to_95_s"]) == (0.0, [0.0], None)
    assert found["return_counts"] is found["episode_return"] is found["conduct"] is None
    assert found["issues"] is found["detections"] is found["time_to_first_detection_s"] is None
    assert (found["victims"], found["decoys"], found["landed"], found["path_m"]) == ([], [], 0, 0.0)


def test_times_are_of_the_search_and_errors_of_the_issue(searched: dict[str, Any]) -> None:
    (victim,) = searched["victims"]
    assert (searched["search_time_s"], searched["flight_time_s"]) == pytest.approx((10.0, 12.0), abs=0.01)
    assert victim["heard_s"] == pytest.approx(4.05, abs=0.01) and victim["issued_s"] == pytest.approx(5.1, abs=0.01)
    assert (victim["found"], victim["error_m"], victim["confidence"], victim["views"]) == (True, 3.0, 0.9, 3)
    assert (victim["settled_s"], victim["final_error_m"]) == (victim["issued_s"], 3.0)
    assert searched["time_to_first_detection_s"] == victim["issued_s"] and searched["localization_error_m"] == 3.0
    assert (searched["gdop"], victim["path_gdop"], victim["information_dop_m"]) == (1.25, 1.5, 4.0)


def test_a_decoy_taken_for_a_victim_is_an_alarm_and_no_detection(searched: dict[str, Any]) -> None:
    (decoy,) = searched["decoys"]
    counts = ("issues", "detections", "displaced", "false_alarms")
    assert [searched[name] for name in counts] == [2, 1, 0, 1]
    assert decoy["alarm_s"] == searched["victims"][0]["issued_s"] and decoy["heard_s"] < decoy["alarm_s"]
    told = {event["verdict"]: event for event in searched["issue_events"]}
    assert {verdict: (event["victim"], event["uav"]) for verdict, event in told.items()} == {
        "right": (1, 2),
        "decoy": (None, 2),
    }
    assert told["right"]["flight_s"] == pytest.approx(told["right"]["time_s"] + 2.0, abs=0.01)


def test_only_a_usable_observation_makes_a_drone_one_that_found(searched: dict[str, Any]) -> None:
    assert [drone["det"] for drone in searched["drones"]] == [0, 1]
    assert searched["gate"]["phase_open"] == 0.4 and searched["gate"]["accept"] == 0.8


def test_figures_are_those_of_the_flight(searched: dict[str, Any]) -> None:
    one, two = searched["drones"]
    assert (one["x"], two["x"], one["z"]) == pytest.approx((50.0, 110.0, 10.0), abs=0.1)
    assert (one["vx"], one["hdg"], one["batt"], two["batt"]) == (5.0, 0.0, 90.0, 50.0)
    assert searched["path_m"] == pytest.approx(100.0, abs=0.2) == one["path_m"] + two["path_m"]
    assert searched["min_separation_m"] == pytest.approx(60.0) and searched["collisions"] == 0
    assert len(searched["coverage_curve"]) == 2 and searched["coverage_curve"][-1] == searched["coverage"] > 0.0


def test_the_return_is_the_weighted_sum_of_its_counts(searched: dict[str, Any]) -> None:
    counts = searched["return_counts"]
    assert (counts["confirmed_victims"], counts["triangulations"], counts["idle_steps"]) == (1, 3, 0)
    assert counts["depleted"] == counts["collisions"] == counts["geofence_breaches"] == 0
    assert searched["episode_return"] == 10.0 * counts["new_cells"] + 50.0 + 5.0 * 3


def test_events_and_drones_are_counted_from_one(episode: Episode) -> None:
    told = Told(episode, ([0.0, 0.0, 10.0], [4.0, 0.0, 10.0]))
    told.search(1.0, ([4.0, 0.0, 0.0], [0.0, 0.0, 0.0]), 0.0)
    told.move(STILL)
    fallen = (Failsafe.NOMINAL, Failsafe.CONTROLLED_DESCENT)
    told.note(Orders(Order.SEARCH, 0.0), told.stand(Phase.SEARCH, failsafe=fallen))
    found = result_of(told.score, None)
    assert found["collisions"] == 1 and found["collisions_by_kind"]["drone_drone"] == 1
    assert {(event["a"], event["b"]) for event in found["events"] if event["kind"] == "drone_drone"} == {(1, 2)}
    assert [(entry["drone"], entry["state"]) for entry in found["failsafes"]] == [(2, "controlled_descent")]
    assert found["drones"][1]["failsafe"] == "controlled_descent"
