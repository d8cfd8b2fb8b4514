"""The fusion centre: tracks, their keyframes and views, what may move an estimate and when two addresses are one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_core.radio import BASELINE
from sar_swarm.sensing.attention import AttentionConfig, Bias
from sar_swarm.sensing.fusion import COLUMNS, Estimate, FusionCentre, FusionConfig, keyframes, separated, viewpoints
from sar_swarm.sensing.gate import GateState
from sar_swarm.sensing.observation import Observation
from sar_swarm.sensing.position import DRONE, PHASE_STD, TIME, Model

Floats = NDArray[np.float64]
VICTIM = (20.0, -10.0)


def heard(
    drone: int,
    time_s: float,
    spot: tuple[float, float],
    heading: float,
    target: tuple[float, float] = VICTIM,
    address: int = 1,
    rng: np.random.Generator | None = None,
    **changes: object,
) -> Observation:
    """What a drone at ``spot``, 30 m up, flying towards ``heading`` would observe; noisy with a generator."""
    where = np.array([*spot, 30.0])
    axis = np.array([-math.sin(heading), math.cos(heading), 0.0])
    offset = np.array([*target, 0.5]) - where
    distance = float(np.linalg.norm(offset))
    noise = rng.normal(0.0, [0.1, 0.1]) if rng else (0.0, 0.0)
    range_m = distance * math.exp(noise[0])
    return Observation(
        drone=drone,
        address=address,
        time_s=time_s,
        position=(where[0], where[1], where[2]),
        axis=(axis[0], axis[1], axis[2]),
        range_m=range_m,
        range_std_m=0.5 * range_m,
        phase_rad=BASELINE * float(axis @ offset) / distance + noise[1],
        phase_std_rad=0.12,
        coherence=0.93,
        open=True,
        state=GateState.ACCEPT,
        usable=True,
        rssi_dbm=-60.0,
        frames=10,
        beacon=False,
    )._replace(**changes)  # type: ignore[arg-type]


def legs(
    drones: int,
    seconds: float,
    address: int = 1,
    start_s: float = 0.0,
    target: tuple[float, float] = VICTIM,
    seed: int = 0,
) -> list[Observation]:
    """Drones on parallel legs northwards, 40 m apart, two observations a second each."""
    rng = np.random.default_rng(seed)
    return [
        heard(d, start_s + 0.5 * k, (40.0 * d - 30.0, -60.0 + 4.0 * k), 0.5 * math.pi, target, address, rng)
        for k in range(int(2 * seconds))
        for d in range(drones)
    ]


def only(estimates: list[Estimate]) -> Estimate:
    assert len(estimates) == 1
    return estimates[0]


@pytest.mark.parametrize("bias", list(Bias))
def test_a_swarm_finds_the_device_and_knows_how_well(bias: Bias) -> None:
    off = []
    for seed in range(10):
        centre = FusionCentre(FusionConfig(attention=AttentionConfig(bias=bias)))
        for second in range(15):
            centre.add([o for o in legs(3, 15.0, seed=seed) if second <= o.time_s < second + 1])
            centre.solve(float(second + 1))
        e = only(centre.estimates)
        error = np.array([e.x - VICTIM[0], e.y - VICTIM[1]])
        off.append((np.linalg.norm(error), error @ np.linalg.solve(e.covariance, error), e))
    assert np.sqrt(np.mean([o[0] ** 2 for o in off])) < 3.0
    assert np.mean([o[1] for o in off]) < 4.0, "the covariance promises too much"
    e = off[0][2]
    assert e.confirmed and e.drones == 3 and e.views >= 3
    assert e.path_gdop is not None and e.gdi is not None and e.n_eff > 1.5
    assert e.observations == 90 and e.accept_share == 1.0 and e.first_s == 0.0 and e.last_s == 14.5


def test_one_drone_in_one_place_confirms_nothing_and_has_no_gdop() -> None:
    centre = FusionCentre()
    centre.add([heard(0, 0.5 * k, (-40.0, -10.0), 0.5 * math.pi) for k in range(20)])
    e = only(centre.solve(10.0))
    assert e.views == 1 and not e.confirmed
    assert e.path_gdop is None and e.gdi is None


def test_two_drones_side_by_side_are_one_view() -> None:
    """Errors they share do not cancel: only bearings apart confirm."""
    centre = FusionCentre()
    centre.add([heard(d, 0.5 * k, (-60.0 + 4.0 * d, -10.0), 0.5 * math.pi) for k in range(20) for d in range(2)])
    e = only(centre.solve(10.0))
    assert e.drones == 2 and e.views == 1 and not e.confirmed


def test_what_is_received_is_not_too_weak_to_count() -> None:
    """Reception starts about 3 dB above the noise; fusion drops nothing above the noise itself."""
    centre = FusionCentre(FusionConfig(noise_floor_dbm=-62.5))
    centre.add(legs(3, 10.0))
    assert only(centre.solve(10.0)).observations == 60


def test_only_usable_observations_of_the_last_two_seconds_make_the_constellation() -> None:
    x, y = VICTIM
    spots = ((x + 60.0, y), (x, y + 60.0), (x - 42.0, y - 42.0))
    every = [heard(d, 0.5 * k, spots[d], 1.0) for k in range(20) for d in range(3)]

    def told(observations: list[Observation], time_s: float = 10.0) -> Estimate:
        centre = FusionCentre()
        centre.add(observations)
        return only(centre.solve(time_s))

    right_angle = pytest.approx(math.sqrt(2.0), rel=1e-3)
    two = [o for o in every if o.drone < 2]
    assert told(two).constellation_gdop == right_angle
    assert told(every).constellation_gdop == pytest.approx(math.sqrt(1.5), rel=1e-3)
    assert told([o._replace(usable=o.drone < 2) for o in every]).constellation_gdop == right_angle
    old = told([o for o in every if o.drone < 2 or o.time_s < 7.9])
    assert old.constellation_gdop == right_angle and old.drones == 3
    assert old.path_gdop == pytest.approx(math.sqrt(1.5), rel=1e-3)
    assert told(every, 11.6).constellation_gdop is None


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "backwards"])
def test_a_constellation_is_where_the_drones_were_heard_last(order: int) -> None:
    x, y = VICTIM
    spots = [(x + 60.0 * math.cos(0.1 * k), y + 60.0 * math.sin(0.1 * k)) for k in range(20)]
    centre = FusionCentre()
    centre.add([heard(0, 0.5 * k, spot, 1.0) for k, spot in enumerate(spots)][::order])
    centre.add([heard(1, 0.5 * k, (x + 60.0, y), 1.0) for k in range(20)])
    expected = math.sqrt(2.0) / math.sin(1.9)
    assert only(centre.solve(10.0)).constellation_gdop == pytest.approx(expected, rel=1e-3)


def test_one_drone_flying_round_confirms() -> None:
    centre = FusionCentre()
    around = [(20.0 + 50.0 * math.cos(0.1 * k), -10.0 + 50.0 * math.sin(0.1 * k)) for k in range(25)]
    centre.add([heard(0, 0.5 * k, spot, 0.1 * k + 0.5 * math.pi) for k, spot in enumerate(around)])
    e = only(centre.solve(13.0))
    assert e.confirmed and e.drones == 1 and e.path_gdop is not None


def test_what_the_gates_stopped_is_counted_but_moves_nothing() -> None:
    clean, disturbed = FusionCentre(), FusionCentre()
    good = legs(2, 10.0)
    lies = [
        heard(d, 0.5 * k + 0.25, (0.0, 0.0), 0.0, (300.0, 300.0), usable=False, state=GateState.REJECT)
        for k in range(20)
        for d in range(2)
    ]
    clean.add(good)
    disturbed.add(itertools.chain.from_iterable(zip(good, lies, strict=True)))
    a, b = only(clean.solve(10.0)), only(disturbed.solve(10.0))
    assert (a.x, a.y, a.chi2) == (b.x, b.y, b.chi2)
    np.testing.assert_array_equal(a.covariance, b.covariance)
    assert (b.usable_share, b.accept_share) == (0.5, 0.5) and a.accept_share == 1.0


def test_what_arrives_twice_or_late_counts_once() -> None:
    once, often = FusionCentre(), FusionCentre()
    observations = legs(2, 10.0)
    once.add(observations)
    often.add(observations)
    often.add(reversed(observations))
    assert only(often.solve(10.0))[:5] == only(once.solve(10.0))[:5]


@pytest.mark.parametrize(
    "garbled",
    [
        {"range_m": math.nan},
        {"range_m": 0.0},
        {"phase_rad": math.inf},
        {"phase_std_rad": 0.0},
        {"range_std_m": -1.0},
        {"position": (0.0, math.nan, 30.0)},
        {"time_s": math.nan},
        {"rssi_dbm": math.nan},
        {"drone": 64},
        {"drone": -1},
    ],
    ids=str,
)
def test_garbled_observations_are_refused_and_counted(garbled: dict[str, object]) -> None:
    clean, disturbed = FusionCentre(), FusionCentre()
    clean.add(legs(2, 10.0))
    disturbed.add([heard(0, 5.25, (0.0, 0.0), 0.0)._replace(**garbled), *legs(2, 10.0)])  # type: ignore[arg-type]
    assert disturbed.refused == 1
    assert only(disturbed.solve(10.0))[:5] == only(clean.solve(10.0))[:5]


def test_only_rejected_frames_make_no_estimate() -> None:
    centre = FusionCentre()
    centre.add([o._replace(usable=False) for o in legs(3, 10.0)])
    assert centre.solve(10.0) == [] and centre.estimates == []


def test_weak_observations_are_left_out() -> None:
    centre = FusionCentre(FusionConfig(noise_floor_dbm=-59.0))
    centre.add(legs(3, 10.0))
    assert centre.solve(10.0) == []


def test_devices_are_kept_apart_by_address_and_flags() -> None:
    centre = FusionCentre(known_addresses=[2])
    centre.add(legs(2, 10.0, address=1))
    centre.add([o._replace(beacon=True) for o in legs(2, 10.0, address=2)])
    first, second = centre.solve(10.0)
    assert (first.address, first.known, first.beacon_share) == (1, False, 0.0)
    assert (second.address, second.known, second.beacon_share) == (2, True, 1.0)
    assert first.track != second.track


def test_an_address_that_changes_in_place_keeps_its_track() -> None:
    centre = FusionCentre()
    centre.add(legs(3, 15.0, address=1))
    before = only(centre.solve(15.0))
    centre.add(legs(3, 15.0, address=2, start_s=17.0, seed=1))
    after = only(centre.solve(32.0))
    assert after.track == before.track and after.address == 2
    assert after.observations == 180 and after.first_s == 0.0
    assert after.constellation_gdop is not None
    assert len(centre.estimates) == 1
    centre.add(legs(1, 2.0, address=1, start_s=33.0))
    assert only(centre.solve(45.0)).track == before.track


@pytest.mark.parametrize(
    ("start_s", "target", "known"),
    [(5.0, VICTIM, []), (60.0, VICTIM, []), (17.0, (VICTIM[0], VICTIM[1] + 25.0), []), (17.0, VICTIM, [2])],
    ids=["at the same time", "too much later", "elsewhere", "a known one after an unknown"],
)
def test_other_devices_are_not_joined(start_s: float, target: tuple[float, float], known: list[int]) -> None:
    centre = FusionCentre(known_addresses=known)
    centre.add(legs(3, 15.0, address=1))
    centre.solve(15.0)
    centre.add(legs(3, 15.0, address=2, start_s=start_s, target=target, seed=1))
    centre.solve(start_s + 15.0)
    assert [e.address for e in centre.estimates] == [1, 2]


def test_solving_waits_for_news_but_not_for_ever() -> None:
    centre = FusionCentre(FusionConfig(min_new=4, growth=0.1, max_wait_s=5.0))
    observations = legs(3, 40.0)
    centre.add(observations[:3])
    assert centre.solve(1.0) == []
    centre.add(observations[3:100])
    assert len(centre.solve(20.0)) == 1
    assert centre.solve(30.0) == []
    centre.add(observations[100:105])
    assert centre.solve(24.0) == []
    assert len(centre.solve(25.0)) == 1


def test_memory_is_bounded() -> None:
    centre = FusionCentre(FusionConfig(capacity=40, thinned=30, max_tracks=3))
    for address in range(5):
        centre.add(legs(2, 1.0, address=address, start_s=float(address)))
    assert [t.address for t in centre.tracks] == [2, 3, 4]
    for k in range(10):
        centre.add(legs(3, 5.0, address=4, start_s=5.0 * k))
        centre.solve(5.0 * k + 5.0)
    track = centre.tracks[-1]
    assert len(track.rows) <= 40 and track.pending == []
    assert set(track.rows[:, DRONE]) == {0.0, 1.0, 2.0}
    assert track.rows[:, TIME].min() < 6.0 and track.rows[:, TIME].max() == 49.5


def test_the_same_observations_give_the_same_bits() -> None:
    results = []
    for _ in range(2):
        centre = FusionCentre()
        centre.add(legs(3, 15.0))
        results.append(only(centre.solve(15.0)))
    assert results[0]._replace(covariance=None) == results[1]._replace(covariance=None)  # type: ignore[arg-type]
    np.testing.assert_array_equal(results[0].covariance, results[1].covariance)


def rows_of(times: list[float], positions: list[float], drone: int = 0) -> Floats:
    rows = np.zeros((len(times), COLUMNS))
    rows[:, DRONE], rows[:, TIME], rows[:, 2], rows[:, 5], rows[:, PHASE_STD] = drone, times, positions, 1.0, 0.1
    rows[:, 8], rows[:, 9] = 50.0, 10.0
    return rows


def test_keyframes_thin_where_it_is_crowded() -> None:
    hovering = rows_of([100.0 + 0.5 * k for k in range(40)], [200.0] * 40)
    flying = rows_of([0.0, 10.0, 20.0, 30.0], [0.0, 80.0, 160.0, 200.0])
    other = rows_of([0.0, 50.0], [5.0, 400.0], drone=1)
    rows = np.vstack([flying, hovering, other])
    kept = keyframes(rows, 12)
    assert len(kept) == 12 and np.all(np.diff(kept) > 0)
    assert {0, 1, 2, 3, 44, 45} <= set(kept.tolist())
    assert np.ptp(rows[kept][4:10, TIME]) > 10.0


def test_doubtful_phases_are_dropped_first() -> None:
    rows = rows_of([0.5 * k for k in range(20)], [4.0 * k for k in range(20)])
    rows[5:15:2, PHASE_STD] = 0.36
    assert set(range(5, 15, 2)).isdisjoint(keyframes(rows, 15).tolist())


def test_viewpoints_are_drones_in_sectors() -> None:
    rows = np.vstack([rows_of([0.0, 1.0], [50.0, 60.0]), rows_of([0.0, 1.0], [50.0, -60.0], drone=3)])
    rows[:, 3] = 1.0
    of, views = viewpoints(rows, 0.0, 0.0, 0.0, Model())
    assert of.tolist() == [0, 0, 1, 2]
    assert views[:, 0].tolist() == [0.0, 3.0, 3.0] and views[:, 1].tolist() == [2.0, 1.0, 1.0]
    np.testing.assert_allclose(views[0, 2:4], [55.0, 1.0])


@settings(max_examples=60)
@given(st.lists(st.floats(0.0, 360.0), max_size=7))
def test_separated_bearings_equal_trying_every_subset(degrees: list[float]) -> None:
    def apart(a: float, b: float) -> bool:
        return 30.0 + 1e-9 < abs(a - b) % 360.0 < 330.0 - 1e-9

    best = max(
        len(chosen)
        for n in range(len(degrees) + 1)
        for chosen in itertools.combinations(degrees, n)
        if all(apart(a, b) for a, b in itertools.combinations(chosen, 2))
    )
    found = separated(np.radians(degrees), math.radians(30.0) + 1.8e-11)
    assert found == best
