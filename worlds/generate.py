#!/usr/bin/env python3
"""Writes the four committed worlds. The SDF files are the truth that is flown; this is how they came to be.

    python worlds/generate.py            writes worlds/*.sdf
    python worlds/generate.py --check    exits 1 if a committed file differs from what this would write

Only random.random() is drawn from, whose sequence Python keeps across versions, and every number is rounded before it
is written, so the output is the same on every machine.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

FLIGHT_ALTITUDE_M = 30.0
HALF_AREA_M = 200.0
HALF_FENCE_M = 220.0
SPAWN_ROW_Y_M = -210.0
SPAWN_SPACING_M = 6.0
SPAWN_COUNT = 64

COLOURS = {
    "brick_shell": "0.72 0.45 0.36",
    "brick": "0.60 0.36 0.28",
    "concrete_shell": "0.62 0.62 0.60",
    "concrete": "0.70 0.70 0.68",
    "rubble": "0.48 0.46 0.43",
    "metal": "0.35 0.37 0.40",
    "wood": "0.36 0.25 0.16",
    "ground": "0.42 0.50 0.30",
}


@dataclass(frozen=True)
class Part:
    """One box (sizes x y z) or upright cylinder (sizes radius height) that stands at height `base` in its model."""

    name: str
    material: str
    sizes: tuple[float, ...]
    x: float = 0.0
    y: float = 0.0
    base: float = 0.0
    yaw: float = 0.0


@dataclass(frozen=True)
class Model:
    name: str
    x: float
    y: float
    yaw: float
    parts: tuple[Part, ...]


class Dice:
    """Uniform draws from one labelled sequence."""

    def __init__(self, label: str) -> None:
        self._random = random.Random(label)

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self._random.random()

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability


def open_field() -> Iterator[Model]:
    """Nothing but grass: the reference area against which the others are read."""
    yield from ()


def village() -> Iterator[Model]:
    """Houses with gardens along two crossing streets, a church, tall poplars and poles."""
    dice = Dice("village")
    main_y, cross_x = 20.0, -40.0
    plots: list[tuple[float, float, float]] = []
    for column in range(11):
        x = -165.0 + 31.5 * column + dice.between(-4.0, 4.0)
        if abs(x - cross_x) < 18.0:
            continue
        if not 55.0 < x < 105.0:
            plots.append((x, main_y + 17.0, 0.0))
        plots.append((x, main_y - 17.0, math.pi))
    for row in range(11):
        y = -165.0 + 31.5 * row + dice.between(-4.0, 4.0)
        if abs(y - main_y) < 50.0:
            continue
        plots.append((cross_x - 17.0, y, math.pi / 2))
        plots.append((cross_x + 17.0, y, -math.pi / 2))
    plots += [(110.0, 125.0, 0.35), (-140.0, -110.0, -0.6), (125.0, -120.0, 0.9)]
    for i, (x, y, heading) in enumerate(plots):
        yield _house(f"house_{i + 1:02d}", x, y, heading + dice.between(-0.08, 0.08), dice)

    yield Model(
        "church",
        80.0,
        main_y + 26.0,
        0.0,
        (
            Part("nave", "brick_shell", (26.0, 12.0, 13.0)),
            Part("tower", "brick_shell", (7.0, 7.0, 36.0), x=-16.5),
        ),
    )
    poles = [(-120.0, 20.0), (20.0, 26.0), (150.0, 20.0), (-40.0, -95.0), (-40.0, 125.0)]
    for i, (x, y) in enumerate(poles):
        yield _pole(f"pole_{i + 1}", x, y, 0.2, dice.between(32.0, 34.0), "metal")
    poplars = [(50.0 + 12.0 * k, -70.0 - 2.5 * k) for k in range(6)] + [(-150.0, 90.0), (-135.0, 97.0), (105.0, 80.0)]
    for i, (x, y) in enumerate(poplars):
        yield _pole(f"poplar_{i + 1}", x, y, dice.between(0.3, 0.45), dice.between(32.0, 35.0), "wood")
    taken = [(x, y) for x, y, _ in plots] + poles + poplars + [(80.0, main_y + 26.0), (64.0, main_y + 26.0)]

    def off_street(x: float, y: float) -> bool:
        return abs(y - main_y) > 9.0 and abs(x - cross_x) > 9.0

    for i, (x, y) in enumerate(_scatter(dice, 24, 16.0, taken, off_street)):
        yield _pole(f"tree_{i + 1:02d}", x, y, dice.between(0.15, 0.35), dice.between(6.0, 16.0), "wood")


def forest() -> Iterator[Model]:
    """Trunks in uneven density with two clearings and a track; one in six or seven rises above the flight altitude."""
    dice = Dice("forest")

    def grows(x: float, y: float) -> bool:
        clearing = math.hypot(x + 85.0, y - 75.0) < 42.0 or math.hypot(x - 100.0, y + 55.0) < 34.0
        track = abs(x - 25.0 - 22.0 * math.sin(y / 60.0)) < 7.0
        thin = x + y > 150.0 and dice.chance(0.6)
        return not (clearing or track or thin)

    for i, (x, y) in enumerate(_scatter(dice, 210, 10.0, [], grows)):
        tall = dice.chance(0.18)
        height = dice.between(31.5, 34.0) if tall else dice.between(14.0, 28.5)
        radius = 0.2 + 0.3 * (height - 14.0) / 20.0 * dice.between(0.7, 1.0)
        yield _pole(f"tree_{i + 1:03d}", x, y, radius, height, "wood")


def collapsed_block() -> Iterator[Model]:
    """Six by six city blocks: tower stumps, pancaked slabs and rubble heaps, split by streets and narrow alleys."""
    dice = Dice("collapsed_block")
    pitch, street = 50.0, 9.0
    twins = {(1, 4), (4, 2), (2, 1), (4, 5)}
    square = (3, 3)
    for bx in range(6):
        for by in range(6):
            if (bx, by) == square:
                continue
            alley_x, alley_y = dice.between(4.0, 6.0), dice.between(4.0, 6.0)
            for lot in range(4):
                wide, deep = (pitch - street - alley_x) / 2, (pitch - street - alley_y) / 2
                side_x, side_y = (-1, 1)[lot % 2], (-1, 1)[lot // 2]
                x = (bx - 2.5) * pitch + side_x * (wide + alley_x) / 2
                y = (by - 2.5) * pitch + side_y * (deep + alley_y) / 2
                name = f"{bx + 1}{by + 1}{'abcd'[lot]}"
                fate = dice.between(0.0, 1.0)
                if (bx, by) in twins and lot < 2:
                    tower = Part("tower", "concrete_shell", (wide, deep, dice.between(34.0, 45.0)))
                    yield Model(f"tower_{name}", x, y, 0.0, (tower,))
                elif fate < 0.30:
                    yield _stump(f"stump_{name}", x, y, wide, deep, _clear_of_flight(8.0 + 34.0 * fate / 0.30), dice)
                elif fate < 0.55:
                    yield _pancake(f"slabs_{name}", x, y, wide, deep, dice)
                elif fate < 0.85:
                    yield _heap(f"rubble_{name}", x, y, wide, deep, dice)
    crane = (Part("mast", "metal", (1.8, 1.8, 45.0)), Part("foot", "concrete", (6.0, 6.0, 1.2)))
    yield Model("crane", 25.0, 25.0, 0.4, crane)
    for i in range(24):
        along, line = dice.between(-145.0, 145.0), (round(dice.between(-2.5, 2.5)) * pitch)
        x, y = (along, line) if i % 2 else (line, along)
        sizes = (dice.between(1.5, 4.5), dice.between(1.0, 2.5), dice.between(0.6, 2.2))
        yield Model(f"debris_{i + 1:02d}", x, y, dice.between(-1.5, 1.5), (Part("block", "rubble", sizes),))


def _house(name: str, x: float, y: float, yaw: float, dice: Dice) -> Model:
    """A house facing -y in its own frame: body, narrower attic, sometimes an annex and garden walls behind."""
    wide, deep = dice.between(9.0, 15.0), dice.between(8.0, 11.0)
    eaves = dice.between(4.0, 7.5)
    parts = [
        Part("body", "brick_shell", (wide, deep, eaves)),
        Part("attic", "brick_shell", (wide, 0.55 * deep, dice.between(2.0, 4.4)), base=eaves),
    ]
    if dice.chance(0.4):
        parts.append(Part("annex", "brick_shell", (4.5, 0.6 * deep, 3.2), x=wide / 2 + 2.25, y=0.15 * deep))
    if dice.chance(0.6):
        long, half = dice.between(9.0, 13.0), wide / 2 + 0.5
        start = deep / 2
        parts += [
            Part("wall_left", "brick", (0.3, long, 1.8), x=-half, y=start + long / 2),
            Part("wall_right", "brick", (0.3, long, 1.8), x=half, y=start + long / 2),
            Part("wall_back", "brick", (2 * half + 0.3, 0.3, 1.8), y=start + long + 0.15),
        ]
    return Model(name, x, y, yaw, tuple(parts))


def _pole(name: str, x: float, y: float, radius: float, height: float, material: str) -> Model:
    return Model(name, x, y, 0.0, (Part("trunk" if material == "wood" else "pole", material, (radius, height)),))


def _stump(name: str, x: float, y: float, wide: float, deep: float, height: float, dice: Dice) -> Model:
    """What stands of a tower: a lower part filling most of its lot, and from two thirds up only a part of the plan."""
    wide, deep = wide * dice.between(0.7, 0.95), deep * dice.between(0.7, 0.95)
    knee = _clear_of_flight(height * dice.between(0.55, 0.75))
    share = dice.between(0.35, 0.7)
    side = -1.0 if dice.chance(0.5) else 1.0
    parts = (
        Part("base", "concrete_shell", (wide, deep, knee)),
        Part("top", "concrete_shell", (share * wide, deep, height - knee), x=side * (1 - share) * wide / 2, base=knee),
    )
    return Model(name, x, y, dice.between(-0.1, 0.1), parts)


def _pancake(name: str, x: float, y: float, wide: float, deep: float, dice: Dice) -> Model:
    """Floors fallen onto each other, each a little smaller and turned against the one below."""
    parts = []
    base = 0.0
    for k in range(3 if dice.chance(0.5) else 2):
        scale = 0.83 - 0.13 * k
        thick = dice.between(0.7, 1.6)
        yaw = dice.between(-0.12, 0.12) * (1 + k)
        parts.append(Part(f"slab_{k + 1}", "concrete", (scale * wide, scale * deep, thick), base=base, yaw=yaw))
        base += thick
    return Model(name, x, y, 0.0, tuple(parts))


def _heap(name: str, x: float, y: float, wide: float, deep: float, dice: Dice) -> Model:
    """Broken pieces of all directions, piled within the lot."""
    parts = []
    for k in range(3 if dice.chance(0.6) else 4):
        sizes = (dice.between(3.0, 9.0), dice.between(2.0, 5.0), dice.between(1.0, 4.5))
        px, py = dice.between(-0.25, 0.25) * wide, dice.between(-0.25, 0.25) * deep
        parts.append(Part(f"piece_{k + 1}", "rubble", sizes, x=px, y=py, yaw=dice.between(-1.5, 1.5)))
    return Model(name, x, y, 0.0, tuple(parts))


def _clear_of_flight(height: float) -> float:
    """A top within 1.5 m of the flight altitude would test altitude noise, not avoidance: such tops are raised."""
    return height if abs(height - FLIGHT_ALTITUDE_M) >= 1.5 else FLIGHT_ALTITUDE_M + 1.5


def _scatter(
    dice: Dice, count: int, spacing: float, taken: list[tuple[float, float]], allowed: Callable[[float, float], bool]
) -> list[tuple[float, float]]:
    """Points in the search area (kept 10 m off its launch side) no two of which, nor any taken one, are closer."""
    points: list[tuple[float, float]] = []
    while len(points) < count:
        x, y = dice.between(-195.0, 195.0), dice.between(-190.0, 195.0)
        if allowed(x, y) and all(math.hypot(x - a, y - b) >= spacing for a, b in points + taken):
            points.append((x, y))
    return points


HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<!-- {summary} Written by worlds/generate.py: change that, not this. -->
<sdf version="1.9" xmlns:sar="https://sar-eval.invalid/sdf">
  <world name="{name}">
    <physics name="step_4ms" type="ode">
      <max_step_size>0.004</max_step_size>
      <real_time_factor>1.0</real_time_factor>
      <real_time_update_rate>250</real_time_update_rate>
    </physics>
    <!-- A world with any plugin makes gz-sim ignore the server configuration, so all that PX4 needs is here. -->
    <plugin filename="gz-sim-physics-system" name="gz::sim::systems::Physics"/>
    <plugin filename="gz-sim-user-commands-system" name="gz::sim::systems::UserCommands"/>
    <plugin filename="gz-sim-scene-broadcaster-system" name="gz::sim::systems::SceneBroadcaster"/>
    <plugin filename="gz-sim-contact-system" name="gz::sim::systems::Contact"/>
    <plugin filename="gz-sim-imu-system" name="gz::sim::systems::Imu"/>
    <plugin filename="gz-sim-air-pressure-system" name="gz::sim::systems::AirPressure"/>
    <plugin filename="gz-sim-navsat-system" name="gz::sim::systems::NavSat"/>
    <plugin filename="gz-sim-magnetometer-system" name="gz::sim::systems::Magnetometer">
      <use_units_gauss>true</use_units_gauss>
      <use_earth_frame_ned>true</use_earth_frame_ned>
    </plugin>
    <plugin filename="gz-sim-wind-effects-system" name="gz::sim::systems::WindEffects">
      <force_approximation_scaling_factor>1</force_approximation_scaling_factor>
    </plugin>
    <gravity>0 0 -9.8</gravity>
    <magnetic_field>6e-06 2.3e-05 -4.2e-05</magnetic_field>
    <atmosphere type="adiabatic"/>
    <wind>
      <linear_velocity>2 0 0</linear_velocity>
    </wind>
    <spherical_coordinates>
      <surface_model>EARTH_WGS84</surface_model>
      <world_frame_orientation>ENU</world_frame_orientation>
      <latitude_deg>47.397971057728974</latitude_deg>
      <longitude_deg>8.546163739800146</longitude_deg>
      <elevation>0</elevation>
      <heading_deg>0</heading_deg>
    </spherical_coordinates>
    <scene>
      <ambient>0.5 0.5 0.5 1</ambient>
      <background>0.72 0.80 0.90 1</background>
      <shadows>true</shadows>
      <grid>false</grid>
    </scene>
    <light name="sun" type="directional">
      <pose>0 0 500 0 0 0</pose>
      <cast_shadows>true</cast_shadows>
      <intensity>1</intensity>
      <direction>0.3 0.5 -0.8</direction>
      <diffuse>0.9 0.9 0.9 1</diffuse>
      <specular>0.2 0.2 0.2 1</specular>
    </light>
"""


