"""PX4's control law as a user meets it: limits, OFFBOARD setpoints, take-off and landing; and its parts by oracle."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sar_sim.vehicle import autopilot as ap
from sar_sim.vehicle.airframe import Vehicle, load_vehicle
from sar_sim.vehicle.fleet import Fleet
from sar_sim.vehicle.positioncontrol import (
    attitude_from_thrust,
    constrain_xy,
    is_flyable,
    update_hover_thrust,
    use_hover_thrust,
)

Floats = NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[4]
NAN = math.nan
NAMES = ["x500", "sihsim_quadx"]


def load(name: str, folder: Path | None = None, **changes: float) -> Vehicle:
    """A shipped vehicle, with some of its PX4 parameters changed."""
    params = ROOT / "px4_params" / f"{name}.params"
    if changes:
        assert folder is not None
        lines = [line.split("\t") for line in params.read_text(encoding="utf-8").splitlines() if line[0] != "#"]
        for fields in lines:
            fields[3] = str(changes.get(fields[2], fields[3]))
        params = folder / f"{name}.params"
        params.write_text("\n".join("\t".join(fields) for fields in lines), encoding="utf-8")
    return load_vehicle(ROOT / "configs" / "vehicles" / f"{name}.yaml", params)


@pytest.fixture(scope="module", params=NAMES)
def vehicle(request: pytest.FixtureRequest) -> Vehicle:
    return load(request.param)


def setpoint(
    position: tuple[float, float, float] = (NAN, NAN, NAN),
    velocity: tuple[float, float, float] = (NAN, NAN, NAN),
    acceleration: tuple[float, float, float] = (NAN, NAN, NAN),
    yaw: float = 0.0,
    yaw_rate: float = NAN,
) -> Floats:
    return np.array([*position, *velocity, *acceleration, yaw, yaw_rate])


def hovering(vehicle: Vehicle, wind: tuple[float, float, float] = (0.0, 0.0, 0.0), noise: bool = False) -> Fleet:
    """One vehicle at rest 30 m above the origin, nose north, everything settled. Wind in ENU."""
    fleet = Fleet(vehicle, np.array([[0, 0, 30.0, math.pi / 2]]), 1, 0, np.array(wind), in_air=True, with_noise=noise)
    fleet.command_ned(0, setpoint(position=(0, 0, -30)))
    fleet.warm_up(25.0)
    return fleet


def body_of(fleet: Fleet) -> Floats:
    return fleet.state_ned(0)[0]


def fly(fleet: Fleet, row: Floats, seconds: float) -> Floats:
    """Body rows [T, 17], NED, sampled at 250 Hz while one setpoint stands."""
    fleet.command_ned(0, row)
    rows = np.empty((round(seconds * 250), 17))
    for k in range(len(rows)):
        fleet.tick(1)
        rows[k] = body_of(fleet)
    return rows


def tilt_of(rows: Floats) -> Floats:
    return np.asarray(np.arccos(np.clip(1.0 - 2.0 * (rows[:, 7] ** 2 + rows[:, 8] ** 2), -1.0, 1.0)))


def yaw_of(rows: Floats) -> Floats:
    w, x, y, z = rows[:, 6:10].T
    return np.asarray(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))


def test_hover_without_noise_is_still_to_the_centimetre(vehicle: Vehicle) -> None:
    rows = fly(hovering(vehicle), setpoint(position=(0, 0, -30)), 10.0)
    assert np.abs(rows[:, 0:3] - [0, 0, -30]).max() < 0.01
    assert np.abs(rows[:, 3:6]).max() < 0.01


def test_steady_wind_is_leaned_into(vehicle: Vehicle) -> None:
    """The integrator takes the wind up: on the spot after a while, leaning against it."""
    fleet = hovering(vehicle, wind=(0.0, -3.0, 0.0))
    rows = fly(fleet, setpoint(position=(0, 0, -30)), 20.0)
    assert np.abs(rows[-1, 0:3] - [0, 0, -30]).max() < 0.05
    pitch = math.asin(2.0 * (rows[-1, 6] * rows[-1, 8] - rows[-1, 9] * rows[-1, 7]))
    assert pitch < -0.01


def test_limits_of_tilt_and_speed_are_obeyed(vehicle: Vehicle) -> None:
    rows = fly(hovering(vehicle), setpoint(position=(300, 100, -30)), 20.0)
    assert math.degrees(tilt_of(rows).max()) < 45.0 + 4.0
    assert math.degrees(tilt_of(rows).max()) > 30.0
    assert np.hypot(rows[:, 3], rows[:, 4]).max() < 12.0 * 1.03


def test_smaller_limits_in_the_parameter_file_bind(tmp_path: Path) -> None:
    vehicle = load("x500", tmp_path, MPC_XY_VEL_MAX=4.0, MPC_TILTMAX_AIR=20.0, MC_YAWRATE_MAX=40.0)
    rows = fly(hovering(vehicle), setpoint(position=(100, 0, -30), yaw=3.0), 12.0)
    assert np.hypot(rows[:, 3], rows[:, 4]).max() < 4.0 * 1.05
    assert math.degrees(tilt_of(rows).max()) < 20.0 * 1.15
    assert 36.0 < math.degrees(np.abs(rows[:, 12]).max()) < 40.0 * 1.15


def test_climb_and_sink_rates_are_limited(vehicle: Vehicle) -> None:
    fleet = hovering(vehicle)
    up = fly(fleet, setpoint(position=(0, 0, -60)), 8.0)
    down = fly(fleet, setpoint(position=(0, 0, -20)), 8.0)
    assert -up[:, 5].min() < 3.0 * 1.05
    assert -np.median(up[-500:, 5]) == pytest.approx(3.0, rel=0.05)
    assert np.median(down[-250:, 5]) == pytest.approx(1.5, rel=0.05)


def test_yaw_rate_stays_within_its_limit(vehicle: Vehicle) -> None:
    rows = fly(hovering(vehicle), setpoint(position=(0, 0, -30), yaw=3.1), 6.0)
    assert 100.0 < math.degrees(np.abs(rows[:, 12]).max()) < 200.0 * 1.15
    assert yaw_of(rows)[-1] == pytest.approx(3.1, abs=0.02)
    assert np.abs(rows[:, 0:2]).max() < 0.3


def test_position_only(vehicle: Vehicle) -> None:
    rows = fly(hovering(vehicle), setpoint(position=(10, -4, -33), yaw=0.5), 25.0)
    assert rows[-1, 0:3] == pytest.approx([10, -4, -33], abs=0.05)
    assert yaw_of(rows)[-1] == pytest.approx(0.5, abs=0.01)


def test_velocity_only(vehicle: Vehicle) -> None:
    """Velocity in all axes and no position: it goes that way, and altitude follows the commanded climb."""
    rows = fly(hovering(vehicle), setpoint(velocity=(3, -1, -0.5)), 40.0)
    assert rows[-1, 3:6] == pytest.approx([3, -1, -0.5], abs=0.15)


def test_velocity_across_and_position_in_height(vehicle: Vehicle) -> None:
    """What the swarm sends: horizontal velocity, altitude held."""
    rows = fly(hovering(vehicle), setpoint(position=(NAN, NAN, -32), velocity=(5, 0, NAN)), 40.0)
    assert rows[-1, 3:5] == pytest.approx([5, 0], abs=0.15)
    assert rows[-1, 2] == pytest.approx(-32, abs=0.1)


def test_position_with_velocity_feed_forward_lags_less(vehicle: Vehicle) -> None:
    """A target moving at 4 m/s: without the feed-forward the lag is about v / MPC_XY_P, with it far less."""

    def lag(feed_forward: float) -> float:
        fleet = hovering(vehicle)
        for k in range(20 * 20):
            row = setpoint(position=(4.0 * k / 20, 0, -30), velocity=(feed_forward, 0, 0))
            fleet.command_ned(0, row)
            fleet.tick(12 + k % 2)
        return float(4.0 * fleet.step * 0.004 - body_of(fleet)[0])

    assert lag(0.0) > 3.0
    assert abs(lag(4.0)) < 0.5 * lag(0.0)


def test_acceleration_only_tilts_by_its_ratio_to_gravity(vehicle: Vehicle) -> None:
    rows = fly(hovering(vehicle), setpoint(acceleration=(2.0, 0.0, 0.0)), 1.5)
    assert tilt_of(rows)[-1] == pytest.approx(math.atan(2.0 / 9.80665), abs=0.01)
    assert rows[-1, 7] == pytest.approx(0.0, abs=1e-3)


def test_acceleration_feed_forward_adds_to_velocity_control(vehicle: Vehicle) -> None:
    plain = fly(hovering(vehicle), setpoint(velocity=(3, 0, 0)), 0.6)[-1, 3]
    pushed = fly(hovering(vehicle), setpoint(velocity=(3, 0, 0), acceleration=(2, 0, 0)), 0.6)[-1, 3]
    assert pushed > plain + 0.15


def test_without_a_yaw_the_heading_is_kept(vehicle: Vehicle) -> None:
    fleet = hovering(vehicle)
    fly(fleet, setpoint(position=(0, 0, -30), yaw=1.0), 6.0)
    rows = fly(fleet, setpoint(position=(5, 0, -30), yaw=NAN), 6.0)
    assert np.abs(yaw_of(rows) - 1.0).max() < 0.1


def test_yaw_rate_alone_turns_at_that_rate(vehicle: Vehicle) -> None:
    rows = fly(hovering(vehicle), setpoint(position=(0, 0, -30), yaw=NAN, yaw_rate=0.5), 8.0)
    assert rows[-500:, 12].mean() == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    "row",
    [
        setpoint(),
        setpoint(position=(NAN, NAN, -30)),
        setpoint(position=(50, NAN, -30)),
        setpoint(position=(NAN, NAN, -30), velocity=(5, NAN, NAN)),
        setpoint(velocity=(5, 5, NAN)),
    ],
    ids=["nothing", "height only", "half a position", "half a velocity", "no height"],
)
def test_a_setpoint_that_says_too_little_stops_the_vehicle(vehicle: Vehicle, row: Floats) -> None:
    """PX4 calls it invalid, stops and waits; it neither drifts off with the wind nor obeys the part it got."""
    fleet = hovering(vehicle, wind=(0.0, 3.0, 0.0))
    fly(fleet, setpoint(velocity=(4, 0, 0)), 5.0)
    rows = fly(fleet, row, 30.0)
    assert np.abs(rows[-250:, 3:6]).max() < 0.1
    assert abs(rows[-1, 2] + 30.0) < 1.0


@pytest.mark.parametrize("noise", [False, True])
def test_take_off_waits_spools_ramps_and_climbs(vehicle: Vehicle, noise: bool) -> None:
    """One second of spool-up; then the climb limit rises from -g / MPC_Z_VEL_P_ACC to 3 m/s in 3 s and passes 0, where
    thrust equals MPC_THR_HOVER, after 1.35 s."""
    fleet = Fleet(vehicle, np.array([[0, 0, 0, math.pi / 2]]), 1, 0, with_noise=noise)
    fleet.command_ned(0, setpoint(position=(0, 0, -10)))
    fleet.warm_up(10.0)
    assert body_of(fleet)[2] == pytest.approx(-vehicle.airframe.gear_height)
    assert fleet.snapshot().landed[0]
    fleet.armed[:] = True
    rows = fly(fleet, setpoint(position=(0, 0, -10)), 14.0)
    height = -rows[:, 2] - vehicle.airframe.gear_height
    left = np.argmax(height > 0.05) * 0.004
    assert 1.0 + 1.3 < left < 1.0 + 3.0
    assert np.abs(rows[:250, 3:6]).max() < 1e-9
    assert -rows[:, 5].min() < 3.0 * 1.1
    assert height[-1] == pytest.approx(10.0 - vehicle.airframe.gear_height, abs=1.5 if noise else 0.1)
    assert not fleet.snapshot().landed[0]


def test_armed_without_a_wish_to_climb_it_stays_down(vehicle: Vehicle) -> None:
    fleet = Fleet(vehicle, np.array([[0, 0, 0, 0.0]]), 1, 0)
    fleet.armed[:] = True
    rows = fly(fleet, setpoint(position=(3, 3, 5.0)), 6.0)
    assert np.abs(rows[:, 3:6]).max() < 1e-9
    assert fleet.snapshot().landed[0]


def test_landing_is_noticed_on_the_ground_and_not_before(vehicle: Vehicle) -> None:
    fleet = hovering(vehicle, noise=True)
    fly(fleet, setpoint(position=(0, 0, -3)), 25.0)
    fleet.command_ned(0, setpoint(position=(0, 0, NAN), velocity=(0, 0, 0.6)))
    touched = None
    for k in range(250 * 15):
        fleet.tick(1)
        if touched is None and body_of(fleet)[2] + vehicle.airframe.gear_height > -1e-3:
            touched = k * 0.004
        if fleet.snapshot().landed[0]:
            assert touched is not None
            assert 0.5 < k * 0.004 - touched < 4.0
            break
    else:
        pytest.fail("never landed")
    fleet.armed[:] = False
    rows = fly(fleet, setpoint(), 2.0)
    assert np.abs(rows[:, 3:6]).max() < 1e-9
    assert rows[-1, 13:17].max() < 0.01


def test_it_flies_again_after_landing(vehicle: Vehicle) -> None:
    fleet = hovering(vehicle)
    fly(fleet, setpoint(position=(0, 0, NAN), velocity=(0, 0, 1.0)), 40.0)
    assert fleet.snapshot().landed[0]
    fleet.armed[:] = False
    fly(fleet, setpoint(), 2.0)
    fleet.armed[:] = True
    rows = fly(fleet, setpoint(position=(0, 0, -8)), 15.0)
    assert rows[-1, 2] == pytest.approx(-8.0, abs=0.2)


# ---- parts of the law, each against an oracle

GAINS = load("x500").constants["gains"][0]
numbers = st.floats(-20, 20)


@given(numbers, numbers, numbers, numbers, st.floats(0.5, 15))
def test_constrained_velocity_keeps_the_limit_and_the_priority(
    ax: float, ay: float, bx: float, by: float, limit: float
) -> None:
    x, y = constrain_xy(ax, ay, bx, by, limit)
    assert math.hypot(x, y) <= limit * (1 + 1e-6) + 1e-3
    if math.hypot(ax + bx, ay + by) <= limit:
        assert (x, y) == (ax + bx, ay + by)
    elif math.hypot(ax, ay) >= limit:
        assert (x, y) == pytest.approx((ax / math.hypot(ax, ay) * limit, ay / math.hypot(ax, ay) * limit))
    elif math.hypot(ax, ay) > 0.001 and math.hypot(bx - ax, by - ay) > 0.001:
        assert abs((x - ax) * by - (y - ay) * bx) < 1e-6 * max(1.0, math.hypot(bx, by)) * limit


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(1.0, 15.0), st.floats(-math.pi, math.pi))
def test_attitude_setpoint_points_the_thrust_and_the_nose(x: float, y: float, z: float, yaw: float) -> None:
    memory = np.zeros(ap.MEMORY)
    memory[ap.YAW_SP] = yaw
    attitude_from_thrust(memory, x, y, z)
    turn = Rotation.from_quat(memory[[ap.Q_SP + 1, ap.Q_SP + 2, ap.Q_SP + 3, ap.Q_SP]])
    assert turn.apply([0, 0, 1]) == pytest.approx(np.array([x, y, z]) / math.sqrt(x * x + y * y + z * z), abs=1e-9)
    nose = turn.apply([1, 0, 0])
    assert (math.atan2(nose[1], nose[0]) - yaw + math.pi) % (2 * math.pi) - math.pi == pytest.approx(0.0, abs=1e-9)


def attitude_rates(wanted: Rotation, now: Rotation, yaw_rate: float = NAN) -> Floats:
    memory = np.zeros(ap.MEMORY)
    memory[ap.Q_SP : ap.Q_SP + 4] = wanted.as_quat()[[3, 0, 1, 2]]
    return np.array(ap.attitude_step(memory, GAINS, now.as_quat()[[3, 0, 1, 2]], yaw_rate))


angles = st.tuples(st.floats(-0.02, 0.02), st.floats(-0.02, 0.02), st.floats(-0.02, 0.02))


@given(angles, st.tuples(st.floats(-0.6, 0.6), st.floats(-0.6, 0.6), st.floats(-3, 3)))
def test_small_attitude_errors_give_proportional_rates(
    error: tuple[float, float, float], now: tuple[float, float, float]
) -> None:
    """To first order the rate is gain times the body-frame rotation vector still to go."""
    present = Rotation.from_euler("xyz", now)
    rates = attitude_rates(present * Rotation.from_rotvec(error), present)
    gains = np.array([4.0, 4.0, 2.8])
    assert rates == pytest.approx(gains * np.array(error), abs=4e-3)


def test_attitude_rates_stop_at_their_limits() -> None:
    rates = attitude_rates(Rotation.from_euler("xyz", [2.5, 0, 0]), Rotation.identity())
    assert rates[0] == pytest.approx(math.radians(220.0))
    rates = attitude_rates(Rotation.from_euler("z", 3.0), Rotation.identity())
    assert rates[2] == pytest.approx(math.radians(200.0))


def test_yaw_rate_feed_forward_is_about_the_worlds_axis() -> None:
    """Rolled by 60 degrees, turning about the vertical is half yaw and 0.87 pitch in body axes."""
    rolled = Rotation.from_euler("x", math.radians(60))
    assert attitude_rates(rolled, rolled, 0.4) == pytest.approx([0.0, 0.4 * math.sqrt(0.75), 0.2], abs=1e-9)


requests = st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 1))


@pytest.mark.parametrize("name", NAMES)
@given(request=requests)
def test_motor_commands_stay_in_range_and_keep_priorities(
    name: str, request: tuple[float, float, float, float]
) -> None:
    """Exact when it fits, before yaw is mixed in as well as after; when not, thrust is never raised and roll and pitch
    never given up for yaw."""
    vehicle = load_cached(name)
    memory, command = np.zeros(ap.MEMORY), np.zeros(4)
    ap.allocate(memory, vehicle.mix, vehicle.unmix, *request, command)
    assert np.all((command >= 0.0) & (command <= 1.0))
    wanted = np.array([*request[:3], -request[3]])
    exact = vehicle.mix @ wanted
    got = vehicle.unmix @ command
    both = np.concatenate([exact, vehicle.mix @ (wanted * [1.0, 1.0, 0.0, 1.0])])
    if np.all((both >= 0.0) & (both <= 1.0)):
        assert command == pytest.approx(exact, abs=1e-9)
        assert not memory[ap.SAT_HI : ap.SAT_LO + 3].any()
    assert -got[3] <= request[3] + 0.15
    assert memory[ap.ALLOC_Z] == pytest.approx(-got[3], abs=1e-6)
    missing = wanted[:3] - got[:3]
    plain = np.abs(np.abs(missing) - 1e-3) > 1e-12  # on the threshold itself rounding decides
    assert np.array_equal((memory[ap.SAT_HI : ap.SAT_HI + 3] > 0)[plain], (missing > 1e-3)[plain])
    assert np.array_equal((memory[ap.SAT_LO : ap.SAT_LO + 3] > 0)[plain], (missing < -1e-3)[plain])


_loaded: dict[str, Vehicle] = {}


def load_cached(name: str) -> Vehicle:
    if name not in _loaded:
        _loaded[name] = load(name)
    return _loaded[name]


def test_yaw_gives_way_to_roll_and_pitch() -> None:
    vehicle = load_cached("sihsim_quadx")
    memory, command = np.zeros(ap.MEMORY), np.zeros(4)
    ap.allocate(memory, vehicle.mix, vehicle.unmix, 0.3, 0.2, 1.0, 0.5, command)
    got = vehicle.unmix @ command
    assert got[:2] == pytest.approx([0.3, 0.2], abs=1e-6)
    assert 0.0 < got[2] < 1.0


@settings(max_examples=12)
@given(st.floats(0.42, 0.78))
def test_hover_thrust_is_learnt_from_acceleration(true_hover: float) -> None:
    """Thrust swings about hover, the measured acceleration follows the true value: the estimate finds it."""
    memory = np.zeros(ap.MEMORY)
    ap.reset_memory(memory, GAINS, True, 0.0)
    for k in range(2500):
        thrust = true_hover + 0.05 * math.sin(0.05 * k)
        update_hover_thrust(memory, GAINS, 9.80665 * (thrust / true_hover - 1.0), thrust, 0.0, 0.0, 0.012)
    assert memory[ap.HTE] == pytest.approx(true_hover, abs=0.01)
    assert memory[ap.HTE_VALID_S] > 2.0


@given(st.floats(-6, 6), st.floats(0.2, 0.8), st.floats(0.2, 0.8))
def test_a_new_hover_thrust_does_not_make_the_vehicle_jump(acc: float, old: float, new: float) -> None:
    """Thrust before, a hover/g - hover, equals thrust after with the integrator's shift."""
    memory = np.zeros(ap.MEMORY)
    memory[ap.HOVER], memory[ap.ACC_SP_Z] = old, acc
    use_hover_thrust(memory, new)
    shifted = acc + memory[ap.VEL_INT + 2]
    assert (shifted / 9.80665 - 1.0) * new == pytest.approx((acc / 9.80665 - 1.0) * old, abs=1e-9)


@given(st.lists(st.one_of(st.just(NAN), numbers), min_size=9, max_size=9))
def test_flyable_is_px4s_rule(values: list[float]) -> None:
    """Every axis has some setpoint, and x comes with y in each of position, velocity and acceleration."""
    position, velocity, acceleration = (np.isfinite(values[k : k + 3]) for k in (0, 3, 6))
    complete = bool(np.all(position | velocity | acceleration))
    paired = all(kind[0] == kind[1] for kind in (position, velocity, acceleration))
    assert is_flyable(np.array([*values, 0.0, NAN])) == (complete and paired)


def test_rate_integrators_stop_where_the_motors_are_at_their_limit() -> None:
    for saturated, moves in ((False, True), (True, False)):
        memory = np.zeros(ap.MEMORY)
        memory[ap.SAT_HI] = float(saturated)
        ap.rate_step(memory, GAINS, 0.5, 0.0, 0.0, 0.004)
        assert (memory[ap.RATE_INT] > 0.0) == moves
    memory = np.zeros(ap.MEMORY)
    for _ in range(2000):
        ap.rate_step(memory, GAINS, 0.5, 0.0, 0.0, 0.004)
    assert memory[ap.RATE_INT] == pytest.approx(0.3)
