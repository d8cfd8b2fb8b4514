"""Faults by their effect on real vehicles and on the link; that nothing happens without one; what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_core.errors import InputError
from sar_core.frames import yaw_of
from sar_core.geometry import box, no_obstacles
from sar_sim.judging.referee import Referee, RefereeConfig
from sar_sim.radio.link import Link
from sar_sim.vehicle.airframe import Vehicle, load_vehicle
from sar_sim.vehicle.faults import SIZES, Fault, FaultKind, Injector
from sar_sim.vehicle.fleet import Fleet, FleetState, step_of_tick

Floats = NDArray[np.float64]
K = FaultKind

ROOT = Path(__file__).resolve().parents[4]
FREE = np.full(3, np.nan)
BEGIN_S = 2.0


@pytest.fixture(scope="module")
def x500() -> Vehicle:
    return load_vehicle(ROOT / "configs" / "vehicles" / "x500.yaml", ROOT / "px4_params" / "x500.params")


class Hover:
    """Drones hovering 20 m apart at 30 m in a light wind, with whatever goes wrong. All of them talk."""

    def __init__(self, vehicle: Vehicle, faults: list[Fault] | None, drones: int = 1, seed: int = 3) -> None:
        self.places = np.array([[20.0 * i, 0.0, 30.0, 0.4] for i in range(drones)])
        self.fleet = Fleet(vehicle, self.places, seed, 0, np.array([2.0, 0.0, 0.0]), thrust_variation=0.05, in_air=True)
        self.link = Link(drones, seed, 0, 0.1, 0.05, 0.05)
        for i, place in enumerate(self.places):
            self.fleet.command(i, place[:3], FREE, FREE, 0.4)
        self.fleet.warm_up(15.0)
        self.injector = None if faults is None else Injector(faults, drones, seed, 0)
        self.tick = 0

    def fly(self, seconds: float) -> list[FleetState]:
        """One snapshot per tick."""
        states = []
        for _ in range(round(seconds * 20)):
            if self.injector is not None:
                self.injector.apply(self.tick / 20, self.fleet, self.link)
            self.fleet.tick(step_of_tick(self.tick + 1) - step_of_tick(self.tick))
            self.tick += 1
            state = self.fleet.snapshot()
            status = np.tile([0.0, float(self.tick)], (self.fleet.count, 1))
            mail = [[(i, self.tick)] for i in range(self.fleet.count)]
            self.link.exchange(self.tick / 20, state.est_position, state.est_velocity, status, mail)
            states.append(state)
        return states


def fault(kind: FaultKind, size: float | None = None, drone: int = 0, end_s: float = math.inf) -> Fault:
    return Fault(kind, drone, BEGIN_S, end_s, size)


def bits(states: list[FleetState], hover: Hover) -> bytes:
    """All of every snapshot and of what everyone knows."""
    parts = [part.tobytes() for state in states for part in vars(state).values()]
    return b"".join([*parts, hover.link.known.tobytes(), repr(hover.link.inbox).encode()])


def test_without_faults_nothing_is_touched(x500: Vehicle) -> None:
    plain, empty = Hover(x500, None, drones=2), Hover(x500, [], drones=2)
    later = Hover(x500, [Fault(kind, 1, 1000.0) for kind in FaultKind], drones=2)
    flown = [bits(hover.fly(3.0), hover) for hover in (plain, empty, later)]
    assert flown[0] == flown[1] == flown[2]


@pytest.mark.parametrize("kind", list(FaultKind))
def test_a_fault_begins_in_its_time_and_touches_no_other_drone(x500: Vehicle, kind: FaultKind) -> None:
    sound, sick = Hover(x500, None, drones=2), Hover(x500, [fault(kind, drone=1)], drones=2)
    assert bits(sound.fly(BEGIN_S), sound) == bits(sick.fly(BEGIN_S), sick)
    for here, there in zip(sound.fly(3.0), sick.fly(3.0), strict=True):
        assert all(np.array_equal(a[0], b[0]) for a, b in zip(vars(here).values(), vars(there).values(), strict=True))


def test_a_dead_motor_brings_it_down_and_telemetry_says_so(x500: Vehicle) -> None:
    states = Hover(x500, [fault(K.MOTOR_LOSS, 1.0)]).fly(6.0)
    assert all(state.motors_ok[0] for state in states[:40]) and not states[40].motors_ok[0]
    assert max(state.tilt_rad[0] for state in states) > math.radians(60.0)
    assert states[-1].position[0, 2] < 1.0


def test_a_weak_motor_still_flies(x500: Vehicle) -> None:
    states = Hover(x500, [fault(K.MOTOR_LOSS, 0.3)]).fly(12.0)
    assert all(state.motors_ok[0] for state in states)
    assert states[-1].position[0] == pytest.approx([0.0, 0.0, 30.0], abs=1.5)
    sound = Hover(x500, None).fly(12.0)
    assert not np.array_equal(states[-1].position, sound[-1].position)


def test_a_motor_that_comes_back_catches_it(x500: Vehicle) -> None:
    states = Hover(x500, [fault(K.MOTOR_LOSS, 0.5, end_s=3.0)]).fly(10.0)
    assert min(state.position[0, 2] for state in states) < 29.3
    assert states[-1].position[0, 2] == pytest.approx(30.0, abs=1.0) and states[-1].motors_ok[0]


def test_without_gps_the_error_grows_but_for_height(x500: Vehicle) -> None:
    spread = []
    for seed in range(6):
        states = Hover(x500, [fault(K.GPS_LOSS)], seed=seed).fly(BEGIN_S + 20.0)
        assert states[39].gps_age_s[0] < 0.13
        for after in (1.0, 5.0, 20.0):
            assert states[39 + round(after * 20)].gps_age_s[0] == pytest.approx(after, abs=0.13)
        error = [states[k].est_position[0] - states[k].position[0] for k in (39, 139, 439)]
        spread.append([math.hypot(e[0], e[1]) for e in error])
        assert abs(error[2][2]) < 2.5
    before, early, late = np.sqrt(np.mean(np.square(spread), axis=0))
    assert before < 0.4 and early > 2.0 * before and late > 4.0 * early


def test_a_fix_that_comes_back_puts_the_estimate_right(x500: Vehicle) -> None:
    """After a long gap at once, as EKF2 resets to it; after a short one by the filter's usual correction."""
    for end_s, least, settled_s in ((20.0, 4.0, 0.25), (6.0, 0.5, 3.0)):
        states = Hover(x500, [fault(K.GPS_LOSS, end_s=end_s)], seed=0).fly(end_s + 4.0)
        error = [math.dist(state.est_position[0, :2], state.position[0, :2]) for state in states]
        assert error[round(end_s * 20) - 1] > least
        assert max(error[round((end_s + settled_s) * 20) :]) < 0.8 and states[-1].gps_age_s[0] < 0.13