def _number(value: float, digits: int) -> str:
    text = f"{round(value, digits):.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _metres(*values: float) -> str:
    return " ".join(_number(v, 2) for v in values)


def _geometry(part: Part) -> str:
    if len(part.sizes) == 2:
        radius, length = part.sizes
        return f"<cylinder><radius>{_metres(radius)}</radius><length>{_metres(length)}</length></cylinder>"
    return f"<box><size>{_metres(*part.sizes)}</size></box>"


def _model(model: Model) -> Iterator[str]:
    yield f'    <model name="{model.name}">'
    yield "      <static>true</static>"
    yield f"      <pose>{_metres(model.x, model.y)} 0 0 0 {_number(model.yaw, 4)}</pose>"
    yield '      <link name="link">'
    for part in model.parts:
        middle = round(part.base, 2) + round(part.sizes[-1], 2) / 2
        pose = f"<pose>{_metres(part.x, part.y)} {_number(middle, 3)} 0 0 {_number(part.yaw, 4)}</pose>"
        shape = f"<geometry>{_geometry(part)}</geometry>"
        colour = COLOURS[part.material]
        yield f'        <collision name="{part.name}">'
        yield f"          {pose}"
        yield f"          {shape}"
        yield f"          <sar:material>{part.material}</sar:material>"
        yield "        </collision>"
        yield f'        <visual name="{part.name}_visual">'
        yield f"          {pose}"
        yield f"          {shape}"
        yield f"          <material><ambient>{colour} 1</ambient><diffuse>{colour} 1</diffuse></material>"
        yield "        </visual>"
    yield "      </link>"
    yield "    </model>"


