"""How likely an estimate is a victim within ten metres: a calibrated probability, and figures that check it.

A logistic model over what an estimate carries. Its weights are versioned data, fitted on seeds no evaluation uses and
valid only for the radio configuration they were fitted under; any other is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from sar_core.errors import ContractError, InputError, MissingDataError
from sar_swarm.sensing.fusion import Estimate

Floats = NDArray[np.float64]

SCHEMA_VERSION = 1
WORST_GDOP = 8.0
CLEAR_GAP = 15.0
FEATURES = (
    "log_std",
    "log_chi2",
    "ambiguity_gap",
    "log_speed_gain",
    "moving_mps",
    "log_observations",
    "views",
    "n_eff",
    "gdop",
    "gdop_undefined",
    "beacon_share",
    "known",
    "log_duration",
)

FOR = frozenset({"ambiguity_gap", "log_observations", "views", "n_eff", "log_duration"})
"""Features that can only speak for an estimate; each of the others can only speak against it. A fit keeps to that, so
that no chance correlation of the missions it was fitted on makes doubt sound like evidence."""


def features(estimate: Estimate) -> Floats:
    """The numbers float64[F] the model looks at, in the order of FEATURES; bounded, so that no outlier decides alone.

    An undefined GDOP counts as the worst one and is marked as undefined. Who transmits is told only by what frames
    carry (beacons, known addresses) and by how the track moves: not by transmit power, frame rate or gate statistics,
    which here would betray how we model each kind of device.
    """
    e = estimate
    return np.array(
        [
            math.log(min(max(e.information_dop_m, 0.05), 500.0)),
            math.log(min(max(e.chi2, 0.05), 50.0)),
            min(e.ambiguity_gap, CLEAR_GAP) / CLEAR_GAP,
            math.log1p(min(e.speed_gain, 1e3)),
            min(e.speed_mps, 20.0) * -math.expm1(-e.speed_gain / 3.0),
            math.log(max(e.observations, 1)),
            min(e.views, 8),
            min(e.n_eff, 8.0),
            WORST_GDOP if e.path_gdop is None else min(e.path_gdop, WORST_GDOP),
            float(e.path_gdop is None),
            e.beacon_share,
            float(e.known),
            math.log1p(max(e.last_s - e.first_s, 0.0)),
        ]
    )


@dataclass(frozen=True)
class Calibration:
    """A fitted model: probability = 1 / (1 + exp(-(intercept + weights . features)))."""

    radio_config_sha256: str
    features: tuple[str, ...]
    weights: tuple[float, ...]
    intercept: float
    seeds: tuple[int, ...]
    n: int
    positives: int
    schema_version: int = SCHEMA_VERSION

    def probability(self, values: Floats) -> Floats:
        """Probability float64[K] for features float64[K, F], or float64[] for one row."""
        score = np.asarray(values, dtype=np.float64) @ np.array(self.weights) + self.intercept
        return np.asarray(special.expit(score), dtype=np.float64)

    def save(self, path: Path) -> None:
        """Write the calibration as JSON, the same bytes for the same fit."""
        path.write_text(json.dumps(asdict(self), indent=2, sort_keys=True) + "\n")


def fit(
    values: Floats,
    labels: Sequence[bool] | NDArray[np.bool_],
    radio_config_sha256: str,
    seeds: Sequence[int],
    names: Sequence[str] = FEATURES,
    l2: float = 1.0,
) -> Calibration:
    """Fit by maximum likelihood with an L2 penalty on the standardised weights (none on the intercept), each of its
    plausible sign."""
    X, y = np.asarray(values, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if X.ndim != 2 or X.shape != (len(y), len(names)):
        raise InputError(f"features have shape {X.shape}, expected ({len(y)}, {len(names)}): a row per label")
    if not np.all(np.isfinite(X)):
        raise InputError(f"features hold {np.count_nonzero(~np.isfinite(X))} values that are not finite")
    positives = int(np.count_nonzero(y))
    if positives in (0, len(y)):
        raise InputError(f"{positives} of {len(y)} labels are positive: a fit needs both kinds")
    centre, spread = X.mean(axis=0), X.std(axis=0)
    spread = np.where(spread > 1e-12, spread, 1.0)
    Z = np.column_stack([(X - centre) / spread, np.ones(len(y))])
    penalty = np.append(np.full(X.shape[1], l2), 0.0)

    def loss(w: Floats) -> tuple[float, Floats]:
        score = Z @ w
        value = np.sum(np.logaddexp(0.0, score) - y * score) + 0.5 * np.sum(penalty * w * w)
        return float(value), Z.T @ (special.expit(score) - y) + penalty * w

    bounds = [(0.0, None) if name in FOR else (None, 0.0 if name in FEATURES else None) for name in names]
    limits: dict[str, Any] = {"bounds": [*bounds, (None, None)], "options": {"maxiter": 2000}}
    found = optimize.minimize(loss, np.zeros(Z.shape[1]), jac=True, method="L-BFGS-B", **limits)
    weights = found.x[:-1] / spread
    return Calibration(
        radio_config_sha256=radio_config_sha256,
        features=tuple(names),
        weights=tuple(float(w) for w in weights),
        intercept=float(found.x[-1] - weights @ centre),
        seeds=tuple(int(s) for s in seeds),
        n=len(y),
        positives=positives,
    )


def load_calibration(path: Path, expected_sha256: str) -> Calibration:
    """Read a calibration, refusing one of another schema, other features or another radio configuration."""
    if not path.is_file():
        raise MissingDataError(f"{path}: no such calibration file")
    try:
        data: Any = json.loads(path.read_text())
        calibration = Calibration(
            radio_config_sha256=str(data["radio_config_sha256"]),
            features=tuple(str(name) for name in data["features"]),
            weights=tuple(float(w) for w in data["weights"]),
            intercept=float(data["intercept"]),
            seeds=tuple(int(s) for s in data["seeds"]),
            n=int(data["n"]),
            positives=int(data["positives"]),
            schema_version=int(data["schema_version"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ContractError(f"{path}: not a calibration: {type(error).__name__} {error}") from error
    if calibration.schema_version != SCHEMA_VERSION:
        raise ContractError(f"{path}: schema_version {calibration.schema_version}, expected {SCHEMA_VERSION}")
    if calibration.radio_config_sha256 != expected_sha256:
        raise ContractError(
            f"{path}: radio_config_sha256 {calibration.radio_config_sha256}, but this radio configuration is "
            f"{expected_sha256}: fit a calibration for it"
        )
    if calibration.features != FEATURES:
        odd = sorted(set(calibration.features) ^ set(FEATURES)) or "their order"
        raise ContractError(f"{path}: features differ from this program's: {odd}")
    if len(calibration.weights) != len(FEATURES):
        raise ContractError(f"{path}: {len(calibration.weights)} weights for {len(FEATURES)} features")
    if not all(math.isfinite(w) for w in (*calibration.weights, calibration.intercept)):
        raise ContractError(f"{path}: weights and intercept must be finite")
    return calibration


class Reliability(NamedTuple):
    """Per filled bin: mean confidence float64[B], share that was right float64[B], counts int64[B]."""

    confidence: Floats
    right: Floats
    counts: NDArray[np.int64]


def _paired(probabilities: Floats, labels: Floats) -> tuple[Floats, Floats]:
    p, y = np.asarray(probabilities, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if p.ndim != 1 or p.shape != y.shape or len(p) == 0:
        raise InputError(f"expected as many labels as probabilities and at least one, got {p.shape} and {y.shape}")
    return p, y


def reliability(probabilities: Floats, labels: Floats, bins: int = 10) -> Reliability:
    """The reliability curve over equal bins of [0, 1]; empty bins are left out."""
    p, y = _paired(probabilities, labels)
    index = np.clip((p * bins).astype(np.int64), 0, bins - 1)
    count = np.bincount(index, minlength=bins)
    filled = count > 0
    mean_p = np.bincount(index, p, bins)[filled] / count[filled]
    mean_y = np.bincount(index, y, bins)[filled] / count[filled]
    return Reliability(mean_p, mean_y, count[filled])


def calibration_error(probabilities: Floats, labels: Floats, bins: int = 10) -> float:
    """Expected calibration error: the count-weighted mean of |confidence - share right| over the bins."""
    curve = reliability(probabilities, labels, bins)
    return float(np.sum(curve.counts * np.abs(curve.confidence - curve.right)) / np.sum(curve.counts))


def brier_skill(probabilities: Floats, labels: Floats) -> float | None:
    """1 - Brier score / Brier score of always saying the base rate; None where every label is the same."""
    p, y = _paired(probabilities, labels)
    reference = float(np.mean((y.mean() - y) ** 2))
    return None if reference == 0.0 else 1.0 - float(np.mean((p - y) ** 2)) / reference


def auroc(probabilities: Floats, labels: Floats) -> float | None:
    """Chance that a right one is ranked above a wrong one, ties counting half; None without both kinds."""
    p, y = _paired(probabilities, labels)
    right = int(np.count_nonzero(y))
    wrong = len(y) - right
    if right == 0 or wrong == 0:
        return None
    ranks = stats.rankdata(p)
    return float((np.sum(ranks[y > 0.0]) - right * (right + 1) / 2.0) / (right * wrong))
