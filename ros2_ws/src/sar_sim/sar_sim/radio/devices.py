"""Who transmits in an episode: victims' devices, and everything else on the air that may be taken for one.

Layouts follow from the world's name, the episode set's number and the episode's index alone: the same for every seed
and condition. Every device has a stream of its own, so that one more decoy or victim moves none of the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.errors import InputError
from sar_core.geometry import distance_to
from sar_core.streams import label_key, stream
from sar_sim.radio.radioconfig import RadioConfig
from sar_sim.world.world import World

Floats = NDArray[np.float64]

EDGE_M = 20.0
APART_M = 40.0
VICTIM_HEIGHT_M = (0.3, 1.0)
ENTERABLE = frozenset({"concrete_shell", "brick_shell", "rubble"})
"""Bodies a person may lie inside: hollow houses, and rubble, which buries."""
SHELLS = frozenset({"concrete_shell", "brick_shell"})
WALK_MPS = 1.2
RIDE_MPS = (5.0, 10.0)
HORIZON_S = 1200.0
"""How long decoys know what to do; longer than any mission. After it they stand where they are."""
KNOWN_SHARE = 0.6
TRIES = 10_000
VERSIONS = 1 << 32
"""An episode set's number is the version of its rules, plus a multiple of this that tells apart what draws from it."""
POSE_STD_DB, POSE_LIMIT_DB = 5.0, 10.0
"""What pose and handset do to a phone's power: normal, drawn again beyond the limit, which leaves 4.4 dB. Wi2SAR's
flights (arXiv 2604.09115, its public data) show 6.6 dB between poses; shape and limit are assumed."""
SCAN_INTERVAL_S = (15.0, 45.0)


class DeviceKind(IntEnum):
    """What a device truly is; the swarm is never told."""

    VICTIM = 0
    RESCUER = 1
    ACCESS_POINT = 2
    PASSER_BY = 3
    INTERFERENCE = 4


DECOYS = (DeviceKind.RESCUER, DeviceKind.ACCESS_POINT, DeviceKind.PASSER_BY, DeviceKind.INTERFERENCE)
PHONES = frozenset({DeviceKind.VICTIM, DeviceKind.RESCUER, DeviceKind.PASSER_BY})


class Planned(NamedTuple):
    """A place in a layout's plan. Listed: the swarm is told its address; None: drawn from the address."""

    kind: DeviceKind
    listed: bool | None = False


_UNLISTED, _LISTED = Planned(DeviceKind.RESCUER, False), Planned(DeviceKind.RESCUER, True)
_HIDDEN_POINT, _TOLD_POINT = Planned(DeviceKind.ACCESS_POINT, False), Planned(DeviceKind.ACCESS_POINT, True)
_PASSER, _NOISE = Planned(DeviceKind.PASSER_BY), Planned(DeviceKind.INTERFERENCE)

DESIGN = (
    (_UNLISTED, _PASSER, _TOLD_POINT),
    (_LISTED, _PASSER, _HIDDEN_POINT),
    (_UNLISTED, _HIDDEN_POINT, _NOISE),
    (_LISTED, _TOLD_POINT, _NOISE),
    (_UNLISTED, _PASSER, _NOISE),
    (_LISTED, _PASSER, _NOISE),
    (_UNLISTED, _PASSER, _HIDDEN_POINT),
    (_LISTED, _PASSER, _TOLD_POINT),
    (_UNLISTED, _TOLD_POINT, _NOISE),
    (_LISTED, _HIDDEN_POINT, _NOISE),
)
"""What layouts of version 2 hold besides victims. Every one has a rescuer on foot, half of them one that is not listed;
both halves have the same company: a passer-by in three of five, access points in four of five (half of them listed),
interference in three of five."""


