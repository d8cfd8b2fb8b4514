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
    PHONES,
    VERSIONS,
    Device,
    DeviceKind,
    design_of,
    known_addresses,
    layout_key,
    make_devices,
    make_transmitters,
    place_devices,
)
from sar_sim.radio.radioconfig import load_radio
from sar_sim.world.world import World, load_world

ROOT = Path(__file__).parents[4]
WORLDS = {file.stem: load_world(file) for file in sorted((ROOT / "worlds").glob("*.sdf"))}
CONFIG = load_radio(ROOT / "configs/radio/open_ground.yaml")


def same(a: Device, b: Device) -> bool:
    plain = [{**vars(device), "track": device.track.tolist()} for device in (a, b)]
    return plain[0] == plain[1]


@pytest.mark.parametrize("version", [1, 2])
def test_one_more_moves_none_of_the_others(version: int) -> None:
    world = WORLDS["village"]
    full = make_devices(world, version, 7, victims=3, decoys=8)
    fewer = make_devices(world, version, 7, victims=2, decoys=5)
    assert all(same(a, b) for a, b in zip(fewer, full[:2] + full[3:8], strict=True))
    absent = make_devices(world, version, 7, victims=3, decoys=8, victim_absent=True)
    assert all(same(a, b) for a, b in zip(absent, full[3:], strict=True))
    assert not same(full[0], make_devices(world, version, 8, 1, 0)[0])
    assert not same(full[0], make_devices(world, version + VERSIONS, 7, 1, 0)[0])


def test_kinds_of_version_1_come_in_turn_and_those_of_version_2_by_the_design() -> None:
    world = WORLDS["village"]
    first, second = ([d.kind for d in make_devices(world, version, 7, 0, 8)] for version in (1, 2))
    assert set(first[:4]) == set(first[4:]) == set(second[3:7]) == set(DeviceKind) - {DeviceKind.VICTIM}
    assert sorted(second[:3]) == sorted(planned.kind for planned in design_of(7))


def test_version_2_draws_anew_for_every_world() -> None:
    assert layout_key("village", 1, 7) == layout_key("forest", 1, 7)
    assert layout_key("village", VERSIONS + 1, 7) == layout_key("forest", VERSIONS + 1, 7)
    assert layout_key("village", 2, 7) != layout_key("forest", 2, 7)
    one, other = (make_devices(replace(WORLDS["open_field"], name=name), 2, 7, 2, 3) for name in ("here", "there"))
    assert not any(same(a, b) for a, b in zip(one, other, strict=True))


def test_ten_layouts_have_every_row_of_the_design_once_and_each_fifth_one_meets_them_all() -> None:
    rows = [tuple(design_of(k)) for k in range(10)]
    assert len(set(rows)) == 10
    assert {tuple(design_of(k)) for k in range(70, 80)} == set(rows)
    for level in range(5):
        assert {tuple(design_of(k)) for k in range(level, 50, 5)} == set(rows)
    assert sum((DeviceKind.RESCUER, False) in row for row in rows) == 5
    assert all(sum(planned.kind is DeviceKind.RESCUER for planned in row) == 1 for row in rows)


def test_phones_of_version_2_are_held_and_scan_as_they_happen_to() -> None:
    everyone = [d for index in range(300) for d in make_devices(WORLDS["open_field"], 2, index, 2, 3)]
    phones = [d for d in everyone if d.kind in PHONES]
    pose = np.array([d.power_db - 3.0 * (d.kind is DeviceKind.RESCUER) for d in phones])
    assert np.abs(pose).max() <= 10.0
    assert pose.mean() == pytest.approx(0.0, abs=3 * 4.4 / math.sqrt(len(pose)))
    assert pose.std() == pytest.approx(4.398, rel=0.08)  # normal with sd 5 cut at two of it: 0.8796 of that
    scans = np.array([d.scan_interval_s for d in phones])
    assert 15.0 <= scans.min() < 15.5 and 44.5 < scans.max() <= 45.0
    assert scans.mean() == pytest.approx(30.0, abs=3 * 8.7 / math.sqrt(len(scans)))
    assert {(d.randomises, d.sleep_share) for d in phones} == {(True, 0.1)}
    others = {(d.kind, d.power_db, d.randomises, d.sleep_share) for d in everyone if d.kind not in PHONES}
    assert others == {(DeviceKind.ACCESS_POINT, 10.0, False, 0.0), (DeviceKind.INTERFERENCE, 0.0, False, 0.0)}
    first = make_devices(WORLDS["open_field"], 1, 7, 2, 4)
    assert {(d.scan_interval_s, d.listed) for d in first} == {(30.0, None)}


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


def test_what_a_device_says_of_its_listing_goes_before_its_address() -> None:
    everyone = [d for index in range(20) for d in make_devices(WORLDS["open_field"], 1, index, 0, 4)]
    drawn = known_addresses(everyone)
    assert 0 < len(drawn) < len(everyone)
    assert known_addresses([replace(d, listed=False) for d in everyone]) == ()
    assert known_addresses([replace(d, listed=True) for d in everyone]) == tuple(sorted(d.address for d in everyone))
    designed = [d for index in range(10) for d in make_devices(WORLDS["open_field"], 2, index, 2, 3)]
    assert known_addresses(designed) == tuple(sorted(d.address for d in designed if d.listed))
    assert sum(d.listed for d in designed if d.listed is not None) == 5 + 4


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
    for config, victim in ((CONFIG, -2.0), (load_radio(ROOT / "configs/radio/rubble.yaml"), -21.0)):
        dbm = 20 * np.log10(make_transmitters(kinds, config).amplitude)
        assert dbm == pytest.approx([victim, -2.0, -2.0, -2.0, 11.0])


def test_no_room_is_said() -> None:
    world = WORLDS["open_field"]
    with pytest.raises(InputError, match="no room for 300 victims 40 m apart; at most"):
        make_devices(replace(world, area=(-80.0, -80.0, 80.0, 80.0)), 1, 0, 300, 0)
    with pytest.raises(InputError, match="wider than 40 m"):
        make_devices(replace(world, area=(-10.0, -10.0, 10.0, 10.0)), 1, 0, 1, 0)
    solid = replace(world, obstacles=box(0, 0, 2, 500, 500, 4)[None], materials=("concrete",))
    with pytest.raises(InputError, match="no free place"):
        make_devices(solid, 1, 0, 1, 0)