def test_what_lost_its_fix_long_ago_believes_to_stand(x500: Vehicle) -> None:
    hover = Hover(x500, [fault(K.GPS_LOSS)])
    hover.fleet.command(0, FREE, np.array([8.0, 0.0, 0.0]), FREE, 0.4)
    hover.fly(BEGIN_S + 4.5)
    hover.fleet.command(0, FREE, np.array([np.nan, np.nan, 0.0]), np.array([0.0, 0.0, np.nan]), 0.4)
    states = hover.fly(1.5)
    assert states[0].est_velocity[0, 0] > 6.0
    assert abs(states[-1].est_velocity[0, 0]) < 1.5 and states[-1].velocity[0, 0] > 5.0


def test_what_lost_its_fix_long_ago_can_still_be_brought_down_level(x500: Vehicle) -> None:
    hover = Hover(x500, [fault(K.GPS_LOSS)])
    hover.fly(BEGIN_S + 6.0)
    hover.fleet.command(0, FREE, np.array([np.nan, np.nan, -1.0]), np.array([0.0, 0.0, np.nan]), 0.4)
    states = hover.fly(60.0)
    falling = [s for s in states[40:] if s.position[0, 2] > 1.0]
    assert max(s.tilt_rad[0] for s in falling) < math.radians(15.0)
    assert np.abs([s.est_velocity[0, :2] for s in falling]).max() < 3.0
    assert states[-1].landed[0] and states[-1].position[0, 2] < 0.3


