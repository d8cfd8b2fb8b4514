"""What the drones' receivers hand over: from transmitted frames to int8 channel estimates.

Order of events for a frame: paths and shadowing, noise floor with interference, reception by signal-to-noise ratio,
collisions, common phase and sampling time offset, thermal noise, the two noise knobs, gain control, rounding.

Every (drone, device) pair draws from streams of its own, keyed by the device's address: its numbers do not depend on
who else flies or transmits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sar_core.compiled import compiled
from sar_core.radio import ANTENNAS, SUBCARRIERS, array_axis
from sar_core.streams import stream
from sar_sim.radio.arrayerror import array_error, draw_arrays
from sar_sim.radio.channel import PATH, Complexes, RadioScene, add_channel, find_paths, make_scene, ray
from sar_sim.radio.devices import Device, Transmitters, make_transmitters, place_devices
from sar_sim.radio.radioconfig import Budget, RadioConfig, make_budget
from sar_sim.radio.traffic import (
    HEARD_S,
    JOINED,
    NEXT_S,
    SPEAK_DRAWS,
    TrafficPlan,
    handshake_chance,
    make_traffic,
    speak,
    traffic_rows,
)
from sar_sim.world.world import World

Floats = NDArray[np.float64]

BLOCK = 128
"""Ticks for which a link's per-frame numbers are drawn at once."""
NOISE_BLOCK = 32
"""Frames heard for which a link's noise is drawn at once."""
DRAWS = 7
"""Per-frame numbers: collision, reception, common phase, sampling offset, gain step (uniform), shadowing and fading
(normal)."""
WIDTH = len(SUBCARRIERS)
THERMAL = ANTENNAS * WIDTH * 2
LEVELS = 1 << 16
FULL_SCALE = 127

_middle = ndtri((np.arange(LEVELS) + 0.5) / LEVELS)
NORMALS = (_middle / np.sqrt(np.mean(_middle**2))).astype(np.float32)
"""Standard normal by 16 random bits: quantiles in equal steps of probability, scaled to unit variance, out to 4.3.
Four noise samples per random word cost a sixth of drawing them one by one."""


class Frames(NamedTuple):
    """What one drone received at one tick, by ascending address: all that the swarm ever learns about the radio."""

    stamp_ns: int
    address: NDArray[np.uint64]  # [L]
    beacon: NDArray[np.bool_]  # [L]
    rssi_dbm: Floats  # [L]
    csi: NDArray[np.int8]  # [L, ANTENNAS, subcarriers, 2] I, Q


def silence(stamp_ns: int) -> Frames:
    """A tick in which a drone received nothing."""
    shape = (0, ANTENNAS, len(SUBCARRIERS), 2)
    nothing = np.zeros(0)
    return Frames(stamp_ns, nothing.astype(np.uint64), nothing.astype(np.bool_), nothing, np.zeros(shape, np.int8))


class Reception(NamedTuple):
    """The links of N drones to M devices, changed in place."""

    cursor: NDArray[np.int64]  # [M] of `place_devices`
    device: Floats  # [M, 4] of `place_devices`
    last: Floats  # [N, 3] where the drones were
    paths: Floats  # [N, M, P, PATH]
    counts: NDArray[np.int64]  # [N, M] of paths, 0 where they must be found
    shadow: Floats  # [N, M] standard normal
    channel: Floats  # [N, M, ANTENNAS, subcarriers, 2] sqrt(mW), noiseless
    noise_mw: Floats  # [N]
    heard: NDArray[np.bool_]  # [N, M]
    tally: NDArray[np.int64]  # [N] of frames heard
    used: NDArray[np.int64]  # [N, M] of the link's noise block
    sends: NDArray[np.bool_]  # [M] who sends at this tick
    scanning: NDArray[np.int64]  # [M] the number of the scan it sends in, or -1
    traffic: Floats  # [M, TRAFFIC] of `speak`
    array: Floats  # [N, ARRAY_TERMS] each drone's array error
    turn: Floats  # [N, M] that error's phase (rad) towards each device heard


