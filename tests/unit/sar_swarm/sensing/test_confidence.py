"""Calibrated probabilities: the fit, the file's contract, and the figures that judge it, against brute force."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special

from sar_core.errors import ContractError, InputError, MissingDataError
from sar_swarm.sensing.confidence import (
    FEATURES,
    FOR,
    Calibration,
    auroc,
    brier_skill,
    calibration_error,
    features,
    fit,
    load_calibration,
    reliability,
)
from sar_swarm.sensing.fusion import Estimate

Floats = NDArray[np.float64]
SHA = "ab" * 32

ESTIMATE = Estimate(
    track=0,
    address=7,
    time_s=30.0,
    x=1.0,
    y=2.0,
    covariance=np.diag([4.0, 5.0]),
    views=3,
    path_gdop=1.5,
    constellation_gdop=1.4,
    gdi=1.0,
    n_eff=2.5,
    chi2=1.0,
    ambiguity_gap=50.0,
    second=None,
    speed_mps=0.1,
    speed_gain=0.2,
    power_log=0.0,
    observations=40,
    drones=2,
    usable_share=0.9,
    accept_share=0.8,
    beacon_share=0.0,
    known=False,
    first_s=3.0,
    last_s=30.0,
)


def drawn(n: int, seed: int = 0) -> tuple[Floats, Floats, Floats]:
    """Features of three kinds of scale, labels from a known model, and the model's (weights, intercept)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
    truth = np.array([1.5, -0.1, 6.0, -5.0])
    return X, (rng.random(n) < special.expit(X @ truth[:3] + truth[3])).astype(float), truth


def saved(path: Path, **changes: object) -> Path:
    data = {
        "schema_version": 1,
        "radio_config_sha256": SHA,
        "features": list(FEATURES),
        "weights": [0.1] * len(FEATURES),
        "intercept": -1.0,
        "seeds": [1, 2],
        "n": 10,
        "positives": 4,
    }
    path.write_text(json.dumps({k: v for k, v in (data | changes).items() if v is not None}))
    return path


def test_features_are_finite_and_in_their_order() -> None:
    row = dict(zip(FEATURES, features(ESTIMATE), strict=True))
    assert row["log_std"] == pytest.approx(math.log(3.0))
    assert row["gdop"] == 1.5 and row["gdop_undefined"] == 0.0
    assert row["ambiguity_gap"] == 1.0 and row["views"] == 3
    wild = ESTIMATE._replace(covariance=np.diag([np.inf, np.inf]), chi2=1e9, speed_gain=1e9, speed_mps=1e9, n_eff=1e9)
    assert np.all(np.isfinite(features(wild)))


def test_an_undefined_gdop_is_the_worst_one_and_says_so() -> None:
    row = dict(zip(FEATURES, features(ESTIMATE._replace(path_gdop=None)), strict=True))
    assert row["gdop_undefined"] == 1.0
    assert row["gdop"] == dict(zip(FEATURES, features(ESTIMATE._replace(path_gdop=1e6)), strict=True))["gdop"] > 4.0


def test_speed_counts_as_far_as_motion_is_believed() -> None:
    at = FEATURES.index("moving_mps")
    assert features(ESTIMATE._replace(speed_mps=8.0, speed_gain=0.01))[at] < 0.1
    assert features(ESTIMATE._replace(speed_mps=8.0, speed_gain=30.0))[at] == pytest.approx(8.0, rel=1e-3)


def test_fit_recovers_a_known_model() -> None:
    X, y, truth = drawn(40_000)
    model = fit(X, y > 0, SHA, [3, 4], names=("a", "b", "c"))
    np.testing.assert_allclose([*model.weights, model.intercept], truth, rtol=0.12)
    assert model.n == 40_000 and model.positives == int(y.sum()) and model.seeds == (3, 4)


def test_fitted_probabilities_are_calibrated_on_unseen_draws() -> None:
    X, y, _ = drawn(5_000)
    model = fit(X, y > 0, SHA, [], names=("a", "b", "c"))
    X, y, _ = drawn(5_000, seed=1)
    p = model.probability(X)
    skill, ranking = brier_skill(p, y), auroc(p, y)
    assert calibration_error(p, y) < 0.03
    assert skill is not None and skill > 0.2
    assert ranking is not None and ranking > 0.8