def _ground() -> Iterator[str]:
    plane = "<geometry><plane><normal>0 0 1</normal><size>600 600</size></plane></geometry>"
    colour = COLOURS["ground"]
    yield '    <model name="ground_plane">'
    yield "      <static>true</static>"
    yield '      <link name="link">'
    yield f'        <collision name="ground">{plane}<sar:material>ground</sar:material></collision>'
    yield f'        <visual name="ground_visual">{plane}'
    yield f"          <material><ambient>{colour} 1</ambient><diffuse>{colour} 1</diffuse></material>"
    yield "        </visual>"
    yield "      </link>"
    yield "    </model>"


def _spawns() -> Iterator[str]:
    """One row along the south edge, facing north, from its middle outwards: the first N are always neighbours."""
    for i in range(SPAWN_COUNT):
        side = 1 if i % 2 == 0 else -1
        x = side * SPAWN_SPACING_M * (i // 2 + 0.5)
        yield f"    <sar:spawn>{_metres(x, SPAWN_ROW_Y_M)} 0 {math.pi / 2!r}</sar:spawn>"


@dataclass(frozen=True)
class Recipe:
    summary: str
    models: Callable[[], Iterator[Model]]
    volumes: tuple[str, ...] = ()


RECIPES = {
    "open_field": Recipe("Open field: 400 x 400 m of grass.", open_field),
    "village": Recipe("Village: houses, garden walls, a church, poplars and poles.", village),
    "forest": Recipe(
        "Forest: trunks with two clearings and a track.",
        forest,
        ('name="canopy" material="foliage" pose="0 2.5 15 0" size="400 395 12"',),
    ),
    "collapsed_block": Recipe("Collapsed block: stumps, fallen slabs and rubble with narrow gaps.", collapsed_block),
}


def render(name: str) -> str:
    """The text of one world file."""
    recipe = RECIPES[name]
    a, f = HALF_AREA_M, HALF_FENCE_M
    lines = [
        f'    <sar:mission altitude_m="{_metres(FLIGHT_ALTITUDE_M)}" area="{_metres(-a, -a, a, a)}"/>',
        f'    <sar:fence ceiling_m="120">{_metres(-f, -f, f, -f, f, f, -f, f)}</sar:fence>',
        *_spawns(),
        *(f"    <sar:volume {volume}/>" for volume in recipe.volumes),
        *_ground(),
    ]
    for model in recipe.models():
        lines += _model(model)
    return HEAD.format(name=name, summary=recipe.summary) + "\n".join(lines) + "\n  </world>\n</sdf>\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the committed worlds, or check that they are as written.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file differs")
    check = parser.parse_args().check
    stale = []
    for name in RECIPES:
        path = Path(__file__).resolve().parent / f"{name}.sdf"
        text = render(name)
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(path.name)
    if stale:
        print(f"differ from worlds/generate.py: {', '.join(stale)}", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
