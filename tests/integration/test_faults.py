"""Faults in whole missions: the state is entered in its time, its effect is seen in the truth, a record remains."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_eval.episode.flight import Flight, fly_episode
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_sim.vehicle.faults import FaultKind
from sar_swarm.piloting.failsafe import Failsafe

Floats = NDArray[np.float64]

BEGIN_S = 10.0
SHORT: dict[str, Any] = {"drones": 3, "duration_s": 45.0, "radio": None}
KINDS = [str(kind) for kind in FaultKind]


@dataclass(frozen=True)
class Flown:
    """A mission's record and its truth, one row per tick; times count from the beginning of the search."""

    result: dict[str, Any]
    flight: Flight
    times: Floats
    position: Floats
    velocity: Floats
    believed: Floats

    def at(self, time_s: float) -> int:
        return int(np.searchsorted(self.times, time_s))

    def speed(self, drone: int, time_s: float) -> float:
        return float(np.linalg.norm(self.velocity[self.at(time_s), drone]))

    def states(self, drone: int) -> dict[str, float]:
        """When (search time) each state was first entered by one drone."""
        begin, entered = self.flight.score.orders.search_begin_s, {}
        for row in self.result["failsafes"]:
            if row["drone"] == drone + 1:
                entered.setdefault(row["state"], row["time_s"] - begin)
        return entered


def fly(*faults: dict[str, Any], seed: int = 1, index: int = 1, **changes: Any) -> Flown:
    """Fly a mission to its end in the open field."""
    flight = Flight(prepare(Scenario(faults=list(faults), **{**SHORT, **changes}), seed, index), None)
    rows = []
    while not flight.score.done:
        flight.advance()
        state = flight.score.state
        rows.append((flight.score.time_s, state.position, state.velocity, state.est_position))
    flight.finish()
    times, position, velocity, believed = (np.array(column) for column in zip(*rows, strict=True))
    return Flown(flight.result(), flight, times - flight.score.orders.search_begin_s, position, velocity, believed)


def fault(kind: str, size: float | None = None, drone: int = 2, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "drone": drone, "begin_s": BEGIN_S, "size": size, **more}


def assert_recorded(flown: Flown) -> None:
    """A valid mission whose record is plain, complete and says how every drone ended."""
    result = flown.result
    assert result["valid"], result["invalid_reason"]
    assert json.loads(json.dumps(result)) == result
    names = {state.name.lower() for state in Failsafe}
    assert {drone["failsafe"] for drone in result["drones"]} <= names
    assert {row["state"] for row in result["failsafes"]} <= names
    assert [row["time_s"] for row in result["failsafes"]] == sorted(row["time_s"] for row in result["failsafes"])


def assert_others_flew_on(flown: Flown, sick: int = 1) -> None:
    for drone, row in enumerate(flown.result["drones"]):
        if drone != sick:
            assert row["failsafe"] == "nominal", row
            assert flown.speed(drone, BEGIN_S + 8.0) > 1.0 or flown.result["drones"][drone]["path_m"] > 150.0
            assert math.dist((row["x"], row["y"]), flown.flight.swarm.plans[drone].home[:2]) < 3.0 and row["z"] < 0.5


def test_without_faults_there_is_nothing_to_tell() -> None:
    flown = fly()
    assert flown.result["failsafes"] == [] and flown.result["landed"] == 3
    assert_recorded(flown)


def test_a_drone_without_gps_stops_and_then_comes_down_where_it_is() -> None:
    flown = fly(fault("gps_loss"))
    entered = flown.states(1)
    assert entered["autonomous_hold"] == pytest.approx(BEGIN_S + 1.0, abs=0.3)
    assert entered["controlled_descent"] == pytest.approx(BEGIN_S + 5.0, abs=0.3)
    assert flown.speed(1, BEGIN_S + 0.5) > 4.0 and flown.speed(1, BEGIN_S + 4.9) < 2.5
    down = flown.position[-1, 1]
    assert down[2] < 0.5
    sink = -flown.velocity[flown.at(BEGIN_S + 8.0) : flown.at(BEGIN_S + 14.0), 1, 2]
    assert 0.2 < sink.mean() < 2.5
    assert_recorded(flown)
    assert_others_flew_on(flown)


