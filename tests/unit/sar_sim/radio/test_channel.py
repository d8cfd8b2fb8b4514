"""The radio channel against closed forms, brute force and its own slow evaluation."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize

from sar_core.geometry import BOX, box, cylinder
from sar_core.radio import (
    ANTENNAS,
    CARRIER_HZ,
    LIGHT_MPS,
    SPACING_HZ,
    SUBCARRIERS,
    WAVELENGTH_M,
    array_axis,
)
from sar_sim.radio.channel import (
    DIRECT,
    GROUND,
    PATH,
    WALL,
    RadioScene,
    add_channel,
    direct_channel,
    find_paths,
    make_scene,
)
from sar_sim.radio.obstruction import loss_db, make_bodies
from sar_sim.radio.radioconfig import RadioConfig, load_radio
from sar_sim.world.world import World, load_world
from tests.unit.sar_core.arrayphase import expected_phase

Floats = NDArray[np.float64]

ROOT = Path(__file__).parents[4]
CONFIG = load_radio(ROOT / "configs/radio/open_ground.yaml")
FIELD = load_world(ROOT / "worlds/open_field.sdf")
LEVEL = (0.0, 1.0, 0.0)


def with_bodies(*bodies: tuple[Floats, str], volumes: tuple[tuple[Floats, str], ...] = ()) -> World:
    return replace(
        FIELD,
        obstacles=np.array([row for row, _ in bodies]).reshape(-1, 8),
        obstacle_names=tuple(str(k) for k in range(len(bodies))),
        materials=tuple(name for _, name in bodies),
        volumes=np.array([row for row, _ in volumes]).reshape(-1, 8),
        volume_materials=tuple(name for _, name in volumes),
    )


def search(world: World, device: Floats, drone: Floats, config: RadioConfig = CONFIG) -> Floats:
    """The path set between two points, only the rows in use."""
    paths = np.zeros((2 + config.max_reflections, PATH))
    count = find_paths(make_scene(world, config), *map(float, device), *map(float, drone), paths)
    return paths[:count]


def compiled_channel(
    paths: Floats,
    device: Floats,
    drone: Floats,
    axis: tuple[float, float, float],
    phase: float = 0.0,
    sto_s: float = 0.0,
) -> NDArray[np.complex128]:
    out = np.full((ANTENNAS, len(SUBCARRIERS), 2), 7.0)
    add_channel(paths, len(paths), device, drone, axis, 1.0, phase, sto_s * LIGHT_MPS, out)
    return np.asarray(out[..., 0] + 1j * out[..., 1])


@pytest.mark.parametrize("name", ["open_field", "village", "forest", "collapsed_block"])
def test_compiled_equals_direct(name: str) -> None:
    world = load_world(ROOT / f"worlds/{name}.sdf")
    rng = np.random.default_rng(1)
    kinds = set()
    for _ in range(60):
        device = rng.uniform((-180, -180, 0.3), (180, 180, 1.0))
        drone = rng.uniform((-180, -180, 20.0), (180, 180, 40.0))
        attitude = rng.standard_normal(4)
        axis = array_axis(*(attitude / np.linalg.norm(attitude)))
        phase, sto = rng.uniform(0, 6), rng.uniform(-5e-8, 5e-8)
        paths = search(world, device, drone)
        kinds |= set(paths[:, 7])
        fast = compiled_channel(paths, device, drone, axis, phase, sto)
        slow = direct_channel(paths, len(paths), device, drone, axis, 1.0, phase, sto)
        assert np.max(np.abs(fast - slow)) <= 1e-9 * np.max(np.abs(slow))
    assert kinds == ({DIRECT, GROUND, WALL} if name in ("village", "collapsed_block") else {DIRECT, GROUND})


@pytest.mark.parametrize("distance", [5.0, 60.0, 400.0])
def test_line_of_sight_alone_is_friis(distance: float) -> None:
    device, drone = np.array([0.0, 0.0, 1.0]), np.array([distance, 0.0, 1.0])
    channel = compiled_channel(search(FIELD, device, drone)[:1], device, drone, LEVEL)
    friis = (WAVELENGTH_M / (4 * np.pi * distance)) ** 2
    assert np.abs(channel) ** 2 == pytest.approx(np.full(channel.shape, friis), rel=1e-12)


@pytest.mark.parametrize("distance", [3.0, 20.0, 77.0, 150.0, 390.0])
def test_two_rays(distance: float) -> None:
    """Over flat ground: the textbook two-ray sum with Fresnel's coefficient in terms of the grazing angle."""
    low, high = 0.7, 30.0
    device, drone = np.array([0.0, 0.0, low]), np.array([distance, 0.0, high])
    paths = search(FIELD, device, drone)
    assert list(paths[:, 7]) == [DIRECT, GROUND]
    straight, bounced = math.hypot(distance, high - low), math.hypot(distance, high + low)
    grazing = math.atan2(high + low, distance)
    eps = 13.7216 - 1j * 0.1495 / (2 * np.pi * CARRIER_HZ * 8.8541878128e-12)
    root = np.sqrt(eps - math.cos(grazing) ** 2)
    mirror = (eps * math.sin(grazing) - root) / (eps * math.sin(grazing) + root)
    wave = 2 * np.pi * (CARRIER_HZ + SUBCARRIERS * SPACING_HZ) / LIGHT_MPS
    expected = np.exp(-1j * wave * straight) / straight + mirror * np.exp(-1j * wave * bounced) / bounced
    expected *= WAVELENGTH_M / (4 * np.pi)
    got = compiled_channel(paths, device, drone, (0.0, 1.0, 0.0))
    assert np.max(np.abs(got - expected)) < 1e-3 * np.max(np.abs(expected))