@compiled
def receive(
    tick: int,
    time_s: float,
    scene: RadioScene,
    budget: Budget,
    sources: Transmitters,
    schedule: TrafficPlan,
    drone: Floats,
    attitude: Floats,
    spoken: Floats,
    draws: Floats,
    links: Reception,
) -> bool:
    """Which frames arrive, how many per drone, and their channels. Returns whether a link that heard something has used
    up its noise."""
    device, paths, counts, shadow = links.device, links.paths, links.counts, links.shadow
    last, noise_mw, heard, tally, sends = links.last, links.noise_mw, links.heard, links.tally, links.sends
    n, m = drone.shape[0], device.shape[0]
    place_devices(sources, time_s, links.cursor, device, sends)
    speak(time_s, schedule, budget, spoken, links.traffic, sends, links.scanning)
    best_snr = np.zeros(m)
    dry = False
    for i in range(n):
        tally[i] = 0
        flown = 0.0
        for c in range(3):
            flown += (drone[i, c] - last[i, c]) ** 2
            last[i, c] = drone[i, c]
        flown = math.sqrt(flown) if flown >= 0.0 else 0.0
        noise_mw[i] = budget.noise_mw
        for j in range(m):
            p, q = device[j], drone[i]
            if (tick + 2 * i + sources.phase[j]) % budget.refresh_ticks == 0:
                counts[i, j] = 0
            if sends[j] and counts[i, j] == 0:
                counts[i, j] = find_paths(scene, p[0], p[1], p[2], q[0], q[1], q[2], paths[i, j])
            keep = math.exp(-(flown + device[j, 3]) / budget.shadowing_distance_m)
            shadow[i, j] = keep * shadow[i, j] + math.sqrt(1.0 - keep * keep) * draws[i, j, 5]
            if sends[j] and sources.interferes[j]:
                _, _, _, _, re, _ = ray(paths[i, j, 0], p[0], p[1], p[2], q[0], q[1], q[2])
                noise_mw[i] += (sources.amplitude[j] * re) ** 2
        axis = array_axis(attitude[i, 0], attitude[i, 1], attitude[i, 2], attitude[i, 3])
        for j in range(m):
            heard[i, j] = False
            if not sends[j] or sources.interferes[j]:
                continue
            strength_db = budget.shadowing_db * shadow[i, j] + budget.fading_db * draws[i, j, 6]
            amplitude = sources.amplitude[j] * 10.0 ** (strength_db / 20.0)
            u = draws[i, j, 1]
            needed = budget.midpoint_db + budget.width_db * math.log(u / (1.0 - u)) if u > 0.0 else -np.inf
            least = noise_mw[i] * 10.0 ** (needed / 10.0)
            most, power_sum = 0.0, 0.0
            for k in range(counts[i, j]):
                _, _, _, _, re, im = ray(
                    paths[i, j, k], device[j, 0], device[j, 1], device[j, 2], drone[i, 0], drone[i, 1], drone[i, 2]
                )
                most += math.sqrt(re * re + im * im)
                power_sum += re * re + im * im
            if links.scanning[j] >= 0:
                best_snr[j] = max(best_snr[j], amplitude * amplitude * power_sum / noise_mw[i])
            if draws[i, j, 0] < budget.packet_loss or (amplitude * most) ** 2 < least:
                continue
            out = links.channel[i, j]
            sto_m = budget.sto_range_m * (2.0 * draws[i, j, 3] - 1.0)
            add_channel(
                paths[i, j],
                counts[i, j],
                device[j],
                drone[i],
                axis,
                amplitude,
                2.0 * math.pi * draws[i, j, 2],
                sto_m,
                out,
            )
            power = 0.0
            for a in range(ANTENNAS):
                for k in range(WIDTH):
                    power += out[a, k, 0] * out[a, k, 0] + out[a, k, 1] * out[a, k, 1]
            if power / (ANTENNAS * WIDTH) >= least:
                heard[i, j] = True
                tally[i] += 1
                dry = dry or links.used[i, j] == NOISE_BLOCK
                links.traffic[j, HEARD_S] = time_s
                ux, uy, uz = device[j, 0] - drone[i, 0], device[j, 1] - drone[i, 1], device[j, 2] - drone[i, 2]
                links.turn[i, j] = array_error(
                    links.array[i], attitude[i, 0], attitude[i, 1], attitude[i, 2], attitude[i, 3], ux, uy, uz
                )
    for j in range(m):
        if best_snr[j] > 0.0 and spoken[j, 2] < handshake_chance(budget, 10.0 * math.log10(best_snr[j])):
            links.traffic[j, JOINED] = 1.0
            links.traffic[j, NEXT_S] = links.traffic[j, HEARD_S] = time_s
    return dry


