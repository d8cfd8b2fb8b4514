"""The listener: frames made by hand go in, honest observations of a second come out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import i0e, i1e

from sar_core.radio import SUBCARRIERS, array_axis
from sar_swarm.sensing.frames import Batch
from sar_swarm.sensing.gate import GateConfig, GateState
from sar_swarm.sensing.observation import (
    MAX_PHASE_STD,
    GateChange,
    Listener,
    ListenerConfig,
    Observation,
    RangeLaw,
    concentration,
    phase_std,
)
from tests.unit.sar_core.arrayphase import expected_phase

Floats = NDArray[np.float64]

TICK_NS = 50_000_000
LEVEL = np.array([1.0, 0.0, 0.0, 0.0])
HOME = np.array([0.0, 0.0, 30.0])


def yawed(yaw: float) -> Floats:
    return np.array([math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)])


def frame(rng: np.random.Generator, phase: float, ripple: float = 0.0, sigma: float = 0.0) -> NDArray[np.int8]:
    """A packet with a random common phase, timing offset and gain step; ripple is an echo of this strength."""
    echo = 1.0 + ripple * np.exp(1j * (0.35 * SUBCARRIERS + rng.uniform(0.0, 2.0 * math.pi)))
    h = 20.0 * rng.choice([1.0, 1.6]) * echo * np.exp(1j * rng.uniform(0.0, 6.28))
    h = h * np.exp(1j * SUBCARRIERS * rng.uniform(-0.1, 0.1))
    both = np.stack([h, h * np.exp(1j * phase)])
    both = both * (1.0 + sigma * rng.normal(size=both.shape))
    return np.clip(np.rint(np.stack([both.real, both.imag], axis=-1)), -128, 127).astype(np.int8)


def batch(tick: int, csi: NDArray[np.int8], rssi: float = -70.0, address: int = 7, beacon: bool = False) -> Batch:
    return Batch(
        tick * TICK_NS,
        np.array([address], dtype=np.uint64),
        np.array([beacon]),
        np.array([rssi]),
        csi[None],
    )


class Scene:
    """A listener, a transmitter, and what comes out of it all."""

    def __init__(self, device: tuple[float, float, float] = (40.0, 30.0, 0.5), **config: Any) -> None:
        self.listener = Listener(3, ListenerConfig(**config))
        self.device = np.array(device)
        self.rng = np.random.default_rng(1)
        self.observations: list[Observation] = []
        self.changes: list[GateChange] = []
        self.tick = 0

    def phase(self, position: Floats, attitude: Floats) -> float:
        u = (self.device - position) / np.linalg.norm(self.device - position)
        return float(expected_phase(*array_axis(*attitude), *u))

    def hear(
        self, position: Floats = HOME, attitude: Floats = LEVEL, kappa: float = math.inf, **making: float
    ) -> list[Observation]:
        noise = 0.0 if math.isinf(kappa) else self.rng.vonmises(0.0, kappa)
        csi = frame(self.rng, self.phase(position, attitude) + noise, **making)
        return self.take(batch(self.tick, csi), position, attitude)

    def take(self, frames: Any, position: Floats = HOME, attitude: Floats = LEVEL) -> list[Observation]:
        made, changes = self.listener.listen(frames, position, attitude, self.tick * 0.05)
        self.observations += made
        self.changes += changes
        self.tick += 1
        return made

    def hover(self, ticks: int, **making: float) -> list[Observation]:
        return [o for _ in range(ticks) for o in self.hear(**making)]


def test_an_observation_every_ten_frames_with_the_phase_of_the_geometry() -> None:
    scene = Scene()
    made = scene.hover(100)
    assert len(made) == 10
    assert [o.usable for o in made[:2]] == [False, True]
    assert made[1].frames == 5  # those from the frame on at which the gate opened
    last = made[-1]
    assert (last.drone, last.address, last.frames, last.beacon) == (3, 7, 10, False)
    assert last.time_s == pytest.approx(0.05 * (90 + 99) / 2)
    assert last.position == pytest.approx((0.0, 0.0, 30.0))
    assert last.axis == pytest.approx((0.0, 1.0, 0.0))
    assert last.phase_rad == pytest.approx(scene.phase(HOME, LEVEL), abs=0.02)
    assert last.usable and last.open and last.state is GateState.ACCEPT
    assert last.coherence > 0.999
    assert last.numbers() == (
        3.0,
        last.time_s,
        *last.position,
        *last.axis,
        last.range_m,
        last.range_std_m,
        last.phase_rad,
        last.phase_std_rad,
    )


def test_nothing_is_usable_before_the_window_is_full() -> None:
    scene = Scene()
    made = scene.hover(15)
    assert len(made) == 1
    assert not any(o.usable or o.open for o in made)
    scene.hover(1)
    assert [(c.open, c.state) for c in scene.changes] == [(False, GateState.ACCEPT), (True, GateState.ACCEPT)]
    assert scene.changes[-1].address == 7 and scene.changes[-1].time_s == pytest.approx(15 * 0.05)


def test_range_follows_the_log_distance_law() -> None:
    law = RangeLaw(reference_dbm=-40.0, exponent=2.0, shadowing_db=6.0, power_db=8.0, fading_db=0.0)
    assert law.range_m(-40.0) == pytest.approx(1.0)
    assert law.range_m(-80.0) == pytest.approx(100.0)
    assert replace(law, exponent=4.0).range_m(-80.0) == pytest.approx(10.0)
    assert law.relative_std(1e9) == pytest.approx(10.0 * math.log(10.0) / 20.0)
    faded = replace(law, fading_db=2.2)
    fresh = [
        faded.relative_std(n, noise) ** 2 - law.relative_std(1e9) ** 2 for n, noise in ((1, 1.0), (4, 1.0), (1, 3.0))
    ]
    assert fresh[0] == pytest.approx((2.2**2 + 1.0 / 12.0) * (math.log(10.0) / 20.0) ** 2)
    assert fresh[1] == pytest.approx(fresh[0] / 4.0) and fresh[2] == pytest.approx(9.0 * fresh[0])
    scene = Scene(law=law)
    for k in range(10):
        made = scene.take(batch(k, frame(scene.rng, 0.0), rssi=-80.0 + (1.0 if k % 2 else -1.0)))
    assert made[0].rssi_dbm == pytest.approx(-80.0)
    assert made[0].range_m == pytest.approx(100.0)
    assert made[0].range_std_m == pytest.approx(100.0 * law.relative_std(10))


def fly_past(scene: Scene, k: int) -> tuple[Floats, Floats]:
    return np.array([8.0 * 0.05 * k - 60.0, 0.0, 30.0]), yawed(math.pi / 2)


def turn(scene: Scene, k: int) -> tuple[Floats, Floats]:
    return HOME, yawed(math.radians(30.0) * 0.05 * k)


@pytest.mark.parametrize("motion", [fly_past, turn])
def test_in_motion_the_phase_belongs_to_the_pose_that_goes_with_it(motion: Any) -> None:
    scene = Scene(device=(0.0, 25.0, 0.5))
    for k in range(300):
        scene.hear(*motion(scene, k))
    usable = [o for o in scene.observations if o.usable]
    assert len(usable) >= 24
    for o in usable:
        u = (scene.device - np.array(o.position)) / np.linalg.norm(scene.device - np.array(o.position))
        off = o.phase_rad - expected_phase(*o.axis, *u)
        assert abs(math.remainder(off, 2.0 * math.pi)) < 0.03


@pytest.mark.parametrize("kappa", [2.5, 4.0, 8.0, 32.0])
def test_the_phases_standard_deviation_is_the_one_it_has(kappa: float) -> None:
    """Errors of independent half seconds over what each claims: a spread of one, at every noise level."""
    scene = Scene()
    scene.hover(6000, kappa=kappa)
    truth = scene.phase(HOME, LEVEL)
    z = [math.remainder(o.phase_rad - truth, 2.0 * math.pi) / o.phase_std_rad for o in scene.observations if o.usable]
    assert len(z) > 400
    assert np.std(z) == pytest.approx(1.0, abs=0.12)
    assert abs(np.mean(z)) < 0.2


@pytest.mark.parametrize("kappa", [0.3, 1.0, 1.739, 2.014, 4.0, 8.0, 16.0, 100.0])
def test_concentration_inverts_the_ratio_of_bessel_functions(kappa: float) -> None:
    assert concentration(float(i1e(kappa) / i0e(kappa))) == pytest.approx(kappa, rel=0.012)


def test_phase_std_knows_its_limits() -> None:
    assert phase_std(0.0, 50.0, 10.0, 0.02) == MAX_PHASE_STD
    assert phase_std(1.0, 50.0, 10.0, 0.02) == pytest.approx(0.02)
    assert phase_std(0.9366, 50.0, 10.0, 0.0) == pytest.approx(1.0 / math.sqrt(10 * 8.0 * 0.9352), rel=0.01)


def test_predict_only_counts_for_ranges_alone() -> None:
    """The amplitudes' shape says next to nothing about the phase: its standard deviation stays the one it has."""
    scene = Scene()
    scene.hover(600, kappa=8.0)
    scene.hover(20, kappa=8.0, sigma=0.16)
    last = scene.observations[-1]
    assert last.state is GateState.PREDICT_ONLY and last.usable
    assert last.phase_std_rad == phase_std(last.coherence, 50.0, last.frames, 0.02)
    law = ListenerConfig().law
    assert last.range_std_m / last.range_m > 1.02 * law.relative_std(last.frames)
    assert scene.changes[-1].state is GateState.PREDICT_ONLY and scene.changes[-1].open


