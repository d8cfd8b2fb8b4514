"""Parameters: PX4's encoding, what may be changed when, and the environment."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.errors import InputError
from sar_eval.px4.mavlink import dialect
from sar_eval.scenario.resources import params_path
from sar_eval.sitl.paramtable import (
    DEFAULTS,
    INT32,
    REAL32,
    ParameterKind,
    ParamTable,
    VehicleParameter,
    all_parameters,
    from_wire,
    read_environment,
    to_wire,
)

KNOWN = all_parameters(params_path("sihsim_quadx"))


@given(st.integers(-(2**31), 2**31 - 1))
def test_an_integer_travels_bytewise(value: int) -> None:
    """What pymavlink unpacks as a float holds the integer's own bytes, as clients of PX4 expect."""
    m = dialect()
    parameter = VehicleParameter(value, -(2**31), 2**31 - 1, integer=True)
    packed = m.MAVLink_param_value_message(b"X", to_wire(parameter), parameter.mavlink_type, 1, 0).pack(m.MAVLink(None))
    payload = bytes(packed[10:14])
    is_signalling_nan = 0x7F800001 <= (value & 0x7FFFFFFF) <= 0x7FBFFFFF
    if not is_signalling_nan:
        assert struct.unpack("<i", payload)[0] == value
        decoded = m.MAVLink(None).decode(bytearray(packed))
        assert from_wire(decoded.param_value, INT32) == value


def test_a_float_travels_as_it_is() -> None:
    assert to_wire(VehicleParameter(0.7, 0.0, 1.0)) == 0.7
    assert from_wire(0.5, REAL32) == 0.5


def test_files_types_are_kept() -> None:
    assert KNOWN["CA_ROTOR_COUNT"].integer
    assert not KNOWN["MPC_XY_P"].integer
    assert KNOWN["COM_OBL_RC_ACT"].value == 5
    assert list(KNOWN) == sorted(KNOWN)
    assert all(len(name) <= 16 for name in KNOWN)


def test_live_parameters_change_and_fixed_ones_do_not() -> None:
    table = ParamTable(KNOWN)
    assert table.set("COM_OF_LOSS_T", 0.5) is None
    assert table.rules().stream_loss_s == 0.5
    problem = table.set("MPC_XY_P", 2.0)
    assert problem is not None and "fixed" in problem
    assert table["MPC_XY_P"] == KNOWN["MPC_XY_P"].value
    assert table.set("MPC_XY_P", table["MPC_XY_P"]) is None


def test_a_parameter_without_effect_says_so() -> None:
    table = ParamTable(KNOWN)
    remark = table.set("SIM_BAT_DRAIN", 120.0)
    assert remark is not None and "no effect" in remark
    assert table["SIM_BAT_DRAIN"] == 120.0
    assert {name for name, one in DEFAULTS.items() if one.kind is ParameterKind.IDLE} == {
        "COM_RC_IN_MODE",
        "NAV_DLL_ACT",
        "SIM_BAT_DRAIN",
        "SIM_BAT_MIN_PCT",
    }


@pytest.mark.parametrize(
    ("name", "value"), [("COM_OBL_RC_ACT", 8), ("COM_OBL_RC_ACT", 1.5), ("COM_OF_LOSS_T", float("nan"))]
)
def test_values_out_of_range_are_refused(name: str, value: float) -> None:
    table = ParamTable(KNOWN)
    before = table[name]
    assert table.set(name, value) is not None
    assert table[name] == before


def test_every_live_parameter_changes_what_is_obeyed() -> None:
    """No parameter is called live and then read by nobody."""
    read_elsewhere = {"BAT_", "SAR_", "SYS_FAILURE_EN", "MIS_TAKEOFF_ALT"}
    for name, one in DEFAULTS.items():
        if one.kind is not ParameterKind.LIVE or any(name.startswith(known) for known in read_elsewhere):
            continue
        table = ParamTable(KNOWN)
        before = (table.rules(), table.speeds(), table.way_home())
        other = next(
            v for v in (one.low + 0.5, one.low + 1.0, one.high) if v != table[name] and (not one.integer or v == int(v))
        )
        assert table.set(name, other) is None, name
        assert (table.rules(), table.speeds(), table.way_home()) != before, name


def test_the_environment_sets_what_is_known_and_names_what_is_not() -> None:
    environment = {"PX4_PARAM_COM_OF_LOSS_T": "2.5", "PX4_PARAM_SDLOG_MODE": "-1", "PATH": "/bin"}
    assert read_environment(environment, KNOWN) == ({"COM_OF_LOSS_T": 2.5}, ["SDLOG_MODE"])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("SAR_REFUSE", "1", "SAR_REFUSE_ARM"),
        ("COM_OF_LOSS_T", "soon", "not a number"),
        ("COM_OBL_RC_ACT", "9", "0 to 7"),
        ("COM_OBL_RC_ACT", "1.5", "whole number"),
    ],
)
def test_a_wrong_environment_is_refused(name: str, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        read_environment({f"PX4_PARAM_{name}": text}, KNOWN)
    assert f"PX4_PARAM_{name}" in str(refused.value)