def test_a_drifting_fix_leads_the_drone_away_while_it_believes_to_stand(x500: Vehicle) -> None:
    hover = Hover(x500, [fault(K.GPS_DRIFT, 1.5)])
    states = hover.fly(BEGIN_S + 20.0)
    believed, true = states[-1].est_position[0], states[-1].position[0]
    assert believed == pytest.approx([0.0, 0.0, 30.0], abs=1.5)
    assert math.hypot(true[0], true[1]) == pytest.approx(30.0, abs=2.5)
    apart = states[-1].position[0] - states[-201].position[0]
    assert math.hypot(apart[0], apart[1]) / 10.0 == pytest.approx(1.5, abs=0.15)
    assert states[-1].gps_age_s[0] < 0.13


def test_drift_has_its_own_direction_per_seed_and_ends_with_the_fault(x500: Vehicle) -> None:
    courses = []
    for seed in range(4):
        states = Hover(x500, [fault(K.GPS_DRIFT, 2.0, end_s=10.0)], seed=seed).fly(25.0)
        x, y, _ = states[199].position[0]
        courses.append(math.atan2(y, x))
        assert math.hypot(x, y) > 10.0
        assert math.dist(states[-1].position[0, :2], (0.0, 0.0)) < 3.0
    assert np.ptp(courses) > 0.5


@pytest.mark.parametrize("bias", [0.5, -0.5])
def test_a_compass_bias_turns_the_drone_the_other_way(x500: Vehicle, bias: float) -> None:
    """The estimate follows the compass over half a minute; the autopilot holds the yaw it believes in."""
    last = Hover(x500, [fault(K.COMPASS_BIAS, bias)]).fly(90.0)[-1]
    assert yaw_of(last.est_attitude)[0] == pytest.approx(0.4, abs=0.05)
    assert yaw_of(last.attitude)[0] == pytest.approx(0.4 - bias, abs=0.06)
    assert last.position[0] == pytest.approx([0.0, 0.0, 30.0], abs=3.0)


def test_a_compass_that_is_far_off_makes_it_uncontrollable(x500: Vehicle) -> None:
    """Told to go north it goes east: position control circles outwards, as real vehicles do."""
    states = Hover(x500, [fault(K.COMPASS_BIAS, 1.5)]).fly(60.0)
    away = [math.hypot(*state.position[0, :2]) for state in states]
    assert max(away[:300]) < 3.0 and max(away) > 10.0
    assert np.isfinite(states[-1].position).all() and np.isfinite(states[-1].est_position).all()


def test_a_lost_drone_falls_and_is_silent(x500: Vehicle) -> None:
    hover = Hover(x500, [fault(K.DRONE_LOST, drone=1)], drones=3)
    states = hover.fly(BEGIN_S + 8.0)
    gone, stays = states[-1].position[1], states[-1].position[0]
    assert gone[2] < 0.3 and states[-1].landed[1] and not states[-1].motors_ok[1]
    assert stays[2] == pytest.approx(30.0, abs=1.0)
    fall = next(k for k, state in enumerate(states) if state.position[1, 2] < 1.0) / 20 - BEGIN_S
    assert fall == pytest.approx(math.sqrt(2.0 * 29.0 / 9.81), abs=0.3)
    assert hover.link.others(0)[1, 6] <= BEGIN_S + 0.05 and hover.link.others(0)[2, 6] > 9.5