def test_a_foreign_shape_is_rejected_and_not_usable() -> None:
    scene = Scene()
    scene.hover(600)
    scene.hover(20, ripple=0.9)
    last = scene.observations[-1]
    assert last.state is GateState.REJECT and last.open and not last.usable


def test_noise_below_the_gate_closes_it_and_blocks() -> None:
    scene = Scene()
    scene.hover(200)
    scene.hover(100, kappa=0.5)
    last = scene.observations[-1]
    assert not last.open and not last.usable
    assert scene.changes[-1].open is False
    assert scene.changes[-1].coherence < 0.65


def test_forced_open_lets_everything_speak_but_still_says_what_the_gates_think() -> None:
    scene = Scene(gate=GateConfig(forced_open=True))
    scene.hover(600)
    scene.hover(60, ripple=0.9, kappa=0.5)
    last = scene.observations[-1]
    assert last.usable and last.state is GateState.REJECT and not last.open
    assert all(o.usable for o in scene.observations)


def test_shares_count_every_frame_by_gate_and_state() -> None:
    scene = Scene()
    scene.hover(300)
    shares = scene.listener.shares
    assert shares.sum() == 300
    assert shares[0, GateState.ACCEPT] == 15 and shares[1, GateState.ACCEPT] == 285


def test_lost_packets_make_smaller_observations_not_longer_ones() -> None:
    scene = Scene()
    for k in range(400):
        if k % 3 == 0:
            scene.hear()
        else:
            scene.tick += 1
    usable = [o for o in scene.observations if o.usable][1:]
    assert {o.frames for o in usable} == {7}
    assert np.diff([o.time_s for o in usable]).max() < 1.1


