"""Traffic: scans under made-up addresses, discovery by a handshake, bursts, sleep, and leaving."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_sim.radio.devices import Device, DeviceKind
from sar_sim.radio.radioconfig import RadioConfig, load_radio, make_budget
from sar_sim.radio.receiver import Receiver
from sar_sim.radio.traffic import PLANNED_S, gap_s, handshake_chance, scan_plan, sleep_plan
from sar_sim.world.world import load_world

ROOT = Path(__file__).parents[4]
CONFIG = load_radio(ROOT / "configs/radio/open_ground.yaml")
CALM = CONFIG.model_copy(update={"packet_loss": 0.0, "shadowing_db": 0.0, "fading_db": 0.0})
FIELD = load_world(ROOT / "worlds/open_field.sdf")
LEVEL = np.array([[1.0, 0.0, 0.0, 0.0]])


def phone(address: int = 0x021234567890, x: float = 40.0, **rest: Any) -> Device:
    return Device(address, rest.pop("kind", DeviceKind.VICTIM), np.array([[0.0, x, 0.0, 0.5]]), **rest)


def listen(device: Device, seconds: float, config: RadioConfig = CALM, gone: tuple[float, float] = (0.0, 0.0)) -> Any:
    """(times s, addresses) of frames that one drone 30 m up hears; it is far away between two times."""
    receiver = Receiver(config, FIELD, [device], 1, 3, 0, 0.0, math.inf)
    times, addresses = [], []
    for tick in range(int(20 * seconds)):
        x = 1e5 if gone[0] <= tick / 20 < gone[1] else 0.0
        (frames,) = receiver.listen(tick * 50_000_000, tick, np.array([[x, 0.0, 30.0]]), LEVEL)
        times += [tick / 20] * len(frames.address)
        addresses += frames.address.tolist()
    return np.array(times), np.array(addresses)


def test_scans_come_at_their_interval_from_addresses_made_up_anew() -> None:
    plan = scan_plan(phone(scan_interval_s=20.0))
    assert np.allclose(np.diff(plan.times_s), 20.0) and 0.0 <= plan.times_s[0] < 20.0
    assert plan.times_s[-1] > PLANNED_S - 20.0
    assert len(set(plan.addresses.tolist())) == len(plan.addresses)
    assert all(a & 0x030000000000 == 0x020000000000 for a in plan.addresses.tolist())
    kept = scan_plan(phone(scan_interval_s=20.0, randomises=False))
    assert set(kept.addresses.tolist()) == {phone().address}


def test_sleep_takes_its_share_in_spells_of_a_few_seconds() -> None:
    spells = np.concatenate([np.diff(sleep_plan(phone(k, sleep_share=0.25), (3.0, 7.0))) for k in range(20)])
    assert spells.min() >= 3.0 and spells.max() <= 7.0
    assert spells.sum() / (20 * PLANNED_S) == pytest.approx(0.25, abs=0.02)
    assert len(sleep_plan(phone(sleep_share=0.0), (3.0, 7.0))) == 0


def test_a_phone_is_heard_once_a_scan_until_it_joins_and_often_after() -> None:
    """Out of reach of a handshake it is scan after scan; within reach the first scan is enough."""
    device = phone(scan_interval_s=20.0, sleep_share=0.0)
    first = scan_plan(device).times_s[0]
    times, addresses = listen(device, 60.0)
    assert times[0] == pytest.approx(first, abs=0.051)
    assert addresses[0] != device.address and set(addresses[1:].tolist()) == {device.address}
    gaps = np.diff(times[1:])
    assert len(gaps) > 100
    assert 0.15 <= np.median(gaps) <= 0.25 and 0.25 <= np.quantile(gaps, 0.9) <= 1.2
    assert 3.0 < 1.0 / gaps.mean() < 5.0


def test_bursts_have_the_gaps_that_were_measured() -> None:
    """Wi2SAR, near: median 0.2 s, nine in ten within 0.3 to 1.2 s."""
    rng = np.random.default_rng(1)
    budget = make_budget(CONFIG)
    gaps = [gap_s(budget, *rng.random(2)) for _ in range(20_000)]
    assert 0.15 <= np.median(gaps) <= 0.25
    assert 0.3 <= np.quantile(gaps, 0.9) <= 1.2


def test_who_is_not_heard_for_long_has_left_and_must_be_found_again() -> None:
    device = phone(scan_interval_s=30.0, sleep_share=0.0)
    times, _ = listen(device, 150.0, gone=(50.0, 80.0))
    away = times[(times > 50.0) & (times < 150.0)]
    scans = scan_plan(device).times_s
    again = scans[scans >= 80.0][0]
    assert away[0] == pytest.approx(again, abs=0.051)
    short, _ = listen(device, 80.0, gone=(50.0, 60.0))
    assert np.any((short >= 60.0) & (short < 60.6)), "ten seconds are no farewell"


def test_asleep_a_phone_neither_scans_nor_answers() -> None:
    device = phone(scan_interval_s=15.0, sleep_share=0.5)
    times, _ = listen(device, 120.0)
    spells = sleep_plan(device, CALM.traffic.spell_s)
    assert len(times) > 50
    for start, end in spells[spells[:, 0] < 120.0]:
        assert not np.any((times >= start) & (times < end))


def test_a_handshake_needs_every_frame_of_it() -> None:
    budget = make_budget(CONFIG)
    once = 0.5 * (1.0 - CONFIG.packet_loss)
    assert handshake_chance(budget, budget.midpoint_db) == pytest.approx((1.0 - (1.0 - once) ** 7) ** 4)
    assert handshake_chance(budget, budget.midpoint_db + 10.0) > 0.999
    assert handshake_chance(budget, budget.midpoint_db - 6.0) < 0.001
    shares = [handshake_chance(budget, budget.midpoint_db + d) for d in (-4.0, -2.0, -1.0, 0.0, 1.0)]
    assert shares == sorted(shares)


@pytest.mark.parametrize(
    ("radio", "altitude_m", "places"),
    [
        ("open_ground", 30.0, (150.0, 255.0, 345.0, 420.0)),
        ("near", 30.0, (75.0, 125.0, 170.0, 220.0)),
        ("rubble", 10.0, (15.0, 28.0, 42.0, 55.0)),
    ],
)
def test_at_its_edge_a_phone_is_found_where_the_budget_says(
    radio: str, altitude_m: float, places: tuple[float, ...]
) -> None:
    """Half of the phones at rest join at some distance: the discovery range, measured as 299 m in line of sight and
    147 m without, both within 15 %."""
    config = load_radio(ROOT / f"configs/radio/{radio}.yaml")
    found = {}
    for x in places:
        devices = [phone(0x020000000000 + k, x, scan_interval_s=15.0, sleep_share=0.0) for k in range(60)]
        receiver = Receiver(config, FIELD, devices, 1, 3, 0, 0.0, math.inf)
        joined: set[int] = set()
        for tick in range(16 * 20):
            (frames,) = receiver.listen(tick * 50_000_000, tick, np.array([[0.0, 0.0, altitude_m]]), LEVEL)
            joined |= set(frames.address.tolist()) & {d.address for d in devices}
        found[x] = len(joined) / len(devices)
    near, inside, outside, far = found.values()
    assert near > 0.8 and inside > 0.5 > outside > far


def test_beacons_need_no_discovery() -> None:
    beacon = phone(kind=DeviceKind.ACCESS_POINT, beacon=True, duty=0.5)
    times, addresses = listen(beacon, 20.0)
    assert set(addresses.tolist()) == {beacon.address}
    assert len(times) / 20.0 == pytest.approx(10.0, abs=1.5)
