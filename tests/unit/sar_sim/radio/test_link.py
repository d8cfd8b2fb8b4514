"""The swarm link: who hears what, when, and how often not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from sar_sim.radio.link import Link
from sar_sim.vehicle.fleet import stamp_ns

Floats = NDArray[np.float64]


def talk(link: Link, drones: int, ticks: int) -> tuple[Floats, Floats]:
    """Times [T] and the stamp of what each drone knows of each other after every tick [T, N, N].

    Every broadcast position is (sender, tick, 0), so that what arrives tells where it came from.
    """
    times, stamps = np.empty(ticks), np.empty((ticks, drones, drones))
    for k in range(ticks):
        times[k] = stamp_ns(k) * 1e-9
        position = np.stack([np.arange(drones), np.full(drones, k), np.zeros(drones)], axis=1)
        link.exchange(times[k], position, -position, np.zeros((drones, 2)))
        stamps[k] = link.known[:, :, 6]
        for i in range(drones):
            heard = link.others(i)
            there = np.isfinite(heard[:, 6])
            assert not there[i]
            assert np.array_equal(heard[there, 0], np.flatnonzero(there))
            assert np.array_equal(times[heard[there, 1].astype(int)], heard[there, 6])
            assert np.array_equal(heard[there, 3:5], -heard[there, 0:2])
    return times, stamps


@pytest.mark.parametrize("latency", [0.0, 0.05, 0.1, 0.2, 0.3])
def test_latency_is_exact(latency: float) -> None:
    """The newest news is the last broadcast that is at least the latency old; grid times such as 0.2 + 0.1 count."""
    times, stamps = talk(Link(3, 1, 0, loss=0.0, latency_s=latency, jitter_s=0.0), 3, 200)
    step = np.rint(times * 1000).astype(int)
    for k in range(len(times)):
        due = np.flatnonzero(step <= step[k] - round(latency * 1000))
        expected = times[due[-1]] if len(due) else np.nan
        assert np.array_equal(stamps[k, [0, 2], [1, 0]], [expected, expected], equal_nan=True)


@settings(max_examples=30)
@given(loss=st.floats(0.0, 0.95), latency=st.floats(0.0, 1.0), jitter=st.floats(0.0, 1.0), seed=st.integers(0, 2**32))
def test_news_never_grows_older(loss: float, latency: float, jitter: float, seed: int) -> None:
    times, stamps = talk(Link(3, seed, 0, loss, latency, jitter), 3, 120)
    for i in range(3):
        for j in range(3):
            heard = stamps[:, i, j]
            heard = heard[np.isfinite(heard)]
            assert np.all(np.diff(heard) >= 0.0)
    age = times[:, None, None] - stamps
    assert not np.any(age < latency - 1e-6)


def test_longest_delay_still_arrives() -> None:
    """One second of latency and one of jitter is the most a scenario allows; nothing is overwritten under way."""
    times, stamps = talk(Link(2, 3, 0, loss=0.0, latency_s=1.0, jitter_s=1.0), 2, 400)
    age = (times[:, None, None] - stamps)[100:, [0, 1], [1, 0]]
    assert np.all(np.isfinite(age))
    assert age.min() >= 1.0 - 1e-6 and age.max() < 2.0


@pytest.mark.parametrize("loss", [0.05, 0.3, 0.9])
def test_loss_rate_lies_within_binomial_bounds(loss: float) -> None:
    link = Link(4, 7, 2, loss, 0.0, 0.0)
    ticks = 2000
    for k in range(ticks):
        link.exchange(stamp_ns(k) * 1e-9, np.zeros((4, 3)), np.zeros((4, 3)), np.zeros((4, 2)))
    received = link.take_delivery() * 3 * ticks
    low, high = stats.binom.interval(0.9999, 3 * ticks, 1.0 - loss)
    assert np.all((low <= received) & (received <= high))
    assert np.all(np.isnan(link.take_delivery()))


def test_receivers_miss_packets_independently() -> None:
    _, stamps = talk(Link(3, 5, 0, loss=0.5, latency_s=0.0, jitter_s=0.0), 3, 2000)
    fresh = np.diff(stamps[:, [1, 2], 0], axis=0) > 0
    both = int(np.sum(fresh[:, 0] & fresh[:, 1]))
    low, high = stats.binom.interval(0.9999, len(fresh), 0.25)
    assert low <= both <= high


def test_full_loss_delivers_nothing() -> None:
    link = Link(4, 1, 0, loss=1.0, latency_s=0.0, jitter_s=0.0)
    talk(link, 4, 500)
    assert np.all(np.isnan(link.known))
    assert np.array_equal(link.take_delivery(), np.zeros(4))


def test_same_seed_same_link() -> None:
    first, again, other = (
        talk(Link(4, seed, 3, loss=0.3, latency_s=0.05, jitter_s=0.05), 4, 300)[1] for seed in (11, 11, 12)
    )
    assert np.array_equal(first, again, equal_nan=True)
    assert not np.array_equal(first, other, equal_nan=True)


def test_a_drone_cannot_change_what_others_know() -> None:
    """What is handed to a controller is a copy."""
    link = Link(2, 1, 0, 0.0, 0.0, 0.0)
    talk(link, 2, 3)
    link.others(0)[:] = 99.0
    assert not np.any(link.known == 99.0)


def test_failsafe_and_leg_travel_with_the_state() -> None:
    link = Link(2, 1, 0, loss=0.0, latency_s=0.1, jitter_s=0.0)
    for k in range(20):
        status = np.array([[6.0, k], [0.0, 100.0 + k]])
        link.exchange(k * 0.05, np.zeros((2, 3)), np.zeros((2, 3)), status)
    assert link.others(0)[1, 6:].tolist() == pytest.approx([0.85, 0.0, 117.0])
    assert link.others(1)[0, 6:].tolist() == pytest.approx([0.85, 6.0, 17.0])
    assert link.heard_s.tolist() == pytest.approx([0.95, 0.95])


def test_silence_and_freezing_cost_the_others_no_packet() -> None:
    """What a drone hears of those that are well does not depend on who else is silent or frozen."""
    stamps = []
    for silent, frozen in ((False, False), (True, False), (False, True)):
        link = Link(4, 11, 3, loss=0.3, latency_s=0.05, jitter_s=0.05)
        link.silence[3], link.frozen[3] = silent, frozen
        stamps.append(talk_on(link)[:, :3, :3])
    assert np.array_equal(stamps[0], stamps[1], equal_nan=True) and np.array_equal(stamps[0], stamps[2], equal_nan=True)


def talk_on(link: Link) -> Floats:
    stamps = []
    for k in range(200):
        link.exchange(k * 0.05, np.zeros((4, 3)), np.zeros((4, 3)), np.zeros((4, 2)))
        stamps.append(link.known[:, :, 6].copy())
    return np.array(stamps)
