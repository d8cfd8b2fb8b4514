"""The rigid body against closed forms and scipy: falling, turning, drag, motor lag, contact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from sar_core.geometry import box, cylinder, distance_to
from sar_sim.vehicle.airframe import Vehicle, load_vehicle
from sar_sim.vehicle.fleet import Fleet
from sar_sim.vehicle.rigidbody import (
    BODY,
    GRAVITY,
    QUAT,
    RATE,
    ROTOR,
    Airframe,
    hold_on_ground,
    integrate,
    part_vehicles,
    push_out,
    rotate,
    rotor_decay,
)
from sar_sim.vehicle.rows import as_record
from sar_sim.vehicle.vehicle import STEP_S

Floats = NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[4]
FREE = np.full(3, np.nan)
ONES = np.ones(4)


def load(name: str) -> Vehicle:
    return load_vehicle(ROOT / "configs" / "vehicles" / f"{name}.yaml", ROOT / "px4_params" / f"{name}.params")


@pytest.fixture(scope="module")
def x500() -> Vehicle:
    return load("x500")


@pytest.fixture(scope="module")
def sih() -> Vehicle:
    return load("sihsim_quadx")


def level(yaw: float = 0.0) -> Floats:
    body = np.zeros(BODY)
    body[QUAT], body[QUAT + 3] = math.cos(yaw / 2), math.sin(yaw / 2)
    return body


@dataclass(frozen=True)
class Flow:
    """A body row carried by repeated Runge-Kutta steps towards constant rotor targets in steady air."""

    frame: Airframe
    target: Floats
    air: Floats

    def run(self, body: Floats, seconds: float, dt: float = STEP_S) -> Floats:
        body = body.copy()
        record, decay, half = as_record(self.frame)[0], rotor_decay(self.frame, dt), np.zeros(4)
        for _ in range(round(seconds / dt)):
            integrate(body, body[ROTOR:], self.target, ONES, self.air, record, decay, half, dt)
        return body

    def exact(self, body: Floats, seconds: float) -> Floats:
        """The same by scipy: textbook equations of motion with the rotors' lag as part of the state."""
        f, inertia = self.frame, np.diag([self.frame.inertia_x, self.frame.inertia_y, self.frame.inertia_z])
        arms = np.stack([f.rotor_x, f.rotor_y, np.zeros(4)], axis=1)
        spins = np.array([1.0, 1.0, -1.0, -1.0]) * f.moment_ratio

        def rate_of_change(_: float, s: Floats) -> Floats:
            turn = Rotation.from_quat(s[[7, 8, 9, 6]])
            speed, omega = s[ROTOR:], s[RATE : RATE + 3]
            pull = f.thrust_max * speed**f.thrust_exponent
            lift = np.array([[0.0, 0.0, -t] for t in pull])
            reaction = np.array([0.0, 0.0, spins @ pull])
            torque = np.cross(arms, lift).sum(axis=0) + reaction - f.drag_angular * omega
            relative = s[3:6] - self.air
            sideways = turn.inv().apply(relative) * [1.0, 1.0, 0.0]
            force = turn.apply(lift.sum(axis=0) - f.drag_rotor * speed.sum() * sideways) - f.drag_linear * relative
            w, v = s[6], s[7:10]
            quaternion = 0.5 * np.array([-v @ omega, *(w * omega + np.cross(v, omega))])
            spin_up = np.linalg.solve(inertia, torque - np.cross(omega, inertia @ omega))
            lag = np.where(speed < self.target, f.lag_up, f.lag_down)
            return np.concatenate(
                [s[3:6], force / f.mass + [0, 0, GRAVITY], quaternion, spin_up, (self.target - speed) / lag]
            )

        out = solve_ivp(rate_of_change, (0.0, seconds), body, method="DOP853", rtol=1e-11, atol=1e-12)
        return np.asarray(out.y[:, -1])


def tumbling() -> Floats:
    """A body in the middle of an unpleasant manoeuvre."""
    body = np.zeros(BODY)
    body[0:3], body[3:6] = (1.0, -2.0, -30.0), (4.0, -3.0, 1.0)
    body[QUAT : QUAT + 4] = Rotation.from_euler("ZYX", [0.7, 0.3, -0.5]).as_quat()[[3, 0, 1, 2]]
    body[RATE : RATE + 3] = 1.0, -1.5, 0.8
    body[ROTOR:] = 0.9, 0.5, 0.6, 0.8
    return body


