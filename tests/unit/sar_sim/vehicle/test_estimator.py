"""The estimate's error against textbook filter theory: Riccati for the gains, Lyapunov for what they leave over."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import linalg
from scipy.spatial.transform import Rotation

from sar_sim.vehicle import estimator as est
from sar_sim.vehicle.airframe import Vehicle, load_vehicle
from sar_sim.vehicle.estimator import AssumedNoise, FilterGains, design_filter
from sar_sim.vehicle.fleet import Fleet
from sar_sim.vehicle.rigidbody import BODY, QUAT
from sar_sim.vehicle.vehicle import estimated_attitude

Floats = NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[4]
ASSUMED = AssumedNoise(
    accel_mps2=0.35,
    gyro_rps=0.015,
    accel_bias_mps3=0.003,
    gps_horizontal_m=0.9,
    gps_vertical_m=1.78,
    gps_velocity_mps=0.4,
    gps_vertical_velocity_mps=0.6,
    heading_rad=0.3,
)
NOBODY = np.full(3, np.nan)
HOVER, QUIET = (0.0, 0.0, -9.80665), (0.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def vehicle() -> Vehicle:
    return load_vehicle(ROOT / "configs" / "vehicles" / "x500.yaml", ROOT / "px4_params" / "x500.params")


def patient_gains(
    coupling: float, third_std: float, position_std: float, speed_std: float, third_start: float
) -> tuple[Floats, Floats]:
    """Gains (position, velocity) of a plain Kalman filter run for ten minutes, averaged over its last eight fixes.

    It predicts every 12 ms and fuses a fix whenever 125 ms have passed since the one before, as EKF2 does.
    """
    dt = est.FILTER_DT
    transition = np.array([[1, dt, 0], [0, 1, coupling * dt], [0, 0, 1]])
    process = np.diag([0.0, (ASSUMED.accel_mps2 * dt) ** 2, (third_std * dt) ** 2])
    p, due = np.diag([1.0, 1.0, third_start**2]), est.GPS_PERIOD
    fixes: list[tuple[Floats, Floats]] = []
    for step in range(round(600.0 / dt)):
        p = transition @ p @ transition.T + process
        if (step + 1) * dt + 1e-9 >= due:
            due += est.GPS_PERIOD
            from_speed = p[:, 1] / (p[1, 1] + speed_std**2)
            p = p - np.outer(from_speed, p[1])
            from_position = p[:, 0] / (p[0, 0] + position_std**2)
            p = p - np.outer(from_position, p[0])
            fixes.append((from_position, from_speed))
    position, speed = np.mean(fixes[-8:], axis=0)
    return position, speed


def test_horizontal_gains_are_what_a_filter_settles_to() -> None:
    gains = design_filter(ASSUMED)
    position, speed = patient_gains(9.80665, ASSUMED.gyro_rps, 0.9, 0.4, third_start=0.1)
    assert gains.xy_from_pos == pytest.approx(tuple(position), rel=0.02)
    assert gains.xy_from_vel == pytest.approx(tuple(speed), rel=0.02)


def test_vertical_gains_are_what_a_filter_settles_to() -> None:
    gains = design_filter(ASSUMED)
    position, speed = patient_gains(-1.0, ASSUMED.accel_bias_mps3, 1.78, 0.6, third_start=0.01)
    assert gains.z_from_gps == pytest.approx(tuple(position), rel=0.03)
    assert gains.z_from_vel == pytest.approx(tuple(speed), rel=0.03)


def test_heading_gain_solves_its_scalar_riccati_equation() -> None:
    gain = design_filter(ASSUMED).heading
    q = (0.015 * est.FILTER_DT) ** 2 * est.HEADING_PERIOD / est.FILTER_DT
    p = linalg.solve_discrete_are(np.eye(1), np.eye(1), np.array([[q]]), np.array([[0.3**2]]))[0, 0]
    assert gain == pytest.approx(p / (p + 0.3**2), rel=1e-9)


def test_better_gps_is_trusted_more() -> None:
    good, poor = design_filter(replace(ASSUMED, gps_horizontal_m=0.5)), design_filter(ASSUMED)
    assert good.xy_from_pos[0] > poor.xy_from_pos[0] > 0.0


Gains = tuple[tuple[float, ...], tuple[float, ...]]


def textbook_second(
    g: Gains, lean: float, accel: float, gyro: float, gps_position: float, gps_speed: float
) -> tuple[Floats, Floats]:
    """What one second does to an error (position, velocity, third) under fixed gains (position, velocity).

    Returns the map and the covariance of the noise it adds. lean is how the third state accelerates the estimate; gyro
    noise drives the third state. Eight fixes fall into one second on a 4 ms grid.
    """
    dt = 0.004
    move = np.array([[1, dt, 0.5 * lean * dt * dt], [0, 1, lean * dt], [0, 0, 1]])
    shake = accel**2 * np.outer([dt * dt / 2, dt, 0], [dt * dt / 2, dt, 0]) + np.diag([0, 0, (gyro * dt) ** 2])
    from_position, from_speed = (np.array(k)[:, None] for k in g)
    see_position, see_speed = np.array([[1.0, 0, 0]]), np.array([[0, 1.0, 0]])
    total, noise = np.eye(3), np.zeros((3, 3))
    for step in range(1, 251):
        total, noise = move @ total, move @ noise @ move.T + shake
        if step in FIXES:
            for gain, see, std in ((from_speed, see_speed, gps_speed), (from_position, see_position, gps_position)):
                keep = np.eye(3) - gain @ see
                total, noise = keep @ total, keep @ noise @ keep.T + std**2 * gain @ gain.T
    return total, noise


FIXES = {math.ceil(k * 31.25) for k in range(1, 9)}


def test_without_noise_the_error_obeys_the_textbook_and_dies_out() -> None:
    """Level and unaccelerated, three axes apart: x with the tilt about east (negative), y with that about north, z with
    the bias. The slowest to die is the bias, learnt over minutes; all else is forgotten within half a minute."""
    gains, zeros = design_filter(ASSUMED), np.zeros(3)
    second = np.empty((est.ERROR, est.ERROR))
    for k in range(est.ERROR):
        error = np.eye(est.ERROR)[k]
        for step in range(1, 251):
            est.predict_error(error, HOVER, QUIET, QUIET, 0.004)
            if step in FIXES:
                est.fuse_gps(error, gains, zeros, zeros)
            if step % 5 == 0:
                est.fuse_heading(error, gains, 0.0)
        second[:, k] = error
    level, upright = (gains.xy_from_pos, gains.xy_from_vel), (gains.z_from_gps, gains.z_from_vel)
    wanted = np.zeros_like(second)
    for own, sign, g, lean in (
        ([0, 3, 7], -1.0, level, 9.80665),
        ([1, 4, 6], 1.0, level, 9.80665),
        ([2, 5, 9], 1.0, upright, -1.0),
    ):
        signs = np.array([1.0, 1.0, sign])
        wanted[np.ix_(own, own)] = signs[:, None] * textbook_second(g, lean, 0, 0, 0, 0)[0] * signs
    wanted[8, 8] = (1.0 - gains.heading) ** 50
    assert second == pytest.approx(wanted, abs=1e-12)
    sizes = np.sort(np.abs(np.linalg.eigvals(second)))
    assert sizes[-1] < math.exp(-1.0 / 300.0)
    assert sizes[-2] < math.exp(-1.0 / 30.0)


def spread(g: Gains, lean: float, accel: float, gyro: float, gps_position: float, gps_speed: float) -> Floats:
    """Stationary standard deviations of (position, velocity, third) at whole seconds."""
    return np.sqrt(
        np.diag(linalg.solve_discrete_lyapunov(*textbook_second(g, lean, accel, gyro, gps_position, gps_speed)))
    )


def test_hover_error_has_the_predicted_spread(vehicle: Vehicle) -> None:
    """64 hovering drones, looking north so that body axes are world axes, sampled at whole seconds."""
    spawns = np.array([[100.0 * i, 0.0, 30.0, math.pi / 2] for i in range(64)])
    fleet = Fleet(vehicle, spawns, seed=5, episode=0, in_air=True)
    for i, (x, y, z, yaw) in enumerate(spawns):
        fleet.command(i, np.array([x, y, z]), NOBODY, NOBODY, yaw)
    fleet.warm_up(60.0)
    samples = []
    for _ in range(40):
        fleet.tick(250)
        samples.append(np.array([fleet.state_ned(i)[1] for i in range(64)]))
    seen = np.sqrt(np.mean(np.square(samples), axis=(0, 1)))
    k, s = vehicle.filter_gains, vehicle.noise
    for axis, sideways in ((0, 1), (1, 0)):
        wanted = spread(
            (k.xy_from_pos, k.xy_from_vel), 9.80665, s.accel[axis], s.gyro[sideways], s.gps_pos[axis], s.gps_vel[axis]
        )
        got = seen[est.E_POS + axis], seen[est.E_VEL + axis], seen[est.E_ATT + sideways]
        assert got == pytest.approx(tuple(wanted), rel=0.12)
    wanted = spread((k.z_from_gps, k.z_from_vel), -1.0, s.accel[2], 0.0, s.gps_pos[2], s.gps_vel[2])
    got = seen[est.E_POS + 2], seen[est.E_VEL + 2]
    assert got == pytest.approx(tuple(wanted[:2]), rel=0.12)
    keep = (1.0 - k.heading) ** 2
    heading = (keep * 5 * (s.gyro[2] * 0.004) ** 2 + (k.heading * s.heading) ** 2) / (1.0 - keep)
    assert seen[est.E_ATT + 2] == pytest.approx(math.sqrt(heading), rel=0.15)


def test_without_noise_the_estimate_is_the_truth(vehicle: Vehicle) -> None:
    fleet = Fleet(vehicle, np.array([[0.0, 0.0, 30.0, 0.0]]), 1, 0, in_air=True, with_noise=False)
    fleet.command(0, np.array([10.0, 0.0, 30.0]), NOBODY, NOBODY, 1.0)
    fleet.tick(1000)
    state = fleet.snapshot()
    assert np.array_equal(state.est_position, state.position)
    assert np.array_equal(state.est_attitude, state.attitude)


def test_tilt_error_pulls_the_way_gravity_says() -> None:
    """Believing itself pitched up (about east) by a hundredth, the estimate accelerates south by g / 100."""
    error = np.zeros(est.ERROR)
    error[est.E_ATT + 1] = 0.01
    est.predict_error(error, HOVER, QUIET, QUIET, 0.004)
    assert error[est.E_VEL] == pytest.approx(-0.0980665 * 0.004)
    assert error[est.E_VEL + 1] == 0.0
    gains = FilterGains((0.0, 0.0, 0.0), (0.0, 0.1, 0.01), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0)
    est.fuse_gps(error, gains, np.zeros(3), np.zeros(3))
    assert error[est.E_ATT + 1] < 0.01


@pytest.mark.parametrize("yaw", [-2.5, -0.5, 0.11, 1.5, 3.0])
def test_a_large_heading_error_turns_the_estimate_exactly(yaw: float) -> None:
    """Against scipy's rotations: the attitude, and the specific force that the estimate believes in."""
    error = np.zeros(est.ERROR)
    error[est.E_ATT : est.E_ATT + 3] = 0.01, -0.02, yaw
    true = Rotation.from_euler("ZYX", [0.7, 0.2, -0.3])
    body = np.zeros(BODY)
    body[QUAT : QUAT + 4] = true.as_quat()[[3, 0, 1, 2]]
    believed = np.empty(4)
    estimated_attitude(body, error, believed)
    wanted = Rotation.from_rotvec([0.01, -0.02, 0.0]) * Rotation.from_rotvec([0.0, 0.0, yaw]) * true
    assert (Rotation.from_quat(believed[[1, 2, 3, 0]]) * wanted.inv()).magnitude() < 1e-4
    force = np.array([2.0, -1.0, -9.5])
    est.predict_error(error, (2.0, -1.0, -9.5), QUIET, QUIET, 0.004)
    shift = (wanted * true.inv()).apply(force) - force
    assert error[est.E_VEL : est.E_VEL + 2] / 0.004 == pytest.approx(shift[:2], abs=0.08)


def test_small_and_large_heading_errors_meet() -> None:
    body, here, there = np.zeros(BODY), np.empty(4), np.empty(4)
    body[QUAT : QUAT + 4] = Rotation.from_euler("ZYX", [0.7, 0.2, -0.3]).as_quat()[[3, 0, 1, 2]]
    error = np.zeros(est.ERROR)
    error[est.E_ATT : est.E_ATT + 3] = 0.01, -0.02, est.LARGE_YAW_RAD
    estimated_attitude(body, error, here)
    error[est.E_ATT + 2] += 1e-9
    estimated_attitude(body, error, there)
    assert here == pytest.approx(there, abs=6e-4)
