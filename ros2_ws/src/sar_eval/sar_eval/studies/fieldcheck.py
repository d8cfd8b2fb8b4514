"""The radio beside what was measured in the field: ground rows, discovery, how often a phone is heard, bearings.

Nothing here flies. Figures measured by others lie in configs/field, each with its origin; ours come from the channel,
the receiver and the traffic that missions use. What the measurements do not say and had to be taken is named in
ASSUMED.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sar_core.radio import BASELINE, array_axis
from sar_core.streams import stream
from sar_eval.scenario.prepare import radio_path
from sar_eval.scenario.resources import share_dir, world_path
from sar_sim.radio.channel import PATH, RadioScene, find_paths, make_scene, ray
from sar_sim.radio.devices import Device, DeviceKind
from sar_sim.radio.radioconfig import Budget, RadioConfig, load_radio, make_budget
from sar_sim.radio.receiver import Receiver
from sar_sim.radio.traffic import handshake_chance
from sar_sim.world.world import World, load_world

Floats = NDArray[np.float64]

BUDGETS = ("open_ground", "near", "rubble", "optimistic")
ALTITUDE_M = 30.0
GROUND_M = 1.5
ASSUMED = (
    f"both ends {GROUND_M:g} m above flat ground in the ground rows, the bare antenna -4 dBi at both ends together",
    f"the drone {ALTITUDE_M:g} m up in all others, distances along the ground",
    "discovery: half of the scans of a phone at rest lead to a handshake; without line of sight: the budget near in "
    "the open, where nothing but the phone's pose is in the way",
)
BARE_ANTENNA_DBI = -4.0
"""What Wi2SAR's bare antenna acts like beside free space (configs/field/README.md)."""
DRAWS = 41
"""Quantiles of the strength's spread over which a chance is averaged."""
PLACES = 60
"""Pairs of places looked at for each distance in a world with houses."""
NEAREST_M, FARTHEST_M, STEPS = 5.0, 1600.0, 60
LISTEN_S = 900.0
SIGMA = 0.05


class GroundRow(NamedTuple):
    """Signal strength (dBm) at a distance for a stated power: measured (None: lost) and ours."""

    power_dbm: float
    distance_m: float
    measured_dbm: float | None
    ours_dbm: float


class Reach(NamedTuple):
    """How far (m) nine and five of ten frames of a victim's phone are heard, and half of its scans lead to discovery;
    None where not even the nearest."""

    budget: str
    world: str
    ninety_m: float | None
    half_m: float | None
    discovery_m: float | None


class HeardRate(NamedTuple):
    """A phone heard by one drone: frames per second of contact, quantiles of gaps and the longest (s)."""

    distance_m: float
    rate_hz: float
    gap_median_s: float
    gap_p90_s: float
    longest_s: float


class Bearing(NamedTuple):
    """Errors (degrees) of a second's bearing, at a phase concentration: median, 80 and 95 %."""

    kappa: float
    n: int
    median_deg: float
    p80_deg: float
    p95_deg: float


@dataclass(frozen=True)
class FieldCheck:
    """Everything the check comes to, and what was measured."""

    ground: tuple[GroundRow, ...]
    reaches: tuple[Reach, ...]
    traffic: tuple[HeardRate, ...]
    bearings: tuple[Bearing, ...]
    measured_range_m: dict[str, float]
    measured_rates: tuple[dict[str, Any], ...]
    measured_directions: tuple[dict[str, Any], ...]

    def rms_db(self, power_dbm: float, fitted: bool = False) -> float:
        """Root mean square of ours minus measured at a stated power; ``fitted`` takes out their mean."""
        off = np.array([r.ours_dbm - r.measured_dbm for r in self._heard(power_dbm) if r.measured_dbm is not None])
        return float(np.sqrt(np.mean((off - off.mean() * fitted) ** 2)))

    def _heard(self, power_dbm: float) -> Iterator[GroundRow]:
        return (row for row in self.ground if row.power_dbm == power_dbm and row.measured_dbm is not None)


def table(name: str) -> list[dict[str, str]]:
    """The rows of a file of configs/field; lines that begin with # are its origin."""
    path = share_dir("configs") / "field" / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as stream_:
        return list(csv.DictReader(line for line in stream_ if not line.startswith("#")))


