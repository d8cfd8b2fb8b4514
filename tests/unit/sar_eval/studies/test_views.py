"""Drones around one device: more and better placed views are closer, none beats the bound, and the table says so."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sar_analysis.stats.rates import clopper_pearson
from sar_core.errors import InputError
from sar_eval.cli.studies import views
from sar_eval.scenario.prepare import load_named_vehicle
from sar_eval.studies.views import (
    CONSTELLATIONS,
    OWN_HEADING_RAD,
    OWN_POSITION_M,
    TIMES_S,
    Trial,
    ViewConfig,
    ViewRow,
    fly_trial,
    known_noise_bound,
    places,
    plan_views,
    study,
    summarise,
)
from sar_sim.vehicle.fleet import Fleet, step_of_tick
from sar_swarm.sensing.gdop import gdop

Floats = NDArray[np.float64]
FLOWN = (("right_angle", 2), ("spread", 3), ("collinear", 3), ("side_by_side", 3))


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, float], ViewRow]:
    told: list[tuple[int, int]] = []
    plan = plan_views(12, 3, ViewConfig(), FLOWN)
    found = study(plan, 1, lambda done, of: told.append((done, of)))
    assert told[-1] == (48, 48)
    return {(row.constellation, row.time_s): row for row in found}


@pytest.mark.parametrize("worse", ["collinear", "side_by_side"])
def test_three_that_are_spread_see_best(rows: dict[tuple[str, float], ViewRow], worse: str) -> None:
    """By the bound always; by the error of a dozen trials while there is little else to go by than the places."""
    for time_s in TIMES_S:
        best, other = rows["spread", time_s].crlb_m, rows[worse, time_s].crlb_m
        assert best is not None and other is not None and best.value < other.value
    early = [sum(rows[name, time_s].median_m.value for time_s in TIMES_S[:2]) for name in ("spread", worse)]
    assert early[0] < 0.8 * early[1]


def test_errors_fall_with_time_and_stay_above_the_bound(rows: dict[tuple[str, float], ViewRow]) -> None:
    for name, _ in FLOWN:
        at = [rows[name, time_s] for time_s in TIMES_S]
        assert at[-1].median_m.value < at[0].median_m.value
        for row in at:
            assert row.trials == row.fixed == row.median_m.n == 12
            assert row.rms_m is not None and row.crlb_m is not None
            assert row.rms_m.value > 0.5 * row.crlb_m.value
            assert row.median_m.low <= row.median_m.value <= row.cep95_m.value
        bounds = [row.crlb_m.value for row in at if row.crlb_m is not None]
        assert bounds == sorted(bounds, reverse=True)
    last = rows["spread", TIMES_S[-1]]
    assert last.rms_m is not None and last.crlb_m is not None and last.rms_m.value < 5.0 * last.crlb_m.value


def test_dilutions_are_those_of_the_constellation(rows: dict[tuple[str, float], ViewRow]) -> None:
    right, spread = (rows[name, 60.0].constellation_gdop for name in ("right_angle", "spread"))
    assert right is not None and right.value == pytest.approx(math.sqrt(2.0), rel=0.05)
    assert spread is not None and spread.value == pytest.approx(math.sqrt(4.0 / 3.0), rel=0.05)
    beside, line = rows["side_by_side", 60.0].constellation_gdop, rows["collinear", 60.0].constellation_gdop
    assert beside is not None and beside.value > 5.0
    assert line is None or line.value > 15.0


def test_the_root_starts_from_two_at_right_angles(rows: dict[tuple[str, float], ViewRow]) -> None:
    start = rows["right_angle", 10.0]
    assert start.root_m is not None and start.root_m.value == start.median_m.value
    three, factor = rows["spread", 10.0].root_m, math.sqrt(2.0 / 3.0)
    assert three is not None and (three.value, three.low, three.high) == pytest.approx(
        tuple(factor * part for part in (start.median_m.value, start.median_m.low, start.median_m.high))
    )
    assert rows["collinear", 10.0].root_m is None


def test_every_figure_says_how_its_interval_was_made_and_ghosts_have_the_exact_one(
    rows: dict[tuple[str, float], ViewRow],
) -> None:
    row = rows["spread", 60.0]
    for figure in (row.median_m, row.cep95_m, row.rms_m, row.far, row.crlb_m, row.root_m, row.information_dop_m):
        assert figure is not None and figure.method and figure.cluster == "layout"
        assert (figure.resamples in (None, 10_000) and figure.low < figure.high) or figure.notes
    assert row.far.exact is not None and row.far.exact.ends == clopper_pearson(int(12 * row.far.value), 12).ends


def test_a_trial_repeats_itself_and_no_other() -> None:
    config = ViewConfig(circle_m=0.0)
    first, again, other = (fly_trial(Trial("spread", 2, number, 5, config)) for number in (0, 0, 1))
    assert first == again and first[-1] != other[-1]


def test_without_a_fix_an_error_is_infinite_and_no_figure_is_made_up() -> None:
    plan = plan_views(4, 0, ViewConfig(), [("single", 1)])
    looks = np.full((4, len(TIMES_S), 5), math.nan)
    looks[:3, -1] = [3.0, 1.0, 1.0, 2.0, 0.5]
    first, last = (summarise(plan, looks)[k] for k in (0, -1))
    assert (first.fixed, first.rms_m, first.crlb_m, first.information_dop_m) == (0, None, None, None)
    assert first.median_m.value == first.cep95_m.value == math.inf and first.far.value == 1.0
    assert last.rms_m is not None
    assert (last.fixed, last.rms_m.value, last.median_m.value, last.cep95_m.value) == (3, 3.0, 3.0, math.inf)
    assert last.far.value == 0.25 and last.crlb_m is None
    assert last.constellation_gdop is not None and last.constellation_gdop.value == 1.0


def test_places_are_what_their_names_say() -> None:
    for name, counts in CONSTELLATIONS.items():
        for n in counts:
            assert np.hypot(*places(name, n, 60.0).T).mean() == pytest.approx(60.0, abs=0.5)
    for n in (3, 4):
        assert gdop(places("spread", n, 60.0), np.zeros(2)) == pytest.approx(2.0 / math.sqrt(n))
    assert gdop(places("right_angle", 2, 60.0), np.zeros(2)) == pytest.approx(math.sqrt(2.0))
    assert gdop(places("spread", 2, 60.0), np.zeros(2)) is None
    assert gdop(places("collinear", 4, 60.0), np.zeros(2)) is None


def test_the_bound_has_its_value_by_hand() -> None:
    """Two arrays broadside at right angles: each tells where across its own line of sight, ranges next to nothing."""
    kappa, frames, each, away = 8.0, 10, 20, 60.0
    rows = np.array(
        [
            [drone, 0.5 * k, *where, 0.0, *axis, 0.0, away, 0.5 * away, 0.0, 1.0]
            for k in range(each)
            for drone, (where, axis) in enumerate((((away, 0.0), (0.0, 1.0)), ((0.0, away), (1.0, 0.0))))
        ]
    )
    count = np.full(len(rows), frames)
    phase = 1.0 / (frames * kappa * 0.93524) + 0.02**2
    across = phase / each * (away / math.pi) ** 2 + OWN_POSITION_M**2 + (OWN_HEADING_RAD * away) ** 2
    found = known_noise_bound(rows, count, np.zeros(2), 0.0, kappa)
    assert found == pytest.approx(math.sqrt(2.0 * across), rel=0.01)
    better, worse = (known_noise_bound(rows, count, np.zeros(2), 0.0, k) for k in (math.inf, 0.5))
    assert better is not None and worse is not None and better < found < worse
    assert known_noise_bound(np.empty((0, 13)), count[:0], np.zeros(2), 0.0, kappa) is None


def test_own_errors_of_the_bound_are_those_of_the_vehicles() -> None:
    """Means over a minute; heading by how far the estimated nose turns from the true one."""
    position, heading = [], []
    spawns = np.array([[40.0 * k, 0.0, 30.0, 0.5 * k] for k in range(12)])
    fleet = Fleet(load_named_vehicle("x500"), spawns, 11, 0, np.array([2.0, 0.0, 0.0]), in_air=True)
    for k, spot in enumerate(spawns):
        fleet.command(k, spot[:3], np.full(3, math.nan), np.full(3, math.nan), spot[3])
    fleet.warm_up(5.0)
    for tick in range(1, 1201):
        fleet.tick(step_of_tick(tick) - fleet.step)
        now = fleet.snapshot()
        position.append((now.est_position - now.position)[:, :2])
        turns = [2.0 * np.arctan2(q[:, 3], q[:, 0]) for q in (now.est_attitude, now.attitude)]
        heading.append((turns[0] - turns[1] + math.pi) % (2.0 * math.pi) - math.pi)
    assert np.sqrt(np.mean(np.mean(position, axis=0) ** 2)) == pytest.approx(OWN_POSITION_M, rel=0.4)
    assert np.sqrt(np.mean(np.mean(heading, axis=0) ** 2)) == pytest.approx(OWN_HEADING_RAD, rel=0.5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sigma": -0.1},
        {"sigma": math.inf},
        {"kappa": math.nan},
        {"distance_m": 5.0},
        {"distance_m": 500.0},
        {"circle_m": -1.0},
        {"circle_m": 31.0},
    ],
    ids=str,
)
def test_what_cannot_be_flown_is_refused(wrong: dict[str, float]) -> None:
    (name,) = wrong
    with pytest.raises(InputError, match=f"{name} = .*allowed"):
        ViewConfig(**wrong)


def test_too_few_trials_and_unknown_constellations_are_refused() -> None:
    for trials, seed in ((1, 0), (10, -1)):
        with pytest.raises(InputError, match=f"trials = {trials} from seed {seed}"):
            plan_views(trials, seed, ViewConfig())
    with pytest.raises(InputError, match="'spread' of 5: allowed: single of 1, right_angle of 2, spread of 2/3/4"):
        plan_views(10, 0, ViewConfig(), [("spread", 5)])


def test_the_verb_tells_people_and_machines_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = {"trials": 2, "seed": 1, "sigma": 0.05, "kappa": 8.0, "distance_m": 60.0, "circle_m": 10.0, "workers": 1}
    views(**options, folder=tmp_path / "people")
    shown = capsys.readouterr().out
    assert "n = 2" in shown and "side by side" in shown and "CEP95" in shown
    assert (tmp_path / "people" / "views.png").stat().st_size > 10_000
    views(**options, folder=tmp_path / "machines", as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads((tmp_path / "people" / "views.json").read_text())
    assert len(told) == len(TIMES_S) * sum(map(len, CONSTELLATIONS.values()))
    assert max(len(line) for line in shown.splitlines()[3:-3]) <= 80