def test_a_gap_in_gps_is_waited_out() -> None:
    flown = fly(fault("gps_loss", end_s=BEGIN_S + 3.0))
    entered = flown.states(1)
    assert list(entered) == ["autonomous_hold", "nominal"]
    assert entered["nominal"] == pytest.approx(BEGIN_S + 3.1, abs=0.3)
    assert flown.speed(1, BEGIN_S + 9.0) > 4.0
    assert flown.result["landed"] == 3


def test_a_drone_with_a_dead_motor_falls_with_its_motors_off() -> None:
    flown = fly(fault("motor_loss", 1.0))
    assert flown.states(1)["controlled_descent"] == pytest.approx(BEGIN_S, abs=0.3)
    assert flown.position[flown.at(BEGIN_S + 10.0), 1, 2] < 1.0
    assert not flown.flight.swarm.commands[1].armed
    assert flown.result["collisions"] == flown.result["collisions_by_kind"]["drone_ground"] == 1
    assert_recorded(flown)
    assert_others_flew_on(flown)


def test_a_weak_motor_is_no_reason_to_stop() -> None:
    flown = fly(fault("motor_loss", 0.3))
    assert flown.states(1) == {} and flown.result["landed"] == 3 and flown.result["collisions"] == 0


def test_a_motor_too_weak_to_hold_height_is_found_out_without_telemetry() -> None:
    flown = fly(fault("motor_loss", 0.49))
    entered = flown.states(1)["controlled_descent"]
    assert BEGIN_S + 0.9 < entered < BEGIN_S + 8.0
    assert flown.position[-1, 1, 2] < 0.5
    assert_recorded(flown)


def test_a_drone_cut_off_stops_after_three_seconds_and_goes_home_after_thirty() -> None:
    flown = fly(fault("link_loss"), duration_s=60.0)
    entered = flown.states(1)
    assert entered["autonomous_hold"] == pytest.approx(BEGIN_S + 3.05, abs=0.3)
    assert entered["return_to_home"] == pytest.approx(BEGIN_S + 30.05, abs=0.3)
    still = slice(flown.at(BEGIN_S + 10.0), flown.at(BEGIN_S + 29.0))
    assert np.linalg.norm(flown.velocity[still, 1], axis=1).max() < 2.0
    assert math.dist(flown.position[-1, 1, :2], flown.flight.swarm.plans[1].home[:2]) < 3.0
    assert_recorded(flown)
    assert_others_flew_on(flown)


def test_a_link_that_comes_back_lets_it_fly_on() -> None:
    flown = fly(fault("link_loss", end_s=BEGIN_S + 6.0))
    assert list(flown.states(1)) == ["autonomous_hold", "nominal"]
    assert flown.speed(1, BEGIN_S + 12.0) > 4.0


@pytest.mark.parametrize("charge", [0.19, 0.14, 0.02])
def test_what_a_low_battery_does_depends_on_how_low(charge: float) -> None:
    flown = fly(fault("low_battery", charge))
    entered, home = flown.states(1), flown.flight.swarm.plans[1].home
    last, then = flown.position[-1, 1], flown.position[flown.at(BEGIN_S), 1]
    state = {0.19: "low_battery_warn", 0.14: "return_to_home", 0.02: "emergency_land"}[charge]
    assert entered[state] == pytest.approx(BEGIN_S, abs=0.3)
    assert last[2] < 0.5
    if charge == 0.19:
        assert flown.speed(1, BEGIN_S + 8.0) > 3.0
    elif charge == 0.14:
        gone = math.dist(flown.position[flown.at(BEGIN_S + 25.0), 1, :2], home[:2])
        assert gone < math.dist(then[:2], home[:2]) + 1.0
    else:
        assert math.dist(last[:2], then[:2]) < 15.0
    if charge > 0.1:
        assert math.dist(last[:2], home[:2]) < 3.0
    assert_recorded(flown)
    assert_others_flew_on(flown)


