"""Metrics of made-up episodes, worked out by hand or by a slow recomputation that shares no code with the package."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from sar_analysis.bags.arrays import TruthSeries
from sar_analysis.bags.reader import read_bag
from sar_analysis.metrics.metrics import EpisodeMetrics, episode_metrics
from sar_core.reward import Counts, episode_return
from tests.unit.sar_analysis.bagmaker import Made, event, report, stamps, straight

RNG = np.random.default_rng(11)


def metrics(tmp_path: Path, made: Made) -> EpisodeMetrics:
    return episode_metrics(made.write(tmp_path / "bag"))


def lane(**more: object) -> Made:
    """One drone flies east along y = 52.5, the middle of a row of cells, for 10 s at 8 m/s; it searches from 2 s on."""
    path = straight(10.0, np.array([[2.5, 52.5, 30.0]]), np.array([[8.0, 0.0, 0.0]]))
    return Made(path, begin_s=2.0, end_s=10.0, **more)


def test_a_straight_lane_scans_what_lies_within_14_m(tmp_path: Path) -> None:
    """From x = 18.5 to 82.5: five rows whose centres are 0, 5 and 10 m aside; a 10 m row reaches sqrt(96) further."""
    ahead = {0: 14.0, 5: math.sqrt(171.0), 10: math.sqrt(96.0)}
    centres = np.arange(2.5, 100.0, 5.0)
    cells = sum(
        int(np.sum((centres >= 18.5 - ahead[abs(aside)]) & (centres <= 82.5 + ahead[abs(aside)])))
        for aside in (-10, -5, 0, 5, 10)
    )
    m = metrics(tmp_path, lane())
    assert m.coverage == cells / 400
    assert m.coverage_240s == m.coverage
    assert m.search_time_s == 8.0
    assert m.overlap_ratio == 0.0
    assert m.path_m == pytest.approx(80.0, abs=1e-9)
    assert m.return_counts == Counts(cells, 0, 0, 0, 0, 0, 0)
    assert m.episode_return == 10.0 * cells
    assert m.time_to_95_s is None


def test_flying_back_over_it_is_overlap(tmp_path: Path) -> None:
    """Out and back along one line: the way back brings nothing, apart from the turn's own pass."""
    out = straight(5.0, np.array([[2.5, 52.5, 30.0]]), np.array([[16.0, 0.0, 0.0]]))
    path = np.concatenate([out, out[-2::-1]])
    m = metrics(tmp_path, Made(path, begin_s=0.0, end_s=10.0))
    assert m.overlap_ratio == pytest.approx(0.5, abs=28.0 / 160.0)
    assert m.overlap_ratio is not None
    assert m.overlap_ratio > 0.3


def test_time_to_95_percent(tmp_path: Path) -> None:
    """One row of 18 cells: 95 % asks for all, and the last, at 92.5 m, is scanned from 14 m before it."""
    made = lane(area=(5.0, 50.0, 95.0, 55.0))
    m = metrics(tmp_path, made)
    assert m.time_to_95_s == pytest.approx((92.5 - 14.0 - 18.5) / 8.0, abs=1e-9)


