"""The position solver against its bound, an independent optimiser, and the ambiguities it must own up to."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from sar_core.radio import BASELINE
from sar_swarm.sensing.gdop import crlb
from sar_swarm.sensing.position import MAX_GAP, PHASE, RANGE, Fix, Model, _evaluate, precisions, solve

Floats = NDArray[np.float64]

POSE_M, YAW_RAD, KAPPA, SIGMA = 0.3, 0.01, 8.0, 0.05
PHASE_VARIANCE = 1.0 / (KAPPA * 0.93524)
"""Inverse Fisher information of one von Mises phase: 1 / (kappa I1/I0)."""
BARE = Model(shadow_log_std=0.0, power_log_std=0.0, bias_phase_std_rad=0.0, pose_correlation_s=1e9)
EXACT = BARE._replace(pose_std_m=0.0, yaw_std_rad=0.0)
ORIGIN = np.zeros(2)

CONSTELLATIONS = {
    "even": ([0.0, 120.0, 240.0], [60.0, 60.0, 60.0], 5.0),
    "0/10/20": ([0.0, 10.0, 20.0], [60.0, 60.0, 60.0], 5.0),
    "collinear": ([0.0, 180.0, 0.0], [60.0, 60.0, 80.0], 5.0),
    "end-fire": ([0.0, 120.0, 240.0], [60.0, 60.0, 60.0], 85.0),
}


def observe(
    where: Floats,
    heading: float,
    target: tuple[float, float] = (0.0, 0.0),
    drone: int = 0,
    time_s: float = 0.0,
    range_std: float = 0.0158,
    phase_std: float = 0.1,
) -> list[float]:
    """A noiseless row: drone at ``where``, array axis at compass angle ``heading`` (rad from east) in the plane."""
    axis = np.array([math.cos(heading), math.sin(heading), 0.0])
    offset = np.array([*target, 0.5]) - where
    distance = float(np.linalg.norm(offset))
    phase = BASELINE * float(axis @ offset) / distance
    return [drone, time_s, *where, *axis, distance, range_std * distance, phase, phase_std]


def campaign(name: str, rng: np.random.Generator | None) -> Floats:
    """15 rows: three drones, five half seconds of ten frames each; without a generator, the noiseless truth."""
    rows = []
    degrees, distances, off_broadside = CONSTELLATIONS[name]
    for d, (bearing, distance) in enumerate(zip(np.radians(degrees), distances, strict=True)):
        where = np.array([distance * math.cos(bearing), distance * math.sin(bearing), 30.0])
        heading = bearing + 0.5 * math.pi + math.radians(off_broadside)
        error, turn = (rng.normal(0.0, POSE_M, 3), rng.normal(0.0, YAW_RAD)) if rng else (np.zeros(3), 0.0)
        for k in range(5):
            row = observe(where, heading, (0.0, 0.0), d, 0.5 * k, SIGMA / math.sqrt(10), math.sqrt(PHASE_VARIANCE / 10))
            if rng:
                frames = row[PHASE] + rng.vonmises(0.0, KAPPA, 10)
                row[PHASE] = float(np.angle(np.mean(np.exp(1j * frames))))
                stretch = math.exp(rng.normal(0.0, SIGMA, 10).mean())
                row[RANGE], row[RANGE + 1] = row[RANGE] * stretch, row[RANGE + 1] * stretch
            row[2:5] = where + error
            row[5:7] = math.cos(heading + turn), math.sin(heading + turn)
            rows.append(row)
    return np.array(rows)


def fix(rows: Floats, model: Model = BARE) -> Fix:
    return solve(rows, np.ones(len(rows)), math.nan, math.nan, model)


@pytest.fixture(scope="module")
def errors() -> dict[str, tuple[float, float, float, float]]:
    """Per constellation over 500 draws: RMSE, bound, RMSE the covariances promise, share of fixes off by over 10 m."""
    out = {}
    for number, name in enumerate(CONSTELLATIONS):
        rng = np.random.default_rng([7, number])
        fixes = [fix(campaign(name, rng)) for _ in range(500)]
        off = np.array([math.hypot(f.x, f.y) for f in fixes])
        bound = crlb(campaign(name, None), ORIGIN, 0.5, POSE_M, YAW_RAD)
        assert bound is not None
        promised = math.sqrt(np.mean([f.cxx + f.cyy for f in fixes]))
        out[name] = (math.sqrt(np.mean(off**2)), bound, promised, float(np.mean(off > 10.0)))
        print(f"{name}: RMSE {out[name][0]:.3f} m, bound {bound:.3f} m, promised {promised:.3f} m")
    return out


@pytest.mark.parametrize("name", CONSTELLATIONS)
def test_error_comes_near_its_bound(errors: dict[str, tuple[float, float, float, float]], name: str) -> None:
    rmse, bound, promised, wild = errors[name]
    assert 0.9 * bound < rmse < 1.5 * bound
    assert promised == pytest.approx(rmse, rel=0.15)
    assert wild == 0.0


@pytest.mark.parametrize("name", ["0/10/20", "collinear"])
def test_bad_geometry_costs_what_the_bound_says(
    errors: dict[str, tuple[float, float, float, float]], name: str
) -> None:
    even, here = errors["even"], errors[name]
    assert here[0] / even[0] == pytest.approx(here[1] / even[1], rel=0.2)


def test_noiseless_observations_give_the_truth() -> None:
    found = fix(campaign("even", None))
    assert math.hypot(found.x, found.y) < 1e-3
    assert found.chi2 < 1e-6 and found.speed_gain < 1e-6


def test_solution_is_the_optimum_another_optimiser_finds() -> None:
    rng = np.random.default_rng(3)
    model = EXACT._replace(power_log_std=0.3)
    for _ in range(5):
        rows = campaign("even", rng)
        rows[:, PHASE] += rng.standard_t(2, len(rows)) * 0.2
        rows[:, RANGE + 1] = 0.4 * rows[:, RANGE]
        white = 0.4**2 - 0.3**2

        def cost(p: Floats, rows: Floats = rows, white: float = white) -> float:
            offset = np.array([p[0], p[1], 0.5]) - rows[:, 2:5]
            distance = np.linalg.norm(offset, axis=1)
            a = (np.log(rows[:, RANGE] / distance) - p[2]) ** 2 / white
            phase = rows[:, PHASE] - BASELINE * np.sum(rows[:, 5:8] * offset, axis=1) / distance
            b = np.angle(np.exp(1j * phase)) ** 2 / rows[:, PHASE + 1] ** 2
            nu = model.student_nu
            return float(0.5 * (nu + 1.0) * np.sum(np.log1p(a / nu) + np.log1p(b / nu)) + 0.5 * (p[2] / 0.3) ** 2)

        found = fix(rows, model)
        best = optimize.minimize(cost, [1.0, 1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-10})
        np.testing.assert_allclose([found.x, found.y, found.power_log], best.x, atol=5e-3)
        assert found.log_likelihood == pytest.approx(-best.fun, abs=1e-4)


@pytest.mark.parametrize("size", [3, 5])
def test_gradient_is_the_likelihoods_slope(size: int) -> None:
    rng = np.random.default_rng(1)
    rows = campaign("even", rng)
    model = Model()
    in_range, in_phase = precisions(rows, 4.0, 2.0, model)
    p = np.array([4.0, 2.0, 0.1, 0.5, -0.8])[:size]
    H, g, scratch = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    index, ones = np.arange(len(rows)), rng.uniform(0.5, 1.5, len(rows))
    args = (rows, index, in_range, in_phase, ones)
    _evaluate(*args, p, 1.0, model, H, g)
    slopes = [
        (
            _evaluate(*args, p + 1e-6 * e, 1.0, model, H.copy(), scratch)
            - _evaluate(*args, p - 1e-6 * e, 1.0, model, H.copy(), scratch)
        )
        / 2e-6
        for e in np.eye(size)
    ]
    np.testing.assert_allclose(g, slopes, rtol=1e-4, atol=1e-5)


def test_shared_errors_do_not_average_out() -> None:
    """n observations from one place know the phase no better than the yaw: information 1 / (s^2 / n + yaw^2)."""
    rows = np.array([observe(np.array([60.0, 0.0, 0.5]), 0.5 * math.pi, time_s=0.5 * k) for k in range(20)])
    model = EXACT._replace(yaw_std_rad=0.02, height_m=0.5)
    _, in_phase = precisions(rows, 0.0, 0.0, model)
    assert in_phase.sum() == pytest.approx(1.0 / (0.1**2 / 20 + (BASELINE * 0.02) ** 2), rel=1e-6)
    fading = model._replace(pose_correlation_s=0.5)
    assert precisions(rows, 0.0, 0.0, fading)[1].sum() > 2.0 * in_phase.sum()


def test_shadowing_is_shared_along_the_way_and_between_drones_it_is_not() -> None:
    model = EXACT._replace(shadow_log_std=0.3)
    spot = np.array([60.0, 0.0, 30.0])
    alone = np.array([observe(spot, 1.5, range_std=0.31, time_s=float(k)) for k in range(10)])
    swarm = np.array([observe(spot, 1.5, range_std=0.31, drone=k) for k in range(10)])
    assert precisions(alone, 0.0, 0.0, model)[0].sum() == pytest.approx(1.0 / 0.3**2, rel=0.02)
    assert precisions(swarm, 0.0, 0.0, model)[0].sum() == pytest.approx(10.0 / 0.31**2, rel=0.02)


def test_one_array_owns_up_to_its_mirror_image_and_a_second_place_resolves_it() -> None:
    """Over the origin with the array along north, a device 50 m east could as well be 50 m west."""
    spot = np.array([0.0, 0.0, 30.0])
    rows = np.array([observe(spot, 0.5 * math.pi, (50.0, 20.0), time_s=0.5 * k) for k in range(6)])
    found = fix(rows, EXACT)
    assert {round(found.x), round(found.second_x)} == {50, -50}
    assert found.gap < 1e-3
    other = observe(np.array([60.0, -60.0, 30.0]), 0.0, (50.0, 20.0), drone=1, time_s=3.0)
    found = fix(np.vstack([rows, other]), EXACT)
    assert (round(found.x), round(found.y)) == (50, 20)
    assert found.gap > 15.0


def test_wild_phases_hardly_move_the_fix() -> None:
    rng = np.random.default_rng(8)
    off = []
    for _ in range(40):
        rows = np.vstack([campaign("even", rng) for _ in range(2)])
        wild = rng.choice(len(rows), 6, replace=False)
        rows[wild, PHASE] = rng.uniform(-math.pi, math.pi, 6)
        found = fix(rows)
        off.append(math.hypot(found.x, found.y))
    assert np.median(off) < 1.0 and max(off) < 4.0


def test_an_unusual_transmit_power_is_recognised() -> None:
    """All ranges 60 % too long: three cones say where it is, and so how strong it sends."""
    rows = campaign("even", None)
    rows[:, RANGE] *= 1.6
    rows[:, RANGE + 1] = 0.4 * rows[:, RANGE]
    found = fix(rows, BARE._replace(power_log_std=0.345))
    assert math.hypot(found.x, found.y) < 0.5
    assert found.power_log == pytest.approx(math.log(1.6), abs=0.1)


def flown_past(velocity: tuple[float, float], seconds: float, rng: np.random.Generator) -> Floats:
    """Three drones on straight legs around a device that starts at the origin and walks; usual noise."""
    rows = []
    for k in range(int(2 * seconds)):
        t = 0.5 * k
        target = (velocity[0] * t, velocity[1] * t)
        for d, (x, y, course) in enumerate([(-50.0, 40.0, 0.0), (60.0, -40.0, 2.0), (0.0, 70.0, -1.5)]):
            spot = np.array([x + 4.0 * t * math.cos(course), y + 4.0 * t * math.sin(course), 30.0])
            row = observe(spot, course + 0.5 * math.pi, target, d, t, 0.5, 0.12)
            row[PHASE] += rng.normal(0.0, 0.12)
            row[RANGE] *= math.exp(rng.normal(0.0, 0.1))
            rows.append(row)
    return np.array(rows)


def test_a_walker_is_told_from_someone_lying_still() -> None:
    rng = np.random.default_rng(4)
    good = Model(shadow_log_std=0.345, power_log_std=0.345, bias_phase_std_rad=0.05)
    walking = [fix(flown_past((1.0, -1.0), 30.0, rng), good) for _ in range(10)]
    lying = [fix(flown_past((0.0, 0.0), 30.0, rng), good) for _ in range(10)]
    assert min(f.speed_gain for f in walking) > 10.0 > 6.0 > max(f.speed_gain for f in lying)
    assert np.median([math.hypot(f.vx, f.vy) for f in walking]) == pytest.approx(math.sqrt(2.0), rel=0.2)


def test_weights_silence_a_liar() -> None:
    rows = campaign("even", None)
    rows[5:10, PHASE] += 0.5
    weights = np.ones(15)
    weights[5:10] = 0.0
    found = solve(rows, weights, math.nan, math.nan, BARE)
    assert math.hypot(found.x, found.y) < 1e-2
    assert math.hypot(*fix(rows)[:2]) > 0.3


def test_one_observation_is_enough_to_be_unsure() -> None:
    found = fix(campaign("even", None)[:1])
    assert np.all(np.isfinite([found.x, found.y, found.cxx, found.cyy]))
    assert found.gap <= MAX_GAP and found.speed_gain == 0.0