MIXED = np.array([0.6, 0.8, 0.75, 0.55])
BREEZE = np.array([2.0, 1.0, 0.3])


def test_free_fall_is_the_parabola(x500: Vehicle) -> None:
    body = level()
    body[3:6] = 3.0, -2.0, -5.0
    fallen = Flow(x500.airframe, np.zeros(4), np.zeros(3)).run(body, 2.0)
    assert fallen[0:3] == pytest.approx([6.0, -4.0, -10.0 + 0.5 * GRAVITY * 4.0], abs=1e-9)
    assert fallen[3:6] == pytest.approx([3.0, -2.0, -5.0 + 2.0 * GRAVITY], abs=1e-9)


def test_constant_thrust_is_constant_acceleration(x500: Vehicle) -> None:
    """Leaning by 30 degrees to the right with all rotors at full: a = T / m along the body's up axis, plus gravity."""
    frame = x500.airframe._replace(drag_rotor=0.0)
    body = level()
    body[QUAT : QUAT + 4] = math.cos(math.pi / 12), math.sin(math.pi / 12), 0.0, 0.0
    body[ROTOR:] = 1.0
    after = Flow(frame, ONES, np.zeros(3)).run(body, 1.0)
    pull = 4.0 * frame.thrust_max / frame.mass
    assert after[3:6] == pytest.approx([0.0, 0.5 * pull, GRAVITY - math.sqrt(0.75) * pull], abs=1e-9)


def test_terminal_velocity_is_weight_over_drag(sih: Vehicle) -> None:
    """Linear drag 1 N/(m/s): falling 1 kg approaches 9.81 m/s above the air's own sinking, as 1 - exp(-t)."""
    air = np.array([0.0, 0.0, 2.0])
    flow = Flow(sih.airframe, np.zeros(4), air)
    body = level()
    body[3:6] = air
    assert flow.run(body, 3.0)[5] - 2.0 == pytest.approx(GRAVITY * (1.0 - math.exp(-3.0)), abs=1e-8)
    assert flow.run(body, 30.0)[5] - 2.0 == pytest.approx(GRAVITY, abs=1e-6)


def test_wind_carries_a_hovering_vehicle_with_it(x500: Vehicle) -> None:
    """Rotor drag alone, rotors at hover speed: the speed relative to the air dies out as exp(-k sum(speed) t / m)."""
    f = x500.airframe
    hover = math.sqrt(f.mass * GRAVITY / (4.0 * f.thrust_max))
    body = level()
    body[ROTOR:] = hover
    after = Flow(f, np.full(4, hover), np.array([5.0, 0.0, 0.0])).run(body, 4.0)
    assert after[3] == pytest.approx(5.0 * (1.0 - math.exp(-f.drag_rotor * 4.0 * hover * 4.0 / f.mass)), rel=1e-6)
    assert after[5] == pytest.approx(0.0, abs=1e-9)


def test_free_spin_keeps_its_angular_momentum_and_energy(x500: Vehicle) -> None:
    """Torque-free precession of an asymmetric body, against scipy and against the two conserved quantities."""
    frame = x500.airframe._replace(inertia_y=0.03)
    flow = Flow(frame, np.zeros(4), np.zeros(3))
    body = level(0.4)
    body[RATE : RATE + 3] = 0.2, 6.0, 1.0
    inertia = np.array([frame.inertia_x, frame.inertia_y, frame.inertia_z])

    def conserved(s: Floats) -> Floats:
        spin = inertia * s[RATE : RATE + 3]
        momentum = Rotation.from_quat(s[[7, 8, 9, 6]]).apply(spin)
        return np.array([*momentum, 0.5 * spin @ s[RATE : RATE + 3]])

    after = flow.run(body, 5.0)
    assert conserved(after) == pytest.approx(conserved(body), rel=1e-5, abs=1e-6)
    assert after[RATE : RATE + 3] == pytest.approx(flow.exact(body, 5.0)[RATE : RATE + 3], abs=1e-4)


