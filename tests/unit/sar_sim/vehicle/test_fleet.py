"""The fleet: time grid, frames, noise that depends on nothing but its seed, batteries."""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sar_core.errors import InputError
from sar_core.frames import yaw_of
from sar_core.geometry import box
from sar_sim.vehicle.airframe import Vehicle, load_vehicle
from sar_sim.vehicle.fleet import Fleet, add_path, stamp_ns, step_of_tick

Floats = NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[4]
FREE = np.full(3, np.nan)
WIND = np.array([2.0, 1.0, 0.0])


def load(name: str = "x500") -> Vehicle:
    return load_vehicle(ROOT / "configs" / "vehicles" / f"{name}.yaml", ROOT / "px4_params" / f"{name}.params")


@pytest.fixture(scope="module")
def x500() -> Vehicle:
    return load()


def launched(vehicle: Vehicle, spawns: list[list[float]], seed: int = 3, **more: object) -> Fleet:
    """Vehicles in the air, each told to fly 20 m north-east of where it is."""
    options: dict[str, object] = {"wind_mps": WIND, "in_air": True, "thrust_variation": 0.05, **more}
    fleet = Fleet(vehicle, np.array(spawns), seed, 0, **options)  # type: ignore[arg-type]
    for i, (x, y, z, yaw) in enumerate(spawns):
        fleet.command(i, np.array([x + 14.0, y + 14.0, z]), FREE, FREE, yaw)
    return fleet


def track(fleet: Fleet, groups: list[int]) -> Floats:
    """Positions after each step [T, N, 3], the calls being cut as told."""
    return np.concatenate([fleet.tick(steps)[1:] for steps in groups])


HERE, THERE, BESIDE = [0.0, 0.0, 30.0, 0.3], [200.0, 0.0, 30.0, 0.0], [200.75, 0.0, 30.0, 0.0]


