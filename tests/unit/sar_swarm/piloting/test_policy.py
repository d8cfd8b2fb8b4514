"""The policy's door: every observation at its place and scale, the actor against a plain loop, bad files refused."""

from __future__ import annotations

import io
import math
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import integrate, stats

from benchmarks.untrained import random_actor
from sar_core.errors import InputError, MissingDataError
from sar_swarm.piloting.policy import (
    Actor,
    PolicyView,
    Wish,
    act,
    decode,
    forward,
    link_quality,
    load_actor,
    observe,
    probability_tile,
    wish_to_velocity,
)
from sar_swarm.piloting.pursuit import Hypothesis, Stage

Floats = NDArray[np.float64]

ALONE = np.zeros((0, 9))
STILL = PolicyView(np.zeros(3), np.zeros(3), 0.0, 0.0, 0.0, ALONE, (), (0.0, 0.0, 0.0), 0.0, Stage.SYSTEMATIC)
SYSTEMATIC_ONLY = np.eye(64)[61]


@pytest.mark.parametrize(
    "index, change, value",
    [
        (0, {"position": np.array([250.0, 0.0, 0.0])}, 0.25),
        (1, {"position": np.array([0.0, -40.0, 0.0])}, -0.04),
        (2, {"position": np.array([0.0, 0.0, 30.0])}, 0.3),
        (3, {"velocity": np.array([8.0, 0.0, 0.0])}, 0.4),
        (4, {"velocity": np.array([0.0, -5.0, 0.0])}, -0.25),
        (5, {"velocity": np.array([0.0, 0.0, 1.0])}, 0.2),
        (6, {"heading_rad": -math.pi / 2}, -0.5),
        (6, {"heading_rad": 2.5 * math.pi}, 0.5),
        (7, {"charge": 0.8}, 0.8),
        (8, {"link": 0.6}, 0.6),
        (57, {"target": (100.0, 0.0, 0.0)}, 0.1),
        (58, {"target": (0.0, 100.0, 0.0)}, 0.1),
        (59, {"target": (0.0, 0.0, 30.0)}, 0.3),
        (60, {"time_left": 0.7}, 0.7),
    ],
)
def test_each_number_has_its_place_and_scale(index: int, change: dict[str, object], value: float) -> None:
    """Nothing else moves: the rest is zero but for the stage."""
    want = SYSTEMATIC_ONLY.copy()
    want[index] = value
    assert observe(STILL._replace(**change)) == pytest.approx(want)


@pytest.mark.parametrize("stage", list(Stage))
def test_the_stage_is_one_of_three(stage: Stage) -> None:
    assert observe(STILL._replace(stage=stage))[61:].tolist() == [float(k == stage) for k in range(3)]


def test_neighbours_are_offsets_nearest_first_and_six_at_most() -> None:
    others = np.full((9, 9), np.nan)
    others[:8, :3] = [[100.0 * (8 - k), 0.0, 30.0] for k in range(8)]
    others[3, 1] = math.inf
    view = STILL._replace(position=np.array([50.0, 20.0, 20.0]), others=others)
    got = observe(view)[9:27].reshape(6, 3)
    assert got[:, 0] == pytest.approx([0.5, 1.5, 2.5, 3.5, 5.5, 6.5])
    assert got[:, 1] == pytest.approx([-0.2] * 6)
    assert got[:, 2] == pytest.approx([1.0] * 6)
    few = observe(view._replace(others=others[5:7]))[9:27].reshape(6, 3)
    assert np.all(few[2:] == 0.0) and np.all(few[:2, 2] == 1.0)


def test_the_surest_hypothesis_is_shown_and_broken_ones_are_not() -> None:
    weak, sure = Hypothesis(1, 10.0, 0.0, 0.4, 3.0), Hypothesis(2, 200.0, -100.0, 0.9, 3.0)
    broken = Hypothesis(3, math.nan, 0.0, 0.99, 3.0)
    assert observe(STILL._replace(hypotheses=(weak, sure, broken)))[52:57] == pytest.approx([0.9, 0.2, -0.1, 0.0, 1.0])
    assert observe(STILL._replace(hypotheses=(broken,)))[52:57].tolist() == [0.0] * 5