@dataclass(frozen=True, eq=False)
class Device:
    """One transmitter. Tracks are straight between way points; before the first and after the last it stands."""

    address: int  # 48 bits, locally administered, says nothing about the kind
    kind: DeviceKind
    track: Floats  # [K, 4] time s, x, y, z
    beacon: bool = False
    power_db: float = 0.0  # against the link budget's phone
    duty: float = 1.0  # share of 20 Hz ticks on which a beacon or interferer sends; phones go by radio.traffic
    windows: tuple[tuple[float, float], ...] = ()  # times (s) on the air; empty: always
    scan_interval_s: float = 30.0
    """Between two scans of a phone that nobody asks: 15 to 45 s in the literature, unverified; no field data here."""
    randomises: bool = True
    """A phone that has not joined sends from an address made up anew at each scan, as phones do since about 2014
    (Vanhoef et al., Why MAC address randomization is not enough, AsiaCCS 2016)."""
    sleep_share: float = 0.1
    """Share of its time in which it does not answer; assumed. Its spells of 3 to 7 s are what Wi2SAR's flights show at
    45 m (arXiv 2604.09115, its public data)."""
    listed: bool | None = None
    """Whether the swarm is told its address; None: drawn from the address, see :func:`known_addresses`."""

    def position_at(self, time_s: float) -> Floats:
        """Where it is, ENU metres [3]."""
        t = self.track[:, 0]
        return np.array([np.interp(time_s, t, self.track[:, k]) for k in (1, 2, 3)])


def layout_key(world_name: str, episode_set: int, index: int) -> tuple[int, ...]:
    """What the streams of a layout are keyed by. By the rules of version 1 all worlds share their draws."""
    if episode_set % VERSIONS == 1:
        return episode_set, index
    return label_key(world_name), episode_set, index


def make_devices(
    world: World, episode_set: int, index: int, victims: int, decoys: int, victim_absent: bool = False
) -> tuple[Device, ...]:
    """The devices of an episode: victims first, then decoys. Without victims the decoys are the same ones."""
    key = layout_key(world.name, episode_set, index)
    first_rules = episode_set % VERSIONS == 1
    found = () if victim_absent else _victims(world, key, victims, first_rules)
    order = stream("decoy kinds", *key)
    plan: list[Planned] = []
    if not first_rules:
        row = design_of(index)
        plan += [row[k] for k in order.permutation(len(row))]
    while len(plan) < decoys:
        plan += [Planned(DECOYS[k], None) for k in order.permutation(len(DECOYS))]
    return found + tuple(_decoy(world, plan[j], stream("decoy", *key, j), first_rules) for j in range(decoys))


