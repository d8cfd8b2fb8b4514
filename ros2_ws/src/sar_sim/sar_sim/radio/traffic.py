"""When devices send: phones scan, are discovered, answer in bursts and fall asleep; access points beacon.

A phone that nobody has spoken to is heard for one frame at each of its scans, every 15 to 45 seconds, from an address
made up for that scan. A scan that gets through a handshake with somebody of the swarm makes it join; then it sends some
four frames a second from its own address, in bursts, but for spells of sleep, until nobody has heard it for a while.
Scans and spells belong to the layout: the same for every seed and condition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.streams import stream
from sar_sim.radio.devices import PHONES, Device, local_address
from sar_sim.radio.radioconfig import Budget, RadioConfig

Floats = NDArray[np.float64]

PLANNED_S = 4200.0
"""How long scans and spells are planned for: longer than the longest search with its ways out and home."""

# What becomes of a phone, a row per device: joined or not, its next scan's number, when it sends next, when it was last
# heard.
JOINED, SCAN, NEXT_S, HEARD_S = range(4)
TRAFFIC = 4

SPEAK_DRAWS = 3
"""Uniform numbers a device has for each tick: kind of gap, its length, handshake."""


class ScanPlan(NamedTuple):
    """One phone's scans: times (s) and the addresses they are sent from [S]."""

    times_s: Floats
    addresses: NDArray[np.uint64]


def scan_plan(device: Device) -> ScanPlan:
    """When a phone scans while it has not joined, evenly from a drawn start on, and under which addresses."""
    rng = stream("scans", device.address)
    times = np.arange(rng.uniform(0.0, device.scan_interval_s), PLANNED_S, device.scan_interval_s)
    if not device.randomises:
        return ScanPlan(times, np.full(len(times), device.address, dtype=np.uint64))
    return ScanPlan(times, np.array([local_address(rng) for _ in times], dtype=np.uint64))


def sleep_plan(device: Device, spell_s: tuple[float, float]) -> Floats:
    """Spells [K, 2] (s) in which a phone does not answer: ``sleep_share`` of its time in the long run."""
    if device.sleep_share == 0.0:
        return np.empty((0, 2))
    rng = stream("sleep", device.address)
    awake_s = 0.5 * sum(spell_s) * (1.0 - device.sleep_share) / device.sleep_share
    spells, now = [], 0.0
    while now < PLANNED_S:
        start = now + rng.exponential(awake_s)
        now = start + rng.uniform(*spell_s)
        spells.append((start, now))
    return np.array(spells)


class TrafficPlan(NamedTuple):
    """The plans of M devices as arrays, padded with times that never come."""

    phone: NDArray[np.bool_]  # [M] scans and joins; others send by their duty
    duty: Floats  # [M]
    scans: Floats  # [M, S]
    asleep: Floats  # [M, K, 2]


def make_traffic(devices: Sequence[Device], config: RadioConfig) -> tuple[TrafficPlan, NDArray[np.uint64]]:
    """The schedule, and the addresses [M, S] that scans are sent from."""
    phone = np.array([d.kind in PHONES and not d.beacon for d in devices], dtype=np.bool_)
    none = ScanPlan(np.empty(0), np.empty(0, np.uint64))
    plans = [scan_plan(d) if p else none for d, p in zip(devices, phone, strict=True)]
    never = np.empty((0, 2))
    spells = [sleep_plan(d, config.traffic.spell_s) if p else never for d, p in zip(devices, phone, strict=True)]
    m = len(devices)
    scans = np.full((m, 1 + max((len(p.times_s) for p in plans), default=0)), np.inf)
    aliases = np.zeros(scans.shape, dtype=np.uint64)
    asleep = np.full((m, 1 + max((len(s) for s in spells), default=0), 2), np.inf)
    for j, (plan, own) in enumerate(zip(plans, spells, strict=True)):
        scans[j, : len(plan.times_s)] = plan.times_s
        aliases[j, : len(plan.times_s)] = plan.addresses
        asleep[j, : len(own)] = own
    return TrafficPlan(phone, np.array([d.duty for d in devices]), scans, asleep), aliases


def traffic_rows(devices: int) -> Floats:
    """Nobody has joined, nobody was heard."""
    rows = np.zeros((devices, TRAFFIC))
    rows[:, HEARD_S] = -np.inf
    return rows


@inlined
def gap_s(budget: Budget, kind: float, length: float) -> float:
    """Time to a joined phone's next frame, for two uniform numbers: within a burst, or the pause between two."""
    if kind < budget.burst_share:
        return budget.burst_low_s + length * (budget.burst_high_s - budget.burst_low_s)
    return budget.pause_s - budget.pause_mean_s * math.log(1.0 - length)


@compiled
def speak(
    time_s: float,
    schedule: TrafficPlan,
    budget: Budget,
    draws: Floats,
    rows: Floats,
    sends: NDArray[np.bool_],
    scanning: NDArray[np.int64],
) -> None:
    """Who sends at this tick (draws [M, SPEAK_DRAWS]); scanning [M] is the number of the scan it sends in, or -1.

    ``sends`` comes in as who is on the air at all.
    """
    for j in range(rows.shape[0]):
        row = rows[j]
        scanning[j] = -1
        if not schedule.phone[j]:
            sends[j] = sends[j] and draws[j, 0] < schedule.duty[j]
            continue
        k = int(row[SCAN])
        due = schedule.scans[j, k] <= time_s
        if due:
            row[SCAN] = k + 1.0
        s = 0
        while schedule.asleep[j, s, 1] <= time_s:
            s += 1
        if not sends[j] or schedule.asleep[j, s, 0] <= time_s:
            sends[j] = False
            continue
        if row[JOINED] == 1.0 and time_s - row[HEARD_S] > budget.forget_s:
            row[JOINED] = 0.0
        if row[JOINED] == 1.0:
            sends[j] = row[NEXT_S] <= time_s
            if sends[j]:
                row[NEXT_S] = time_s + gap_s(budget, draws[j, 0], draws[j, 1])
        else:
            sends[j] = due
            if due:
                scanning[j] = k


@compiled
def handshake_chance(budget: Budget, snr_db: float) -> float:
    """How likely a handshake at this signal-to-noise ratio succeeds: each of its frames in one of its tries."""
    once = (1.0 - budget.packet_loss) / (1.0 + math.exp(-(snr_db - budget.midpoint_db) / budget.width_db))
    return float((1.0 - (1.0 - once) ** budget.tries) ** budget.handshake)