def test_the_tile_counts_rows_from_the_south_and_columns_from_the_west() -> None:
    east_north = Hypothesis(1, 100.0 + 10.0, 50.0 + 5.0, 0.9, 0.1)
    view = STILL._replace(position=np.array([100.0, 50.0, 30.0]), hypotheses=(east_north,))
    tile = observe(view)[27:52].reshape(5, 5)
    assert tile[3, 4] == pytest.approx(0.9)
    assert tile.sum() == pytest.approx(0.9)


@given(st.floats(-20, 20), st.floats(-20, 20), st.floats(0, 1), st.floats(1, 20))
def test_a_cell_holds_the_gaussian_mass_over_it(x: float, y: float, confidence: float, std: float) -> None:
    """Against numerical integration of the density over single cells."""
    tile = probability_tile((3.0, -2.0), [Hypothesis(1, x, y, confidence, std)])
    for row, column in ((0, 0), (2, 2), (1, 4)):
        west, south = 3.0 - 12.5 + 5.0 * column, -2.0 - 12.5 + 5.0 * row
        across = integrate.quad(stats.norm(x, std).pdf, west, west + 5.0)[0]
        along = integrate.quad(stats.norm(y, std).pdf, south, south + 5.0)[0]
        assert tile[row, column] == pytest.approx(confidence * across * along, abs=1e-9)


def test_two_hypotheses_add_up_as_independent() -> None:
    a, b = Hypothesis(1, 0.0, 0.0, 0.5, 0.1), Hypothesis(2, 0.0, 0.0, 0.5, 0.1)
    assert probability_tile((0.0, 0.0), [a, b])[2, 2] == pytest.approx(0.75)


def test_link_quality_is_the_share_recently_heard() -> None:
    others = np.full((4, 9), np.nan)
    others[:, 6] = [99.0, math.nan, 97.0, 100.0]
    assert link_quality(others, 1, 100.0) == pytest.approx(2 / 3)
    assert link_quality(others[:1], 0, 100.0) == 1.0


def plain(actor: Actor, x: list[float]) -> list[float]:
    """The perceptron as one would write it on paper."""
    for k, (w, b) in enumerate(zip(actor.weights, actor.biases, strict=True)):
        x = [sum(float(w[i, j]) * x[j] for j in range(len(x))) + float(b[i]) for i in range(len(b))]
        if k < len(actor.weights) - 1:
            x = [max(v, 0.0) for v in x]
    return x


@pytest.mark.parametrize("hidden", [(128, 64), (16,), (), (5, 7, 3)])
def test_the_actor_agrees_with_a_plain_loop(tmp_path: Path, hidden: tuple[int, ...]) -> None:
    actor = load_actor(random_actor(tmp_path / "a.npz", 5, hidden))
    shifted = Actor(actor.weights, tuple(b + np.float32(0.1) for b in actor.biases))
    x = np.random.default_rng(1).normal(size=64)
    assert forward(shifted, x) == pytest.approx(plain(shifted, x.tolist()), abs=1e-5)


@given(arrays(np.float64, 4, elements=st.floats(-50, 50)))
def test_wishes_keep_their_limits_and_shape(raw: Floats) -> None:
    wish = decode(raw)
    assert wish.heading_rate_rps == pytest.approx(math.radians(30) * math.tanh(raw[0]))
    assert wish.climb_mps == pytest.approx(math.tanh(raw[1]))
    assert wish.speed_mps == pytest.approx(8.0 / (1.0 + math.exp(-raw[2])))
    assert 0.0 <= wish.speed_mps <= 8.0
    assert wish.scan == (1.0 / (1.0 + math.exp(-raw[3])) > 0.5) or abs(raw[3]) < 1e-15


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_no_wish(tmp_path: Path, bad: float) -> None:
    for k in range(4):
        raw = np.ones(4)
        raw[k] = bad
        assert decode(raw) == Wish(0.0, 0.0, 0.0, False)
    actor = load_actor(random_actor(tmp_path / "a.npz", 0))
    assert act(actor, STILL) != Wish()
    assert act(actor, STILL._replace(position=np.array([bad, 0.0, 0.0]))) == Wish()
    assert act(actor, STILL._replace(heading_rad=bad)) == Wish()