def test_four_frames_a_second_are_enough() -> None:
    """As often as phones were heard in the field: an observation a second, usable once sixteen frames were heard."""
    scene = Scene()
    for _ in range(80):
        scene.hear()
        scene.tick += 4
    usable = [o for o in scene.observations if o.usable]
    assert {o.frames for o in usable[1:]} == {4, 5}
    assert len(usable) > 14 and usable[0].time_s < 5.0


def test_a_lone_frame_says_nothing() -> None:
    """As a phone's scans are heard."""
    scene = Scene()
    for _ in range(200):
        scene.hear()
        scene.tick += 24
    assert scene.observations == []


def test_beacons_are_marked() -> None:
    scene = Scene()
    for k in range(10):
        made = scene.take(batch(k, frame(scene.rng, 0.3), beacon=k == 4))
    assert made[0].beacon


def test_links_do_not_touch_each_other() -> None:
    """A link's observations are the same to the last bit alone and among others, in any order within the tick."""
    rng = np.random.default_rng(5)
    ticks = [
        np.stack([frame(rng, 0.5 + 0.3 * j + rng.vonmises(0, 4), sigma=0.05) for j in range(3)]) for _ in range(120)
    ]
    alone, among = Listener(0), Listener(0)
    lone: list[Observation] = []
    many: list[Observation] = []
    order = [2, 0, 1]
    for k, csi in enumerate(ticks):
        lone += alone.listen(batch(k, csi[1], address=11), HOME, LEVEL, k * 0.05)[0]
        addresses = np.array([10, 11, 12], dtype=np.uint64)[order]
        rssi = np.full(3, -70.0)
        heard = Batch(k * TICK_NS, addresses, np.zeros(3, dtype=np.bool_), rssi, csi[order])
        many += among.listen(heard, HOME, LEVEL, k * 0.05)[0]
    assert lone == [o for o in many if o.address == 11]
    assert len(many) > 2 * len(lone)


