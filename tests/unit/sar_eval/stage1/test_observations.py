"""The fitted sensing of Stage 1: it recovers a hazard that is known, foretells what it was fitted on, and is bound."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_analysis.stats import clustered
from sar_core.errors import ContractError, InputError, MissingDataError
from sar_core.geometry import BOX
from sar_eval.cli.stage1 import fit_observations
from sar_eval.episode.pool import CALIBRATION_SEED
from sar_eval.scenario.episodeset import LEVELS, load_set
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.scenario.splits import CHECK, FIT
from sar_eval.stage1.fitcheck import check
from sar_eval.stage1.fitflights import FitFlight, Sighting, plan_flights
from sar_eval.stage1.observations import (
    DISTANCE_EDGES_M,
    Observations,
    alarm_rates,
    count_exposure,
    fit,
    fit_hazard,
    load_observations,
    observe,
    write_observations,
)
from sar_eval.stage1.sight import Scenery, SwarmPlaces, constellation, effective_m
from sar_sim.radio.devices import DeviceKind
from sar_sim.radio.obstruction import BODY
from tests.unit.sar_eval.madeflights import ALARM_PER_S, TRUE_DISTANCE, TRUE_LEVEL, TRUE_TIME, made_flights

OPEN = Scenery(np.zeros((0, BODY)), 300.0)
ABOVE = SwarmPlaces(np.tile(np.array([0.0, 0.0, 30.0]), (240, 4, 1)), 240.0)
"""Four drones for four minutes over the middle."""


def box_row(x: float, y: float) -> np.ndarray:
    """A hollow house of 2 m around a place, 40 dB a wall, as the channel knows bodies."""
    row = np.zeros(BODY)
    row[:7] = BOX, x, y, 1.0, 1.0, 1.0, 1.0
    row[7], row[9], row[11] = 1.0, math.sqrt(2.0), 40.0
    return row


def wall_row() -> np.ndarray:
    """A wall across x at 30 m, 10 dB a surface."""
    row = np.zeros(BODY)
    row[:7] = BOX, 30.0, 0.0, 25.0, 0.5, 50.0, 25.0
    row[7], row[9], row[11] = 1.0, 50.01, 10.0
    return row


WALLED = Scenery(wall_row()[None], 300.0)


@pytest.fixture(scope="module")
def episode() -> Episode:
    return prepare(Scenario(episode_set="open_field-v2"), 1, 3)


@pytest.fixture(scope="module")
def model(episode: Episode) -> Observations:
    return fit(made_flights(1000, 0), episode, "made-v1")


def test_a_known_hazard_is_recovered(model: Observations) -> None:
    """Up to what the design cannot tell: a constant may move between level, distance and time effects."""
    for level, base in enumerate(TRUE_LEVEL):
        for d, near in enumerate((25.0, *(edge + 1.0 for edge in DISTANCE_EDGES_M))):
            for t, when in enumerate((2.0, 10.0, 20.0, 100.0)):
                (rate,) = model.rates(level, np.array([when]), np.array([near]))
                true = 0.0 if base is None else math.exp(base + TRUE_DISTANCE[d] + TRUE_TIME[t])
                if base is None:
                    assert rate == 0.0
                elif np.array(model.exposure_s)[level, d, t] * true > 10.0:
                    assert rate == pytest.approx(true, rel=0.45), (level, d, t)


def test_counts_and_exposure_are_told_and_add_up(model: Observations) -> None:
    flights = made_flights(1000, 0)
    found = [s.time_s for f in flights for s in f.sightings if s.kind == "victim"]
    assert np.sum(model.events) == sum(t is not None for t in found)
    assert np.sum(model.exposure_s) == pytest.approx(sum(240.0 if t is None else t for t in found), rel=1e-3)
    assert [len(pairs) for pairs in model.errors] == np.sum(model.events, axis=(1, 2)).tolist()
    rate = model.alarm_rate_per_s["passer_by"]
    assert rate == pytest.approx([ALARM_PER_S] * 5, rel=0.25)
    assert model.alarm_rate_per_s["rescuer"] == (0.0,) * 5 and "victim" not in model.alarm_rate_per_s


def test_without_prior_one_factor_gives_counts_over_exposure() -> None:
    """With one distance and time bin the fit is the plain rate; a level without events stays out."""
    events = np.array([[[5.0]], [[0.0]], [[20.0]]])
    exposure = np.array([[[100.0]], [[400.0]], [[50.0]]])
    level, distance, time = fit_hazard(events, exposure, prior_std=1e-6)
    assert level[1] is None
    assert level[0] == pytest.approx(math.log(0.05), abs=1e-4)
    assert level[2] == pytest.approx(math.log(0.4), abs=1e-4)
    assert np.abs(np.concatenate([distance, time])).max() < 1e-6
    nothing, flat, _ = fit_hazard(np.zeros((2, 1, 1)), exposure[:2])
    assert (nothing, flat.tolist()) == ([None, None], [0.0])


def test_a_distance_nobody_flew_at_is_like_the_nearest_that_was() -> None:
    """Much is known near by, something far, nothing beyond: the hazard does not rise where nothing is known."""
    events = np.array([[[400.0], [20.0], [0.0], [0.0]]])
    exposure = np.array([[[1000.0], [1000.0], [0.0], [0.0]]])
    _, distance, _ = fit_hazard(events, exposure)
    assert distance[0] - distance[1] == pytest.approx(math.log(20.0), abs=0.2)
    assert distance[2] == pytest.approx(distance[1]) and distance[3] == pytest.approx(distance[1])


def test_alarm_rates_are_shrunk_by_one_event() -> None:
    assert alarm_rates(np.array([2.0, 0.0]), np.array([100.0, 100.0])).tolist() == [3.0 / 200.0, 1.0 / 200.0]
    assert alarm_rates(np.zeros(3), np.ones(3)).tolist() == [0.0, 0.0, 0.0]


def test_it_foretells_other_flights_of_the_same_kind(model: Observations) -> None:
    rows = check(model, made_flights(300, 5000), OPEN.bodies)
    for row, base in zip(rows, TRUE_LEVEL, strict=True):
        assert row.victims == 240
        assert row.issued is not None
        assert row.issued_foretold is not None
        assert row.time_s is not None and row.time_foretold_s is not None
        assert row.issued_foretold.value == pytest.approx(row.issued.value, abs=0.1)
        if base is None:
            assert (row.issued.value, row.error_m, row.time_s.value) == (0.0, None, math.inf)
        elif math.isfinite(row.time_s.value):
            assert row.time_foretold_s.value == pytest.approx(row.time_s.value, rel=0.35)
            assert row.error_foretold_m is not None and row.error_foretold_m.value == pytest.approx(3.0, abs=0.6)


def test_every_figure_of_the_check_has_an_interval_over_flights(model: Observations) -> None:
    """Each flight has a layout of its own: what is drawn again are flights, not their victims."""
    flights = made_flights(60, 5000)
    (first, *_) = check(model, flights, OPEN.bodies)
    mine = [flight for flight in flights if flight.level == 0]
    times = [[math.inf if s.time_s is None else s.time_s for s in f.sightings if s.kind == "victim"] for f in mine]
    for figure in (found for found in first.figures.values() if found is not None):
        assert figure.cluster == "layout" and figure.method and (figure.resamples is None) == (figure.seed is None)
        assert figure.low < figure.high or figure.notes
    flat = [(t, k) for k, own in enumerate(times) for t in own]
    expected = clustered.share(np.isfinite([t for t, _ in flat]), 1, [k for _, k in flat], unit="victims")
    assert first.issued == expected and first.victims == len(flat)
    assert first.issued_foretold is not None and first.issued_foretold.n > 100 * first.victims
    assert first.alarms_per_flight is not None and first.alarms_per_flight.n == sum(
        s.time_s is not None for f in mine for s in f.sightings if s.kind != "victim"
    )
    assert json.loads(json.dumps(first.plain, allow_nan=False))["issued"]["cluster"] == "layout"


def test_exposure_ends_with_the_first_report() -> None:
    track = [[[0.0, 0.0, 30.0]]] * 20
    flight = FitFlight("random_walk", 1, 0, 20.0, track, [Sighting("victim", 60.0, 0.0, 0.5, 0.0, 7.25, 1.0, 2)])
    events, exposure = count_exposure([flight], 2, OPEN.bodies)
    assert exposure[0, 1].tolist() == [5.0, 2.25, 0, 0, 0, 0] and exposure.sum() == 7.25
    assert np.argwhere(events).tolist() == [[0, 1, 1]]


def test_exposure_behind_a_wall_counts_as_far_away() -> None:
    """A wall of 20 dB half way makes 60 m 600: the same flight, other bins."""
    track = [[[0.0, 0.0, 1.0]]] * 20
    flight = FitFlight("random_walk", 1, 0, 20.0, track, [Sighting("victim", 60.0, 0.0, 1.0, 0.0, None, None, None)])
    _, exposure = count_exposure([flight], 1, WALLED.bodies)
    assert np.flatnonzero(exposure[0].sum(axis=1)).tolist() == [DISTANCE_EDGES_M.index(500.0) + 1]


def test_draws_depend_on_the_transmitter_alone(model: Observations, episode: Episode) -> None:
    """A second condition, or the twin without victims, meets the same luck."""
    one = observe(model, 0, OPEN, ABOVE, episode.devices, 1, 3)
    turned = observe(model, 0, OPEN, ABOVE, tuple(reversed(episode.devices)), 1, 3)
    assert (sorted(one.found), one.false_alarms) == (sorted(turned.found), turned.false_alarms)
    fates = {observe(model, 0, OPEN, ABOVE, episode.devices, seed, 3).found for seed in range(10)}
    assert len(fates) > 5
    decoys = tuple(d for d in episode.devices if d.kind is not DeviceKind.VICTIM)
    assert observe(model, 0, OPEN, ABOVE, decoys, 1, 3).found == ()


def test_an_issue_tells_the_constellation_of_its_moment(model: Observations, episode: Episode) -> None:
    """Issues stand in the order of time, each with the GDOP of the drones in reach of that victim then."""
    places = np.array([[-100.0, -100.0, 30.0], [100.0, -100.0, 30.0], [100.0, 100.0, 30.0], [-100.0, 100.0, 30.0]])
    looks = SwarmPlaces(np.tile(places, (240, 1, 1)), 240.0)
    victims = [device.track[0, 1:4] for device in episode.devices if device.kind is DeviceKind.VICTIM]
    told = []
    for seed in range(10):
        issued = observe(model, 0, OPEN, looks, episode.devices, seed, 3).issued
        assert [issue.time_s for issue in issued] == sorted(issue.time_s for issue in issued)
        told += [issue.gdop for issue in issued]
    known = {constellation(OPEN, looks, place, 1.0) for place in victims}
    assert len(told) > 5 and set(told) == known and None not in known


def test_behind_walls_victims_are_issued_later(model: Observations, episode: Episode) -> None:
    """40 dB on every way to the victims: the same luck, and hardly anybody is issued."""
    shut = np.array([box_row(*device.track[0, 1:3]) for device in episode.devices])
    assert effective_m(shut, ABOVE.places[0], episode.devices[0].track[0, 1:4]).min() > 2000.0
    many = [len(observe(model, 2, OPEN, ABOVE, episode.devices, seed, 3).issued) for seed in range(30)]
    few = [len(observe(model, 2, Scenery(shut, 300.0), ABOVE, episode.devices, seed, 3).issued) for seed in range(30)]
    assert all(a >= b for a, b in zip(many, few, strict=True)) and sum(few) < 0.5 * sum(many)


def test_fit_and_check_flights_belong_to_calibration_and_differ() -> None:
    fitted = {spec.seed for spec in plan_flights("village", 40, FIT)}
    others = {spec.seed for spec in plan_flights("village", 40, CHECK)}
    assert not fitted & others
    assert min(fitted | others) >= CALIBRATION_SEED
    scenarios = [spec.scenario for spec in plan_flights("village", 10, FIT)]
    assert {(s.sigma, s.kappa) for s in scenarios} == set(LEVELS)
    assert [(level.sigma, level.kappa) for level in load_set("village-v2").levels] == list(LEVELS)
    assert {s.pattern for s in scenarios} == {"partitioned_lawnmower", "random_walk"}


def test_a_file_comes_back_as_it_was_written(tmp_path: Path, model: Observations, episode: Episode) -> None:
    path = tmp_path / "made-v1.json"
    digest = write_observations(model, path)
    assert load_observations(path, episode) == (model, digest)


def test_noise_that_was_never_flown_is_refused(model: Observations) -> None:
    with pytest.raises(InputError, match=r"sigma, kappa = 0.3, 3: made-v1 knows only \(0, 10000\), \(0.05, 8\)"):
        model.level_of(0.3, 3.0)


def edit(content: dict[str, Any]) -> None:
    content["log_time"][0] += 1.0


def forget(content: dict[str, Any]) -> None:
    content.pop("errors")


def age(content: dict[str, Any]) -> None:
    content["schema_version"] = 9


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (edit, "does not match its sha256"),
        (forget, "errors"),
        (age, "schema_version = 9: allowed is 3.*fit anew: sar-eval fit-obs"),
    ],
)
def test_an_edited_file_is_refused(
    tmp_path: Path, model: Observations, episode: Episode, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    path = tmp_path / "made-v1.json"
    write_observations(model, path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ContractError, match=said):
        load_observations(path, episode)


@pytest.mark.parametrize("key", ["world_sha256", "radio_sha256", "calibration_sha256"])
def test_statistics_of_another_world_radio_or_calibration_are_refused(
    tmp_path: Path, model: Observations, episode: Episode, key: str
) -> None:
    path = tmp_path / "made-v1.json"
    write_observations(replace(model, **{key: "0" * 64}), path)
    with pytest.raises(ContractError, match=f"fitted for {key.removesuffix('_sha256')} 000000000000"):
        load_observations(path, episode)


def test_a_missing_file_says_how_to_make_one(tmp_path: Path, episode: Episode) -> None:
    with pytest.raises(MissingDataError, match=r"make it: sar-eval fit-observations"):
        load_observations(tmp_path / "none.json", episode)


def test_a_fit_from_kept_flights_writes_file_picture_and_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command on flights that are already there: nothing is flown, and the page says what it rests on."""
    kept = tmp_path / "flights.jsonl"
    flights = [*made_flights(20, FIT.first), *made_flights(10, CHECK.first)]
    kept.write_text("".join(json.dumps(asdict(flight)) + "\n" for flight in flights))
    monkeypatch.setattr("sar_eval.stage1.fitflights.observe_flight", None)
    out, page, picture = tmp_path / "seen-v1.json", tmp_path / "page.md", tmp_path / "seen.svg"
    options = {"target": out, "flights": 20, "check": 10, "kept": kept, "picture": picture, "page": page, "workers": 1}
    fit_observations(**options, as_json=True)
    text = page.read_text()
    assert "fitted on 20 full-chain flights (random_walk), checked on 10 others" in text
    assert "![Flown against foretold, by noise level](seen.svg)" in text
    assert "Every flight has a layout of its own. 95 % intervals: " in " ".join(text.split())
    row = next(line for line in text.splitlines() if line.startswith("| 0.05 |"))
    assert row.count("[") == 8, "four pairs of figures, each with its ends"
    assert picture.stat().st_size > 1000
    with pytest.raises(InputError, match=r"exists already; a new fit is a new version"):
        fit_observations(**options)
    kept.write_text(kept.read_text() + "{}\n")
    with pytest.raises(InputError, match=r"flights.jsonl:31: not a flight for the fit"):
        fit_observations(**{**options, "target": tmp_path / "other.json"})
    with pytest.raises(InputError, match=r"flights = 4: at least 5 are needed"):
        fit_observations(**{**options, "target": tmp_path / "other.json", "flights": 4})
