"""Who transmits: layouts that depend on nothing but the episode, and devices that keep to what they are."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_core.errors import InputError
from sar_core.geometry import box, distance_to
from sar_sim.radio.devices import (
    APART_M,
    EDGE_M,
    Device,
    DeviceKind,
    known_addresses,
    make_devices,
    make_transmitters,
    place_devices,
)
from sar_sim.radio.radioconfig import load_radio
from sar_sim.world.world import World, load_world

ROOT = Path(__file__).parents[4]
WORLDS = {file.stem: load_world(file) for file in sorted((ROOT / "worlds").glob("*.sdf"))}
CONFIG = load_radio(ROOT / "configs/radio/default.yaml")


def same(a: Device, b: Device) -> bool:
    return (
        (a.address, a.kind, a.beacon, a.power_db, a.duty, a.windows)
        == (b.address, b.kind, b.beacon, b.power_db, b.duty, b.windows)
    ) and np.array_equal(a.track, b.track)


def test_one_more_moves_none_of_the_others() -> None:
    world = WORLDS["village"]
    full = make_devices(world, 1, 7, victims=3, decoys=8)
    fewer = make_devices(world, 1, 7, victims=2, decoys=5)
    assert all(same(a, b) for a, b in zip(fewer, full[:2] + full[3:8], strict=True))
    absent = make_devices(world, 1, 7, victims=3, decoys=8, victim_absent=True)
    assert all(same(a, b) for a, b in zip(absent, full[3:], strict=True))
    assert not same(full[0], make_devices(world, 1, 8, 1, 0)[0])
    assert not same(full[0], make_devices(world, 2, 7, 1, 0)[0])
    assert {d.kind for d in full[3:7]} == {d.kind for d in full[7:]} == set(DeviceKind) - {DeviceKind.VICTIM}


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_victims_lie_where_people_can(name: str) -> None:
    world = WORLDS[name]
    x_min, y_min, x_max, y_max = world.area
    within: set[str] = set()
    places = []
    for index in range(60):
        victims = make_devices(world, 1, index, 3, 0)
        spots = [v.track[0, 1:] for v in victims]
        places += spots
        assert all(v.kind is DeviceKind.VICTIM and len(v.track) == 1 and not v.beacon for v in victims)
        assert min(math.dist(a[:2], b[:2]) for i, a in enumerate(spots) for b in spots[:i]) >= APART_M
        for x, y, z in spots:
            assert x_min + EDGE_M <= x <= x_max - EDGE_M and y_min + EDGE_M <= y <= y_max - EDGE_M and 0.3 <= z <= 1.0
            for row, material in zip(world.obstacles, world.materials, strict=True):
                if distance_to(row, x, y, z) <= 0.0:
                    within.add(material)
    assert within <= {"brick_shell", "concrete_shell", "rubble"}
    if name in ("village", "collapsed_block"):
        assert within
    quadrants = {(x > (x_min + x_max) / 2, y > (y_min + y_max) / 2) for x, y, _ in places}
    assert len(quadrants) == 4


def decoys(world: World, kind: DeviceKind, episodes: int = 40) -> list[Device]:
    return [d for index in range(episodes) for d in make_devices(world, 1, index, 0, 4) if d.kind is kind]


def test_decoys_keep_to_their_kind() -> None:
    world = WORLDS["village"]
    for rescuer in decoys(world, DeviceKind.RESCUER):
        legs = np.diff(rescuer.track, axis=0)
        assert np.linalg.norm(legs[:, 1:], axis=1) / legs[:, 0] == pytest.approx(np.full(len(legs), 1.2))
        assert rescuer.track[-1, 0] >= 1200.0 and not rescuer.beacon
        assert np.abs(rescuer.track[:, 1:3]).max() <= 200.0
    for passer in decoys(world, DeviceKind.PASSER_BY):
        (start, *a), (end, *b) = passer.track
        assert 5.0 <= math.dist(a, b) / (end - start) <= 10.0
        assert passer.windows == ((start, end),) and not passer.beacon
    for point in decoys(world, DeviceKind.ACCESS_POINT):
        assert point.beacon and len(point.track) == 1
        inside = [distance_to(row, *point.track[0, 1:]) < 0.0 for row in world.obstacles]
        assert "brick_shell" in {m for m, hit in zip(world.materials, inside, strict=True) if hit}
    share = [
        sum(min(end, 600.0) - min(start, 600.0) for start, end in d.windows) / 600.0
        for d in decoys(world, DeviceKind.INTERFERENCE)
    ]
    assert 0.05 < np.mean(share) < 0.15
    assert all(len(d.track) == 1 for d in decoys(WORLDS["open_field"], DeviceKind.ACCESS_POINT, 10))


def test_addresses_tell_nothing_and_never_repeat() -> None:
    everyone = [d for index in range(200) for d in make_devices(WORLDS["open_field"], 1, index, 3, 4)]
    addresses = [d.address for d in everyone]
    assert len(set(addresses)) == len(addresses)
    assert all(0 < a < 1 << 48 and a >> 40 & 3 == 2 for a in addresses)
    victims = np.array([d.address for d in everyone if d.kind is DeviceKind.VICTIM], dtype=float)
    others = np.array([d.address for d in everyone if d.kind is not DeviceKind.VICTIM], dtype=float)
    assert abs(victims.mean() - others.mean()) < 4 * others.std() / math.sqrt(len(victims))


def test_swarm_is_told_some_of_the_rescuers_and_access_points() -> None:
    everyone = [d for index in range(200) for d in make_devices(WORLDS["open_field"], 1, index, 2, 4)]
    told = set(known_addresses(everyone))
    listed = [d for d in everyone if d.kind in (DeviceKind.RESCUER, DeviceKind.ACCESS_POINT)]
    assert told <= {d.address for d in listed}
    assert len(told) / len(listed) == pytest.approx(0.6, abs=3 * math.sqrt(0.24 / len(listed)))
    assert known_addresses(everyone[:7]) == tuple(sorted(told & {d.address for d in everyone[:7]}))


def on_air(device: Device, time_s: float) -> bool:
    return not device.windows or any(start <= time_s < end for start, end in device.windows)


def test_arrays_move_as_the_devices_do() -> None:
    devices = make_devices(WORLDS["village"], 1, 3, 2, 8)
    sources = make_transmitters(devices, CONFIG)
    cursor = np.zeros(len(devices), dtype=np.int64)
    state = np.full((len(devices), 4), np.nan)
    before = None
    for tick in range(0, 6400, 7):
        sends = np.ones(len(devices), dtype=np.bool_)
        place_devices(sources, tick * 0.05, cursor, state, sends)
        expected = np.array([d.position_at(tick * 0.05) for d in devices])
        assert np.allclose(state[:, :3], expected, rtol=0, atol=1e-9)
        assert list(sends) == [on_air(d, tick * 0.05) for d in devices]
        walked = np.zeros(len(devices)) if before is None else np.linalg.norm(expected - before, axis=1)
        assert np.allclose(state[:, 3], walked, atol=1e-9)
        before = expected


def test_radiated_power_follows_the_budget() -> None:
    place = np.array([[0.0, 0.0, 0.0, 0.5]])
    kinds = [Device(k, kind, place, power_db=1.0) for k, kind in enumerate(DeviceKind)]
    for config, victim in ((CONFIG, 9.0), (load_radio(ROOT / "configs/radio/short_range.yaml"), -21.0)):
        dbm = 20 * np.log10(make_transmitters(kinds, config).amplitude)
        assert dbm == pytest.approx([victim, 9.0, 9.0, 9.0, 13.0])


def test_no_room_is_said() -> None:
    world = WORLDS["open_field"]
    with pytest.raises(InputError, match="no room for 300 victims 40 m apart; at most"):
        make_devices(replace(world, area=(-80.0, -80.0, 80.0, 80.0)), 1, 0, 300, 0)
    with pytest.raises(InputError, match="wider than 40 m"):
        make_devices(replace(world, area=(-10.0, -10.0, 10.0, 10.0)), 1, 0, 1, 0)
    solid = replace(world, obstacles=box(0, 0, 2, 500, 500, 4)[None], materials=("concrete",))
    with pytest.raises(InputError, match="no free place"):
        make_devices(solid, 1, 0, 1, 0)
