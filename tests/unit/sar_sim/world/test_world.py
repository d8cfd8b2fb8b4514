"""The committed worlds hold what they promise, and reading a world refuses whatever it cannot represent."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import math
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sar_core.errors import InputError
from sar_core.geometry import BOX, CYLINDER, nearest
from sar_sim.world.materials import RADIO_MATERIALS
from sar_sim.world.world import World, contains, encloses, is_simple, load_world

WORLDS = Path(__file__).resolve().parents[4] / "worlds"
NAMES = ("open_field", "village", "forest", "collapsed_block")


@pytest.fixture(scope="module")
def worlds() -> dict[str, World]:
    return {name: load_world(WORLDS / f"{name}.sdf") for name in NAMES}


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("world_generator", WORLDS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def write(folder: Path, body: str, base: str = "open_field") -> Path:
    """A committed world with one more piece of SDF at its end."""
    text = (WORLDS / f"{base}.sdf").read_text()
    path = folder / "world.sdf"
    path.write_text(text.replace("  </world>", f"{body}\n  </world>"))
    return path


def model(geometry: str, pose: str = "<pose>10 20 2 0 0 0</pose>", link: str = "", inner: str = "") -> str:
    return (
        f'<model name="thing"><static>true</static>{pose}<link name="link">{link}<collision name="body">{inner}'
        f"<geometry>{geometry}</geometry><sar:material>brick</sar:material></collision></link></model>"
    )


CUBE = "<box><size>2 3 4</size></box>"


@pytest.mark.parametrize("name", NAMES)
def test_committed_file_is_what_the_generator_writes(name: str, generator: ModuleType) -> None:
    assert tuple(generator.RECIPES) == NAMES
    assert (WORLDS / f"{name}.sdf").read_text(encoding="utf-8") == generator.render(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_world_has_the_common_frame(name: str, worlds: dict[str, World]) -> None:
    world = worlds[name]
    assert world.name == name
    assert world.sha256 == hashlib.sha256((WORLDS / f"{name}.sdf").read_bytes()).hexdigest()
    assert world.area == (-200.0, -200.0, 200.0, 200.0)
    assert world.altitude_m == 30.0 and world.ceiling_m == 120.0 and world.step_s == 0.004
    np.testing.assert_array_equal(world.fence, [[-220, -220], [220, -220], [220, 220], [-220, 220]])
    np.testing.assert_array_equal(world.wind_mps, [2.0, 0.0, 0.0])
    assert world.origin == (47.397971057728974, 8.546163739800146, 0.0)
    count = len(world.obstacles)
    assert world.obstacles.shape == (count, 8) and world.obstacles.dtype == np.float64
    assert len(world.obstacle_names) == len(world.materials) == len(set(world.obstacle_names)) == count
    assert set(world.materials) | set(world.volume_materials) <= set(RADIO_MATERIALS)


@pytest.mark.parametrize("name", NAMES)
def test_spawns_are_apart_clear_and_south(name: str, worlds: dict[str, World]) -> None:
    world = worlds[name]
    assert len(world.spawns) >= 64
    for a, b in itertools.combinations(world.spawns, 2):
        assert math.hypot(a[0] - b[0], a[1] - b[1]) >= 6.0
    for x, y, z, yaw in world.spawns:
        assert z == 0.0 and yaw == math.pi / 2 and y < world.area[1] and contains(world.fence, x, y)
        assert nearest(world.obstacles, x, y, z)[0] >= 3.0


def test_the_first_spawns_are_a_compact_central_row(worlds: dict[str, World]) -> None:
    spawns = worlds["open_field"].spawns
    for n in range(1, len(spawns) + 1):
        row = np.sort(spawns[:n, 0])
        np.testing.assert_allclose(np.diff(row), 6.0)
        assert abs(row.mean()) <= 3.0


@pytest.mark.parametrize("name", NAMES)
def test_solid_things_stand_on_the_ground_inside_the_area(name: str, worlds: dict[str, World]) -> None:
    world = worlds[name]
    for row, label in zip(world.obstacles, world.obstacle_names, strict=True):
        assert row[3] - row[6] > -1e-9, label
        reach = math.hypot(row[4], row[5])
        assert max(abs(row[1]), abs(row[2])) + reach <= 205.0, label
        # A top within reach of altitude noise would make collisions a matter of luck.
        assert abs(row[3] + row[6] - world.altitude_m) >= 1.4, label


def tops(world: World) -> np.ndarray:
    return world.obstacles[:, 3] + world.obstacles[:, 6]


def test_open_field_is_empty(worlds: dict[str, World]) -> None:
    assert worlds["open_field"].obstacles.shape == (0, 8)


def test_village_has_houses_a_church_and_things_to_avoid(worlds: dict[str, World]) -> None:
    world = worlds["village"]
    heights = tops(world)
    houses = {n.split("/")[0] for n in world.obstacle_names if n.startswith("house_")}
    assert 25 <= len(houses) <= 40
    for house in houses:
        top = max(h for h, n in zip(heights, world.obstacle_names, strict=True) if n.split("/")[0] == house)
        assert 4.0 <= top <= 12.0
    assert heights[world.obstacle_names.index("church/link/tower")] == 36.0
    assert sum("wall" in n for n in world.obstacle_names) >= 30
    assert sum(h >= 32.0 for h in heights) >= 8


def test_forest_trunks(worlds: dict[str, World]) -> None:
    world = worlds["forest"]
    assert 150 <= len(world.obstacles) <= 250
    assert np.all(world.obstacles[:, 0] == CYLINDER) and set(world.materials) == {"wood"}
    assert np.all((world.obstacles[:, 4] >= 0.2) & (world.obstacles[:, 4] <= 0.5))
    assert tops(world).min() >= 14.0 and tops(world).max() <= 34.0
    assert 0.10 <= np.mean(tops(world) > 30.0) <= 0.20
    assert world.volume_materials == ("foliage",) and world.volumes.shape == (1, 8)


def test_collapsed_block_is_dense_with_narrow_gaps_at_flight_altitude(worlds: dict[str, World]) -> None:
    world = worlds["collapsed_block"]
    heights = tops(world)
    stumps = [i for i, n in enumerate(world.obstacle_names) if n.startswith(("stump", "tower"))]
    assert min(heights[i] for i in stumps if "base" not in world.obstacle_names[i]) >= 8.0 and heights.max() == 45.0
    assert np.all(np.abs(world.obstacles[:, 1:3]) <= 152.0)
    towers = world.obstacles[[i for i, n in enumerate(world.obstacle_names) if n.startswith("tower")]]
    gaps = [
        b[1] - b[4] - a[1] - a[4]
        for a, b in itertools.permutations(towers, 2)
        if abs(a[2] - b[2]) < 1e-9 and 0.0 < b[1] - a[1] < 30.0
    ]
    assert len(gaps) == 4 and all(4.0 <= g <= 6.0 for g in gaps)
    # A fifth of the built-up 300 x 300 m is covered.
    xs, ys = np.meshgrid(np.arange(-148.0, 150.0, 4.0), np.arange(-148.0, 150.0, 4.0))
    covered = np.mean([nearest(world.obstacles, x, y, 0.3)[0] < 0.0 for x, y in zip(xs.flat, ys.flat, strict=True)])
    assert covered > 0.2


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_describes_the_files(name: str, worlds: dict[str, World]) -> None:
    line = next(row for row in (WORLDS / "README.md").read_text().splitlines() if row.startswith(f"| `{name}.sdf`"))
    bodies, above, tallest = (cell.strip() for cell in line.strip("|").split("|")[2:])
    heights = tops(worlds[name])
    assert int(bodies) == len(heights) and int(above) == np.sum(heights > 30.0)
    assert tallest == (f"{heights.max():.1f}".removesuffix(".0") + " m" if len(heights) else "-")
    houses = {n.split("/")[0] for n in worlds[name].obstacle_names if n.startswith("house_")}
    assert not houses or f"{len(houses)} houses" in line


numbers = st.floats(-50.0, 50.0, allow_nan=False)
poses = st.tuples(numbers, numbers, numbers, st.floats(-7.0, 7.0, allow_nan=False))


def matrix(pose: tuple[float, float, float, float]) -> np.ndarray:
    x, y, z, yaw = pose
    c, s = math.cos(yaw), math.sin(yaw)
    return np.array([[c, -s, 0, x], [s, c, 0, y], [0, 0, 1, z], [0, 0, 0, 1]])


def tag(pose: tuple[float, float, float, float]) -> str:
    return f"<pose>{pose[0]!r} {pose[1]!r} {pose[2]!r} 0 0 {pose[3]!r}</pose>"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(outer=poses, middle=poses, inner=poses)
def test_nested_poses_agree_with_matrices(
    tmp_path: Path,
    outer: tuple[float, float, float, float],
    middle: tuple[float, float, float, float],
    inner: tuple[float, float, float, float],
) -> None:
    world = load_world(write(tmp_path, model(CUBE, tag(outer), tag(middle), tag(inner))))
    kind, cx, cy, cz, a, b, h, yaw = world.obstacles[0]
    assert kind == BOX and (a, b, h) == (1.0, 1.5, 2.0)
    chain = matrix(outer) @ matrix(middle) @ matrix(inner)
    for corner in itertools.product((-1.0, 1.0), (-1.5, 1.5), (-2.0, 2.0)):
        ours = matrix((cx, cy, cz, yaw)) @ np.array([*corner, 1.0])
        np.testing.assert_allclose(ours, chain @ np.array([*corner, 1.0]), atol=1e-9)


def test_a_cylinder_is_read_with_radius_and_half_height(tmp_path: Path) -> None:
    shape = "<cylinder><radius>0.5</radius><length>8</length></cylinder>"
    world = load_world(write(tmp_path, model(shape, "<pose>10 20 4 0 0 1.5</pose>")))
    np.testing.assert_array_equal(world.obstacles, [[CYLINDER, 10.0, 20.0, 4.0, 0.5, 0.0, 4.0, 0.0]])
    assert world.obstacle_names == ("thing",) and world.materials == ("brick",)


REFUSED = {
    "relative_to": (model(CUBE, '<pose relative_to="x">0 0 0 0 0 0</pose>'), "'relative_to' is not supported"),
    "degrees": (model(CUBE, '<pose degrees="true">0 0 0 0 0 90</pose>'), "'degrees' is not supported"),
    "roll": (model(CUBE, "<pose>0 0 0 0.1 0 0</pose>"), "roll 0.1 and pitch 0: only 0 is allowed"),
    "pitch of the link": (model(CUBE, link="<pose>0 0 0 0 -0.2 0</pose>"), "roll 0 and pitch -0.2"),
    "lying cylinder": (
        model("<cylinder><radius>1</radius><length>3</length></cylinder>", inner="<pose>0 0 0 1.57 0 0</pose>"),
        "roll 1.57",
    ),
    "five numbers": (model(CUBE, "<pose>0 0 0 0 0</pose>"), "pose has 5 values, allowed is exactly 6"),
    "word": (model("<box><size>2 x 4</size></box>"), "size has 'x', which is not a finite number"),
    "nan": (model("<box><size>2 nan 4</size></box>"), "size has 'nan', which is not a finite number"),
    "overflow": (model("<box><size>2 1e999 4</size></box>"), "size has '1e999', which is not a finite number"),
    "python's own spelling": (model("<box><size>2 1_0 4</size></box>"), "'1_0', which is not a finite number"),
    "negative size": (model("<box><size>2 -3 4</size></box>"), "size -3 is not positive"),
    "mesh": (
        model("<mesh><uri>a.dae</uri></mesh>"),
        "geometry is mesh; allowed is exactly one of box, cylinder, plane",
    ),
    "sphere": (model("<sphere><radius>1</radius></sphere>"), "geometry is sphere"),
    "no length": (model("<cylinder><radius>1</radius></cylinder>"), "<length> is missing"),
    "moving": (model(CUBE).replace("true", "false"), "<static> must be true"),
    "include": ("<include><uri>model://tree</uri></include>", "<include> is not supported"),
    "unknown material": (model(CUBE).replace("brick", "brik"), "radio material 'brik' is unknown, allowed are brick,"),
    "no material": (model(CUBE).replace("<sar:material>brick</sar:material>", ""), "<sar:material> is missing"),
    "second ground": (
        model("<plane><normal>0 0 1</normal><size>1 1</size></plane>", "<pose>0 0 0 0 0 0</pose>"),
        "2 ground planes",
    ),
    "spawn in obstacle": (model(CUBE, "<pose>3 -209 2 0 0 0</pose>"), "spawn 0 at (3, -210) overlaps obstacle 'thing'"),
    "spawn outside": ("<sar:spawn>0 -230 0 0</sar:spawn>", "spawn 64 at (0, -230) is outside the fence"),
    "spawn too near": ("<sar:spawn>4 -210 0 0</sar:spawn>", "spawn 64 is 1.00 m from spawn 0, allowed is 3 m or more"),
    "spawn in the air": ("<sar:spawn>0 -204 1 0</sar:spawn>", "spawn 64 stands at z = 1, allowed is 0"),
    "second fence": ('<sar:fence ceiling_m="9">0 0 1 0 0 1</sar:fence>', "<sar:fence> appears 2 times"),
    "volume": ('<sar:volume material="foliage" pose="0 0 0 0" size="1 0 1"/>', "size 0 is not positive"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_represented_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    body, message = REFUSED[case]
    path = write(tmp_path, body)
    with pytest.raises(InputError) as caught:
        load_world(path)
    assert message in str(caught.value)
    assert re.match(rf"{re.escape(str(path))}:\d+: ", str(caught.value)) and "\n" not in str(caught.value)


EDITS = {
    "version": ('version="1.9"', 'version="1.10"', "version is '1.10', allowed is '1.9'"),
    "frame": (">ENU<", ">NED<", "orientation 'NED', allowed is 'ENU'"),
    "heading": ("<heading_deg>0<", "<heading_deg>90<", "heading_deg 90, allowed is 0"),
    "elevation spelt otherwise": ("<elevation>0</elevation>", "<altitude>0</altitude>", "<elevation> is missing"),
    "no step": ("<max_step_size>0.004</max_step_size>", "", "<max_step_size> is missing"),
    "backward step": ("0.004", "-0.004", "max_step_size -0.004 is not positive"),
    "no wind": ("<linear_velocity>2 0 0</linear_velocity>", "", "<linear_velocity> is missing"),
    "bow-tie fence": ("220 -220 220 220 -220 220", "220 220 220 -220 -220 220", "fence crosses or touches itself"),
    "small fence": ("220 220 -220 220</", "220 100 -220 220</", "fence does not contain the whole search area"),
    "odd fence": ("220 220 -220 220</", "220 220 -220</", "fence has 7 values"),
    "low ceiling": ('ceiling_m="120"', 'ceiling_m="25"', "altitude_m 30 must lie between 0 and ceiling_m 25"),
    "no ceiling": (' ceiling_m="120"', "", "attribute 'ceiling_m' is missing"),
    "inside-out area": ("-200 -200 200 200", "200 200 -200 -200", "area 200 200 -200 -200 is empty"),
    "foreign namespace": ("sar-eval.invalid/sdf", "elsewhere.invalid/sdf", "<sar:material> is missing"),
    "two worlds": ("</world>", "</world><world/>", "<sdf> with 2 <world> elements"),
    "unclosed": ("</sdf>", "", "not well-formed XML"),
    "doctype": ("<sdf", '<!DOCTYPE sdf SYSTEM "x"><sdf', "DOCTYPE and entities are not allowed"),
    "entity": ("<sdf", '<!DOCTYPE sdf [<!ENTITY a "b">]><sdf', "DOCTYPE and entities are not allowed"),
}


@pytest.mark.parametrize("case", EDITS)
def test_an_incomplete_world_is_refused(case: str, tmp_path: Path) -> None:
    old, new, message = EDITS[case]
    text = (WORLDS / "open_field.sdf").read_text()
    assert old in text
    path = tmp_path / "world.sdf"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        load_world(path)
    assert caught.value.exit_code == 1 and str(path) in str(caught.value)


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read world file: No such file"):
        load_world(tmp_path / "nowhere.sdf")
    with pytest.raises(InputError, match="cannot read world file: Is a directory"):
        load_world(tmp_path)


@given(x=st.floats(-3, 3), y=st.floats(-3, 3))
def test_contains_agrees_with_the_winding_number(x: float, y: float) -> None:
    polygon = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [0.0, 0.1], [-2.0, 2.0]])
    v = polygon - np.array([x, y])
    w = np.roll(v, -1, axis=0)
    cross = v[:, 0] * w[:, 1] - v[:, 1] * w[:, 0]
    dot = np.sum(v * w, axis=1)
    if np.any((np.abs(cross) < 1e-9) & (dot <= 1e-9)):
        return
    assert contains(polygon, x, y) == (abs(np.sum(np.arctan2(cross, dot))) > math.pi)


def test_polygons_that_touch_themselves_are_not_simple() -> None:
    square = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]])
    assert is_simple(square) and is_simple(square[::-1])
    assert not is_simple(square[[0, 2, 1, 3]])
    assert not is_simple(np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [2.0, 0.0], [0.0, 4.0]]))
    assert not is_simple(np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 0.0]]))
    assert not is_simple(np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]]))


def test_a_notch_that_cuts_into_the_inner_polygon_is_noticed() -> None:
    inner = np.array([[1.0, 1.0], [9.0, 1.0], [9.0, 9.0], [1.0, 9.0]])
    outer = np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 10.0], [0.0, 10.0]])
    notched = np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 10.0], [6.0, 10.0], [5.0, 5.0], [4.0, 10.0], [0.0, 10.0]])
    assert encloses(outer, inner) and encloses(outer, outer)
    assert not encloses(notched, inner)
    assert not encloses(inner, outer)