def test_a_fall_is_a_collision_with_the_ground(x500: Vehicle) -> None:
    """The referee sees it although the ground stops the feet at exactly zero."""
    fence = np.array([[-50.0, -50.0], [50.0, -50.0], [50.0, 50.0], [-50.0, 50.0]])
    frame = x500.airframe
    fleet = Fleet(x500, np.array([[0.0, 0.0, 30.0, 0.0]]), 1, 0, in_air=True)
    referee = Referee(RefereeConfig(frame.hull_radius, frame.gear_height, fence, 120.0, no_obstacles()), 1)
    fleet.switch_power(0, False)
    for tick in range(100):
        first = fleet.step
        path = fleet.tick(step_of_tick(tick + 1) - first)
        referee.observe(np.arange(first, fleet.step + 1) * 0.004, path, np.array([False]))
    summary = referee.summary()
    assert summary.collisions == summary.collisions_by_kind["drone_ground"] == 1
    assert summary.events[0].begin_s == pytest.approx(math.sqrt(2.0 * 29.8 / 9.81), abs=0.05)


def test_a_drone_without_power_comes_to_rest_on_a_roof(x500: Vehicle) -> None:
    roof = box(0.0, 0.0, 10.0, 20.0, 20.0, 20.0)[None, :]
    fleet = Fleet(x500, np.array([[0.5, 0.3, 30.0, 0.0]]), 1, 0, obstacles=roof, in_air=True)
    fleet.command(0, np.array([0.5, 0.3, 30.0]), FREE, FREE, 0.0)
    fleet.tick(250)
    fleet.switch_power(0, False)
    fleet.tick(50)
    assert not fleet.snapshot().landed[0]
    fleet.tick(2000)
    state = fleet.snapshot()
    assert state.landed[0] and state.position[0, 2] == pytest.approx(20.0 + x500.airframe.hull_radius, abs=0.05)


def test_a_drone_can_land_on_a_roof(x500: Vehicle) -> None:
    roof = box(0.0, 0.0, 10.0, 20.0, 20.0, 20.0)[None, :]
    fleet = Fleet(x500, np.array([[0.5, 0.3, 24.0, 0.0]]), 1, 0, obstacles=roof, in_air=True)
    fleet.command(0, np.array([0.5, 0.3, np.nan]), np.array([0.0, 0.0, -0.7]), FREE, 0.0)
    fleet.tick(250)
    assert not fleet.snapshot().landed[0]
    fleet.tick(3500)
    assert fleet.snapshot().landed[0]


def test_a_battery_drops_and_goes_on_from_there(x500: Vehicle) -> None:
    states = Hover(x500, [fault(K.LOW_BATTERY, 0.14)]).fly(BEGIN_S + 10.0)
    charge = [float(state.charge[0]) for state in states]
    assert charge[39] > 0.99 and 0.139 < charge[40] < 0.14
    assert charge[40] - charge[-1] == pytest.approx(10.0 / x500.airframe.endurance, rel=0.1)
    assert min(charge) == charge[-1]


def test_a_cut_off_drone_neither_hears_nor_is_heard(x500: Vehicle) -> None:
    hover = Hover(x500, [fault(K.LINK_LOSS, drone=1, end_s=6.0)], drones=3)
    hover.fly(6.0)
    assert max(hover.link.others(0)[1, 6], hover.link.others(2)[1, 6]) <= BEGIN_S + 0.05
    assert np.nanmax(hover.link.others(1)[:, 6]) <= BEGIN_S + 0.05
    assert hover.link.heard_s[1] <= BEGIN_S + 0.05 and hover.link.heard_s[0] > 5.8
    assert hover.link.inbox[1] == []
    share = hover.link.take_delivery()
    assert share[1] < 0.4 < 0.8 < share[0]
    hover.fly(1.0)
    assert hover.link.others(0)[1, 6] > 6.5 and np.nanmin(hover.link.others(1)[:, 6]) > 6.5