def power_db(scene: RadioScene, device: Floats, drone: Floats) -> float:
    """Sum of path powers (dB) from a device to a drone, without antennas."""
    paths = np.zeros((2 + scene.max_reflections, PATH))
    px, py, pz, qx, qy, qz = (float(v) for v in (*device, *drone))
    count = find_paths(scene, px, py, pz, qx, qy, qz, paths)
    total = 0.0
    for path in paths[:count]:
        _, _, _, _, re, im = ray(path, px, py, pz, qx, qy, qz)
        total += re * re + im * im
    return 10.0 * math.log10(max(total, 1e-30))


def chances(budget: Budget, snr_db: Floats) -> tuple[Floats, Floats]:
    """Share of frames heard, and of scans that lead to a handshake, at mean signal-to-noise ratios [K]: averaged over
    shadowing and fading."""
    spread = math.hypot(budget.shadowing_db, budget.fading_db) * ndtri((np.arange(DRAWS) + 0.5) / DRAWS)
    snr = np.asarray(snr_db)[:, None] + spread
    frame = (1.0 - budget.packet_loss) / (1.0 + np.exp(-(snr - budget.midpoint_db) / budget.width_db))
    join = np.vectorize(lambda value: handshake_chance(budget, value))(snr)
    return frame.mean(axis=1), join.mean(axis=1)


def ground_rows(config: RadioConfig, world: World) -> Iterator[GroundRow]:
    """Measured rows beside the channel's answer for the same distances."""
    scene = make_scene(world, config)
    for power, column in ((24.0, "rssi_24dbm_bare"), (1.0, "rssi_1dbm_bare")):
        for row in table("ground_rss"):
            away = float(row["distance_m"])
            ends = np.array([0.0, 0.0, GROUND_M]), np.array([away, 0.0, GROUND_M])
            ours = power + BARE_ANTENNA_DBI + power_db(scene, *ends)
            told = row[column]
            yield GroundRow(power, away, None if told == "lost" else float(told), ours)


def reach_of(name: str, world: World) -> Reach:
    """Ranges of one budget in one world: over flat ground along a line, among houses over random places."""
    config = load_radio(radio_path(name))
    scene, budget = make_scene(world, config), make_budget(config)
    distances = np.geomspace(NEAREST_M, FARTHEST_M, STEPS)
    rng = stream(f"field check {name} {world.name}")
    x_min, y_min, x_max, y_max = world.area
    places = PLACES if len(world.obstacles) else 1
    frame, join = np.zeros(STEPS), np.zeros(STEPS)
    for k, away in enumerate(distances):
        means = []
        for _ in range(places):
            x, y, turn = rng.uniform(x_min, x_max), rng.uniform(y_min, y_max), rng.uniform(-math.pi, math.pi)
            drone = np.array([x + away * math.cos(turn), y + away * math.sin(turn), ALTITUDE_M])
            means.append(power_db(scene, np.array([x, y, 0.5]), drone))
        snr = config.victim_dbm + np.array(means) - config.noise_dbm
        heard, joined = chances(budget, snr)
        frame[k], join[k] = heard.mean(), joined.mean()
    found = frame / (1.0 - budget.packet_loss)
    return Reach(
        name,
        world.name,
        _crossing(distances, found, 0.9),
        _crossing(distances, found, 0.5),
        _crossing(distances, join, 0.5),
    )


def _crossing(distances: Floats, share: Floats, wanted: float) -> float | None:
    """The farthest distance at which a share is reached, interpolated in its logarithm."""
    above = np.flatnonzero(share >= wanted)
    if len(above) == 0:
        return None
    k = int(above[-1])
    if k + 1 == len(distances):
        return float(distances[k])
    part = (share[k] - wanted) / (share[k] - share[k + 1])
    return float(distances[k] * (distances[k + 1] / distances[k]) ** part)