def test_a_wish_becomes_a_velocity_along_the_turned_heading() -> None:
    vx, vy, vz, heading = wish_to_velocity(math.pi - 0.1, Wish(0.5, -0.3, 4.0, True), 1.0)
    assert heading == pytest.approx(-math.pi + 0.4)
    assert (vx, vy, vz) == pytest.approx((4.0 * math.cos(heading), 4.0 * math.sin(heading), -0.3))


def test_a_random_actor_is_the_same_file_again_and_says_that_it_is_untrained(tmp_path: Path) -> None:
    one, two = random_actor(tmp_path / "one.npz", 3), random_actor(tmp_path / "two.npz", 3)
    assert one.read_bytes() == two.read_bytes() != random_actor(tmp_path / "three.npz", 4).read_bytes()
    actor = load_actor(one)
    assert "untrained" in actor.label
    assert [w.shape for w in actor.weights] == [(128, 64), (64, 128), (4, 64)]
    assert len(actor.sha256) == 64


def save(path: Path, **changes: object) -> Path:
    """The reference actor's file with some arrays changed, or left out where None."""
    random_actor(path, 0)
    with np.load(path) as archive:
        content = {name: archive[name] for name in archive.files} | changes
    np.savez(path, **{name: array for name, array in content.items() if array is not None})
    return path


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"w1": np.zeros((128, 63), np.float32)}, r"array w1 has shape \[128, 63\]; expected \[128, 64\]"),
        ({"w1": np.zeros(64, np.float32)}, r"array w1 has shape \[64\]; expected \[any, 64\]"),
        ({"b2": np.zeros(63)}, r"array b2 has shape \[63\]; expected \[64\]"),
        ({"w3": np.zeros((5, 64))}, r"array w3 has shape \[5, 64\]; expected \[4, 64\]"),
        ({"w2": np.full((64, 128), np.nan)}, r"array w2 has values that are not finite"),
        ({"b1": np.full(128, 1e60)}, r"array b1 has values beyond float32"),
        ({"b1": np.zeros(128, np.int64)}, r"array b1 has type int64; expected float32 or float64 \[128\]"),
        ({"b1": None}, r"arrays found: b2, b3, w1, w2, w3; expected w1, b1, w2, b2"),
        ({"extra": np.zeros(1)}, r"arrays found: .*extra.*; expected w1, b1"),
        ({"w1": np.array([{"a": 1}], dtype=object)}, r"not a readable npz of plain arrays"),
    ],
)
def test_a_bad_array_is_refused_with_what_was_expected(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=r"bad\.npz: " + message):
        load_actor(save(tmp_path / "bad.npz", **changes))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(tmp_path: Path, share: float) -> None:
    file = random_actor(tmp_path / "cut.npz", 0)
    data = file.read_bytes()
    file.write_bytes(data[: int(share * len(data))])
    with pytest.raises(InputError, match=r"cut\.npz"):
        load_actor(file)


def test_damage_inside_is_found(tmp_path: Path) -> None:
    file = random_actor(tmp_path / "flip.npz", 0)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x10
    file.write_bytes(bytes(data))
    with pytest.raises(InputError, match="not a readable npz"):
        load_actor(file)


def test_what_is_no_npz_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"gone\.npz: no such weights file"):
        load_actor(tmp_path / "gone.npz")
    text = tmp_path / "notes.npz"
    text.write_text("weights")
    with pytest.raises(InputError, match="not a readable npz"):
        load_actor(text)
    bomb, inner = tmp_path / "bomb.npz", io.BytesIO()
    np.save(inner, np.zeros((4_000_000, 1)))
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w1.npy", inner.getvalue())
    with pytest.raises(InputError, match=r"32000128 bytes unpacked; a weights file has at most 16000000"):
        load_actor(bomb)
    member = tmp_path / "member.npz"
    with zipfile.ZipFile(member, "w") as archive:
        archive.writestr("w1", b"not an array")
        archive.writestr("b1", b"not an array")
    with pytest.raises(InputError, match="array w1"):
        load_actor(member)