def test_a_frozen_drone_repeats_itself_but_hears_on(x500: Vehicle) -> None:
    hover = Hover(x500, [fault(K.FROZEN_NEIGHBOUR, drone=1, end_s=6.0)], drones=3)
    hover.fly(3.0)
    known = hover.link.others(0)[1].copy()
    assert known[6] <= BEGIN_S + 0.05 and known[8] == round(known[6] * 20)
    for _ in range(50):
        hover.fly(0.05)
        assert np.array_equal(hover.link.others(0)[1], known)
        assert all(sender != 1 for sender, _ in hover.link.inbox[0])
    assert hover.link.others(1)[0, 6] > 5.0 and hover.link.others(0)[2, 6] > 5.0
    assert hover.link.take_delivery()[0] > 0.8
    hover.fly(1.5)
    assert hover.link.others(0)[1, 6] > 6.5


def test_faults_of_one_drone_add_up_and_end_one_by_one(x500: Vehicle) -> None:
    faults = [
        Fault(K.GPS_LOSS, 0, 0.0, 3.0),
        Fault(K.GPS_LOSS, 0, 1.0, 2.0),
        Fault(K.LINK_LOSS, 0, 0.0, 2.0),
        Fault(K.DRONE_LOST, 0, 1.0),
    ]
    hover = Hover(x500, faults)
    assert hover.fly(2.5)[-1].gps_age_s[0] > 2.2
    assert hover.fly(1.0)[-1].gps_age_s[0] < 0.2
    assert hover.link.silence[0]


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(list(FaultKind)), st.integers(0, 1), st.floats(0.0, 4.0), st.floats(0.01, 3.0)),
        max_size=6,
    )
)
def test_any_faults_at_any_time_leave_the_state_finite(rows: list[tuple[FaultKind, int, float, float]]) -> None:
    vehicle = load_vehicle(ROOT / "configs" / "vehicles" / "x500.yaml", ROOT / "px4_params" / "x500.params")
    lasting = (K.DRONE_LOST, K.LOW_BATTERY)
    faults = [Fault(k, d, t, math.inf if k in lasting else t + w) for k, d, t, w in rows]
    for state in Hover(vehicle, faults, drones=2).fly(5.0)[::10]:
        assert all(np.isfinite(part).all() for part in vars(state).values())


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Fault("flat_tyre", 0, 1.0), "fault kind = 'flat_tyre': not known; allowed: motor_loss, gps_loss"),  # type: ignore[arg-type]
        (lambda: Fault(K.GPS_LOSS, -1, 1.0), "drone = -1"),
        (lambda: Fault(K.GPS_LOSS, 0, math.nan), "begin_s = nan"),
        (lambda: Fault(K.GPS_LOSS, 0, -1.0), "begin_s = -1"),
        (lambda: Fault(K.GPS_LOSS, 0, 5.0, 5.0), "end_s = 5: allowed are times after begin_s"),
        (lambda: Fault(K.DRONE_LOST, 0, 5.0, 9.0), "leave end_s out"),
        (lambda: Fault(K.GPS_LOSS, 0, 5.0, size=2.0), "leave size out"),
        (lambda: Fault(K.MOTOR_LOSS, 0, 5.0, size=1.1), "size = 1.1: allowed are 0 to 1"),
        (lambda: Fault(K.COMPASS_BIAS, 0, 5.0, size=math.nan), "size = nan: allowed are -2.5 to 2.5 (rad)"),
        (lambda: Injector([Fault(K.GPS_LOSS, 4, 5.0)], 4, 0, 0), "drone = 4: allowed are 0 to 3"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(make: object, told: str) -> None:
    with pytest.raises(InputError) as caught:
        make()  # type: ignore[operator]
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_a_size_left_out_is_the_usual_one() -> None:
    for kind in FaultKind:
        size = Fault(kind, 0, 1.0).size
        assert size == (SIZES[kind].usual if kind in SIZES else None)
    assert Fault("gps_loss", 0, 1.0).kind is K.GPS_LOSS  # type: ignore[arg-type]