def test_turning_at_a_steady_rate_is_scipys_rotation(x500: Vehicle) -> None:
    """Equal moments of inertia and no torque: the attitude after 2 s is one rotation about a fixed axis."""
    frame = x500.airframe._replace(inertia_x=0.02, inertia_y=0.02, inertia_z=0.02)
    body = tumbling()
    body[ROTOR:] = 0.0
    after = Flow(frame, np.zeros(4), np.zeros(3)).run(body, 2.0)
    start = Rotation.from_quat(body[[7, 8, 9, 6]])
    expected = start * Rotation.from_rotvec(2.0 * body[RATE : RATE + 3])
    assert (expected.inv() * Rotation.from_quat(after[[7, 8, 9, 6]])).magnitude() < 1e-6


@pytest.mark.parametrize("name", ["x500", "sihsim_quadx"])
def test_whole_motion_agrees_with_scipy(name: str) -> None:
    flow = Flow(load(name).airframe, MIXED, BREEZE)
    ours, scipys = flow.run(tumbling(), 1.0), flow.exact(tumbling(), 1.0)
    assert ours[0:3] == pytest.approx(scipys[0:3], abs=1e-4)
    assert ours[3:] == pytest.approx(scipys[3:], abs=1e-3)


@pytest.mark.parametrize("name", ["x500", "sihsim_quadx"])
def test_error_falls_with_the_fourth_power_of_the_step(name: str) -> None:
    """Motor lag included: halving the step divides the error by about 16, not by 2 as with a lag frozen per step."""
    flow = Flow(load(name).airframe, MIXED, BREEZE)
    truth = flow.exact(tumbling(), 0.8)
    errors = [float(np.abs(flow.run(tumbling(), 0.8, dt) - truth)[:13].max()) for dt in (0.016, 0.008, 0.004)]
    orders = [math.log2(a / b) for a, b in pairwise(errors)]
    assert min(orders) > 3.5
    assert errors[-1] < 1e-5


@given(
    st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: sum(x * x for x in q) > 1e-3),
    st.tuples(*[st.floats(-50, 50)] * 3),
)
def test_rotate_is_scipys_rotation(quaternion: tuple[float, ...], vector: tuple[float, ...]) -> None:
    q = np.array(quaternion) / np.linalg.norm(quaternion)
    turned = rotate(*q, *vector)
    assert turned == pytest.approx(tuple(Rotation.from_quat(q[[1, 2, 3, 0]]).apply(vector)), abs=1e-9)
    assert rotate(q[0], *-q[1:], *turned) == pytest.approx(vector, abs=1e-9)


def test_feet_stay_on_the_ground_until_the_rotors_carry(x500: Vehicle) -> None:
    record, f = as_record(x500.airframe)[0], x500.airframe
    body = level(1.0)
    body[2], body[3:6] = 0.1, (1.0, 2.0, 3.0)
    body[RATE : RATE + 3] = 1.0
    assert hold_on_ground(body, record)
    assert body[2] == -f.gear_height and not body[3:6].any() and not body[RATE : RATE + 3].any()
    assert 2.0 * math.atan2(body[QUAT + 3], body[QUAT]) == pytest.approx(1.0)
    body[ROTOR:], body[5] = 1.0, -0.1
    assert hold_on_ground(body, record)
    assert body[5] == -0.1
    body[2] = -1.0
    assert not hold_on_ground(body, record)


@given(
    st.tuples(st.floats(-6, 6), st.floats(-6, 6), st.floats(0.5, 12)),
    st.tuples(*[st.floats(-9, 9)] * 3),
    st.booleans(),
)
def test_contact_pushes_out_and_takes_energy(
    where: tuple[float, float, float], velocity: tuple[float, float, float], round_one: bool
) -> None:
    row = cylinder(0, 0, 5, 2.5, 10) if round_one else box(0, 0, 5, 4, 6, 10, 0.5)
    x, y, z = where
    body = level()
    body[0:3], body[3:6] = (y, x, -z), velocity
    before = distance_to(row, x, y, z)
    push_out(body, row, 0.386)
    after = distance_to(row, body[1], body[0], -body[2])
    if before >= 0.386:
        assert np.array_equal(body[0:3], (y, x, -z)) and np.array_equal(body[3:6], velocity)
    elif before > 0.0:
        assert after == pytest.approx(0.386, abs=0.02)
    assert np.linalg.norm(body[3:6]) <= np.linalg.norm(velocity) + 1e-9


