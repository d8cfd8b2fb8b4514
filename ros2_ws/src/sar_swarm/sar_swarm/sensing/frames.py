"""Which frames are worth hearing: malformed ones are dropped and counted before anything learns from them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.radio import ANTENNAS, SUBCARRIERS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.int8]
Addresses = NDArray[np.uint64]
Flags = NDArray[np.bool_]

CSI_SHAPE = (ANTENNAS, len(SUBCARRIERS), 2)
CSI_SIZE = ANTENNAS * len(SUBCARRIERS) * 2
LINKS = 64
"""Addresses a drone remembers; beyond them the one silent for longest is forgotten."""

_NEVER = np.iinfo(np.int64).min


class Reason(IntEnum):
    """Why a frame was dropped."""

    NOT_FINITE = 0
    WRONG_LENGTH = 1
    STALE = 2
    FUTURE = 3
    DUPLICATE = 4
    UNKNOWN_DRONE = 5
    NO_SIGNAL = 6


REASONS = len(Reason)
_NOT_FINITE, _WRONG_LENGTH, _STALE, _FUTURE, _DUPLICATE, _UNKNOWN_DRONE, _NO_SIGNAL = (int(r) for r in Reason)


class HeardFrames(Protocol):
    """One drone's frames of one tick, L links. csi is int8 [L, antennas, subcarriers, 2], I and Q."""

    @property
    def stamp_ns(self) -> int: ...
    @property
    def address(self) -> Any: ...
    @property
    def beacon(self) -> Any: ...
    @property
    def rssi_dbm(self) -> Any: ...
    @property
    def csi(self) -> Any: ...


class Batch(NamedTuple):
    """Frames whose arrays are known to be of the right kinds and lengths."""

    stamp_ns: int
    address: Addresses
    beacon: Flags
    rssi_dbm: Floats
    csi: Bytes


@dataclass(frozen=True)
class FrameConfig:
    """How old and how far ahead of the drone's clock a stamp may be, and after which silence a link starts anew.

    Phones answer in bursts with outages of up to 20 s (Wi2SAR): a link must live through one.
    """

    max_age_s: float = 0.5
    max_ahead_s: float = 0.05
    silence_s: float = 30.0


@compiled
def screen(
    known: Addresses, stamps: Ints, batch: Batch, silence_ns: float, counts: Ints, rows: Ints, fresh: Flags
) -> None:
    """Check each frame of a batch and give it the row of its address in the table ``known`` / ``stamps`` [LINKS].

    Fills rows [L] (-1: dropped, counted in ``counts`` [REASONS]) and fresh [L]: whether the row starts anew, because
    its address is new or was silent for too long.
    """
    stamp_ns, csi = batch.stamp_ns, batch.csi
    for i in range(batch.address.size):
        rows[i] = -1
        fresh[i] = False
        if not np.isfinite(batch.rssi_dbm[i]):
            counts[_NOT_FINITE] += 1
            continue
        silent = False
        for antenna in range(csi.shape[1]):
            any_signal = False
            for k in range(csi.shape[2]):
                if csi[i, antenna, k, 0] != 0 or csi[i, antenna, k, 1] != 0:
                    any_signal = True
                    break
            silent = silent or not any_signal
        if silent:
            counts[_NO_SIGNAL] += 1
            continue
        row = -1
        oldest = 0
        for r in range(known.size):
            if stamps[r] != _NEVER and known[r] == batch.address[i]:
                row = r
                break
            if stamps[r] < stamps[oldest]:
                oldest = r
        if row < 0:
            row = oldest
            known[row] = batch.address[i]
            fresh[i] = True
        elif stamp_ns == stamps[row]:
            counts[_DUPLICATE] += 1
            continue
        elif stamp_ns < stamps[row]:
            counts[_STALE] += 1
            continue
        else:
            fresh[i] = float(stamp_ns - stamps[row]) > silence_ns
        stamps[row] = stamp_ns
        rows[i] = row


class FrameFilter:
    """One drone's filter: what it dropped, by reason, and when it last heard each address."""

    def __init__(self, drone: int, config: FrameConfig | None = None) -> None:
        self.drone = drone
        self.config = config or FrameConfig()
        self.counts = np.zeros(REASONS, dtype=np.int64)
        self.known = np.zeros(LINKS, dtype=np.uint64)
        self.stamps = np.full(LINKS, _NEVER, dtype=np.int64)
        self.silence_ns = self.config.silence_s * 1e9
        self._age_ns = round(self.config.max_age_s * 1e9)
        self._ahead_ns = round(self.config.max_ahead_s * 1e9)

    @property
    def dropped(self) -> Counter[str]:
        """Frames dropped so far, by reason."""
        return Counter({reason.name.lower(): int(self.counts[reason]) for reason in Reason if self.counts[reason]})

    def admit(self, frames: HeardFrames, now_ns: int, drone: int | None = None) -> Batch | None:
        """The batch as arrays of the right kinds, without frames that cannot be; None where none is left.

        What depends on an address's history (duplicates, time running backwards) is :func:`screen`'s to find.
        """
        heard = len(frames.address)
        if drone is not None and drone != self.drone:
            self._drop(Reason.UNKNOWN_DRONE, heard)
            return None
        stamp_ns = frames.stamp_ns
        if stamp_ns - now_ns > self._ahead_ns:
            self._drop(Reason.FUTURE, heard)
            return None
        if now_ns - stamp_ns > self._age_ns:
            self._drop(Reason.STALE, heard)
            return None
        csi, rssi = frames.csi, frames.rssi_dbm
        if (
            isinstance(csi, np.ndarray)
            and csi.dtype == np.int8
            and csi.shape == (heard, *CSI_SHAPE)
            and len(rssi) == heard == len(frames.beacon)
        ):
            return Batch(stamp_ns, frames.address, frames.beacon, rssi, csi) if heard else None
        return self._salvage(frames, heard)

    def screen(self, batch: Batch) -> tuple[Ints, Flags]:
        """Table row of each frame (-1: dropped) and whether that row starts anew."""
        rows = np.empty(batch.address.size, dtype=np.int64)
        fresh = np.empty(batch.address.size, dtype=np.bool_)
        screen(self.known, self.stamps, batch, self.silence_ns, self.counts, rows, fresh)
        return rows, fresh

    def _drop(self, reason: Reason, frames: int) -> None:
        self.counts[reason] += frames

    def _salvage(self, frames: HeardFrames, heard: int) -> Batch | None:
        """Frame by frame: what is left of a batch whose arrays are not of one kind and length."""
        if not len(frames.csi) == len(frames.rssi_dbm) == len(frames.beacon) == heard:
            self._drop(Reason.WRONG_LENGTH, heard)
            return None
        keep: list[int] = []
        kept: list[Bytes] = []
        for i in range(heard):
            try:
                numbers = np.asarray(frames.csi[i], dtype=np.float64)
            except (TypeError, ValueError):
                numbers = np.empty(0)
            if numbers.size != CSI_SIZE:
                self._drop(Reason.WRONG_LENGTH, 1)
            elif not np.isfinite(numbers).all():
                self._drop(Reason.NOT_FINITE, 1)
            else:
                keep.append(i)
                kept.append(np.clip(np.rint(numbers), -128, 127).astype(np.int8).reshape(CSI_SHAPE))
        if not keep:
            return None
        return Batch(
            frames.stamp_ns,
            np.asarray(frames.address, dtype=np.uint64)[keep],
            np.asarray(frames.beacon, dtype=np.bool_)[keep],
            np.asarray(frames.rssi_dbm, dtype=np.float64)[keep],
            np.stack(kept),
        )