@compiled
def impair(
    frame: Floats,
    bits: NDArray[np.uint16],
    normals: NDArray[np.float32],
    noise_mw: float,
    sigma: float,
    theta: float,
    gain_draw: float,
    level: float,
    agc_step_db: float,
    rssi_step_db: float,
    csi: NDArray[np.int8],
) -> float:
    """Thermal noise, knobs, gain and rounding of one frame [ANTENNAS, subcarriers, 2]; returns its signal strength.

    Noise power is spread over 64 subcarriers of which 56 carry signal (IEEE 802.11-2020, clause 19). sigma is Gaussian
    noise of each amplitude relative to the frame's mean amplitude; theta turns antenna 1. The gain is one of the two
    steps next to the one wanted, at the odds that meet it on average.
    """
    scale = math.sqrt(0.5 * noise_mw * WIDTH / 64.0)
    power = 0.0
    total = 0.0
    i = 0
    for a in range(ANTENNAS):
        for k in range(WIDTH):
            re = frame[a, k, 0] + scale * normals[bits[i]]
            im = frame[a, k, 1] + scale * normals[bits[i + 1]]
            i += 2
            frame[a, k, 0] = re
            frame[a, k, 1] = im
            square = re * re + im * im
            power += square
            if sigma > 0.0:
                total += math.sqrt(square)
    power /= ANTENNAS * WIDTH
    if sigma > 0.0:
        spread = sigma * total / (ANTENNAS * WIDTH)
        for a in range(ANTENNAS):
            for k in range(WIDTH):
                re = frame[a, k, 0]
                im = frame[a, k, 1]
                size = math.sqrt(re * re + im * im)
                factor = 1.0 + spread * normals[bits[i]] / size if size > 0.0 else 1.0
                i += 1
                frame[a, k, 0] = re * factor
                frame[a, k, 1] = im * factor
    if theta != 0.0:
        c, s = math.cos(theta), math.sin(theta)
        for k in range(WIDTH):
            re = frame[1, k, 0]
            im = frame[1, k, 1]
            frame[1, k, 0] = re * c - im * s
            frame[1, k, 1] = re * s + im * c
    wanted = 20.0 * math.log10(level / math.sqrt(power)) / agc_step_db
    gain = 10.0 ** (agc_step_db * math.floor(wanted + gain_draw) / 20.0)
    for a in range(ANTENNAS):
        for k in range(WIDTH):
            for c2 in range(2):
                value = math.floor(frame[a, k, c2] * gain + 0.5)
                csi[a, k, c2] = int(min(max(value, -FULL_SCALE), FULL_SCALE))
    return rssi_step_db * math.floor(10.0 * math.log10(power) / rssi_step_db + 0.5)


@compiled
def finish(
    links: Reception,
    bits: NDArray[np.uint16],
    normals: NDArray[np.float32],
    sigma: float,
    theta: Floats,
    draws: Floats,
    budget: Budget,
    order: NDArray[np.int64],
    rssi: Floats,
    csi: NDArray[np.int8],
) -> None:
    """Impair every frame heard; row r of order, rssi and csi is the r-th of them, drone by drone."""
    channel, noise_mw, heard, used, turn = links.channel, links.noise_mw, links.heard, links.used, links.turn
    r = 0
    for i in range(heard.shape[0]):
        for j in range(heard.shape[1]):
            if heard[i, j]:
                rssi[r] = impair(
                    channel[i, j],
                    bits[i, j, used[i, j]],
                    normals,
                    noise_mw[i],
                    sigma,
                    theta[i, j] + turn[i, j],
                    draws[i, j, 4],
                    budget.csi_level,
                    budget.agc_step_db,
                    budget.rssi_step_db,
                    csi[r],
                )
                used[i, j] += 1
                order[r] = j
                r += 1