def test_ground_swallows_the_line_of_sight_far_away() -> None:
    """At grazing incidence the echo comes back with opposite sign: power falls with the fourth power of distance."""

    def power(distance: float) -> float:
        device, drone = np.array([0.0, 0.0, 0.5]), np.array([distance, 0.0, 2.0])
        return float(np.mean(np.abs(compiled_channel(search(FIELD, device, drone), device, drone, LEVEL)) ** 2))

    assert 10 * math.log10(power(1000.0) / power(2000.0)) == pytest.approx(12.0, abs=0.5)


@settings(max_examples=50)
@given(
    yaw=st.floats(-3.1, 3.1),
    roll=st.floats(-0.5, 0.5),
    azimuth=st.floats(-3.1, 3.1),
    distance=st.floats(10.0, 300.0),
)
def test_phase_difference_is_what_the_swarm_expects(yaw: float, roll: float, azimuth: float, distance: float) -> None:
    q = (
        math.cos(yaw / 2) * math.cos(roll / 2),
        math.cos(yaw / 2) * math.sin(roll / 2),
        math.sin(yaw / 2) * math.sin(roll / 2),
        math.sin(yaw / 2) * math.cos(roll / 2),
    )
    axis = array_axis(*q)
    drone = np.array([0.0, 0.0, 30.0])
    device = np.array([distance * math.cos(azimuth), distance * math.sin(azimuth), 0.5])
    channel = compiled_channel(search(FIELD, device, drone)[:1], device, drone, axis)
    towards = (device - drone) / np.linalg.norm(device - drone)
    expected = expected_phase(*axis, *map(float, towards))
    middle = np.sum(channel[1] * np.conj(channel[0]))
    assert abs(np.angle(middle * np.exp(-1j * expected))) < 1e-6
    edge = channel[1, 0] * np.conj(channel[0, 0])
    assert abs(np.angle(edge * np.exp(-1j * expected))) < abs(expected) * 28 * SPACING_HZ / CARRIER_HZ + 1e-9


def test_what_lies_in_the_way_weakens_the_channel_by_its_loss() -> None:
    device, drone = np.array([0.0, 0.0, 0.8]), np.array([40.0, 10.0, 30.0])
    free = compiled_channel(search(FIELD, device, drone)[:1], device, drone, LEVEL)
    roof = with_bodies((box(0, 0, 3.1, 30, 30, 0.2), "rubble"))
    covered = compiled_channel(search(roof, device, drone)[:1], device, drone, LEVEL)
    expected = loss_db(make_bodies(roof), *map(float, device), *map(float, drone), -1)
    assert 20 * np.log10(np.abs(free[0, 0] / covered[0, 0])) == pytest.approx(expected) and expected > 3.0


def test_a_floor_takes_nothing_from_the_echo_off_its_ground() -> None:
    """However the point on the ground is rounded, it lies on the floor and not below it."""
    rng = np.random.default_rng(3)
    house = with_bodies((box(0, 0, 1.3, 30, 30, 2.6, 0.3), "concrete_shell"))
    for _ in range(300):
        device, drone = rng.uniform((-9, -9, 0.3), (9, 9, 1.0)), rng.uniform((-9, -9, 1.0), (9, 9, 2.5))
        paths = search(house, device, drone)
        assert list(paths[:, 7]) == [DIRECT, GROUND] and np.all(paths[:, 4] == 1.0)