def design_of(index: int) -> tuple[Planned, ...]:
    """The plan of a layout, in any order. Each ten layouts have all rows once; moving on by one row every ten, so that
    whatever else goes round in fives or tens meets every row."""
    return DESIGN[(index + index // len(DESIGN)) % len(DESIGN)]


def known_addresses(devices: Sequence[Device]) -> tuple[int, ...]:
    """Addresses the swarm is told beforehand: those that are listed; where that is left open, a part of the rescuers'
    radios and access points, by their addresses alone, never all of them for certain."""
    told = []
    for device in devices:
        listed = device.listed
        if listed is None:
            official = device.kind in (DeviceKind.RESCUER, DeviceKind.ACCESS_POINT)
            listed = official and stream("known address", device.address).random() < KNOWN_SHARE
        if listed:
            told.append(device.address)
    return tuple(sorted(told))


def _victims(world: World, key: tuple[int, ...], count: int, first_rules: bool) -> tuple[Device, ...]:
    found: list[Device] = []
    for j in range(count):
        rng = stream("victim", *key, j)
        address = local_address(rng)
        for _ in range(TRIES):
            place = _spot(world, rng, VICTIM_HEIGHT_M, ENTERABLE)
            if all(math.dist(place[:2], other.track[0, 1:3]) >= APART_M for other in found):
                break
        else:
            raise InputError(
                f"{world.path}: no room for {count} victims {APART_M:g} m apart; "
                f"at most {len(found)} were placed in the search area"
            )
        victim = Device(address, DeviceKind.VICTIM, _standing(place))
        found.append(victim if first_rules else _equipped(victim, False, rng))
    return tuple(found)


def _equipped(device: Device, listed: bool | None, rng: np.random.Generator) -> Device:
    """A device with what version 2 adds: how a phone is held, how often it scans, and whether it is listed."""
    if device.kind not in PHONES:
        return replace(device, randomises=False, sleep_share=0.0, listed=listed)
    pose_db = math.inf
    while abs(pose_db) > POSE_LIMIT_DB:
        pose_db = float(rng.normal(0.0, POSE_STD_DB))
    scan_interval_s = float(rng.uniform(*SCAN_INTERVAL_S))
    return replace(device, power_db=device.power_db + pose_db, scan_interval_s=scan_interval_s, listed=listed)


def local_address(rng: np.random.Generator) -> int:
    """A 48-bit unicast address with the locally administered bit, as phones make them up."""
    return (int(rng.integers(1 << 48)) & 0xFCFFFFFFFFFF) | 0x020000000000


def _standing(place: Floats) -> Floats:
    return np.array([[0.0, *place]])


def _spot(world: World, rng: np.random.Generator, height: tuple[float, float], inside: frozenset[str]) -> Floats:
    """A place in the search area, at least EDGE_M from its edge and inside no body but those of the given materials."""
    x_min, y_min, x_max, y_max = world.area
    if min(x_max - x_min, y_max - y_min) <= 2.0 * EDGE_M:
        raise InputError(f"{world.path}: search area {world.area}: must be wider than {2.0 * EDGE_M:g} m for devices")
    for _ in range(TRIES):
        place = rng.uniform((x_min + EDGE_M, y_min + EDGE_M, height[0]), (x_max - EDGE_M, y_max - EDGE_M, height[1]))
        if _free(world, place, inside):
            return place
    raise InputError(f"{world.path}: no free place for a device found in {TRIES} tries")


def _free(world: World, place: Floats, inside: frozenset[str]) -> bool:
    x, y, z = (float(v) for v in place)
    return all(
        material in inside or distance_to(row, x, y, z) > 0.0
        for row, material in zip(world.obstacles, world.materials, strict=True)
    )


def _decoy(world: World, planned: Planned, rng: np.random.Generator, first_rules: bool) -> Device:
    device = _placed(world, planned.kind, rng)
    return device if first_rules else _equipped(device, planned.listed, rng)


def _placed(world: World, kind: DeviceKind, rng: np.random.Generator) -> Device:
    address = local_address(rng)
    if kind is DeviceKind.RESCUER:
        return Device(address, kind, _walk(world, rng), power_db=3.0, duty=0.5)
    if kind is DeviceKind.ACCESS_POINT:
        # No body in the way and a better antenna than a phone's; a beacon every 102.4 ms is every second tick.
        return Device(address, kind, _standing(_indoors(world, rng)), beacon=True, power_db=10.0, duty=0.5)
    if kind is DeviceKind.PASSER_BY:
        track, windows = _passage(world, rng)
        return Device(address, kind, track, windows=windows)
    return Device(address, kind, _standing(_spot(world, rng, (0.5, 3.0), SHELLS)), windows=_bursts(rng))


def _walk(world: World, rng: np.random.Generator) -> Floats:
    """Random way points on foot, each reached in a straight line; walls are walked through, as through doors."""
    place = _spot(world, rng, (1.0, 1.4), SHELLS)
    track = [(0.0, *place)]
    while track[-1][0] < HORIZON_S:
        aim = _spot(world, rng, (1.0, 1.4), SHELLS)
        # Rescuers search on the spot: no more than 60 m at a time.
        reach = min(1.0, 60.0 / math.dist(aim, place))
        step = place + reach * (aim - place)
        track.append((track[-1][0] + math.dist(step, place) / WALK_MPS, *step))
        place = step
    return np.array(track)


def _indoors(world: World, rng: np.random.Generator) -> Floats:
    """Where an access point stands: in a house if there is one within the search area, else on a mast in the open."""
    x_min, y_min, x_max, y_max = world.area
    houses = [
        row
        for row, material in zip(world.obstacles, world.materials, strict=True)
        if material in SHELLS
        and x_min + EDGE_M < row[1] < x_max - EDGE_M
        and y_min + EDGE_M < row[2] < y_max - EDGE_M
        and row[6] > 1.5
    ]
    if not houses:
        return _spot(world, rng, (1.5, 3.0), frozenset())
    house = houses[int(rng.integers(len(houses)))]
    u, v = rng.uniform(-0.8, 0.8, 2) * house[4:6]
    c, s = math.cos(house[7]), math.sin(house[7])
    base = max(float(house[3] - house[6]), 0.0)
    return np.array([house[1] + c * u - s * v, house[2] + s * u + c * v, base + float(rng.uniform(1.5, 2.5))])


def _passage(world: World, rng: np.random.Generator) -> tuple[Floats, tuple[tuple[float, float], ...]]:
    """Straight across the area on a bicycle or in a car, on the air from edge to edge."""
    x_min, y_min, x_max, y_max = world.area
    across = bool(rng.integers(2))
    begin, end = rng.uniform(0.1, 0.9, 2)
    start = float(rng.uniform(20.0, 200.0))
    speed = float(rng.uniform(*RIDE_MPS))
    if across:
        a = np.array([x_min, y_min + begin * (y_max - y_min), 1.0])
        b = np.array([x_max, y_min + end * (y_max - y_min), 1.0])
    else:
        a = np.array([x_min + begin * (x_max - x_min), y_min, 1.0])
        b = np.array([x_min + end * (x_max - x_min), y_max, 1.0])
    if rng.integers(2):
        a, b = b, a
    finish = start + math.dist(a, b) / speed
    return np.array([[start, *a], [finish, *b]]), ((start, finish),)


def _bursts(rng: np.random.Generator) -> tuple[tuple[float, float], ...]:
    """Times of interference: about one burst of some seconds a minute."""
    windows = []
    time = float(rng.exponential(30.0))
    while time < HORIZON_S:
        length = float(rng.uniform(2.0, 10.0))
        windows.append((time, time + length))
        time += length + float(rng.exponential(60.0))
    return tuple(windows)


class Transmitters(NamedTuple):
    """All devices as arrays, M of them."""

    tracks: Floats  # [M, K, 4], padded with the last way point
    windows: Floats  # [M, W, 2], padded with empty ones
    amplitude: Floats  # [M] sqrt(mW) radiated, the drone's antenna gain included
    interferes: NDArray[np.bool_]  # [M]
    phase: NDArray[np.int64]  # [M] which of the refresh ticks is this device's


def radiated_dbm(device: Device, config: RadioConfig) -> float:
    """What a device radiates plus the drone's antenna gain: received power less path loss."""
    if device.kind is DeviceKind.INTERFERENCE:
        return config.interference_dbm + config.drone_antenna_dbi + device.power_db
    return (config.victim_dbm if device.kind is DeviceKind.VICTIM else config.phone_dbm) + device.power_db


def make_transmitters(devices: Sequence[Device], config: RadioConfig) -> Transmitters:
    m = len(devices)
    legs = max((len(d.track) for d in devices), default=1)
    spans = max((len(d.windows) for d in devices), default=1)
    tracks = np.zeros((m, legs, 4))
    windows = np.zeros((m, max(spans, 1), 2))
    for j, d in enumerate(devices):
        tracks[j, : len(d.track)] = d.track
        tracks[j, len(d.track) :] = d.track[-1]
        tracks[j, len(d.track) :, 0] = np.inf
        spells = d.windows or ((-np.inf, np.inf),)
        windows[j, : len(spells)] = spells
    return Transmitters(
        tracks,
        windows,
        np.array([10.0 ** (radiated_dbm(d, config) / 20.0) for d in devices]),
        np.array([d.kind is DeviceKind.INTERFERENCE for d in devices], dtype=np.bool_),
        np.array([d.address % 97 for d in devices], dtype=np.int64),
    )


@compiled
def place_devices(
    sources: Transmitters, time_s: float, cursor: NDArray[np.int64], device: Floats, sends: NDArray[np.bool_]
) -> None:
    """Positions in device [M, 3] and how far each went since the last call in its column 3; ``sends`` [M] is who is on
    the air. `cursor` [M] remembers the leg of each track."""
    for j in range(sources.tracks.shape[0]):
        track = sources.tracks[j]
        k = cursor[j]
        while k + 1 < track.shape[0] and track[k + 1, 0] <= time_s:
            k += 1
        cursor[j] = k
        share = 0.0
        if k + 1 < track.shape[0] and time_s > track[k, 0]:
            share = (time_s - track[k, 0]) / (track[k + 1, 0] - track[k, 0])
        ahead = min(k + 1, track.shape[0] - 1)
        went = 0.0
        for c in range(3):
            now = track[k, c + 1] + share * (track[ahead, c + 1] - track[k, c + 1])
            went += (now - device[j, c]) ** 2
            device[j, c] = now
        device[j, 3] = math.sqrt(went) if went >= 0.0 else 0.0
        present = False
        for w in range(sources.windows.shape[1]):
            if sources.windows[j, w, 0] <= time_s < sources.windows[j, w, 1]:
                present = True
        sends[j] = present