def test_a_drifting_fix_is_not_noticed_and_shows_in_the_truth() -> None:
    """Nothing on board contradicts a slowly wandering fix: the drone lands beside its home and believes it is home."""
    flown = fly(fault("gps_drift", 0.5, drone=1))
    assert flown.states(0) == {}
    wandered = math.dist(flown.position[-1, 0, :2], flown.believed[-1, 0, :2])
    assert wandered == pytest.approx(0.5 * (flown.times[-1] - BEGIN_S), rel=0.15)
    assert_recorded(flown)


def test_a_biased_compass_is_flown_with() -> None:
    flown = fly(fault("compass_bias", 0.4))
    assert flown.states(1) == {} and flown.result["landed"] == 3 and flown.result["collisions"] == 0


def test_a_compass_that_is_far_off_ends_in_a_descent_before_it_ends_elsewhere() -> None:
    flown = fly(fault("compass_bias", 1.6), duration_s=120.0)
    assert "controlled_descent" in flown.states(1)
    assert flown.position[-1, 1, 2] < 0.5
    assert_recorded(flown)


def test_a_frozen_neighbour_stops_nobody() -> None:
    flown = fly(fault("frozen_neighbour"))
    assert flown.result["failsafes"] == [] and flown.result["landed"] == 3 and flown.result["collisions"] == 0


@pytest.mark.parametrize("begin_s", [BEGIN_S, 70.0])
def test_a_lost_drone_falls_and_the_others_cover_its_strip(begin_s: float) -> None:
    """Before its first lane, and in the middle of one: the begun lane is flown again."""
    flown = fly({**fault("drone_lost"), "begin_s": begin_s}, drones=4, duration_s=600.0)
    assert flown.position[flown.at(begin_s + 4.0), 1, 2] < 1.0
    assert flown.result["collisions"] == flown.result["collisions_by_kind"]["drone_ground"] == 1
    cover = flown.flight.score.coverage
    scanned = np.isfinite(cover.first_scan_s)
    columns = scanned.shape[1] // 4
    assert scanned[:, columns : 2 * columns].mean() >= 0.95
    assert cover.fraction >= 0.95
    assert_recorded(flown)
    assert_others_flew_on(flown)


def test_the_last_of_the_swarm_still_brings_its_record_home(tmp_path: Path) -> None:
    lost = [fault("drone_lost", drone=i) for i in (1, 2)]
    record = fly_episode(prepare(Scenario(faults=lost, drones=3, duration_s=30.0, radio=None), 1, 1), tmp_path / "bag")
    assert record.result["valid"] and Path(record.run["bag"]).is_dir()
    states = [row["failsafe"] for row in record.result["drones"]]
    assert states[2] in ("return_to_home", "autonomous_hold") and record.result["landed"] >= 1


@pytest.mark.parametrize("begin_s", [0.0, 7.3, 19.95, 30.0])
@pytest.mark.parametrize("kind", KINDS)
def test_no_fault_at_any_time_ends_in_an_exception(kind: str, begin_s: float) -> None:
    """At the first tick of the search, within it, at its end and on the way home."""
    flown = fly({"kind": kind, "drone": 1, "begin_s": begin_s}, drones=2, duration_s=20.0)
    assert_recorded(flown)


FAULTS = st.builds(
    lambda kind, drone, begin_s: {"kind": kind, "drone": drone, "begin_s": begin_s},
    st.sampled_from(KINDS),
    st.integers(1, 3),
    st.floats(0.0, 25.0),
)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(FAULTS, min_size=2, max_size=4), st.integers(0, 1000))
def test_several_faults_at_once_still_end_with_a_record(faults: list[dict[str, Any]], seed: int) -> None:
    assert_recorded(fly(*faults, seed=seed, duration_s=15.0))


def test_the_same_faults_fly_the_same_mission() -> None:
    faults = [fault("gps_drift", 1.0), fault("motor_loss", 1.0, drone=1)]
    first, again = (fly(*faults, duration_s=20.0).result for _ in range(2))
    assert first == again