def test_reflection_takes_the_shortest_way_over_the_wall() -> None:
    """Fermat: no other point of the face gives a shorter way, and the image lies at that distance."""
    row = box(30, 5, 10, 8, 40, 20, 0.4)
    world = with_bodies((row, "concrete"))
    device, drone = np.array([5.0, 0.0, 0.5]), np.array([-5.0, 8.0, 25.0])
    paths = search(world, device, drone)
    assert list(paths[:, 7]) == [DIRECT, GROUND, WALL]
    normal, offset = paths[2, :3], paths[2, 3]
    c, s = math.cos(0.4), math.sin(0.4)

    def way(v: Floats) -> float:
        point = np.array([30.0, 5.0, 0.0]) - 4 * np.array([c, s, 0]) + v[0] * np.array([-s, c, 0]) + [0, 0, v[1]]
        return math.dist(device, point) + math.dist(point, drone)

    best = optimize.minimize(way, np.array([0.0, 10.0]), method="BFGS")
    image = device - 2 * (normal @ device - offset) * normal
    assert math.dist(image, drone) == pytest.approx(best.fun, rel=1e-9)
    assert abs(best.x[0]) < 20 and 0 < best.x[1] < 20


def test_what_reflects_nothing() -> None:
    device, drone = np.array([5.0, 0.0, 0.5]), np.array([-5.0, 8.0, 25.0])
    for row, material in (
        (cylinder(30, 5, 10, 8, 20), "concrete"),  # round
        (box(30, 5, 10, 8, 40, 20), "rubble"),  # rough
        (box(30, 5, 1, 8, 40, 2), "concrete"),  # too low for the reflection point
        (box(300, 5, 10, 8, 40, 20), "concrete"),  # out of reach
        (box(0, 4, 2, 40, 40, 4), "brick_shell"),  # the device is inside: every face is seen from behind
    ):
        assert WALL not in search(with_bodies((row, material)), device, drone)[:, 7], (row, material)


def test_metal_mirrors_and_the_strongest_walls_are_kept() -> None:
    device, drone = np.array([0.0, 0.0, 0.5]), np.array([0.0, 10.0, 20.0])
    rows = [(box(20 + 7 * k, 5, 15, 1, 60, 30), name) for k, name in enumerate(["wood", "brick", "concrete"])]
    mirror = (box(-20, 5, 15, 1, 60, 30), "metal")
    many = search(with_bodies(*rows, mirror), device, drone)
    gains = [abs(direct_channel(path[None], 1, device, drone, LEVEL)[0, 0]) for path in many if path[7] == WALL]
    assert gains == sorted(gains, reverse=True) and len(gains) == 4
    assert np.isinf(many[2, 5])
    image = np.linalg.norm(np.array([-39.0, 0.0, 0.5]) - drone)
    assert gains[0] == pytest.approx(WAVELENGTH_M / (4 * np.pi * image))
    assert np.all(many[3:, 6] < 0.0)
    few = search(with_bodies(*rows, mirror), device, drone, CONFIG.model_copy(update={"max_reflections": 2}))
    assert np.array_equal(few, many[:4])


def test_a_wall_takes_nothing_from_what_it_reflects() -> None:
    """However the reflection point is rounded, it lies on the wall and not behind it."""
    rng = np.random.default_rng(2)
    walls = 0
    for _ in range(300):
        house = with_bodies((box(30, 0, 10, 10, 60, 20, rng.uniform(-0.3, 0.3)), "brick_shell"))
        device, drone = rng.uniform((0, -9, 0.3), (9, 9, 1.0)), rng.uniform((0, -9, 5.0), (9, 9, 30.0))
        paths = search(house, device, drone)
        assert np.all(paths[:, 4] == 1.0)
        walls += len(paths) - 2
    assert walls > 250


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_strongest_do_not_depend_on_the_order_of_bodies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [
        (box(*rng.uniform(-60, 60, 2), 8, *rng.uniform(3, 20, 2), 16, rng.uniform(-3, 3)), "brick_shell")
        for _ in range(12)
    ]
    device, drone = np.array([0.0, 0.0, 0.5]), np.array([*rng.uniform(-50, 50, 2), 30.0])
    one = search(with_bodies(*rows), device, drone)
    other = search(with_bodies(*rows[::-1]), device, drone)
    assert np.allclose(one, other, rtol=1e-12)


def test_scene_of_every_world_covers_every_body() -> None:
    for file in sorted((ROOT / "worlds").glob("*.sdf")):
        world = load_world(file)
        scene: RadioScene = make_scene(world, CONFIG)
        assert len(scene.bodies) == len(world.obstacles) + len(world.volumes)
        assert np.all(np.sum(scene.bodies[:, 10:13] > 0, axis=1) == 1)
        assert np.all(scene.bodies[scene.bodies[:, 0] == BOX, 9] > 0)
