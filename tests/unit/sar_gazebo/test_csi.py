"""The pure part of the CSI system: episode, cadence, frames, payload, health."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.errors import ContractError, InputError, RunError
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_gazebo.csi import KEYS, TIER, Cadence, CsiHealth, Radio, decode, encode, read_episode
from sar_sim.radio.receiver import Frames
from sar_sim.vehicle.fleet import STEP_NS, stamp_ns
from tests.unit.sar_gazebo.madeframes import frames_of

SCENARIO = Scenario(world="village", drones=2, victims=3, decoys=4, sigma=0.1, kappa=4.0)


def parameters(episode: Episode, **changed: str) -> dict[str, str]:
    values = (json.dumps(episode.plain_scenario()), str(episode.seed), str(episode.index), episode.config_sha256)
    return {**dict(zip(KEYS, values, strict=True)), **changed}


def staged() -> Episode:
    return prepare(SCENARIO, 5, 3, TIER)


def assert_equal(got: Frames, wanted: Frames) -> None:
    assert got.stamp_ns == wanted.stamp_ns
    for one, other in zip(got[1:], wanted[1:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_episode_comes_back_as_it_was_staged() -> None:
    episode = read_episode(parameters(staged()).__getitem__)
    assert episode.config_sha256 == staged().config_sha256
    assert [d.address for d in episode.devices] == [d.address for d in staged().devices]


def test_episode_of_a_fixed_set_comes_back() -> None:
    episode = prepare(Scenario(episode_set="village-v2"), 1, 7, TIER)
    assert read_episode(parameters(episode).__getitem__).config_sha256 == episode.config_sha256


@pytest.mark.parametrize(
    ("changed", "error", "told"),
    [
        ({"seed": " "}, InputError, "<seed> is missing; needed are scenario, seed, episode, config_sha256"),
        ({"seed": "one"}, InputError, "seed and episode integers"),
        ({"scenario": "{"}, InputError, "scenario must be JSON"),
        ({"scenario": "[]"}, InputError, "scenario is list, allowed is a mapping"),
        ({"scenario": '{"drone": 2}'}, InputError, "its scenario cannot be read"),
        ({"seed": "6"}, ContractError, "stage it again"),
        ({"config_sha256": "0" * 64}, ContractError, "the world was staged for configuration 000000000000"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(changed: dict[str, str], error: type, told: str) -> None:
    with pytest.raises(error, match=told):
        read_episode(parameters(staged(), **changed).__getitem__)


def test_ticks_fall_on_the_steps_of_the_embedded_simulator() -> None:
    cadence = Cadence(0)
    due = [(tick, step * STEP_NS) for step in range(2501) if (tick := cadence.due(step * STEP_NS)) is not None]
    assert due == [(k, stamp_ns(k)) for k in range(1, 201)], "20 Hz over 10 s, without drift"
    assert cadence.missed == 0


def test_ticks_nobody_served_are_counted_and_not_made_up_for() -> None:
    cadence = Cadence(0)
    assert cadence.due(100_000_000) == 2
    assert cadence.due(104_000_000) is None
    assert cadence.due(1_000_000_000) == 20
    assert cadence.missed == 1 + 17


def test_time_that_runs_backwards_is_an_error() -> None:
    cadence = Cadence(0)
    cadence.due(100_000_000)
    with pytest.raises(RunError, match="backwards from 100000000 to 96000000 ns"):
        cadence.due(96_000_000)


@given(st.integers(0, 40), st.integers(0, 1 << 60))
def test_payload_round_trip(count: int, tick: int) -> None:
    frames = frames_of(count, count)
    got, at = decode(encode(frames, tick), frames.stamp_ns)
    assert at == tick
    assert got.csi.flags.writeable, "kernels are compiled for arrays of one's own"
    assert_equal(got, frames)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda data: b"", "has 0 bytes, its head alone takes 16"),
        (lambda data: data[:-1], "of 3 frames has"),
        (lambda data: b"XXXX" + data[4:], "begins with b'XXXX'"),
        (lambda data: data[:4] + b"\x09" + data[5:], "version 9"),
    ],
)
def test_a_spoilt_payload_is_refused(spoil: Any, told: str) -> None:
    with pytest.raises(ContractError, match=told):
        decode(spoil(encode(frames_of(3), 1)), 0)


def test_a_pose_that_is_not_finite_is_refused() -> None:
    radio = Radio(staged())
    with pytest.raises(RunError, match="not finite"):
        radio.listen(
            52_000_000, 1, [(0.0, 0.0, 30.0, 1.0, 0.0, 0.0, 0.0), (0.0, float("nan"), 30.0, 1.0, 0.0, 0.0, 0.0)]
        )


def test_without_a_radio_there_is_no_csi() -> None:
    with pytest.raises(InputError, match="radio = null"):
        Radio(prepare(SCENARIO.model_copy(update={"radio": None}), 5, 3, TIER))


def test_health_counts_and_tells_once_a_second() -> None:
    health = CsiHealth()
    told = [step * STEP_NS for step in range(751) if health.due(step * STEP_NS)]
    assert told == [0, 1_000_000_000, 2_000_000_000, 3_000_000_000]
    assert health.due(500_000_000), "a clock set back is told at once"
    health.fail(RunError("two\n lines"))
    assert json.loads(health.text()) == {
        "configured": False,
        "begin_ns": None,
        "ticks": 0,
        "frames": 0,
        "missed": 0,
        "errors": 1,
        "resets": 0,
        "last_error": "RunError: two lines",
    }