def hear_phone(config: RadioConfig, world: World, distance_m: float) -> HeardRate:
    """One phone that scans every half minute, listened to by one drone at rest."""
    device = Device(0x021234567890, DeviceKind.VICTIM, np.array([[0.0, distance_m, 0.0, 0.5]]))
    receiver = Receiver(config, world, [device], 1, 1, 0, 0.0, math.inf)
    drone, level = np.array([[0.0, 0.0, ALTITUDE_M]]), np.array([[1.0, 0.0, 0.0, 0.0]])
    times = [
        tick / 20.0
        for tick in range(int(20 * LISTEN_S))
        if device.address in receiver.listen(tick * 50_000_000, tick, drone, level)[0].address.tolist()
    ]
    gaps = np.diff(times)
    contact = float(gaps[gaps < config.traffic.spell_s[0]].sum())
    return HeardRate(
        distance_m,
        len(times) / max(contact, 1e-9),
        float(np.median(gaps)),
        float(np.quantile(gaps, 0.9)),
        float(gaps.max()),
    )


def turntable(config: RadioConfig, world: World, kappa: float, drones: int = 16) -> Bearing:
    """Bearings of each second's frames at turning drones: the cone's error, both sides alike."""
    places = [(40.0 + 10.0 * j) * np.array([math.cos(j), math.sin(j)]) for j in range(12)]
    devices = [
        Device(0x021234567800 + j, DeviceKind.VICTIM, np.array([[0.0, *at, 0.5]]), scan_interval_s=1.0, sleep_share=0.0)
        for j, at in enumerate(places)
    ]
    receiver = Receiver(config, world, devices, drones, 1, 0, SIGMA, kappa)
    position = np.tile([0.0, 0.0, ALTITUDE_M], (drones, 1))
    where = {d.address: d.track[0, 1:] for d in devices}
    sums: dict[tuple[int, int, int], list[complex]] = {}
    for tick in range(20 * 130):
        yaw = math.radians(30.0) * (tick // 20) * 1.37
        level = np.tile([math.cos(yaw / 2.0), 0.0, 0.0, math.sin(yaw / 2.0)], (drones, 1))
        for i, heard in enumerate(receiver.listen(tick * 50_000_000, tick, position, level)):
            for address, csi in zip(heard.address.tolist(), heard.csi, strict=True):
                if address in where and tick >= 200:
                    values = csi[..., 0] + 1j * csi[..., 1].astype(np.float64)
                    seen = complex(np.sum(values[1] * np.conj(values[0])))
                    sums.setdefault((i, address, tick // 20), []).append(seen / abs(seen))
    off = []
    for (_, address, second), units in sums.items():
        if len(units) < 2:
            continue
        yaw = math.radians(30.0) * second * 1.37
        arrow = where[address] - position[0]
        cosine = float(np.array(array_axis(math.cos(yaw / 2.0), 0.0, 0.0, math.sin(yaw / 2.0))) @ arrow)
        cosine /= float(np.linalg.norm(arrow))
        told = min(max(float(np.angle(np.sum(units))) / BASELINE, -1.0), 1.0)
        off.append(abs(math.degrees(math.acos(told) - math.acos(cosine))))
    median, p80, p95 = np.quantile(off, (0.5, 0.8, 0.95)).tolist()
    return Bearing(kappa, len(off), median, p80, p95)


def check_field(tell: Callable[[str], None] = lambda step: None) -> FieldCheck:
    """The whole check; ``tell`` hears what is being looked at."""
    open_field, village = (load_world(Path(world_path(name))) for name in ("open_field", "village"))
    config = load_radio(radio_path(BUDGETS[0]))
    tell("ground rows")
    ground = tuple(ground_rows(config, open_field))
    reaches = []
    for name in BUDGETS:
        for world in (open_field, village):
            tell(f"{name} in {world.name}")
            reaches.append(reach_of(name, world))
    tell("a phone at rest")
    traffic = tuple(hear_phone(config, open_field, away) for away in (40.0, 120.0, 200.0))
    tell("bearings")
    bearings = tuple(turntable(config, open_field, kappa) for kappa in (math.inf, 8.0, 4.0))
    ranges = {
        row["scenario"]: float(row["without_lens_m"]) for row in table("working_range") if row["frequency_ghz"] == "2.4"
    }
    return FieldCheck(
        ground,
        tuple(reaches),
        traffic,
        bearings,
        ranges,
        tuple(table("row_rate_and_gaps")),
        tuple(table("direction_error_reference")),
    )
