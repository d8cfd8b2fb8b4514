"""One drone's controller in a plain kinematic world: phases, limits, and what a drone may know."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from sar_core.geometry import box, no_obstacles
from sar_sim.radio.link import Link
from sar_swarm.piloting.controller import Command, DronePlan, Order, Phase, Pilot, Sense, start_pilot, step
from sar_swarm.piloting.navigation import Chart
from sar_swarm.piloting.neighbours import SeparationLimits
from sar_swarm.piloting.patterns import fixed_route
from sar_swarm.piloting.searchtask import ROUTE_ACCEPT_M as ACCEPT_M
from sar_swarm.piloting.searchtask import Mission
from sar_swarm.planning.trajectory import MotionLimits

Floats = NDArray[np.float64]

TICK = 0.05
ALONE = np.full((1, 9), np.nan)
AREA = (0.0, 0.0, 120.0, 80.0)
BOUNDS = (-600.0, -600.0, 5.0, 600.0, 600.0, 110.0)


def plan_for(index: int = 0, drones: int = 1, obstacles: Floats | None = None) -> DronePlan:
    routes = [fixed_route("partitioned_lawnmower", AREA, drones, i, 28.0, 0.1) for i in range(drones)]
    rows = no_obstacles() if obstacles is None else obstacles
    return DronePlan(
        mission=Mission(
            index=index,
            drones=drones,
            pattern="partitioned_lawnmower",
            area=AREA,
            swath_m=28.0,
            key=(0, 0),
            routes=tuple(route for route in routes if route is not None),
        ),
        home=np.array([20.0 + 6.0 * index, -15.0, 0.0]),
        altitude_m=30.0,
        return_altitude_m=30.0 + 2.5 * index,
        chart=Chart(rows, BOUNDS, MotionLimits()),
        fence=np.empty((0, 2)),
        separation=SeparationLimits(),
    )


def with_route(plan: DronePlan, *points: tuple[float, float]) -> DronePlan:
    routes = [np.empty((0, 2))] * plan.mission.drones
    routes[plan.mission.index] = np.array(points, dtype=np.float64)
    return replace(plan, mission=replace(plan.mission, routes=tuple(routes)))


def sense_of(time: float, position: Floats, velocity: Floats, others: Floats, landed: bool = False) -> Sense:
    return Sense(time, position.copy(), velocity.copy(), 1.0, landed, 0.0, True, 0.0, 0.0, others)


@dataclass
class Drone:
    """A point that does what it is told: velocity where commanded, else towards the position at 3 m/s."""

    plan: DronePlan
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
        return sense_of(self.time, self.position, self.velocity, others, landed)

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
    order, left = Order.TAKE_OFF, list(drone.plan.mission.routes[0])
    while left and drone.time < 300.0:
        if drone.position[2] > 29.0:
            order = Order.SEARCH
        drone.tick(order)
        if math.dist(drone.position[:2], left[0]) < ACCEPT_M + 0.5:
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
            assert math.hypot(command.velocity[0], command.velocity[1]) <= drone.plan.separation.speed_mps + 1e-9
            assert np.isnan(command.position[:2]).all() and math.isfinite(command.position[2])


def test_the_nose_follows_the_way_the_short_way_round() -> None:
    """Flying west from a heading just short of it on the other side, the yaw crosses the seam instead of turning
    all the way back."""
    plan = with_route(plan_for(), (-500.0, -15.0))
    drone = Drone(plan, pilot=start_pilot(-3.0))
    order = Order.TAKE_OFF
    while drone.time < 20.0:
        if drone.position[2] > 29.0:
            order = Order.SEARCH
        drone.tick(order)
    assert drone.pilot.yaw == pytest.approx(-math.pi, abs=0.05)


def test_step_changes_nothing_it_was_given() -> None:
    plan, pilot = plan_for(), Pilot(phase=Phase.SEARCH)
    others = np.full((3, 9), 25.0)
    sense = sense_of(5.0, np.array([20.0, 0.0, 30.0]), np.array([1.0, 2.0, 0.0]), others)
    before = [array.copy() for array in (sense.position, sense.velocity, others, plan.mission.routes[0], plan.home)]
    first = step(plan, pilot, sense, Order.SEARCH)
    again = step(plan, pilot, sense, Order.SEARCH)
    assert np.array_equal(first[1].velocity, again[1].velocity, equal_nan=True)
    after = (sense.position, sense.velocity, others, plan.mission.routes[0], plan.home)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def fly_together(drones: list[Drone], loss: float, seconds: float) -> None:
    link = Link(len(drones), 1, 0, loss, 0.05, 0.05)
    for k in range(round(seconds / TICK)):
        order = Order.TAKE_OFF if k * TICK < 12.0 else Order.SEARCH
        status = np.array([[d.pilot.failsafe.state, d.pilot.task.leg] for d in drones], dtype=np.float64)
        places = np.array([d.position for d in drones])
        link.exchange(k * TICK, places, np.array([d.velocity for d in drones]), status)
        for i, drone in enumerate(drones):
            drone.tick(order, link.others(i))


def commands(drone: Drone) -> Floats:
    return np.array([[*c.position, *c.velocity, c.yaw, c.armed] for _, _, c in drone.log])


def on_collision_course(index: int, bearing: float = math.pi, drones: int = 2) -> Drone:
    """A drone on its way through the origin, the first one eastwards, the second under the given bearing."""
    way = 30.0 * (np.array([1.0, 0.0]) if index == 0 else np.array([math.cos(bearing), math.sin(bearing)]))
    plan = with_route(plan_for(index, drones), (way[0], way[1]))
    return Drone(replace(plan, home=np.array([*-way, 0.0])))


def test_cut_off_from_the_link_a_drone_knows_nothing_of_the_others() -> None:
    """Whether another one comes straight at it or is far away: what was not told is not known."""
    near, far = [on_collision_course(0), on_collision_course(1)], [on_collision_course(0), on_collision_course(1)]
    far[1].position += 500.0
    fly_together(near, loss=1.0, seconds=25.0)
    fly_together(far, loss=1.0, seconds=25.0)
    assert np.array_equal(commands(near[0]), commands(far[0]), equal_nan=True)


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
    fly_together(swarm, loss=0.0, seconds=60.0)
    for i, drone in enumerate(swarm):
        lane = [c for t, phase, c in drone.log if phase is Phase.SEARCH and t > 25.0]
        assert lane
        assert 40.0 * i <= drone.position[0] <= 40.0 * (i + 1)


def test_a_waypoint_inside_a_house_is_flown_over() -> None:
    house = box(60.0, 40.0, 20.0, 20.0, 20.0, 40.0)[None, :]
    plan = with_route(plan_for(obstacles=house), (60.0, 40.0), (100.0, 10.0))
    drone = mission(Drone(replace(plan, home=np.array([20.0, 10.0, 0.0]))), seconds=200.0)
    assert drone.pilot.phase is Phase.LANDED
    over = min(drone.path, key=lambda at: math.dist(at[:2], (60.0, 40.0)))
    assert math.dist(over[:2], (60.0, 40.0)) < ACCEPT_M and over[2] > 42.0
    assert min(math.dist(at[:2], (100.0, 10.0)) for at in drone.path) < ACCEPT_M


def test_a_waypoint_in_a_tower_beyond_the_ceiling_is_given_up() -> None:
    tower = box(60.0, 40.0, 100.0, 20.0, 20.0, 200.0)[None, :]
    plan = with_route(plan_for(obstacles=tower), (60.0, 40.0), (100.0, 10.0))
    drone = mission(Drone(replace(plan, home=np.array([20.0, 10.0, 0.0]))), seconds=200.0)
    assert drone.pilot.phase is Phase.LANDED
    assert min(math.dist(at[:2], (60.0, 40.0)) for at in drone.path) > 10.0
    assert min(math.dist(at[:2], (100.0, 10.0)) for at in drone.path) < ACCEPT_M


def test_a_wall_across_the_lane_is_gone_round_or_over() -> None:
    wall = box(60.0, 40.0, 25.0, 4.0, 60.0, 50.0)[None, :]
    plan = with_route(plan_for(obstacles=wall), (20.0, 40.0), (100.0, 40.0))
    drone = mission(Drone(replace(plan, home=np.array([20.0, 10.0, 0.0]))), seconds=200.0)
    assert min(math.dist(at[:2], (100.0, 40.0)) for at in drone.path) < ACCEPT_M
    inside = [at for at in drone.path if 57.5 < at[0] < 62.5 and 9.5 < at[1] < 70.5 and at[2] < 50.5]
    assert not inside
