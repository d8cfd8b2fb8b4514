"""Frames that cannot be: dropped, counted, and without a trace in what the drone knows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from sar_swarm.sensing.frames import CSI_SHAPE, LINKS, Batch, FrameFilter

TICK_NS = 50_000_000


class Raw(NamedTuple):
    """Frames as they may come off a wire: fields of any kind."""

    stamp_ns: int
    address: Any
    beacon: Any
    rssi_dbm: Any
    csi: Any


def make(stamp_ns: int, *addresses: int) -> Batch:
    n = len(addresses)
    csi = np.random.default_rng(1).integers(1, 40, (n, *CSI_SHAPE)).astype(np.int8)
    return Batch(stamp_ns, np.array(addresses, dtype=np.uint64), np.zeros(n, dtype=np.bool_), np.full(n, -60.0), csi)


def taken(keeper: FrameFilter, frames: Any, now_ns: int, drone: int | None = None) -> int:
    """How many frames get through both checks."""
    batch = keeper.admit(frames, now_ns, drone)
    return 0 if batch is None else int((keeper.screen(batch)[0] >= 0).sum())


def test_good_frames_pass_and_keep_their_row() -> None:
    keeper = FrameFilter(0)
    first, _ = keeper.screen(make(0, 7, 9))
    again, fresh = keeper.screen(make(TICK_NS, 9, 7, 2**64 - 1))
    assert again[0] == first[1] and again[1] == first[0]
    assert fresh.tolist() == [False, False, True]
    assert not keeper.dropped


def test_nothing_heard_is_nothing_wrong() -> None:
    keeper = FrameFilter(0)
    assert keeper.admit(make(0), 0) is None
    assert not keeper.dropped


@pytest.mark.parametrize(
    ("stamp_ns", "reason"), [(-600_000_000, "stale"), (60_000_000, "future"), (10**18, "future"), (-(10**18), "stale")]
)
def test_stamps_far_from_the_clock_are_dropped(stamp_ns: int, reason: str) -> None:
    keeper = FrameFilter(0)
    assert taken(keeper, make(10**9 + stamp_ns, 7, 8), 10**9) == 0
    assert keeper.dropped == {reason: 2}
    assert taken(keeper, make(10**9, 7, 8), 10**9) == 2


def test_time_running_backwards_is_stale_even_within_the_allowed_age() -> None:
    keeper = FrameFilter(0)
    assert taken(keeper, make(4 * TICK_NS, 7), 4 * TICK_NS) == 1
    assert taken(keeper, make(3 * TICK_NS, 7), 4 * TICK_NS) == 0
    assert keeper.dropped == {"stale": 1}


def test_duplicates_are_dropped_in_a_batch_and_between_batches() -> None:
    keeper = FrameFilter(0)
    assert taken(keeper, make(TICK_NS, 7, 7, 8), TICK_NS) == 2
    assert taken(keeper, make(TICK_NS, 8), TICK_NS) == 0
    assert keeper.dropped == {"duplicate": 2}


def test_another_drones_frames_are_not_ours() -> None:
    keeper = FrameFilter(2)
    assert taken(keeper, make(0, 7, 8, 9), 0, drone=5) == 0
    assert keeper.dropped == {"unknown_drone": 3}
    assert taken(keeper, make(0, 7), 0, drone=2) == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_signal_strength_that_is_no_number(value: float) -> None:
    keeper = FrameFilter(0)
    frames = make(0, 7, 8)
    frames.rssi_dbm[0] = value
    assert taken(keeper, frames, 0) == 1
    assert keeper.dropped == {"not_finite": 1}


def test_csi_that_is_no_number_costs_only_its_own_frame() -> None:
    keeper = FrameFilter(0)
    frames = make(0, 7, 8)
    csi = frames.csi.astype(np.float64)
    csi[1, 0, 5, 1] = np.nan
    assert taken(keeper, frames._replace(csi=csi), 0) == 1  # type: ignore[arg-type]
    assert keeper.dropped == {"not_finite": 1}


def test_csi_of_a_wrong_length_costs_only_its_own_frame() -> None:
    keeper = FrameFilter(0)
    good = make(0, 7, 8, 9)
    rows: list[Any] = [row.ravel() for row in good.csi]
    rows[1] = rows[1][:-1]
    raw = Raw(0, [7, 8, 9], [False, True, True], [-60.0, -61.0, -62.0], rows)
    batch = keeper.admit(raw, 0)
    assert batch is not None
    assert batch.address.tolist() == [7, 9]
    assert batch.rssi_dbm.tolist() == [-60.0, -62.0]
    assert np.array_equal(batch.csi, good.csi[[0, 2]])
    assert keeper.dropped == {"wrong_length": 1}


@pytest.mark.parametrize("broken", [None, "noise", [], [[1, 2], [3]]])
def test_csi_that_is_no_array_at_all(broken: Any) -> None:
    keeper = FrameFilter(0)
    assert keeper.admit(Raw(0, [7], [False], [-60.0], [broken]), 0) is None
    assert sum(keeper.dropped.values()) == 1


@pytest.mark.parametrize("field", ["beacon", "rssi_dbm", "csi"])
def test_fields_of_different_lengths_lose_the_batch(field: str) -> None:
    keeper = FrameFilter(0)
    frames = make(0, 7, 8)
    assert keeper.admit(frames._replace(**{field: getattr(frames, field)[:1]}), 0) is None
    assert keeper.dropped == {"wrong_length": 2}


@pytest.mark.parametrize("antenna", [0, 1])
def test_a_dead_antenna_has_no_phase_to_tell(antenna: int) -> None:
    keeper = FrameFilter(0)
    frames = make(0, 7, 8)
    frames.csi[0, antenna] = 0
    assert taken(keeper, frames, 0) == 1
    assert keeper.dropped == {"no_signal": 1}


def test_a_long_silence_starts_a_link_anew() -> None:
    keeper = FrameFilter(0)
    keeper.screen(make(0, 7))
    assert not keeper.screen(make(30_000_000_000, 7))[1][0]
    assert keeper.screen(make(60_050_000_000, 7))[1][0]


def test_when_the_table_is_full_the_one_silent_for_longest_goes() -> None:
    keeper = FrameFilter(0)
    for k in range(LINKS):
        keeper.screen(make(k * TICK_NS, 100 + k))
    keeper.screen(make(LINKS * TICK_NS, 100))
    rows, fresh = keeper.screen(make((LINKS + 1) * TICK_NS, 999, 100))
    assert rows.tolist() == [1, 0]
    assert fresh.tolist() == [True, False]
    assert keeper.screen(make((LINKS + 2) * TICK_NS, 101))[1][0]


def stamps_of(keeper: FrameFilter) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    return keeper.known.copy(), keeper.stamps.copy()


def test_dropped_frames_leave_no_trace_in_the_table() -> None:
    keeper = FrameFilter(0)
    keeper.screen(make(10 * TICK_NS, 7))
    known, stamps = stamps_of(keeper)
    bad = make(11 * TICK_NS, 7, 8)
    bad.rssi_dbm[:] = np.nan
    silent = make(11 * TICK_NS, 7, 8)
    silent.csi[:] = 0
    for frames in (bad, silent, make(10 * TICK_NS, 7), make(9 * TICK_NS, 7), make(10**15, 7, 8)):
        assert taken(keeper, frames, 11 * TICK_NS) == 0
    assert np.array_equal(keeper.known, known) and np.array_equal(keeper.stamps, stamps)