def test_the_penalty_shrinks_and_separable_data_stay_finite() -> None:
    X, y = np.array([[-1.0], [-2.0], [1.0], [2.0]]), np.array([False, False, True, True])
    weak, strong = (fit(X, y, SHA, [], names=("a",), l2=l2).weights[0] for l2 in (0.1, 10.0))
    assert 0.0 < strong < weak < 100.0


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.zeros((3, 2)), [True, False, True]),
        (np.zeros((3, 1)), [True, True, True]),
        (np.zeros((2, 1)), [True, False, True]),
        (np.array([[0.0], [np.nan]]), [True, False]),
    ],
    ids=["columns", "one kind", "rows", "not finite"],
)
def test_fit_refuses_what_it_cannot_fit(X: Floats, y: list[bool]) -> None:
    with pytest.raises(InputError):
        fit(X, y, SHA, [], names=("a",))


def test_a_saved_calibration_reads_back_equal(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    model = fit(rng.normal(size=(50, len(FEATURES))), rng.random(50) < 0.5, SHA, [9])
    model.save(tmp_path / "c.json")
    assert load_calibration(tmp_path / "c.json", SHA) == model
    assert isinstance(model, Calibration)
    row = features(ESTIMATE)
    assert float(model.probability(row)) == pytest.approx(float(model.probability(row[None])[0]))


def test_another_radio_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "c.json")
    assert load_calibration(path, SHA).intercept == -1.0
    with pytest.raises(ContractError, match="radio_config_sha256"):
        load_calibration(path, "cd" * 32)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schema_version": 2}, "schema_version 2"),
        ({"features": list(reversed(FEATURES))}, "order"),
        ({"features": ["colour", *FEATURES[1:]]}, "colour"),
        ({"weights": [0.1]}, "1 weights"),
        ({"intercept": float("nan")}, "finite"),
        ({"weights": "x"}, "not a calibration"),
        ({"n": None}, "'n'"),
    ],
)
def test_broken_files_are_refused_by_name(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    path = saved(tmp_path / "c.json", **changes)
    with pytest.raises(ContractError, match=said) as caught:
        load_calibration(path, SHA)
    assert str(path) in str(caught.value)


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError):
        load_calibration(tmp_path / "none.json", SHA)
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(ContractError):
        load_calibration(tmp_path / "c.json", SHA)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9]), st.booleans()), min_size=1, max_size=30))
def test_auroc_equals_counting_pairs(drawn: list[tuple[float, bool]]) -> None:
    p, y = np.array([d[0] for d in drawn]), np.array([float(d[1]) for d in drawn])
    pairs = [(a, b) for a, b in itertools.product(p[y > 0], p[y == 0])]
    if not pairs:
        assert auroc(p, y) is None
    else:
        assert auroc(p, y) == pytest.approx(np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs]))


def test_reliability_by_hand() -> None:
    p = np.array([0.05, 0.06, 0.95, 1.0, 0.55])
    y = np.array([0.0, 1.0, 1.0, 1.0, 0.0])
    curve = reliability(p, y)
    np.testing.assert_allclose(curve.confidence, [0.055, 0.55, 0.975])
    np.testing.assert_allclose(curve.right, [0.5, 0.0, 1.0])
    np.testing.assert_array_equal(curve.counts, [2, 1, 2])
    assert calibration_error(p, y) == pytest.approx((2 * 0.445 + 0.55 + 2 * 0.025) / 5)


def test_brier_skill_is_measured_from_the_base_rate() -> None:
    y = np.array([1.0, 0.0, 0.0, 0.0])
    assert brier_skill(np.full(4, 0.25), y) == pytest.approx(0.0)
    assert brier_skill(y, y) == pytest.approx(1.0)
    assert brier_skill(1.0 - y, y) == pytest.approx(1.0 - 1.0 / 0.1875)
    assert brier_skill(np.ones(2), np.ones(2)) is None


def test_figures_refuse_unequal_lengths() -> None:
    with pytest.raises(InputError):
        auroc(np.zeros(3), np.zeros(2))


def test_no_feature_gets_a_sign_it_cannot_have() -> None:
    """Labels that go the wrong way with every feature: the fit says nothing rather than something absurd."""
    rng = np.random.default_rng(3)
    values = rng.standard_normal((400, len(FEATURES)))
    wrong = np.array([-1.0 if name in FOR else 1.0 for name in FEATURES])
    labels = (values @ wrong + rng.standard_normal(400)) > 0.0
    against = fit(values, labels, SHA, [1])
    assert np.abs(against.weights).max() < 1e-9
    agreeing = fit(values, ~labels, SHA, [1])
    assert all((w > 0.1) == (name in FOR) for w, name in zip(agreeing.weights, FEATURES, strict=True))
