"""One drone's controller in a plain kinematic world: phases, limits, and what a drone may know."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from sar_core.geometry import box, no_obstacles
from sar_sim.link import Link
from sar_swarm.controller import Command, Order, Phase, Pilot, Plan, Sense, start_pilot, step
from sar_swarm.patterns import partitioned_lawnmower

Floats = NDArray[np.float64]

TICK = 0.05
ALONE = np.zeros((0, 7))
AREA = (0.0, 0.0, 120.0, 80.0)


def plan_for(index: int = 0, drones: int = 1, obstacles: Floats | None = None) -> Plan:
    return Plan(
        index=index,
        home=np.array([20.0 + 6.0 * index, -15.0, 0.0]),
        waypoints=partitioned_lawnmower(AREA, drones, index, 28.0, 0.1),
        altitude_m=30.0,
        return_altitude_m=30.0 + 2.5 * index,
        speed_mps=8.0,
        obstacles=no_obstacles() if obstacles is None else obstacles,
    )


@dataclass
class Drone:
    """A point that does what it is told: velocity where commanded, else towards the position at 3 m/s."""

    plan: Plan
    pilot: Pilot = field(default_factory=lambda: start_pilot(0.0))
    position: Floats = field(default_factory=lambda: np.zeros(3))
    velocity: Floats = field(default_factory=lambda: np.zeros(3))
    time: float = 0.0
    log: list[tuple[float, Phase, Command]] = field(default_factory=list)
    path: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.position = self.plan.home.copy()

    def sense(self, others: Floats = ALONE) -> Sense:
        landed = bool(self.position[2] <= 0.0)
        return Sense(self.time, self.position.copy(), self.velocity.copy(), 1.0, landed, others)

    def tick(self, order: Order, others: Floats = ALONE) -> Command:
        self.pilot, command = step(self.plan, self.pilot, self.sense(others), order)
        self.log.append((self.time, self.pilot.phase, command))
        for k in range(3):
            if not command.armed:
                self.velocity[k] = 0.0
            elif math.isfinite(command.position[k]):
                self.velocity[k] = np.clip((command.position[k] - self.position[k]) / TICK, -3.0, 3.0)
            else:
                self.velocity[k] = command.velocity[k]
        self.position = self.position + TICK * self.velocity
        self.position[2] = max(self.position[2], 0.0)
        self.time += TICK
        self.path.append(self.position.copy())
        return command

    @property
    def phases(self) -> list[Phase]:
        """The phases gone through, each once per stay."""
        seen: list[Phase] = []
        for _, phase, _ in self.log:
            if not seen or seen[-1] is not phase:
                seen.append(phase)
        return seen


def mission(drone: Drone, seconds: float = 400.0, others: Floats = ALONE) -> Drone:
    """Wait a second, take off, search until done, return and land."""
    order = Order.WAIT
    while drone.time < seconds and drone.pilot.phase is not Phase.LANDED:
        if order is Order.WAIT and drone.time >= 1.0:
            order = Order.TAKE_OFF
        elif order is Order.TAKE_OFF and drone.position[2] > 29.0:
            order = Order.SEARCH
        elif order is Order.SEARCH and drone.pilot.phase is Phase.HOLD:
            order = Order.RETURN
        drone.tick(order, others)
    return drone


def test_a_mission_goes_through_its_phases_and_ends_at_home() -> None:
    drone = mission(Drone(plan_for()))
    assert drone.phases == [
        Phase.IDLE,
        Phase.TAKEOFF,
        Phase.SEARCH,
        Phase.HOLD,
        Phase.RETURN,
        Phase.LAND,
        Phase.LANDED,
    ]
    assert math.dist(drone.position[:2], drone.plan.home[:2]) < 1.5
    assert not drone.log[-1][2].armed


def test_every_waypoint_is_visited_in_order() -> None:
    drone = Drone(plan_for())
    order, left = Order.TAKE_OFF, list(drone.plan.waypoints)
    while left and drone.time < 300.0:
        if drone.position[2] > 29.0:
            order = Order.SEARCH
        drone.tick(order)
        if math.dist(drone.position[:2], left[0]) < drone.plan.accept_m + 0.5:
            left.pop(0)
    assert not left


def test_motors_run_only_between_the_order_and_the_landing() -> None:
    drone = mission(Drone(plan_for()))
    for _, phase, command in drone.log:
        assert command.armed == (phase not in (Phase.IDLE, Phase.LANDED))


@pytest.mark.parametrize("order", [Order.WAIT, Order.SEARCH, Order.RETURN])
def test_without_the_order_to_take_off_a_drone_stays_down(order: Order) -> None:
    drone = Drone(plan_for())
    for _ in range(50):
        assert not drone.tick(order).armed
    assert drone.phases == [Phase.IDLE]


def test_once_landed_no_order_starts_it_again() -> None:
    drone = mission(Drone(plan_for()))
    for order in Order:
        assert not drone.tick(order).armed


@pytest.mark.parametrize("after_s", [3.0, 15.0, 40.0])
def test_return_is_obeyed_at_any_time_in_the_air(after_s: float) -> None:
    drone = Drone(plan_for())
    while drone.pilot.phase is not Phase.LANDED and drone.time < 300.0:
        order = Order.TAKE_OFF if drone.position[2] < 29.0 and drone.time < 12.0 else Order.SEARCH
        drone.tick(Order.RETURN if drone.time > after_s else order)
    assert drone.pilot.phase is Phase.LANDED
    assert math.dist(drone.position[:2], drone.plan.home[:2]) < 1.5


def test_commands_keep_the_limits_told() -> None:
    drone = mission(Drone(plan_for()))
    yaws = [command.yaw for _, _, command in drone.log]
    assert np.abs(np.diff(yaws)).max() <= drone.plan.turn_rate_rps * TICK + 1e-9
    assert len(set(yaws)) > 50
    for _, phase, command in drone.log:
        if phase in (Phase.SEARCH, Phase.RETURN, Phase.HOLD):
            assert math.hypot(command.velocity[0], command.velocity[1]) <= drone.plan.speed_mps + 1e-9
            assert np.isnan(command.position[:2]).all() and math.isfinite(command.position[2])


def test_the_nose_follows_the_way_the_short_way_round() -> None:
    """Flying west from a heading just short of it on the other side, the yaw crosses the seam instead of turning
    all the way back."""
    plan = replace(plan_for(), waypoints=np.array([[-500.0, -15.0]]))
    drone = Drone(plan, pilot=start_pilot(-3.0))
    order = Order.TAKE_OFF
    while drone.time < 20.0:
        if drone.position[2] > 29.0:
            order = Order.SEARCH
        drone.tick(order)
    assert drone.pilot.yaw == pytest.approx(-math.pi, abs=0.05)


def test_step_changes_nothing_it_was_given() -> None:
    plan, pilot = plan_for(), Pilot(phase=Phase.SEARCH, leg_start=(20.0, -15.0))
    others = np.full((3, 7), 25.0)
    sense = Sense(5.0, np.array([20.0, 0.0, 30.0]), np.array([1.0, 2.0, 0.0]), 1.0, False, others)
    before = [array.copy() for array in (sense.position, sense.velocity, others, plan.waypoints, plan.home)]
    first = step(plan, pilot, sense, Order.SEARCH)
    again = step(plan, pilot, sense, Order.SEARCH)
    assert first[0] == again[0]
    assert np.array_equal(first[1].velocity, again[1].velocity, equal_nan=True)
    after = (sense.position, sense.velocity, others, plan.waypoints, plan.home)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def fly_together(drones: list[Drone], loss: float, seconds: float) -> None:
    link = Link(len(drones), 1, 0, loss, 0.05, 0.05)
    for k in range(round(seconds / TICK)):
        order = Order.TAKE_OFF if k * TICK < 12.0 else Order.SEARCH
        link.exchange(k * TICK, np.array([d.position for d in drones]), np.array([d.velocity for d in drones]))
        for i, drone in enumerate(drones):
            drone.tick(order, link.others(i))


def commands(drone: Drone) -> Floats:
    return np.array([[*c.position, *c.velocity, c.yaw, c.armed] for _, _, c in drone.log])


def on_collision_course(index: int, bearing: float = math.pi) -> Drone:
    """A drone on its way through the origin, the first one eastwards, the second under the given bearing."""
    way = 30.0 * (np.array([1.0, 0.0]) if index == 0 else np.array([math.cos(bearing), math.sin(bearing)]))
    return Drone(replace(plan_for(index), home=np.array([*-way, 0.0]), waypoints=way[None, :]))


def test_cut_off_from_the_link_a_drone_flies_exactly_as_if_alone() -> None:
    """Even with another one coming straight at it: what was not told is not known."""
    pair, alone = [on_collision_course(0), on_collision_course(1)], [on_collision_course(0)]
    fly_together(pair, loss=1.0, seconds=25.0)
    fly_together(alone, loss=1.0, seconds=25.0)
    assert np.array_equal(commands(pair[0]), commands(alone[0]), equal_nan=True)


@pytest.mark.parametrize("loss", [0.0, 0.3])
@pytest.mark.parametrize("bearing", [math.pi, 2.0, 1.0])
def test_told_of_each_other_they_give_way(loss: float, bearing: float) -> None:
    """Both would reach the same point at the same time, head on or crossing."""
    pair = [on_collision_course(0), on_collision_course(1, bearing)]
    fly_together(pair, loss, seconds=30.0)
    gap = np.linalg.norm(np.array(pair[0].path) - np.array(pair[1].path), axis=1)
    assert gap.min() > 2.0
    assert all(drone.pilot.phase is Phase.HOLD for drone in pair)


def test_each_drone_flies_its_own_strip() -> None:
    swarm = [Drone(plan_for(i, drones=3)) for i in range(3)]
    fly_together(swarm, loss=1.0, seconds=60.0)
    for i, drone in enumerate(swarm):
        lane = [c for t, phase, c in drone.log if phase is Phase.SEARCH and t > 25.0]
        assert lane
        assert 40.0 * i <= drone.position[0] <= 40.0 * (i + 1)


def test_a_waypoint_inside_a_house_is_given_up() -> None:
    """Out of reach behind its clearance; after the time told the drone goes on to the next."""
    house = box(60.0, 40.0, 20.0, 20.0, 20.0, 40.0)[None, :]
    plan = replace(
        plan_for(obstacles=house), waypoints=np.array([[60.0, 40.0], [100.0, 10.0]]), home=np.array([20.0, 10.0, 0.0])
    )
    drone = mission(Drone(plan), seconds=200.0)
    assert drone.pilot.phase is Phase.LANDED
    times = [t for t, phase, _ in drone.log if phase is Phase.SEARCH]
    assert plan.stuck_s < times[-1] - times[0] < 90.0
    assert min(math.dist(at[:2], plan.waypoints[1]) for at in drone.path) < plan.accept_m