class Receiver:
    """The radios of all drones. Ticks are asked for in ascending order."""

    def close(self) -> None:
        """Nothing is held."""

    def __init__(
        self,
        config: RadioConfig,
        world: World,
        devices: Sequence[Device],
        drones: int,
        seed: int,
        episode: int,
        sigma: float,
        kappa: float,
    ) -> None:
        if not (sigma >= 0.0 and math.isfinite(sigma)) or not kappa >= 0.0:
            raise ValueError(f"sigma must be 0 or more and finite, kappa 0 or more; got sigma {sigma}, kappa {kappa}")
        self.devices = tuple(sorted(devices, key=lambda d: d.address))
        n, m = drones, len(self.devices)
        self._sigma, self._kappa = sigma, kappa
        self._scene = make_scene(world, config)
        self._budget = make_budget(config)
        self._sources = make_transmitters(self.devices, config)
        keys = [[(seed, episode, i, d.address) for d in self.devices] for i in range(n)]
        self._frame_rng = [[stream("csi frame", *key) for key in row] for row in keys]
        self._phase_rng = [[stream("csi phase", *key) for key in row] for row in keys]
        self._noise_rng = [[stream("csi noise", *key) for key in row] for row in keys]
        self._amplitude_rng = [[stream("csi amplitude", *key) for key in row] for row in keys]
        self._traffic_rng = [stream("csi traffic", seed, episode, d.address) for d in self.devices]
        self._schedule, self._scan_addresses = make_traffic(self.devices, config)
        self._address = np.array([d.address for d in self.devices], dtype=np.uint64)
        self._beacon = np.array([d.beacon for d in self.devices], dtype=np.bool_)
        self._block = -1
        self._draws = np.zeros((BLOCK, n, m, DRAWS))
        self._theta = np.zeros((BLOCK, n, m))
        self._spoken = np.zeros((BLOCK, m, SPEAK_DRAWS))
        samples = THERMAL + (THERMAL // 2 if sigma > 0.0 else 0)
        self._bits = np.zeros((n, m, NOISE_BLOCK, samples), dtype=np.uint16)
        self._links = Reception(
            cursor=np.zeros(m, dtype=np.int64),
            device=np.full((m, 4), np.nan),
            last=np.full((n, 3), np.nan),
            paths=np.zeros((n, m, 2 + config.max_reflections, PATH)),
            counts=np.zeros((n, m), dtype=np.int64),
            shadow=np.array([[rng.standard_normal() for rng in row] for row in self._frame_rng]).reshape(n, m),
            channel=np.zeros((n, m, ANTENNAS, WIDTH, 2)),
            noise_mw=np.zeros(n),
            heard=np.zeros((n, m), dtype=np.bool_),
            tally=np.zeros(n, dtype=np.int64),
            used=np.full((n, m), NOISE_BLOCK, dtype=np.int64),
            sends=np.zeros(m, dtype=np.bool_),
            scanning=np.full(m, -1, dtype=np.int64),
            traffic=traffic_rows(m),
            array=draw_arrays(n, config.bearing_bias_rad, seed, episode),
            turn=np.zeros((n, m)),
        )

    def listen(self, stamp_ns: int, tick: int, positions: Floats, attitudes: Floats) -> list[Frames]:
        """What each drone receives at a tick, for true positions [N, 3] (ENU) and attitudes [N, 4] (w x y z)."""
        self._draw(tick // BLOCK)
        row = tick % BLOCK
        draws = self._draws[row]
        links = self._links
        dry = receive(
            tick,
            stamp_ns * 1e-9,
            self._scene,
            self._budget,
            self._sources,
            self._schedule,
            np.ascontiguousarray(positions, dtype=np.float64),
            np.ascontiguousarray(attitudes, dtype=np.float64),
            self._spoken[row],
            draws,
            links,
        )
        if dry:
            self._draw_noise()
        tally = links.tally.tolist()
        total = sum(tally)
        order = np.empty(total, dtype=np.int64)
        rssi = np.empty(total)
        csi = np.empty((total, ANTENNAS, WIDTH, 2), dtype=np.int8)
        theta = self._theta[row]
        finish(links, self._bits, NORMALS, self._sigma, theta, draws, self._budget, order, rssi, csi)
        address, beacon = self._address.copy(), self._beacon[order]
        for j in np.flatnonzero(links.scanning >= 0):
            address[j] = self._scan_addresses[j, links.scanning[j]]
        address = address[order]
        frames = []
        first = 0
        for count in tally:
            part = slice(first, first + count)
            frames.append(Frames(stamp_ns, address[part], beacon[part], rssi[part], csi[part]))
            first += count
        return frames

    def _draw_noise(self) -> None:
        for i, j in np.argwhere(self._links.heard & (self._links.used == NOISE_BLOCK)):
            bits = self._bits[i, j]
            bits[:, :THERMAL] = _random_bits(self._noise_rng[i][j], THERMAL)
            if self._sigma > 0.0:
                bits[:, THERMAL:] = _random_bits(self._amplitude_rng[i][j], THERMAL // 2)
            self._links.used[i, j] = 0

    def _draw(self, block: int) -> None:
        """Draw ahead to a block of ticks; blocks that nobody asked for are drawn and dropped."""
        if block < self._block:
            raise ValueError(f"ticks must ascend: block {block} was asked for after block {self._block}")
        while self._block < block:
            self._block += 1
            for j, rng in enumerate(self._traffic_rng):
                self._spoken[:, j] = rng.random((BLOCK, SPEAK_DRAWS))
            for i, row in enumerate(self._frame_rng):
                for j, rng in enumerate(row):
                    self._draws[:, i, j, :5] = rng.random((BLOCK, 5))
                    self._draws[:, i, j, 5:] = rng.standard_normal((BLOCK, 2))
                    if math.isfinite(self._kappa):
                        self._theta[:, i, j] = self._phase_rng[i][j].vonmises(0.0, self._kappa, BLOCK)


def _random_bits(rng: np.random.Generator, width: int) -> NDArray[np.uint16]:
    """Random bits [NOISE_BLOCK, width], four numbers of 16 from each word of the generator."""
    words: NDArray[np.uint64] = rng.bit_generator.random_raw(NOISE_BLOCK * width // 4)
    return words.view(np.uint16).reshape(NOISE_BLOCK, width)


def direct_frame(
    channel: Complexes,
    normals: Floats,
    noise_mw: float,
    sigma: float,
    theta: float,
    gain_draw: float,
    budget: Budget,
) -> tuple[float, NDArray[np.int8]]:
    """`impair` in plain numpy on a complex channel [ANTENNAS, subcarriers]: the oracle, and the peer of our speed."""
    thermal = normals[:THERMAL].reshape(ANTENNAS, WIDTH, 2)
    noisy = channel + np.sqrt(0.5 * noise_mw * WIDTH / 64.0) * (thermal[..., 0] + 1j * thermal[..., 1])
    power = float(np.mean(np.abs(noisy) ** 2))
    if sigma > 0.0:
        size = np.abs(noisy)
        noisy = noisy * (1.0 + sigma * size.mean() * normals[THERMAL:].reshape(ANTENNAS, WIDTH) / size)
    noisy[1] *= np.exp(1j * theta)
    wanted = 20.0 * np.log10(budget.csi_level / np.sqrt(power)) / budget.agc_step_db
    counts = noisy * 10.0 ** (budget.agc_step_db * np.floor(wanted + gain_draw) / 20.0)
    parts = np.floor(np.stack([counts.real, counts.imag], axis=-1) + 0.5)
    rssi = budget.rssi_step_db * np.floor(10.0 * np.log10(power) / budget.rssi_step_db + 0.5)
    return float(rssi), np.clip(parts, -FULL_SCALE, FULL_SCALE).astype(np.int8)
