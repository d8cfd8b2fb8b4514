"""Parameter files: QGroundControl's format, every refusal, and what the control law is given."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal

from sar_core.errors import InputError
from sar_sim.vehicle.airframe import load_vehicle
from sar_sim.vehicle.autopilot import RATE_DT
from sar_sim.vehicle.parameters import assumed_noise, gains_from, mixer_from, read_parameters

ROOT = Path(__file__).resolve().parents[4]
NAMES = ("x500", "sihsim_quadx")


def shipped(name: str) -> dict[str, float]:
    return read_parameters(ROOT / "px4_params" / f"{name}.params")


def changed(**values: float) -> dict[str, float]:
    return {**shipped("x500"), **values}


def written(folder: Path, *lines: str) -> Path:
    path = folder / "some.params"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", NAMES)
def test_shipped_files_make_a_vehicle(name: str) -> None:
    vehicle = load_vehicle(ROOT / "configs" / "vehicles" / f"{name}.yaml", ROOT / "px4_params" / f"{name}.params")
    assert vehicle.name == name
    assert 0.0 < vehicle.airframe.mass * 9.81 < 4.0 * vehicle.airframe.thrust_max


@pytest.mark.parametrize("name", NAMES)
def test_shipped_values_are_px4_defaults(name: str) -> None:
    """A selection of PX4 v1.17.0's published defaults, in its own units."""
    defaults = {
        "MPC_XY_P": 0.95,
        "MPC_Z_P": 1.0,
        "MPC_XY_VEL_P_ACC": 1.8,
        "MPC_XY_VEL_I_ACC": 0.4,
        "MPC_XY_VEL_D_ACC": 0.2,
        "MPC_Z_VEL_P_ACC": 4.0,
        "MPC_Z_VEL_I_ACC": 2.0,
        "MPC_XY_VEL_MAX": 12.0,
        "MPC_Z_VEL_MAX_UP": 3.0,
        "MPC_Z_VEL_MAX_DN": 1.5,
        "MPC_TILTMAX_AIR": 45.0,
        "MPC_TKO_RAMP_T": 3.0,
        "MC_ROLLRATE_P": 0.15,
        "MC_ROLLRATE_I": 0.2,
        "MC_ROLLRATE_D": 0.003,
        "MC_YAW_P": 2.8,
        "MC_YAWRATE_MAX": 200.0,
        "EKF2_GPS_P_NOISE": 0.5,
        "EKF2_ACC_NOISE": 0.35,
    }
    values = shipped(name)
    assert {key: values[key] for key in defaults} == defaults


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z][A-Z0-9_]{0,15}", fullmatch=True),
        st.one_of(st.integers(-(2**31), 2**31 - 1), st.floats(allow_nan=False, allow_infinity=False, width=32)),
        min_size=1,
        max_size=8,
    )
)
def test_written_values_are_read_back(tmp_path_factory: pytest.TempPathFactory, values: dict[str, float]) -> None:
    lines = [f"1\t1\t{name}\t{value!r}\t{6 if isinstance(value, int) else 9}" for name, value in values.items()]
    path = written(tmp_path_factory.mktemp("p"), "# Onboard parameters", "#", "", *lines)
    assert read_parameters(path) == values


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("1 1 MPC_XY_P 0.95 9", "tab-separated"),
        ("1\t1\tMPC_XY_P\t0.95", "5 tab-separated fields"),
        ("1\t1\tMPC_XY_P\t0.95\t10", "type '10'; allowed: 6 (int32) or 9 (float)"),
        ("1\t1\tMPC_XY_P\tfast\t9", "MPC_XY_P = 'fast' is not a number"),
        ("1\t1\tMPC_USE_HTE\t1.5\t6", "MPC_USE_HTE = '1.5' is not a number of type 6"),
        ("1\t1\tMPC_XY_P\tnan\t9", "MPC_XY_P = nan must be finite"),
        ("1\t1\tMPC_Z_P\t1\t9", "MPC_Z_P is given twice"),
    ],
)
def test_bad_line_is_named(tmp_path: Path, line: str, told: str) -> None:
    path = written(tmp_path, "# first", "1\t1\tMPC_Z_P\t1\t9", line)
    with pytest.raises(InputError) as caught:
        read_parameters(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:3: ") and told in message and "\n" not in message


def test_unreadable_and_empty_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.params: cannot read"):
        read_parameters(tmp_path / "nowhere.params")
    (tmp_path / "binary.params").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"binary\.params: cannot read"):
        read_parameters(tmp_path / "binary.params")
    with pytest.raises(InputError, match="no parameters in the file"):
        read_parameters(written(tmp_path, "# nothing"))


@pytest.mark.parametrize("name", ["MPC_XY_P", "MC_YAWRATE_K", "IMU_GYRO_CUTOFF", "MPC_VELD_LP", "MC_YAW_TQ_CUTOFF"])
def test_missing_gain_is_named(name: str) -> None:
    values = shipped("x500")
    del values[name]
    with pytest.raises(InputError, match=f"my file: parameter {name} is missing"):
        gains_from(values, "my file")


@pytest.mark.parametrize("name", ["CA_ROTOR_COUNT", "CA_ROTOR2_KM"])
def test_missing_geometry_is_named(name: str) -> None:
    values = shipped("x500")
    del values[name]
    with pytest.raises(InputError, match=f"parameter {name} is missing"):
        mixer_from(values)


