"""Parameters: asked for until they are as wanted, with every message packed and parsed by pymavlink."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sar_eval.px4.mavlink import dialect
from sar_eval.px4.parameters import ASK_AGAIN_S, AT_ONCE, SILENT_AFTER, Settling, as_text, parameters_of
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare

INT32, REAL32 = 6, 9


class Vehicle:
    """A PX4's parameters behind MAVLink: integers travel byte by byte."""

    def __init__(self, values: dict[str, float | int], stubborn: str = "") -> None:
        self.values, self.stubborn = values, stubborn
        self.codec = dialect().MAVLink(None, srcSystem=1, srcComponent=1)

    def read(self, name: str) -> Any:
        value = self.values[name]
        kind = INT32 if isinstance(value, int) else REAL32
        carried = float(np.array([value], np.int32).view(np.float32)[0]) if kind == INT32 else value
        message = dialect().MAVLink_param_value_message(name.encode(), carried, kind, 1, 0)
        return self.codec.decode(bytearray(message.pack(self.codec)))

    def set(self, setting: Any) -> Any:
        message = dialect().MAVLink_param_set_message(1, 1, setting.name.encode(), setting.value, setting.kind)
        told = self.codec.decode(bytearray(message.pack(self.codec)))
        if setting.name != self.stubborn:
            whole = int(np.array([told.param_value], np.float32).view(np.int32)[0])
            self.values[setting.name] = whole if setting.kind == INT32 else told.param_value
        return self.read(setting.name)


def settle(vehicle: Vehicle, settling: Settling, rounds: int = 20) -> None:
    for k in range(rounds):
        for name in settling.due(k * ASK_AGAIN_S):
            if name in vehicle.values:
                setting = settling.take(vehicle.read(name))
                if setting is not None:
                    settling.take(vehicle.set(setting))


def test_what_differs_is_set_and_what_does_not_is_left() -> None:
    vehicle = Vehicle({"NAV_DLL_ACT": 2, "MPC_XY_P": 0.95, "COM_OBL_RC_ACT": -5, "MPC_XY_VEL_MAX": 12.0})
    settling = Settling({"NAV_DLL_ACT": 0.0, "MPC_XY_P": 0.7, "COM_OBL_RC_ACT": -5.0, "MPC_XY_VEL_MAX": 12.0})
    settle(vehicle, settling)
    assert not settling.open
    assert vehicle.values == {
        "NAV_DLL_ACT": 0,
        "MPC_XY_P": pytest.approx(0.7, abs=1e-7),
        "COM_OBL_RC_ACT": -5,
        "MPC_XY_VEL_MAX": 12.0,
    }


def test_one_that_exists_and_is_not_taken_stays_unsettled() -> None:
    settling = Settling({"KNOWN": 1.0, "STUBBORN": 3.0})
    settle(Vehicle({"KNOWN": 1, "STUBBORN": 2}, stubborn="STUBBORN"), settling, rounds=3 * SILENT_AFTER)
    assert list(settling.open) == ["STUBBORN"] and not settling.lacking


def told_error(name: str, error: int) -> Any:
    codec = dialect().MAVLink(None, srcSystem=1, srcComponent=1)
    message = dialect().MAVLink_param_error_message(245, 191, name.encode(), -1, error)
    return codec.decode(bytearray(message.pack(codec)))


def test_one_that_the_autopilots_version_lacks_is_left_out_as_soon_as_it_says_so() -> None:
    settling = Settling({"MPC_USE_HTE": 1.0, "SYS_AUTOSTART": 1.0})
    settling.refuse(told_error("SYS_AUTOSTART", dialect().MAV_PARAM_ERROR_READ_ONLY))
    settling.refuse(told_error("MPC_USE_HTE", dialect().MAV_PARAM_ERROR_DOES_NOT_EXIST))
    settling.refuse(told_error("MPC_USE_HTE", dialect().MAV_PARAM_ERROR_DOES_NOT_EXIST))
    assert (settling.lacking, list(settling.open)) == (["MPC_USE_HTE"], ["SYS_AUTOSTART"])


def test_one_that_an_older_autopilot_never_answers_for_is_left_out_if_it_answers_others() -> None:
    settling = Settling({"KNOWN": 1.0, "UNKNOWN": 1.0})
    settle(Vehicle({"KNOWN": 1}), settling, rounds=SILENT_AFTER // 2)
    assert list(settling.open) == ["UNKNOWN"], "a datagram may be lost, even several"
    settling = Settling({"KNOWN": 1.0, "UNKNOWN": 1.0})
    settle(Vehicle({"KNOWN": 1}), settling, rounds=2 * SILENT_AFTER)
    assert (settling.lacking, settling.open) == (["UNKNOWN"], {})


def test_a_vehicle_that_answers_nothing_at_all_lacks_nothing_yet() -> None:
    settling = Settling({"KNOWN": 1.0})
    settle(Vehicle({}), settling, rounds=3 * SILENT_AFTER)
    assert list(settling.open) == ["KNOWN"] and not settling.lacking


def test_few_are_asked_for_at_a_time_and_not_too_often() -> None:
    settling = Settling({f"P{k}": 0.0 for k in range(30)})
    assert settling.due(0.0) == [f"P{k}" for k in range(AT_ONCE)]
    assert settling.due(0.5 * ASK_AGAIN_S) == []
    assert len(settling.due(1.5 * ASK_AGAIN_S)) == AT_ONCE
    assert Settling({}).due(0.0) == []


def test_other_vehicles_talk_is_passed_over() -> None:
    settling = Settling({"KNOWN": 1.0})
    assert settling.take(Vehicle({"OTHER": 7}).read("OTHER")) is None
    assert settling.open == {"KNOWN": 1.0}


@pytest.mark.parametrize("tier", ["sih", "gazebo"])
def test_real_px4s_get_the_vehicles_file_and_need_no_ground_station(tier: str) -> None:
    episode = prepare(Scenario(world="village"), 0, 0, tier)
    given = parameters_of(episode)
    assert (given["COM_OBL_RC_ACT"], given["NAV_DLL_ACT"]) == (5.0, 0.0)
    assert given["SIM_BAT_DRAIN"] == episode.vehicle.airframe.endurance
    assert as_text({"A": 5.0, "B": 0.15, "C": -0.2}) == {"A": "5", "B": "0.15", "C": "-0.2"}


def test_our_own_vehicle_gets_what_it_knows() -> None:
    assert "SDLOG_PROFILE" not in parameters_of(prepare(Scenario(world="village"), 0, 0, "sitl"))