def wander(drones: int, seconds: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    times = stamps(seconds) / 1e9
    phase, rate = rng.uniform(0, 6, (2, drones)), rng.uniform(0.05, 0.3, (2, drones))
    x = 50 + 45 * np.sin(times[:, None] * rate[0] + phase[0])
    y = 50 + 45 * np.sin(times[:, None] * rate[1] + phase[1])
    return np.stack([x, y, np.full_like(x, 30.0)], axis=-1)


def slow_first_scans(times: np.ndarray, positions: np.ndarray, area: tuple) -> dict:
    """Brute force: every cell against every tenth of a leg of every drone, in plain Python."""
    west, south, east, north = area
    first: dict[tuple[int, int], float] = {}
    for k in range(1, len(times)):
        for n in range(positions.shape[1]):
            for p in range(11):
                s = p / 10
                x, y = positions[k - 1, n, :2] + s * (positions[k, n, :2] - positions[k - 1, n, :2])
                t = times[k - 1] + s * (times[k] - times[k - 1])
                for i in range(int((x - 20) // 5), int((x + 20) // 5) + 1):
                    for j in range(int((y - 20) // 5), int((y + 20) // 5) + 1):
                        cx, cy = west + 5 * i + 2.5, south + 5 * j + 2.5
                        inside = west < cx < east and south < cy < north
                        if inside and math.hypot(cx - x, cy - y) <= 14.0:
                            first[i, j] = min(first.get((i, j), math.inf), t)
    return first


def test_coverage_and_separation_equal_a_slow_recomputation(tmp_path: Path) -> None:
    path = wander(3, 12.0, seed=5)
    made = Made(path, begin_s=3.0, end_s=11.0)
    m = metrics(tmp_path, made)
    times = stamps(12.0) / 1e9
    chosen = (times >= 3.0) & (times <= 11.0)
    first = slow_first_scans(times[chosen] - 3.0, path[chosen], made.area)
    # Sampling a leg at tenths can miss a cell that is grazed; more than a few would be another rule.
    assert abs(m.coverage * 400 - len(first)) <= 2
    for t, share in zip((0.0,), m.coverage_curve, strict=True):
        assert abs(share * 400 - sum(at <= t for at in first.values())) <= 2
    fine = np.linspace(0.0, 12.0, 60_001)
    dense = np.stack([[np.interp(fine, times, path[:, n, d]) for d in range(3)] for n in range(3)])
    pairs = [(0, 1), (0, 2), (1, 2)]
    assert m.min_separation_m == pytest.approx(
        min(np.linalg.norm(dense[a] - dense[b], axis=0).min() for a, b in pairs), abs=1e-3
    )


def slow_overlap(ticks: np.ndarray) -> float:
    """Brute force in steps of a few centimetres: a book of passes per drone and cell, kept as the definition reads."""
    scanned: set[tuple[int, int]] = set()
    passes: list[dict[tuple[int, int], tuple[float, bool]]] = [{} for _ in range(ticks.shape[1])]
    flown, wasted = np.zeros(ticks.shape[1]), 0.0
    steps = 10
    for k in range(1, len(ticks)):
        for n, book in enumerate(passes):
            leg = ticks[k, n, :2] - ticks[k - 1, n, :2]
            for p in range(steps):
                x, y = ticks[k - 1, n, :2] + (p + 0.5) / steps * leg
                near = [
                    (i, j)
                    for i in range(int(x // 5) - 6, int(x // 5) + 7)
                    for j in range(int(y // 5) - 6, int(y // 5) + 7)
                ]
                for i, j in near:
                    distance = math.hypot(5 * i + 2.5 - x, 5 * j + 2.5 - y)
                    if distance > 19.0:
                        book.pop((i, j), None)
                    elif distance <= 14.0 and (i, j) not in book:
                        book[i, j] = (flown[n], (i, j) in scanned)
                        scanned.add((i, j))
                flown[n] += np.linalg.norm(leg) / steps
                beneath = book.get((int(x // 5), int(y // 5)))
                if beneath is not None and (beneath[1] or flown[n] - beneath[0] > 28.0):
                    wasted += float(np.linalg.norm(leg)) / steps
    return wasted / float(flown.sum())


def zigzag(seconds: float, seed: int) -> np.ndarray:
    """Two drones, far enough apart at first, that go to and fro by 6 to 24 m: passes end and are broken off."""
    rng = np.random.default_rng(seed)
    corners = [np.array([[50.0, 50.0], [78.0, 25.0]])]
    for k in range(40):
        turn = np.array([[1.0, 0.2], [0.3, 1.0]]) * (-1) ** k * rng.uniform(6.0, 24.0)
        corners.append(np.clip(corners[-1] + turn + rng.uniform(-4.0, 4.0, (2, 2)), 20.0, 80.0))
    times, at = stamps(seconds) / 1e9, np.linspace(0.0, seconds, 41)
    track = np.stack(corners)
    flat = np.stack([[np.interp(times, at, track[:, n, d]) for d in range(2)] for n in range(2)])
    return np.concatenate([np.moveaxis(flat, -1, 0), np.full((len(times), 2, 1), 30.0)], axis=2)


@pytest.mark.parametrize("seed", [1, 2])
def test_overlap_equals_a_slow_recomputation(tmp_path: Path, seed: int) -> None:
    path = zigzag(40.0, seed)
    m = metrics(tmp_path, Made(path, begin_s=0.0, end_s=40.0))
    assert m.overlap_ratio == pytest.approx(slow_overlap(path), abs=3e-3)


def test_returning_after_a_pass_was_broken_off_is_overlap(tmp_path: Path) -> None:
    """East from 24 to 34 m, back to 27, then on to 50. What re-covers on that last stretch:

    beneath 37.5, in range since the start, the 2 m flown more than 28 m later; beneath 42.5, in range from 28.5 on,
    2.5 m in the same way; beneath 47.5, in range from 33.5 on but left beyond 19 m at 28.5, all 5 m.
    """
    legs = np.interp(stamps(4.0) / 1e9, [0.0, 1.0, 1.7, 4.0], [24.0, 34.0, 27.0, 50.0])
    path = np.stack([legs, np.full_like(legs, 52.5), np.full_like(legs, 30.0)], axis=1)[:, None]
    m = metrics(tmp_path, Made(path, begin_s=0.0, end_s=4.0))
    assert m.overlap_ratio == pytest.approx(9.5 / 40.0, abs=1e-3)
    assert slow_overlap(path) == pytest.approx(9.5 / 40.0, abs=3e-3)


def test_closest_approach_between_ticks(tmp_path: Path) -> None:
    """Two drones pass at a relative 40 m/s, 0.7 m apart, between two ticks: no tick sees less than that."""
    path = straight(4.0, np.array([[0.0, 50.0, 30.0], [80.6, 50.7, 30.0]]), np.array([[20.0, 0, 0], [-20.0, 0, 0]]))
    m = metrics(tmp_path, Made(path, 0.0, 4.0))
    assert m.min_separation_m == pytest.approx(0.7, abs=1e-9)
    assert np.linalg.norm(path[:, 0] - path[:, 1], axis=1).min() > 0.75


def test_alone_there_is_no_separation(tmp_path: Path) -> None:
    assert metrics(tmp_path, lane()).min_separation_m is None


VICTIMS = [(7, 0, (20.0, 50.0, 0.5)), (8, 0, (60.0, 50.0, 0.5)), (9, 3, (90.0, 90.0, 1.0)), (10, 1, (5.0, 5.0, 1.0))]


def test_reports_are_judged_by_transmitter(tmp_path: Path) -> None:
    made = lane(
        devices=VICTIMS,
        reports=[
            report(3.0, 20.0, 58.0, 0.80),  # not confident
            report(4.0, 26.0, 58.0, 0.86, path_gdop=2.5, constellation_gdop=1.25, views=3),  # 10 m exactly: right
            report(4.5, 20.0, 60.1, 0.99),  # 10.1 m: an update that is off, and no false alarm
            report(5.0, 23.0, 54.0, 0.90),  # 5 m: settled from here on
            report(5.5, 80.0, 80.0, 0.90, address=9),
            report(6.0, 81.0, 80.0, 0.99, address=9),  # the same transmitter: one alarm
            report(6.5, 62.0, 50.0, 0.85, address=10),  # not above 0.85
            report(7.0, 62.0, 50.0, 0.95, address=10),  # a decoy, although a victim lies beside it
        ],
    )
    m = metrics(tmp_path, made)
    assert (m.issues, m.detections, m.displaced, m.false_alarms) == (3, 1, 0, 2)
    assert m.time_to_first_detection_s == pytest.approx(2.0)
    assert (m.localization_error_m, m.gdop) == (10.0, 1.25)
    first, second = m.victims
    assert (first.error_m, first.path_gdop, first.views, first.final_error_m) == (10.0, 2.5, 3, 5.0)
    assert first.settled_s == pytest.approx(3.0)
    assert (second.detected, second.issued_s, second.error_m, second.settled_s) == (False, None, None, None)
    assert [(i.verdict, i.kind, i.address) for i in m.issue_events] == [
        ("right", "victim", 7),
        ("decoy", "passer_by", 9),
        ("decoy", "rescuer", 10),
    ]
    assert m.return_counts is not None
    assert (m.return_counts.confirmed_victims, m.return_counts.triangulations) == (1, 3)
    last = {told.kind: told for told in m.track_reports if told.last}
    assert (last["victim"].right, last["passer_by"].right, last["rescuer"].right) == (True, False, False)


def test_a_victim_reported_far_off_is_displaced_and_its_error_is_not_cut(tmp_path: Path) -> None:
    m = metrics(tmp_path, lane(devices=VICTIMS, reports=[report(4.0, 60.0, 80.0, 0.9)]))
    assert (m.issues, m.detections, m.displaced, m.false_alarms) == (1, 0, 1, 0)
    assert m.localization_error_m == 50.0 and m.time_to_first_detection_s is None
    assert m.return_counts is not None and m.return_counts.confirmed_victims == 0


def test_reports_count_inside_the_search_only(tmp_path: Path) -> None:
    """Before it (2 s) the last one stands when it begins; after it (10 s) nothing counts but for ADR-149."""
    early = [report(1.0, 20.0, 90.0, 0.9), report(1.5, 20.0, 70.0, 0.9), report(1.9, 20.0, 80.0, 0.5, address=9)]
    made = lane(devices=VICTIMS, reports=early)
    made.end_s = 8.0
    made.reports.append(report(8.5, 60.0, 50.0, 0.9, address=8))
    m = metrics(tmp_path, made)
    assert (m.issues, m.displaced) == (1, 1)
    assert (m.victims[0].issued_s, m.victims[0].error_m) == (0.0, 20.0)
    assert m.adr149 is not None and m.adr149.time_to_first_detection_s == 1.0
    assert m.adr149.errors_m == (40.0, 0.0) and m.adr149.detected and m.adr149.confident


def test_a_decoy_is_exposed_when_a_drone_heard_it_in_the_search(tmp_path: Path) -> None:
    made = lane(devices=VICTIMS, heard=[(1.0, 9), (3.0, 10), (4.0, 10)], listed=frozenset({10}))
    unheard, told = metrics(tmp_path, made).decoys
    assert (unheard.listed, unheard.heard_s, unheard.exposed) == (False, None, False)
    assert (told.listed, told.heard_s, told.exposed, told.alarm_s) == (True, pytest.approx(1.0), True, None)
    assert (unheard.at_risk_s(8.0), told.at_risk_s(8.0)) == (0.0, pytest.approx(7.0))


def test_what_was_held_at_fixed_times(tmp_path: Path) -> None:
    path = straight(70.0, np.array([[2.5, 52.5, 30.0]]), np.array([[1.0, 0.0, 0.0]]))
    told = [report(20.0, 20.0, 90.0, 0.3), report(45.0, 20.0, 53.0, 0.95, information_dop_m=2.0, views=4)]
    m = metrics(tmp_path, Made(path, begin_s=2.0, end_s=65.0, devices=VICTIMS, reports=told))
    early, late = m.victims[0].fixes
    assert (early.time_s, early.age_s, early.error_m, early.confidence) == (30.0, pytest.approx(12.0), 40.0, 0.3)
    assert (late.time_s, late.error_m, late.information_dop_m, late.views) == (60.0, 3.0, 2.0, 4)
    assert m.victims[1].fixes == ()


def test_without_victims_any_issue_is_a_decoy_alarm(tmp_path: Path) -> None:
    made = lane(devices=VICTIMS[2:], reports=[report(5.0, 90.0, 90.0, 0.9, address=9)], config={"victim_absent": True})
    m = metrics(tmp_path, made)
    assert (m.detections, m.displaced, m.false_alarms, m.victims) == (0, 0, 1, ())
    assert m.issue_events[0].error_m is None
    assert m.time_to_first_detection_s is None
    assert m.victim_absent


def test_without_radio_nothing_is_said_of_alarms(tmp_path: Path) -> None:
    m = metrics(tmp_path, lane())
    assert (m.detections, m.false_alarms, m.sigma, m.kappa) == (None, None, None, None)


def test_contacts_are_counted_by_id_and_kind(tmp_path: Path) -> None:
    events = [event(3.0, 1, 1, 1), event(4.0, 1, 1, 2), event(4.0, 2, 2, 1), event(5.0, 3, 5, 2), event(6.0, 4, 4, 1)]
    events += [event(6.0, 5, 3, 1), event(7.0, 5, 3, 2), event(8.0, 6, 5, 2)]
    m = metrics(tmp_path, lane(events=events, status={"collisions": 3, "near_misses": 2}, coverage=0.2375))
    assert (m.collisions_drone_drone, m.collisions_drone_obstacle, m.collisions_drone_ground) == (1, 1, 1)
    assert (m.collisions, m.near_misses, m.geofence_breaches) == (3, 2, 1)
    assert m.return_counts is not None
    assert m.episode_return == 10.0 * m.return_counts.new_cells - 300.0 - 50.0


def test_a_bag_that_contradicts_itself_says_so(tmp_path: Path) -> None:
    m = metrics(tmp_path, lane(status={"collisions": 2}, coverage=0.9))
    assert [note.split(":")[0] for note in m.notes] == ["collisions", "coverage", "coverage map"]


def test_an_episode_without_its_end_is_invalid(tmp_path: Path) -> None:
    """A repaired bag of a killed run: all it holds is good, but nobody knows how the episode ended."""
    m = metrics(tmp_path, lane(finished=False))
    assert (m.valid, m.invalid_reason) == (False, "unfinished")


def test_a_hole_in_the_truth_makes_it_invalid(tmp_path: Path) -> None:
    bag = read_bag(lane().write(tmp_path / "bag"))
    assert episode_metrics(bag).valid
    for lost, reason in ((4, None), (5, "truth_gap")):
        kept = np.r_[0:50, 50 + lost : len(bag.truth.stamps_ns)]
        holed = TruthSeries(**{name: values[kept] for name, values in vars(bag.truth).items()})
        assert episode_metrics(dataclasses.replace(bag, truth=holed)).invalid_reason == reason


def test_invalid_without_search(tmp_path: Path) -> None:
    made = lane(status={"phase": 1, "search_time_s": 0.0, "valid": False, "invalid_reason": "takeoff_timeout"})
    m = metrics(tmp_path, made)
    assert (m.valid, m.invalid_reason) == (False, "takeoff_timeout")
    assert m.coverage is None
    assert m.overlap_ratio is None
    assert m.episode_return is None
    assert m.jerk_rms_mps3 is None


def test_comfort_of_a_circle(tmp_path: Path) -> None:
    """Speed v on radius r: jerk v^3 / r^2; a banked drone that turns with it yaws at v / r about the vertical."""
    v, r, bank = 6.0, 20.0, 0.4
    times = stamps(20.0) / 1e9
    turned = v / r * times
    position = np.stack([50 + r * np.cos(turned), 50 + r * np.sin(turned), np.full_like(times, 30.0)], axis=-1)
    velocity = np.stack([-v * np.sin(turned), v * np.cos(turned), np.zeros_like(times)], axis=-1)
    yaw, half = turned + np.pi / 2, bank / 2
    # Heading about z, then roll about the body's x: q = q_z(yaw) q_x(bank), written x y z w.
    attitude = np.stack(
        [
            np.cos(yaw / 2) * np.sin(half),
            np.sin(yaw / 2) * np.sin(half),
            np.sin(yaw / 2) * np.cos(half),
            np.cos(yaw / 2) * np.cos(half),
        ],
        axis=-1,
    )
    body_rate = np.tile([0.0, v / r * np.sin(bank), v / r * np.cos(bank)], (len(times), 1))
    made = Made(
        position[:, None],
        0.0,
        20.0,
        velocity=velocity[:, None],
        orientation=attitude[:, None],
        rates=body_rate[:, None],
    )
    m = metrics(tmp_path, made)
    assert m.yaw_rate_rms_rps == pytest.approx(v / r, abs=1e-12)
    assert m.yaw_rate_p95_rps == pytest.approx(v / r, abs=1e-12)
    assert m.jerk_rms_mps3 == pytest.approx(v**3 / r**2, rel=1e-3)


def test_energy_failsafes_and_idling(tmp_path: Path) -> None:
    readings = len(stamps(10.0)[::10])
    battery = np.linspace(1.0, 0.9, readings)[:, None] * np.ones(2)
    failsafe = np.zeros((readings, 2), np.int64)
    failsafe[5:8, 1] = 1
    failsafe[12:, 1] = 3
    path = straight(10.0, np.array([[2.5, 52.5, 30.0], [2.5, 20.0, 30.0]]), np.array([[8.0, 0, 0], [0.4, 0, 0]]))
    m = metrics(tmp_path, Made(path, 2.0, 10.0, battery=battery, failsafe=failsafe))
    assert m.energy_batteries == pytest.approx(0.2, abs=1e-6)
    assert m.failsafe_entries == 2
    assert m.return_counts is not None
    assert m.return_counts.idle_steps == 8
    assert m.path_shares == pytest.approx((80 / 84, 4 / 84))
    assert sum(m.cell_shares) == pytest.approx(1.0)


@pytest.mark.parametrize(("homeward", "depleted"), [(False, 1), (True, 0)])
def test_a_battery_is_depleted_only_without_return(tmp_path: Path, homeward: bool, depleted: int) -> None:
    readings = len(stamps(10.0)[::10])
    battery = np.linspace(1.0, 0.0, readings)[:, None]
    failsafe = np.zeros((readings, 1), np.int64)
    failsafe[10:] = 3 if homeward else 2
    m = metrics(tmp_path, lane(battery=battery, failsafe=failsafe))
    assert m.return_counts is not None
    assert m.return_counts.depleted == depleted


def test_return_has_the_published_weights() -> None:
    """ADR-148: +10 cell, +50 victim, +5 triangulation, -2 idle, -100 collision, -50 fence, -30 battery."""
    units = np.eye(7, dtype=int).tolist()
    assert [episode_return(Counts(*unit)) for unit in units] == [10.0, 50.0, 5.0, -2.0, -100.0, -50.0, -30.0]
    assert episode_return(Counts(3, 1, 2, 4, 1, 0, 1)) == 30 + 50 + 10 - 8 - 100 - 30


def test_who_and_what_come_from_the_bag(tmp_path: Path) -> None:
    made = lane(devices=VICTIMS, config={"sigma": 0.1, "kappa": "inf"}, info={"seed": 2**63, "episode": 49})
    m = metrics(tmp_path, made)
    assert (m.sigma, m.kappa, m.seed, m.episode, m.tier) == (0.1, math.inf, 2**63, 49, "embedded")
    assert m.row()["victims"] == 2
    assert all(not isinstance(value, tuple | list | dict) for value in m.row().values())
    assert read_bag(tmp_path / "bag").versions["version"] == "0.1.0"


def test_a_layout_is_what_missions_share_at_every_noise_level_and_with_or_without_victims(tmp_path: Path) -> None:
    one = dataclasses.replace(metrics(tmp_path, lane(devices=[(7, 0, (20.0, 50.0, 0.5))])), episode_set="field-v1")
    blown = dataclasses.replace(one, configuration={"wind_mps": [1.2, 1.6, 0.0]})
    twin = dataclasses.replace(blown, episode=2, victims=(), configuration={"wind_mps": [2.4, 3.2, 0.0]})
    assert twin.layout == blown.layout, "at another level, without victims and in a stronger wind"
    assert dataclasses.replace(blown, configuration={"wind_mps": [1.6, 1.2, 0.0]}).layout != blown.layout
    assert dataclasses.replace(blown, world="village").layout != blown.layout, "sets of two worlds share directions"
    assert dataclasses.replace(blown, episode_set="field-v2").layout != blown.layout
    still = dataclasses.replace(one, configuration={"wind_mps": [0.0, 0.0, 0.0]})
    assert dataclasses.replace(still, episode=2).layout == still.layout, "in still air by its victims"
    moved = tuple(dataclasses.replace(v, x_m=v.x_m + 1.0) for v in one.victims)
    assert moved and dataclasses.replace(still, victims=moved).layout != still.layout
    bare = dataclasses.replace(still, victims=())
    assert dataclasses.replace(bare, episode=2).layout != bare.layout
    ruled = dataclasses.replace(blown, episode_set="rules-1")
    assert dataclasses.replace(ruled, episode=2).layout != ruled.layout
    assert dataclasses.replace(ruled, seed=9, victims=()).layout == ruled.layout
