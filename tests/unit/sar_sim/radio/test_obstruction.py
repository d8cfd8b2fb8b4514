"""What bodies take against the slow version, sampling, the slab at its angle, and Fresnel's integrals."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import fresnel

from sar_core.geometry import box, cylinder, distance_to
from sar_core.radio import WAVELENGTH_M
from sar_sim.radio.fresnel import passage, te_share
from sar_sim.radio.obstruction import direct_loss_db, knife_share, loss_db, make_bodies
from sar_sim.world.materials import RADIO_MATERIALS, imaginary_permittivity
from sar_sim.world.world import World, load_world

Floats = NDArray[np.float64]
Place = tuple[float, float, float]

ROOT = Path(__file__).parents[4]
FIELD = load_world(ROOT / "worlds/open_field.sdf")
SOLID = {name: material.db_per_m for name, material in RADIO_MATERIALS.items()}


def with_bodies(*bodies: tuple[Floats, str], volumes: tuple[tuple[Floats, str], ...] = ()) -> World:
    return replace(
        FIELD,
        obstacles=np.array([row for row, _ in bodies]).reshape(-1, 8),
        materials=tuple(name for _, name in bodies),
        volumes=np.array([row for row, _ in volumes]).reshape(-1, 8),
        volume_materials=tuple(name for _, name in volumes),
    )


def loss(world: World, a: Place, b: Place) -> float:
    return float(loss_db(make_bodies(world), *a, *b, -1))


def wall_db(name: str, normal: float = 1.0, up: float = 0.0) -> float:
    """One wall of a shell, crossed in a direction with these cosines along its normal and upwards."""
    m = RADIO_MATERIALS[name]
    eps = (m.permittivity, imaginary_permittivity(m.conductivity_spm))
    return -10.0 * math.log10(passage(normal, te_share(normal, up), *eps, m.wall_m))


@pytest.mark.parametrize("name", ["village", "forest", "collapsed_block"])
def test_compiled_equals_direct(name: str) -> None:
    world = load_world(ROOT / f"worlds/{name}.sdf")
    bodies = make_bodies(world)
    rng = np.random.default_rng(1)
    weakened = 0
    for k in range(80):
        a, b = rng.uniform((-150, -150, 0.0), (150, 150, 1.0)), rng.uniform((-150, -150, 0.0), (150, 150, 40.0))
        skip = k if k % 2 else -1
        slow = direct_loss_db(bodies, a, b, skip)
        assert loss_db(bodies, *map(float, a), *map(float, b), skip) == pytest.approx(slow, rel=1e-6, abs=1e-6)
        weakened += slow > 0.0
    assert weakened > 25


def test_solids_take_their_share_of_the_chord() -> None:
    """The wall is so large that what bends round it is 20 dB below what goes through."""
    wall = with_bodies((box(5, 0, 0, 0.3, 800, 800), "brick"))
    assert loss(wall, (0, 0, 1), (10, 0, 1)) == pytest.approx(0.3 * SOLID["brick"], abs=0.05)
    assert loss(wall, (0, -5, 1), (10, 5, 1)) == pytest.approx(0.3 * SOLID["brick"] * math.sqrt(2), abs=0.05)
    assert loss(wall, (5, 0, 1), (10, 0, 1)) == pytest.approx(0.15 * SOLID["brick"])
    assert loss(wall, (0, 0, 1), (4, 0, 1)) == 0.0
    low = with_bodies((box(5, 0, 2, 0.3, 10, 4), "concrete"))
    assert loss(low, (0, 0, 5), (10, 0, 5)) == 0.0


def test_each_wall_of_a_house_takes_what_its_slab_takes_at_the_angle() -> None:
    house = with_bodies((box(0, 0, 0, 400, 400, 400), "brick_shell"))
    assert loss(house, (0, 0, 1), (300, 0, 1)) == pytest.approx(wall_db("brick_shell"))
    assert loss(house, (300, 0, 1), (0, 0, 1)) == pytest.approx(6.48, abs=0.01)
    assert loss(house, (-1, 0, 1), (1, 0, 1)) == loss(house, (-4, 0, 1), (4, 0, 1)) == 0.0
    assert loss(house, (-300, 0, 1), (300, 0, 1)) == pytest.approx(2 * wall_db("brick_shell"), abs=0.1)
    out = np.array([300.0, 200.0, 150.0]) / np.linalg.norm([300, 200, 150])
    assert loss(house, (0, 0, 0), (300, 200, 150)) == pytest.approx(wall_db("brick_shell", out[0], out[2]))
    roof = -10.0 * math.log10(
        passage(out[0], 0.0, 3.91, imaginary_permittivity(RADIO_MATERIALS["brick"].conductivity_spm), 0.24)
    )
    assert loss(house, (0, 0, 0), (200, 150, 300)) == pytest.approx(roof, abs=1e-3)


def test_nothing_bends_round_a_cylinder() -> None:
    trunk = with_bodies((cylinder(5, 0, 5, 0.4, 10), "wood"))
    assert loss(trunk, (0, 0, 1), (10, 0, 1)) == pytest.approx(0.8 * SOLID["wood"])
    assert loss(trunk, (5, 0, 1), (5, 0, 30)) == pytest.approx(9.0 * SOLID["wood"])
    assert loss(trunk, (0, 0, 11), (10, 0, 11)) == 0.0


def test_loss_in_leaves_follows_weissberger() -> None:
    crown = with_bodies(volumes=((box(0, 0, 10, 400, 400, 10), "foliage"),))
    assert loss(crown, (0, 0, 0), (0, 0, 30)) == pytest.approx(10 * 0.577)
    slant = 10 * math.hypot(100, 30) / 30
    assert loss(crown, (0, 0, 0), (100, 0, 30)) == pytest.approx(1.33 * 2.437**0.284 * slant**0.588, rel=2e-3)


@settings(max_examples=60)
@given(
    kind=st.sampled_from(["box", "cylinder"]),
    sizes=st.tuples(*[st.floats(0.5, 20.0)] * 3),
    yaw=st.floats(-3.0, 3.0),
    a=st.tuples(st.floats(-15, 15), st.floats(-15, 15), st.floats(0, 15)),
    b=st.tuples(st.floats(-15, 15), st.floats(-15, 15), st.floats(0, 15)),
)
def test_chord_by_sampling(kind: str, sizes: Place, yaw: float, a: Place, b: Place) -> None:
    """Of a volume, which has no edges; short of where leaves begin to shade each other."""
    row = box(0, 0, 5, *sizes, yaw) if kind == "box" else cylinder(0, 0, 5, sizes[0] / 2, sizes[2])
    shares = (np.arange(4000) + 0.5) / 4000
    points = np.array(a) + shares[:, None] * (np.array(b) - np.array(a))
    chord = np.mean([distance_to(row, *point) < 0.0 for point in points]) * math.dist(a, b)
    got = loss(with_bodies(volumes=((row, "foliage"),)), a, b)
    taken = min(chord, 14.0 * (chord / 14.0) ** 0.588 if chord > 0.0 else 0.0)
    assert got / SOLID["foliage"] == pytest.approx(taken, abs=math.dist(a, b) / 1000 + 1e-9)


@pytest.mark.parametrize("v", [0.0, 0.5, 1.0, 2.4, 6.0])
def test_a_knife_edge_by_fresnels_integrals(v: float) -> None:
    """Rec. ITU-R P.526: the approximation is that of the exact integral; 6 dB where the ray touches the edge."""
    s, c = fresnel(v)
    exact = -20.0 * math.log10(math.hypot(1.0 - c - s, c - s) / 2.0)
    got = -10.0 * math.log10(knife_share(0.25 * v * v * WAVELENGTH_M))
    assert got == pytest.approx(exact, abs=0.15)
    if v == 0.0:
        assert got == pytest.approx(6.03, abs=0.01)


def test_over_a_screen_by_the_geometry_of_p526() -> None:
    """v = h sqrt(2 / wavelength (1 / d1 + 1 / d2)) for a screen with no way past its sides and none through it."""
    h, d1, d2 = 2.0, 40.0, 60.0
    screen = with_bodies((box(0, 0, 5, 1e-6, 1e5, 10), "metal"))
    v = h * math.sqrt(2.0 / WAVELENGTH_M * (1.0 / d1 + 1.0 / d2))
    expected = 6.9 + 20.0 * math.log10(math.sqrt((v - 0.1) ** 2 + 1.0) + v - 0.1)
    assert loss(screen, (-d1, 0, 10 - h), (d2, 0, 10 - h)) == pytest.approx(expected, abs=0.05)
    assert loss(screen, (-d1, 0, 10.1), (d2, 0, 10.1)) == 0.0


def test_past_the_sides_of_a_mast_comes_twice_what_comes_past_one() -> None:
    mast = with_bodies((box(0, 0, 0, 2, 2, 1e5), "metal"))
    half = with_bodies((box(0, 5e4 - 1, 0, 2, 1e5, 1e5), "metal"))
    ways = (-30.0, 0.0, 1.0), (30.0, 0.0, 1.0)
    assert loss(half, *ways) - loss(mast, *ways) == pytest.approx(10 * math.log10(2), abs=0.05)


def test_an_end_within_a_box_sees_no_edges() -> None:
    slab = with_bodies((box(0, 0, 1, 4, 4, 2), "concrete"))
    assert loss(slab, (0, 0, 1), (0, 0, 30)) == pytest.approx(SOLID["concrete"])
    assert loss(slab, (0, 0, 30), (0, 0, 1)) == pytest.approx(SOLID["concrete"])
    assert loss(slab, (0, 0, 2), (30, 0, 2.1)) == 0.0
    deep = with_bodies((box(0, 0, 0, 400, 400, 400), "concrete"))
    assert loss(deep, (0, 0, 0), (90, 0, 0)) == pytest.approx(90 * SOLID["concrete"])


def test_a_body_never_strengthens() -> None:
    """Where a thin body lies across, passage and edges would add up to more than arrived."""
    sheet = with_bodies((box(0, 0, 1, 0.01, 0.5, 2), "wood"))
    assert loss(sheet, (-20, 0, 1), (20, 0, 1)) == 0.0


def test_behind_a_solid_what_bends_is_what_is_left() -> None:
    """Absorption alone would take 66 dB from each metre."""
    slab = with_bodies((box(0, 0, 5, 10, 10, 10), "concrete"))
    taken = loss(slab, (-12, 0, 0.5), (60, 0, 30))
    assert taken < 40.0 < 10 * SOLID["concrete"]
    assert taken > 10.0