def test_a_link_that_was_silent_starts_closed() -> None:
    scene = Scene()
    scene.hover(100)
    scene.tick += 610
    made = scene.hover(10)
    assert not made[0].open and not made[0].usable


def test_a_link_lives_through_an_outage() -> None:
    """20 s of silence, as phones were seen to keep: its first second afterwards is usable."""
    scene = Scene()
    scene.hover(100)
    scene.tick += 400
    made = scene.hover(10)
    assert made[0].open and made[0].usable


def corrupt(kind: str, good: Batch) -> tuple[Any, Floats, Floats]:
    """A malformed twin of a good frame, and the pose to hear it at."""
    position, attitude = HOME, LEVEL
    frames: Any = good
    if kind == "not_finite":
        frames = good._replace(rssi_dbm=np.array([np.nan]))
    elif kind == "csi_not_finite":
        frames = good._replace(csi=np.full(good.csi.shape, np.nan))  # type: ignore[arg-type]
    elif kind == "wrong_length":
        frames = good._replace(csi=good.csi[:, :, :-1])
    elif kind == "stale":
        frames = good._replace(stamp_ns=good.stamp_ns - 3 * TICK_NS)
    elif kind == "long_past":
        frames = good._replace(stamp_ns=good.stamp_ns - 10**12)
    elif kind == "future":
        frames = good._replace(stamp_ns=good.stamp_ns + 10**9)
    elif kind == "duplicate":
        frames = good._replace(stamp_ns=good.stamp_ns - TICK_NS)
    elif kind == "no_signal":
        frames = good._replace(csi=np.zeros_like(good.csi))
    elif kind == "pose":
        position = np.array([np.nan, 0.0, 30.0])
    return frames, position, attitude


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("not_finite", "not_finite"),
        ("csi_not_finite", "not_finite"),
        ("wrong_length", "wrong_length"),
        ("stale", "stale"),
        ("long_past", "stale"),
        ("future", "future"),
        ("duplicate", "duplicate"),
        ("no_signal", "no_signal"),
        ("pose", "not_finite"),
        ("unknown_drone", "unknown_drone"),
    ],
)
def test_malformed_frames_are_counted_and_never_move_an_estimate(kind: str, reason: str) -> None:
    """A listener that also gets malformed frames says the same, to the last bit, as one that does not."""
    rng = np.random.default_rng(6)
    clean, soiled = Listener(0), Listener(0)
    expected: list[Any] = []
    got: list[Any] = []
    for k in range(150):
        good = batch(k, frame(rng, 0.7 + rng.vonmises(0, 8), sigma=0.05), rssi=-70.0 + rng.integers(-2, 3))
        if k > 0:
            bad, position, attitude = corrupt(kind, good)
            sender = 9 if kind == "unknown_drone" else None
            assert soiled.listen(bad, position, attitude, k * 0.05, drone=sender) == ([], [])
        expected.append(clean.listen(good, HOME, LEVEL, k * 0.05))
        got.append(soiled.listen(good, HOME, LEVEL, k * 0.05))
    assert got == expected
    assert clean.dropped == {}
    assert soiled.dropped == {reason: 149}