def test_missing_estimator_parameter_is_named() -> None:
    values = shipped("x500")
    del values["EKF2_HEAD_NOISE"]
    with pytest.raises(InputError, match="EKF2_HEAD_NOISE is missing"):
        assumed_noise(values, 1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("MPC_XY_VEL_P_ACC", 0.0), ("MPC_THR_HOVER", 0.0), ("MPC_TILTMAX_AIR", 120.0), ("MPC_THR_MAX", 1.5)],
)
def test_value_the_law_cannot_fly_is_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"{name} = {value:g}; allowed: "):
        gains_from(changed(**{name: value}), "my file")


def test_thrust_margin_must_leave_something() -> None:
    with pytest.raises(InputError, match=r"MPC_THR_XY_MARG = 0\.3 must be less than MPC_THR_MAX = 0\.25"):
        gains_from(changed(MPC_THR_MAX=0.25))


def test_rotors_that_cannot_turn_are_refused() -> None:
    with pytest.raises(InputError, match="CA_ROTOR_COUNT = 6"):
        mixer_from(changed(CA_ROTOR_COUNT=6.0))
    flat = {f"CA_ROTOR{i}_KM": 0.0 for i in range(4)}
    with pytest.raises(InputError, match="about all three axes"):
        mixer_from(changed(**flat))


def test_degrees_become_radians_and_overall_gain_scales() -> None:
    gains = gains_from(changed(MC_PITCHRATE_K=2.0))
    assert gains.tilt_max_air == pytest.approx(math.pi / 4)
    assert gains.yaw_rate_max == pytest.approx(math.radians(200.0))
    assert (gains.pitch_rate_p, gains.pitch_rate_i, gains.pitch_rate_d) == pytest.approx((0.3, 0.4, 0.006))
    assert gains.roll_rate_p == pytest.approx(0.15)


@pytest.mark.parametrize("cutoff", [10.0, 40.0, 110.0])
def test_gyro_filter_is_scipys_butterworth(cutoff: float) -> None:
    gains = gains_from(changed(IMU_GYRO_CUTOFF=cutoff))
    b, a = signal.butter(2, cutoff, fs=1.0 / RATE_DT)
    assert (gains.gyro_b0, 2.0 * gains.gyro_b0, gains.gyro_b0) == pytest.approx(tuple(b))
    assert (1.0, gains.gyro_a1, gains.gyro_a2) == pytest.approx(tuple(a))


@pytest.mark.parametrize("cutoff", [0.0, 125.0, 300.0])
def test_gyro_filter_is_off_at_zero_and_beyond_half_the_rate(cutoff: float) -> None:
    """PX4 takes IMU_GYRO_CUTOFF up to 1000 Hz and switches a filter off that its sample rate cannot carry."""
    gains = gains_from(changed(IMU_GYRO_CUTOFF=cutoff))
    raw = np.random.default_rng(1).standard_normal(2000)
    b = gains.gyro_b0 * np.array([1.0, 2.0, 1.0])
    assert signal.lfilter(b, [1.0, gains.gyro_a1, gains.gyro_a2], raw) == pytest.approx(raw)


def test_first_order_filters_reach_63_percent_after_their_time_constant() -> None:
    gains = gains_from(changed(MPC_VELD_LP=0.5))
    tau_steps = round(1.0 / (2.0 * math.pi * 0.5) / 0.012)
    assert 1.0 - (1.0 - gains.vel_deriv_alpha) ** tau_steps == pytest.approx(1.0 - math.exp(-1.0), abs=0.01)
    assert gains_from(changed(MPC_VELD_LP=0.0)).vel_deriv_alpha == 1.0


@pytest.mark.parametrize("name", NAMES)
def test_mixer_makes_pure_torques(name: str) -> None:
    """One unit of roll, pitch, yaw or thrust gives that and nothing else, by the rotors' own geometry."""
    values = shipped(name)
    mix, unmix = mixer_from(values)
    px, py, km = (np.array([values[f"CA_ROTOR{i}_{key}"] for i in range(4)]) for key in ("PX", "PY", "KM"))
    wrench = np.stack([-py, px, km, -np.ones(4)]) @ mix
    assert wrench - np.diag(np.diag(wrench)) == pytest.approx(0.0, abs=0.02)
    assert np.all(np.diag(wrench) > 0.0)
    assert unmix @ mix == pytest.approx(np.eye(4), abs=1e-12)


def test_square_quad_has_the_textbook_mixer() -> None:
    mix, _ = mixer_from(shipped("sihsim_quadx"))
    half = math.sqrt(0.5)
    textbook = [[-half, half, 1, -1], [half, -half, 1, -1], [half, half, -1, -1], [-half, -half, -1, -1]]
    assert mix == pytest.approx(np.array(textbook))


def test_reported_accuracy_counts_only_above_the_parameter() -> None:
    values = shipped("x500")
    coarse = assumed_noise(values, 0.9, 1.78, 0.4)
    assert (coarse.gps_horizontal_m, coarse.gps_vertical_m) == (0.9, 1.78)
    assert (coarse.gps_velocity_mps, coarse.gps_vertical_velocity_mps) == pytest.approx((0.4, 0.6))
    fine = assumed_noise(values, 0.01, 0.01, 0.01)
    assert (fine.gps_horizontal_m, fine.gps_vertical_m, fine.gps_velocity_mps) == pytest.approx((0.5, 0.75, 0.3))
