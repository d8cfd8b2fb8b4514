"""A bag as ADR-148's telemetry: the schema's keys, the flight's numbers, and who backs an issue."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sar_analysis.bags.reader import read_bag
from sar_analysis.render.telemetry import telemetry
from sar_core.errors import InputError, MissingDataError
from tests.unit.sar_analysis.bagmaker import Made, report, straight

DEVICES = [(7, 0, (20.0, 50.0, 0.5)), (9, 3, (90.0, 90.0, 1.0))]


def made(**more: object) -> Made:
    path = straight(12.0, np.array([[2.5, 52.5, 30.0], [2.5, 80.0, 30.0]]), np.array([[8.0, 0.0, 0.0], [4.0, 0, 0]]))
    return Made(path, begin_s=2.0, end_s=10.0, devices=DEVICES, **more)


def test_meta_steps_and_episode(tmp_path: Path) -> None:
    told = [report(6.0, 21.0, 50.0, 0.9)]
    bag = read_bag(made(heard=[(3.0, 7)], reports=told).write(tmp_path / "bag"))
    meta, *steps, episode = telemetry(bag)
    assert {"type", "profile", "drones", "area_w", "area_h", "victims"} <= set(meta)
    assert (meta["type"], meta["drones"], meta["area_w"], meta["victims"]) == ("meta", 2, 100.0, [[20.0, 50.0]])
    assert [step["t"] for step in steps] == pytest.approx(range(9), abs=0.06)
    assert {"type", "ep", "step", "t", "coverage", "drones"} == set(steps[0])
    assert {"id", "x", "y", "hdg", "batt", "det", "z", "vx", "vy", "vz"} == set(steps[0]["drones"][0])
    assert steps[-1]["coverage"] > steps[0]["coverage"] > 0.0
    assert steps[3]["drones"][0]["x"] == pytest.approx(2.5 + 8.0 * 5.0, abs=0.5)
    assert (episode["type"], episode["ep"], episode["victims_found"], episode["policy_loss"]) == ("episode", 1, 1, None)
    assert episode["localization_error_m"] == pytest.approx(1.0)


def test_det_is_set_from_when_its_observations_back_an_issue(tmp_path: Path) -> None:
    bag = read_bag(made(heard=[(3.0, 7), (4.0, 9)], reports=[report(6.0, 21.0, 50.0, 0.9)]).write(tmp_path / "bag"))
    _, *steps, _ = telemetry(bag)
    assert [step["drones"][0]["det"] for step in steps] == [0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert all(step["drones"][1]["det"] == 0 for step in steps)


def test_an_observation_of_what_was_never_issued_backs_nothing(tmp_path: Path) -> None:
    bag = read_bag(made(heard=[(3.0, 9)], reports=[report(6.0, 21.0, 50.0, 0.9)]).write(tmp_path / "bag"))
    _, *steps, _ = telemetry(bag)
    assert all(drone["det"] == 0 for step in steps for drone in step["drones"])


def test_a_step_of_no_length_and_a_bag_without_search_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a step every 0"):
        list(telemetry(read_bag(made().write(tmp_path / "bag")), 0.0))
    grounded = made(status={"phase": 1, "search_time_s": 0.0})
    with pytest.raises(MissingDataError, match="never searched"):
        list(telemetry(read_bag(grounded.write(tmp_path / "grounded"))))