def test_ticks_fall_on_the_first_step_not_before_them() -> None:
    assert [stamp_ns(k) // 1_000_000 for k in range(6)] == [0, 52, 100, 152, 200, 252]
    assert all(0 <= stamp_ns(k) - k * 50_000_000 < 4_000_000 for k in range(5000))
    assert step_of_tick(20 * 3600) == 250 * 3600


@settings(max_examples=12)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=20))
def test_how_calls_are_grouped_does_not_matter(groups: list[int]) -> None:
    vehicle = _cached()
    cut = track(launched(vehicle, [HERE]), groups)
    steps = sum(groups)
    ticks = [step_of_tick(k + 1) - step_of_tick(k) for k in range(steps // 12 + 1)]
    whole = track(launched(vehicle, [HERE]), ticks)
    assert np.array_equal(cut, whole[:steps])


_vehicles: list[Vehicle] = []


def _cached() -> Vehicle:
    if not _vehicles:
        _vehicles.append(load())
    return _vehicles[0]


@pytest.mark.parametrize("groups", [[250] * 4, [13, 12] * 40, [1] * 1000, [1000]], ids=["250", "13/12", "1", "1000"])
def test_usual_groupings_are_bit_identical(x500: Vehicle, groups: list[int]) -> None:
    obstacle = box(7, 7, 30, 2, 2, 60)[None, :]
    spawns = [HERE, [5.0, 5.0, 30.0, 0.0]]
    ours = track(launched(x500, spawns, obstacles=obstacle), groups)
    plain = track(launched(x500, spawns, obstacles=obstacle), [13, 12] * 40)
    assert np.array_equal(ours, plain)


def test_a_vehicle_flies_the_same_alone_and_in_company(x500: Vehicle) -> None:
    """Also when two others far away are so close that the kernel must look at every step for contact."""
    steps = [13, 12] * 60
    alone = track(launched(x500, [HERE]), steps)[:, 0]
    company = track(launched(x500, [HERE, THERE]), steps)[:, 0]
    crowd = track(launched(x500, [HERE, THERE, BESIDE]), steps)
    assert np.array_equal(alone, company)
    assert np.array_equal(alone, crowd[:, 0])
    assert np.linalg.norm(crowd[:, 1] - crowd[:, 2], axis=1).min() < 0.8


def test_order_of_vehicles_is_their_only_name(x500: Vehicle) -> None:
    """Vehicle 1's noise is vehicle 1's wherever it stands: no two share a stream."""
    both = track(launched(x500, [HERE, [HERE[0], 500.0, 30.0, HERE[3]]]), [250])
    assert not np.allclose(both[:, 0], both[:, 1] - [0.0, 500.0, 0.0], atol=1e-6)


def test_seed_and_episode_decide(x500: Vehicle) -> None:
    first, again, other = (track(launched(x500, [HERE], seed=seed), [250]) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_obstacles_out_of_reach_change_nothing(x500: Vehicle) -> None:
    wall = box(300, 0, 30, 2, 100, 60)[None, :]
    assert np.array_equal(track(launched(x500, [HERE]), [500]), track(launched(x500, [HERE], obstacles=wall), [500]))


DIGEST = """
import hashlib, sys
sys.path[:0] = {path!r}
import numpy as np
from pathlib import Path
from sar_sim.vehicle.airframe import load_vehicle
from sar_sim.vehicle.fleet import Fleet
root = Path({root!r})
vehicle = load_vehicle(root / "configs/vehicles/x500.yaml", root / "px4_params/x500.params")
fleet = Fleet(vehicle, np.array([[0.0, 0.0, 30.0, 0.3], [5.0, 0.0, 30.0, 0.0]]), 9, 4, np.array([2.0, 1.0, 0.0]),
              thrust_variation=0.05, in_air=True)
for i in range(2):
    fleet.command(i, np.array([14.0, 14.0, 30.0 + i]), np.full(3, np.nan), np.full(3, np.nan), 0.0)
print(hashlib.sha256(np.ascontiguousarray(fleet.tick(2500)).tobytes()).hexdigest())
"""


def test_two_processes_fly_the_same_bits() -> None:
    code = DIGEST.format(root=str(ROOT), path=sys.path)
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1] and len(runs[0].strip()) == 2 * hashlib.sha256().digest_size


def test_frames_are_enu_outside(x500: Vehicle) -> None:
    """Flying east with the nose east: x grows, yaw is 0, and leaning forward is a positive pitch in FLU."""
    fleet = Fleet(x500, np.array([[5.0, -7.0, 30.0, 0.0]]), 1, 0, in_air=True, with_noise=False)
    state = fleet.snapshot()
    assert state.position[0] == pytest.approx([5.0, -7.0, 30.0])
    assert yaw_of(state.attitude)[0] == pytest.approx(0.0, abs=1e-9)
    fleet.command(0, np.array([np.nan, np.nan, 30.0]), np.array([4.0, 0.0, np.nan]), FREE, 0.0)
    fleet.tick(150)
    state = fleet.snapshot()
    assert state.velocity[0, 0] > 1.0 and abs(state.velocity[0, 1]) < 0.05
    w, x, y, z = state.attitude[0]
    assert math.asin(2.0 * (w * y - z * x)) > 0.02
    fleet.command(0, np.array([np.nan, np.nan, 33.0]), np.array([0.0, 0.0, np.nan]), FREE, 1.0)
    fleet.tick(2500)
    state = fleet.snapshot()
    assert state.position[0, 2] == pytest.approx(33.0, abs=0.1)
    assert yaw_of(state.attitude)[0] == pytest.approx(1.0, abs=0.02)


def test_the_swarm_sees_an_estimate_not_the_truth(x500: Vehicle) -> None:
    fleet = launched(x500, [HERE])
    fleet.tick(2500)
    state = fleet.snapshot()
    error = np.linalg.norm(state.est_position - state.position)
    assert 0.001 < error < 3.0
    assert not np.array_equal(state.est_velocity, state.velocity)


def test_snapshots_do_not_change_afterwards(x500: Vehicle) -> None:
    fleet = launched(x500, [HERE])
    before = fleet.snapshot()
    kept = before.position.copy()
    fleet.tick(500)
    assert np.array_equal(before.position, kept)


def test_track_begins_where_the_last_one_ended(x500: Vehicle) -> None:
    fleet = launched(x500, [HERE, THERE])
    first, second = fleet.tick(13), fleet.tick(12)
    assert first.shape == (14, 2, 3) and second.shape == (13, 2, 3)
    assert np.array_equal(first[-1], second[0])
    assert np.array_equal(second[-1], fleet.snapshot().position)
    flown = np.zeros(2)
    add_path(first, flown)
    assert flown == pytest.approx(np.linalg.norm(np.diff(first, axis=0), axis=2).sum(axis=0))


def test_hover_empties_the_battery_in_its_endurance(x500: Vehicle) -> None:
    fleet = Fleet(x500, np.array([[0.0, 0.0, 30.0, 0.0]]), 1, 0, in_air=True, with_noise=False)
    fleet.command(0, np.array([0.0, 0.0, 30.0]), FREE, FREE, 0.0)
    fleet.warm_up(20.0)
    charge = [1.0]
    for _ in range(60):
        fleet.tick(250)
        charge.append(float(fleet.snapshot().charge[0]))
    assert np.all(np.diff(charge) < 0.0)
    assert 60.0 / (1.0 - charge[-1]) == pytest.approx(x500.airframe.endurance, rel=0.01)


def test_fast_flight_and_thrust_cost_more_than_hover(x500: Vehicle) -> None:
    def used(velocity: list[float]) -> float:
        fleet = Fleet(x500, np.array([[0.0, 0.0, 30.0, 0.0]]), 1, 0, in_air=True, with_noise=False)
        fleet.command(0, FREE, np.array(velocity), FREE, 0.0)
        fleet.tick(2500)
        return 1.0 - float(fleet.snapshot().charge[0])

    assert used([0.0, 0.0, 3.0]) > used([0.0, 0.0, 0.0])
    assert used([10.0, 0.0, 0.0]) > used([0.0, 0.0, 0.0])


def test_an_empty_battery_ends_the_flight(x500: Vehicle, tmp_path: Path) -> None:
    text = (ROOT / "configs" / "vehicles" / "x500.yaml").read_text(encoding="utf-8")
    path = tmp_path / "x500.yaml"
    path.write_text(text.replace("endurance_s: 1500.0", "endurance_s: 5.0"), encoding="utf-8")
    vehicle = load_vehicle(path, ROOT / "px4_params" / "x500.params")
    fleet = Fleet(vehicle, np.array([[0.0, 0.0, 30.0, 0.0]]), 1, 0, in_air=True)
    fleet.command(0, np.array([0.0, 0.0, 30.0]), FREE, FREE, 0.0)
    fleet.tick(250 * 12)
    state = fleet.snapshot()
    assert state.charge[0] == 0.0
    assert state.position[0, 2] == pytest.approx(vehicle.airframe.gear_height)


def test_on_the_ground_nothing_moves_and_nothing_is_used(x500: Vehicle) -> None:
    fleet = Fleet(x500, np.array([[3.0, 4.0, 0.0, 1.0]]), 1, 0, np.array([8.0, 0.0, 0.0]))
    before = fleet.snapshot()
    fleet.tick(2500)
    after = fleet.snapshot()
    assert after.position == pytest.approx(np.array([[3.0, 4.0, x500.airframe.gear_height]]))
    assert np.array_equal(before.position, after.position)
    assert after.charge[0] == 1.0 and after.landed[0]


def test_warm_up_starts_the_clock_anew(x500: Vehicle) -> None:
    fleet = Fleet(x500, np.array([[0.0, 0.0, 0.0, 0.0]]), 1, 0)
    fleet.warm_up(3.0)
    assert fleet.step == 0
    assert np.any(fleet.snapshot().est_position != fleet.snapshot().position)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("mass_kg: 2.064", "mass_kg: -1"), "mass_kg = -1: input should be greater than 0"),
        (("mass_kg: 2.064", "mass: 2.064"), "unknown key 'mass'"),
        (("endurance_s: 1500.0", ""), "key 'endurance_s' is missing"),
        (("thrust_exponent: 2.0", "thrust_exponent: three"), "thrust_exponent = 'three'"),
        (("lag_up_s: 0.0125", "lag_up_s: .nan"), "lag_up_s = nan"),
        (("name: x500", "name: [x500"), "cannot read the vehicle file"),
    ],
)
def test_a_bad_vehicle_file_is_refused_in_one_line(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    text = (ROOT / "configs" / "vehicles" / "x500.yaml").read_text(encoding="utf-8")
    assert change[0] in text
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace(*change), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_vehicle(path, ROOT / "px4_params" / "x500.params")
    message = str(caught.value)
    assert message.startswith(str(path)) and told in message and "\n" not in message


def test_a_missing_vehicle_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.yaml: cannot read"):
        load_vehicle(tmp_path / "nothing.yaml", ROOT / "px4_params" / "x500.params")


def test_a_vehicle_like_another_says_only_what_differs(tmp_path: Path) -> None:
    params = ROOT / "px4_params" / "x500.params"
    text = (ROOT / "configs" / "vehicles" / "x500.yaml").read_text(encoding="utf-8")
    (tmp_path / "x500.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "heavy.yaml").write_text("name: heavy\nlike: x500\nmass_kg: 3.0\n", encoding="utf-8")
    plain, heavy = load_vehicle(tmp_path / "x500.yaml", params), load_vehicle(tmp_path / "heavy.yaml", params)
    assert (heavy.name, heavy.airframe) == ("heavy", plain.airframe._replace(mass=3.0))
    (tmp_path / "x500.yaml").write_text(text + "# changed\n", encoding="utf-8")
    assert load_vehicle(tmp_path / "heavy.yaml", params).sha256 != heavy.sha256, "what it is like is part of it"
    (tmp_path / "heavy.yaml").write_text("name: heavy\nlike: x501\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"x501\.yaml: cannot read"):
        load_vehicle(tmp_path / "heavy.yaml", params)
    for text in ("", "name: x501\nlike: x500\n"):
        (tmp_path / "x501.yaml").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=r"x501\.yaml: heavy is like it, so it must say everything itself"):
            load_vehicle(tmp_path / "heavy.yaml", params)


def test_the_x500_with_gazebos_sensors_differs_in_nothing_else(x500: Vehicle) -> None:
    quiet = load_vehicle(ROOT / "configs" / "vehicles" / "x500_gz.yaml", ROOT / "px4_params" / "x500_gz.params")
    assert (quiet.airframe, quiet.gains, quiet.filter_gains) == (x500.airframe, x500.gains, x500.filter_gains)
    assert all(np.max(a) < np.min(b) for a, b in zip(quiet.noise, x500.noise, strict=True))