@given(st.tuples(*[st.floats(-0.5, 0.5)] * 3), st.tuples(*[st.floats(-9, 9)] * 6))
def test_hulls_part_with_momentum_kept_and_energy_lost(
    offset: tuple[float, float, float], speeds: tuple[float, ...]
) -> None:
    bodies = np.stack([level(), level()])
    bodies[1, 0:3] = offset
    bodies[0, 3:6], bodies[1, 3:6] = speeds[:3], speeds[3:]
    before = bodies.copy()
    part_vehicles(bodies, 0.386)
    gap = np.linalg.norm(before[0, 0:3] - before[1, 0:3])
    if 1e-6 < gap < 0.772:
        assert np.linalg.norm(bodies[0, 0:3] - bodies[1, 0:3]) == pytest.approx(0.772)
    assert bodies[:, 0:6].sum(axis=0) == pytest.approx(before[:, 0:6].sum(axis=0), abs=1e-9)
    assert np.sum(bodies[:, 3:6] ** 2) <= np.sum(before[:, 3:6] ** 2) + 1e-9


def flown(fleet: Fleet, seconds: float) -> Floats:
    """True positions [T, N, 3] over some seconds."""
    return fleet.tick(round(seconds / STEP_S))[1:]


@pytest.mark.parametrize(
    "obstacle",
    [box(20, 0, 30, 0.2, 40, 60), box(20, 0, 30, 4, 40, 60, 0.3), cylinder(20, 0, 30, 1.5, 60)],
    ids=["thin wall", "slanted block", "trunk"],
)
def test_flying_into_an_obstacle_neither_tunnels_nor_explodes(x500: Vehicle, obstacle: Floats) -> None:
    spawn = np.array([[0.0, 0.0, 30.0, 0.0]])
    fleet = Fleet(x500, spawn, 1, 0, obstacles=obstacle[None, :], in_air=True)
    fleet.command(0, FREE, np.array([12.0, 0.0, 0.0]), FREE, 0.0)
    track = flown(fleet, 20.0)[:, 0]
    gaps = np.array([distance_to(obstacle, *at) for at in track])
    assert gaps.min() > x500.airframe.hull_radius - 0.01
    assert gaps.min() < x500.airframe.hull_radius + 0.01
    assert np.isfinite(track).all()
    assert np.linalg.norm(np.diff(track, axis=0), axis=1).max() < 14.0 * STEP_S


def test_two_vehicles_flown_into_each_other_stay_apart(x500: Vehicle) -> None:
    spawns = np.array([[-10.0, 0.0, 30.0, 0.0], [10.0, 0.05, 30.0, math.pi]])
    fleet = Fleet(x500, spawns, 1, 0, in_air=True)
    fleet.command(0, FREE, np.array([6.0, 0.0, 0.0]), FREE, 0.0)
    fleet.command(1, FREE, np.array([-6.0, 0.0, 0.0]), FREE, math.pi)
    track = flown(fleet, 10.0)
    gap = np.linalg.norm(track[:, 0] - track[:, 1], axis=1)
    assert gap.min() > 2.0 * x500.airframe.hull_radius - 1e-6
    assert gap.min() < 2.0 * x500.airframe.hull_radius + 0.05
    assert np.linalg.norm(np.diff(track, axis=0), axis=2).max() < 14.0 * STEP_S


@settings(max_examples=10)
@given(st.floats(0.2, 0.6))
def test_dropped_from_some_height_it_lands_and_stays(height: float) -> None:
    vehicle = load("x500")
    fleet = Fleet(vehicle, np.array([[3.0, 4.0, height, 0.3]]), 1, 0, in_air=True, with_noise=False)
    fleet.armed[:] = False
    track = flown(fleet, 3.0)[:, 0]
    assert track[-1] == pytest.approx([3.0, 4.0, vehicle.airframe.gear_height], abs=1e-3)
    assert track[:, 2].min() >= vehicle.airframe.gear_height - 1e-9
